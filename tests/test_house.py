"""What the house rules of the whole package hold, read from its syntax trees."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from tests.house import ROOT, estimators, own_bases, source_files

MOST_LINES = 320
LONGER = {
    "bayesrbf/estimators/estimator.py",
    "bayesrbf/estimators/median_lvq/classifier.py",
    "bayesrbf/estimators/mixture/hybrid.py",
    "bayesrbf/estimators/rbf_network/regressor.py",
    "bayesrbf/estimators/sdgm/classifier.py",
}
"""Files that are still too long; nothing may be added here."""

TOLD_APART = {
    "bayesrbf/numerics/mixture/array_expectation.py": 1,
    "bayesrbf/numerics/mixture/compiled_density.py": 1,
}
"""How often a file still tells own types apart by ``isinstance``; no number may grow."""

READS_INPUT = {"bayesrbf/artefact/unpacking.py", "bayesrbf/cli.py", "bayesrbf/files.py"}
"""Files that read what is not trusted, where an own exception or record is told apart."""

NAMEDTUPLE = {"_asdict", "_fields", "_make", "_replace"}
"""Public methods of named tuples in spite of their names."""


def trees() -> dict[str, ast.Module]:
    """The syntax tree of every file, under its path."""
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in source_files()}


TREES = trees()
CLASSES = {
    node.name: [ast.unparse(base).partition("[")[0] for base in node.bases]
    for tree in TREES.values()
    for node in ast.walk(tree)
    if isinstance(node, ast.ClassDef)
}
"""Bases of every class of the package, under its name."""


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


def types_told_apart(tree: ast.Module) -> Iterator[str]:
    """``isinstance`` and class patterns that ask for an own type."""
    for node in ast.walk(tree):
        kinds: ast.AST | None = None
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
            "isinstance",
            "issubclass",
        ):
            kinds = node.args[1]
        elif isinstance(node, ast.MatchClass):
            kinds = node.cls
        names = {n.id for n in ast.walk(kinds) if isinstance(n, ast.Name)} if kinds else set()
        if names & set(CLASSES):
            yield f"line {kinds.lineno}: {ast.unparse(node)}"


def only_children(classes: dict[str, list[str]]) -> set[str]:
    """Bases with exactly one subclass."""
    children: defaultdict[str, set[str]] = defaultdict(set)
    for name, bases in classes.items():
        for base in bases:
            if base in classes:
                children[base].add(name)
    return {base for base, found in children.items() if len(found) == 1}


@pytest.mark.parametrize("path", TREES)
def test_nothing_reads_the_private_state_of_another(path: str) -> None:
    assert list(private_reads(TREES[path])) == []


def test_own_types_are_told_apart_only_where_input_is_read() -> None:
    found = Counter({path: len(list(types_told_apart(tree))) for path, tree in TREES.items()})
    for path in READS_INPUT:
        found.pop(path, None)
    more = {path: number for path, number in found.items() if number > TOLD_APART.get(path, 0)}
    assert more == {}


@pytest.mark.parametrize("name", estimators())
def test_an_estimator_has_at_most_four_own_classes_in_its_order_of_methods(name: str) -> None:
    assert len(own_bases(estimators()[name])) <= 4


def test_no_base_has_a_single_subclass() -> None:
    assert only_children(CLASSES) == set()


def test_files_are_short_enough_to_be_read_whole() -> None:
    long = {
        str(path.relative_to(ROOT))
        for path in source_files()
        if path.read_text().count("\n") > MOST_LINES
    }
    assert long <= LONGER


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("def f(model):\n    return model._raw", 1),
        ("class A:\n    def f(self, other):\n        return self._raw, other._raw", 1),
        ("class A:\n    def f(self):\n        return self.model_._raw", 1),
        ("from bayesrbf.table.labels import _plain", 1),
        ("class A:\n    def f(self):\n        b = copy(self)\n        b._raw = super()._raw", 0),
        ("def f(point):\n    return point._replace(x=1), point.__dict__", 0),
    ],
)
def test_a_planted_private_read_is_found(text: str, number: int) -> None:
    assert len(list(private_reads(ast.parse(text)))) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("isinstance(model, FittedMixture)", 1),
        ("isinstance(model, int | FittedMixture)", 1),
        ("match model:\n    case FittedMixture():\n        pass", 1),
        ("isinstance(model, int)", 0),
    ],
)
def test_a_planted_branch_on_an_own_type_is_found(text: str, number: int) -> None:
    assert len(list(types_told_apart(ast.parse(text)))) == number


def test_a_planted_single_subclass_is_found() -> None:
    assert only_children({"A": [], "B": ["A"], "C": ["ABC"]}) == {"A"}
    assert only_children({"A": [], "B": ["A"], "C": ["A"]}) == set()
