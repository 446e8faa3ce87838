"""The fit: several starts, each maximised to its own sparse model and weighted by its evidence.

Starts are clusters within the classes, and weights that lead there. Ends with the same class
probabilities of the rows are one mode, and count once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.initialisation import starting_point
from bayesrbf.numerics.rounding import ranked
from bayesrbf.numerics.sdgm.ard import EvidenceProblem, Run, log_masses, maximise_evidence
from bayesrbf.numerics.sdgm.ard_state import State, factor_features
from bayesrbf.numerics.sdgm.label_likelihood import class_log_probabilities, expect
from bayesrbf.numerics.sdgm.mode_search import find_mode, is_wide
from bayesrbf.numerics.sdgm.sdgm_features import standard_points
from bayesrbf.records.mixture import Observations, Standardisation
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.sdgm import Basis, CompletedRows, SDGMFit, SDGMModes, SDGMParameters
from bayesrbf.records.specification import MixtureSpecification

LATER_START = 0.1
"""Every other restart begins with this fraction of the first precision.

Which of the two prunes good weights too early depends on the table.
"""
RACE_ROWS = 5000
"""Most rows that the restarts see in the primal form; the winner is then run on all rows."""
MOST_NUMBERS = 2**29  # Most numbers in the features of all components at the start: 4 GiB.
OWN_RESPONSIBILITY = 0.9  # Responsibility of a row's own cluster at the start.
FIRST_STEPS = 5  # Newton steps towards the clusters, after which the search is free.
ALIKE = 0.01
"""Ends whose class probabilities at the training rows differ by less than this are one mode."""
LEAST_PROBABILITY = 1e-3
"""Modes below this fraction of the largest probability are left out, as draws seldom meet them."""


@dataclass(frozen=True)
class Settings:
    """How the evidence is maximised.

    Weights start at precision ``alpha_init`` and are pruned beyond ``alpha_max``; a run has
    converged when no log precision changes by more than ``tol`` and has at most ``max_iter``
    updates. There are ``n_init`` restarts, or one where all would be the same.
    """

    alpha_init: float = 1.0
    alpha_max: float = 1e5
    tol: float = 1e-3
    max_iter: int = 500
    n_init: int = 8

    def run(self, problem: EvidenceProblem, start: State) -> Run:
        """Maximise the evidence from a start."""
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
    """Maximise the evidence from several starts and weight the ends.

    ``rows`` are in the user's units; ``observations`` are the same rows with their missing cells,
    in standard units, and with the label of no class where a row may have several: the starts are
    drawn from them.

    The last component of the last class has no weights, because logits are differences. Two
    restarts in four begin with fewer components, and the evidence judges them: a component that is
    not needed is seldom pruned once it has rows of its own.

    Of more than ``RACE_ROWS`` rows, the restarts see as many, evenly spread. The responsibilities
    of the most probable end then start one run with all rows and with the components that it began
    with; that run's end is the only mode.

    May raise ValueError where the weights would fill the memory.
    """
    phi = basis.at(standard_points(rows.points, units))
    dual = basis.kernel is not None or phi.shape[1] > phi.shape[0]
    n_rows = rows.starts.size
    few = min(n_rows, RACE_ROWS)
    some = np.arange(n_rows) if dual else np.linspace(0, n_rows - 1, few).round().astype(np.intp)
    problem = _problem(rows, phi, some, dual)
    _check_size(problem, phi.shape[0], specification.n_components)
    runs = _restarts(problem, observations.take(some), specification, rng, settings)
    masses = log_masses(runs, settings.alpha_max)
    number = int(ranked(masses)[0])
    chosen, begun = runs[number], _begun_with(specification, number)
    if some.size == n_rows:
        modes = probable_modes(problem, runs, masses)
    else:
        problem = _problem(rows, phi, np.arange(n_rows), dual)
        responsibilities = inherited_responsibilities(problem, chosen.parameters, begun)
        classes = np.asarray(begun.component_class, dtype=np.intp)
        chosen = settings.run(
            problem, first_state(problem, classes, responsibilities, settings.alpha_init)
        )
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
) -> EvidenceProblem:
    """Some of the rows, with their features factored."""
    if some.size == rows.starts.size:
        return EvidenceProblem(rows, factor_features(phi, reduce=dual))
    points = np.isin(np.repeat(np.arange(rows.starts.size), rows.sizes), some)
    sizes = rows.sizes[some]
    part = CompletedRows(
        rows.points[points], np.cumsum(sizes) - sizes, rows.allowed[some], rows.weights[some]
    )
    return EvidenceProblem(part, factor_features(phi[points], reduce=dual))


def _restarts(
    problem: EvidenceProblem,
    observations: Observations,
    specification: MixtureSpecification,
    rng: np.random.Generator,
    settings: Settings,
) -> list[Run]:
    """Run every start to its end."""
    n_starts = settings.n_init if specification.n_components > specification.n_classes else 1
    runs = []
    for restart in range(n_starts):
        begun = _begun_with(specification, restart)
        responsibilities = cluster_responsibilities(observations, problem.rows, begun, rng)
        precision = settings.alpha_init * LATER_START ** (restart % 2)
        classes = np.asarray(begun.component_class, dtype=np.intp)
        runs.append(
            settings.run(problem, first_state(problem, classes, responsibilities, precision))
        )
    return runs


def _begun_with(specification: MixtureSpecification, restart: int) -> MixtureSpecification:
    """The components that a restart begins with.

    Two restarts have all components, the next two half as many, two all, two a quarter, and so
    on, until one a class has been tried; further halvings would repeat it.
    """
    counts = np.bincount(specification.component_class)
    turn, fewer = divmod(restart // 2, 2)
    if not fewer or turn >= np.log2(counts.max()):
        return specification
    halved = np.ceil(counts / 2 ** (turn + 1)).astype(int)
    return replace(
        specification, component_class=tuple(np.repeat(np.arange(counts.size), halved).tolist())
    )


def _check_size(problem: EvidenceProblem, n_points: int, n_components: int) -> None:
    """Refuse to start where the features of all components would fill the memory."""
    rank = min(problem.factored.left.shape[1], problem.factored.features.shape[1])
    size = (n_components - 1) * rank
    if (n_points + rank) * size > MOST_NUMBERS:
        raise ValueError(
            f"{n_components} components with {rank} independent features each would make "
            f"{size} weights, which on {n_points} points (rows with holes are several) take "
            f"more than {8 * MOST_NUMBERS / 2**30:.0f} GiB: use fewer components or columns, or "
            "form='kernel' where the rows are fewer than the products of columns."
        )


def cluster_responsibilities(
    observations: Observations,
    rows: CompletedRows,
    specification: MixtureSpecification,
    rng: np.random.Generator,
) -> Float[np.ndarray, "point component"]:
    """Responsibilities of clusters within the classes that a row may have, one line a point.

    Most of a row belongs to the component of its nearest cluster. ``observations`` are the rows
    with their missing cells, in standard units, and with the label of no class where a row may have
    several.
    """
    real = np.zeros(specification.n_features)
    marginals = tuple(np.full(n, 1.0 / n) for n in specification.levels)
    prior = MixturePrior().resolve(specification, Standardisation(real, real + 1), marginals)
    point = starting_point(observations, specification, prior, rng)
    log_joint = prepare(observations, specification).component_log_joint(point)
    allowed = rows.allowed[:, list(specification.component_class)]
    nearest = np.where(allowed, log_joint, -np.inf).argmax(axis=1)
    responsibilities = (1 - OWN_RESPONSIBILITY) * allowed / allowed.sum(axis=1, keepdims=True)
    responsibilities[np.arange(len(responsibilities)), nearest] += OWN_RESPONSIBILITY
    return np.repeat(responsibilities, rows.sizes, axis=0)


def inherited_responsibilities(
    problem: EvidenceProblem, found: SDGMParameters, specification: MixtureSpecification
) -> Float[np.ndarray, "point component"]:
    """Responsibilities of a sparse model, in the first components of every class.

    ``specification`` has the components of every class before any was pruned; the pruned ones get a
    small responsibility.
    """
    classes = np.asarray(specification.component_class)
    phi = problem.factored.features
    logits = phi @ found.dense(phi.shape[1]) + np.log(found.proportions)
    within = np.arange(found.n_components) - np.searchsorted(
        found.component_class, found.component_class
    )
    places = np.searchsorted(classes, found.component_class) + within
    known = expect(problem.labels(found.component_class), logits).responsibilities
    allowed = problem.labels(classes).allowed
    responsibilities = (1 - OWN_RESPONSIBILITY) * allowed / allowed.sum(axis=1, keepdims=True)
    responsibilities[:, places] += OWN_RESPONSIBILITY * known
    return responsibilities


def first_state(
    problem: EvidenceProblem,
    component_class: Int[np.ndarray, " component"],
    responsibilities: Float[np.ndarray, "point component"],
    alpha_init: float,
) -> State:
    """All weights active, moved by a few Newton steps towards given responsibilities.

    The last component gets no weights.
    """
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
        teacher=responsibilities,
        wide=is_wide(whitened.designs),
    )
    return replace(state, coefficients=whitened.weights(mode.coordinates))


def probable_modes(
    problem: EvidenceProblem, runs: list[Run], masses: Float[np.ndarray, " restart"]
) -> SDGMModes:
    """The distinct ends of the restarts, the most probable first.

    Of ends that are alike the one with the largest of the ``masses`` (see :func:`log_masses`) is
    kept; improbable modes are left out.
    """
    kept: list[int] = []
    seen: list[np.ndarray] = []
    for number in ranked(masses):
        here = _probabilities(problem, runs[number].parameters)
        if all(np.abs(here - other).max(initial=0.0) > ALIKE for other in seen):
            kept.append(int(number))
            seen.append(here)
    probabilities = softmax(masses[kept])
    probable = probabilities >= LEAST_PROBABILITY * probabilities[0]
    parameters = tuple(runs[kept[i]].parameters for i in np.flatnonzero(probable))
    return SDGMModes(parameters, probabilities[probable] / probabilities[probable].sum())


def _probabilities(
    problem: EvidenceProblem, parameters: SDGMParameters
) -> Float[np.ndarray, "point label"]:
    """Class probabilities of the training points at a mode."""
    phi = problem.factored.features
    logits = phi @ parameters.dense(phi.shape[1]) + np.log(parameters.proportions)
    return np.exp(class_log_probabilities(logits, parameters.component_class))
