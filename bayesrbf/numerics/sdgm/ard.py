r"""Type-II maximisation: precisions of the weights from the evidence, zeros by pruning.

Between mode searches every precision takes MacKay's step with the complete-data
curvature, :math:`\alpha \leftarrow (1 - \alpha \Lambda_{hh}) / w_h^2`, and every
component probability the mean responsibility of its class. The EM step
:math:`1 / (w_h^2 + \Lambda_{hh})` would prune nothing in a thousand steps.

References
----------
Tipping and Faul (2003), Fast marginal likelihood maximisation for sparse
Bayesian models, AISTATS, equation 20, for the maximum over one precision.
Hayashi and Uchida (2021), A discriminative Gaussian mixture model with
sparsity, ICLR, section 3 and appendix A. MacKay (1992), Neural Computation 4,
448-472, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.sdgm.curvature import complete_curvature, hidden_information
from bayesrbf.numerics.sdgm.likelihood import Labels, completion_error, places
from bayesrbf.numerics.sdgm.mode import Mode, find_mode
from bayesrbf.numerics.sdgm.pruning import State, without_superfluous
from bayesrbf.numerics.sdgm.reduction import Factored, Whitened
from bayesrbf.numerics.sdgm.steps import (
    check_size,
    inverse_curvature,
    is_wide,
    spread_of_components,
)
from bayesrbf.results import Status
from bayesrbf.sdgm_parameters import CompletedRows, SDGMParameters, SDGMTrace

LEAST_PRECISION = 1e-6
"""Standard deviation of a weight's prior is held below 1000, where classes can be separated."""
BARELY = 0.01
"""Share of a weight's variance that the rows explain, below which its fate is looked up."""
SETTLED = 0.1
"""Largest change of a log precision after which single precisions may jump."""
LOOSE = 1e-8
TIGHT = 1e-16
"""Decrement, in nats, at which a mode search ends: between updates, and after the last."""
LOOSE_STEPS, TIGHT_STEPS = 2, 100
"""Between updates the mode is followed, not found: the next update moves it anyway."""


@dataclass(frozen=True)
class Problem:
    """Rows and their features.

    Attributes
    ----------
    rows : CompletedRows
        Labelled rows.
    factored : Factored
        Features of their points.
    """

    rows: CompletedRows
    factored: Factored

    def labels(self, component_class: Int[np.ndarray, " component"]) -> Labels:
        """What is known of the components of every point.

        Parameters
        ----------
        component_class : ndarray of shape (n_components,)
            Class of every component.

        Returns
        -------
        Labels
            One row a point.
        """
        allowed = np.repeat(self.rows.allowed[:, component_class], self.rows.sizes, axis=0)
        return Labels(allowed, self.rows.starts, self.rows.weights)


@dataclass(frozen=True)
class Run:
    """One restart.

    Attributes
    ----------
    parameters : SDGMParameters
        Where it ended.
    trace : SDGMTrace
        Its way.
    status : Status
        How it ended.
    log_posterior : float
        Log density of the weights given their precisions, at the end.
    evidence : float
        Laplace approximation of the log evidence at the end, with the observed Hessian.
    determined : ndarray of shape (n_weights,)
        How much of every weight the rows determine, between 0 and 1: MacKay's gamma.
    n_indefinite : int
        Directions without downward curvature at the end.
    completion_error : float
        Standard error of the log likelihood at the end, by the completions.
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
    problem: Problem, start: State, *, tol: float, max_iter: int, alpha_max: float
) -> Run:
    """Alternate mode searches with updates of precisions and proportions.

    Parameters
    ----------
    problem : Problem
        Rows and features.
    start : State
        First point.
    tol : float
        Converged when no log precision changes by more than this.
    max_iter : int
        Most updates.
    alpha_max : float
        Weights whose precision would exceed it are pruned.

    Returns
    -------
    Run
        The end point, with the mode of its weights found to rounding.

    Raises
    ------
    ValueError
        If the weights that come to rest are too many for one curvature in memory.
    """
    state, status, change, wide = start, Status.MAX_ITER, np.inf, True
    path: list[tuple[float, int, int]] = []
    for _ in range(max_iter):
        whitened = state.whitened(problem.factored)
        labels = problem.labels(state.component_class)
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
    """The mode of the weights, from those of the state."""
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
    """New precisions and proportions without what they prune, and the largest change.

    Where the others have come to rest, the precision that moves most jumps to its end.
    """
    coefficients = whitened.weights(mode.coordinates)
    determined = whitened.determined(inverses)
    pull = state.precisions * coefficients**2
    active = (determined < alpha_max * coefficients**2) & ~_doomed(determined, pull)
    precisions = np.full(active.size, np.inf)
    precisions[active] = determined[active] / coefficients[active] ** 2
    precisions = np.maximum(precisions, LEAST_PRECISION)
    change = np.inf
    if active.all():
        moves = np.abs(np.log(precisions / state.precisions))
        change = float(moves.max(initial=0.0))
        if settled and moves.size:
            most = int(moves.argmax())
            precisions[most] = _best(state.precisions[most], determined[most], pull[most])
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
    determined: Float[np.ndarray, " weight"], pull: Float[np.ndarray, " weight"]
) -> Bool[np.ndarray, " weight"]:
    """Weights that the prior has nearly to itself and whose evidence has no finite maximum.

    With the others held, log evidence rises towards infinite precision wherever
    alpha w^2 <= gamma (1 - gamma); MacKay's steps go there, but geometrically.
    """
    return (determined < BARELY) & (pull <= determined * (1 - determined))


def _best(precision: float, determined: float, pull: float) -> float:
    """The precision of the highest evidence with all others held; MacKay's steps end there.

    They take a share gamma of the way, so that a weight that the rows hardly determine
    would need hundreds.
    """
    excess = pull - determined * (1 - determined)
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
    problem: Problem, state: State, path: list[tuple[float, int, int]], status: Status
) -> Run:
    """The exact mode at the last precisions, and the spread around it."""
    whitened = state.whitened(problem.factored)
    check_size(whitened.designs)
    labels = problem.labels(state.component_class)
    mode = _mode(state, whitened, labels, tol=TIGHT, max_steps=TIGHT_STEPS)
    state = replace(state, coefficients=whitened.weights(mode.coordinates))
    complete = complete_curvature(whitened.designs, labels, mode.expectation)
    complete[np.diag_indices_from(complete)] += 1.0
    observed = complete - hidden_information(whitened.designs, labels, mode.expectation)
    n_indefinite = int((np.linalg.eigvalsh(observed) <= 0).sum())
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
