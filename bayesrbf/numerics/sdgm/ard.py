r"""Type-II maximisation: precisions of the weights from the evidence, zeros by pruning.

Between mode searches every precision takes MacKay's step with the complete-data
curvature, :math:`\alpha \leftarrow (1 - \alpha \Lambda_{hh}) / w_h^2`, and every
component probability the mean responsibility of its class. The EM step
:math:`1 / (w_h^2 + \Lambda_{hh})` would prune nothing in a thousand steps.

The evidence at its maximum over many precisions is too high, by more the more weights are
active. With a log-uniform prior between the bounds that the fit keeps them in, and MacKay's
error bars on the logs, :math:`\sigma^2_{\log \alpha} = 2 / \gamma`, every active weight costs

.. math:: \log \frac{\sqrt{4 \pi / \gamma}}{\log \alpha_{\max} - \log \alpha_{\min}}

nats, about two. A weight that was dropped costs nothing: all large precisions are one model.

See Tipping and Faul (2003), Fast marginal likelihood maximisation for sparse Bayesian models,
AISTATS, equation 20, for the maximum over one precision. Hayashi and Uchida (2021), A
discriminative Gaussian mixture model with sparsity, ICLR, section 3 and appendix A. MacKay (1992),
Bayesian interpolation, Neural Computation 4, 415-447, section 4.3, for the error bars of
precisions. MacKay (1992), Neural Computation 4, 448-472, section 4, for the step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.rounding import ranked
from bayesrbf.numerics.sdgm.ard_state import Factored, State, Whitened, without_superfluous
from bayesrbf.numerics.sdgm.label_likelihood import (
    Labels,
    complete_curvature,
    completion_error,
    hidden_information,
    places,
)
from bayesrbf.numerics.sdgm.mode_search import (
    Mode,
    check_size,
    find_mode,
    inverse_curvature,
    is_wide,
    spread_of_components,
)
from bayesrbf.records.results import Status
from bayesrbf.records.sdgm import CompletedRows, SDGMParameters, SDGMTrace

LEAST_PRECISION = 1e-6
"""The prior standard deviation of a weight is at most 1000.

Otherwise it has no bound where the classes are separable: the likelihood has no maximum there.
"""
BARELY = 0.01
"""A weight whose gamma is below this may be dropped at once: see :func:`_doomed`.

Gamma is the part of its prior variance that the rows explain.
"""
SETTLED = 0.1
"""Once no log precision changes by more than this, single precisions may jump to their maximum."""
TIED = 1e-6
"""Moves of log precisions that differ by less are a tie.

Weights of the two levels of a column mirror each other: without a tie rounding would say which of
them jumps, or is pruned.
"""
LOOSE = 1e-8
"""Mode searches between updates end where a step would raise the log posterior by half of it."""
TIGHT = 1e-16  # The same for the last mode search of a run; both in nats.
LOOSE_STEPS, TIGHT_STEPS = 2, 100
"""Most Newton steps between updates, and in the last search.

Few are enough between updates, because each update moves the mode anyway.
"""


@dataclass(frozen=True)
class EvidenceProblem:
    """Training rows and the features of their points."""

    rows: CompletedRows
    factored: Factored

    def labels(self, component_class: Int[np.ndarray, " component"]) -> Labels:
        """The components that each point's row may have, given the class of every component."""
        allowed = np.repeat(self.rows.allowed[:, component_class], self.rows.sizes, axis=0)
        return Labels(allowed, self.rows.starts, self.rows.weights)


@dataclass(frozen=True)
class Run:
    """Where one restart ended, and how it got there.

    ``log_posterior`` is the log density of the weights given their precisions. ``evidence`` is
    the Laplace approximation of the log evidence with the observed Hessian. ``determined`` is
    MacKay's gamma of every weight, between 0 and 1. ``n_indefinite`` counts the directions in
    which the log posterior does not curve downwards. ``completion_error`` is the standard error
    of the log likelihood that comes from the finite number of completions.
    """

    parameters: SDGMParameters
    trace: SDGMTrace
    status: Status
    log_posterior: float
    evidence: float
    determined: Float[np.ndarray, " weight"]
    n_indefinite: int
    completion_error: float


def maximise_evidence(
    problem: EvidenceProblem, start: State, *, tol: float, max_iter: int, alpha_max: float
) -> Run:
    """Alternate mode searches with updates of precisions and proportions.

    A run has converged when no log precision changes by more than ``tol``. Weights whose
    precision would exceed ``alpha_max`` are pruned. May raise ValueError where the weights that
    are left are too many for one curvature matrix in memory.
    """
    state, status, change, wide = start, Status.MAX_ITER, np.inf, True
    path: list[tuple[float, int, int]] = []
    for _ in range(max_iter):
        whitened = state.whitened(problem.factored)
        labels = problem.labels(state.component_class)
        # While there are many weights, every component is judged with the others held.
        wide = wide and change > SETTLED and is_wide(whitened.designs)
        if not wide:
            check_size(whitened.designs)
        mode = _mode(state, whitened, labels, tol=LOOSE, max_steps=LOOSE_STEPS, wide=wide)
        inverses, log_determinant = spread_of_components(
            whitened.designs, labels, mode.expectation, wide=wide
        )
        size = (state.coefficients.size, state.component_class.size)
        path.append((mode.log_posterior - 0.5 * log_determinant, *size))
        state, change = _update(
            state, mode, whitened, inverses, alpha_max, settled=change <= SETTLED
        )
        # A run may end only where all weights are judged together.
        if change <= tol and not wide:
            status = Status.CONVERGED
            break
    return _finish(problem, state, path, status)


def _mode(
    state: State,
    whitened: Whitened,
    labels: Labels,
    *,
    tol: float,
    max_steps: int,
    wide: bool = False,
) -> Mode:
    """Search for the mode of the weights, from those of the state."""
    return find_mode(
        whitened.designs,
        labels,
        np.log(state.proportions),
        whitened.coordinates(state.coefficients),
        tol=tol,
        max_steps=max_steps,
        wide=wide,
    )


def _update(
    state: State,
    mode: Mode,
    whitened: Whitened,
    inverses: list[np.ndarray],
    alpha_max: float,
    *,
    settled: bool,
) -> tuple[State, float]:
    """New precisions and proportions, without what they prune, and the largest change.

    The change is that of a log precision, infinite where something was pruned. Once all
    precisions have settled, the one that moves most jumps to the maximum of its evidence.
    """
    coefficients = whitened.weights(mode.coordinates)
    determined = whitened.determined(inverses)
    penalty = state.precisions * coefficients**2
    # The new precision is gamma / w²; compared like this, no weight of 0 is divided by.
    active = (determined < alpha_max * coefficients**2) & ~_doomed(determined, penalty)
    precisions = np.full(active.size, np.inf)
    precisions[active] = determined[active] / coefficients[active] ** 2
    precisions = np.maximum(precisions, LEAST_PRECISION)
    change = np.inf  # after pruning nothing has settled
    if active.all():
        moves = np.abs(np.log(precisions / state.precisions))
        change = float(moves.max(initial=0.0))
        if settled and moves.size:
            most = int(ranked(moves, TIED)[0])
            precisions[most] = _best(state.precisions[most], determined[most], penalty[most])
            active[most] = precisions[most] < alpha_max
            change = change if active[most] else np.inf
    updated = State(
        state.component_class,
        _proportions(state.component_class, mode),
        state.component[active],
        state.feature[active],
        coefficients[active],
        precisions[active],
    )
    pruned = without_superfluous(updated)
    fewer = pruned.component_class.size < state.component_class.size
    return pruned, np.inf if fewer else change


def _doomed(
    determined: Float[np.ndarray, " weight"], penalty: Float[np.ndarray, " weight"]
) -> Bool[np.ndarray, " weight"]:
    """Weights that the rows hardly determine and whose evidence has no finite maximum.

    With the others held, the log evidence rises towards infinite precision wherever alpha w^2
    <= gamma (1 - gamma). MacKay's steps go there, too, but only geometrically.
    """
    return (determined < BARELY) & (penalty <= determined * (1 - determined))


def _best(precision: float, determined: float, penalty: float) -> float:
    """The precision with the highest evidence while all others are held.

    MacKay's steps converge to it, but cover only the fraction gamma of the distance in each step: a
    weight that the rows hardly determine would need hundreds.
    """
    excess = penalty - determined * (1 - determined)
    if excess <= 0:
        return np.inf
    return max(float(precision * determined**2 / excess), LEAST_PRECISION)


def _proportions(
    component_class: Int[np.ndarray, " component"], mode: Mode
) -> Float[np.ndarray, " component"]:
    """Mean responsibilities within each class."""
    mass = mode.expectation.weights @ mode.expectation.responsibilities
    return mass / np.bincount(component_class, weights=mass)[component_class]


def _finish(
    problem: EvidenceProblem, state: State, path: list[tuple[float, int, int]], status: Status
) -> Run:
    """The exact mode at the last precisions, and the covariance around it."""
    whitened = state.whitened(problem.factored)
    check_size(whitened.designs)
    labels = problem.labels(state.component_class)
    mode = _mode(state, whitened, labels, tol=TIGHT, max_steps=TIGHT_STEPS)
    state = replace(state, coefficients=whitened.weights(mode.coordinates))
    complete = complete_curvature(whitened.designs, labels, mode.expectation)
    complete[np.diag_indices_from(complete)] += 1.0
    observed = complete - hidden_information(whitened.designs, labels, mode.expectation)
    n_indefinite = int((np.linalg.eigvalsh(observed) <= 0).sum())
    # A saddle has no Laplace approximation: the complete-data curvature stands in.
    inverse, log_determinant = inverse_curvature(complete if n_indefinite else observed)
    log_prior = 0.5 * float(np.log(state.precisions / (2 * np.pi)).sum())
    evidence, n_weights, n_components = (np.array(column) for column in zip(*path, strict=True))
    return Run(
        parameters=SDGMParameters(
            state.component_class,
            state.proportions,
            state.component,
            state.feature,
            state.coefficients,
            state.precisions,
            whitened.covariance(inverse),
        ),
        trace=SDGMTrace(evidence, n_weights, n_components),
        status=status,
        log_posterior=mode.log_posterior + log_prior,
        evidence=mode.log_posterior - 0.5 * log_determinant,
        determined=whitened.determined([inverse[p, p] for p in places(whitened.designs)]),
        n_indefinite=n_indefinite,
        completion_error=completion_error(labels, mode.expectation),
    )


def log_masses(runs: list[Run], alpha_max: float) -> Float[np.ndarray, " restart"]:
    """Log evidence of every restart with its precisions integrated out, in nats."""
    return np.array([run.evidence + log_volume(run.determined, alpha_max) for run in runs])


def log_volume(determined: Float[np.ndarray, " weight"], alpha_max: float) -> float:
    """Log of the fraction of the precisions' prior that their posterior takes, at most 0.

    ``determined`` is MacKay's gamma of the active weights.

    >>> round(log_volume(np.array([1.0]), alpha_max=1e5), 2)
    -1.97
    """
    reach = max(float(np.log(alpha_max / LEAST_PRECISION)), 1.0)
    log_widths = 0.5 * np.log(4 * np.pi / np.maximum(determined, 1e-9))
    # A posterior as wide as the prior takes all of it, and not more.
    return float(np.minimum(log_widths - np.log(reach), 0.0).sum())
