r"""Monotone ascent by EM, and by SQUAREM where EM is slow.

A step is one E-step and one M-step. The log posterior is checked at every
accepted point; a fall beyond rounding ends the run and is told.

References
----------
Varadhan and Roland (2008), Scandinavian Journal of Statistics 35, 335-353:
squared extrapolation, with the step length :math:`-|r| / |v|`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.results import Status, Trace

Acceleration = Literal["squarem"] | None

ROUNDING_OF_EM_STEP = 1e-10
"""Relative fall of the log posterior that rounding may explain."""

PLAIN_STEPS = 10
"""EM steps before extrapolation: most fits are done, or well under way, by then."""


@dataclass(frozen=True)
class Step:
    """One evaluation: the log posterior at a point, and EM's next point."""

    log_posterior: float  # Without Jacobian, in nats.
    maximise: Callable[[], MixtureParameters]

    @cached_property
    def following(self) -> MixtureParameters:
        """EM's next point; nobody asks for that of a point that is turned down."""
        return self.maximise()


@dataclass(frozen=True)
class Problem:
    """A model as an ascent sees it; points are extrapolated in the coordinates of ``pack``."""

    step: Callable[[MixtureParameters], Step]
    pack: Callable[[MixtureParameters], np.ndarray]
    unpack: Callable[[np.ndarray], MixtureParameters]


@dataclass(frozen=True)
class Ascent:
    """One run: the best point whose log posterior is known, the trace there, and the end."""

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
    """Climb from a start until an EM step raises the log posterior by at most ``tolerance`` nats.

    Extrapolation is ``acceleration``; at most ``max_iter`` points are accepted.
    """
    here, step = start, problem.step(start)
    if not np.isfinite(step.log_posterior):
        return Ascent(start, Trace(np.array([-np.inf])), Status.DEGENERATE)
    trace = [step.log_posterior]
    coordinates: np.ndarray | None = None  # of the point, once there are extrapolations
    while len(trace) < max_iter:
        ahead = step.following
        new = problem.step(ahead)
        rise = new.log_posterior - step.log_posterior
        if not rise >= -ROUNDING_OF_EM_STEP * max(1.0, abs(step.log_posterior)):
            return Ascent(here, Trace(np.array(trace)), Status.DECREASED)
        trace.append(new.log_posterior)
        if rise <= tolerance:
            return Ascent(ahead, Trace(np.array(trace)), Status.CONVERGED)
        origin, here, step = here, ahead, new
        if acceleration is not None and len(trace) > PLAIN_STEPS:
            before = problem.pack(origin) if coordinates is None else coordinates
            here, step, coordinates = _extrapolated(problem, before, here, step)
            trace[-1] = step.log_posterior
    return Ascent(here, Trace(np.array(trace)), Status.MAX_ITER)


def _extrapolated(
    problem: Problem, before: np.ndarray, here: MixtureParameters, step: Step
) -> tuple[MixtureParameters, Step, np.ndarray]:
    """Squared extrapolation through three EM points, kept only where it is higher.

    The first point is given by its coordinates; those of the last come back.
    """
    points = [before, problem.pack(here), problem.pack(step.following)]
    unmoved = here, step, points[1]
    change = points[1] - points[0]
    curvature = points[2] - points[1] - change
    length = float(np.linalg.norm(change)) / max(float(np.linalg.norm(curvature)), 1e-300)
    # A length of 1 is the EM step itself.
    if length <= 1:
        return unmoved
    # The squared step of Varadhan and Roland (2008), SQUAREM, with their third step length.
    target = points[0] + 2 * length * change + length**2 * curvature
    candidate = problem.unpack(target)
    # Far targets may overflow the transforms; such a point has no log posterior.
    if not all(np.isfinite(part).all() for part in (target, candidate.precisions_cholesky)):
        return unmoved
    try:
        new = problem.step(candidate)
        if new.log_posterior > step.log_posterior:
            _ = new.following  # a point from which EM cannot go on is turned down, too
            return candidate, new, target
    except np.linalg.LinAlgError:
        pass
    return unmoved
