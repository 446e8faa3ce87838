r"""The rounds of published schemes: EM for the hidden layer, regression for the output layer.

One round, at mixture :math:`\phi` and output weights w:

1. E-step and M-step of the mixture (of each mixture, where every output has its own, on
   all rows);
2. features at the new mixture, and the output layer on them, from the previous weights;
3. the link, after the output layer: :math:`\pi_k \propto n_k + a - 1 + \gamma s_k(w)`,
   or :math:`\pi = s(w)` for infinite gamma.

Each step raises an objective, but not the same one: at :math:`\gamma > 0` no single objective
rises in all steps. So the joint objective is recorded in every round and its falls counted.

See Ferreira and Figueiredo (2006), Hybrid generative/discriminative training of radial basis
function networks, ESANN: EM-LR, EM-LR-Link, EM-LR-Link-K. Caetano (2018): responsibilities as
features (eq. 20), the Dirichlet link (eq. 21), imputation (eqs. 12-13).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.log_sums import class_log_joint, component_log_weights
from bayesrbf.numerics.mixture.conditional import conditional_moments, conditional_probabilities
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.mixture_prior import DeclaredPrior
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.numerics.mixture.statistics import Statistics
from bayesrbf.numerics.rbf_network.elastic_net_output import Output, OutputLayer, fit_output_layer
from bayesrbf.numerics.rbf_network.network_prior import Link, log_output_prior, relative_sizes
from bayesrbf.numerics.rbf_network.network_rows import FeatureMap
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.rbf_network import (
    RBFNetworkHyperparameters,
    RBFNetworkParameters,
    RBFNetworkSpecification,
)


@dataclass(frozen=True)
class Round:
    """Results of evaluating a network at one hidden layer."""

    statistics: Statistics  # EM's statistics of every mixture on all rows.
    features: Float[np.ndarray, "obs component"]
    generative: float  # ``sum_n v_n log p(x_n)``, over all mixtures, in nats.


class Alternation:
    """The rounds of a published scheme on one table.

    Rows and prior are in standard units; labels are not used. An infinite link is the hard
    link. With ``impute``, missing cells are filled in at every round rather than summed out.
    """

    def __init__(
        self,
        observations: Observations,
        output: Output,
        specification: RBFNetworkSpecification,
        hyperparameters: RBFNetworkHyperparameters,
        impute: bool = False,
    ) -> None:
        self.observations = observations
        self.output = output
        self.specification = specification
        self.hyperparameters = hyperparameters
        self._impute = impute
        self._declared = DeclaredPrior(hyperparameters.mixture, specification.mixture)
        self._expectation = prepare(observations.unlabelled(), specification.mixture)
        self._feature_map = FeatureMap(observations, specification)
        self._last: tuple[MixtureParameters, Round] | None = None

    def evaluate(self, mixture: MixtureParameters) -> Round:
        """Take the E-step of every mixture, and the features."""
        # Kept, because a round ends at the mixture where the next one begins.
        if self._last is None or self._last[0] is not mixture:
            self._last = mixture, self._evaluated(mixture)
        return self._last[1]

    def _evaluated(self, mixture: MixtureParameters) -> Round:
        """Statistics, features and log density at a mixture."""
        structure = self.specification.mixture
        expectation, feature_map = self._expectation, self._feature_map
        if self._impute:
            rows = imputed(self.observations, mixture, self.specification)
            expectation = prepare(rows.unlabelled(), structure)
            feature_map = FeatureMap(rows, self.specification)
        joint = expectation.at(mixture)
        by_class, responsibilities = class_log_joint(joint.log_joint, structure.class_slices)
        # Every mixture is a density of its own; the probability of its class is no part of it.
        log_density = (by_class - np.log(mixture.class_probabilities)).sum(axis=1)
        generative = float(self.observations.weights @ log_density)
        features = feature_map.forward(joint.log_joint, component_log_weights(mixture, structure))
        weighted = self.observations.weights[:, None] * responsibilities
        return Round(joint.statistics(weighted), features, generative)

    def step(self, parameters: RBFNetworkParameters) -> RBFNetworkParameters:
        """Run one round."""
        statistics = self.evaluate(parameters.mixture).statistics
        laws, prior = laws_of(self.specification.mixture), self.hyperparameters.mixture
        following = laws.mode(statistics, parameters.mixture, prior)
        following = replace(following, class_probabilities=parameters.mixture.class_probabilities)
        return self.with_output(following, parameters, statistics.counts)

    def with_output(
        self,
        mixture: MixtureParameters,
        start: RBFNetworkParameters,
        counts: Float[np.ndarray, " component"],
    ) -> RBFNetworkParameters:
        """Fit the output layer to a mixture, then link the mixture weights to it.

        ``start`` is where the output layer begins; ``counts`` are the expected rows of every
        component.
        """
        layer = fit_output_layer(
            self.evaluate(mixture).features,
            self.output,
            self.observations.weights,
            self.specification,
            self.hyperparameters,
            OutputLayer(start.coefficients, start.intercepts, start.noise_precision),
        )
        linked = replace(mixture, weights=self._linked(counts, layer.coefficients))
        return RBFNetworkParameters(
            linked, layer.coefficients, layer.intercepts, layer.noise_precision
        )

    def _linked(self, counts: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Mixture weights under the link."""
        gamma, structure = self.hyperparameters.link, self.specification.mixture
        sizes = relative_sizes(coefficients, self.specification)
        if np.isinf(gamma):
            return sizes
        pulled = counts + self.hyperparameters.mixture.weight_concentration - 1 + gamma * sizes
        parts = [pulled[part] / pulled[part].sum() for part in structure.class_slices]
        return np.concatenate(parts)

    def objectives(self, parameters: RBFNetworkParameters) -> tuple[float, float]:
        """Joint objective, and conditional log likelihood, in nats.

        The latter is ``sum_n v_n log p(y_n | f(x_n))``. The joint objective is without the link
        where that is infinite, and with free intercepts where their scale is.
        """
        at, prior = self.evaluate(parameters.mixture), self.hyperparameters
        linear = at.features @ parameters.coefficients.T + parameters.intercepts
        by_row = self.output.evaluate(linear, parameters.noise_precision)[0]
        conditional = float(self.observations.weights @ by_row)
        joint = conditional + prior.kappa * at.generative + self._log_prior(parameters)
        return joint, conditional

    def _log_prior(self, parameters: RBFNetworkParameters) -> float:
        """Log prior of hidden layer, output layer and, where finite, link."""
        prior = self.hyperparameters
        total = self._declared.log_density(parameters.mixture)
        free = parameters.coefficients[self.specification.connected]
        total += log_output_prior(free, parameters.intercepts, prior)
        if self.specification.response == "number":
            total += prior.log_noise(parameters.noise_precision)
        if np.isinf(prior.link):
            return total
        return (
            total
            + Link.at(
                parameters.mixture.weights,
                parameters.coefficients,
                prior.mixture.weight_concentration,
                prior.link,
                self.specification,
            ).value
        )


def imputed(
    observations: Observations, mixture: MixtureParameters, specification: RBFNetworkSpecification
) -> Observations:
    """Rows with their missing cells filled in by the mixture.

    Reals are at their conditional mean, categories at their most probable level.
    """
    hidden = observations.unlabelled()
    real, _ = conditional_moments(hidden, mixture, specification.mixture)
    levels = conditional_probabilities(hidden, mixture, specification.mixture)
    codes = observations.codes.copy()
    for column, probabilities in enumerate(levels):
        codes[:, column] = probabilities.argmax(axis=1)
    return replace(observations, real=real, codes=codes)
