r"""Maximisation with exact zeros: coordinates split in bounded halves.

A penalty :math:`\lambda |\theta|` has a kink where it matters most. With
:math:`\theta = \theta^+ - \theta^-`, both halves at least 0, the penalty is the linear
:math:`\lambda (\theta^+ + \theta^-)`, and a bound that holds is an exact zero.

References
----------
Byrd, Lu, Nocedal and Zhu (1995), A limited memory algorithm for bound constrained
optimization, SIAM Journal on Scientific Computing 16, 1190-1208.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import minimize

MEMORY = 20
"""Corrections that L-BFGS keeps."""


@dataclass(frozen=True)
class Smooth:
    """The part of an objective beside the penalty, at one point.

    Attributes
    ----------
    value : float
        The objective to maximise; minus infinity where it is not defined.
    gradient : ndarray of shape (dimension,)
        Its gradient where it is smooth.
    by_size : ndarray of shape (dimension,)
        Its slopes in ``|theta|``, which have a kink at zero.
    """

    value: float
    gradient: Float[np.ndarray, " coordinate"]
    by_size: Float[np.ndarray, " coordinate"]


@dataclass(frozen=True)
class Maximum:
    """Where a maximisation ended.

    Attributes
    ----------
    theta : ndarray of shape (dimension,)
        The point; penalised coordinates at their bound are exactly 0.
    path : ndarray of shape (n_iter,)
        Objective at the start and after every iteration.
    violation : float
        Largest entry of the smallest subgradient, :func:`subgradient`.
    stopped : bool
        Whether the optimiser stopped by itself, before ``max_iter``.
    """

    theta: Float[np.ndarray, " coordinate"]
    path: Float[np.ndarray, " iteration"]
    violation: float
    stopped: bool


def maximise_in_halves(
    smooth: Callable[[Float[np.ndarray, " coordinate"]], Smooth],
    start: Float[np.ndarray, " coordinate"],
    penalty: Float[np.ndarray, " coordinate"],
    split: Bool[np.ndarray, " coordinate"],
    *,
    max_iter: int,
    tolerance: float,
    watch: Callable[[Float[np.ndarray, " coordinate"]], None] | None = None,
) -> Maximum:
    """Maximise ``smooth(theta) - sum(penalty |theta|)`` by L-BFGS-B.

    Parameters
    ----------
    smooth : callable
        The objective beside the penalty.
    start : ndarray of shape (dimension,)
        Where to begin; the objective must be finite there.
    penalty : ndarray of shape (dimension,)
        Rates lambda, at least 0; not zero only where ``split``.
    split : ndarray of shape (dimension,)
        Coordinates that are held in halves.
    max_iter : int
        Largest number of iterations.
    tolerance : float
        Stop where an iteration gains less than this, or the projected gradient
        has no entry above it.
    watch : callable or None
        Is handed the point after every iteration.

    Returns
    -------
    Maximum
        Point, way and certificate.
    """
    dimension, places = start.size, np.flatnonzero(split)

    def joined(halves: np.ndarray) -> np.ndarray:
        theta = halves[:dimension].copy()
        theta[places] -= halves[dimension:]
        return theta

    def objective(halves: np.ndarray) -> tuple[float, np.ndarray]:
        at = smooth(joined(halves))
        if not np.isfinite(at.value):
            return np.inf, np.zeros_like(halves)
        upper, lower = halves[places], halves[dimension:]
        kink, rate = at.by_size[places], penalty[places]
        slope = np.concatenate([at.gradient, -at.gradient[places]])
        slope[places] += np.where(upper >= lower, kink, -kink) - rate
        slope[dimension:] += np.where(lower >= upper, kink, -kink) - rate
        return -(at.value - float(rate @ (upper + lower))), -slope

    halves = np.concatenate([start, np.maximum(-start[places], 0.0)])
    halves[places] = np.maximum(start[places], 0.0)
    bounds = [(None, None)] * dimension + [(0.0, None)] * places.size
    for place in places:
        bounds[place] = (0.0, None)
    path = [-objective(halves)[0]]

    def record(intermediate_result: object) -> None:
        path.append(-float(intermediate_result.fun))  # type: ignore[attr-defined]
        if watch is not None:
            watch(joined(intermediate_result.x))  # type: ignore[attr-defined]

    options = {
        "maxiter": max_iter,
        "maxfun": 20 * max_iter,
        "maxcor": MEMORY,
        "ftol": tolerance / max(1.0, abs(path[0])),
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

    Parameters
    ----------
    at : Smooth
        The objective beside the penalty at ``theta``.
    theta : ndarray of shape (dimension,)
        The point.
    penalty : ndarray of shape (dimension,)
        Rates lambda.
    split : ndarray of shape (dimension,)
        Coordinates whose size has a kink at zero.

    Returns
    -------
    ndarray of shape (dimension,)
        The derivative where there is one; at a zero of a split coordinate, by how
        much its slope exceeds what the kink withholds.
    """
    rate = np.where(split, penalty - at.by_size, 0.0)
    moved = at.gradient - rate * np.sign(theta)
    still = np.sign(at.gradient) * np.maximum(np.abs(at.gradient) - rate, 0.0)
    return np.where(split & (theta == 0), still, moved)
