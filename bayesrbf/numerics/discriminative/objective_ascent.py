"""The fit of any objective by L-BFGS, from where EM ended."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from bayesrbf.numerics.discriminative.hybrid_log_posterior import HybridLogPosterior
from bayesrbf.numerics.discriminative.relative_coordinates import RelativeCoordinates
from bayesrbf.numerics.mixture.mixture_points import MixturePoints
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.numerics.threads import one_blas_thread
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.results import Fit, Status, Trace

MEMORY = 10  # Pairs of steps and gradients that L-BFGS remembers.

NOTHING_HIGHER = (0, 2)
"""SciPy's codes of an L-BFGS run that ended at a flat point or after a futile line search."""


def climb_objective(
    log_posterior: HybridLogPosterior,
    points: MixturePoints,
    start: MixtureParameters,
    *,
    max_iter: int,
    tolerance: float,
) -> Fit:
    """Climb from a start to a mode of the log Gibbs posterior (without Jacobian).

    All is in standard units; the start is the fit by EM, as a rule. The
    fit has converged when an iteration gains at most ``tolerance`` nats.
    """
    relative = RelativeCoordinates(points.pack(start), start, points.specification)
    with one_blas_thread():
        parameters, trace, status = _climb(
            log_posterior, points, relative, start, max_iter, tolerance
        )
    floored = laws_of(points.specification).reals.at_floor(parameters.precisions_cholesky)
    return Fit(parameters, Trace(np.array(trace)), status, np.array(trace[-1:]), floored)


def _climb(
    log_posterior: HybridLogPosterior,
    points: MixturePoints,
    relative: RelativeCoordinates,
    start: MixtureParameters,
    max_iter: int,
    tolerance: float,
) -> tuple[MixtureParameters, list[float], Status]:
    """The last point, the values of the start and of every iteration, and how it ended."""
    origin = np.zeros(relative.dimension)
    with np.errstate(all="ignore"):
        first, _ = log_posterior.value_and_gradient(relative.theta(origin), jacobian=False)
    trace = [first]
    if not np.isfinite(first):
        return start, trace, Status.DEGENERATE
    parameters, ended = start, Status.STOPPED

    def accepted(intermediate_result: object) -> None:
        nonlocal parameters, ended
        value = -float(intermediate_result.fun)  # type: ignore[attr-defined]
        rise = value - trace[-1]
        if rise >= 0:  # a gradient of denormals makes a first step that overflows
            trace.append(value)
            z = intermediate_result.x  # type: ignore[attr-defined]
            parameters = points.unpack(relative.theta(z))
        if rise <= tolerance:
            ended = Status.CONVERGED
            raise StopIteration

    result = minimize(
        _descent(log_posterior, relative, first),
        origin,
        jac=True,
        method="L-BFGS-B",
        callback=accepted,
        options={"maxiter": max_iter, "maxcor": MEMORY, "ftol": 0.0, "gtol": 0.0},
    )
    # A line search that finds nothing higher is at a maximum, as far as rounding can tell.
    status = Status.CONVERGED if result.status in NOTHING_HIGHER else ended
    return parameters, trace, status


def _descent(
    log_posterior: HybridLogPosterior, relative: RelativeCoordinates, first: float
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """The function that L-BFGS minimises, and its gradient.

    Where a far step overflows it is a value above the start's, which turns the line search back.
    """
    barrier = 2 * (1 + abs(first)) - first

    def descent(z: np.ndarray) -> tuple[float, np.ndarray]:
        try:
            with np.errstate(all="ignore"):
                theta = relative.theta(z)
                value, by_theta = log_posterior.value_and_gradient(theta, jacobian=False)
                gradient = relative.gradient(z, by_theta)
        except np.linalg.LinAlgError:
            return barrier, np.zeros_like(z)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return barrier, np.zeros_like(z)
        return -value, -gradient

    return descent
