r"""Groups of rows by their number of missing cells, and how often sets held the true class.

A p value of a conformal set is a rank among the calibration rows of a group. With n of them the
least p value is :math:`1 / (n + 1)`, so a level :math:`l` rules nothing out unless
:math:`n \ge 1 / (1 - l) - 1`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.stats import beta

RANKS: Final = 5
"""Calibration rows that a group has, in the mean, beyond the boundary of its sets."""

Counts = Int[np.ndarray, " obs"]


def rows_needed(level: float) -> int:
    """Calibration rows that a group should have for sets of a level.

    >>> rows_needed(0.9), rows_needed(0.95)
    (50, 100)
    """
    return int(np.ceil(np.round(RANKS / (1 - level), 6)))


def merged(missing: Counts, least: int) -> Int[np.ndarray, " group"]:
    """Least number of missing cells in each group; each group has so many rows at least.

    Numbers are gone through from 0 on; a group is closed when it has enough rows, and what is left
    at the end joins the last one.

    >>> merged(np.array([0, 0, 1, 2, 2, 3]), least=2)
    array([0, 1])
    """
    numbers, counts = np.unique(missing, return_counts=True)
    starts, size = [0], 0
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        if size >= least:
            starts.append(number)
            size = 0
        size += count
    if size < least and len(starts) > 1:
        starts.pop()
    return np.array(starts)


def group_of(missing: Counts, starts: Int[np.ndarray, " group"]) -> Counts:
    """Position of the group of each row.

    >>> group_of(np.array([0, 1, 7]), np.array([0, 2]))
    array([0, 0, 1])
    """
    groups: Counts = np.searchsorted(starts, missing, side="right") - 1
    return groups


def group_names(starts: Int[np.ndarray, " group"]) -> tuple[str, ...]:
    """Numbers of missing cells of every group, in words.

    >>> group_names(np.array([0, 1, 4]))
    ('0', '1 to 3', '4 or more')
    """
    lasts = [*(starts[1:] - 1).tolist(), None]
    return tuple(
        f"{first} or more"
        if last is None
        else str(first)
        if first == last
        else f"{first} to {last}"
        for first, last in zip(starts.tolist(), lasts, strict=True)
    )


def counted(covers: Bool[np.ndarray, " obs"], prob: float = 0.95) -> tuple[float, float, float]:
    """Share of rows whose set holds their class, and its exact binomial interval.

    >>> counted(np.array([True, True, True, False]))
    (0.75, 0.194, 0.994)
    """
    n, k = covers.size, int(covers.sum())
    if n == 0:
        return np.nan, np.nan, np.nan
    tail = (1 - prob) / 2
    lower = beta.ppf(tail, k, n - k + 1) if k else 0.0
    upper = beta.ppf(1 - tail, k + 1, n - k) if k < n else 1.0
    return k / n, float(lower), float(upper)


def scores_of(
    probabilities: Float[np.ndarray, "obs label"], labels: Int[np.ndarray, " obs"]
) -> Float[np.ndarray, " obs"]:
    """Nonconformity of the true class of each row: one less its probability."""
    return 1 - probabilities[np.arange(labels.size), labels]
