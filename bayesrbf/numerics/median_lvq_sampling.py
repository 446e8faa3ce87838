"""Exact moves within the posterior of exemplars and width."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from bayesrbf.exemplars import SigmaPrior
from bayesrbf.numerics.median_lvq_posterior import MedianLVQLogPosterior
from bayesrbf.numerics.sampling import draw_categories


def gibbs_sweep(
    log_posterior: MedianLVQLogPosterior,
    theta: Float[np.ndarray, " coordinate"],
    rng: np.random.Generator,
) -> Float[np.ndarray, " coordinate"]:
    """Draw every exemplar from its full conditional, then log sigma along a slice.

    The posterior is left invariant, exactly: under the uniform prior the score of a swap
    is the log full conditional of the exemplar.

    Parameters
    ----------
    log_posterior : MedianLVQLogPosterior
        The density.
    theta : ndarray of shape (dimension,)
        Coordinates.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (dimension,)
        Coordinates of the next point.
    """
    exemplars = log_posterior.exemplars(theta)
    likelihood = log_posterior.likelihood(log_posterior.width(theta))
    following = theta.copy()
    for prototype, label in enumerate(log_posterior.prototypes.classes):
        shares = softmax(likelihood.scores(exemplars, prototype))
        drawn = draw_categories(shares[None], rng)[0]
        exemplars[prototype] = log_posterior.rows.candidates[label][drawn]
    following[: exemplars.size] = exemplars
    if isinstance(log_posterior.sigma, SigmaPrior):

        def log_density(log_sigma: float) -> float:
            at = log_posterior.likelihood(float(np.exp(log_sigma)))
            return at.value(exemplars) + log_sigma

        step = 2 * log_posterior.sigma.spread
        following[-1] = slice_step(log_density, float(theta[-1]), step, rng)
    return following


def slice_step(
    log_density: Callable[[float], float], start: float, step: float, rng: np.random.Generator
) -> float:
    """One draw along a line that leaves a density invariant: stepping out, shrinking.

    Parameters
    ----------
    log_density : callable
        Log density up to a constant; it must fall to nothing on both sides.
    start : float
        Where the chain is.
    step : float
        Width of the first interval, about that of the density.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    float
        Where the chain goes.

    References
    ----------
    Neal (2003), Slice sampling, Annals of Statistics 31, section 4, figures 3 and 5.
    """
    level = log_density(start) - rng.exponential()
    lower = start - step * rng.random()
    upper = lower + step
    while log_density(lower) > level:
        lower -= step
    while log_density(upper) > level:
        upper += step
    while True:
        candidate = rng.uniform(lower, upper)
        if log_density(candidate) > level:
            return float(candidate)
        lower, upper = (candidate, upper) if candidate < start else (lower, candidate)
