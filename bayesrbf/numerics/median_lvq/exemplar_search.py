r"""Search for exemplars: the published generalised EM, then swaps on the objective itself.

Both go through the prototypes in turn and move each to the best of all its candidates. The
generalised EM takes the best by a lower bound that is renewed once a sweep, and stops early.
Its end is where the swaps begin: they are never below it. A swap takes the best by the
objective, so that no single swap can better its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.median_lvq.glvq import MarginSum
from bayesrbf.numerics.median_lvq.moving_exemplars import Exemplars, Objective
from bayesrbf.numerics.median_lvq.rslvq import ConditionalLikelihood
from bayesrbf.numerics.rounding import ranked
from bayesrbf.records.median_lvq import (
    Dissimilarities,
    MedianLVQParameters,
    Prototypes,
    Sigma,
    width_and_prior,
)
from bayesrbf.records.results import Status, Trace

ROUNDING_OF_OBJECTIVE: Final = 1e-10
"""Relative rise of the objective that rounding may explain. It is no reason to move an exemplar."""


@dataclass(frozen=True)
class ExemplarFit:
    """The winning restart of a search."""

    parameters: MedianLVQParameters  # The point; exemplars of a class in ascending order.
    trace: Trace
    """Objective (with the log prior of sigma, where it has one) before the search and after
    every sweep of the winner."""
    status: Status
    restarts: Float[np.ndarray, " restart"]  # The objective that every restart reached.


def fit_exemplars(
    rows: Dissimilarities,
    prototypes: Prototypes,
    sigma: Sigma | None,
    *,
    rng: np.random.Generator,
    n_init: int = 4,
    max_iter: int = 100,
    start: Exemplars | None = None,
    wider: Sequence[float] = (),
) -> ExemplarFit:
    """Find the exemplars that maximise the objective: of RSLVQ, or of GLVQ where sigma is None.

    There are ``n_init`` random starts, or one ``start``, each with at most ``max_iter`` sweeps.
    The widths of ``wider``, from the widest on, are searched before sigma, each from where the
    last one ended: wide kernels leave fewer optima.
    """
    random = [random_exemplars(rows, prototypes, rng) for _ in range(n_init)]
    starts = random if start is None else [start]
    for width in wider:
        before = objective_of(rows, prototypes, width)
        ends = [climb(before, each, max_iter) for each in starts]
        starts = [parameters.exemplars for parameters, _, _ in ends]
    objective = objective_of(rows, prototypes, sigma)
    runs = [climb(objective, start, max_iter) for start in starts]
    reached = np.array([float(trace.log_posterior[-1]) for _, trace, _ in runs])
    parameters, trace, status = runs[ranked(reached)[0]]
    return ExemplarFit(parameters, trace, status, reached)


def random_exemplars(
    rows: Dissimilarities, prototypes: Prototypes, rng: np.random.Generator
) -> Exemplars:
    """Draw exemplars of every class among its candidates, different ones where there are enough.

    Classes draw in the order of their first candidate, so that their names do not matter.
    """
    exemplars = np.empty(prototypes.number, dtype=np.intp)
    for label in _turns(rows):
        part, candidates = prototypes.class_slices[label], rows.candidates[label]
        size = part.stop - part.start
        exemplars[part] = rng.choice(candidates, size, replace=size > candidates.size)
    return exemplars


def objective_of(rows: Dissimilarities, prototypes: Prototypes, sigma: Sigma | None) -> Objective:
    """The objective of a search, at the median of a prior of the width.

    It is that of RSLVQ, or of GLVQ where sigma is None.
    """
    if sigma is None:
        return MarginSum(rows, prototypes)
    return ConditionalLikelihood(rows, prototypes, *width_and_prior(sigma))


def climb(
    objective: Objective, start: Exemplars, max_iter: int
) -> tuple[MedianLVQParameters, Trace, Status]:
    """Raise the bound of the generalised EM, then swap, with ``max_iter`` sweeps at most.

    The trace has the objective before the first and after every sweep. Exemplars of a class
    come in ascending order.
    """
    trace = [objective.value(start)]
    objective, exemplars, _ = sweeps(objective, start, trace, max_iter, bounded=True)
    objective, exemplars, status = sweeps(objective, exemplars, trace, max_iter, bounded=False)
    return point_of(objective, exemplars), Trace(np.array(trace)), status


def sweeps(
    objective: Objective,
    exemplars: Exemplars,
    trace: list[float],
    max_iter: int,
    *,
    bounded: bool,
) -> tuple[Objective, Exemplars, Status]:
    """Sweep over the prototypes until none moves, or the trace has ``max_iter`` sweeps.

    Moves are judged by the bound of the generalised EM where they are ``bounded``, else by the
    objective. The trace goes on with the objective after every sweep.
    """
    parts = [objective.prototypes.class_slices[label] for label in _turns(objective.rows)]
    order = np.concatenate([np.arange(part.start, part.stop) for part in parts])
    while len(trace) <= max_iter:
        scorer = objective.bound(exemplars) if bounded else objective.scorer(exemplars)
        tolerance = ROUNDING_OF_OBJECTIVE * max(1.0, abs(trace[-1]))
        moved = scorer.sweep(exemplars, order, tolerance=tolerance)
        stays, exemplars = np.array_equal(moved, exemplars), moved
        objective = objective.refit(exemplars)
        trace.append(objective.value(exemplars))
        if stays and trace[-1] - trace[-2] <= tolerance:
            return objective, exemplars, Status.CONVERGED
    return objective, exemplars, Status.MAX_ITER


def point_of(objective: Objective, exemplars: Exemplars) -> MedianLVQParameters:
    """Exemplars and width.

    Exemplars of a class are exchangeable; in order, equal ends look equal.
    """
    parts = [np.sort(exemplars[part]) for part in objective.prototypes.class_slices]
    return MedianLVQParameters(np.concatenate(parts), objective.sigma)


def _turns(rows: Dissimilarities) -> list[int]:
    """Classes in the order of their first candidate, whatever their names."""
    firsts = [int(candidates[0]) for candidates in rows.candidates]
    return sorted(range(rows.n_classes), key=firsts.__getitem__)
