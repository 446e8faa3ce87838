"""The MAP fit of a mixture: starts, short runs of all, long runs of the best."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from bayesrbf.numerics.mixture.ascent import Acceleration, Ascent, Problem, Step, ascend
from bayesrbf.numerics.mixture.expectation import Sums, prepare
from bayesrbf.numerics.mixture.initialisation import starting_point
from bayesrbf.numerics.mixture.mixture_points import MixturePoints
from bayesrbf.numerics.mixture.mixture_prior import DeclaredPrior
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.numerics.rounding import ranked
from bayesrbf.numerics.threads import one_blas_thread
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.results import Fit, Status, Trace
from bayesrbf.records.specification import MixtureSpecification

SHORT_RUN = 50
"""Steps that every restart gets. With 20, the best restart was once dropped, by 54 nats."""

FINALISTS = 3
"""Restarts that are run to convergence."""


def fit_mixture(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    *,
    rng: np.random.Generator,
    tol: float = 1e-6,
    max_iter: int = 1000,
    n_init: int = 4,
    acceleration: Acceleration = "squarem",
    start: MixtureParameters | None = None,
) -> Fit:
    """Find the mode of the log posterior (without Jacobian) by EM.

    Rows, distinct and weighted, prior and ``start`` are in standard units. The fit has converged
    when a step raises the log posterior by at most ``tol`` nats per unit of row weight. Of
    ``n_init`` random starts, or of the one that is given, the best run is taken.
    """
    begun = begin_fit(
        observations, specification, hyperparameters, rng=rng, n_init=n_init, start=start
    )
    return begun.climb(tol=tol, max_iter=max_iter, acceleration=acceleration)


@dataclass(frozen=True)
class BegunFit:
    """Starts and rows prepared for EM: the rows themselves are not needed any more."""

    specification: MixtureSpecification
    hyperparameters: MixtureHyperparameters
    expectation: Sums
    starts: list[MixtureParameters]
    weight: float
    """Of all rows."""

    def climb(self, *, tol: float, max_iter: int, acceleration: Acceleration = "squarem") -> Fit:
        """The best of short runs of all starts and long runs of the best."""
        problem = problem_of(self.expectation, self.specification, self.hyperparameters)
        climb = partial(ascend, problem, tolerance=tol * self.weight, acceleration=acceleration)
        first_leg = max_iter if len(self.starts) <= FINALISTS else min(SHORT_RUN, max_iter)
        with one_blas_thread():
            runs = [climb(point, max_iter=first_leg) for point in self.starts]
            for index in ranked(np.array([run.log_posterior for run in runs]))[:FINALISTS]:
                if runs[index].status is Status.MAX_ITER and max_iter > first_leg:
                    rest = climb(runs[index].parameters, max_iter=max_iter - first_leg + 1)
                    runs[index] = _joined(runs[index], rest)
        return _best(runs, self.specification)


def begin_fit(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    *,
    rng: np.random.Generator,
    n_init: int,
    start: MixtureParameters | None = None,
) -> BegunFit:
    """Draw the starts of a fit, or take the one that is given, and prepare its rows for EM."""
    known = specification, hyperparameters
    with one_blas_thread():
        if start is None:
            n_starts = n_init if _starts_differ(specification) else 1
            starts = [starting_point(observations, *known, rng) for _ in range(n_starts)]
        else:
            starts = [start]
        weight = float(observations.weights.sum())
        return BegunFit(*known, prepare(observations, specification), starts, weight)


def fit_from(
    start: MixtureParameters,
    rows: Sums,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    *,
    tolerance: float,
    max_iter: int,
) -> Fit:
    """Climb from one start over rows wherever they are, all in standard units."""
    with one_blas_thread():
        problem = problem_of(rows, specification, hyperparameters)
        run = ascend(problem, start, tolerance=tolerance, max_iter=max_iter, acceleration="squarem")
    return _best([run], specification)


def problem_of(
    expectation: Sums,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
) -> Problem:
    """Describe a mixture on prepared rows as something to ascend."""
    declared, laws = DeclaredPrior(hyperparameters, specification), laws_of(specification)

    def step(parameters: MixtureParameters) -> Step:
        statistics = expectation.statistics(parameters)
        prior = declared.log_density(parameters)
        mode = partial(laws.mode, statistics, parameters, hyperparameters)
        return Step(statistics.log_likelihood + prior, mode)

    points = MixturePoints(specification, hyperparameters)
    return Problem(step, points.pack, points.unpack)


def _starts_differ(specification: MixtureSpecification) -> bool:
    """Whether random starts can differ: some class has more than one component."""
    return specification.n_components > specification.n_classes


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
    floored = laws_of(specification).reals.at_floor(winner.parameters.precisions_cholesky)
    return Fit(winner.parameters, winner.trace, winner.status, finals, floored)
