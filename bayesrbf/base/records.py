"""Names of dims and variables, laws of stored records, options of a table's reader."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, dataclass_transform, runtime_checkable

import numpy as np

# Names of dimensions, variables and groups, each written once.
#
# Numerics, declared graph and DataTree use these names and no others, so that a
# number can be followed from a kernel to a plot by its name alone.


OBS: Final = "obs"
FEATURE: Final = "feature"
COLUMN: Final = "column"  # Columns of any kind; in a row of cells, the label too.
COMPONENT: Final = "component"
FEATURE_BIS: Final = "feature_bis"  # The second axis of a matrix over features.

LABEL: Final = "label"  # Classes of predictions: what the label of a row may be.
CLASS_LABEL: Final = "class_label"
"""Classes of parameters: ``az.summary`` stacks a posterior along a dim ``label`` of its own."""
CHAIN: Final = "chain"
DRAW: Final = "draw"
PRECISION_ENTRY: Final = "precision_entry"
"""Strictly lower entries (row, column) of a precision factor, row by row."""

COMPONENT_CLASS: Final = "component_class"
"""Code of the class that a component belongs to, in a graph."""
COMPONENT_LABEL: Final = "component_label"  # Name of that class, in a DataTree.

CLASS_PROBABILITIES: Final = "class_probabilities"
WEIGHTS: Final = "weights"
MEANS: Final = "means"
COVARIANCES: Final = "covariances"
PRECISION_DIAGONAL: Final = "precision_diagonal"
PRECISION_LOWER: Final = "precision_lower"
COEFFICIENTS: Final = "coefficients"
INTERCEPTS: Final = "intercepts"
NOISE_PRECISION: Final = "noise_precision"

BASIS: Final = "basis"  # Functions of a hidden layer.
OUTPUT: Final = "output"  # Rows of output weights: one a class, or one for two classes.

MEMBER: Final = "member"  # Members of a stack.
LOG_TEMPERATURE: Final = "log_temperature"
MEMBER_LOG_TEMPERATURES: Final = "member_log_temperatures"
HIDDEN_SHARE: Final = "hidden_share"  # Shares of hidden cells at which a calibration is declared.
PULL: Final = "pull"  # Exponent of the class shares.

COEFFICIENT: Final = "coefficient"  # Weights of a sparse discriminative mixture that are not zero.
COEFFICIENT_PRECISIONS: Final = "coefficient_precisions"
STANDARD_COEFFICIENTS: Final = "standard_coefficients"
"""Coefficients in units of their prior's standard deviations."""
LOCAL_SCALES: Final = "local_scales"
GLOBAL_SCALE: Final = "global_scale"

RATES: Final = "rates"  # How fast a kernel falls along each column.
LOG_RATE_FACTORS: Final = "log_rate_factors"
LOG_COMMON_FACTOR: Final = "log_common_factor"
LOG_NOISE: Final = "log_noise"
LOG_SIGNAL: Final = "log_signal"

PROTOTYPE: Final = "prototype"
EXEMPLARS: Final = "exemplars"  # Training row that each prototype is.
SIGMA: Final = "sigma"  # Width of an exemplar's kernel.
OBSERVED_LABEL: Final = "y"
"""The observed node of a graph of the labels given the rows, and the log likelihood p(y | x)."""

COLUMN_POWERS: Final = "column_powers"
"""Data of a graph: the powers of the maps in front of the real columns."""
OBSERVED: Final = "x"
"""The observed node of a declared graph, and the log likelihood p(x)."""
JOINT: Final = "x_y"
"""The log likelihood p(x, y): rows and their labels."""
OBJECTIVE: Final = "objective"
"""What stands for a log likelihood and is none, such as a margin: to be compared with nothing."""
PROBABILITY: Final = "probability"

POSTERIOR: Final = "posterior"
SAMPLE_STATS: Final = "sample_stats"
LOG_LIKELIHOOD: Final = "log_likelihood"
OBSERVED_DATA: Final = "observed_data"
CONSTANT_DATA: Final = "constant_data"
PREDICTIONS: Final = "predictions"
PREDICTIONS_CONSTANT_DATA: Final = "predictions_constant_data"
OPTIMISER: Final = "optimiser_path"


def class_weights(index: int, n_classes: int) -> str:
    """Name of the free mixture weights of one class.

    Classes may differ in their number of components, so each has a simplex of its own, and
    ``"weights"`` is their concatenation. A plain density has one class.

    >>> class_weights(0, 1), class_weights(2, 3)
    ('weights', 'weights_2')
    """
    return WEIGHTS if n_classes == 1 else f"{WEIGHTS}_{index}"


def class_components(index: int, n_classes: int) -> str:
    """Name of the dim of one class's mixture weights; a plain density has one class.

    >>> class_components(0, 1), class_components(2, 3)
    ('component', 'component_2')
    """
    return COMPONENT if n_classes == 1 else f"{COMPONENT}_{index}"


def category_probability(index: int) -> str:
    """Name of the level probabilities of one categorical column.

    The column's own name is an attribute, because a ``/`` in a name would split a DataTree path.

    >>> category_probability(3)
    'probability_3'
    """
    return f"{PROBABILITY}_{index}"


def category_level(index: int) -> str:
    """Name of the dim of the levels of one categorical column.

    >>> category_level(3)
    'level_3'
    """
    return f"level_{index}"


# Classes that a file of an estimator may hold, and the laws of their records.
#
# ``@stored`` makes a class a frozen dataclass that files may name. Whoever reads one checks the
# types, shapes and finite numbers that its fields declare. Where these do not say everything, the
# record has a method ``__laws__``: it yields pairs, whether something holds and what is required. A
# fit makes no record that breaks a law, so they are asked only where a file is read. Later pairs
# may rely on the earlier ones: nothing is evaluated behind the first that does not hold.


STORED: Final[dict[str, type]] = {}
"""Every class that a file may name, by its name."""
ANY_NUMBER: Final[Mapping[str, bool]] = {"any_number": True}
"""Metadata of a field whose numbers may be NaN or infinite; what they may be, laws say."""

Requirements = Iterator[tuple[bool, str]]
"""Whether something holds, and what is required."""

TOLERANCE: Final = 1e-6
"""By which probabilities may miss a sum of one."""
MOST_PARTS: Final = 10**6
"""Columns, levels, components and the like."""
MOST_LOG: Final = 1e6
"""Of output weights and other logarithms."""
SMALLEST_SCALE, LARGEST_SCALE = 1e-100, 1e100
"""Bounds of scales and precisions in standard units: beyond, their squares are no numbers."""


if TYPE_CHECKING:
    type Stored[T] = T
else:

    class Stored:
        """An argument of a user: its type is for readers and type checkers, own errors check it."""

        def __class_getitem__(cls, item: object) -> object:
            return Any


@runtime_checkable
class Lawful(Protocol):
    """A record of which its types do not say everything."""

    def __laws__(self) -> Requirements: ...


def named[T](kind: type[T]) -> type[T]:
    """Let files name a class; no other may have its name."""
    other = STORED.get(kind.__name__, kind)
    if other.__module__ != kind.__module__:
        raise TypeError(
            f"{kind.__module__} and {other.__module__} each have a {kind.__name__}, but a name "
            "in a file stands for one class; rename one of them."
        )
    STORED[kind.__name__] = kind  # anew where a module is reloaded
    return kind


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def stored[T](kind: type[T]) -> type[T]:
    """Make a class a frozen dataclass that files may name; pickles hold its fields alone."""
    record = named(dataclass(frozen=True)(kind))
    setattr(record, "__getstate__", field_values)  # noqa: B010 - mypy takes no method there
    return record


def field_values(record: Any) -> dict[str, Any]:
    """The fields of a record; what it keeps of what was made of them can be large."""
    return {one.name: vars(record)[one.name] for one in fields(record)}


def short_repr(record: Any) -> str:
    """A record with the fields that are not at their defaults, as scikit-learn shows estimators."""
    changed = {
        one.name: vars(record)[one.name]
        for one in fields(record)
        if one.default is MISSING or vars(record)[one.name] != one.default
    }
    listed = ", ".join(f"{name}={value!r}" for name, value in changed.items())
    return f"{type(record).__name__}({listed})"


def require(requirements: Requirements, owner: str) -> None:
    """ValueError that names the first requirement that does not hold."""
    for holds, what in requirements:
        if not holds:
            raise ValueError(f"{owner} needs {what}")


def simplex(values: np.ndarray) -> bool:
    """Whether every row is of probabilities that sum to one."""
    sums = values.sum(axis=-1, dtype=float)
    return bool((values >= 0).all() and (abs(sums - 1) < TOLERANCE).all())


def within(values: Any, low: int | float, high: int | float = np.inf) -> bool:
    """Whether all are at least ``low`` and below ``high``."""
    array = np.asarray(values)
    # As floats: bounds of a file may be beyond the whole numbers of a small type.
    return bool(((array >= float(low)) & (array < float(high))).all())


def scales(values: Any) -> bool:
    """Whether all are positive and can be squared and divided by."""
    return within(values, SMALLEST_SCALE, LARGEST_SCALE)


def permutation(values: np.ndarray) -> bool:
    """Whether whole numbers are 0 to n - 1 in some order."""
    return bool(np.array_equal(np.sort(values), np.arange(values.size)))


def ascending(values: Any) -> bool:
    """Whether each is greater than the one before."""
    return bool((np.diff(np.asarray(values)) > 0).all())


def classes_in_order(classes: Any) -> bool:
    """Whether classes run from 0 upwards without a gap."""
    steps = np.diff(np.asarray(classes), prepend=0)
    return steps.size > 0 and within(steps, 0, 2)


def by_class(values: np.ndarray, classes: Any) -> bool:
    """Whether values are probabilities that sum to one within each class."""
    sums = np.bincount(np.asarray(classes), values)
    return within(values, 0) and bool((abs(sums - 1) < TOLERANCE).all())


# Options of a reader of tables: how cells are written, and the role of each column.


BELOW: Final = ("atom", "missing")
"""What ``below`` can be."""
_ALONE: Final = ("id", "group", "time")


@dataclass(frozen=True)
class TableOptions:
    """How a table is read, the same for training and for new rows.

    Attributes
    ----------
    na : tuple of str
        Cells that mean missing, beside empty ones, NA and the like: -999,unknown or repeated;
        age=-999 in one column only. A number is found however it is written. Where numbers of
        the table have commas, -999,0 is one value.
    id : str, optional
        Column that names the rows; it is no part of the model.
    ignore : tuple of str
        Columns to leave out: a,b or repeated.
    categorical : tuple of str
        Columns of numbers that are codes: a,b or repeated.
    real : tuple of str
        Columns that are quantities, though they look like codes: a,b or repeated.
    thousands : str, optional
        The character that sets thousands apart, where numbers leave it open: "," makes
        1,234 one thousand.
    decimal : str, optional
        The decimal mark, where numbers leave it open: "," makes 1,234 a bit more than one.
    below : {"atom", "missing"}
        What <5 is among numbers: a value of its own, next to the limit, or a missing cell.
    dates : tuple of str
        Columns of dates, read as days since 2000-01-01: a,b or repeated.
    day_first : bool
        Dates such as 3/4/2020 have the day first, where their column leaves it open.
    group : str, optional
        Column whose rows belong together, such as those of a patient: they are never on
        both sides of a split. It is no part of the model.
    time : str, optional
        Column of numbers or dates: the latest rows are held out, and judge the fit to the
        earlier ones. It is no part of the model.
    """

    na: tuple[str, ...] = ()
    id: str | None = None
    ignore: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    real: tuple[str, ...] = ()
    thousands: str | None = None
    decimal: str | None = None
    below: str = "atom"
    dates: tuple[str, ...] = ()
    day_first: bool = False
    group: str | None = None
    time: str | None = None

    @property
    def beside(self) -> tuple[str, ...]:
        """Columns that say something of the rows and are no part of the model."""
        return tuple(name for name in (self.id, self.group, self.time) if name is not None)

    def named(self) -> dict[str, tuple[str, ...]]:
        """The columns that each option names.

        >>> TableOptions(id="case", ignore=("note",)).named()["id"]
        ('case',)
        """
        several = {
            "ignore": self.ignore,
            "categorical": self.categorical,
            "real": self.real,
            "dates": self.dates,
        }
        alone = {"id": self.id, "group": self.group, "time": self.time}
        return several | {option: (name,) for option, name in alone.items() if name is not None}

    def among(self, header: Collection[str]) -> TableOptions:
        """Options that name no column outside ``header``.

        >>> TableOptions(id="case", ignore=("note", "age")).among(["age"])
        TableOptions(na=(), id=None, ignore=('age',), ...)
        """
        kept = {
            option: tuple(name for name in names if name in header)
            for option, names in self.named().items()
        }
        several = {option: kept[option] for option in ("ignore", "categorical", "real", "dates")}
        alone = {option: next(iter(kept.get(option, ())), None) for option in _ALONE}
        return replace(self, **several, **alone)  # type: ignore[arg-type]


PLAIN: Final = TableOptions()
"""Nothing is asked."""
