"""The fit of any objective from the EM start: L-BFGS, or Adam on mini-batches.

Mini-batches are for tables that are too long to be read at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from bayesrbf.numerics.discriminative.hybrid_log_posterior import HybridLogPosterior
from bayesrbf.numerics.discriminative.relative_coordinates import RelativeCoordinates
from bayesrbf.numerics.mixture.mixture_points import MixturePoints
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.numerics.threads import one_blas_thread
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.objective import Objective
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.results import Fit, Status, Trace
from bayesrbf.records.specification import MixtureSpecification

MEMORY = 10  # Pairs of steps and gradients that L-BFGS remembers.

NOTHING_HIGHER = (0, 2)
"""SciPy's codes of an L-BFGS run that ended at a flat point or after a futile line search."""

PATIENCE = 20  # Iterations without a better score of held-out rows after which a fit stops.

STEP = 0.02  # Longest step of a coordinate, in units of the components' own spread.

DECAY_OF_GRADIENT = 0.9
DECAY_OF_SQUARE = 0.99


@runtime_checkable
class HasGradient(Protocol):
    """Rows wherever they are, as L-BFGS asks for them."""

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log density in nats and its gradient in the coordinates."""
        ...


@dataclass(frozen=True)
class Schedule:
    """How long an objective is followed."""

    max_iter: int = 100  # Iterations of L-BFGS, or passes over the rows in mini-batches.
    # Converged: an iteration raises the objective by no more, nats per unit of row weight.
    tol: float = 1e-6
    batch_size: int | None = None  # None: all rows at every step.
    seed: int = 0  # Of the mini-batches.


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

    All is in standard units; the start is the fit by EM, as a rule. ``score`` gives the score of
    held-out rows at a point, the larger the better: the best point is kept, and the fit stops when
    ``PATIENCE`` iterations bring no better.
    """
    points = MixturePoints(specification, hyperparameters)

    def given(rows: Observations) -> HybridLogPosterior:
        return HybridLogPosterior(rows, specification, hyperparameters, objective)

    if schedule.batch_size is None or schedule.batch_size >= observations.n_obs:
        tolerance = schedule.tol * float(observations.weights.sum())
        every, steps = given(observations), schedule.max_iter
        return climb_objective(every, points, start, steps, tolerance, score)
    relative = RelativeCoordinates(points.pack(start), start, specification)
    watch = _Watch(points, relative, start, score)
    with one_blas_thread():
        rng = np.random.default_rng(schedule.seed)
        parts = list(map(given, batches(observations, schedule.batch_size, rng)))
        return watch.fit(_descend_in_batches(parts, relative, watch, schedule.max_iter, rng))


def climb_objective(
    log_posterior: HasGradient,
    points: MixturePoints,
    start: MixtureParameters,
    max_iter: int,
    tolerance: float,
    score: Callable[[MixtureParameters], float] | None = None,
) -> Fit:
    """Climb by L-BFGS on rows wherever they are, all in standard units.

    The fit has converged when an iteration gains at most ``tolerance`` nats.
    """
    relative = RelativeCoordinates(points.pack(start), start, points.specification)
    watch = _Watch(points, relative, start, score)
    with one_blas_thread():
        return watch.fit(_climb(log_posterior, relative, watch, max_iter, tolerance))


class _Watch:
    """Follows a fit: keeps its trace, scores held-out rows, remembers the best point."""

    def __init__(
        self,
        points: MixturePoints,
        relative: RelativeCoordinates,
        start: MixtureParameters,
        score: Callable[[MixtureParameters], float] | None,
    ) -> None:
        self._points, self._relative = points, relative
        self._score = score
        self._waited = 0
        self.parameters = start
        self._best = -np.inf if score is None else score(start)
        self.trace: list[float] = []

    def sees(self, z: np.ndarray, value: float) -> bool:
        """Record an accepted point; return whether held-out rows say to stop."""
        self.trace.append(value)
        point = self._points.unpack(self._relative.theta(z))
        if self._score is None:
            self.parameters = point
            return False
        held_out = self._score(point)
        self._waited += 1
        if held_out > self._best:
            self._best, self._waited, self.parameters = held_out, 0, point
        return self._waited >= PATIENCE

    def fit(self, status: Status) -> Fit:
        """The fit as it was recorded, and how it ended."""
        trace, reals = np.array(self.trace), laws_of(self._points.specification).reals
        floored = reals.at_floor(self.parameters.precisions_cholesky)
        return Fit(self.parameters, Trace(trace), status, trace[-1:], floored)


def _climb(
    log_posterior: HasGradient,
    relative: RelativeCoordinates,
    watch: _Watch,
    max_iter: int,
    tolerance: float,
) -> Status:
    """L-BFGS on all rows."""
    origin = np.zeros(relative.dimension)
    with np.errstate(all="ignore"):
        first, _ = log_posterior.value_and_gradient(relative.theta(origin), jacobian=False)
    watch.trace.append(first)
    if not np.isfinite(first):
        return Status.DEGENERATE
    ended = Status.STOPPED

    def accepted(intermediate_result: object) -> None:
        nonlocal ended
        value = -float(intermediate_result.fun)  # type: ignore[attr-defined]
        rise = value - watch.trace[-1]
        if rise < 0:  # a gradient of denormals makes a first step that overflows: nothing is higher
            ended = Status.CONVERGED
            raise StopIteration
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
    return Status.CONVERGED if result.status in NOTHING_HIGHER else ended


def _descent(
    log_posterior: HasGradient, relative: RelativeCoordinates, first: float
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


def _descend_in_batches(
    parts: list[HybridLogPosterior],
    relative: RelativeCoordinates,
    watch: _Watch,
    n_epochs: int,
    rng: np.random.Generator,
) -> Status:
    """Adam over mini-batches; every pass is one entry of the trace."""

    def of_batch(index: int, z: Float[np.ndarray, " coordinate"]) -> tuple[float, np.ndarray]:
        theta = relative.theta(z)
        value, by_theta = parts[index].value_and_gradient(theta, jacobian=False)
        return value, relative.gradient(z, by_theta)

    adam(of_batch, np.zeros(relative.dimension), len(parts), n_epochs, watch.sees, rng)
    return Status.STOPPED


def batches(
    observations: Observations, size: int, rng: np.random.Generator
) -> Iterator[Observations]:
    """Deal rows to mini-batches of at most ``size`` rows, each with the same share of every class.

    The weights of each sum to those of all rows, so that a prior beside them counts once.
    """
    n_batches = -(-observations.n_obs // size)
    shuffled = rng.permutation(observations.n_obs)
    by_label = shuffled[np.argsort(observations.labels[shuffled], kind="stable")]
    total = float(observations.weights.sum())
    for first in range(n_batches):
        # Every n-th of the rows in the order of their classes: equal shares in every batch.
        part = observations.take(by_label[first::n_batches])
        yield replace(part, weights=part.weights * (total / part.weights.sum()))


def adam(
    value_and_gradient: Callable[[int, np.ndarray], tuple[float, np.ndarray]],
    start: np.ndarray,
    n_batches: int,
    n_epochs: int,
    sees: Callable[[np.ndarray, float], bool],
    rng: np.random.Generator,
) -> None:
    """Climb by Adam, with steps that shrink to nothing over the passes.

    ``value_and_gradient`` takes the index of a batch and a point. ``sees`` is told the point and
    the mean value of every pass, and says whether to stop there.

    See Kingma, Ba (2015), Adam: a method for stochastic optimization, ICLR, algorithm 1.
    """
    z = start.copy()
    mean, square, step = np.zeros_like(z), np.zeros_like(z), 0
    for _ in range(n_epochs):
        values = []
        for index in rng.permutation(n_batches):
            value, gradient = value_and_gradient(int(index), z)
            values.append(value)
            step += 1
            mean += (1 - DECAY_OF_GRADIENT) * (gradient - mean)
            square += (1 - DECAY_OF_SQUARE) * (gradient**2 - square)
            unbiased = mean / (1 - DECAY_OF_GRADIENT**step)
            # A coordinate whose gradient was always 0 stays where it is, and does not become 0 / 0.
            size = np.sqrt(square / (1 - DECAY_OF_SQUARE**step)) + 1e-300
            left = 1 - (step - 1) / (n_epochs * n_batches)
            z = z + STEP * left * unbiased / size
        if sees(z, float(np.mean(values))):
            return
