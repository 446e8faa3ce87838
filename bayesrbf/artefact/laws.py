"""Laws that stored records obey beyond their types: each yields what holds, and what it is about.

A fit makes no record that breaks one, so they are asked only where a file is read. Later lines of
a law may rely on the earlier ones, as nothing is evaluated behind the first that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

Lines = Iterator[tuple[bool, str]]
Law = Callable[[Any], Lines]

TOLERANCE: Final = 1e-6
"""By which probabilities may miss a sum of one."""
MOST_PARTS: Final = 10**6
"""Columns, levels, components and the like."""
MOST_LOG: Final = 1e6
"""Of output weights and other logarithms."""
LEAST_SCALE, MOST_SCALE = 1e-100, 1e100
"""Bounds of scales and precisions in standard units: beyond, their squares are no numbers."""


def simplex(values: np.ndarray) -> bool:
    """Whether every row is of probabilities that sum to one."""
    sums = values.sum(axis=-1)
    return bool((values >= 0).all() and (abs(sums - 1) < TOLERANCE).all())


def within(values: Any, low: int | float, high: int | float = np.inf) -> bool:
    """Whether all are at least ``low`` and below ``high``."""
    array = np.asarray(values)
    return bool(((array >= low) & (array < high)).all())


def scales(values: Any) -> bool:
    """Whether all are positive and can be squared and divided by."""
    return within(values, LEAST_SCALE, MOST_SCALE)


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
