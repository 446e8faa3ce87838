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

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.rbf_network.halves import Smooth, maximise_in_halves
from bayesrbf.numerics.rbf_network.output import Numbers, Output
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
    connected = specification.connected
    size, n_outputs = int(connected.sum()), specification.n_outputs
    numeric = isinstance(output, Numbers)
    free_intercepts = 1 / hyperparameters.intercept_scale**2

    def layer(theta: np.ndarray) -> OutputLayer:
        coefficients = np.zeros(connected.shape)
        coefficients[connected] = theta[:size]
        noise = float(np.exp(theta[-1])) if numeric else 1.0
        return OutputLayer(coefficients, theta[size : size + n_outputs], noise)

    def smooth(theta: np.ndarray) -> Smooth:
        at = layer(theta)
        linear = features @ at.coefficients.T + at.intercepts
        log_likelihood, by_linear, by_noise = output.evaluate(linear, at.noise_precision)
        by_linear = weights[:, None] * by_linear
        value = float(weights @ log_likelihood)
        value -= 0.5 * hyperparameters.l2 * float((at.coefficients**2).sum())
        value -= 0.5 * free_intercepts * float((at.intercepts**2).sum())
        slope = by_linear.T @ features - hyperparameters.l2 * at.coefficients
        parts = [slope[connected], by_linear.sum(axis=0) - free_intercepts * at.intercepts]
        if numeric:
            value += hyperparameters.log_noise(at.noise_precision)
            total = float(weights @ by_noise) + hyperparameters.noise_slope(at.noise_precision)
            parts.append(np.array([at.noise_precision * total]))
        return Smooth(value, np.concatenate(parts), np.zeros(theta.size))

    begin = [start.coefficients[connected], start.intercepts]
    if numeric:
        begin.append(np.array([np.log(start.noise_precision)]))
    theta = np.concatenate(begin)
    split = np.arange(theta.size) < size
    found = maximise_in_halves(
        smooth,
        theta,
        np.where(split, hyperparameters.l1, 0.0),
        split & (hyperparameters.l1 > 0),
        max_iter=max_iter,
        tolerance=tolerance * max(1.0, float(weights.sum())),
    )
    best = layer(found.theta)
    return OutputLayer(best.coefficients, best.intercepts, best.noise_precision, found.violation)
