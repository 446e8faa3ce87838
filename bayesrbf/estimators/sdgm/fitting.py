"""From weighted rows to a fitted sparse discriminative mixture and its companion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bayesrbf import table
from bayesrbf.estimators.mixture.fitting import FittedMixture, Solver, fit_rows
from bayesrbf.estimators.sdgm.fitted import FittedSDGM
from bayesrbf.estimators.sdgm.rows import LabelSets, labelled, told
from bayesrbf.numerics.sdgm.basis import quadratic_basis, sparse_basis, standard_points
from bayesrbf.numerics.sdgm.fitting import Settings, fit_sdgm
from bayesrbf.order import Order
from bayesrbf.parameters import Observations, Standardisation
from bayesrbf.priors import MixturePrior
from bayesrbf.sdgm_parameters import Basis, CompletedRows, KernelBasis, SDGMFit, SDGMModes
from bayesrbf.specification import MixtureSpecification


@dataclass(frozen=True)
class SDGMSolver:
    """How a sparse discriminative mixture is fitted.

    Attributes
    ----------
    kernel : str, callable or None
        None for the primal form.
    companion_components : int
        Components of the companion mixture.
    settings : Settings
        How the evidence is maximised.
    seed : int
        Seed of the restarts.
    """

    kernel: Any
    companion_components: int
    settings: Settings
    seed: int


def fit_rows_sdgm(
    rows: Observations,
    sets: LabelSets,
    levels: tuple[int, ...],
    component_class: tuple[int, ...],
    solver: SDGMSolver,
) -> tuple[FittedMixture, FittedSDGM, SDGMFit]:
    """Fit the companion, complete the rows, and fit the sparse mixture.

    All of it happens in the canonical order of columns and classes: what is found does
    not depend on the order in which they are given. The component without weights is the
    last one of the last class in that order.

    Parameters
    ----------
    rows : Observations
        Distinct weighted rows in canonical order, in the user's units; labels
        are codes of label sets.
    sets : ndarray of shape (n_sets, n_classes)
        Classes of every code.
    levels : tuple of int
        Number of levels of every categorical column.
    component_class : tuple of int
        Class of every component.
    solver : SDGMSolver
        How to fit.

    Returns
    -------
    companion : FittedMixture
        Density of the columns, blind to the labels.
    fitted : FittedSDGM
        What predicts.
    fit : SDGMFit
        How it was reached.
    """
    given = MixtureSpecification(rows.real.shape[1], levels, component_class)
    order, codes_order = _canonical_orders(rows, sets, columns=not callable(solver.kernel))
    specification, rows = given.reordered(order), rows.reordered(codes_order)
    sets = sets[codes_order.classes][:, order.classes]
    companion = _fit_companion(rows, specification.levels, solver)
    units = _point_units(companion, rows, shrink=solver.kernel is not None)
    rows = rows.take(told(rows, sets))
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
    fitted = _sparse(fit.modes, basis, units).reordered(order.inverse, specification)
    return companion.reordered(order.inverse.of_one_class), fitted, fit


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


def _sparse(modes: SDGMModes, basis: Basis, units: Standardisation) -> FittedSDGM:
    """Modes with the features that they use."""
    used = np.concatenate([[0], *(mode.feature for mode in modes.parameters)]).astype(np.intp)
    features = np.unique(used)
    parameters = tuple(
        replace(mode, feature=np.searchsorted(features, mode.feature)) for mode in modes.parameters
    )
    sparse = SDGMModes(parameters, modes.probabilities)
    return FittedSDGM(sparse, sparse_basis(basis, features), features, units)


def full_basis(
    specification: MixtureSpecification,
    units: Standardisation,
    rows: CompletedRows,
    kernel: Any,
) -> Basis:
    """All features, before any is pruned.

    Parameters
    ----------
    specification : MixtureSpecification
        Columns.
    units : Standardisation
        Location and scale of the coordinates of a point.
    rows : CompletedRows
        Training rows, whose first points are the exemplars of a kernel.
    kernel : str, callable or None
        None for the primal form.

    Returns
    -------
    QuadraticBasis or KernelBasis
        The basis.
    """
    if kernel is None:
        return quadratic_basis(specification.n_features, specification.levels)
    return KernelBasis(kernel, standard_points(rows.points[rows.starts], units))


def _fit_companion(
    rows: Observations, levels: tuple[int, ...], solver: SDGMSolver
) -> FittedMixture:
    """A density of the columns, from the rows without their labels."""
    n_components = min(solver.companion_components, rows.n_obs)
    specification = MixtureSpecification(rows.real.shape[1], levels, (0,) * n_components)
    unlabelled = replace(rows, labels=np.zeros_like(rows.labels))
    by_em = Solver(n_init=4, max_iter=200, tol=1e-4, acceleration="squarem", seed=solver.seed)
    return fit_rows(unlabelled, specification, MixturePrior(), by_em)[0]


def _point_units(companion: FittedMixture, rows: Observations, *, shrink: bool) -> Standardisation:
    """Location and scale of reals and of the indicators of all levels, side by side."""
    marginals = table.marginals(rows.codes, companion.specification.levels, rows.weights)
    shares = np.concatenate([np.zeros(0), *marginals])
    location = np.concatenate([companion.units.location, shares])
    scale = np.concatenate([companion.units.scale, np.sqrt(shares * (1 - shares))])
    scale = np.where(scale > 0, scale, 1.0)
    return Standardisation(location, scale * np.sqrt(location.size) if shrink else scale)
