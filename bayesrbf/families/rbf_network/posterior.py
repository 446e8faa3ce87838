"""Log posterior of an RBF network: prior, hidden layer, output layer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import digamma, erfcx, gammaln, logsumexp, ndtr, ndtri, stdtr, stdtrit
from scipy.stats import t as student

from bayesrbf.base import log_posterior as coordinates
from bayesrbf.base import names
from bayesrbf.base.arrays import component_log_weights, log_softmax, log_sum_exp
from bayesrbf.base.log_posterior import SMALLEST_PROBABILITY, OneByOne, Predictor
from bayesrbf.base.priors import ClassPrediction
from bayesrbf.base.rows import MixtureParameters, Observations, Order, Variable, in_blocks
from bayesrbf.families.rbf_network.maximise import (
    LARGEST,
    Smooth,
    ascend,
    maximise_in_halves,
    softmax_curvature,
)
from bayesrbf.families.rbf_network.records import (
    RBFNetworkHyperparameters,
    RBFNetworkParameters,
    RBFNetworkSpecification,
)
from bayesrbf.mixture.expectation import prepare
from bayesrbf.mixture.gaussian import LOG_2PI
from bayesrbf.mixture.missing import complete
from bayesrbf.mixture.posterior import MixtureOnRows
from bayesrbf.mixture.statistics import JointPoint

# The output layer alone: likelihood of the responses, and its fit under an elastic net.
#
# Responses have a log likelihood given the linear output :math:`\eta`:
#
# - classes: :math:`\log p(y | \eta) = \eta_y - \log \sum_c e^{\eta_c}`;
# - numbers: :math:`\log p(y | \eta) = -\tfrac{\tau}{2} (y - \eta)^2
#   + \tfrac12 \log \tau - \tfrac12 \log 2\pi`, in units whose size may differ from row to row.
#
# A hidden response says nothing. The fit is regression on fixed features f:
#
# .. math::
#    \max_{w, b} \sum_n v_n \log p(y_n \mid f_n' w + b)
#        - \lambda_1 |w|_1 - \tfrac{\lambda_2}{2} |w|_2^2 - \tfrac{1}{2 s_b^2} |b|_2^2
#
# It is concave for classes. Weights at zero are exactly zero, and the result carries its
# certificate: the largest entry of the smallest subgradient.
#
# See Zou and Hastie (2005), Regularization and variable selection via the elastic net, JRSS B 67.


@dataclass(frozen=True)
class Classes:
    """Softmax over classes; labels are class codes, -1 where hidden."""

    labels: Int[np.ndarray, " obs"]

    has_noise: ClassVar[bool] = False

    @property
    def known(self) -> Bool[np.ndarray, " obs"]:
        """Mask of rows with a response."""
        return self.labels >= 0

    def evaluate(
        self, linear: Float[np.ndarray, "obs output"], noise_precision: float
    ) -> tuple[
        Float[np.ndarray, " obs"], Float[np.ndarray, "obs output"], Float[np.ndarray, " obs"]
    ]:
        """Unweighted log likelihood of each row in nats, and its derivatives.

        Derivatives are in the linear outputs, and in the noise precision: 0, as classes have none.
        """
        known = self.known
        log_sums, probabilities = log_sum_exp(linear, axis=1)
        # A hidden label points at class 0; what comes of it is zeroed below.
        target = np.maximum(self.labels, 0)
        rows = np.arange(len(linear))
        log_likelihood = np.where(known, linear[rows, target] - log_sums, 0.0)
        by_linear = -probabilities
        by_linear[rows, target] += 1.0
        by_linear[~known] = 0.0
        return log_likelihood, by_linear, np.zeros(len(linear))


@dataclass(frozen=True)
class Numbers:
    """Gaussian noise about one linear output, the mean of the response or of its logarithm."""

    targets: Float[np.ndarray, " obs"]
    """Responses or their logarithms in standard units, NaN where hidden."""
    log_units: Float[np.ndarray, " obs"] | float = 0.0
    """Log size of one standard unit in the user's, at each response: log densities are per unit of
    the user's."""

    has_noise: ClassVar[bool] = True

    @property
    def known(self) -> Bool[np.ndarray, " obs"]:
        """Mask of rows with a response."""
        return ~np.isnan(self.targets)

    def evaluate(
        self, linear: Float[np.ndarray, "obs output"], noise_precision: float
    ) -> tuple[
        Float[np.ndarray, " obs"], Float[np.ndarray, "obs output"], Float[np.ndarray, " obs"]
    ]:
        """Unweighted log likelihood of each row in nats, and its derivatives.

        Derivatives are in the linear output and in the noise precision tau.
        """
        known = self.known
        residuals = np.where(known, self.targets - linear[:, 0], 0.0)
        constant = 0.5 * (np.log(noise_precision) - LOG_2PI)
        log_likelihood = (constant - self.log_units) * known
        log_likelihood -= 0.5 * noise_precision * residuals**2
        by_row = known * 0.5 / noise_precision - 0.5 * residuals**2
        return log_likelihood, noise_precision * residuals[:, None], by_row


Output = Classes | Numbers  # Responses that know their likelihood.


@dataclass(frozen=True)
class OutputLayer:
    """Weights of an output layer; exactly zero where they are not needed.

    ``noise_precision`` is 1 for classes. ``violation`` is the largest entry of the smallest
    subgradient, 0 at the optimum.
    """

    coefficients: Float[np.ndarray, "output component"]
    intercepts: Float[np.ndarray, " output"]
    noise_precision: float = 1.0
    violation: float = np.nan

    @classmethod
    def empty(cls, specification: RBFNetworkSpecification) -> OutputLayer:
        """The layer with all weights and biases 0."""
        shape = (specification.n_outputs, specification.mixture.n_components)
        return cls(np.zeros(shape), np.zeros(specification.n_outputs))


def fit_output_layer(
    features: Float[np.ndarray, "obs component"],
    output: Output,
    weights: Float[np.ndarray, " obs"],
    hyperparameters: RBFNetworkHyperparameters,
    start: OutputLayer,
    *,
    max_iter: int = 1000,
    tolerance: float = 1e-10,
) -> OutputLayer:
    """Fit the output layer to fixed features.

    Of the hyperparameters ``l1``, ``l2``, ``intercept_scale`` (infinite: intercepts are free)
    and the prior of the noise count; the link does not. The search ends when an iteration gains
    no more than ``tolerance``, in nats per unit of row weight, or no gradient exceeds it.
    """
    problem = _PenalisedLikelihood(features, output, weights, start, hyperparameters)
    theta = problem.coordinates(start)
    tolerance *= max(1.0, float(weights.sum()))
    if problem.has_steps:
        theta = ascend(
            problem.smooth, problem.curvature, theta, max_iter=max_iter, tolerance=tolerance
        )
        violation = float(np.abs(problem.smooth(theta).gradient).max())
        return replace(problem.layer(theta), violation=violation)
    split = np.arange(theta.size) < problem.size
    found = maximise_in_halves(
        problem.smooth,
        theta,
        np.where(split, hyperparameters.l1, 0.0),
        split & (hyperparameters.l1 > 0),
        max_iter=max_iter,
        tolerance=tolerance,
    )
    return replace(problem.layer(found.theta), violation=found.violation)


@dataclass(frozen=True)
class _PenalisedLikelihood:
    """Penalised likelihood without the l1 term, over weights, biases and log noise precision."""

    features: np.ndarray
    output: Output
    weights: np.ndarray
    start: OutputLayer
    hyperparameters: RBFNetworkHyperparameters

    @property
    def size(self) -> int:
        """Number of output weights."""
        return self.start.coefficients.size

    @property
    def has_steps(self) -> bool:
        """Whether Newton's method applies: classes, no kink, few weights, all penalised."""
        prior = self.hyperparameters
        smooth = not self.output.has_noise and prior.l1 == 0 < prior.l2
        return smooth and self.size + self.start.intercepts.size <= LARGEST

    @cached_property
    def _precisions(self) -> np.ndarray:
        """Precisions of the normal prior of weights and biases."""
        free = 1 / self.hyperparameters.intercept_scale**2
        return np.repeat([self.hyperparameters.l2, free], [self.size, self.start.intercepts.size])

    def coordinates(self, layer: OutputLayer) -> np.ndarray:
        """Weights, biases and log noise precision of a layer as one vector."""
        blocks = [layer.coefficients.reshape(-1), layer.intercepts]
        if self.output.has_noise:
            blocks.append(np.array([np.log(layer.noise_precision)]))
        return np.concatenate(blocks)

    def layer(self, theta: np.ndarray) -> OutputLayer:
        """Output layer from coordinates ``theta``."""
        coefficients = theta[: self.size].reshape(self.start.coefficients.shape)
        noise = float(np.exp(theta[-1])) if self.output.has_noise else 1.0
        end = self.size + self.start.intercepts.size
        return OutputLayer(coefficients, theta[self.size : end], noise)

    def smooth(self, theta: np.ndarray) -> Smooth:
        """Log posterior of the layer in nats without the l1 penalty, and its gradient."""
        at, prior = self.layer(theta), self.hyperparameters
        linear = self.features @ at.coefficients.T + at.intercepts
        log_likelihood, by_linear, by_noise = self.output.evaluate(linear, at.noise_precision)
        by_linear = self.weights[:, None] * by_linear
        precisions = self._precisions
        layer = theta[: precisions.size]
        value = float(self.weights @ log_likelihood) - 0.5 * float(precisions @ layer**2)
        by_weight = (by_linear.T @ self.features).reshape(-1)
        gradient = np.concatenate([by_weight, by_linear.sum(axis=0)]) - precisions * layer
        if self.output.has_noise:
            value += prior.log_noise(at.noise_precision)
            total = float(self.weights @ by_noise) + prior.noise_slope(at.noise_precision)
            # The coordinate is the log of the precision, whose derivative is the precision.
            gradient = np.append(gradient, at.noise_precision * total)
        return Smooth(value, gradient, np.zeros(theta.size))

    def curvature(self, theta: np.ndarray) -> np.ndarray:
        """Negative Hessian of the log posterior; for classes only."""
        at = self.layer(theta)
        linear = self.features @ at.coefficients.T + at.intercepts
        known = self.weights * self.output.known
        likelihood = softmax_curvature(self.features, linear, known)
        return likelihood + np.diag(self._precisions)


# Priors of the output layer and the link to the mixture weights, at one point of a network.
#
# .. math::
#    \log p(w) &= -\lambda_1 |w| - \lambda_2 w^2 / 2 - \log Z, \quad
#    Z = \sqrt{2\pi / \lambda_2}\; \mathrm{erfcx}(\lambda_1 / \sqrt{2 \lambda_2}), \\
#    \log p(\pi \mid w) &= \log \mathrm{Dirichlet}(\pi; a + \gamma s(w))
#
# The prior of the mixture contains :math:`\mathrm{Dirichlet}(a)`; the difference by the link is
# computed here. Derivatives in :math:`|w|` and in w are separate: the former has a kink at zero,
# which gives exact zeros.


SMALLEST_SIZE = 1e-6
"""epsilon: relative sizes of output weights stay defined where all weights are zero."""


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
    """Log density of the link at one point, and its derivatives."""

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
        """Evaluate the link; 0 for a mixture of one component.

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
    if specification.response != "classes":
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
    """Parameters at one point in standard units, and the graph's free variables by name.

    ``noise_precision`` is 1 for classes.
    """

    values: dict[str, np.ndarray]
    mixture: MixtureParameters
    coefficients: Float[np.ndarray, "output component"]
    intercepts: Float[np.ndarray, " output"]
    noise_precision: float

    def link(self, prior: RBFNetworkHyperparameters) -> Link:
        """Link term of the prior of the mixture weights."""
        concentration = prior.mixture.weight_concentration
        return Link.at(self.mixture.weights, self.coefficients, concentration, prior.link)

    def log_output_prior(
        self, prior: RBFNetworkHyperparameters, network: RBFNetworkSpecification
    ) -> float:
        """Log prior of the output layer plus ``l1 sum |w|``, in nats: without link and kinks."""
        total = log_output_prior(self.coefficients, self.intercepts, prior)
        total += prior.l1 * float(np.abs(self.coefficients).sum())
        if network.response != "classes":
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
        gradients = [by_coefficient.reshape(-1), by_intercept]
        if network.response != "classes":
            derivative = by_noise + prior.noise_slope(self.noise_precision)
            gradients.append(np.array([self.noise_precision * derivative]))
        return gradients


# New rows under an RBF network: features, linear outputs, log joints.
#
# Features are the inputs of the output layer. With
# :math:`\ell_{nk} = \log \pi_k + \log p(x_{n,o} \mid k)` in standard units:
#
# - ``responsibility``: :math:`f_{nk} = e^{\ell_{nk}} / \sum_j e^{\ell_{nj}}`;
# - ``density``: :math:`f_{nk} = (2\pi)^{|o|/2} p(x_{n,o} \mid k)`, so that a standard
#   normal peaks at 1 whatever the number of observed cells;
# - ``log_density``: the logarithm of that, divided by the number of columns.
#
# Missing cells are integrated out in all features. A network trained on complete rows has seen no
# features of rows with missing cells. Its predictions average over completions of such a row, drawn
# from the hidden layer:
#
# .. math:: p(y | x_o) = \int p(y | x) \, p(x_m | x_o) \, dx_m


LARGEST_LOG_DENSITY = 300.0
"""Log densities are clipped here: with many columns, densities could overflow."""


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
        """Whether the features depend on the mixture weights."""
        return self._kind == "responsibility"

    def forward(
        self,
        log_joint: Float[np.ndarray, "obs component"],
        log_weights: Float[np.ndarray, " component"],
    ) -> Float[np.ndarray, "obs component"]:
        """Features from ``log pi_k + log p(x_o | k)`` and ``log pi_k`` in nats."""
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
        """Gradient in the log joints from a gradient in the features, at fixed log weights.

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
        """Features from log joints at the hidden layer ``mixture``."""
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
        # A complete row has a single point, repeated for all draws.
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
    for block in in_blocks(max(observations.n_obs, 1), draws * n_columns):
        yield observations.take(block)


# Log posterior of an RBF network in the coordinates of its declared graph.
#
# .. math::
#    \log p = \sum_n v_n \bigl(\log p(y_n \mid f(x_n)) + \kappa \log p(x_n)\bigr)
#        + \log p(\text{mixture}) + \log p(w, b) + \log p(\pi \mid w) / p(\pi)
#
# One evaluation of the mixture gives value and gradient: the gradients of both likelihoods in
# :math:`\log p(x_n, k)` are added up and carried to the coordinates together.


class RBFNetworkLogPosterior(MixtureOnRows):
    """Log posterior of an RBF network, given a table.

    Rows are in standard units, and their labels are not used; the prior is in the user's units
    of the columns.
    """

    no_prior = "l1, l2, link and kappa regularise a network: no power of them is a weaker belief"

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
        """Free variables of the mixture, then of the output layer."""
        return (*self.points.variables, *self._output_variables)

    @cached_property
    def scales(self) -> Float[np.ndarray, " coordinate"]:
        """Size of one unit of each coordinate; 1 in the output layer."""
        return np.append(self.points.scales, np.ones(self.dimension - self.points.dimension))

    @cached_property
    def coefficient_slice(self) -> slice:
        """Slice of the output weights among the coordinates."""
        positions = {v.name: position for v, position in coordinates.slices(self.variables)}
        return positions[names.COEFFICIENTS]

    def pack(  # type: ignore[override]
        self, parameters: RBFNetworkParameters
    ) -> Float[np.ndarray, " coordinate"]:
        """Unconstrained coordinates of parameters in the user's units."""
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
        """Parameters in the user's units at coordinates ``theta``."""
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
        hidden, coefficients = self.points.dimension, self.coefficient_slice
        permuted = np.append(self.points.permute(theta[:hidden], order), theta[hidden:])
        permuted[coefficients] = theta[coefficients].reshape(-1, order.size)[:, order].reshape(-1)
        return permuted

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log posterior density and its gradient, equal to the declared graph's.

        Both are in nats, in the user's units. Output weights are coordinates with their sign;
        at a zero of one, its derivative is the mean of both sides. ``jacobian`` adds the log
        determinant of the transforms.
        """
        smooth = self.smooth(theta)
        sizes = theta[self.coefficient_slice]
        value = smooth.value - self.prior.l1 * float(np.abs(sizes).sum())
        gradient = smooth.gradient + smooth.by_size * np.sign(theta)
        gradient[self.coefficient_slice] -= self.prior.l1 * np.sign(sizes)
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
        by_size[self.coefficient_slice] = np.tile(link.by_size, self.network.n_outputs)
        return Smooth(value, np.concatenate(gradients), by_size)

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Unweighted log likelihood of every row, in nats, in the user's units.

        It is ``log p(y_n | f(x_n)) + kappa log p(x_n)``.
        """
        point = self._point(theta)
        joint = self._expectation.at(point.mixture)
        log_density = log_sum_exp(joint.log_joint, axis=1)[0] + self._row_shift
        return self._discriminate(point, joint)[0] + self.prior.kappa * log_density

    def label_log_likelihoods(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point obs"]:
        """``log p(y_n | f(x_n))`` of every row at many points; 0 where the response is hidden."""
        points = (self._point(theta) for theta in thetas)
        joint = self._expectation.at
        return np.stack([self._discriminate(point, joint(point.mixture))[0] for point in points])

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
        """Parameters and free variables in standard units at coordinates ``theta``."""
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
        for variable, positions in coordinates.slices(self.variables):
            if variable.name == names.WEIGHTS:
                result[positions] += coordinates.simplex_gradient(counts, point.mixture.weights)
        return result / self.points.scales


# Predictive laws of a number: equal mixtures of normals or Student's t, one a draw.


BISECTIONS = 60  # Halvings of a bracket: 1e-18 of its width, below rounding.


@dataclass(frozen=True)
class StudentMixture:
    """Equal mixture of Student's t (normals, if ``df`` is infinite), one mixture a row.

    >>> normal = StudentMixture(np.array([[1.0], [1.0]]), np.ones(2))
    >>> normal.quantile(0.975).round(2)
    array([2.96])
    >>> StudentMixture(np.zeros((1, 1)), np.full(1, 2.0), df=4.0).sd().round(3)
    array([2.828])
    """

    locations: Float[np.ndarray, "draw obs"]
    """Mean of each row under each draw of parameters or missing cells."""
    scales: Float[np.ndarray, " draw"]  # Scale under each draw, in the units of the response.
    df: float = np.inf  # Degrees of freedom, above 2.

    figures: ClassVar[tuple[str, str, str]] = "mean", "sd", "sd_of_mean"
    """Names of :meth:`centre`, :meth:`sd` and :meth:`sd_of_mean`."""

    def centre(self) -> Float[np.ndarray, " obs"]:
        """Predictive mean of each response."""
        return self.locations.mean(axis=0)

    def sd_of_mean(self) -> Float[np.ndarray, " obs"]:
        """Standard deviation of the mean over draws: predictive spread without noise."""
        return self.locations.std(axis=0)

    def sd(self) -> Float[np.ndarray, " obs"]:
        """Predictive standard deviation: noise variance plus ``sd_of_mean()^2``, square root."""
        noise = (self.scales**2).mean() / (1 - 2 / self.df)
        return np.sqrt(self.sd_of_mean() ** 2 + noise)

    def interval(self, prob: float) -> Float[np.ndarray, "obs 2"]:
        """Equal-tailed interval of each response; ``prob`` is the probability inside."""
        ends = [self.quantile(tail) for tail in ((1 - prob) / 2, (1 + prob) / 2)]
        return np.stack(ends, axis=1)

    def quantile(self, prob: float) -> Float[np.ndarray, " obs"]:
        """Quantile of each response, by bisection between the extreme quantiles of single draws.

        ``prob`` is the probability below the quantile, within (0, 1).
        """
        single = self.locations + self.scales[:, None] * _standard_quantile(prob, self.df)
        lower, upper = single.min(axis=0), single.max(axis=0)
        if len(self.locations) == 1:
            return lower
        # The quantile of a mixture lies between the extreme quantiles of its components.
        for _ in range(BISECTIONS):
            middle = 0.5 * (lower + upper)
            scaled = (middle - self.locations) / self.scales[:, None]
            below = _standard_cdf(scaled, self.df).mean(axis=0) < prob
            lower, upper = np.where(below, middle, lower), np.where(below, upper, middle)
        return 0.5 * (lower + upper)

    def log_density(self, values: Float[np.ndarray, " obs"]) -> Float[np.ndarray, " obs"]:
        """Log density at ``values`` in nats, per unit of the response."""
        scales = self.scales[:, None]
        log_densities = student.logpdf((values - self.locations) / scales, self.df) - np.log(scales)
        return logsumexp(log_densities, axis=0) - np.log(len(log_densities))

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, " obs"]:
        """One draw of each row's response."""
        n_draws, n_obs = self.locations.shape
        chosen = rng.integers(n_draws, size=n_obs)
        noise = _standard_quantile(rng.random(n_obs), self.df)
        return self.locations[chosen, np.arange(n_obs)] + self.scales[chosen] * noise


def _standard_cdf(values: np.ndarray, df: float) -> np.ndarray:
    """Distribution function of Student's t or, for infinite ``df``, the standard normal."""
    # scipy.stats takes ten times as long.
    return np.asarray(ndtr(values) if np.isinf(df) else stdtr(df, values))


def _standard_quantile(prob: float | np.ndarray, df: float) -> np.ndarray:
    """Quantiles of Student's t or, for infinite ``df``, of the standard normal."""
    return np.asarray(ndtri(prob) if np.isinf(df) else stdtrit(df, prob))
