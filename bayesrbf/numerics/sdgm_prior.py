r"""The prior of the weights: precisions as constants, or learned with them.

.. math:: \log p(w | \alpha) = \tfrac12 \sum_h (\log \alpha_h - \alpha_h w_h^2 - \log 2\pi)
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from bayesrbf import names
from bayesrbf.sdgm_parameters import (
    GammaPrecisions,
    HorseshoePrecisions,
    PrecisionPrior,
    SDGMSpecification,
)
from bayesrbf.specification import Variable

Values = Mapping[str, np.ndarray]


def free_variables(specification: SDGMSpecification) -> tuple[Variable, ...]:
    """Free variables of the posterior, in the order of its coordinates.

    Parameters
    ----------
    specification : SDGMSpecification
        Structure.

    Returns
    -------
    tuple of Variable
        What the precisions are made of, then the weights.
    """
    dims, shape = (names.COEFFICIENT,), (specification.n_weights,)
    weights = Variable(names.COEFFICIENTS, dims, shape, "identity")
    if isinstance(specification.precisions, GammaPrecisions):
        return (Variable(names.COEFFICIENT_PRECISIONS, dims, shape, "log"), weights)
    if isinstance(specification.precisions, HorseshoePrecisions):
        return (
            Variable(names.GLOBAL_SCALE, (), (), "log"),
            Variable(names.LOCAL_SCALES, dims, shape, "log"),
            weights,
        )
    return (weights,)


def precisions(specification: SDGMSpecification, values: Values) -> Float[np.ndarray, " *weights"]:
    """Precisions of the weights.

    Parameters
    ----------
    specification : SDGMSpecification
        Structure.
    values : mapping of str to ndarray
        Values of the free variables, of one point or many.

    Returns
    -------
    ndarray of shape (..., n_weights)
        alpha.
    """
    prior = specification.precisions
    if isinstance(prior, GammaPrecisions):
        return values[names.COEFFICIENT_PRECISIONS]
    if isinstance(prior, HorseshoePrecisions):
        reach = values[names.GLOBAL_SCALE][..., None] * values[names.LOCAL_SCALES]
        return reach**-2 + prior.slab**-2
    return prior


def log_prior(
    specification: SDGMSpecification, values: Values
) -> tuple[float, dict[str, np.ndarray]]:
    """Log density of the free variables, and its slopes.

    Parameters
    ----------
    specification : SDGMSpecification
        Structure.
    values : mapping of str to ndarray
        Values of the free variables at one point.

    Returns
    -------
    value : float
        Log density in nats, without Jacobian.
    slopes : dict of str to ndarray
        Derivatives in the weights, and in the logs of positive variables.
    """
    alpha, w = precisions(specification, values), values[names.COEFFICIENTS]
    value = 0.5 * float((np.log(alpha / (2 * np.pi)) - alpha * w**2).sum())
    slopes = {names.COEFFICIENTS: -alpha * w}
    by_alpha = 0.5 / alpha - 0.5 * w**2
    prior = specification.precisions
    if isinstance(prior, GammaPrecisions):
        a, b = prior.shape, prior.rate
        constant = a * np.log(b) - gammaln(a)
        value += float((constant + (a - 1) * np.log(alpha) - b * alpha).sum())
        slopes[names.COEFFICIENT_PRECISIONS] = by_alpha * alpha + (a - 1) - b * alpha
    elif isinstance(prior, HorseshoePrecisions):
        tau, local = values[names.GLOBAL_SCALE], values[names.LOCAL_SCALES]
        pull = -2 * by_alpha * (tau * local) ** -2
        tau_value, tau_slope = _half_cauchy(tau, prior.scale)
        local_value, local_slope = _half_cauchy(local, 1.0)
        value += tau_value + local_value
        slopes[names.GLOBAL_SCALE] = np.asarray(pull.sum() + tau_slope)
        slopes[names.LOCAL_SCALES] = pull + local_slope
    return value, slopes


def _half_cauchy(x: np.ndarray, scale: float) -> tuple[float, np.ndarray]:
    """Log density of positive variables, and its slopes in their logs."""
    square = (x / scale) ** 2
    value = float((np.log(2 / (np.pi * scale)) - np.log1p(square)).sum())
    return value, np.asarray(-2 * square / (1 + square))


def starting_scales(
    prior: PrecisionPrior, weights: Float[np.ndarray, " weight"]
) -> dict[str, np.ndarray]:
    """Precisions, or what they are made of, that given weights suggest.

    Parameters
    ----------
    prior : PrecisionPrior
        Prior of the precisions.
    weights : ndarray of shape (n_weights,)
        w.

    Returns
    -------
    dict of str to ndarray
        The mean of alpha given w under a Gamma prior; the global scale at its
        median and local scales as large as the weights need under a horseshoe.
    """
    if isinstance(prior, GammaPrecisions):
        mean = (prior.shape + 0.5) / (prior.rate + 0.5 * weights**2)
        return {names.COEFFICIENT_PRECISIONS: mean}
    local = np.maximum(np.abs(weights) / prior.scale, 0.1)
    return {names.GLOBAL_SCALE: np.asarray(prior.scale), names.LOCAL_SCALES: local}
