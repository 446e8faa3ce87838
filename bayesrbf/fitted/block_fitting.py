"""Fits to blocks of rows, from a model that was fitted to some of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from bayesrbf import table
from bayesrbf.blocks import Blocks
from bayesrbf.fitted.fitted_kernel_network import FittedKernelNetwork, KernelSettings
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.fitted_network import FittedNetwork
from bayesrbf.fitted.mixture_fitting import Solver
from bayesrbf.fitted.network_fitting import NetworkSettings
from bayesrbf.numerics.block_log_posterior import BlockLogPosterior, BlockSums, Figures
from bayesrbf.numerics.discriminative.hybrid_log_posterior import HybridLogPosterior
from bayesrbf.numerics.discriminative.objective_ascent import climb_objective
from bayesrbf.numerics.kernel_network.kernel_network_log_posterior import OutputFit, fit_output
from bayesrbf.numerics.mixture.block_expectation import BlockExpectation
from bayesrbf.numerics.mixture.mixture_fit import fit_from
from bayesrbf.numerics.mixture.mixture_points import MixturePoints
from bayesrbf.numerics.mixture.stepwise import Stream, begun, stepped
from bayesrbf.numerics.rbf_network.network_fit import NetworkFit, ascend_joint
from bayesrbf.numerics.rbf_network.penalised_maximisation import Smooth
from bayesrbf.numerics.rbf_network.rbf_network_log_posterior import RBFNetworkLogPosterior
from bayesrbf.records.mixture import MixtureParameters, Observations, Standardisation
from bayesrbf.records.priors import MixtureHyperparameters, MixturePrior
from bayesrbf.records.results import Fit
from bayesrbf.records.specification import MixtureSpecification


def fit_mixture_blocks(
    rows: Blocks[Observations],
    mixture: FittedMixture,
    some: Observations,
    *,
    prior: MixturePrior,
    solver: Solver,
) -> tuple[FittedMixture, Fit, int]:
    """Refit a mixture to weighted rows in the user's units; the passes over them are counted.

    Structure, maps and start are those of the mixture; units and prior are those of all rows.
    ``some`` of the rows are together as heavy as all.
    """
    if mixture.maps is not None:
        rows = rows.map(mixture.maps.of_rows)
    known = mixture.specification
    count = partial(table.RowSums.of, n_levels=known.levels, n_classes=known.n_classes)
    sums = rows.map(count).reduce(table.RowSums.joined)
    structure, units = sums.centred(known), sums.units
    hyperparameters = prior.resolve(structure, units, sums.marginals)
    standard = rows.map(partial(_standardised, units=units))
    problem = standard, structure, hyperparameters.standardised(), mixture.start.standardised(units)
    climb = _by_em if solver.objective.name == "likelihood" else _by_gradients
    fit, passes = climb(*problem, solver, solver.tol * float(some.weights.sum()))
    refitted = replace(
        mixture,
        specification=structure,
        hyperparameters=hyperparameters,
        parameters=fit.parameters,
    )
    return refitted, fit, passes + 1  # for the sums


def _by_em(
    rows: Blocks[Observations],
    structure: MixtureSpecification,
    prior: MixtureHyperparameters,
    start: MixtureParameters,
    solver: Solver,
    tolerance: float,
) -> tuple[Fit, int]:
    """The mode of the posterior from a start, and the passes that it took."""
    expectation = BlockExpectation(rows, structure)
    fit = fit_from(
        start,
        expectation,
        structure,
        prior,
        tolerance=tolerance,
        max_iter=solver.max_iter,
        acceleration=solver.acceleration,
    )
    return fit, expectation.passes + 1  # to prepare the rows


def _by_gradients(
    rows: Blocks[Observations],
    structure: MixtureSpecification,
    prior: MixtureHyperparameters,
    start: MixtureParameters,
    solver: Solver,
    tolerance: float,
) -> tuple[Fit, int]:
    """The mode of the Gibbs posterior from a start, and the passes that it took."""
    given = partial(
        HybridLogPosterior,
        specification=structure,
        hyperparameters=prior,
        objective=solver.objective,
    )
    sums = BlockSums(rows, given)
    points, steps = MixturePoints(structure, prior), solver.schedule.max_iter
    return climb_objective(sums, points, start, steps, tolerance), sums.passes


def fit_network_blocks(
    rows: Blocks[Observations],
    network: FittedNetwork,
    some: Observations,
    *,
    settings: NetworkSettings,
) -> tuple[FittedNetwork, NetworkFit, int]:
    """Refit a network of the joint scheme to rows in the user's units; the passes are counted.

    All but the parameters is that of the network. ``some`` of the rows are as heavy as all.
    """
    sums = BlockSums(rows, network.in_standard_units)

    def on_rows(theta: np.ndarray) -> tuple[Smooth, float]:
        *smooth, conditional = sums.total(partial(_on_rows, theta=theta))
        return Smooth(*smooth), conditional

    fit = ascend_joint(
        sums.of_no_rows,
        on_rows,
        network.parameters,
        max_iter=settings.max_iter,
        tolerance=settings.tol * float(some.weights.sum()),
    )
    return replace(network, parameters=fit.parameters), fit, sums.passes


def _on_rows(given: RBFNetworkLogPosterior, theta: np.ndarray) -> Figures:
    """The smooth part of a network's objective, and the log likelihood of the responses."""
    smooth, conditional = given.smooth_and_conditional(theta)
    return smooth.value, smooth.gradient, smooth.by_size, conditional


def fit_kernel_blocks(
    rows: Blocks[Observations],
    network: FittedKernelNetwork,
    some: Observations,
    *,
    settings: KernelSettings,
) -> tuple[FittedKernelNetwork, OutputFit, int]:
    """Refit the output layer to labelled rows in the user's units; the passes are counted.

    Exemplars, rates and companion are those of the network; ``some`` of the rows, as heavy as all,
    set the units in which is searched.
    """
    sums = BlockSums(rows.map(_labelled), network.log_posterior)
    fit = fit_output(
        BlockLogPosterior(sums, network.log_posterior(some)),
        sums.of_no_rows.log_prior,
        tol=settings.tol,
        max_iter=settings.max_iter,
        start=network.theta,
    )
    return replace(network, theta=fit.theta), fit, sums.passes


def _labelled(rows: Observations) -> Observations:
    """Rows with a label: no other tells an output layer anything."""
    return rows.take(rows.labels >= 0)


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
