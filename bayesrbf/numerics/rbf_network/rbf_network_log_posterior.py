r"""Log posterior of an RBF network in the coordinates of its declared graph.

.. math::
   \log p = \sum_n v_n \bigl(\log p(y_n \mid f(x_n)) + \kappa \log p(x_n)\bigr)
       + \log p(\text{mixture}) + \log p(w, b) + \log p(\pi \mid w) / p(\pi)

One evaluation of the mixture gives value and gradient: the gradients of both likelihoods in
:math:`\log p(x_n, k)` are added up and carried to the coordinates together.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics import coordinates
from bayesrbf.numerics.log_posterior import OneByOne, Predictor
from bayesrbf.numerics.log_sums import component_log_weights, log_sum_exp
from bayesrbf.numerics.mixture.mixture_rows import MixtureOnRows
from bayesrbf.numerics.mixture.statistics import JointPoint
from bayesrbf.numerics.rbf_network.elastic_net_output import Output
from bayesrbf.numerics.rbf_network.network_prior import NetworkPoint, output_variables
from bayesrbf.numerics.rbf_network.network_rows import FeatureMap, Network, mean_log_probabilities
from bayesrbf.numerics.rbf_network.penalised_maximisation import Smooth
from bayesrbf.records import names
from bayesrbf.records.mixture import Observations
from bayesrbf.records.rbf_network import (
    RBFNetworkHyperparameters,
    RBFNetworkParameters,
    RBFNetworkSpecification,
)
from bayesrbf.records.results import ClassPrediction
from bayesrbf.records.specification import Order, Variable


class RBFNetworkLogPosterior(MixtureOnRows):
    """Log posterior of an RBF network, given a table.

    Rows are in standard units, and their labels are not used; the prior is in the user's units
    of the columns.
    """

    def __init__(
        self,
        observations: Observations,
        output: Output,
        network: RBFNetworkSpecification,
        prior: RBFNetworkHyperparameters,
    ) -> None:
        super().__init__(observations.unlabelled(), network.mixture, prior.mixture)
        self.network = network
        self.prior = prior
        self._output, self._output_variables = output, output_variables(network)
        self._weights = observations.weights
        self._features = FeatureMap(observations, network)
        self._shift = prior.kappa * float(self._weights @ self._row_shift) + self._prior_shift

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Free variables of the mixture, then those of the output layer."""
        return (*self.points.variables, *self._output_variables)

    @cached_property
    def scales(self) -> Float[np.ndarray, " coordinate"]:
        """Size of one unit of each coordinate; 1 in the output layer."""
        return np.append(self.points.scales, np.ones(self.dimension - self.points.dimension))

    @cached_property
    def coefficient_places(self) -> slice:
        """Where the output weights are among the coordinates."""
        places = {v.name: place for v, place in coordinates.slices(self.variables)}
        return places[names.COEFFICIENTS]

    def pack(  # type: ignore[override]
        self, parameters: RBFNetworkParameters
    ) -> Float[np.ndarray, " coordinate"]:
        """Coordinates of a point that is in the user's units."""
        output = {
            names.COEFFICIENTS: parameters.coefficients,
            names.INTERCEPTS: parameters.intercepts,
            names.NOISE_PRECISION: np.asarray(parameters.noise_precision),
        }
        hidden = self.points.pack(parameters.mixture)
        return np.append(hidden, coordinates.to_unconstrained(self._output_variables, output))

    def unpack(  # type: ignore[override]
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> RBFNetworkParameters:
        """Point in the user's units at given coordinates."""
        point = self._point(theta)
        mixture = point.mixture.in_units(self.points.units)
        return RBFNetworkParameters(
            mixture, point.coefficients, point.intercepts, point.noise_precision
        )

    def permute(
        self, theta: Float[np.ndarray, " coordinate"], order: Int[np.ndarray, " component"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Reorder components, and the output weights with them.

        Component k of the result is component ``order[k]``.
        """
        hidden, place = self.points.dimension, self.coefficient_places
        moved = np.append(self.points.permute(theta[:hidden], order), theta[hidden:])
        moved[place] = theta[place].reshape(-1, order.size)[:, order].reshape(-1)
        return moved

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log posterior density and its gradient, equal to the declared graph's.

        Both are in nats, in the user's units. Output weights are coordinates with their sign;
        at a zero of one, its derivative is the mean of both sides. ``jacobian`` adds the log
        determinant of the transforms.
        """
        smooth = self.smooth(theta)
        sizes = theta[self.coefficient_places]
        value = smooth.value - self.prior.l1 * float(np.abs(sizes).sum())
        gradient = smooth.gradient + smooth.by_size * np.sign(theta)
        gradient[self.coefficient_places] -= self.prior.l1 * np.sign(sizes)
        if jacobian:
            extra, extra_gradient = coordinates.log_jacobian(
                self.variables, self.constrained(theta)
            )
            value, gradient = value + extra, gradient + extra_gradient
        return value, gradient

    def smooth(self, theta: Float[np.ndarray, " coordinate"]) -> Smooth:
        """The log density without Jacobian, plus ``l1 sum |w|``, and its gradient.

        So the kinks of the Laplace factor are left out.
        """
        point = self._point(theta)
        joint = self._expectation.at(point.mixture)
        log_likelihood, by_linear, by_noise, features = self._discriminate(point, joint)
        log_density, responsibilities = log_sum_exp(joint.log_joint, axis=1)
        kappa = self.prior.kappa
        link = point.link(self.prior)
        value = float(self._weights @ (log_likelihood + kappa * log_density)) + self._shift
        value += self._prior.log_density(point.mixture)
        value += point.log_output_prior(self.prior, self.network) + link.value

        by_linear = self._weights[:, None] * by_linear
        by_joint = self._features.backward(features, by_linear @ point.coefficients)
        joint_gradient = by_joint + (kappa * self._weights)[:, None] * responsibilities
        # Other features see densities without weights: what the log joint passed on to the weights
        # is taken back.
        counts = link.counts if self._features.uses_weights else link.counts - by_joint.sum(axis=0)
        by_output = point.output_gradient(
            by_linear.T @ features,
            by_linear.sum(axis=0),
            float(self._weights @ by_noise),
            self.prior,
            self.network,
        )
        gradients = [self._mixture_gradient(point, joint, joint_gradient, counts), *by_output]
        by_size = np.zeros(self.dimension)
        by_size[self.coefficient_places] = np.tile(link.by_size, self.network.n_outputs)
        return Smooth(value, np.concatenate(gradients), by_size)

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Unweighted log likelihood of every row, in nats, in the user's units.

        It is ``log p(y_n | f(x_n)) + kappa log p(x_n)``.
        """
        point = self._point(theta)
        joint = self._expectation.at(point.mixture)
        log_density = log_sum_exp(joint.log_joint, axis=1)[0] + self._row_shift
        return self._discriminate(point, joint)[0] + self.prior.kappa * log_density

    def predictor(
        self,
        observations: Observations,
        completions: int = 0,
        temperature: float = 1.0,
        order: Order | None = None,
    ) -> Predictor:
        """Prepare new rows in standard units for predictions at many points.

        The result maps coordinates to class probabilities, and to the density in the user's units.
        Class probabilities are averaged over ``completions`` of a row with holes, a power of two,
        drawn in ``order``; with 0 they are those of the features ``f(x_o)``. Labels are not used.
        Multiplied by ``temperature``, the result gives the mean of calibrated probabilities.
        """
        network = Network(observations, self.network)
        shift = self.points.units.log_unit(observations)

        def predict(theta: np.ndarray) -> ClassPrediction:
            point = self._point(theta)
            parameters = RBFNetworkParameters(point.mixture, point.coefficients, point.intercepts)
            if not completions:
                by_features = network.predict(parameters)
                return replace(by_features, log_density=by_features.log_density + shift)
            log_p = mean_log_probabilities(
                observations,
                parameters,
                self.network,
                draws=completions,
                temperature=temperature,
                order=order,
            )
            return ClassPrediction(log_p, network.log_density(point.mixture) + shift)

        return OneByOne(predict)

    def _point(self, theta: np.ndarray) -> NetworkPoint:
        """Values and parameters in standard units."""
        hidden, output = np.split(theta, [self.points.dimension])
        values = coordinates.to_constrained(self._output_variables, output)
        return NetworkPoint(
            *self.points.at(hidden),
            values[names.COEFFICIENTS].reshape(-1, self.specification.n_components),
            np.atleast_1d(values[names.INTERCEPTS]),
            float(values.get(names.NOISE_PRECISION, 1.0)),
        )

    def _discriminate(
        self, point: NetworkPoint, joint: JointPoint
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Log likelihood of the responses, its derivatives, and the features."""
        log_weights = component_log_weights(point.mixture, self.specification)
        features = self._features.forward(joint.log_joint, log_weights)
        linear = features @ point.coefficients.T + point.intercepts
        return *self._output.evaluate(linear, point.noise_precision), features

    def _mixture_gradient(
        self, point: NetworkPoint, joint: JointPoint, joint_gradient: np.ndarray, counts: np.ndarray
    ) -> np.ndarray:
        """Gradient in the mixture's coordinates, in the user's units."""
        result = self._prior.gradient(point.values, point.mixture, joint.statistics(joint_gradient))
        for variable, place in coordinates.slices(self.variables):
            if variable.name == names.WEIGHTS:
                result[place] += coordinates.simplex_gradient(counts, point.mixture.weights)
        return result / self.points.scales
