"""Frozen records of RBF networks: structure, schemes, parameters."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from bayesrbf.base.priors import MixtureHyperparameters
from bayesrbf.base.records import MAX_LOG, MAX_PARTS, Requirements, scales, stored, within
from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Order, Standardisation

Features = Literal["density", "responsibility", "log_density"]
Response = Literal["classes", "number", "log_number"]

FEATURES: tuple[str, ...] = get_args(Features)


@stored
class RBFNetworkSpecification:
    """Structure of an RBF network: a mixture as hidden layer, a linear output layer."""

    mixture: MixtureSpecification
    """The hidden layer: a mixture of one class, which all outputs see."""
    n_outputs: int  # Number of classes, or 1 for a numeric response.
    features: Features = "responsibility"  # Feature of a row by component, for the output layer.
    response: Response = "classes"
    """Softmax of classes, or a Gaussian of a number or its logarithm about the linear output."""

    def __post_init__(self) -> None:
        if self.features not in FEATURES:
            raise ValueError(f"features must be one of {FEATURES}; received {self.features!r}.")
        if self.mixture.n_classes != 1:
            raise ValueError(
                "The hidden layer must be a mixture of one class; "
                f"received {self.mixture.n_classes}."
            )

    def reordered(self, order: Order) -> RBFNetworkSpecification:
        """Put columns in another order."""
        return replace(self, mixture=self.mixture.reordered(order.of_one_class))

    def __laws__(self) -> Requirements:
        yield 0 < self.n_outputs <= MAX_PARTS, "outputs"


@stored
class RBFNetworkParameters:
    """A point of an RBF network, in the holder's units."""

    mixture: MixtureParameters
    coefficients: Float[np.ndarray, "output component"]
    """Weights w of the unitless features."""
    intercepts: Float[np.ndarray, " output"]  # Biases b.
    noise_precision: float = 1.0
    """One over a numeric response's variance about its mean; 1 where it is a class."""

    def standardised(self, units: Standardisation) -> RBFNetworkParameters:
        """The network with its mixture in standard units of the columns."""
        return replace(self, mixture=self.mixture.standardised(units))

    def in_units(self, units: Standardisation) -> RBFNetworkParameters:
        """The inverse of :meth:`standardised`."""
        return replace(self, mixture=self.mixture.in_units(units))

    def __laws__(self) -> Requirements:
        yield within(abs(self.coefficients), 0, MAX_LOG), "output weights"
        yield within(abs(self.intercepts), 0, MAX_LOG), "intercepts"
        yield scales(self.noise_precision), "a positive precision of the noise"


@stored
class RBFNetworkHyperparameters:
    r"""The resolved prior of an RBF network.

    .. math::
       p(w) &\propto \exp(-\lambda_1 |w| - \lambda_2 w^2 / 2), \quad
       b \sim N(0, s_b^2), \\
       \pi \mid w &\sim \mathrm{Dirichlet}(a + \gamma\, s(w)), \quad
       s_k(w) = \frac{\sum_c |w_{ck}| + \epsilon}{\sum_j (\sum_c |w_{cj}| + \epsilon)}
    """

    mixture: MixtureHyperparameters  # Prior of the hidden layer; a is its ``weight_concentration``.
    l1: float  # Rate of the Laplace factor; it or ``l2`` is positive.
    l2: float  # Precision of the normal factor.
    link: float = 0.0
    """gamma: prior sample size of the mixture weights at the relative sizes of output weights."""
    kappa: float = 1.0  # Power of p(x) in the joint p(x)^kappa p(y | x), positive.
    intercept_scale: float = 10.0  # Standard deviation of the intercepts.
    noise_shape: float = 2.0
    """Shape of the Gamma prior of the noise precision of a numeric response."""
    noise_rate: float = 0.1  # Rate of the Gamma prior, the response in standard units.

    def standardised(self) -> RBFNetworkHyperparameters:
        """The prior in standard units: location 0 and scale 1; the rest is free of units."""
        return replace(self, mixture=self.mixture.standardised())

    def reordered(self, order: Order) -> RBFNetworkHyperparameters:
        """Put the columns in another order."""
        return replace(self, mixture=self.mixture.reordered(order))

    def log_noise(self, precision: float) -> float:
        """Log prior density ``log Gamma(precision; noise_shape, noise_rate)`` of the noise."""
        shape, rate = self.noise_shape, self.noise_rate
        constant = shape * math.log(rate) - math.lgamma(shape)
        # NumPy's logarithm and quotient: a search may try a precision that rounds to zero.
        return constant + (shape - 1) * float(np.log(precision)) - rate * precision

    def noise_slope(self, precision: float) -> float:
        """Derivative of :meth:`log_noise` in the precision."""
        return float(np.divide(self.noise_shape - 1, precision)) - self.noise_rate

    def __laws__(self) -> Requirements:
        yield within((self.l1, self.l2, self.link), 0), "rates"
        positive = self.kappa, self.noise_shape, self.noise_rate, self.intercept_scale
        yield self.l1 + self.l2 > 0 and scales(positive), "positive numbers"
