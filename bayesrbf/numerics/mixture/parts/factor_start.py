"""Where EM begins under factors: the leading axes of covariances of pairs of observed cells."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.mixture.parts.factor_precisions import side_by_side
from bayesrbf.numerics.mixture.statistics import sum_by_group
from bayesrbf.records.specification import MixtureSpecification

LEAST_UNIQUE: Final = 0.1
"""Share of a column's variance that is unique to it, at least."""
LEAST_SHARED: Final = 0.01
"""Variance along every axis, at least: factors of no loadings at all would stay so."""


def leading_axes(
    real: Float[np.ndarray, "row feature"],
    memberships: Float[np.ndarray, "row component"],
    means: Float[np.ndarray, "component feature"],
    variance: float,
    specification: MixtureSpecification,
) -> Float[np.ndarray, "group feature 1 column"]:
    """Precision factors of every group, one row of the given variance added to its cells."""
    known, cells = (~np.isnan(real)).astype(float), np.nan_to_num(real)
    (k, d), rank = means.shape, specification.rank
    sums, pairs = np.zeros((2, k, d, d))
    for j in range(k):
        weights, deviations = memberships[:, j, None], (cells - means[j]) * known
        sums[j] = (deviations * weights).T @ deviations
        pairs[j] = (known * weights).T @ known
    own = variance * np.eye(d)
    sums, pairs = (sum_by_group(total, specification) for total in (sums, pairs))
    covariances = (sums + own) / (pairs + 1)
    values, axes = np.linalg.eigh(covariances)
    rest = np.maximum(values[:, : d - rank], 0.0).sum(axis=1) / max(1, d - rank)
    excess = np.maximum(values[:, d - rank :] - rest[:, None], LEAST_SHARED)
    loadings = axes[..., d - rank :] * np.sqrt(excess)[:, None, :]
    variances = covariances.diagonal(0, 1, 2)
    unique = np.maximum(variances - (loadings**2).sum(axis=2), LEAST_UNIQUE * variances)
    return side_by_side(unique, loadings)
