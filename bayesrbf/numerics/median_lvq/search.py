r"""Search for exemplars: swaps on the objective itself, or the published generalised EM.

Both go through the prototypes in turn and move each to the best of all its candidates. A
swap takes the best by the objective, so that no single swap can better its end. The
generalised EM takes the best by a lower bound that is renewed once a sweep, and stops
earlier. Its end is where the swaps begin: they are never below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Float

from bayesrbf.exemplars import Dissimilarities, MedianLVQParameters, Prototypes, Sigma, SigmaPrior
from bayesrbf.numerics.median_lvq.likelihood import ConditionalLikelihood
from bayesrbf.numerics.median_lvq.margin import MarginSum
from bayesrbf.numerics.median_lvq.objective import Exemplars, Objective
from bayesrbf.results import Status, Trace

Optimizer = Literal["swap", "gem"]

ROUNDING: Final = 1e-10
"""Relative rise of the objective that rounding may explain: no reason to move."""


@dataclass(frozen=True)
class ExemplarFit:
    """The winning restart of a search.

    Attributes
    ----------
    parameters : MedianLVQParameters
        The point; exemplars of a class in ascending order.
    trace : Trace
        Objective (with the log prior of sigma, where it has one) before the
        search and after every sweep of the winner.
    status : Status
        The winner's outcome.
    restarts : ndarray of shape (n_init,)
        What every restart reached.
    """

    parameters: MedianLVQParameters
    trace: Trace
    status: Status
    restarts: Float[np.ndarray, " restart"]


def fit_exemplars(
    rows: Dissimilarities,
    prototypes: Prototypes,
    sigma: Sigma | None,
    *,
    rng: np.random.Generator,
    optimizer: Optimizer = "swap",
    n_init: int = 4,
    max_iter: int = 100,
    start: Exemplars | None = None,
    wider: Sequence[float] = (),
) -> ExemplarFit:
    """Find the exemplars that maximise the objective.

    Parameters
    ----------
    rows : Dissimilarities
        Training rows.
    prototypes : Prototypes
        Class of every prototype.
    sigma : SigmaPrior, float or None
        The width or its prior for RSLVQ; None for GLVQ.
    rng : numpy.random.Generator
        Source of the starts.
    optimizer : {"swap", "gem"}
        How a prototype moves.
    n_init : int
        Number of random starts.
    max_iter : int
        Most sweeps over the prototypes from a start.
    start : ndarray of shape (n_prototypes,), optional
        The only start, in place of random ones.
    wider : sequence of float
        Widths, from the widest on, that are searched before sigma, each from where the
        last one ended: wide kernels leave fewer optima.

    Returns
    -------
    ExemplarFit
        The best end: point, trace, status, and what the other starts reached.
    """
    random = [random_exemplars(rows, prototypes, rng) for _ in range(n_init)]
    starts = random if start is None else [start]
    for width in wider:
        before = objective_of(rows, prototypes, width)
        ends = [climb(before, each, optimizer, max_iter) for each in starts]
        starts = [parameters.exemplars for parameters, _, _ in ends]
    objective = objective_of(rows, prototypes, sigma)
    runs = [climb(objective, start, optimizer, max_iter) for start in starts]
    reached = np.array([float(trace.log_posterior[-1]) for _, trace, _ in runs])
    parameters, trace, status = runs[int(reached.argmax())]
    return ExemplarFit(parameters, trace, status, reached)


def random_exemplars(
    rows: Dissimilarities, prototypes: Prototypes, rng: np.random.Generator
) -> Exemplars:
    """Draw exemplars of every class among its candidates.

    Classes draw in the order of their first candidate, so that their names do not
    matter.

    Parameters
    ----------
    rows : Dissimilarities
        Training rows.
    prototypes : Prototypes
        Class of every prototype.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (n_prototypes,)
        Rows; different ones where a class has enough.
    """
    exemplars = np.empty(prototypes.number, dtype=np.intp)
    for label in _turns(rows):
        part, candidates = prototypes.class_slices[label], rows.candidates[label]
        size = part.stop - part.start
        exemplars[part] = rng.choice(candidates, size, replace=size > candidates.size)
    return exemplars


def objective_of(rows: Dissimilarities, prototypes: Prototypes, sigma: Sigma | None) -> Objective:
    """The objective of a search, at the median of a prior of the width.

    Parameters
    ----------
    rows : Dissimilarities
        Training rows.
    prototypes : Prototypes
        Class of every prototype.
    sigma : SigmaPrior, float or None
        The width or its prior for RSLVQ; None for GLVQ.

    Returns
    -------
    Objective
        What is maximised.
    """
    if sigma is None:
        return MarginSum(rows, prototypes)
    if isinstance(sigma, SigmaPrior):
        return ConditionalLikelihood(rows, prototypes, float(np.exp(sigma.location)), sigma)
    return ConditionalLikelihood(rows, prototypes, sigma)


def climb(
    objective: Objective, start: Exemplars, optimizer: Optimizer, max_iter: int
) -> tuple[MedianLVQParameters, Trace, Status]:
    """Sweep over the prototypes until none moves.

    Parameters
    ----------
    objective : Objective
        What is maximised.
    start : ndarray of shape (n_prototypes,)
        Training row that each prototype is at first.
    optimizer : {"swap", "gem"}
        How a prototype moves.
    max_iter : int
        Most sweeps.

    Returns
    -------
    parameters : MedianLVQParameters
        The end; exemplars of a class in ascending order.
    trace : Trace
        Objective before the first and after every sweep.
    status : Status
        Whether it is an end of the search or of its patience.
    """
    exemplars, trace, status = start.copy(), [objective.value(start)], Status.CONVERGED
    parts = [objective.prototypes.class_slices[label] for label in _turns(objective.rows)]
    order = np.concatenate([np.arange(part.start, part.stop) for part in parts])
    for bounded in (True,) if optimizer == "gem" else (True, False):
        status = Status.MAX_ITER
        while status is Status.MAX_ITER and len(trace) <= max_iter:
            scorer = objective.bound(exemplars) if bounded else objective.scorer(exemplars)
            tolerance = ROUNDING * max(1.0, abs(trace[-1]))
            moved = scorer.sweep(exemplars, order, tolerance=tolerance)
            stays, exemplars = np.array_equal(moved, exemplars), moved
            objective = objective.refit(exemplars)
            trace.append(objective.value(exemplars))
            if stays and trace[-1] - trace[-2] <= tolerance:
                status = Status.CONVERGED
    for part in objective.prototypes.class_slices:
        exemplars[part].sort()
    parameters = MedianLVQParameters(exemplars, objective.sigma)
    return parameters, Trace(np.array(trace)), status


def _turns(rows: Dissimilarities) -> list[int]:
    """Classes in the order of their first candidate, whatever their names."""
    firsts = [int(candidates[0]) for candidates in rows.candidates]
    return sorted(range(rows.n_classes), key=firsts.__getitem__)
