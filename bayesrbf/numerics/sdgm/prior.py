r"""The prior of the weights: precisions as constants, or learned with them.

.. math:: \log p(w | \alpha) = \tfrac12 \sum_h (\log \alpha_h - \alpha_h w_h^2 - \log 2\pi)

Under a horseshoe the free variables are the standard weights
:math:`z_h = \alpha_h^{1/2} w_h`: with w itself free, the density would grow without
bound where scales and weights vanish together.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from bayesrbf import names
from bayesrbf.priors import GammaPrecisions, HorseshoePrecisions, PrecisionPrior
from bayesrbf.sdgm_parameters import SDGMSpecification
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
            Variable(names.STANDARD_COEFFICIENTS, dims, shape, "identity"),
        )
    return (weights,)


def deterministic_variables(specification: SDGMSpecification) -> tuple[Variable, ...]:
    """The weights, where they are not free themselves.

    Parameters
    ----------
    specification : SDGMSpecification
        Structure.

    Returns
    -------
    tuple of Variable
        One or none.
    """
    if isinstance(specification.precisions, HorseshoePrecisions):
        dims, shape = (names.COEFFICIENT,), (specification.n_weights,)
        return (Variable(names.COEFFICIENTS, dims, shape, "identity"),)
    return ()


def weights_of(
    specification: SDGMSpecification, values: Values
) -> Float[np.ndarray, "*draws weight"]:
    """The weights w.

    Parameters
    ----------
    specification : SDGMSpecification
        Structure.
    values : mapping of str to ndarray
        Values of the free variables, of one point or many.

    Returns
    -------
    ndarray of shape (..., n_weights)
        w.
    """
    prior = specification.precisions
    if isinstance(prior, HorseshoePrecisions):
        return values[names.STANDARD_COEFFICIENTS] * _deviations(prior, values)[0]
    return values[names.COEFFICIENTS]


def log_prior(
    specification: SDGMSpecification, values: Values, pull: Float[np.ndarray, " weight"]
) -> tuple[float, dict[str, np.ndarray]]:
    """Log density of the free variables, and slopes of the log posterior.

    Parameters
    ----------
    specification : SDGMSpecification
        Structure.
    values : mapping of str to ndarray
        Values of the free variables at one point.
    pull : ndarray of shape (n_weights,)
        Gradient of the log likelihood in the weights w.

    Returns
    -------
    value : float
        Log prior density in nats, without Jacobian.
    slopes : dict of str to ndarray
        Derivatives of likelihood and prior in what is real, and in the logs of
        what is positive.
    """
    prior = specification.precisions
    if isinstance(prior, HorseshoePrecisions):
        return _horseshoe(prior, values, pull)
    w = values[names.COEFFICIENTS]
    alpha = values[names.COEFFICIENT_PRECISIONS] if isinstance(prior, GammaPrecisions) else prior
    value = 0.5 * float((np.log(alpha / (2 * np.pi)) - alpha * w**2).sum())
    slopes = {names.COEFFICIENTS: pull - alpha * w}
    if isinstance(prior, GammaPrecisions):
        a, b = prior.shape, prior.rate
        constant = a * np.log(b) - gammaln(a)
        value += float((constant + (a - 1) * np.log(alpha) - b * alpha).sum())
        slopes[names.COEFFICIENT_PRECISIONS] = a - 0.5 - (b + 0.5 * w**2) * alpha
    return value, slopes


def _horseshoe(
    prior: HorseshoePrecisions, values: Values, pull: np.ndarray
) -> tuple[float, dict[str, np.ndarray]]:
    """Half-Cauchy scales and standard normal weights."""
    z = values[names.STANDARD_COEFFICIENTS]
    deviations, elasticity = _deviations(prior, values)
    through = pull * z * elasticity
    overall, overall_slope = _half_cauchy(values[names.GLOBAL_SCALE], prior.scale)
    local, local_slope = _half_cauchy(values[names.LOCAL_SCALES], 1.0)
    normal = -0.5 * float((z**2).sum() + z.size * np.log(2 * np.pi))
    return normal + overall + local, {
        names.GLOBAL_SCALE: np.asarray(through.sum() + overall_slope),
        names.LOCAL_SCALES: through + local_slope,
        names.STANDARD_COEFFICIENTS: pull * deviations - z,
    }


def _deviations(prior: HorseshoePrecisions, values: Values) -> tuple[np.ndarray, np.ndarray]:
    """Prior standard deviations of the weights, and their slopes in the log of a scale."""
    reach = values[names.GLOBAL_SCALE][..., None] * values[names.LOCAL_SCALES]
    deviations = (reach**-2 + prior.slab**-2) ** -0.5
    return deviations, deviations**3 / reach**2


def _half_cauchy(x: np.ndarray, scale: float) -> tuple[float, np.ndarray]:
    """Log density of positive variables, and its slopes in their logs."""
    square = (x / scale) ** 2
    value = float((np.log(2 / (np.pi * scale)) - np.log1p(square)).sum())
    return value, np.asarray(-2 * square / (1 + square))


def starting_values(
    prior: PrecisionPrior, weights: Float[np.ndarray, " weight"]
) -> dict[str, np.ndarray]:
    """Values of the free variables at given weights.

    Parameters
    ----------
    prior : PrecisionPrior
        Prior of the precisions.
    weights : ndarray of shape (n_weights,)
        w.

    Returns
    -------
    dict of str to ndarray
        The mean of alpha given w under a Gamma prior; under a horseshoe the
        global scale at its median and local scales as the weights need.
    """
    if isinstance(prior, GammaPrecisions):
        mean = (prior.shape + 0.5) / (prior.rate + 0.5 * weights**2)
        return {names.COEFFICIENT_PRECISIONS: mean, names.COEFFICIENTS: weights}
    values = {
        names.GLOBAL_SCALE: np.asarray(prior.scale),
        names.LOCAL_SCALES: np.maximum(np.abs(weights) / prior.scale, 0.1),
    }
    deviations, _ = _deviations(prior, values)
    return values | {names.STANDARD_COEFFICIENTS: weights / deviations}
