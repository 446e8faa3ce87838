"""Tables as estimators read them: checked, encoded, rows without weight left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight, _num_samples, validate_data

from bayesrbf import table
from bayesrbf.records.mixture import Observations


@dataclass(frozen=True)
class TrainingTable:
    """A table that was read for a fit: what its columns are, and its rows of positive weight."""

    columns: table.Columns
    kept: Int[np.ndarray, " obs"]
    """Place of every row among those given."""
    rows: Observations
    template: Any
    """The container of the user, without rows."""


def checked_weights(
    estimator: BaseEstimator, X: object, y: object, sample_weight: object
) -> Float[np.ndarray, " obs"]:
    """Check the widths of a table; the weights of its rows."""
    table.as_frame(X)  # has the words for frames that are none, before scikit-learn has
    validate_data(estimator, X, y, skip_check_array=True)
    if _num_samples(X) == 0:
        raise ValueError("X has 0 sample(s), but fit needs at least one row.")
    weights: Float[np.ndarray, " obs"] = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    return weights


def read_training_table(
    X: Any,
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    *,
    categorical_features: Any,
    missingness: str,
) -> TrainingTable:
    """Learn the columns and read the rows of positive weight: no other row teaches."""
    kept = np.flatnonzero(weights > 0)
    X = X if kept.size == weights.size else _safe_indexing(X, kept)
    columns = table.learn_columns(
        X, categorical_features=categorical_features, missingness=missingness
    )
    encoded = table.encode(X, columns)
    rows = Observations(encoded.real, encoded.codes, labels[kept], weights[kept])
    template = table.decode(encoded.real[:0], encoded.codes[:0], columns, X)
    return TrainingTable(columns, kept, rows, template)


def read_new_rows(
    estimator: BaseEstimator, X: Any, columns: table.Columns, handle_unknown: str
) -> Observations:
    """New rows in the user's units, labels hidden."""
    if len(getattr(X, "shape", (0, 0))) == 2:  # encode has the words for other shapes
        validate_data(estimator, X, reset=False, skip_check_array=True)
    encoded = table.encode(X, columns, handle_unknown=handle_unknown)
    n_obs = encoded.real.shape[0]
    return Observations(encoded.real, encoded.codes, np.full(n_obs, -1), np.ones(n_obs))
