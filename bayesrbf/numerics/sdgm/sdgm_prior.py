r"""The prior of the weights: precisions as constants, or learned with them.

.. math:: \log p(w | \alpha) = \tfrac12 \sum_h (\log \alpha_h - \alpha_h w_h^2 - \log 2\pi)

Under a horseshoe the free variables are the standard weights
:math:`z_h = \alpha_h^{1/2} w_h`: with w itself free, the density would grow without
bound where scales and weights vanish together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from bayesrbf.records import names
from bayesrbf.records.priors import GammaPrecisions, HorseshoePrecisions, PrecisionPrior
from bayesrbf.records.sdgm import SDGMParameters, SDGMSpecification
from bayesrbf.records.specification import Transform, Variable

Values = Mapping[str, np.ndarray]


class WeightPrior(ABC):
    """The prior of the weights, in the free variables that it is declared with."""

    def __init__(self, n_weights: int) -> None:
        self._dims, self._shape = (names.COEFFICIENT,), (n_weights,)
        self._weights = self._variable(names.COEFFICIENTS, "identity")

    def _variable(self, name: str, transform: Transform) -> Variable:
        """A variable with one entry a weight."""
        return Variable(name, self._dims, self._shape, transform)

    @property
    @abstractmethod
    def variables(self) -> tuple[Variable, ...]:
        """Free variables in the order of the coordinates: of the precisions, then the weights."""

    @property
    def deterministic_variables(self) -> tuple[Variable, ...]:
        """The weights, where they are not free themselves."""
        return ()

    def weights(self, values: Values) -> Float[np.ndarray, "*draws weight"]:
        """The weights w at values of the free variables, of one point or many."""
        return values[names.COEFFICIENTS]

    @abstractmethod
    def log_density(
        self, values: Values, likelihood_gradient: Float[np.ndarray, " weight"]
    ) -> tuple[float, dict[str, np.ndarray]]:
        """Log density of the free variables, and gradients of the log posterior.

        The density is in nats, without Jacobian. The gradient of the log likelihood is given in
        the weights w. The result's gradients are in the variables that are real, and in the logs
        of those that are positive.
        """

    @abstractmethod
    def start(self, weights: Float[np.ndarray, " weight"]) -> dict[str, np.ndarray]:
        """Values of the free variables at given weights."""


class HeldPrecisions(WeightPrior):
    """Precisions alpha as constants."""

    def __init__(self, precisions: Float[np.ndarray, " weight"], n_weights: int) -> None:
        super().__init__(n_weights)
        self._alpha = precisions

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The weights alone."""
        return (self._weights,)

    def log_density(
        self, values: Values, likelihood_gradient: Float[np.ndarray, " weight"]
    ) -> tuple[float, dict[str, np.ndarray]]:
        """Normal weights."""
        value, gradient = _normal(values[names.COEFFICIENTS], self._alpha)
        return value, {names.COEFFICIENTS: likelihood_gradient + gradient}

    def start(self, weights: Float[np.ndarray, " weight"]) -> dict[str, np.ndarray]:
        """The weights themselves."""
        return {names.COEFFICIENTS: weights}


class GammaWeights(WeightPrior):
    """Normal weights, whose precisions have a Gamma prior."""

    def __init__(self, prior: GammaPrecisions, n_weights: int) -> None:
        super().__init__(n_weights)
        self._prior = prior

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Precisions, and weights."""
        return (self._variable(names.COEFFICIENT_PRECISIONS, "log"), self._weights)

    def log_density(
        self, values: Values, likelihood_gradient: Float[np.ndarray, " weight"]
    ) -> tuple[float, dict[str, np.ndarray]]:
        """Normal weights given their precisions, and these."""
        w, alpha = values[names.COEFFICIENTS], values[names.COEFFICIENT_PRECISIONS]
        a, b = self._prior.shape, self._prior.rate
        value, gradient = _normal(w, alpha)
        constant = a * np.log(b) - gammaln(a)
        value += float((constant + (a - 1) * np.log(alpha) - b * alpha).sum())
        return value, {
            names.COEFFICIENTS: likelihood_gradient + gradient,
            # In log alpha: 1/2 of the normal, a - 1 of the gamma, and no Jacobian yet.
            names.COEFFICIENT_PRECISIONS: a - 0.5 - (b + 0.5 * w**2) * alpha,
        }

    def start(self, weights: Float[np.ndarray, " weight"]) -> dict[str, np.ndarray]:
        """Precisions at their mean given the weights."""
        mean = (self._prior.shape + 0.5) / (self._prior.rate + 0.5 * weights**2)
        return {names.COEFFICIENT_PRECISIONS: mean, names.COEFFICIENTS: weights}


class HorseshoeWeights(WeightPrior):
    """Standard normal variables times half-Cauchy scales, which a slab bounds."""

    def __init__(self, prior: HorseshoePrecisions, n_weights: int) -> None:
        super().__init__(n_weights)
        self._prior = prior

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Scales, and standard weights."""
        return (
            Variable(names.GLOBAL_SCALE, (), (), "log"),
            self._variable(names.LOCAL_SCALES, "log"),
            self._variable(names.STANDARD_COEFFICIENTS, "identity"),
        )

    @property
    def deterministic_variables(self) -> tuple[Variable, ...]:
        """The weights."""
        return (self._weights,)

    def weights(self, values: Values) -> Float[np.ndarray, "*draws weight"]:
        """Standard weights times their prior standard deviations."""
        return values[names.STANDARD_COEFFICIENTS] * self._deviations(values)[0]

    def log_density(
        self, values: Values, likelihood_gradient: Float[np.ndarray, " weight"]
    ) -> tuple[float, dict[str, np.ndarray]]:
        """Half-Cauchy scales and standard normal weights."""
        z = values[names.STANDARD_COEFFICIENTS]
        deviations, elasticity = self._deviations(values)
        through = likelihood_gradient * z * elasticity
        overall, overall_gradient = _half_cauchy(values[names.GLOBAL_SCALE], self._prior.scale)
        local, local_gradient = _half_cauchy(values[names.LOCAL_SCALES], 1.0)
        normal = -0.5 * float((z**2).sum() + z.size * np.log(2 * np.pi))
        return normal + overall + local, {
            names.GLOBAL_SCALE: np.asarray(through.sum() + overall_gradient),
            names.LOCAL_SCALES: through + local_gradient,
            names.STANDARD_COEFFICIENTS: likelihood_gradient * deviations - z,
        }

    def start(self, weights: Float[np.ndarray, " weight"]) -> dict[str, np.ndarray]:
        """The global scale at its median, local scales such that the weights are typical."""
        scale = self._prior.scale
        values = {
            names.GLOBAL_SCALE: np.asarray(scale),
            names.LOCAL_SCALES: np.maximum(np.abs(weights) / scale, 0.1),
        }
        return values | {names.STANDARD_COEFFICIENTS: weights / self._deviations(values)[0]}

    def _deviations(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        """Prior standard deviations of the weights, and their gradients in the log of a scale."""
        reach = values[names.GLOBAL_SCALE][..., None] * values[names.LOCAL_SCALES]
        deviations = (reach**-2 + self._prior.slab**-2) ** -0.5
        return deviations, deviations**3 / reach**2


LEARNED: Final = {GammaPrecisions: GammaWeights, HorseshoePrecisions: HorseshoeWeights}
"""The prior of the weights under each prior of their precisions."""


def weight_prior(specification: SDGMSpecification) -> WeightPrior:
    """The prior of the weights: precisions as constants, or learned."""
    prior: Any = specification.precisions
    return LEARNED.get(type(prior), HeldPrecisions)(prior, specification.n_weights)


def _normal(w: np.ndarray, alpha: np.ndarray) -> tuple[float, np.ndarray]:
    """Log density of normal weights, and its gradient in them."""
    return 0.5 * float((np.log(alpha / (2 * np.pi)) - alpha * w**2).sum()), -alpha * w


def _half_cauchy(x: np.ndarray, scale: float) -> tuple[float, np.ndarray]:
    """Log density of positive variables, and its gradients in their logs."""
    square = (x / scale) ** 2
    value = float((np.log(2 / (np.pi * scale)) - np.log1p(square)).sum())
    return value, np.asarray(-2 * square / (1 + square))


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
