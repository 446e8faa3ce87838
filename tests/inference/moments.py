"""How many standard errors moments of draws are away from the truth."""

from __future__ import annotations

import numpy as np
from arviz_stats.base.array import array_stats

BOUND = 4.9
"""Standard errors that a sound sampler does not exceed: one in a million."""


def errors(draws: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Mean of draws (chain, draw, quantity) less the truth, in Monte Carlo standard errors."""
    flat = draws.reshape((*draws.shape[:2], -1))
    effective = array_stats.ess(flat, chain_axis=0, draw_axis=1, method="mean")
    return (flat.mean(axis=(0, 1)) - truth) / (flat.std(axis=(0, 1)) / np.sqrt(effective))


def moment_errors(theta: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Errors of the means, variances and correlations of draws whose truth is known."""
    scaled = (theta - mean) / np.sqrt(np.diag(covariance))
    rows, columns = np.tril_indices(mean.size)
    products = scaled[..., rows] * scaled[..., columns]
    sd = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(sd, sd)
    return np.concatenate(
        [errors(scaled, np.zeros(mean.size)), errors(products, correlation[rows, columns])]
    )
