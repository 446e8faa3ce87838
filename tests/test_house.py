"""What the house rules of the whole package hold, read from its syntax trees."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest

from tests.house import ROOT, arguments, estimators, own_bases, public_names, source_files

MOST_LINES = 350
MOST_ARGUMENTS = MOST_NAMES = 24
LONGER = {
    "bayesrbf/estimators/estimator.py",
    "bayesrbf/estimators/median_lvq/classifier.py",
    "bayesrbf/estimators/mixture/density.py",
    "bayesrbf/estimators/mixture/hybrid.py",
    "bayesrbf/estimators/rbf_network/regressor.py",
    "bayesrbf/estimators/sdgm/classifier.py",
    "bayesrbf/fitted/fitted_network.py",
}
"""Files that are still too long; nothing may be added here."""

TOLD_APART = {
    "bayesrbf/numerics/mixture/array_expectation.py": 1,
    "bayesrbf/numerics/mixture/compiled_density.py": 1,
}
"""How often a file still tells own types apart by ``isinstance``; no number may grow."""

MOST_ASKED, MOST_ANY = 5, 43
"""Questions for own names by ``hasattr`` and ``getattr``, and uses of ``Any`` in estimators: no
number may grow."""

READS_INPUT = {
    "bayesrbf/artefact/unpacking.py",
    "bayesrbf/cli.py",
    "bayesrbf/estimators/saving.py",
    "bayesrbf/files.py",
}
"""Files that read what is not trusted, where an own exception or record is told apart."""

PARTICIPLES = {"found", "told", "said", "known", "those", "held"}
"""Words that say when something came to be, not what it is: they name no value and no function."""
MOST_PARTICIPLES = {
    "fitted": 1,
    "inference": 15,
    "models": 6,
    "numerics": 64,
    "records": 4,
}
"""How often a room still has one as a name; no number may grow, and other rooms have none. A new
name in the last four makes the calibration of the draws run again, which takes days."""

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


def free_self(tree: ast.Module) -> Iterator[str]:
    """Functions of a module, not of a class, that call a parameter ``self``."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            if any(argument.arg == "self" for argument in arguments):
                yield f"line {node.lineno}: {node.name}"


ARRAY_ROOMS = ("records", "numerics", "posterior", "fitted")
"""Rooms where the number of axes of a factor would say which shape of covariance it is of."""
COUNTS_AXES = {
    "bayesrbf/records/mixture.py": 2,  # a log Jacobian of all rows, or of none
    "bayesrbf/numerics/mixture/mixture_points.py": 1,  # axes of a batch
    "bayesrbf/posterior/recalibration.py": 1,  # predictions of one draw, or of several
    "bayesrbf/fitted/holding_out.py": 1,  # as well
    "bayesrbf/fitted/training_table.py": 1,  # classes of a file
}
"""How often a file asks for axes of what is no factor; no number may grow."""


def axes_counted(tree: ast.Module) -> list[str]:
    """Every ``.ndim``, whatever the array is called."""
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    return [f"line {node.lineno}: {ast.unparse(node)}" for node in nodes if node.attr == "ndim"]


ATTRIBUTES = {
    target
    for tree in TREES.values()
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
"""Names of fields and methods of the package's classes."""
OF_OTHERS = {"shape", "columns", "dtype", "dtypes", "kind", "tolist", "to_dict", "sample", "index"}
"""Names that foreign tables and arrays have, too."""


def leaning_docstrings(tree: ast.Module) -> Iterator[str]:
    """Docstrings, of names too, that begin with "The same": they say nothing by themselves."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = str(node.value.value).strip()
            if text.startswith("The same"):
                yield f"line {node.lineno}: {text}"


def bare_bounds(tree: ast.Module) -> Iterator[str]:
    """Constants of a module called ``LEAST``: the name must say of what."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            names = {n.id for one in targets for n in ast.walk(one) if isinstance(n, ast.Name)}
            if names & {"LEAST", "_LEAST"}:
                yield f"line {statement.lineno}: {ast.unparse(statement)}"


def participles(tree: ast.Module) -> Iterator[str]:
    """Names that a file gives: to variables, parameters, functions, fields and attributes."""
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = node.name
        if name.strip("_") in PARTICIPLES:
            yield f"line {getattr(node, 'lineno', 0)}: {name}"


def room_of(path: str) -> str:
    """The package that a file is in."""
    return path.removeprefix("bayesrbf/").partition("/")[0]


def own_names_asked(tree: ast.Module) -> Iterator[str]:
    """``hasattr`` and ``getattr`` with the name of an own attribute."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", "") in ("hasattr", "getattr")
            and len(node.args) > 1
            and isinstance(node.args[1], ast.Constant)
            and node.args[1].value in ATTRIBUTES - OF_OTHERS
        ):
            yield f"line {node.lineno}: {ast.unparse(node)}"


def file_of(module: str) -> str | None:
    """The file of a module or of a package's surface, if there is one."""
    place = module.replace(".", "/").replace("bayesrbf/models", "models")
    files = (f"{place}.py", f"{place}/__init__.py")
    return next((file for file in files if file in TREES), None)


def imports(path: str, tree: ast.Module) -> set[str]:
    """Files of the package that a file imports, also for types alone."""
    files: set[str | None] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayesrbf"):
            module = node.module or ""
            # a name is a module of its own, or one of what the other has
            files |= {file_of(f"{module}.{one.name}") or file_of(module) for one in node.names}
        elif isinstance(node, ast.Import):
            files |= {file_of(one.name) for one in node.names}
    return {file for file in files if file is not None} - {path}


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


def only_children(classes: dict[str, list[str]]) -> set[str]:
    """Bases with exactly one subclass."""
    children: defaultdict[str, set[str]] = defaultdict(set)
    for name, bases in classes.items():
        for base in bases:
            if base in classes:
                children[base].add(name)
    return {base for base, found in children.items() if len(found) == 1}


NODES_OF_BOOSTING = ["model._baseline_prediction", "model._predictors"]
"""scikit-learn has no public name for them; tests/numerics/test_trees.py sees what they say."""


@pytest.mark.parametrize("path", TREES)
def test_nothing_reads_the_private_state_of_another(path: str) -> None:
    reads = sorted(read.split(": ")[1] for read in private_reads(TREES[path]))
    assert reads == (NODES_OF_BOOSTING if path == "bayesrbf/solvers/trees.py" else [])


def test_own_types_are_told_apart_only_where_input_is_read() -> None:
    found = Counter({path: len(list(types_told_apart(tree))) for path, tree in TREES.items()})
    for path in READS_INPUT:
        found.pop(path, None)
    more = {path: number for path, number in found.items() if number > TOLD_APART.get(path, 0)}
    assert more == {}


@pytest.mark.parametrize("name", estimators())
def test_an_estimator_has_at_most_four_own_classes_in_its_order_of_methods(name: str) -> None:
    assert len(own_bases(estimators()[name])) <= 4


@pytest.mark.parametrize("path", TREES)
def test_no_function_of_a_module_calls_a_parameter_self(path: str) -> None:
    assert list(free_self(TREES[path])) == []


@pytest.mark.parametrize("name", estimators())
def test_a_constructor_has_few_arguments(name: str) -> None:
    assert len(arguments(estimators()[name])) <= MOST_ARGUMENTS


@pytest.mark.parametrize("name", estimators())
def test_an_estimator_has_few_public_names(name: str) -> None:
    found = public_names(estimators()[name])
    assert len(found) <= MOST_NAMES, found


def test_no_axes_of_a_factor_tell_its_shape() -> None:
    rooms = tuple(f"bayesrbf/{room}/" for room in ARRAY_ROOMS)
    counted = {path: axes_counted(tree) for path, tree in TREES.items() if path.startswith(rooms)}
    more = {
        path: places for path, places in counted.items() if len(places) > COUNTS_AXES.get(path, 0)
    }
    assert more == {}


def test_own_names_are_hardly_ever_asked_for() -> None:
    asked = [f"{path}: {one}" for path, tree in TREES.items() for one in own_names_asked(tree)]
    assert len(asked) <= MOST_ASKED, asked


def test_no_participle_names_a_thing() -> None:
    counted: defaultdict[str, list[str]] = defaultdict(list)
    for path, tree in TREES.items():
        counted[room_of(path)] += [f"{path}: {one}" for one in participles(tree)]
    more = {
        room: places
        for room, places in counted.items()
        if len(places) > MOST_PARTICIPLES.get(room, 0)
    }
    assert more == {}


def test_no_files_import_each_other() -> None:
    assert circles({path: imports(path, tree) for path, tree in TREES.items()}) == []


def test_estimators_have_types() -> None:
    of_any = [
        f"{path}: line {node.lineno}"
        for path, tree in TREES.items()
        if path.startswith("bayesrbf/estimators")
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == "Any"
    ]
    assert len(of_any) <= MOST_ANY, len(of_any)


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
        ("if factors.ndim == 2:\n    pass", 1),
        ("axes = by_any_name.ndim", 1),
        ("if len(X.shape) != 2:\n    pass", 0),
    ],
)
def test_a_planted_branch_on_axes_is_found(text: str, number: int) -> None:
    assert len(axes_counted(ast.parse(text))) == number


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


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('def f():\n    """The same of one block."""', 1),
        ('FAR = 10\n"""The same for any other number."""', 1),
        ('class A:\n    def f(self):\n        r"""\n        The same."""', 1),
        ('def f():\n    """One block: the same."""\n    return "The same"', 0),
    ],
)
def test_a_planted_docstring_that_leans_on_another_is_found(text: str, number: int) -> None:
    assert len(list(leaning_docstrings(ast.parse(text)))) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("LEAST = 1e-9", 1),
        ("_LEAST: Final = 1e-9", 1),
        ("LEAST, MOST = 0, 1", 1),
        ("LEAST_COST = 1e-9", 0),
        ("def f():\n    return LEAST", 0),
    ],
)
def test_a_planted_bound_of_nothing_is_found(text: str, number: int) -> None:
    assert len(list(bare_bounds(ast.parse(text)))) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("found = minimize(loss)", 1),
        ("def f(told, *, known=1):\n    return told", 2),
        ("def held(rows):\n    return [said for said in rows]", 2),
        ("class A:\n    known: int\n    def f(self):\n        self._found = 1", 2),
        ("held_out = [one.found for one in known_tables]", 0),
    ],
)
def test_a_planted_participle_is_found(text: str, number: int) -> None:
    assert len(list(participles(ast.parse(text)))) == number


def test_a_planted_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []


def test_a_planted_single_subclass_is_found() -> None:
    assert only_children({"A": [], "B": ["A"], "C": ["ABC"]}) == {"A"}
    assert only_children({"A": [], "B": ["A"], "C": ["A"]}) == set()
