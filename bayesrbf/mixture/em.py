"""The MAP fit of a mixture by EM: starts, short runs of all, long runs of the best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.base.arrays import one_blas_thread, ranked
from bayesrbf.base.priors import Fit, MixtureHyperparameters, Status, Trace
from bayesrbf.base.rows import (
    MixtureParameters,
    MixtureSpecification,
    Observations,
    weighted_components,
)
from bayesrbf.mixture.expectation import Sums, prepare
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.matrices import at_floor
from bayesrbf.mixture.points import DeclaredPrior, MixturePoints

# Monotone ascent by EM, and by SQUAREM where EM is slow.
#
# A step is one E-step and one M-step. The log posterior is checked at every
# accepted point; a fall beyond rounding ends the run with ``Status.DECREASED``.
#
# Varadhan and Roland (2008), Scandinavian Journal of Statistics 35, 335-353: squared extrapolation.


Acceleration = Literal["squarem"] | None

ROUNDING_OF_EM_STEP = 1e-10
"""Relative fall of the log posterior that rounding may explain."""

PLAIN_STEPS = 10
"""EM steps before extrapolation: most fits are done, or well under way, by then."""


@dataclass(frozen=True)
class Step:
    """Log posterior at a point in nats, and the EM update from there."""

    log_posterior: float  # Without Jacobian, in nats.
    maximise: Callable[[], MixtureParameters]

    @cached_property
    def following(self) -> MixtureParameters:
        """The EM update; a rejected candidate never needs one."""
        return self.maximise()


@dataclass(frozen=True)
class Problem:
    """EM step of a model, and the unconstrained coordinates in which steps are extrapolated."""

    step: Callable[[MixtureParameters], Step]
    pack: Callable[[MixtureParameters], np.ndarray]
    unpack: Callable[[np.ndarray], MixtureParameters]


@dataclass(frozen=True)
class Ascent:
    """Best evaluated point of one EM run, with the trace of log posteriors and the end status."""

    parameters: MixtureParameters
    trace: Trace
    status: Status

    @property
    def log_posterior(self) -> float:
        """Log posterior at the point, without Jacobian."""
        return float(self.trace.log_posterior[-1])


def ascend(
    problem: Problem,
    start: MixtureParameters,
    *,
    tolerance: float,
    max_iter: int,
    acceleration: Acceleration,
) -> Ascent:
    """Run EM until a step raises the log posterior by at most ``tolerance`` nats.

    Extrapolation is ``acceleration``; at most ``max_iter`` points are accepted.
    """
    current, step = start, problem.step(start)
    if not np.isfinite(step.log_posterior):
        return Ascent(start, Trace(np.array([-np.inf])), Status.DEGENERATE)
    trace = [step.log_posterior]
    coordinates: np.ndarray | None = None  # of the point, once there are extrapolations
    while len(trace) < max_iter:
        ahead = step.following
        new = problem.step(ahead)
        rise = new.log_posterior - step.log_posterior
        # Rounding grows with the terms of the log posterior, which cancel where it is near 0. NaN
        # is no rise.
        if not rise >= -ROUNDING_OF_EM_STEP * max(1.0, abs(step.log_posterior)):
            return Ascent(current, Trace(np.array(trace)), Status.DECREASED)
        trace.append(new.log_posterior)
        if rise <= tolerance:
            return Ascent(ahead, Trace(np.array(trace)), Status.CONVERGED)
        origin, current, step = current, ahead, new
        if acceleration is not None and len(trace) > PLAIN_STEPS:
            before = problem.pack(origin) if coordinates is None else coordinates
            current, step, coordinates = _extrapolated(problem, before, current, step)
            trace[-1] = step.log_posterior
    return Ascent(current, Trace(np.array(trace)), Status.MAX_ITER)


def _extrapolated(
    problem: Problem, before: np.ndarray, current: MixtureParameters, step: Step
) -> tuple[MixtureParameters, Step, np.ndarray]:
    r"""The extrapolated point of SQUAREM or ``current``, with the EM step there and coordinates.

    .. math:: \theta = \theta_0 + 2 a r + a^2 v, \quad a = |r| / |v|, \quad
        r = \theta_1 - \theta_0, \quad v = \theta_2 - 2 \theta_1 + \theta_0

    ``before`` has the unconstrained coordinates of the first of three EM points. ``current`` is
    the second point, ``step`` the EM step there, and ``step.following`` the third point. The
    extrapolated point is accepted if its log posterior is higher than that of ``current``.
    Otherwise the result is ``current``, ``step`` and the coordinates of ``current``.
    """
    points = [before, problem.pack(current), problem.pack(step.following)]
    unmoved = current, step, points[1]
    change = points[1] - points[0]
    curvature = points[2] - points[1] - change
    # Equal steps have no curvature: the length is then huge, and the candidate turned down.
    length = float(np.linalg.norm(change)) / max(float(np.linalg.norm(curvature)), 1e-300)
    # A length of 1 is the EM step itself.
    if length <= 1:
        return unmoved
    # The third of the step lengths of Varadhan and Roland (2008).
    target = points[0] + 2 * length * change + length**2 * curvature
    candidate = problem.unpack(target)
    # Far targets may leave the range of the transforms; such a point has no log posterior.
    if not all(np.isfinite(values).all() for values in (target, candidate.precisions_cholesky)):
        return unmoved
    try:
        with np.errstate(divide="ignore", invalid="ignore"):  # the logarithm of a root that is 0
            new = problem.step(candidate)
        if new.log_posterior > step.log_posterior:
            _ = new.following  # a point from which EM cannot go on is turned down, too
            return candidate, new, target
    except np.linalg.LinAlgError:
        pass
    return unmoved


# Starting points: weighted k-means++ per class, blind to missing cells and to row order.
#
# The caller hands over distinct rows, columns and classes in a canonical order; draws are
# made by weight, so that a row of weight 2 and the same row twice start alike.


OWN_CLUSTER = 0.9
"""Weight of a row in its own cluster; the rest is spread over the class's clusters."""

LLOYD_STEPS = 5
"""k-means steps of a start; EM refines the clusters afterwards."""

MAX_START_ROWS = 100_000
"""Maximum number of rows in a start; of larger tables EM alone sees all rows."""


def starting_point(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    rng: np.random.Generator,
) -> MixtureParameters:
    """Draw a starting point: k-means clusters as components of variance ``START_VARIANCE``.

    Rows, distinct and weighted, and prior are in standard units. Large tables are subsampled.
    """
    observations = _sampled(observations, specification.n_classes, rng)
    embedding = _embed(observations, specification)
    memberships = np.zeros((observations.n_obs, specification.n_components))
    for label, components in enumerate(specification.class_slices):
        rows = np.flatnonzero(observations.labels == label)
        if rows.size:
            size = components.stop - components.start
            memberships[rows, components] = _memberships(
                embedding[rows], observations.weights[rows], size, rng
            )
    memberships *= observations.weights[:, None]
    return _from_memberships(observations, memberships, specification, hyperparameters)


def _sampled(observations: Observations, n_classes: int, rng: np.random.Generator) -> Observations:
    """Labelled rows, large classes subsampled and reweighted to their total weight.

    A table of at most ``MAX_START_ROWS`` rows comes back as it is.
    """
    if observations.n_obs <= MAX_START_ROWS:
        return observations
    chosen, weights = [], []
    for label in range(n_classes):
        row_indices = np.flatnonzero(observations.labels == label)
        total = observations.weights[row_indices].sum()
        n_rows = row_indices.size
        rng.shuffle(row_indices)
        row_indices = np.sort(row_indices[: MAX_START_ROWS // n_classes])
        drawn = observations.weights[row_indices]
        weights.append(drawn * (total / drawn.sum()) if row_indices.size < n_rows else drawn)
        chosen.append(row_indices)
    return replace(observations.take(np.concatenate(chosen)), weights=np.concatenate(weights))


def _embed(
    observations: Observations, specification: MixtureSpecification
) -> Float[np.ndarray, "obs coordinate"]:
    """Rows as points of k-means: reals, the column mean where missing, and scaled indicators."""
    laws = laws_of(specification)
    both = laws.reals.embedding(observations), laws.levels.embedding(observations)
    return np.concatenate(both, axis=1)


def _memberships(
    points: np.ndarray, weights: np.ndarray, size: int, rng: np.random.Generator
) -> Float[np.ndarray, "row cluster"]:
    """Soft memberships from k-means++ and a few Lloyd steps; every row sums to one."""
    centres = _plus_plus(points, weights, size, rng)
    for _ in range(LLOYD_STEPS if size > 1 else 0):
        shares = weights * (_nearest(points, centres) == np.arange(size)[:, None])
        mass = shares.sum(axis=1)
        filled = mass > 0
        centres[filled] = (shares @ points)[filled] / mass[filled, None]
    memberships = np.full((len(points), size), (1 - OWN_CLUSTER) / size)
    memberships[np.arange(len(points)), _nearest(points, centres)] += OWN_CLUSTER
    return memberships


def _plus_plus(
    points: np.ndarray, weights: np.ndarray, size: int, rng: np.random.Generator
) -> Float[np.ndarray, "cluster coordinate"]:
    """k-means++ centres: drawn in proportion to the squared distance to the earlier centres."""
    chosen = [_draw(weights, rng)]
    distances = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    for _ in range(size - 1):
        potential = weights * distances
        # Fewer distinct points than centres: repeat points rather than fail.
        chosen.append(_draw(potential if potential.sum() > 0 else weights, rng))
        distances = np.minimum(distances, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    return points[chosen].copy()


def _draw(mass: np.ndarray, rng: np.random.Generator) -> int:
    """Index drawn in proportion to ``mass``, from one uniform number."""
    cumulative = np.cumsum(mass / mass.max())
    return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))


def _nearest(points: np.ndarray, centres: np.ndarray) -> Int[np.ndarray, " row"]:
    """Index of the nearest centre."""
    cross = points @ centres.T
    return ((centres**2).sum(axis=1) - 2 * cross).argmin(axis=1)


def _from_memberships(
    observations: Observations,
    memberships: np.ndarray,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
) -> MixtureParameters:
    """Starting parameters from weighted memberships (row, component) and the observed cells."""
    counts = memberships.sum(axis=0)
    classes = np.asarray(specification.component_class)
    by_class = np.bincount(classes, weights=counts)
    sizes = np.bincount(classes)
    point = weighted_components(
        (by_class + 1) / (by_class + 1).sum(), (counts + 0.5) / (by_class + 0.5 * sizes)[classes]
    )
    laws = laws_of(specification)
    point = laws.reals.initial(point, observations, memberships, hyperparameters)
    return laws.levels.initial(point, observations, memberships, hyperparameters)


# The MAP fit of a mixture: starts, short runs of all, long runs of the best.


SHORT_RUN = 50
"""Steps that every restart gets. With 20, the best restart was once dropped, by 54 nats."""

FINALISTS = 3
"""Restarts that are run to convergence."""


@dataclass(frozen=True)
class EMSettings:
    """Settings of EM: its random starts, and when it ends."""

    rng: np.random.Generator
    n_init: int = 4
    max_iter: int = 1000
    tol: float = 1e-6
    """Smallest rise of the log posterior per unit of row weight that counts, in nats."""
    acceleration: Acceleration = "squarem"


def fit_mixture(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    em: EMSettings,
    start: MixtureParameters | None = None,
) -> Fit:
    """Find the mode of the log posterior (without Jacobian) by EM.

    Rows, distinct and weighted, prior and ``start`` are in standard units. Of the random starts, or
    of the one that is given, the best run is taken.
    """
    return initialise_fit(observations, specification, hyperparameters, em, start).climb(em)


@dataclass(frozen=True)
class InitialisedFit:
    """Starting points and rows prepared for EM, in standard units."""

    specification: MixtureSpecification
    hyperparameters: MixtureHyperparameters
    expectation: Sums
    starts: list[MixtureParameters]
    weight: float
    """Sum of the row weights."""

    def climb(self, em: EMSettings) -> Fit:
        """Best fit of short runs from all starts, the best ``FINALISTS`` continued."""
        problem = problem_of(self.expectation, self.specification, self.hyperparameters)
        tolerance = em.tol * self.weight
        climb = partial(ascend, problem, tolerance=tolerance, acceleration=em.acceleration)
        first_leg = em.max_iter if len(self.starts) <= FINALISTS else min(SHORT_RUN, em.max_iter)
        with one_blas_thread():
            runs = [climb(point, max_iter=first_leg) for point in self.starts]
            for index in ranked(np.array([run.log_posterior for run in runs]))[:FINALISTS]:
                if runs[index].status is Status.MAX_ITER and em.max_iter > first_leg:
                    rest = climb(runs[index].parameters, max_iter=em.max_iter - first_leg + 1)
                    runs[index] = _joined(runs[index], rest)
        return _best(runs, self.specification)


def initialise_fit(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    em: EMSettings,
    start: MixtureParameters | None = None,
) -> InitialisedFit:
    """Starting points of a fit, drawn or ``start``, and the rows prepared for EM."""
    with one_blas_thread():
        if start is None:
            differ = specification.n_components > specification.n_classes
            n_starts = em.n_init if differ else 1  # of one component a class all starts are one
            starts = [
                starting_point(observations, specification, hyperparameters, em.rng)
                for _ in range(n_starts)
            ]
        else:
            starts = [start]
        return InitialisedFit(
            specification=specification,
            hyperparameters=hyperparameters,
            expectation=prepare(observations, specification),
            starts=starts,
            weight=float(observations.weights.sum()),
        )


def problem_of(
    expectation: Sums,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
) -> Problem:
    """EM problem of a mixture on prepared rows."""
    declared = DeclaredPrior(hyperparameters, specification)
    laws = laws_of(specification)

    def step(parameters: MixtureParameters) -> Step:
        statistics = expectation.statistics(parameters)
        prior = declared.log_density(parameters)
        mode = partial(laws.mode, statistics, parameters, hyperparameters)
        return Step(statistics.log_likelihood + prior, mode)

    points = MixturePoints(specification, hyperparameters)
    return Problem(step, points.pack, points.unpack)


def _joined(first: Ascent, rest: Ascent) -> Ascent:
    """Two runs as one; the second starts where the first ended."""
    log_posterior = np.concatenate([first.trace.log_posterior, rest.trace.log_posterior[1:]])
    return Ascent(rest.parameters, Trace(log_posterior), rest.status)


def _best(runs: list[Ascent], specification: MixtureSpecification) -> Fit:
    """The run with the highest log posterior gives parameters, trace and status.

    Starts often end at one mode with its components in another order: the first is taken.
    """
    finals = np.array([run.log_posterior for run in runs])
    winner = runs[ranked(finals)[0]]
    floored = at_floor(winner.parameters.precisions_cholesky)
    return Fit(winner.parameters, winner.trace, winner.status, finals, floored)
