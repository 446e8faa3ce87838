"""Newton's method for a concave output layer of few weights: some steps from a warm start."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import cho_factor, cho_solve

from bayesrbf.numerics.log_sums import log_sum_exp
from bayesrbf.numerics.rbf_network.halves import Smooth

LARGEST = 150
"""Weights up to which solving for a step costs less than the steps it saves."""
RIDGE = 1e-10
"""Share of the mean curvature that is added to it: biases that share a shift have none."""
HALVINGS = 30
"""Times that a step is halved before the search ends where it is."""


def softmax_curvature(
    features: Float[np.ndarray, "obs component"],
    linear: Float[np.ndarray, "obs output"],
    weights: Float[np.ndarray, " obs"],
    connected: Bool[np.ndarray, "output component"],
) -> Float[np.ndarray, "coordinate coordinate"]:
    r"""Minus the Hessian of the log likelihood of classes in weights and biases.

    .. math:: \sum_n v_n (\delta_{cd}\, p_{nc} - p_{nc}\, p_{nd})\, \tilde f_n \tilde f_n',
        \qquad \tilde f_n = (f_n, 1)

    Parameters
    ----------
    features : ndarray of shape (n_obs, n_components)
        What the hidden layer says of every row.
    linear : ndarray of shape (n_obs, n_outputs)
        Linear outputs.
    weights : ndarray of shape (n_obs,)
        Row weights, 0 where the class is hidden.
    connected : ndarray of shape (n_outputs, n_components)
        Which components an output sees.

    Returns
    -------
    ndarray of shape (n_weights + n_outputs, n_weights + n_outputs)
        Over the weights of connected components, then the biases.
    """
    n_outputs, k = connected.shape
    p = log_sum_exp(linear, axis=1)[1]
    bordered = np.column_stack([features, np.ones(len(features))])
    whole = np.empty((n_outputs, k + 1, n_outputs, k + 1))
    for c in range(n_outputs):
        for d in range(c + 1):
            rates = weights * p[:, c] * ((c == d) - p[:, d])
            whole[c, :, d] = bordered.T @ (rates[:, None] * bordered)
            whole[d, :, c] = whole[c, :, d]
    places = np.arange(n_outputs * (k + 1)).reshape(n_outputs, k + 1)
    order = np.concatenate([places[:, :k][connected], places[:, k]])
    return whole.reshape(places.size, places.size)[np.ix_(order, order)]


def ascend(
    smooth: Callable[[Float[np.ndarray, " coordinate"]], Smooth],
    curvature: Callable[
        [Float[np.ndarray, " coordinate"]], Float[np.ndarray, "coordinate coordinate"]
    ],
    start: Float[np.ndarray, " coordinate"],
    *,
    max_iter: int,
    tolerance: float,
) -> Float[np.ndarray, " coordinate"]:
    """Maximise a concave function.

    Parameters
    ----------
    smooth : callable
        Value and gradient.
    curvature : callable
        Minus the Hessian.
    start : ndarray of shape (dimension,)
        Where to begin.
    max_iter : int
        Most steps.
    tolerance : float
        The search ends where no slope is above it, or a step gains no more.

    Returns
    -------
    ndarray of shape (dimension,)
        The maximum.

    Examples
    --------
    >>> def parabola(x):
    ...     return Smooth(-float((x - 3) @ (x - 3)), -2 * (x - 3), np.zeros(1))
    >>> ascend(parabola, lambda x: 2 * np.eye(1), np.zeros(1), max_iter=9, tolerance=1e-9)
    array([3.])
    """
    theta, at = start, smooth(start)
    for _ in range(max_iter):
        if np.abs(at.gradient).max() <= tolerance:
            break
        matrix = curvature(theta)
        matrix[np.diag_indices_from(matrix)] += RIDGE * np.trace(matrix) / theta.size
        step = cho_solve(cho_factor(matrix), at.gradient)
        if 0.5 * float(step @ at.gradient) <= tolerance:
            return theta + step  # so close that the value cannot tell, and the step is the best
        for _ in range(HALVINGS):
            following = smooth(theta + step)
            if following.value > at.value:
                break
            step = step / 2
        else:
            break
        theta, at = theta + step, following
    return theta
