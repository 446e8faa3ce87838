"""Figures about the structure of the package: ``python -m tests.house`` prints them.

They say how much a reader has to open to follow a call, and how many files have a single importer.
"""

from __future__ import annotations

import ast
import inspect
import io
import subprocess
import sys
import tokenize
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

import numpy as np
from sklearn.base import BaseEstimator

import bayesrbf
from tests.measured import write

ROOT = Path(__file__).resolve().parent.parent
FOR_PEOPLE = "bayesrbf/app/"
"""Files that read the core through few names."""


@dataclass(frozen=True)
class Lines:
    """What the lines of a file are."""

    total: int
    code: int
    docstring: int
    comments: int


@dataclass(frozen=True)
class Call:
    """What one call enters in the package."""

    functions: int
    classes: int
    files: int

    def __str__(self) -> str:
        known = self.classes + self.files
        return f"{known}: {self.classes} classes, {self.files} files ({self.functions} functions)"


def source_files() -> list[Path]:
    """Every Python file of the package, those of ``models/`` once."""
    package = [p for p in (ROOT / "bayesrbf").rglob("*.py") if not p.is_relative_to(linked())]
    return sorted([*package, *(ROOT / "models").rglob("*.py")])


def linked() -> Path:
    """The link to ``models/`` inside the package."""
    return ROOT / "bayesrbf" / "models"


@cache
def trees() -> dict[str, ast.Module]:
    """The syntax tree of every file, under its path."""
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in source_files()}


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


def code_in(*folders: str) -> int:
    """Lines of code of all Python files below some folders."""
    files = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return sum(count_lines(path.read_text()).code for path in files)


def estimators() -> dict[str, type]:
    """Public estimators of tables by name."""
    named = {name: getattr(bayesrbf, name) for name in bayesrbf.__all__}
    return {name: kind for name, kind in named.items() if hasattr(kind, "declare")}


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


def file_of(module: str) -> str | None:
    """The file of a module or of a package's surface, if there is one."""
    place = module.replace(".", "/").replace("bayesrbf/models", "models")
    files = (f"{place}.py", f"{place}/__init__.py")
    return next((file for file in files if file in trees()), None)


def names_of(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """File and name of everything that a file imports from the package, also for types alone.

    A name that a surface hands on is one of the file that has it; a module is its whole file.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayesrbf"):
            for name in node.names:
                whole = file_of(f"{node.module}.{name.name}")
                file = whole or file_of(node.module or "")
                if file is not None and file.endswith("__init__.py"):
                    handed_on = {n: f for f, n in names_of(trees()[file])}
                    file = handed_on.get(name.name, file)
                if file is not None:
                    yield file, "" if whole else name.name
        elif isinstance(node, ast.Import):
            yield from ((file, "") for one in node.names if (file := file_of(one.name)))


def imports(path: str) -> set[str]:
    """Files of the package that a file imports."""
    return {file for file, _ in names_of(trees()[path])} - {path}


def alone() -> list[str]:
    """Files that a single other imports; a surface only hands on what others ask for."""
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for path in trees():
        if path.endswith("__init__.py"):
            continue
        for file in imports(path):
            importers[file].add(path)
    return sorted(file for file, paths in importers.items() if len(paths) == 1)


def read_by_app() -> set[tuple[str, str]]:
    """Names of the core that files for people import."""
    return {
        (file, name)
        for path, tree in trees().items()
        if path.startswith(FOR_PEOPLE)
        for file, name in names_of(tree)
        if not file.startswith(FOR_PEOPLE)
    }


def loaded(name: str) -> int:
    """Files of the package that importing one estimator loads."""
    program = f"import sys, bayesrbf; bayesrbf.{name}; print('\\n'.join(sys.modules))"
    command = [sys.executable, "-c", program]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    modules = [one for one in said.splitlines() if one.startswith("bayesrbf")]
    return len({file for one in modules if (file := file_of(one))})


def followed(call: Callable[[], object]) -> Call:
    """Distinct functions, classes and files of the package that a call enters."""
    entered: set[CodeType] = set()
    inside = (f"{ROOT}/bayesrbf/", f"{ROOT}/models/")  # an environment may stand under ROOT, too

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(inside):
            entered.add(frame.f_code)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    functions = {code for code in entered if not code.co_name.startswith("<")}
    owners = {(code.co_filename, code.co_qualname.split(".")[0]) for code in functions}
    classes = {one for one in owners if one[1].lstrip("_")[:1].isupper()}
    return Call(len(functions), len(classes), len({code.co_filename for code in functions}))


def rows() -> Iterator[tuple[str, str]]:
    """What is measured, and its figure."""
    yield "lines of code: package and graphs", f"{code_of_package():,}"
    yield "lines of code: tests", f"{code_in('tests'):,}"
    yield "lines of code: examples/reproduce", f"{code_in('examples/reproduce'):,}"
    single = alone()
    yield "files", str(len(trees()))
    yield "files with one importer", f"{len(single)}: {', '.join(single)}"
    yield "names of the core that app/ reads", str(len(read_by_app()))
    kinds = estimators()
    numbers = {name: loaded(name) for name in kinds}
    yield (
        "files loaded by importing one estimator",
        f"{min(numbers.values())} to {max(numbers.values())}",
    )
    for what, listed in (("arguments", arguments), ("public names", public_names)):
        counted = {name: len(listed(kind)) for name, kind in kinds.items()}
        yield f"{what} of an estimator", ", ".join(f"{name} {n}" for name, n in counted.items())
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.repeat([0, 1], 30)
    mixture, stack = (
        kinds[name](random_state=0) for name in ("HybridMixtureClassifier", "StackedClassifier")
    )
    yield "classes and files of a default fit", str(followed(lambda: mixture.fit(X, y)))
    yield "of its predict_proba", str(followed(lambda: mixture.predict_proba(X)))
    yield "of a stack's fit", str(followed(lambda: stack.fit(X, y)))
    stack.refine(draws=3)
    yield "of its uncertainty", str(followed(lambda: stack.uncertainty(X)))


def code_of_package() -> int:
    """Lines of code of package and graphs."""
    return sum(count_lines(path.read_text()).code for path in source_files())


def main() -> None:
    """Print the table, and keep it for docs/reproduction.md."""
    warnings.simplefilter("ignore")
    names, figures = zip(*rows(), strict=True)
    print(write("house", {"": names, "figure": figures}, "python -m tests.house"))


if __name__ == "__main__":
    main()
