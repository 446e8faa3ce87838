r"""The output layer alone: likelihood of the responses, and its fit under an elastic net.

Responses have a log likelihood given the linear output :math:`\eta`:

- classes: :math:`\log p(y | \eta) = \eta_y - \log \sum_c e^{\eta_c}`;
- numbers: :math:`\log p(y | \eta) = -\tfrac{\tau}{2} (y - \eta)^2
  + \tfrac12 \log \tau - \tfrac12 \log 2\pi`.

A hidden response says nothing. The fit is regression on fixed features f:

.. math::
   \max_{w, b} \sum_n v_n \log p(y_n \mid f_n' w + b)
       - \lambda_1 |w|_1 - \tfrac{\lambda_2}{2} |w|_2^2 - \tfrac{1}{2 s_b^2} |b|_2^2

It is concave for classes. Weights at zero are exactly zero, and the result carries its
certificate: the largest entry of the smallest subgradient.

See Zou and Hastie (2005), Regularization and variable selection via the elastic net, JRSS B 67.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.log_sums import log_sum_exp
from bayesrbf.numerics.mixture.gaussian import LOG_2PI
from bayesrbf.numerics.rbf_network.penalised_maximisation import (
    LARGEST,
    Smooth,
    ascend,
    maximise_in_halves,
    softmax_curvature,
)
from bayesrbf.records.rbf_network import RBFNetworkHyperparameters, RBFNetworkSpecification


@dataclass(frozen=True)
class Classes:
    """Softmax over classes; labels are class codes, -1 where hidden."""

    labels: Int[np.ndarray, " obs"]

    has_noise: ClassVar[bool] = False

    @property
    def known(self) -> Bool[np.ndarray, " obs"]:
        """Rows whose response is not hidden."""
        return self.labels >= 0

    def evaluate(
        self, linear: Float[np.ndarray, "obs output"], noise_precision: float
    ) -> tuple[
        Float[np.ndarray, " obs"], Float[np.ndarray, "obs output"], Float[np.ndarray, " obs"]
    ]:
        """Unweighted log likelihood in nats, and its derivatives.

        They are those of each row in its linear output and, all zero, in the noise precision,
        which classes do not have.
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
    """Gaussian noise about one linear output, the mean of the response."""

    targets: Float[np.ndarray, " obs"]  # Responses in standard units, NaN where hidden.
    scale: float = 1.0
    """Size of one standard unit in the user's: log densities are per unit of the user's."""

    has_noise: ClassVar[bool] = True

    @property
    def known(self) -> Bool[np.ndarray, " obs"]:
        """Rows whose response is not hidden."""
        return ~np.isnan(self.targets)

    def evaluate(
        self, linear: Float[np.ndarray, "obs output"], noise_precision: float
    ) -> tuple[
        Float[np.ndarray, " obs"], Float[np.ndarray, "obs output"], Float[np.ndarray, " obs"]
    ]:
        """Unweighted log likelihood in nats, and its derivatives.

        They are those of each row in its linear output and in the noise precision tau.
        """
        known = self.known
        residuals = np.where(known, self.targets - linear[:, 0], 0.0)
        constant = 0.5 * (np.log(noise_precision) - LOG_2PI) - np.log(self.scale)
        log_likelihood = constant * known
        log_likelihood -= 0.5 * noise_precision * residuals**2
        by_row = known * 0.5 / noise_precision - 0.5 * residuals**2
        return log_likelihood, noise_precision * residuals[:, None], by_row


Output = Classes | Numbers  # Responses that know their likelihood.


@dataclass(frozen=True)
class OutputLayer:
    """Weights of an output layer; exactly zero where they are not needed.

    ``noise_precision`` is that of a numeric response, 1 for classes. ``violation`` is the
    largest entry of the smallest subgradient, 0 at the optimum.
    """

    coefficients: Float[np.ndarray, "output component"]
    intercepts: Float[np.ndarray, " output"]
    noise_precision: float = 1.0
    violation: float = np.nan

    @classmethod
    def empty(cls, specification: RBFNetworkSpecification) -> OutputLayer:
        """The layer of zeros, which says the same of every row."""
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
    """The penalised likelihood without its kinks, over weights, biases and log precision."""

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
        """Coordinates of a layer."""
        parts = [layer.coefficients.reshape(-1), layer.intercepts]
        if self.output.has_noise:
            parts.append(np.array([np.log(layer.noise_precision)]))
        return np.concatenate(parts)

    def layer(self, theta: np.ndarray) -> OutputLayer:
        """The layer at given coordinates."""
        coefficients = theta[: self.size].reshape(self.start.coefficients.shape)
        noise = float(np.exp(theta[-1])) if self.output.has_noise else 1.0
        end = self.size + self.start.intercepts.size
        return OutputLayer(coefficients, theta[self.size : end], noise)

    def smooth(self, theta: np.ndarray) -> Smooth:
        """Value and gradient."""
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
        """Negative Hessian, of classes alone: numbers are not fitted with steps."""
        at = self.layer(theta)
        linear = self.features @ at.coefficients.T + at.intercepts
        known = self.weights * self.output.known
        likelihood = softmax_curvature(self.features, linear, known)
        return likelihood + np.diag(self._precisions)
