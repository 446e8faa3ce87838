r"""The output layer alone: regression on fixed features under an elastic net.

.. math::
   \max_{w, b} \sum_n v_n \log p(y_n \mid f_n' w + b)
       - \lambda_1 |w|_1 - \tfrac{\lambda_2}{2} |w|_2^2 - \tfrac{1}{2 s_b^2} |b|_2^2

Concave for classes. Weights at zero are exactly zero, and the answer carries its
certificate: the largest entry of the smallest subgradient.

References
----------
Zou and Hastie (2005), Regularization and variable selection via the elastic net,
JRSS B 67, 301-320.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.rbf_network.halves import Smooth, maximise_in_halves
from bayesrbf.numerics.rbf_network.newton import LARGEST, ascend, softmax_curvature
from bayesrbf.numerics.rbf_network.output import Classes, Numbers, Output
from bayesrbf.rbf_parameters import RBFNetworkHyperparameters, RBFNetworkSpecification


@dataclass(frozen=True)
class OutputLayer:
    """Weights of an output layer.

    Attributes
    ----------
    coefficients : ndarray of shape (n_outputs, n_components)
        Output weights w; exactly zero where they are not needed.
    intercepts : ndarray of shape (n_outputs,)
        Biases b.
    noise_precision : float
        Precision of a numeric response; 1 for classes.
    violation : float
        Largest entry of the smallest subgradient: 0 at the optimum.
    """

    coefficients: Float[np.ndarray, "output component"]
    intercepts: Float[np.ndarray, " output"]
    noise_precision: float = 1.0
    violation: float = np.nan

    @classmethod
    def empty(cls, specification: RBFNetworkSpecification) -> OutputLayer:
        """The layer that says the same of every row.

        Parameters
        ----------
        specification : RBFNetworkSpecification
            Structure of the network.

        Returns
        -------
        OutputLayer
            All zeros.
        """
        shape = (specification.n_outputs, specification.mixture.n_components)
        return cls(np.zeros(shape), np.zeros(specification.n_outputs))


def fit_output_layer(
    features: Float[np.ndarray, "obs component"],
    output: Output,
    weights: Float[np.ndarray, " obs"],
    specification: RBFNetworkSpecification,
    hyperparameters: RBFNetworkHyperparameters,
    start: OutputLayer,
    *,
    max_iter: int = 1000,
    tolerance: float = 1e-10,
) -> OutputLayer:
    """Fit the output layer to fixed features.

    Parameters
    ----------
    features : ndarray of shape (n_obs, n_components)
        What the hidden layer says of every row.
    output : Classes or Numbers
        Responses.
    weights : ndarray of shape (n_obs,)
        Row weights.
    specification : RBFNetworkSpecification
        Structure of the network; says which components an output sees.
    hyperparameters : RBFNetworkHyperparameters
        ``l1``, ``l2`` and ``intercept_scale`` (infinite: intercepts are free),
        and the prior of the noise. The link plays no part.
    start : OutputLayer
        Where to begin.
    max_iter : int
        Most iterations.
    tolerance : float
        Smallest gain of an iteration, and largest gradient, in nats per unit of weight.

    Returns
    -------
    OutputLayer
        The optimum.
    """
    problem = _Problem(features, output, weights, specification, hyperparameters)
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
class _Problem:
    """The penalised likelihood beside the kinks, over weights, biases and log precision."""

    features: np.ndarray
    output: Output
    weights: np.ndarray
    specification: RBFNetworkSpecification
    hyperparameters: RBFNetworkHyperparameters

    @cached_property
    def connected(self) -> np.ndarray:
        """Which components an output sees."""
        return self.specification.connected

    @cached_property
    def size(self) -> int:
        """Number of output weights."""
        return int(self.connected.sum())

    @property
    def has_steps(self) -> bool:
        """Whether Newton's steps are at hand: classes, no kink, few weights, all penalised."""
        prior = self.hyperparameters
        smooth = isinstance(self.output, Classes) and prior.l1 == 0 < prior.l2
        return smooth and self.size + self.specification.n_outputs <= LARGEST

    @cached_property
    def _precisions(self) -> np.ndarray:
        """Of the normal prior of weights and biases."""
        free = 1 / self.hyperparameters.intercept_scale**2
        return np.repeat([self.hyperparameters.l2, free], [self.size, self.specification.n_outputs])

    def coordinates(self, layer: OutputLayer) -> np.ndarray:
        """Where a layer is."""
        parts = [layer.coefficients[self.connected], layer.intercepts]
        if isinstance(self.output, Numbers):
            parts.append(np.array([np.log(layer.noise_precision)]))
        return np.concatenate(parts)

    def layer(self, theta: np.ndarray) -> OutputLayer:
        """The layer at given coordinates."""
        coefficients = np.zeros(self.connected.shape)
        coefficients[self.connected] = theta[: self.size]
        noise = float(np.exp(theta[-1])) if isinstance(self.output, Numbers) else 1.0
        end = self.size + self.specification.n_outputs
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
        by_weight = (by_linear.T @ self.features)[self.connected]
        slope = np.concatenate([by_weight, by_linear.sum(axis=0)]) - precisions * layer
        if isinstance(self.output, Numbers):
            value += prior.log_noise(at.noise_precision)
            total = float(self.weights @ by_noise) + prior.noise_slope(at.noise_precision)
            slope = np.append(slope, at.noise_precision * total)
        return Smooth(value, slope, np.zeros(theta.size))

    def curvature(self, theta: np.ndarray) -> np.ndarray:
        """Minus the Hessian, for classes."""
        if not isinstance(self.output, Classes):
            raise TypeError("The curvature is that of classes; numbers have none here.")
        at = self.layer(theta)
        linear = self.features @ at.coefficients.T + at.intercepts
        known = self.weights * (self.output.labels >= 0)
        likelihood = softmax_curvature(self.features, linear, known, self.connected)
        return likelihood + np.diag(self._precisions)
