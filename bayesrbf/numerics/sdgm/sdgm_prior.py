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

from bayesrbf.records import names
from bayesrbf.records.priors import GammaPrecisions, HorseshoePrecisions, PrecisionPrior
from bayesrbf.records.sdgm import SDGMParameters, SDGMSpecification
from bayesrbf.records.specification import Variable

Values = Mapping[str, np.ndarray]


def free_variables(specification: SDGMSpecification) -> tuple[Variable, ...]:
    """Free variables in the order of the coordinates: those of the precisions, then the weights."""
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
    """The weights, where they are not free themselves."""
    if isinstance(specification.precisions, HorseshoePrecisions):
        dims, shape = (names.COEFFICIENT,), (specification.n_weights,)
        return (Variable(names.COEFFICIENTS, dims, shape, "identity"),)
    return ()


def weights_of(
    specification: SDGMSpecification, values: Values
) -> Float[np.ndarray, "*draws weight"]:
    """The weights w at values of the free variables, of one point or many."""
    prior = specification.precisions
    if isinstance(prior, HorseshoePrecisions):
        return values[names.STANDARD_COEFFICIENTS] * _deviations(prior, values)[0]
    return values[names.COEFFICIENTS]


def log_prior(
    specification: SDGMSpecification,
    values: Values,
    likelihood_gradient: Float[np.ndarray, " weight"],
) -> tuple[float, dict[str, np.ndarray]]:
    """Log density of the free variables, and gradients of the log posterior.

    The density is in nats, without Jacobian. The gradient of the log likelihood is given in the
    weights w. The result's gradients are in the variables that are real, and in the logs of
    those that are positive.
    """
    prior = specification.precisions
    if isinstance(prior, HorseshoePrecisions):
        return _horseshoe(prior, values, likelihood_gradient)
    w = values[names.COEFFICIENTS]
    alpha = values[names.COEFFICIENT_PRECISIONS] if isinstance(prior, GammaPrecisions) else prior
    value = 0.5 * float((np.log(alpha / (2 * np.pi)) - alpha * w**2).sum())
    gradients = {names.COEFFICIENTS: likelihood_gradient - alpha * w}
    if isinstance(prior, GammaPrecisions):
        a, b = prior.shape, prior.rate
        constant = a * np.log(b) - gammaln(a)
        value += float((constant + (a - 1) * np.log(alpha) - b * alpha).sum())
        gradients[names.COEFFICIENT_PRECISIONS] = a - 0.5 - (b + 0.5 * w**2) * alpha
    return value, gradients


def _horseshoe(
    prior: HorseshoePrecisions, values: Values, likelihood_gradient: np.ndarray
) -> tuple[float, dict[str, np.ndarray]]:
    """Log density and gradients under half-Cauchy scales and standard normal weights."""
    z = values[names.STANDARD_COEFFICIENTS]
    deviations, elasticity = _deviations(prior, values)
    through = likelihood_gradient * z * elasticity
    overall, overall_gradient = _half_cauchy(values[names.GLOBAL_SCALE], prior.scale)
    local, local_gradient = _half_cauchy(values[names.LOCAL_SCALES], 1.0)
    normal = -0.5 * float((z**2).sum() + z.size * np.log(2 * np.pi))
    return normal + overall + local, {
        names.GLOBAL_SCALE: np.asarray(through.sum() + overall_gradient),
        names.LOCAL_SCALES: through + local_gradient,
        names.STANDARD_COEFFICIENTS: likelihood_gradient * deviations - z,
    }


def _deviations(prior: HorseshoePrecisions, values: Values) -> tuple[np.ndarray, np.ndarray]:
    """Prior standard deviations of the weights, and their gradients in the log of a scale."""
    reach = values[names.GLOBAL_SCALE][..., None] * values[names.LOCAL_SCALES]
    deviations = (reach**-2 + prior.slab**-2) ** -0.5
    return deviations, deviations**3 / reach**2


def _half_cauchy(x: np.ndarray, scale: float) -> tuple[float, np.ndarray]:
    """Log density of positive variables, and its gradients in their logs."""
    square = (x / scale) ** 2
    value = float((np.log(2 / (np.pi * scale)) - np.log1p(square)).sum())
    return value, np.asarray(-2 * square / (1 + square))


def starting_values(
    prior: PrecisionPrior, weights: Float[np.ndarray, " weight"]
) -> dict[str, np.ndarray]:
    """Values of the free variables at given weights.

    Under a Gamma prior alpha is at its mean given w. Under a horseshoe the global scale is at
    its median, and the local scales are such that the weights are typical.
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


def learned_specification(
    component_class: tuple[int, ...], n_features: int, prior: PrecisionPrior
) -> SDGMSpecification:
    """Every feature in every component, with equal component probabilities and learned precisions.

    No component is held at zero. The prior of the weights makes the posterior proper, and
    without a reference component those of a class stay exchangeable.
    """
    classes = np.asarray(component_class, dtype=np.intp)
    return SDGMSpecification(
        classes,
        1.0 / np.bincount(classes)[classes],
        np.repeat(np.arange(classes.size), n_features),
        np.tile(np.arange(n_features), classes.size),
        prior,
    )


def learned_weights(
    parameters: SDGMParameters, specification: SDGMSpecification
) -> Float[np.ndarray, " weight"]:
    """Weights of the large model that give the same class probabilities as a sparse point.

    A component that was pruned becomes a copy of a survivor of its class. The intercepts,
    feature 0, make up for the copies and for unequal component probabilities.
    """
    n_features = specification.n_weights // specification.n_components
    sparse = parameters.dense(n_features)
    dense = np.empty((specification.n_components, n_features))
    for label in np.unique(specification.component_class):
        slots = np.flatnonzero(specification.component_class == label)
        survivors = np.flatnonzero(parameters.component_class == label)
        source = np.resize(survivors, slots.size)
        copies = np.bincount(source, minlength=parameters.n_components)[source]
        dense[slots] = sparse[:, source].T
        dense[slots, 0] += np.log(parameters.proportions[source] * slots.size / copies)
    return dense.reshape(-1)
