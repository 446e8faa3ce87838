"""Dissimilarities of rows by a metric that scikit-learn knows, or by a callable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from jaxtyping import Float
from numba.extending import is_jitted
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import distance_metrics

from bayesrbf.numerics.kernels.every_pair import every_pair
from bayesrbf.records.mixture import in_blocks

Metric = str | Callable[[Any, Any], float]

NAMES: Final = tuple(
    sorted(
        {
            *distance_metrics(),
            "sqeuclidean",
            "chebyshev",
            "canberra",
            "braycurtis",
            "correlation",
            "hamming",
        }
        - {"precomputed"}
    )
)
"""Metrics that depend on the two rows alone, and not on a whole table."""


def pairwise(
    rows: np.ndarray, others: np.ndarray, metric: Metric, dtype: type[np.floating] = np.float64
) -> Float[np.ndarray, "row other"]:
    """Dissimilarities ``d(rows[n], others[m])``, a block of rows at a time.

    The metric is a name in ``NAMES``, or a function of two rows that gives a number; it need not be
    symmetric. One that ``numba.njit`` compiled is called from compiled code, where the rows are
    numbers.

    >>> pairwise(np.array([["ab"], ["b"]]), np.array([["abc"]]),
    ...          lambda a, b: abs(len(a[0]) - len(b[0])))
    array([[1.],
           [2.]])
    """
    result = np.empty((len(rows), len(others)), dtype=dtype)
    for part in in_blocks(len(rows), len(others)):
        result[part] = _block(rows[part], others, metric)
    return result


def _block(rows: np.ndarray, others: np.ndarray, metric: Metric) -> np.ndarray:
    """Dissimilarities of some rows; a callable is asked for every pair."""
    if not callable(metric):
        return np.asarray(pairwise_distances(rows, others, metric=metric))
    if is_jitted(metric) and rows.dtype.kind in "biuf":
        return every_pair(rows, others, metric)
    return np.array([[metric(row, other) for other in others] for row in rows], dtype=float)
