"""From weighted rows to a fitted mixture: in memory, and over blocks of rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np

from bayesrbf import table
from bayesrbf.blocks import Blocks
from bayesrbf.fitted.fitted_mixture import LIKELIHOOD, FittedMixture
from bayesrbf.numerics.column_maps import fit_power
from bayesrbf.numerics.discriminative.hybrid_log_posterior import HybridLogPosterior
from bayesrbf.numerics.discriminative.objective_ascent import climb_objective
from bayesrbf.numerics.mixture.expectation import BlockExpectation
from bayesrbf.numerics.mixture.mixture_fit import BegunFit, begin_fit, fit_from
from bayesrbf.numerics.mixture.mixture_points import MixturePoints, reordered
from bayesrbf.records.mixture import MixtureParameters, Observations, Standardisation
from bayesrbf.records.objective import Objective
from bayesrbf.records.priors import MixtureHyperparameters, MixturePrior
from bayesrbf.records.results import Fit
from bayesrbf.records.specification import MixtureSpecification
from bayesrbf.records.stored import stored

ColumnMaps = Literal["power"] | None
"""Kind of the maps in front of the real columns."""

STEPS = {"blend": 60}
"""Iterations by objective: a blend that is followed further overfits."""
DEFAULT_STEPS = 200
ROWS_PER_COMPONENT = 8
"""Rows of a class that a component needs: a class with fewer gets fewer components."""


@stored
class Solver:
    """How a mixture is fitted."""

    n_init: int
    max_iter: int
    tol: float
    """Smallest rise of the log posterior per unit of row weight that counts."""
    seed: int
    """Of the restarts."""
    objective: Objective = LIKELIHOOD
    """What is maximised; anything but the likelihood starts at the fit by EM."""
    steps: int | None = None
    """Most iterations that the objective is followed; None: ``STEPS``."""

    @property
    def most_steps(self) -> int:
        """Most iterations that the objective is followed."""
        return STEPS.get(self.objective.name, DEFAULT_STEPS) if self.steps is None else self.steps


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
    order = table.canonical_order(rows, specification.n_classes)
    structure, rows = specification.reordered(order), rows.reordered(order)
    units = table.standardisation(rows.real, rows.weights)
    maps = None
    if column_maps == "power" and rows.real.shape[1]:
        maps = fit_power(units, rows.real, rows.weights)
        rows = maps.applied(rows)
        units = table.standardisation(rows.real, rows.weights)
    marginals = table.marginals(rows.codes, structure.levels, rows.weights)
    hyperparameters = prior.resolve(structure, units, marginals)
    rows = replace(rows, real=units.forward(rows.real))
    model = structure, hyperparameters.standardised()
    begin = None
    if start is not None:
        begin = reordered(start, order, specification).standardised(units)
    if solver.objective.name == "likelihood":
        begun = _begun((rows, *model), solver, begin)
        del rows  # EM has its own copy of them
        fit = _climbed(begun, solver)
    else:
        fit = _fit_objective((rows, *model), solver, begin)
    unchanged = order.inverse.then(order)
    mixture = FittedMixture(
        structure, hyperparameters, fit.parameters, unchanged, solver.objective, maps
    )
    mixture = mixture.reordered(order.inverse)
    return mixture, replace(fit, parameters=mixture.parameters)


def start_near(mixture: FittedMixture, rows: Observations) -> MixtureParameters:
    """The point of a mixture in standard units, carried over to the units of other rows."""
    return mixture.parameters.in_units(table.standardisation(rows.real, rows.weights))


StandardProblem = tuple[Observations, MixtureSpecification, MixtureHyperparameters]


def _begun(problem: StandardProblem, solver: Solver, start: MixtureParameters | None) -> BegunFit:
    """The starts of EM, and the rows as it wants them."""
    rng = np.random.default_rng(solver.seed)
    return begin_fit(*problem, rng=rng, n_init=solver.n_init, start=start)


def _climbed(begun: BegunFit, solver: Solver) -> Fit:
    """The mode of the posterior, by EM."""
    return begun.climb(tol=solver.tol, max_iter=solver.max_iter)


def _fit_objective(
    problem: StandardProblem, solver: Solver, start: MixtureParameters | None
) -> Fit:
    """The mode of the Gibbs posterior, from the start that is given or the one by EM."""
    rows, specification, hyperparameters = problem
    if start is None:
        start = _climbed(_begun(problem, solver, None), solver).parameters
    return climb_objective(
        HybridLogPosterior(rows, specification, hyperparameters, solver.objective),
        MixturePoints(specification, hyperparameters),
        start,
        max_iter=solver.most_steps,
        tolerance=solver.tol * float(rows.weights.sum()),
    )


def fit_mixture_blocks(
    rows: Blocks[Observations],
    mixture: FittedMixture,
    some: Observations,
    *,
    prior: MixturePrior,
    solver: Solver,
) -> tuple[FittedMixture, Fit, int]:
    """Refit a mixture to weighted rows in the user's units by EM; the passes are counted.

    Structure, maps and start are those of the mixture; units and prior are those of all rows.
    ``some`` of the rows are together as heavy as all.
    """
    rows = rows.map(mixture.mapped)
    form = mixture.specification
    count = partial(table.RowSums.of, n_levels=form.levels, n_classes=form.n_classes)
    sums = rows.map(count).reduce(table.RowSums.joined)
    units = sums.units
    hyperparameters = prior.resolve(form, units, sums.marginals)
    standard = rows.map(partial(_standardised, units=units))
    expectation = BlockExpectation(standard, form)
    fit = fit_from(
        mixture.start.standardised(units),
        expectation,
        form,
        hyperparameters.standardised(),
        tolerance=solver.tol * float(some.weights.sum()),
        max_iter=solver.max_iter,
    )
    refitted = replace(mixture, hyperparameters=hyperparameters, parameters=fit.parameters)
    return refitted, fit, expectation.passes + 2  # to prepare the rows, and for their units


def _standardised(rows: Observations, units: Standardisation) -> Observations:
    """Rows in standard units."""
    return replace(rows, real=units.forward(rows.real))
