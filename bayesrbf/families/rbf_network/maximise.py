r"""Maximisation of penalised objectives: with exact zeros, and Newton's method without.

A penalty :math:`\lambda |\theta|` has a kink where it matters most. With
:math:`\theta = \theta^+ - \theta^-`, both halves at least 0, the penalty is the linear
:math:`\lambda (\theta^+ + \theta^-)`, and a bound that holds is an exact zero.

Where there is no kink and few weights, a concave objective is maximised by Newton's method, in
some steps from a warm start.

See Byrd, Lu, Nocedal and Zhu (1995), A limited memory algorithm for bound constrained optimization,
SIAM Journal on Scientific Computing 16, 1190-1208.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from bayesrbf.base.arrays import log_sum_exp, shorter_step

MEMORY = 20  # Pairs of steps and gradients that L-BFGS keeps.
LARGEST = 150
"""Up to this many weights, solving for Newton's step costs less than the steps that it saves."""
RIDGE = 1e-10
"""Fraction of the mean curvature that is added to it: a shift that all biases share has none."""


@dataclass(frozen=True)
class Smooth:
    """Value and derivatives of an objective at one point, without its penalty."""

    value: float  # The objective to maximise; minus infinity where it is not defined.
    gradient: Float[np.ndarray, " coordinate"]  # Derivatives in theta at fixed ``|theta|``.
    by_size: Float[np.ndarray, " coordinate"]
    """Derivatives of the objective in ``|theta|``, which has a kink at zero."""


@dataclass(frozen=True)
class Maximum:
    """End of a maximisation."""

    theta: Float[np.ndarray, " coordinate"]
    """The point; penalised coordinates at their bound are exactly 0."""
    path: Float[np.ndarray, " iteration"]  # Objective at the start and after every iteration.
    violation: float  # Largest entry of the smallest subgradient, :func:`subgradient`.
    stopped: bool  # Whether the optimiser stopped by itself, before ``max_iter``.


def maximise_in_halves(
    smooth: Callable[[Float[np.ndarray, " coordinate"]], Smooth],
    start: Float[np.ndarray, " coordinate"],
    penalty: Float[np.ndarray, " coordinate"],
    split: Bool[np.ndarray, " coordinate"],
    *,
    max_iter: int,
    tolerance: float,
) -> Maximum:
    """Maximise ``smooth(theta) - sum(penalty |theta|)`` by L-BFGS-B.

    The objective must be finite at the start. Only coordinates that are ``split`` in halves may
    have a penalty. The search ends where an iteration gains less than ``tolerance``, or the
    projected gradient has no entry above it.
    """
    dimension, split_indices = start.size, np.flatnonzero(split)

    def joined(halves: np.ndarray) -> np.ndarray:
        theta = halves[:dimension].copy()
        theta[split_indices] -= halves[dimension:]
        return theta

    def objective(halves: np.ndarray) -> tuple[float, np.ndarray]:
        with np.errstate(all="ignore"):  # a step may leave the range of numbers
            at = smooth(joined(halves))
        if not (np.isfinite(at.value) and np.isfinite(at.gradient).all()):
            return np.inf, np.zeros_like(halves)  # the line search steps back
        upper, lower = halves[split_indices], halves[dimension:]
        kink, rate = at.by_size[split_indices], penalty[split_indices]
        gradient = np.concatenate([at.gradient, -at.gradient[split_indices]])
        # |theta| is the distance of the halves: it rises with the larger one, falls with the other.
        gradient[split_indices] += np.where(upper >= lower, kink, -kink) - rate
        gradient[dimension:] += np.where(lower >= upper, kink, -kink) - rate
        return -(at.value - float(rate @ (upper + lower))), -gradient

    # At the start one half of each pair is 0.
    halves = np.concatenate([start, np.maximum(-start[split_indices], 0.0)])
    halves[split_indices] = np.maximum(start[split_indices], 0.0)
    bounds = [(None, None)] * dimension + [(0.0, None)] * split_indices.size
    for index in split_indices:
        bounds[index] = (0.0, None)
    path = [-objective(halves)[0]]

    def record(intermediate_result: object) -> None:
        path.append(-float(intermediate_result.fun))  # type: ignore[attr-defined]

    options = {
        "maxiter": max_iter,
        "maxfun": 20 * max_iter,
        "maxcor": MEMORY,
        "ftol": tolerance / max(1.0, abs(path[0])),  # SciPy's is relative to the value
        "gtol": tolerance,
    }
    result = minimize(
        objective,
        halves,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        callback=record,
        options=options,
    )
    theta = joined(result.x)
    at = smooth(theta)
    violation = float(np.max(np.abs(subgradient(at, theta, penalty, split)), initial=0.0))
    return Maximum(theta, np.array(path), violation, bool(result.status == 0))


def subgradient(
    at: Smooth,
    theta: Float[np.ndarray, " coordinate"],
    penalty: Float[np.ndarray, " coordinate"],
    split: Bool[np.ndarray, " coordinate"],
) -> Float[np.ndarray, " coordinate"]:
    """The smallest subgradient of the penalised objective: zero at a maximum.

    It is the derivative where there is one. At a zero of a split coordinate it is the part of the
    gradient beyond the size of the kink.
    """
    rate = np.where(split, penalty - at.by_size, 0.0)
    derivative = at.gradient - rate * np.sign(theta)
    still = np.sign(at.gradient) * np.maximum(np.abs(at.gradient) - rate, 0.0)
    return np.where(split & (theta == 0), still, derivative)


def softmax_curvature(
    features: Float[np.ndarray, "obs component"],
    linear: Float[np.ndarray, "obs output"],
    weights: Float[np.ndarray, " obs"],
) -> Float[np.ndarray, "coordinate coordinate"]:
    r"""Negative Hessian of the log likelihood of classes in weights and biases.

    .. math:: \sum_n v_n (\delta_{cd}\, p_{nc} - p_{nc}\, p_{nd})\, \tilde f_n \tilde f_n',
        \qquad \tilde f_n = (f_n, 1)

    ``weights`` are row weights, 0 where the class is hidden. Rows and columns are the weights,
    output by output, then the biases.
    """
    n_outputs, k = linear.shape[1], features.shape[1]
    p = log_sum_exp(linear, axis=1)[1]
    bordered = np.column_stack([features, np.ones(len(features))])
    whole = np.empty((n_outputs, k + 1, n_outputs, k + 1))
    for c in range(n_outputs):
        for d in range(c + 1):
            rates = weights * p[:, c] * ((c == d) - p[:, d])
            whole[c, :, d] = bordered.T @ (rates[:, None] * bordered)
            whole[d, :, c] = whole[c, :, d]
    indices = np.arange(n_outputs * (k + 1)).reshape(n_outputs, k + 1)
    order = np.concatenate([indices[:, :k].reshape(-1), indices[:, k]])
    return whole.reshape(indices.size, indices.size)[np.ix_(order, order)]


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
    """Maximise a concave function, given its value, gradient and ``curvature`` (negative Hessian).

    The search ends where no entry of the gradient is above ``tolerance``, or a step gains no more.

    >>> def parabola(x):
    ...     return Smooth(-float((x - 3) @ (x - 3)), -2 * (x - 3), np.zeros(1))
    >>> ascend(parabola, lambda x: 2 * np.eye(1), np.zeros(1), max_iter=9, tolerance=1e-9)
    array([3.])
    """

    def evaluate(theta: np.ndarray) -> tuple[float, Smooth]:
        at = smooth(theta)
        return at.value, at

    theta, at = start, smooth(start)
    for _ in range(max_iter):
        if np.abs(at.gradient).max() <= tolerance:
            break
        matrix = curvature(theta)
        matrix[np.diag_indices_from(matrix)] += RIDGE * np.trace(matrix) / theta.size
        step = cho_solve(cho_factor(matrix), at.gradient)
        rise = float(step @ at.gradient)
        if 0.5 * rise <= tolerance:
            return theta + step  # so close that the value cannot tell, and the step is the best
        found = shorter_step(evaluate, theta, step, at.value, rise)
        if found is None:
            break
        theta, _, at = found
    return theta
