"""The fit: several starts, each maximised to its own sparse model, weighed by its evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.sdgm.ard import Problem, Run, maximise_evidence
from bayesrbf.numerics.sdgm.basis import features, standard_points
from bayesrbf.numerics.sdgm.choosing import log_masses, probable_modes
from bayesrbf.numerics.sdgm.pruning import State
from bayesrbf.numerics.sdgm.reduction import factor_features
from bayesrbf.numerics.sdgm.starting import cluster_shares, first_state, shares_of
from bayesrbf.parameters import Observations, Standardisation
from bayesrbf.sdgm_parameters import Basis, CompletedRows, KernelBasis, SDGMFit, SDGMModes
from bayesrbf.specification import MixtureSpecification

LATER_START = 0.1
"""Factor of the first precision in every other restart: which one prunes too soon depends."""
RACE_ROWS = 5000
"""Rows that the restarts see in the primal form."""
MOST_NUMBERS = 2**29
"""Features of all components at the start: 4 GiB."""


@dataclass(frozen=True)
class Settings:
    """How the evidence is maximised.

    Attributes
    ----------
    alpha_init : float
        First precision of every weight; a tenth of it in every other restart.
    alpha_max : float
        Weights of larger precision are pruned.
    tol : float
        Largest change of a log precision at convergence.
    max_iter : int
        Most updates of a restart.
    n_init : int
        Number of starts; one where all would be the same.
    """

    alpha_init: float = 1.0
    alpha_max: float = 1e5
    tol: float = 1e-3
    max_iter: int = 500
    n_init: int = 8

    def run(self, problem: Problem, start: State) -> Run:
        """Maximise the evidence from a start.

        Parameters
        ----------
        problem : Problem
            Rows and features.
        start : State
            First point.

        Returns
        -------
        Run
            Where it ended.
        """
        return maximise_evidence(
            problem, start, tol=self.tol, max_iter=self.max_iter, alpha_max=self.alpha_max
        )


def fit_sdgm(
    rows: CompletedRows,
    observations: Observations,
    basis: Basis,
    units: Standardisation,
    specification: MixtureSpecification,
    *,
    rng: np.random.Generator,
    settings: Settings,
) -> SDGMFit:
    """Maximise the evidence from several starts and weigh the ends.

    The last component of the last class has no weights: logits are differences.
    Two restarts in four begin with fewer components, for the evidence to judge: a
    component that is not needed is seldom pruned once it has rows of its own.
    Of more than ``RACE_ROWS`` rows, the restarts see as many, evenly spread, and
    the most probable one's responsibilities are the start of one run with all rows,
    and with the components that it began with: the only mode.

    Parameters
    ----------
    rows : CompletedRows
        Labelled rows as points, in the user's units.
    observations : Observations
        The same rows with their holes, in standard units, to draw starts from;
        labels of no class where a row may have several.
    basis : QuadraticBasis or KernelBasis
        Features of a point.
    units : Standardisation
        Location and scale of the points' coordinates.
    specification : MixtureSpecification
        Columns, and the components of every class.
    rng : numpy.random.Generator
        Source of the starts.
    settings : Settings
        How.

    Returns
    -------
    SDGMFit
        The modes, by their evidence once the precisions are integrated out.

    Raises
    ------
    ValueError
        If the weights are too many for their curvature to be held in memory.
    """
    phi = features(basis, standard_points(rows.points, units))
    dual = isinstance(basis, KernelBasis) or phi.shape[1] > phi.shape[0]
    n_rows = rows.starts.size
    few = min(n_rows, RACE_ROWS)
    some = np.arange(n_rows) if dual else np.linspace(0, n_rows - 1, few).round().astype(np.intp)
    problem = _problem(rows, phi, some, dual)
    _check_size(problem, phi.shape[0], specification.n_components)
    runs = _restarts(problem, observations.take(some), specification, rng, settings)
    masses = log_masses(runs, settings.alpha_max)
    number = int(masses.argmax())
    chosen, begun = runs[number], _begun_with(specification, number)
    if some.size == n_rows:
        modes = probable_modes(problem, runs, masses)
    else:
        problem = _problem(rows, phi, np.arange(n_rows), dual)
        shares = shares_of(problem, chosen.parameters, begun)
        classes = np.asarray(begun.component_class, dtype=np.intp)
        chosen = settings.run(problem, first_state(problem, classes, shares, settings.alpha_init))
        modes = SDGMModes((chosen.parameters,), np.ones(1))
    return SDGMFit(
        modes,
        chosen.trace,
        chosen.status,
        chosen.log_posterior,
        np.array([run.evidence for run in runs]),
        chosen.n_indefinite,
        chosen.completion_error,
    )


def _problem(
    rows: CompletedRows,
    phi: Float[np.ndarray, "point feature"],
    some: Int[np.ndarray, " chosen"],
    dual: bool,
) -> Problem:
    """Some of the rows, with their features factored."""
    if some.size == rows.starts.size:
        return Problem(rows, factor_features(phi, reduce=dual))
    points = np.isin(np.repeat(np.arange(rows.starts.size), rows.sizes), some)
    sizes = rows.sizes[some]
    part = CompletedRows(
        rows.points[points], np.cumsum(sizes) - sizes, rows.allowed[some], rows.weights[some]
    )
    return Problem(part, factor_features(phi[points], reduce=dual))


def _restarts(
    problem: Problem,
    observations: Observations,
    specification: MixtureSpecification,
    rng: np.random.Generator,
    settings: Settings,
) -> list[Run]:
    """Every start, run to its end."""
    n_starts = settings.n_init if specification.n_components > specification.n_classes else 1
    runs = []
    for restart in range(n_starts):
        begun = _begun_with(specification, restart)
        shares = cluster_shares(observations, problem.rows, begun, rng)
        precision = settings.alpha_init * LATER_START ** (restart % 2)
        classes = np.asarray(begun.component_class, dtype=np.intp)
        runs.append(settings.run(problem, first_state(problem, classes, shares, precision)))
    return runs


def _begun_with(specification: MixtureSpecification, restart: int) -> MixtureSpecification:
    """Components of a restart: two with all, two with half as many, two with all, two with ...

    Down to one a class, once: such starts would all be the same.
    """
    counts = np.bincount(specification.component_class)
    turn, fewer = divmod(restart // 2, 2)
    if not fewer or turn >= np.log2(counts.max()):
        return specification
    halved = np.ceil(counts / 2 ** (turn + 1)).astype(int)
    return replace(
        specification, component_class=tuple(np.repeat(np.arange(counts.size), halved).tolist())
    )


def _check_size(problem: Problem, n_points: int, n_components: int) -> None:
    """Refuse what would fill the memory before it does."""
    rank = min(problem.factored.left.shape[1], problem.factored.features.shape[1])
    size = (n_components - 1) * rank
    if (n_points + rank) * size > MOST_NUMBERS:
        raise ValueError(
            f"{n_components} components with {rank} independent features each would make "
            f"{size} weights, which on {n_points} points (rows with holes are several) take "
            f"more than {8 * MOST_NUMBERS / 2**30:.0f} GiB: use fewer components or columns, or "
            "form='kernel' where the rows are fewer than the products of columns."
        )
