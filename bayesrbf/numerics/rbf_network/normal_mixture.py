"""Quantiles and log densities of mixtures of normals, one mixture a row: a posterior predictive."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp, ndtr, ndtri

BISECTIONS = 60
"""Halvings of a bracket: 1e-18 of its width, below rounding."""


def quantiles(
    means: Float[np.ndarray, "draw obs"],
    sds: Float[np.ndarray, " draw"],
    prob: float,
) -> Float[np.ndarray, " obs"]:
    """Quantile of the equal mixture of the draws' normals, for every row.

    Parameters
    ----------
    means : ndarray of shape (n_draws, n_obs)
        Mean of each row under each draw.
    sds : ndarray of shape (n_draws,)
        Standard deviation under each draw.
    prob : float
        Probability below the quantile, within (0, 1).

    Returns
    -------
    ndarray of shape (n_obs,)
        Quantiles, by bisection between those of the outermost normals.

    Examples
    --------
    >>> quantiles(np.array([[1.0], [1.0]]), np.ones(2), 0.975).round(2)
    array([2.96])
    """
    single = means + sds[:, None] * ndtri(prob)
    lower, upper = single.min(axis=0), single.max(axis=0)
    if len(means) == 1:
        return lower
    for _ in range(BISECTIONS):
        middle = 0.5 * (lower + upper)
        below = ndtr((middle - means) / sds[:, None]).mean(axis=0) < prob
        lower, upper = np.where(below, middle, lower), np.where(below, upper, middle)
    return 0.5 * (lower + upper)


def log_density(
    values: Float[np.ndarray, " obs"],
    means: Float[np.ndarray, "draw obs"],
    sds: Float[np.ndarray, " draw"],
) -> Float[np.ndarray, " obs"]:
    """Log density of the equal mixture of the draws' normals.

    Parameters
    ----------
    values : ndarray of shape (n_obs,)
        Where.
    means : ndarray of shape (n_draws, n_obs)
        Mean of each row under each draw.
    sds : ndarray of shape (n_draws,)
        Standard deviation under each draw.

    Returns
    -------
    ndarray of shape (n_obs,)
        Log densities in nats.
    """
    scaled = (values - means) / sds[:, None]
    each = -0.5 * scaled**2 - np.log(sds * np.sqrt(2 * np.pi))[:, None]
    return logsumexp(each, axis=0) - np.log(len(means))
