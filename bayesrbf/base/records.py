"""Classes that a file of an estimator may hold, and the laws of their records.

``@stored`` makes a class a frozen dataclass that files may name. Whoever reads one checks the
types, shapes and finite numbers that its fields declare. Where these do not say everything, the
record has a method ``__laws__``: it yields pairs, whether something holds and what is required. A
fit makes no record that breaks a law, so they are asked only where a file is read. Later pairs
may rely on the earlier ones: nothing is evaluated behind the first that does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, Protocol, dataclass_transform, runtime_checkable

import numpy as np

STORED: Final[dict[str, type]] = {}
"""Every class that a file may name, by its name."""
ANY_NUMBER: Final[Mapping[str, bool]] = {"any_number": True}
"""Metadata of a field whose numbers may be NaN or infinite, subject to the laws alone."""

Requirements = Iterator[tuple[bool, str]]
"""Pairs of whether a requirement holds and its text."""

TOLERANCE: Final = 1e-6
"""Maximum difference of a sum of probabilities from one in a file."""
MAX_PARTS: Final = 10**6
"""Maximum number of columns, levels or components in a file."""
MAX_LOG: Final = 1e6
"""Maximum magnitude of output weights and other logarithms in a file."""
SMALLEST_SCALE, LARGEST_SCALE = 1e-100, 1e100
"""Bounds of scales and precisions in standard units, so that squares and quotients are finite."""


if TYPE_CHECKING:
    type Stored[T] = T
else:

    class Stored:
        """Annotation of a user's argument, for readers and type checkers; unchecked at run time."""

        def __class_getitem__(cls, item: object) -> object:
            return Any


@runtime_checkable
class Lawful(Protocol):
    """A record with requirements beyond the types of its fields."""

    def __laws__(self) -> Requirements: ...


def named[T](kind: type[T]) -> type[T]:
    """The class, registered under its name in files; TypeError if another class has the name."""
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
    """Frozen dataclass that files may name; pickles hold its fields and no cached values."""
    record = named(dataclass(frozen=True)(kind))
    setattr(record, "__getstate__", field_values)  # noqa: B010 - mypy takes no method there
    return record


def field_values(record: Any) -> dict[str, Any]:
    """Fields of a record by name, without cached values, which can be large."""
    return {attribute.name: vars(record)[attribute.name] for attribute in fields(record)}


def short_repr(record: Any) -> str:
    """A record with the fields that are not at their defaults, as scikit-learn shows estimators."""
    changed = {
        attribute.name: vars(record)[attribute.name]
        for attribute in fields(record)
        if attribute.default is MISSING or vars(record)[attribute.name] != attribute.default
    }
    listed = ", ".join(f"{name}={value!r}" for name, value in changed.items())
    return f"{type(record).__name__}({listed})"


def require(requirements: Requirements, owner: str) -> None:
    """ValueError that names the first requirement that does not hold."""
    for holds, requirement in requirements:
        if not holds:
            raise ValueError(f"{owner} needs {requirement}")


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
