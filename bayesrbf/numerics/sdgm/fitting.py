"""The fit: several starts, each maximised to its own sparse model, one of them chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.expectation import prepare
from bayesrbf.numerics.initialisation import starting_point
from bayesrbf.numerics.sdgm.ard import Problem, Run, maximise_evidence
from bayesrbf.numerics.sdgm.basis import features
from bayesrbf.numerics.sdgm.likelihood import expect
from bayesrbf.numerics.sdgm.mode import find_mode
from bayesrbf.numerics.sdgm.pruning import State
from bayesrbf.numerics.sdgm.reduction import factor_features
from bayesrbf.parameters import Observations, Standardisation
from bayesrbf.priors import MixturePrior
from bayesrbf.sdgm_parameters import Basis, CompletedRows, KernelBasis, SDGMFit
from bayesrbf.specification import MixtureSpecification

SHARE = 0.9
"""Responsibility of a row's own cluster at the start."""
FIRST_STEPS = 5
"""Newton steps towards the clusters before they are forgotten."""
LATER_START = 0.1
"""Factor of the first precision in every other restart: which one prunes too soon depends."""
FARTHEST = 1e6
"""Points are held within this many standard units, so that no square overflows."""
RACE_ROWS = 5000
"""Rows that the restarts see in the primal form."""
MOST_COORDINATES = 12_000
"""Whitened weights beyond which one curvature would take more than 1 GiB."""


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
    """Maximise the evidence from several starts and choose one end.

    The last component of the last class has no weights: logits are differences.
    Of more than ``RACE_ROWS`` rows, the restarts see as many, evenly spread, and
    the chosen one's responsibilities are the start of one run with all rows.

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
        The restart of the highest evidence, where a difference is more than
        one nat, and else of the fewest weights.

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
    runs = _restarts(
        _problem(rows, phi, some, dual), observations.take(some), specification, rng, settings
    )
    chosen = runs[choose(runs)]
    if some.size < n_rows:
        problem = _problem(rows, phi, np.arange(n_rows), dual)
        shares = _responsibilities(problem, chosen, specification)
        classes = np.asarray(specification.component_class, dtype=np.intp)
        chosen = settings.run(problem, _start(problem, classes, shares, settings.alpha_init))
    return SDGMFit(
        chosen.parameters,
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
    component_class = np.asarray(specification.component_class, dtype=np.intp)
    _check_size(problem, component_class.size)
    n_starts = settings.n_init if specification.n_components > specification.n_classes else 1
    runs = []
    for restart in range(n_starts):
        shares = _cluster_shares(observations, problem.rows, specification, rng)
        precision = settings.alpha_init * LATER_START ** (restart % 2)
        runs.append(settings.run(problem, _start(problem, component_class, shares, precision)))
    return runs


def standard_points(
    points: Float[np.ndarray, "point coordinate"], units: Standardisation
) -> Float[np.ndarray, "point coordinate"]:
    """Points in standard units, held within ``FARTHEST`` of the centre.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_coordinates)
        In the user's units.
    units : Standardisation
        Location and scale of the coordinates.

    Returns
    -------
    ndarray of shape (n_points, n_coordinates)
        Without units.
    """
    with np.errstate(over="ignore"):
        return np.clip(units.forward(points), -FARTHEST, FARTHEST)


def choose(runs: list[Run]) -> int:
    """Which restart to keep.

    Parameters
    ----------
    runs : list of Run
        All restarts.

    Returns
    -------
    int
        Of those within one nat of the best evidence, the one of the fewest
        weights, and of these the one of the best evidence.
    """
    evidence = np.array([run.evidence for run in runs])
    close = np.flatnonzero(evidence >= evidence.max() - 1.0)
    keys = [(runs[i].parameters.n_weights, -evidence[i]) for i in close]
    return int(close[min(range(len(keys)), key=keys.__getitem__)])


def _check_size(problem: Problem, n_components: int) -> None:
    """Refuse what would fill the memory before it does."""
    rank = min(problem.factored.left.shape[1], problem.factored.features.shape[1])
    size = (n_components - 1) * rank
    if size > MOST_COORDINATES:
        raise ValueError(
            f"{n_components} components with {rank} independent features each would make "
            f"{size} weights, beyond {MOST_COORDINATES}: use fewer components or columns, or "
            "form='kernel' where the rows are fewer than the products of columns."
        )


def _cluster_shares(
    observations: Observations,
    rows: CompletedRows,
    specification: MixtureSpecification,
    rng: np.random.Generator,
) -> Float[np.ndarray, "point component"]:
    """Responsibilities of clusters within the classes that a row may have."""
    real = np.zeros(specification.n_features)
    marginals = tuple(np.full(n, 1.0 / n) for n in specification.levels)
    prior = MixturePrior().resolve(specification, Standardisation(real, real + 1), marginals)
    point = starting_point(observations, specification, prior, rng)
    log_joint = prepare(observations, specification).component_log_joint(point)
    allowed = rows.allowed[:, list(specification.component_class)]
    nearest = np.where(allowed, log_joint, -np.inf).argmax(axis=1)
    shares = (1 - SHARE) * allowed / allowed.sum(axis=1, keepdims=True)
    shares[np.arange(len(shares)), nearest] += SHARE
    return np.repeat(shares, rows.sizes, axis=0)


def _responsibilities(
    problem: Problem, run: Run, specification: MixtureSpecification
) -> Float[np.ndarray, "point component"]:
    """Responsibilities of a sparse model, in the first components of every class."""
    found, classes = run.parameters, np.asarray(specification.component_class)
    phi = problem.factored.features
    logits = phi @ found.dense(phi.shape[1]) + np.log(found.proportions)
    within = np.arange(found.n_components) - np.searchsorted(
        found.component_class, found.component_class
    )
    places = np.searchsorted(classes, found.component_class) + within
    known = expect(problem.labels(found.component_class), logits).responsibilities
    allowed = problem.labels(classes).allowed
    shares = (1 - SHARE) * allowed / allowed.sum(axis=1, keepdims=True)
    shares[:, places] += SHARE * known
    return shares


def _start(
    problem: Problem,
    component_class: Int[np.ndarray, " component"],
    shares: Float[np.ndarray, "point component"],
    alpha_init: float,
) -> State:
    """All weights active, and moved towards the clusters by a few Newton steps."""
    n_features, n_free = problem.factored.features.shape[1], component_class.size - 1
    state = State(
        component_class,
        1.0 / np.bincount(component_class)[component_class],
        np.repeat(np.arange(n_free), n_features),
        np.tile(np.arange(n_features), n_free),
        np.zeros(n_free * n_features),
        np.full(n_free * n_features, alpha_init),
    )
    whitened = state.whitened(problem.factored)
    mode = find_mode(
        whitened.designs,
        problem.labels(component_class),
        np.log(state.proportions),
        whitened.coordinates(state.coefficients),
        tol=1e-3,
        max_steps=FIRST_STEPS,
        teacher=shares,
    )
    return replace(state, coefficients=whitened.weights(mode.coordinates))
