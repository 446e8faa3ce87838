"""Dissimilarities of rows by a metric that scikit-learn knows, by a callable, or by a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Real
from numba.extending import is_jitted
from sklearn.base import BaseEstimator
from sklearn.metrics import pairwise_distances
from sklearn.metrics.pairwise import distance_metrics
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.validation import _num_samples, validate_data

from bayesrbf import table
from bayesrbf.base.rows import in_blocks
from bayesrbf.families.median_lvq.compiled import every_pair

# Dissimilarities of rows by a metric that scikit-learn knows, or by a callable.


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


# Prepares rows for a dissimilarity: a table as it is, anything else as an array.


GOWER: Final = "gower"
PRECOMPUTED: Final = "precomputed"


def comparable_rows(X: Any, metric: Metric, estimator: BaseEstimator, *, reset: bool) -> Any:
    """Rows as a metric takes them, of the columns that scikit-learn keeps in the estimator.

    ``reset`` takes the columns of X in their place.
    """
    if metric == GOWER:
        table.as_frame(X)
        if reset or len(getattr(X, "shape", (0, 0))) == 2:
            validate_data(estimator, X, reset=reset, skip_check_array=True)
        if _num_samples(X) == 0:
            raise ValueError("X has 0 sample(s), but at least one row is needed.")
        return X
    if metric == PRECOMPUTED:
        matrix = check_array(
            X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan", input_name="X"
        )
        if reset or matrix.shape[1] != estimator.n_features_in_:
            assert_all_finite(matrix, input_name="X")
        # New rows may have holes where no exemplar is; who looks elsewhere, checks there.
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if reset and matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                "X must be a square matrix of dissimilarities of the training rows under "
                f"metric='precomputed'; received shape {matrix.shape}. For a table of features "
                "use metric='gower' or another metric."
            )
        return matrix
    if callable(metric):
        return validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
    if metric not in NAMES:
        raise ValueError(
            f"{type(estimator).__name__}(metric=...) must be 'gower', 'precomputed', a callable "
            f"or one of {', '.join(NAMES)}; received {metric!r}."
        )
    finite = "allow-nan" if metric == "nan_euclidean" else True
    return validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=finite)


def check_values(values: Real[np.ndarray, "obs row"], owner: str) -> None:
    """Refuse dissimilarities that are missing, infinite or negative."""
    if values.size == 0:
        return
    low, high = values.min(), values.max()
    if low >= 0 and np.isfinite(high):
        return
    faults = {
        "Missing values": np.isnan(values),
        "Negative values": values < 0,
        "Infinite values": np.isinf(values),
    }
    fault = next(name for name, where in faults.items() if where.any())
    row, column = np.unravel_index(int(faults[fault].argmax()), values.shape)
    raise ValueError(
        f"{fault} in data passed to {owner}: dissimilarities must be finite and at least 0; "
        f"received d = {values[row, column]} in row {row}, column {column}."
    )
