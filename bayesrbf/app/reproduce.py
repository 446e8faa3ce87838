"""``bayesrbf reproduce``: the scripts of ``examples/reproduce/`` in a clone of the repository."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

import bayesrbf


def scripts() -> App:
    """Commands of the clone that this package is imported from, or of the current folder."""
    for clone in (Path(bayesrbf.__file__).parents[1], Path.cwd()):
        if (clone / "examples/reproduce/commands.py").is_file():
            sys.path.insert(0, str(clone / "examples"))
            commands: App = import_module("reproduce.commands").app
            return commands
    # Nothing is raised here: a command line that is wrong elsewhere loads all commands.
    nothing = App(name="reproduce")

    @nothing.default
    def absent(*words: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> None:
        raise FileNotFoundError(
            "the scripts of reproduce are not installed with the package. Clone the repository of "
            f"bayesrbf at the tag v{bayesrbf.__version__}, and run the command in that folder."
        )

    return nothing


app = scripts()
