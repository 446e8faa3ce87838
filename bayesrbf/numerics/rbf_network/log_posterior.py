r"""Log posterior of an RBF network in the coordinates of its declared graph.

.. math::
   \log p = \sum_n v_n \bigl(\log p(y_n \mid f(x_n)) + \kappa \log p(x_n)\bigr)
       + \log p(\text{mixture}) + \log p(w, b) + \log p(\pi \mid w) / p(\pi)

One evaluation of the mixture gives value and gradient: the slopes of both likelihoods in
:math:`\log p(x_n, k)` are added up and carried to the coordinates together.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from bayesrbf import names
from bayesrbf.numerics import coordinates
from bayesrbf.numerics.log_sums import component_log_weights, log_sum_exp
from bayesrbf.numerics.rbf_network.completed import mean_log_probabilities
from bayesrbf.numerics.rbf_network.features import FeatureMap
from bayesrbf.numerics.rbf_network.halves import Smooth
from bayesrbf.numerics.rbf_network.network_points import NetworkPoints
from bayesrbf.numerics.rbf_network.output import Output
from bayesrbf.numerics.rbf_network.point import NetworkPoint
from bayesrbf.numerics.rbf_network.rows import Network
from bayesrbf.numerics.weighted_statistics import JointDensities, JointPoint
from bayesrbf.order import Order
from bayesrbf.parameters import Observations
from bayesrbf.rbf_parameters import (
    RBFNetworkHyperparameters,
    RBFNetworkParameters,
    RBFNetworkSpecification,
)


class RBFNetworkLogPosterior(NetworkPoints):
    """Log posterior of an RBF network with one mixture, given a table.

    Parameters
    ----------
    observations : Observations
        Rows in standard units; their labels play no part.
    output : Classes or Numbers
        Responses of the rows.
    network : RBFNetworkSpecification
        Structure of the network, one mixture for all outputs.
    prior : RBFNetworkHyperparameters
        Resolved prior in the user's units of the columns.
    """

    def __init__(
        self,
        observations: Observations,
        output: Output,
        network: RBFNetworkSpecification,
        prior: RBFNetworkHyperparameters,
    ) -> None:
        super().__init__(observations, network, prior)
        self._output = output
        self._weights = observations.weights
        self._features = FeatureMap(observations, network)
        self._shift = prior.kappa * float(self._weights @ self._row_shift) + self._prior_shift

    def _prepare_rows(self, many: bool) -> None:
        """Put the rows into the form that so many evaluations want."""
        super()._prepare_rows(many)
        self._densities = JointDensities(self._observations, self.specification, many=many)

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log posterior density and its gradient, equal to the declared graph's.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates, output weights with their sign.
        jacobian : bool
            Whether to add the log determinant of the transforms.

        Returns
        -------
        value : float
            Log density in nats, in the user's units.
        gradient : ndarray of shape (dimension,)
            Gradient in the coordinates; at a zero of an output weight the mean of
            both sides.
        """
        smooth = self.smooth(theta)
        sizes = theta[self.coefficient_places]
        value = smooth.value - self.prior.l1 * float(np.abs(sizes).sum())
        slope = smooth.gradient + smooth.by_size * np.sign(theta)
        slope[self.coefficient_places] -= self.prior.l1 * np.sign(sizes)
        if jacobian:
            extra, extra_slope = coordinates.log_jacobian(self.variables, self.constrained(theta))
            value, slope = value + extra, slope + extra_slope
        return value, slope

    def smooth(self, theta: Float[np.ndarray, " coordinate"]) -> Smooth:
        """The log density without Jacobian, and without the Laplace factor's kinks.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates, output weights with their sign.

        Returns
        -------
        Smooth
            Log density plus ``l1 sum |w|``, and its slopes.
        """
        point = self._point(theta)
        joint = self._densities.at(point.mixture)
        log_likelihood, by_linear, by_noise, features = self._discriminate(point, joint)
        log_density, shares = log_sum_exp(joint.log_joint, axis=1)
        kappa = self.prior.kappa
        link = point.link(self.prior, self.network)
        value = float(self._weights @ (log_likelihood + kappa * log_density)) + self._shift
        value += self._prior.log_density(point.mixture)
        value += point.log_output_prior(self.prior, self.network) + link.value

        by_linear = self._weights[:, None] * by_linear
        by_joint = self._features.backward(features, by_linear @ point.coefficients)
        slopes = by_joint + (kappa * self._weights)[:, None] * shares
        counts = link.counts if self._features.uses_weights else link.counts - by_joint.sum(axis=0)
        by_output = point.output_gradient(
            by_linear.T @ features,
            by_linear.sum(axis=0),
            float(self._weights @ by_noise),
            self.prior,
            self.network,
        )
        gradients = [self._mixture_gradient(point, joint, slopes, counts), *by_output]
        by_size = np.zeros(self.dimension)
        by_size[self.coefficient_places] = np.tile(link.by_size, self.network.n_outputs)
        return Smooth(value, np.concatenate(gradients), by_size)

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Log likelihood of every row, not weighted.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        ndarray of shape (n_obs,)
            ``log p(y_n | f(x_n)) + kappa log p(x_n)`` in nats, in the user's units.
        """
        point = self._point(theta)
        joint = self._densities.at(point.mixture)
        log_density = log_sum_exp(joint.log_joint, axis=1)[0] + self._row_shift
        return self._discriminate(point, joint)[0] + self.prior.kappa * log_density

    def conditional_log_likelihood(self, theta: Float[np.ndarray, " coordinate"]) -> float:
        """Weighted log likelihood of the responses given the rows.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Unconstrained coordinates.

        Returns
        -------
        float
            ``sum_n v_n log p(y_n | f(x_n))`` in nats.
        """
        point = self._point(theta)
        log_likelihood = self._discriminate(point, self._densities.at(point.mixture))[0]
        return float(self._weights @ log_likelihood)

    def predictor(
        self,
        observations: Observations,
        completions: int = 0,
        temperature: float = 1.0,
        order: Order | None = None,
    ) -> Callable[[Float[np.ndarray, " coordinate"]], Float[np.ndarray, "obs output"]]:
        """Prepare new rows for the log joint of class and row at many points.

        Parameters
        ----------
        observations : Observations
            New rows, in standard units; labels and weights are not used.
        completions : int
            Completions of a row with holes, a power of two, over which class
            probabilities are averaged; 0: they are those of the features ``f(x_o)``.
        temperature : float
            What the result will be multiplied by, for then it is the mean of calibrated
            probabilities.
        order : Order, optional
            Order of columns and components in which cells are drawn; None: as they stand.

        Returns
        -------
        callable
            Maps coordinates to ``log p(c | x_o) + log p(x_o)`` of shape
            (n_obs, n_classes), in nats, in the user's units.
        """
        network = Network(observations, self.network)
        shift = -(~np.isnan(observations.real) @ np.log(self.hyperparameters.scale))

        def class_log_joint(theta: np.ndarray) -> np.ndarray:
            point = self._point(theta)
            parameters = RBFNetworkParameters(point.mixture, point.coefficients, point.intercepts)
            if not completions:
                return network.class_log_joint(parameters) + shift[:, None]
            log_p = mean_log_probabilities(
                observations,
                parameters,
                self.network,
                draws=completions,
                temperature=temperature,
                order=order,
            )
            return log_p + (network.log_density(point.mixture) + shift)[:, None]

        return class_log_joint

    def _discriminate(
        self, point: NetworkPoint, joint: JointPoint
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Log likelihood of the responses, its slopes, and the features."""
        log_weights = component_log_weights(point.mixture, self.specification)
        features = self._features.forward(joint.log_joint, log_weights)
        linear = features @ point.coefficients.T + point.intercepts
        return *self._output.evaluate(linear, point.noise_precision), features

    def _mixture_gradient(
        self, point: NetworkPoint, joint: JointPoint, slopes: np.ndarray, counts: np.ndarray
    ) -> np.ndarray:
        """Gradient in the mixture's coordinates, in the user's units."""
        result = self._prior.gradient(point.values, point.mixture, joint.statistics(slopes))
        for variable, place in coordinates.slices(self.variables):
            if variable.name == names.WEIGHTS:
                result[place] += coordinates.simplex_gradient(counts, point.mixture.weights)
        return result / self.scales[: self._hidden_dimension]
