"""EM over blocks of rows, from a mixture that was fitted to some of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from bayesrbf import table
from bayesrbf.blocks import Blocks
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.mixture_fitting import Solver
from bayesrbf.numerics.mixture.block_expectation import BlockExpectation
from bayesrbf.numerics.mixture.mixture_fit import fit_from
from bayesrbf.numerics.mixture.stepwise import Stream, begun, stepped
from bayesrbf.records.mixture import Observations, Standardisation
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.results import Fit


def fit_mixture_blocks(
    rows: Blocks[Observations], mixture: FittedMixture, prior: MixturePrior, solver: Solver
) -> tuple[FittedMixture, Fit, int]:
    """Refit a mixture to weighted rows in the user's units; the passes over them are counted.

    Structure, maps and start are those of the mixture; units and prior are those of all rows.
    """
    if mixture.maps is not None:
        rows = rows.map(mixture.maps.of_rows)
    known = mixture.specification
    count = partial(table.RowSums.of, n_levels=known.levels, n_classes=known.n_classes)
    sums = rows.map(count).reduce(table.RowSums.joined)
    structure, units = sums.centred(known), sums.units
    hyperparameters = prior.resolve(structure, units, sums.marginals)
    standard = rows.map(partial(_standardised, units=units))
    expectation = BlockExpectation(standard, structure)
    fit = fit_from(
        mixture.start.standardised(units),
        expectation,
        structure,
        hyperparameters.standardised(),
        tolerance=solver.tol * float(sums.by_label.sum()),
        max_iter=solver.max_iter,
        acceleration=solver.acceleration,
    )
    refitted = replace(
        mixture,
        specification=structure,
        hyperparameters=hyperparameters,
        parameters=fit.parameters,
    )
    return refitted, fit, expectation.passes + 2  # for the sums, and to prepare the rows


def _standardised(rows: Observations, units: Standardisation) -> Observations:
    """Rows in standard units."""
    return replace(rows, real=units.forward(rows.real))


def begin_stream(mixture: FittedMixture, rows: Observations) -> Stream:
    """A stream whose first rows, in the user's units, are those that the mixture was fitted to."""
    return begun(mixture.standardise(rows), mixture.parameters, mixture.specification)


def step(
    mixture: FittedMixture, stream: Stream, rows: Observations
) -> tuple[FittedMixture, Stream]:
    """The mixture after one more block of a stream, in the user's units; its prior stays."""
    known = mixture.parameters, mixture.specification, mixture.hyperparameters.standardised()
    stream, parameters = stepped(stream, mixture.standardise(rows), *known)
    return replace(mixture, parameters=parameters), stream
