"""The directive ``declared-graph``: code that declares a graph, and the picture of that graph.

The content is Python that may use every public name of the package and a small table ``X, y``; its
last line is the graph. It is run whenever the site is built, so the picture is that of the code.
"""

from __future__ import annotations

import ast
from typing import Any

from docutils import nodes
from sklearn.datasets import load_iris
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import bayesrbf
from bayesrbf.report.plate import nodes_of, plate

ROWS = slice(None, None, 3)


class DeclaredGraph(SphinxDirective):
    """Code as it is typed, and the plate diagram of the graph that it declares."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The code block and the picture; an error in the code ends the build."""
        code = "\n".join(self.content)
        shown = nodes.literal_block(code, code, language="python")
        drawn = plate(*nodes_of(declared(code)))
        picture = f'<div class="declared-graph">{drawn}</div>'
        return [shown, nodes.raw("", picture, format="html")]


def declared(code: str) -> Any:
    """The value of the last line of the code."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = {name: getattr(bayesrbf, name) for name in bayesrbf.__all__}
    names |= {"X": X.iloc[ROWS, :2], "y": y.iloc[ROWS]}
    *first, last = ast.parse(code).body
    exec(compile(ast.Module(first, []), "<declared-graph>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<declared-graph>", "eval"), names)


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx of the directive."""
    app.add_directive("declared-graph", DeclaredGraph)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
