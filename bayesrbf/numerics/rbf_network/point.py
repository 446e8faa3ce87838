"""One point of a declared RBF network, and what the prior of its output layer says there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bayesrbf import names
from bayesrbf.numerics.rbf_network.prior import Link, log_output_prior
from bayesrbf.parameters import MixtureParameters
from bayesrbf.rbf_parameters import RBFNetworkHyperparameters, RBFNetworkSpecification
from bayesrbf.specification import Variable


def output_variables(specification: RBFNetworkSpecification) -> tuple[Variable, ...]:
    """Free variables of the output layer, in the graph's order.

    Parameters
    ----------
    specification : RBFNetworkSpecification
        Structure of the network.

    Returns
    -------
    tuple of Variable
        ``coefficients``, ``intercepts`` and, for a numeric response,
        ``noise_precision``.
    """
    k = specification.mixture.n_components
    if specification.response == "number":
        return (
            Variable(names.COEFFICIENTS, (names.COMPONENT,), (k,), "identity"),
            Variable(names.INTERCEPTS, (), (), "identity"),
            Variable(names.NOISE_PRECISION, (), (), "log"),
        )
    c = specification.n_outputs
    return (
        Variable(names.COEFFICIENTS, (names.LABEL, names.COMPONENT), (c, k), "identity"),
        Variable(names.INTERCEPTS, (names.LABEL,), (c,), "identity"),
    )


@dataclass(frozen=True)
class NetworkPoint:
    """One point, in standard units.

    Attributes
    ----------
    values : dict of str to ndarray
        Free variables by name, as the graph has them.
    mixture : MixtureParameters
        The hidden layer.
    coefficients : ndarray of shape (n_outputs, n_components)
        Output weights.
    intercepts : ndarray of shape (n_outputs,)
        Biases.
    noise_precision : float
        Precision of a numeric response; 1 for classes.
    """

    values: dict[str, np.ndarray]
    mixture: MixtureParameters
    coefficients: Float[np.ndarray, "output component"]
    intercepts: Float[np.ndarray, " output"]
    noise_precision: float

    def link(self, prior: RBFNetworkHyperparameters, network: RBFNetworkSpecification) -> Link:
        """What the link adds to the mixture weights' own prior.

        Parameters
        ----------
        prior : RBFNetworkHyperparameters
            Resolved prior.
        network : RBFNetworkSpecification
            Structure of the network.

        Returns
        -------
        Link
            Value and slopes.
        """
        concentration = prior.mixture.weight_concentration
        return Link.at(self.mixture.weights, self.coefficients, concentration, prior.link, network)

    def log_output_prior(
        self, prior: RBFNetworkHyperparameters, network: RBFNetworkSpecification
    ) -> float:
        """Log prior of the output layer, less the link and the kinks.

        Parameters
        ----------
        prior : RBFNetworkHyperparameters
            Resolved prior.
        network : RBFNetworkSpecification
            Structure of the network.

        Returns
        -------
        float
            Log density plus ``l1 sum |w|`` in nats.
        """
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
        """Gradient in the coordinates of the output layer, less the kinks.

        Parameters
        ----------
        by_coefficient : ndarray of shape (n_outputs, n_components)
            Slope of the log likelihood in the output weights.
        by_intercept : ndarray of shape (n_outputs,)
            In the biases.
        by_noise : float
            In the noise precision.
        prior : RBFNetworkHyperparameters
            Resolved prior.
        network : RBFNetworkSpecification
            Structure of the network.

        Returns
        -------
        list of ndarray
            One vector a variable.
        """
        by_coefficient = by_coefficient - prior.l2 * self.coefficients
        by_intercept = by_intercept - self.intercepts / prior.intercept_scale**2
        parts = [by_coefficient.reshape(-1), by_intercept]
        if network.response == "number":
            slope = by_noise + prior.noise_slope(self.noise_precision)
            parts.append(np.array([self.noise_precision * slope]))
        return parts
