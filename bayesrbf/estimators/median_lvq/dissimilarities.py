"""Where dissimilarities come from: a matrix, Gower's on a table with holes, or a metric."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int, Real, Shaped
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, assert_all_finite, check_array
from sklearn.utils.validation import _num_samples, validate_data

from bayesrbf import table
from bayesrbf.fitted.exemplar_sources import MatrixSource, TableSource, VectorSource
from bayesrbf.fitted.fitted_exemplars import Training
from bayesrbf.numerics.median_lvq.gower import learn_gower
from bayesrbf.records.mixture import Observations
from bayesrbf.solvers.pairwise import NAMES, Metric, pairwise

GOWER: Final = "gower"
PRECOMPUTED: Final = "precomputed"

LARGEST_DOUBLE: Final = 2**27
"""Entries (1 GiB) beyond which a matrix computed here is held in float32."""


def read_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """Rows as the estimator's metric takes them: a table as it is, all else as an array."""
    metric = estimator.metric
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


def from_matrix(
    X: Real[np.ndarray, "obs obs"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
) -> Training:
    """Take the dissimilarities as they were given, without the rows that weigh nothing."""
    kept = np.flatnonzero(weights > 0)
    values = X if kept.size == weights.size else X[np.ix_(kept, kept)]
    copies = np.stack([kept, np.arange(kept.size)])
    return Training(MatrixSource(kept), values, labels[kept], weights[kept], kept, copies)


def from_table(
    X: Any,
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    *,
    categorical_features: Any,
    handle_unknown: str,
) -> Training:
    """Compare the distinct rows of a table with holes by Gower's dissimilarity."""
    positive = np.flatnonzero(weights > 0)
    X = X if positive.size == weights.size else _safe_indexing(X, positive)
    columns = table.learn_columns(X, categorical_features=categorical_features)
    encoded = table.encode(X, columns)
    given = Observations(encoded.real, encoded.codes, labels[positive], weights[positive])
    rows, first, place = _distinct(given)
    # Sums over columns in one order, whatever the table's: ties must stay ties.
    order = table.canonical_order(rows)
    canonical = rows.reordered(order)
    gower = learn_gower(canonical)
    values = gower.between(canonical, canonical, _dtype(rows.n_obs))
    source = TableSource(columns, gower, canonical, handle_unknown, order)
    copies = np.stack([positive, place])
    return Training(source, values, rows.labels, rows.weights, positive[first], copies)


def from_vectors(
    X: Shaped[np.ndarray, "obs column"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    metric: Metric,
) -> Training:
    """Compare the distinct rows of an array by a metric."""
    first = np.flatnonzero(weights > 0)
    labels, weights = labels[first], weights[first]
    copies = np.stack([first, np.arange(first.size)])
    if X.dtype.kind == "f":
        cells = X[first].astype(np.float64)
        nothing = np.empty((first.size, 0), dtype=np.intp)
        rows, places, copies[1] = _distinct(Observations(cells, nothing, labels, weights))
        first, labels, weights = first[places], rows.labels, rows.weights
    values = pairwise(X[first], X[first], metric, _dtype(first.size))
    return Training(VectorSource(X[first], metric), values, labels, weights, first, copies)


def _distinct(
    rows: Observations,
) -> tuple[Observations, Int[np.ndarray, " distinct"], Int[np.ndarray, " obs"]]:
    """Distinct rows, where each stood first, and the place of every row among them."""
    distinct, inverse = table.distinct(rows)
    first = np.full(distinct.n_obs, rows.n_obs)
    np.minimum.at(first, inverse, np.arange(rows.n_obs))
    return distinct, first, inverse


def _dtype(n_obs: int) -> type[np.floating]:
    """The type in which a square matrix of so many rows is held."""
    return np.float64 if n_obs**2 <= LARGEST_DOUBLE else np.float32
