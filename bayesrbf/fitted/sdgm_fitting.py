"""From weighted rows to a fitted sparse discriminative mixture and its companion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from jaxtyping import Int

from bayesrbf import table
from bayesrbf.fitted.completed_rows import LabelSets, informative, labelled
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.fitted_sdgm import FittedSDGM, Prediction, full_basis
from bayesrbf.fitted.mixture_fitting import Solver, fit_mixture_rows
from bayesrbf.numerics.sdgm.ard_fit import Settings, fit_sdgm
from bayesrbf.numerics.sdgm.sdgm_features import numbers_of, quadratic_basis
from bayesrbf.records.mixture import Observations, Standardisation
from bayesrbf.records.priors import MixturePrior, PrecisionPrior
from bayesrbf.records.sdgm import QuadraticBasis, SDGMFit, SDGMModes, SDGMTrace
from bayesrbf.records.specification import MixtureSpecification, Order
from bayesrbf.records.stored import stored


@stored
class EvidencePath:
    """How the search for the most probable precisions went."""

    trace: SDGMTrace
    completion_error: float
    """Standard error of the evidence by the draws of missing cells."""


@dataclass(frozen=True)
class SDGMSolver:
    """How a sparse discriminative mixture is fitted, and what its predictions average over."""

    kernel: Any  # Name or function of the kernel; None for the primal form.
    companion_components: int
    settings: Settings
    precision_prior: PrecisionPrior | None
    prediction: Prediction
    seed: int


def fit_rows_sdgm(
    rows: Observations,
    sets: LabelSets,
    levels: tuple[int, ...],
    component_class: tuple[int, ...],
    solver: SDGMSolver,
) -> tuple[FittedSDGM, SDGMFit]:
    """Fit the companion, complete distinct weighted rows, and fit the sparse mixture.

    Labels are codes of label sets. All of it happens in the canonical order of columns and
    classes: what is found does not depend on the order in which they are given. The component
    without weights is the last one of the last class in that order.
    """
    given, given_sets = MixtureSpecification(rows.real.shape[1], levels, component_class), sets
    order, codes_order = _canonical_orders(rows, sets, columns=not callable(solver.kernel))
    specification, rows = given.reordered(order), rows.reordered(codes_order)
    sets = sets[codes_order.classes][:, order.classes]
    companion = _fit_companion(rows, specification.levels, solver)
    units = _point_units(companion, rows, shrink=solver.kernel is not None)
    rows = rows.take(informative(rows, sets))
    completed = labelled(companion, rows, sets)
    basis = full_basis(specification, units, completed, solver.kernel)
    codes = np.where(rows.labels < sets.shape[1], rows.labels, -1)
    fit = fit_sdgm(
        completed,
        replace(companion.standardise(rows), labels=codes),
        basis,
        units,
        specification,
        rng=np.random.default_rng(solver.seed),
        settings=solver.settings,
    )
    modes, features = _sparse(fit.modes)
    places = order.inverse.coordinates(specification.levels)
    basis = basis.take(features).reordered(places)
    if solver.kernel is None:  # products are numbered by the columns that they are of
        features = numbers_of(
            cast(QuadraticBasis, basis), quadratic_basis(given.n_features, given.levels)
        )
    fitted = FittedSDGM(
        SDGMModes(
            tuple(mode.reordered(order.inverse) for mode in modes.parameters), modes.probabilities
        ),
        basis,
        features,
        Standardisation(units.location[places], units.scale[places]),
        companion.reordered(order.inverse.of_one_class),
        given_sets,
        component_class,
        solver.precision_prior,
        solver.prediction,
    )
    return fitted, fit


def _canonical_orders(rows: Observations, sets: LabelSets, *, columns: bool) -> tuple[Order, Order]:
    """Orders of columns and classes, and of columns and label sets; classes before other sets.

    Classes go by the sets that they belong to, in the order of these. A kernel of the
    user's own knows the columns by their places: for it they stay where they are.
    """
    found = table.canonical_order(rows, len(sets))
    if not columns:
        found = Order(np.sort(found.features), np.sort(found.categories), found.classes)
    classes = np.lexsort(~sets[found.classes[::-1]])
    several = found.classes[found.classes >= classes.size]
    return replace(found, classes=classes), replace(
        found, classes=np.concatenate([classes, several])
    )


def _sparse(modes: SDGMModes) -> tuple[SDGMModes, Int[np.ndarray, " feature"]]:
    """Modes on the features that any of them uses, and those features."""
    used = np.concatenate([[0], *(mode.feature for mode in modes.parameters)]).astype(np.intp)
    features = np.unique(used)
    parameters = tuple(
        replace(mode, feature=np.searchsorted(features, mode.feature)) for mode in modes.parameters
    )
    return SDGMModes(parameters, modes.probabilities), features


def _fit_companion(
    rows: Observations, levels: tuple[int, ...], solver: SDGMSolver
) -> FittedMixture:
    """A density of the columns, from the rows without their labels."""
    n_components = min(solver.companion_components, rows.n_obs)
    specification = MixtureSpecification(rows.real.shape[1], levels, (0,) * n_components)
    unlabelled = replace(rows, labels=np.zeros_like(rows.labels))
    by_em = Solver(n_init=4, max_iter=200, tol=1e-4, seed=solver.seed)
    return fit_mixture_rows(unlabelled, specification, MixturePrior(), by_em)[0]


def _point_units(companion: FittedMixture, rows: Observations, *, shrink: bool) -> Standardisation:
    """Location and scale of reals and of the indicators of all levels, side by side."""
    marginals = table.marginals(rows.codes, companion.specification.levels, rows.weights)
    shares = np.concatenate([np.zeros(0), *marginals])
    location = np.concatenate([companion.units.location, shares])
    scale = np.concatenate([companion.units.scale, np.sqrt(shares * (1 - shares))])
    scale = np.where(scale > 0, scale, 1.0)
    return Standardisation(location, scale * np.sqrt(location.size) if shrink else scale)
