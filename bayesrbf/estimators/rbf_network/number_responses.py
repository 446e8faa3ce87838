"""Numeric responses, read at fit."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils import check_consistent_length, column_or_1d

from bayesrbf import table
from bayesrbf.fitted.fitted_network import NumberResponses


def read_responses(
    X: object, y: object, weights: Float[np.ndarray, " obs"]
) -> tuple[NumberResponses, Int[np.ndarray, " obs"]]:
    """Distinct responses with their units, and each row's place among them, -1 where hidden."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    numbers = np.asarray(column_or_1d(y, warn=True), dtype=np.float64)
    check_consistent_length(X, numbers)
    if np.isinf(numbers).any():
        raise ValueError("y contains infinity; every response must be a number, or NaN.")
    known = ~np.isnan(numbers) & (weights > 0)
    if not known.any():
        raise ValueError(
            "y needs at least one response of positive weight; every one is NaN or has "
            "sample_weight 0."
        )
    values, places = np.unique(numbers[known], return_inverse=True)
    # From sorted distinct values, so that weight 2 is the row twice to the last bit.
    mass = np.bincount(places, weights=weights[known])
    units = table.standardisation(values[:, None], mass)
    codes = np.full(numbers.size, -1)
    codes[known] = places
    return NumberResponses(values, units), codes
