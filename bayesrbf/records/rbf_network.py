"""Frozen records of RBF networks: structure, a point, the resolved prior."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float

from bayesrbf.records.mixture import MixtureParameters, Standardisation
from bayesrbf.records.order import Order
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification

Features = Literal["density", "responsibility", "log_density"]
Response = Literal["classes", "number"]

FEATURES: tuple[str, ...] = get_args(Features)


@dataclass(frozen=True)
class RBFNetworkSpecification:
    """Structure of an RBF network: a mixture as hidden layer, a linear output layer.

    Attributes
    ----------
    mixture : MixtureSpecification
        The hidden layer. One class: all outputs share one mixture. As many
        classes as outputs: output c sees the components of mixture c alone.
    n_outputs : int
        Number of classes, or 1 for a numeric response.
    features : {"density", "responsibility", "log_density"}
        What a component tells the output layer about a row.
    response : {"classes", "number"}
        Softmax, or a Gaussian about the linear output.
    """

    mixture: MixtureSpecification
    n_outputs: int
    features: Features = "responsibility"
    response: Response = "classes"

    def __post_init__(self) -> None:
        if self.mixture.further:
            raise ValueError(
                "An RBF network takes real and categorical columns; received a mixture with "
                f"further ones: {self.mixture.further}."
            )
        if self.features not in FEATURES:
            raise ValueError(f"features must be one of {FEATURES}; received {self.features!r}.")
        if self.mixture.n_classes not in (1, self.n_outputs):
            raise ValueError(
                "The hidden layer must be one mixture, or one for each of "
                f"{self.n_outputs} outputs; received {self.mixture.n_classes}."
            )

    @property
    def shared(self) -> bool:
        """Whether all outputs see one mixture."""
        return self.mixture.n_classes == 1

    @property
    def connected(self) -> Bool[np.ndarray, "output component"]:
        """Which components an output sees."""
        classes = np.asarray(self.mixture.component_class)
        if self.shared:
            return np.ones((self.n_outputs, classes.size), dtype=bool)
        return classes == np.arange(self.n_outputs)[:, None]

    def hidden_order(self, order: Order) -> Order:
        """The order of the hidden layer, whose mixture may be one for all outputs.

        Parameters
        ----------
        order : Order
            Order of columns and outputs.

        Returns
        -------
        Order
            Order of columns and mixtures.
        """
        return order.of_one_class if self.shared else order

    def reordered(self, order: Order) -> RBFNetworkSpecification:
        """Put columns and classes in another order.

        Parameters
        ----------
        order : Order
            The order; of a numeric response, that of one class.

        Returns
        -------
        RBFNetworkSpecification
            The same structure.
        """
        return replace(self, mixture=self.mixture.reordered(self.hidden_order(order)))


@dataclass(frozen=True)
class RBFNetworkParameters:
    """A point of an RBF network.

    Attributes
    ----------
    mixture : MixtureParameters
        The hidden layer, in the holder's units.
    coefficients : ndarray of shape (n_outputs, n_components)
        Output weights w of the features; zero where an output does not see a
        component. Features are free of units, and so are these.
    intercepts : ndarray of shape (n_outputs,)
        Biases b.
    noise_precision : float
        One over the variance of a numeric response about its mean, in the
        holder's units; 1 where the response is a class.
    """

    mixture: MixtureParameters
    coefficients: Float[np.ndarray, "output component"]
    intercepts: Float[np.ndarray, " output"]
    noise_precision: float = 1.0

    def reordered(
        self, order: Order, specification: RBFNetworkSpecification
    ) -> RBFNetworkParameters:
        """The same network, columns and classes in another order.

        Parameters
        ----------
        order : Order
            The order; of a numeric response, that of one class.
        specification : RBFNetworkSpecification
            Structure of the network as it is.

        Returns
        -------
        RBFNetworkParameters
            A point of the reordered structure, with the same outputs.
        """
        hidden = specification.hidden_order(order)
        components = specification.mixture.components_in(hidden)
        return RBFNetworkParameters(
            self.mixture.reordered(hidden, specification.mixture),
            self.coefficients[order.classes].take(components, 1),
            self.intercepts[order.classes],
            self.noise_precision,
        )

    def standardised(self, units: Standardisation) -> RBFNetworkParameters:
        """The same network for standard units of the columns.

        Parameters
        ----------
        units : Standardisation
            Location and scale of the real columns.

        Returns
        -------
        RBFNetworkParameters
            The point with its mixture in standard units.
        """
        return replace(self, mixture=self.mixture.standardised(units))

    def in_units(self, units: Standardisation) -> RBFNetworkParameters:
        """The inverse of :meth:`standardised`.

        Parameters
        ----------
        units : Standardisation
            Location and scale of the real columns.

        Returns
        -------
        RBFNetworkParameters
            The point with its mixture in the user's units.
        """
        return replace(self, mixture=self.mixture.in_units(units))


@dataclass(frozen=True)
class RBFNetworkHyperparameters:
    r"""The resolved prior of an RBF network.

    .. math::
       p(w) &\propto \exp(-\lambda_1 |w| - \lambda_2 w^2 / 2), \quad
       b \sim N(0, s_b^2), \\
       \pi \mid w &\sim \mathrm{Dirichlet}(a + \gamma\, s(w)), \quad
       s_k(w) = \frac{\sum_c |w_{ck}| + \epsilon}{\sum_j (\sum_c |w_{cj}| + \epsilon)}

    Attributes
    ----------
    mixture : MixtureHyperparameters
        Prior of the hidden layer; a is its ``weight_concentration``.
    l1 : float
        Rate of the Laplace factor.
    l2 : float
        Precision of the normal factor; one of the two is positive.
    link : float
        gamma, finite: rows that pull the mixture weights to the shares of the
        output weights.
    kappa : float
        Power of p(x) beside p(y | x), positive.
    intercept_scale : float
        Standard deviation of the intercepts.
    noise_shape : float
        Shape of the Gamma prior of the noise precision of a numeric response.
    noise_rate : float
        Its rate, the response in standard units.
    """

    mixture: MixtureHyperparameters
    l1: float
    l2: float
    link: float = 0.0
    kappa: float = 1.0
    intercept_scale: float = 10.0
    noise_shape: float = 2.0
    noise_rate: float = 0.1

    def standardised(self) -> RBFNetworkHyperparameters:
        """The same prior for standard units of the columns.

        Returns
        -------
        RBFNetworkHyperparameters
            Location 0 and scale 1; everything else is free of units.
        """
        return replace(self, mixture=self.mixture.standardised())

    def reordered(self, order: Order) -> RBFNetworkHyperparameters:
        """Put the columns in another order.

        Parameters
        ----------
        order : Order
            The order.

        Returns
        -------
        RBFNetworkHyperparameters
            The same prior.
        """
        return replace(self, mixture=self.mixture.reordered(order))

    def log_noise(self, precision: float) -> float:
        """Log prior density of the noise precision.

        Parameters
        ----------
        precision : float
            tau, positive.

        Returns
        -------
        float
            ``log Gamma(tau; noise_shape, noise_rate)``.
        """
        shape, rate = self.noise_shape, self.noise_rate
        constant = shape * math.log(rate) - math.lgamma(shape)
        return constant + (shape - 1) * math.log(precision) - rate * precision

    def noise_slope(self, precision: float) -> float:
        """Derivative of :meth:`log_noise`.

        Parameters
        ----------
        precision : float
            tau, positive.

        Returns
        -------
        float
            Derivative in tau.
        """
        return (self.noise_shape - 1) / precision - self.noise_rate
