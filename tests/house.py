"""Figures about the structure of the package: ``python -m tests.house`` prints them.

They say how much a reader has to open to follow a row: classes behind an estimator, functions
and files that one call runs through, and what the files are made of.
"""

from __future__ import annotations

import ast
import inspect
import io
import statistics
import sys
import tokenize
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import bayesrbf
from tests.cases import generative
from tests.measured import COST, write

ROOT = Path(__file__).resolve().parent.parent
SHAPES = {"full", "tied", "diag", "spherical"}
"""Names of covariance shapes: a branch on one of them belongs into its own class."""
FRAGMENT = 40
"""Lines of code below which a file with one reader may be a part of that reader's topic."""
FOUR = ("laplace_short", "laplace_evidence", "mixture", "normal_blend")
"""Members of the stack that is followed: networks and mixtures, of either kind of fit."""
NEEDS_TORCH = {
    "torch.sdgm_head",
    "torch.sparse_quadratic",
}
"""Modules that cannot be imported where PyTorch is not installed."""


@dataclass(frozen=True)
class Lines:
    """What the lines of a file are."""

    total: int
    code: int
    docstring: int
    comments: int


LIKELIHOOD = "a likelihood mixture"
"""Two full components a class, without a temperature."""


@dataclass(frozen=True)
class Call:
    """What one call runs through in the package."""

    functions: int
    files: int
    depth: int

    def __str__(self) -> str:
        return f"{self.functions} functions in {self.files} files, {self.depth} deep"


def source_files() -> list[Path]:
    """Every Python file of the package, those of ``models/`` once."""
    package = [p for p in (ROOT / "bayesrbf").rglob("*.py") if not p.is_relative_to(linked())]
    return sorted([*package, *(ROOT / "models").rglob("*.py")])


def linked() -> Path:
    """The link to ``models/`` inside the package."""
    return ROOT / "bayesrbf" / "models"


def count_lines(text: str) -> Lines:
    """Lines of code, of docstrings and with comments.

    >>> count_lines('def one():\\n    \"\"\"Say one.\"\"\"\\n    # because\\n    return 1\\n')
    Lines(total=4, code=2, docstring=1, comments=1)
    """
    docstring: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            docstring.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code: set[int] = set()
    comments: set[int] = set()
    skipped = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.add(token.start[0])
        elif token.type not in skipped:
            code.update(range(token.start[0], token.end[0] + 1))
    return Lines(text.count("\n"), len(code - docstring), len(docstring), len(comments))


def estimators() -> dict[str, type]:
    """Public estimators of tables by name."""
    found = {name: getattr(bayesrbf, name) for name in bayesrbf.__all__}
    return {name: kind for name, kind in found.items() if hasattr(kind, "declare")}


def own_bases(kind: type) -> list[type]:
    """Classes of the package in a method resolution order, the class itself included."""
    return [base for base in kind.__mro__ if base.__module__.startswith("bayesrbf")]


def arguments(kind: type) -> list[str]:
    """Arguments of a constructor."""
    return list(inspect.signature(kind).parameters)


def public_names(kind: type) -> list[str]:
    """Public methods and properties that an estimator has from this package.

    Not counted are fitted attributes, which end in an underscore; what scikit-learn gives to
    estimators (``get_params``, ``set_params``, ``set_output``, ``fit_transform``,
    ``set_fit_request`` and the like), unless it is written anew as ``score`` is; and what the
    family refuses by an AttributeError, as exemplars do for questions to a density.
    """
    of_package = {name for base in own_bases(kind) for name in vars(base)}
    return sorted(
        name
        for name in of_package - set(vars(BaseEstimator))
        if not (name.startswith("_") or name.endswith(("_", "_request")))
        and (isinstance(inspect.getattr_static(kind, name), property) or hasattr(kind(), name))
    )


def only_children() -> list[str]:
    """Classes of the package with exactly one subclass there."""
    classes: set[type] = set()
    for path in source_files():
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removeprefix("bayesrbf.")
        if name.endswith(("__main__", "__init__")) or name in NEEDS_TORCH:
            continue
        name = f"bayesrbf.{name}"
        members = vars(import_module(name)).values()
        classes |= {m for m in members if inspect.isclass(m) and m.__module__ == name}
    children = Counter(base for kind in classes for base in kind.__bases__ if base in classes)
    return sorted(base.__name__ for base, count in children.items() if count == 1)


def followed(call: Callable[[], object]) -> Call:
    """Distinct functions and files of the package that a call enters, and the deepest stack."""
    functions: set[Any] = set()
    depth = deepest = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal depth, deepest
        code = frame.f_code
        inside = "bayesrbf" in code.co_filename and not code.co_name.startswith("<")
        if not inside or event not in ("call", "return"):
            return
        depth += 1 if event == "call" else -1
        deepest = max(deepest, depth)
        functions.add(code)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Call(len(functions), len({code.co_filename for code in functions}), deepest)


def private_reads(folder: str) -> list[str]:
    """Places where a folder reads a private attribute of something that is not ``self``."""
    found = []
    for path in sorted((ROOT / "bayesrbf" / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Attribute)
                and node.attr.startswith("_")
                and not node.attr.startswith("__")
                and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
            ):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def fragments() -> list[str]:
    """Files of few lines of code that a single file of the same folder imports."""
    readers: dict[str, set[Path]] = {}
    for path in source_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                readers.setdefault(node.module.removeprefix("bayesrbf."), set()).add(path)
    found = []
    for path in source_files():
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removeprefix("bayesrbf.")
        few = count_lines(path.read_text()).code < FRAGMENT
        if few and [reader.parent for reader in readers.get(name, ())] == [path.parent]:
            found.append(name)
    return found


def shape_branches() -> Counter[str]:
    """Comparisons with the name of a covariance shape where only its class should know it."""
    found: Counter[str] = Counter()
    for path in source_files():
        if path.name == "specification.py" or path.parent.name == "parts":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare | ast.MatchValue):
                names = {c.value for c in ast.walk(node) if isinstance(c, ast.Constant)}
                found[str(path.relative_to(ROOT))] += bool(names & SHAPES)
    return +found


def rows() -> Iterator[tuple[str, str]]:
    """What is measured, and its figure."""
    kinds = estimators()
    chains = {name: len(own_bases(kind)) for name, kind in kinds.items()}
    longest = max(chains, key=chains.__getitem__)
    yield "own classes in the MRO of an estimator, most", f"{chains[longest]} ({longest})"
    for what, listed in (("arguments", arguments), ("public names", public_names)):
        numbers = {name: len(listed(kind)) for name, kind in kinds.items()}
        yield f"{what} of an estimator", ", ".join(f"{name} {n}" for name, n in numbers.items())
    single = only_children()
    yield "classes with exactly one subclass", f"{len(single)}: {', '.join(single)}"
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.repeat([0, 1], 30)
    for name, kind in kinds.items():
        if "Regressor" in name:
            continue
        few = {"members": FOUR, "cv": 2} if "Stacked" in name else {}
        model = kind(**few, random_state=0)
        yield f"{name}.fit, 60 x 3", str(followed(lambda m=model: m.fit(X, y)))
        if hasattr(model, "predict_proba"):
            yield f"{name}.predict_proba", str(followed(lambda m=model: m.predict_proba(X)))
    likelihood = generative(2, random_state=0)
    yield f"{LIKELIHOOD}.fit", str(followed(lambda: likelihood.fit(X, y)))
    yield f"{LIKELIHOOD}.predict_proba", str(followed(lambda: likelihood.predict_proba(X)))
    counts = [count_lines(path.read_text()) for path in source_files()]
    total, code = sum(c.total for c in counts), sum(c.code for c in counts)
    yield "lines, of them code", f"{total:,}, {code:,}"
    tests = (path.read_text().count("\n") for path in (ROOT / "tests").rglob("*.py"))
    yield "lines of the tests", f"{sum(tests):,}"
    sizes = [c.code for c in counts if c.code]
    mean, median = statistics.mean(sizes), statistics.median(sizes)
    yield "lines of code in a file, mean and median", f"{mean:.0f}, {median:.0f}"
    alone = fragments()
    yield "files below 40 lines of code with one reader", f"{len(alone)}: {', '.join(alone)}"
    yield "lines of the longest file", str(max(c.total for c in counts))
    yield "docstring lines per line of code", f"{sum(c.docstring for c in counts) / code:.2f}"
    comments = sum(c.comments for c in counts)
    yield "lines with a comment per 100 lines of code", f"{100 * comments / code:.1f}"
    reads = private_reads("report")
    yield "reads of private attributes in report/", str(len(reads))
    branches = shape_branches()
    yield "branches on a covariance shape", f"{branches.total()} in {len(branches)} files"


def main() -> None:
    """Print the table, and keep it for docs/reproduction.md."""
    warnings.simplefilter("ignore")
    names, figures = zip(*rows(), strict=True)
    print(write("house", {"": names, "figure": figures}, "python -m tests.house", about=COST))


if __name__ == "__main__":
    main()
