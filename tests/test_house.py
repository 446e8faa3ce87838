"""What the house rules of the whole package hold, read from its syntax trees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.house import ROOT, imports, names_of, trees

NAMEDTUPLE = {"_asdict", "_fields", "_make", "_replace"}
"""Public methods of named tuples in spite of their names."""


def is_private(name: str) -> bool:
    """Whether a name starts with one underscore."""
    return name.startswith("_") and not name.startswith("__")


def copies_of_self(function: ast.AST) -> set[str]:
    """Names that a function gives to ``copy(self)`` or ``replace(self, ...)``."""
    return {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if ast.unparse(node.value.func) in ("copy", "replace")
        if node.value.args and ast.unparse(node.value.args[0]) == "self"
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def private_reads(tree: ast.Module) -> Iterator[str]:
    """Reads of a private attribute or name of something else than the object itself or a copy."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and is_private(node.attr)
            and node.attr not in NAMEDTUPLE
            and ast.unparse(node.value) not in ("self", "cls", "super()")
        ):
            around = [f for f in functions if f.lineno <= node.lineno <= (f.end_lineno or 0)]
            if not any(ast.unparse(node.value) in copies_of_self(f) for f in around):
                yield f"line {node.lineno}: {ast.unparse(node)}"
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayesrbf"):
            for name in node.names:
                if is_private(name.name):
                    yield f"line {node.lineno}: {node.module}.{name.name}"


def free_self(tree: ast.Module) -> Iterator[str]:
    """Functions of a module, not of a class, that call a parameter ``self``."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if any(argument.arg == "self" for argument in arguments):
                yield f"line {node.lineno}: {node.name}"


@cache
def attributes() -> set[str]:
    """Names of fields and methods of the package's classes."""
    return {
        target
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        for target in (
            [statement.name]
            if isinstance(statement, ast.FunctionDef)
            else [statement.target.id]
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)
            else []
        )
    }


OF_OTHERS = {"shape", "columns", "dtype", "dtypes", "kind", "tolist", "to_dict", "sample", "index"}
"""Names that foreign tables and arrays have, too."""
ASKED = {"fit", "predict_proba", "unlabelled", "message"}
"""What members of a stack and estimators of others may lack."""


def own_names_asked(tree: ast.Module) -> Iterator[str]:
    """``hasattr`` and ``getattr`` with the name of an own attribute."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", "") in ("hasattr", "getattr")
            and len(node.args) > 1
            and isinstance(node.args[1], ast.Constant)
            and node.args[1].value in attributes() - OF_OTHERS
        ):
            yield str(node.args[1].value)


def circles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Groups of files that import each other, by any way round."""
    reached: dict[str, set[str]] = {}
    for start in edges:
        seen, open_ones = set(), [start]
        while open_ones:
            for other in edges.get(open_ones.pop(), set()) - seen:
                seen.add(other)
                open_ones.append(other)
        reached[start] = seen
    groups = {
        frozenset(b for b in edges if b in reached[a] and a in reached.get(b, set()))
        for a in edges
        if a in reached[a]
    }
    return [set(group) for group in groups]


NODES_OF_BOOSTING = ["model._baseline_prediction", "model._predictors"]
"""scikit-learn has no public name for them; tests/families/stack/ sees what they say."""


def test_nothing_reads_the_private_state_of_another() -> None:
    found = {path: list(private_reads(tree)) for path, tree in trees().items()}
    of_boosting = found.pop("bayesrbf/families/stack/trees.py")
    assert sorted(read.split(": ")[1] for read in of_boosting) == NODES_OF_BOOSTING
    assert {path: reads for path, reads in found.items() if reads} == {}


def test_no_function_of_a_module_calls_a_parameter_self() -> None:
    found = {path: list(free_self(tree)) for path, tree in trees().items()}
    assert {path: named for path, named in found.items() if named} == {}


def test_own_names_are_hardly_ever_asked_for() -> None:
    assert {name for tree in trees().values() for name in own_names_asked(tree)} <= ASKED


def test_no_files_import_each_other() -> None:
    assert circles({path: imports(path) for path in trees()}) == []


def test_kernels_stand_in_files_that_are_named_so() -> None:
    """Their sources are the key of what is compiled, and types are not checked there."""
    compiled = {file for file, name in names_read("bayesrbf/base/compiled.py") if name == "kernel"}
    assert {Path(file).name.startswith("compiled") for file in compiled} == {True}


def names_read(file: str) -> Iterator[tuple[str, str]]:
    """Files that import names of a file, with these names."""
    for path, tree in trees().items():
        yield from ((path, name) for other, name in names_of(tree) if other == file)


@pytest.mark.parametrize("page", ["architecture.md", "adding_a_family.md", "trust.md"])
def test_files_that_a_page_names_exist(page: str) -> None:
    named = re.findall(
        r"`((?:bayesrbf|models|tests|examples)/[\w/.]*)`", (ROOT / "docs" / page).read_text()
    )
    assert len(named) > 10
    assert [one for one in named if not (ROOT / one).exists()] == []


def test_names_that_the_page_on_architecture_names_exist() -> None:
    named = re.findall(r"`([A-Za-z_][\w.]*)`", (ROOT / "docs" / "architecture.md").read_text())
    folders = ("bayesrbf", "models", "tests")
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    words = {word for file in files for word in re.findall(r"\w+", file.read_text())}
    assert len(named) > 100
    assert [one for one in named if not words.issuperset(re.findall(r"\w+", one))] == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("def f(model):\n    return model._raw", 1),
        ("class A:\n    def f(self, other):\n        return self._raw, other._raw", 1),
        ("class A:\n    def f(self):\n        return self.model_._raw", 1),
        ("from bayesrbf.table.encode import _plain", 1),
        ("class A:\n    def f(self):\n        b = copy(self)\n        b._raw = super()._raw", 0),
        ("def f(point):\n    return point._replace(x=1), point.__dict__", 0),
    ],
)
def test_a_planted_private_read_is_found(text: str, number: int) -> None:
    assert len(list(private_reads(ast.parse(text)))) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("def f(self, X):\n    return X", 1),
        ("def f(X, *, self):\n    return X", 1),
        ("class A:\n    def f(self):\n        return 1", 0),
    ],
)
def test_a_planted_free_self_is_found(text: str, number: int) -> None:
    assert len(list(free_self(ast.parse(text)))) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("getattr(model, 'companions', None)", 1),
        ("hasattr(model, 'class_log_joint')", 1),
        ("getattr(frame, 'columns')", 0),
        ("getattr(model, name)", 0),
    ],
)
def test_a_planted_question_for_an_own_name_is_found(text: str, number: int) -> None:
    assert len(list(own_names_asked(ast.parse(text)))) == number


def test_a_planted_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
