"""Prepares rows for a dissimilarity: a table as it is, anything else as an array."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from jaxtyping import Real
from sklearn.base import BaseEstimator
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.validation import _num_samples, validate_data

from bayesrbf import table
from bayesrbf.solvers.pairwise import NAMES, Metric

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
