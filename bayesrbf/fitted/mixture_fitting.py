"""The steps from weighted rows to a fitted mixture that every fit and fold shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Int

from bayesrbf import table
from bayesrbf.fitted.fitted_mixture import LIKELIHOOD, FittedMixture
from bayesrbf.numerics.column_maps import fit_power
from bayesrbf.numerics.discriminative.objective_ascent import Schedule, fit_objective
from bayesrbf.numerics.log_sums import class_log_joint
from bayesrbf.numerics.mixture.ascent import Acceleration
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.mixture_fit import BegunFit, begin_fit
from bayesrbf.numerics.mixture.mixture_points import reordered
from bayesrbf.posterior.recalibration import log_score
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.objective import Objective
from bayesrbf.records.priors import MixtureHyperparameters, MixturePrior
from bayesrbf.records.results import Fit
from bayesrbf.records.specification import MixtureSpecification

ColumnMaps = Literal["power"] | None
"""Kind of the maps in front of the real columns."""

STEPS = {"blend": 60}
"""Iterations by objective: stopping early is part of the blend."""
DEFAULT_STEPS = 200
ROWS_PER_COMPONENT = 8
"""Rows of a class that a component needs: a class with fewer gets fewer components."""


@dataclass(frozen=True)
class Solver:
    """How a mixture is fitted."""

    n_init: int
    max_iter: int
    tol: float
    """Smallest rise of the log posterior per unit of row weight that counts."""
    acceleration: Acceleration
    seed: int
    """Of the restarts, of mini-batches and of the part held out."""
    objective: Objective = LIKELIHOOD
    """What is maximised; anything but the likelihood starts at the fit by EM."""
    steps: int | None = None
    """Most iterations that the objective is followed; None: ``STEPS``."""
    batch_size: int | None = None
    """Rows of a mini-batch of the objective; None: all rows."""
    held_out: float = 0.0
    """Share of the labelled rows that tell when to stop following the objective; 0: none."""

    @property
    def schedule(self) -> Schedule:
        """How long the objective is followed."""
        steps = STEPS.get(self.objective.name, DEFAULT_STEPS) if self.steps is None else self.steps
        return Schedule(steps, self.tol, self.batch_size, self.seed)


def component_class(rows: Observations, n_classes: int, most: int) -> tuple[int, ...]:
    """Class of every component; small classes have fewer.

    Examples
    --------
    >>> labels = np.repeat([0, 1], [20, 5])
    >>> rows = Observations(np.zeros((25, 1)), np.zeros((25, 0), int), labels, np.ones(25))
    >>> component_class(rows, 2, 3)
    (0, 0, 1)
    """
    labelled = rows.labels >= 0
    counts = np.bincount(rows.labels[labelled], rows.weights[labelled], minlength=n_classes)
    sizes = np.clip(counts // ROWS_PER_COMPONENT, 1, most).astype(int)
    return tuple(np.repeat(np.arange(n_classes), sizes).tolist())


def fit_mixture_rows(
    rows: Observations,
    specification: MixtureSpecification,
    prior: MixturePrior,
    solver: Solver,
    start: MixtureParameters | None = None,
    column_maps: ColumnMaps = None,
) -> tuple[FittedMixture, Fit]:
    """Map and standardise distinct weighted rows, in the user's units, and fit a mixture to them.

    Rows that the caller does not hold are forgotten on the way, so that no copy of a large table
    stands beside its standardised cells.

    A start, in the units of the mapped columns, takes the place of restarts. All of it happens in
    the canonical order of columns and classes: what is found does not depend on the order in
    which they are given.
    """
    specification = specification.centred(rows.further, rows.weights)
    order = table.canonical_order(rows, specification.n_classes)
    structure, rows = specification.reordered(order), rows.reordered(order)
    units = table.standardisation(rows.real, rows.weights)
    maps = None
    if column_maps == "power" and rows.real.shape[1]:
        maps = fit_power(units, rows.real, rows.weights)
        rows = maps.of_rows(rows)
        units = table.standardisation(rows.real, rows.weights)
    marginals = table.marginals(rows.codes, structure.levels, rows.weights)
    hyperparameters = prior.resolve(structure, units, marginals)
    rows = replace(rows, real=units.forward(rows.real))
    known = structure, hyperparameters.standardised()
    begin = None
    if start is not None:
        begin = reordered(start, order, specification).standardised(units)
    if solver.objective.name == "likelihood":
        begun = _begun((rows, *known), solver, begin)
        del rows  # EM has its own copy of them
        fit = _climbed(begun, solver)
    else:
        fit = _fit_objective((rows, *known), solver, begin)
    unchanged = order.inverse.then(order)
    mixture = FittedMixture(
        structure, hyperparameters, fit.parameters, unchanged, solver.objective, maps
    )
    mixture = mixture.reordered(order.inverse)
    return mixture, replace(fit, parameters=mixture.parameters)


StandardProblem = tuple[Observations, MixtureSpecification, MixtureHyperparameters]


def _begun(problem: StandardProblem, solver: Solver, start: MixtureParameters | None) -> BegunFit:
    """The starts of EM, and the rows as it wants them."""
    rng = np.random.default_rng(solver.seed)
    return begin_fit(*problem, rng=rng, n_init=solver.n_init, start=start)


def _climbed(begun: BegunFit, solver: Solver) -> Fit:
    """The mode of the posterior, by EM."""
    return begun.climb(tol=solver.tol, max_iter=solver.max_iter, acceleration=solver.acceleration)


def _fit_objective(
    problem: StandardProblem, solver: Solver, start: MixtureParameters | None
) -> Fit:
    """The mode of the Gibbs posterior, from the start that is given or the one by EM."""
    rows, specification, hyperparameters = problem
    score = None
    if solver.held_out:
        inside, outside = apart(rows.labels, solver.held_out, solver.seed)
        score = held_out_score(rows.take(outside), specification)
        rows = rows.take(inside)
    if start is None:
        begun = _begun((rows, specification, hyperparameters), solver, None)
        start = _climbed(begun, solver).parameters
    return fit_objective(
        rows,
        specification,
        hyperparameters,
        solver.objective,
        start,
        schedule=solver.schedule,
        score=score,
    )


def apart(
    labels: Int[np.ndarray, " obs"], share: float, seed: int
) -> tuple[Int[np.ndarray, " inside"], Int[np.ndarray, " outside"]]:
    """Put a share of every class's rows apart; one row of a class at least stays.

    >>> inside, outside = apart(np.array([0, 0, 0, 0, 1, -1]), 0.5, seed=0)
    >>> inside.size, outside.size
    (4, 2)
    """
    rng = np.random.default_rng(seed)
    chosen = np.zeros(labels.size, dtype=bool)
    for label in range(labels.max(initial=-1) + 1):
        members = rng.permutation(np.flatnonzero(labels == label))
        chosen[members[: int(np.round(share * members.size))]] = True
        if members.size:
            chosen[members[-1]] = False
    if not chosen.any():
        raise ValueError(
            f"early_stopping holds {share:g} of the rows of every class out, and no class has "
            "rows enough for that; raise validation_fraction, or do without early_stopping."
        )
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def held_out_score(
    rows: Observations, specification: MixtureSpecification
) -> Callable[[MixtureParameters], float]:
    """The calibrated log score of rows that were put apart, at any point; all in standard units."""
    prepared = prepare(rows, specification)

    def score(parameters: MixtureParameters) -> float:
        log_joint = prepared.component_log_joint(parameters)
        joint, _ = class_log_joint(log_joint, specification.class_slices)
        return log_score(joint, rows.labels, rows.weights, calibrate=True)

    return score
