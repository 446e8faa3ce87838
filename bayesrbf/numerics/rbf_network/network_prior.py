r"""Priors of the output layer and the link to the mixture weights, at one point of a network.

.. math::
   \log p(w) &= -\lambda_1 |w| - \lambda_2 w^2 / 2 - \log Z, \quad
   Z = \sqrt{2\pi / \lambda_2}\; \mathrm{erfcx}(\lambda_1 / \sqrt{2 \lambda_2}), \\
   \log p(\pi \mid w) &= \log \mathrm{Dirichlet}(\pi; a + \gamma s(w))

The mixture's own prior holds the part :math:`\mathrm{Dirichlet}(a)`; what the link adds to
it stands here. Where it depends on :math:`|w|`, the derivative in :math:`|w|` is kept
apart from that in w: the former has a kink at zero, which exact zeros come from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import digamma, erfcx, gammaln

from bayesrbf.numerics.coordinates import SMALLEST_PROBABILITY
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.rbf_network import RBFNetworkHyperparameters, RBFNetworkSpecification
from bayesrbf.records.specification import Variable

SMALLEST_SIZE = 1e-6
"""epsilon: it keeps the relative sizes of output weights defined where all of them are zero."""


def log_elastic_net_constant(l1: float, l2: float) -> float:
    """Log of the elastic net's constant, the integral of ``exp(-l1 |w| - l2 w^2 / 2)``.

    >>> round(log_elastic_net_constant(2.0, 0.0), 6)  # Laplace: 2 / l1
    0.0
    """
    if l2 == 0:
        return float(np.log(2 / l1))
    # erfcx(x) is exp(x²) erfc(x): neither factor has to be formed, which could overflow.
    return float(0.5 * np.log(2 * np.pi / l2) + np.log(erfcx(l1 / np.sqrt(2 * l2))))


def log_output_prior(
    coefficients: Float[np.ndarray, "*shape"],
    intercepts: Float[np.ndarray, " output"],
    hyperparameters: RBFNetworkHyperparameters,
) -> float:
    """Log density of output weights and intercepts, in nats."""
    l1, l2, scale = hyperparameters.l1, hyperparameters.l2, hyperparameters.intercept_scale
    elastic = -l1 * np.abs(coefficients).sum() - 0.5 * l2 * (coefficients**2).sum()
    elastic -= coefficients.size * log_elastic_net_constant(l1, l2)
    wide = -0.5 * ((intercepts / scale) ** 2).sum()
    wide -= intercepts.size * np.log(scale * np.sqrt(2 * np.pi))
    return float(elastic + wide)


def relative_sizes(
    coefficients: Float[np.ndarray, "output component"],
) -> Float[np.ndarray, " component"]:
    """Relative sizes s(w) of the output weights, to which the mixture weights are linked.

    They are positive and sum to one.
    """
    sizes = np.abs(coefficients).sum(axis=0) + SMALLEST_SIZE
    return sizes / sizes.sum()


@dataclass(frozen=True)
class Link:
    """The link's part of the log density at one point, and its derivatives."""

    value: float  # ``log Dirichlet(pi; a + gamma s) - log Dirichlet(pi; a)`` in nats.
    counts: Float[np.ndarray, " component"]
    """``gamma s``: counts that it adds to the mixture weights."""
    by_size: Float[np.ndarray, " component"]  # Derivative in ``sum_c |w_ck|``.

    @classmethod
    def at(
        cls,
        weights: Float[np.ndarray, " component"],
        coefficients: Float[np.ndarray, "output component"],
        concentration: float,
        link: float,
    ) -> Link:
        """Evaluate the link; it adds nothing for a mixture of one component.

        ``concentration`` is a, the parameter of the mixture weights' own Dirichlet prior;
        ``link`` is gamma.
        """
        k = weights.size
        if k == 1:
            return cls(0.0, np.zeros(1), np.zeros(1))
        counts = link * relative_sizes(coefficients)
        alpha = concentration + counts
        value = gammaln(alpha.sum()) - gammaln(alpha).sum()
        value -= gammaln(k * concentration) - k * gammaln(concentration)
        log_weights = np.log(np.maximum(weights, SMALLEST_PROBABILITY))
        value += counts @ log_weights
        # The counts sum to gamma: only differences between their derivatives matter.
        by_count = log_weights - digamma(alpha)
        mean = (counts @ by_count) / link if link else 0.0
        sizes = np.abs(coefficients).sum(axis=0) + SMALLEST_SIZE
        by_size = link * (by_count - mean) / sizes.sum()
        return cls(float(value), counts, by_size)


def output_variables(specification: RBFNetworkSpecification) -> tuple[Variable, ...]:
    """Free variables of the output layer, in the graph's order."""
    k = specification.mixture.n_components
    if specification.response == "number":
        return (
            Variable(names.COEFFICIENTS, (names.COMPONENT,), (k,), "identity"),
            Variable(names.INTERCEPTS, (), (), "identity"),
            Variable(names.NOISE_PRECISION, (), (), "log"),
        )
    c = specification.n_outputs
    return (
        Variable(names.COEFFICIENTS, (names.CLASS_LABEL, names.COMPONENT), (c, k), "identity"),
        Variable(names.INTERCEPTS, (names.CLASS_LABEL,), (c,), "identity"),
    )


@dataclass(frozen=True)
class NetworkPoint:
    """One point in standard units, with its free variables by name, as the graph has them.

    ``noise_precision`` is that of a numeric response, 1 for classes.
    """

    values: dict[str, np.ndarray]
    mixture: MixtureParameters
    coefficients: Float[np.ndarray, "output component"]
    intercepts: Float[np.ndarray, " output"]
    noise_precision: float

    def link(self, prior: RBFNetworkHyperparameters) -> Link:
        """The link's part of the prior of the mixture weights."""
        concentration = prior.mixture.weight_concentration
        return Link.at(self.mixture.weights, self.coefficients, concentration, prior.link)

    def log_output_prior(
        self, prior: RBFNetworkHyperparameters, network: RBFNetworkSpecification
    ) -> float:
        """Log prior of the output layer plus ``l1 sum |w|``, in nats: without link and kinks."""
        total = log_output_prior(self.coefficients, self.intercepts, prior)
        total += prior.l1 * float(np.abs(self.coefficients).sum())
        if network.response == "number":
            total += prior.log_noise(self.noise_precision)
        return total

    def output_gradient(
        self,
        by_coefficient: Float[np.ndarray, "output component"],
        by_intercept: Float[np.ndarray, " output"],
        by_noise: float,
        prior: RBFNetworkHyperparameters,
        network: RBFNetworkSpecification,
    ) -> list[np.ndarray]:
        """Gradient in the coordinates of the output layer, without the kinks.

        The result has one vector a variable. Given are the gradients of the log likelihood in
        output weights, biases and noise precision.
        """
        by_coefficient = by_coefficient - prior.l2 * self.coefficients
        by_intercept = by_intercept - self.intercepts / prior.intercept_scale**2
        parts = [by_coefficient.reshape(-1), by_intercept]
        if network.response == "number":
            derivative = by_noise + prior.noise_slope(self.noise_precision)
            parts.append(np.array([self.noise_precision * derivative]))
        return parts
