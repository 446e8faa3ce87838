r"""New rows under an RBF network: features, linear outputs, log joints.

The features are what the hidden layer tells the output layer. With
:math:`\ell_{nk} = \log \pi_k + \log p(x_{n,o} \mid k)` in standard units:

- ``responsibility``: :math:`f_{nk} = e^{\ell_{nk}} / \sum_j e^{\ell_{nj}}`;
- ``density``: :math:`f_{nk} = (2\pi)^{|o|/2} p(x_{n,o} \mid k)`, so that a standard
  normal peaks at 1 whatever the number of observed cells;
- ``log_density``: the logarithm of that, divided by the number of columns.

Missing cells are marginalised in all of them. A network that was trained on complete rows
knows no features of rows with holes. It is asked about completions of such a row, which are
drawn by its hidden layer:

.. math:: p(y | x_o) = \int p(y | x) \, p(x_m | x_o) \, dx_m
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from bayesrbf.numerics.log_sums import component_log_weights, log_softmax, log_sum_exp
from bayesrbf.numerics.mixture.completion import complete
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.gaussian import LOG_2PI
from bayesrbf.records.mixture import MixtureParameters, Observations, in_blocks
from bayesrbf.records.rbf_network import RBFNetworkParameters, RBFNetworkSpecification
from bayesrbf.records.results import ClassPrediction
from bayesrbf.records.specification import Order

LARGEST_LOG_DENSITY = 300.0
"""Log densities are cut off here, and flat beyond. In many columns they could leave the range of
floats."""


class FeatureMap:
    """Features of the rows of one table in standard units."""

    def __init__(self, observations: Observations, specification: RBFNetworkSpecification) -> None:
        self._kind = specification.features
        observed = (~np.isnan(observations.real)).sum(axis=1)
        self._constants = 0.5 * LOG_2PI * observed[:, None]
        cells = specification.mixture.n_features + len(specification.mixture.levels)
        self._per_cell = 1.0 / cells

    @property
    def uses_weights(self) -> bool:
        """Whether the mixture weights are part of the features."""
        return self._kind == "responsibility"

    def forward(
        self,
        log_joint: Float[np.ndarray, "obs component"],
        log_weights: Float[np.ndarray, " component"],
    ) -> Float[np.ndarray, "obs component"]:
        """Features, given the log joints ``log pi_k + log p(x_o | k)`` in nats and log weights."""
        if self._kind == "responsibility":
            return log_sum_exp(log_joint, axis=1)[1]
        log_density = log_joint - log_weights + self._constants
        if self._kind == "log_density":
            return log_density * self._per_cell
        return np.exp(np.minimum(log_density, LARGEST_LOG_DENSITY))

    def backward(
        self,
        features: Float[np.ndarray, "obs component"],
        gradient: Float[np.ndarray, "obs component"],
    ) -> Float[np.ndarray, "obs component"]:
        """Carry a gradient in the features to one in the log joints, at fixed log weights.

        ``features`` are what :meth:`forward` returned.
        """
        if self._kind == "log_density":
            return gradient * self._per_cell
        result = gradient * features
        if self._kind == "density":
            result[features >= np.exp(LARGEST_LOG_DENSITY)] = 0.0  # flat where it is cut off
        if self._kind == "responsibility":
            # The Jacobian of a softmax: f (g - sum f g).
            result -= features * result.sum(axis=1, keepdims=True)
        return result


class Network:
    """New rows in standard units, prepared for the outputs of a network; labels are not used."""

    def __init__(self, observations: Observations, specification: RBFNetworkSpecification) -> None:
        self._specification = specification
        self._expectation = prepare(observations.unlabelled(), specification.mixture)
        self._features = FeatureMap(observations, specification)

    def features(self, mixture: MixtureParameters) -> Float[np.ndarray, "obs component"]:
        """Features f at a hidden layer in standard units."""
        return self._features_of(mixture, self._expectation.component_log_joint(mixture))

    def linear(self, parameters: RBFNetworkParameters) -> Float[np.ndarray, "obs output"]:
        """Linear outputs ``f w + b``."""
        features = self.features(parameters.mixture)
        return features @ parameters.coefficients.T + parameters.intercepts

    def log_density(self, mixture: MixtureParameters) -> Float[np.ndarray, " obs"]:
        """Log density ``log p(x_o)`` of the observed cells, in nats, in standard units."""
        return log_sum_exp(self._expectation.component_log_joint(mixture), axis=1)[0]

    def predict(self, parameters: RBFNetworkParameters) -> ClassPrediction:
        """Class probabilities, and the density in standard units."""
        log_joint = self._expectation.component_log_joint(parameters.mixture)
        features = self._features_of(parameters.mixture, log_joint)
        linear = features @ parameters.coefficients.T + parameters.intercepts
        return ClassPrediction(linear, log_sum_exp(log_joint, axis=1)[0])

    def _features_of(self, mixture: MixtureParameters, log_joint: np.ndarray) -> np.ndarray:
        """Features of rows whose log joints are known."""
        log_weights = component_log_weights(mixture, self._specification.mixture)
        return self._features.forward(log_joint, log_weights)


def completed_linear(
    observations: Observations,
    parameters: RBFNetworkParameters,
    specification: RBFNetworkSpecification,
    *,
    draws: int,
    replicate: int = 0,
    order: Order | None = None,
) -> Float[np.ndarray, "draw obs output"]:
    """Linear outputs ``f w + b`` of completions of rows, drawn by the hidden layer.

    Rows are in standard units; labels and weights are not used. A row with holes has ``draws``
    completions, a power of two; a complete row is the same in all. ``replicate`` numbers
    independent sets of draws, and cells are drawn in ``order``.
    """
    results = []
    for rows in _blocks(observations, draws):
        points, starts = complete(
            rows,
            parameters.mixture,
            specification.mixture,
            draws=draws,
            replicate=replicate,
            order=order,
        )
        linear = Network(points, specification).linear(parameters)
        # A complete row has a single point, which stands for all draws.
        last = np.diff(starts, append=points.n_obs) - 1
        results.append(linear[starts + np.minimum(np.arange(draws)[:, None], last)])
    return np.concatenate(results, axis=1)


def mean_log_probabilities(
    observations: Observations,
    parameters: RBFNetworkParameters,
    specification: RBFNetworkSpecification,
    *,
    draws: int,
    temperature: float = 1.0,
    order: Order | None = None,
) -> Float[np.ndarray, "obs label"]:
    """Log of the mean class probabilities over completions, as for :func:`completed_linear`.

    The ``temperature`` t multiplies the log probabilities of a complete row. Each completion is
    calibrated on its own, and the result is what t will be applied to:
    ``log mean_s softmax(t eta_s) / t``, normalised. So t times it is ``log p(c | x_o)`` up to a
    constant per row.
    """
    results = []
    for rows in _blocks(observations, draws):
        linear = completed_linear(rows, parameters, specification, draws=draws, order=order)
        log_p = log_softmax(temperature * linear, axis=2)
        results.append(log_softmax(logsumexp(log_p, axis=0) / temperature, axis=1))
    return np.concatenate(results)


def _blocks(observations: Observations, draws: int) -> Iterator[Observations]:
    """Rows in blocks whose completions are of limited size; at least one block."""
    n_columns = observations.real.shape[1] + observations.codes.shape[1]
    for part in in_blocks(max(observations.n_obs, 1), draws * n_columns):
        yield observations.take(part)
