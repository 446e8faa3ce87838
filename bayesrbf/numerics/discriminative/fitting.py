"""The fit of any objective from the EM start: L-BFGS, or Adam on mini-batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from bayesrbf.numerics.ascent import Ascent
from bayesrbf.numerics.discriminative.log_posterior import HybridLogPosterior
from bayesrbf.numerics.discriminative.minibatches import adam, batches
from bayesrbf.numerics.discriminative.relative_coordinates import RelativeCoordinates
from bayesrbf.numerics.maximisation import at_floor
from bayesrbf.numerics.threads import one_blas_thread
from bayesrbf.objective import Objective
from bayesrbf.parameters import MixtureParameters, Observations
from bayesrbf.priors import MixtureHyperparameters
from bayesrbf.results import Fit, Status, Trace
from bayesrbf.specification import MixtureSpecification

MEMORY = 10
"""Pairs of steps and gradients that L-BFGS remembers."""

NOTHING_HIGHER = (0, 2)
"""SciPy's codes of an L-BFGS that ended at a flat point, or with a futile line search."""

PATIENCE = 20
"""Iterations without a better score of held-out rows after which a fit stops."""


@dataclass(frozen=True)
class Schedule:
    """How long an objective is followed.

    Attributes
    ----------
    max_iter : int
        Most iterations of L-BFGS, or passes over the rows in mini-batches.
    tol : float
        The fit has converged when an iteration raises the objective by at most
        ``tol`` nats per unit of row weight.
    batch_size : int or None
        Rows of a mini-batch; None: all rows at every step.
    seed : int
        Seed of the mini-batches.
    """

    max_iter: int = 100
    tol: float = 1e-6
    batch_size: int | None = None
    seed: int = 0


def fit_objective(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    objective: Objective,
    start: MixtureParameters,
    *,
    schedule: Schedule,
    score: Callable[[MixtureParameters], float] | None = None,
) -> Fit:
    """Climb from a start to a mode of the log Gibbs posterior (without Jacobian).

    Parameters
    ----------
    observations : Observations
        Rows in standard units.
    specification : MixtureSpecification
        Structure of the mixture.
    hyperparameters : MixtureHyperparameters
        Resolved prior, in standard units.
    objective : Objective
        What is maximised.
    start : MixtureParameters
        Where to start, in standard units: the fit by EM, as a rule.
    schedule : Schedule
        Iterations, tolerance, mini-batches.
    score : callable, optional
        Score of held-out rows at a point, the larger the better. The best point
        is kept, and the fit stops when ``PATIENCE`` iterations bring no better.

    Returns
    -------
    Fit
        The point, trace and status.
    """
    every = HybridLogPosterior(observations, specification, hyperparameters, objective)
    relative = RelativeCoordinates(every.pack(start), start, specification)
    watch = _Watch(every, relative, start, score)
    with one_blas_thread():
        if schedule.batch_size is None or schedule.batch_size >= observations.n_obs:
            tolerance = schedule.tol * float(observations.weights.sum())
            run = _climb(every, relative, watch, schedule.max_iter, tolerance)
        else:
            rng = np.random.default_rng(schedule.seed)
            parts = [
                HybridLogPosterior(part, specification, hyperparameters, objective)
                for part in batches(observations, schedule.batch_size, rng)
            ]
            run = _descend_in_batches(parts, relative, watch, schedule.max_iter, rng)
    floored = at_floor(run.parameters.precisions_cholesky)
    return Fit(run.parameters, run.trace, run.status, run.trace.log_posterior[-1:], floored)


class _Watch:
    """Follows a fit: keeps its trace, scores held-out rows, remembers the best point."""

    def __init__(
        self,
        log_posterior: HybridLogPosterior,
        relative: RelativeCoordinates,
        start: MixtureParameters,
        score: Callable[[MixtureParameters], float] | None,
    ) -> None:
        self._log_posterior, self._relative = log_posterior, relative
        self._score = score
        self._waited = 0
        self.parameters = start
        self._best = -np.inf if score is None else score(start)
        self.trace: list[float] = []

    def sees(self, z: np.ndarray, value: float) -> bool:
        """Record an accepted point; whether held-out rows say to stop."""
        self.trace.append(value)
        point = self._log_posterior.unpack(self._relative.theta(z))
        if self._score is None:
            self.parameters = point
            return False
        held_out = self._score(point)
        self._waited += 1
        if held_out > self._best:
            self._best, self._waited, self.parameters = held_out, 0, point
        return self._waited >= PATIENCE

    def ended(self, status: Status) -> Ascent:
        """The run as it was followed."""
        return Ascent(self.parameters, Trace(np.array(self.trace)), status)


def _climb(
    log_posterior: HybridLogPosterior,
    relative: RelativeCoordinates,
    watch: _Watch,
    max_iter: int,
    tolerance: float,
) -> Ascent:
    """L-BFGS on all rows."""
    origin = np.zeros(log_posterior.dimension)
    with np.errstate(all="ignore"):
        first, _ = log_posterior.value_and_gradient(relative.theta(origin), jacobian=False)
    watch.trace.append(first)
    if not np.isfinite(first):
        return watch.ended(Status.DEGENERATE)
    ended = Status.STOPPED

    def accepted(intermediate_result: object) -> None:
        nonlocal ended
        value = -float(intermediate_result.fun)  # type: ignore[attr-defined]
        rise = value - watch.trace[-1]
        enough = watch.sees(intermediate_result.x, value)  # type: ignore[attr-defined]
        if rise <= tolerance:
            ended = Status.CONVERGED
        if enough or rise <= tolerance:
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
    return watch.ended(Status.CONVERGED if result.status in NOTHING_HIGHER else ended)


def _descent(
    log_posterior: HybridLogPosterior, relative: RelativeCoordinates, first: float
) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """What L-BFGS minimises; where a far step overflows, a value that turns it back."""
    barrier = 2 * (1 + abs(first)) - first

    def descent(z: np.ndarray) -> tuple[float, np.ndarray]:
        try:
            with np.errstate(all="ignore"):
                theta = relative.theta(z)
                value, slope = log_posterior.value_and_gradient(theta, jacobian=False)
                carried = relative.gradient(z, slope)
        except np.linalg.LinAlgError:
            return barrier, np.zeros_like(z)
        if not (np.isfinite(value) and np.isfinite(carried).all()):
            return barrier, np.zeros_like(z)
        return -value, -carried

    return descent


def _descend_in_batches(
    parts: list[HybridLogPosterior],
    relative: RelativeCoordinates,
    watch: _Watch,
    n_epochs: int,
    rng: np.random.Generator,
) -> Ascent:
    """Adam over mini-batches; every pass is one entry of the trace."""

    def slope(index: int, z: Float[np.ndarray, " coordinate"]) -> tuple[float, np.ndarray]:
        theta = relative.theta(z)
        value, gradient = parts[index].value_and_gradient(theta, jacobian=False)
        return value, relative.gradient(z, gradient)

    origin = np.zeros(parts[0].dimension)
    adam(slope, origin, len(parts), n_epochs, watch.sees, rng)
    return watch.ended(Status.STOPPED)
