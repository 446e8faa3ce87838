"""New rows under an RBF network: features, linear outputs, log joints."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.expectation import prepare
from bayesrbf.numerics.log_sums import component_log_weights, log_sum_exp
from bayesrbf.numerics.rbf_network.features import FeatureMap
from bayesrbf.parameters import MixtureParameters, Observations
from bayesrbf.rbf_parameters import RBFNetworkParameters, RBFNetworkSpecification
from bayesrbf.results import ClassPrediction


class Network:
    """New rows, prepared for the outputs of a network.

    Parameters
    ----------
    observations : Observations
        Rows in standard units; labels and weights are not used.
    specification : RBFNetworkSpecification
        Structure of the network.
    """

    def __init__(self, observations: Observations, specification: RBFNetworkSpecification) -> None:
        self._specification = specification
        self._expectation = prepare(observations.unlabelled(), specification.mixture)
        self._features = FeatureMap(observations, specification)

    def features(self, mixture: MixtureParameters) -> Float[np.ndarray, "obs component"]:
        """Compute the features.

        Parameters
        ----------
        mixture : MixtureParameters
            The hidden layer, in standard units.

        Returns
        -------
        ndarray of shape (n_obs, n_components)
            Features f.
        """
        return self._features_of(mixture, self._expectation.component_log_joint(mixture))

    def linear(self, parameters: RBFNetworkParameters) -> Float[np.ndarray, "obs output"]:
        """Compute the linear outputs.

        Parameters
        ----------
        parameters : RBFNetworkParameters
            Point, in standard units.

        Returns
        -------
        ndarray of shape (n_obs, n_outputs)
            ``f w + b``.
        """
        features = self.features(parameters.mixture)
        return features @ parameters.coefficients.T + parameters.intercepts

    def log_density(self, mixture: MixtureParameters) -> Float[np.ndarray, " obs"]:
        """Log density of the observed cells.

        Parameters
        ----------
        mixture : MixtureParameters
            The hidden layer, in standard units.

        Returns
        -------
        ndarray of shape (n_obs,)
            ``log p(x_o)`` in nats, in standard units; of several mixtures the mean density.
        """
        return log_sum_exp(self._expectation.component_log_joint(mixture), axis=1)[0]

    def predict(self, parameters: RBFNetworkParameters) -> ClassPrediction:
        """Class probabilities and density of the rows.

        Parameters
        ----------
        parameters : RBFNetworkParameters
            Point, in standard units.

        Returns
        -------
        ClassPrediction
            ``log p(c | f(x_o))`` of shape (n_obs, n_classes), up to a constant a row, and
            ``log p(x_o)`` in standard units; of several mixtures the mean density.
        """
        log_joint = self._expectation.component_log_joint(parameters.mixture)
        features = self._features_of(parameters.mixture, log_joint)
        linear = features @ parameters.coefficients.T + parameters.intercepts
        return ClassPrediction(linear, log_sum_exp(log_joint, axis=1)[0])

    def _features_of(self, mixture: MixtureParameters, log_joint: np.ndarray) -> np.ndarray:
        """Features of rows whose log joints are known."""
        log_weights = component_log_weights(mixture, self._specification.mixture)
        return self._features.forward(log_joint, log_weights)
