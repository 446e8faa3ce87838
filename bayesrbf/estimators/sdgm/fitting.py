"""From weighted rows to a fitted sparse discriminative mixture and its companion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bayesrbf import table
from bayesrbf.estimators.mixture.fitting import FittedMixture, Solver, fit_rows
from bayesrbf.estimators.sdgm.rows import LabelSets, completions, labelled, told
from bayesrbf.numerics.sdgm.ard_fit import Settings, fit_sdgm
from bayesrbf.numerics.sdgm.sdgm_features import quadratic_basis, sparse_basis, standard_points
from bayesrbf.numerics.sdgm.sdgm_prediction import drawn_log_probabilities, predict
from bayesrbf.parameters import Observations, Standardisation
from bayesrbf.priors import MixturePrior
from bayesrbf.sdgm_parameters import (
    Basis,
    CompletedRows,
    KernelBasis,
    SDGMFit,
    SDGMModes,
    SDGMParameters,
)
from bayesrbf.specification import MixtureSpecification

PREDICTION_DRAWS = 64
"""Completions of a row with holes in each replicate of a prediction."""
POSTERIOR_DRAWS = 128
"""Completions of a row with holes under every draw of a posterior."""


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


@dataclass(frozen=True)
class FittedSDGM:
    """A fitted sparse discriminative mixture: what predicting needs and nothing else.

    Attributes
    ----------
    modes : SDGMModes
        Active weights of every mode, and their covariance.
    basis : QuadraticBasis or KernelBasis
        The intercept and the features that active weights of any mode use.
    features : ndarray of shape (n_features,)
        Number of each of them among all features.
    units : Standardisation
        Location and scale of the coordinates of a point.
    """

    modes: SDGMModes
    basis: Basis
    features: Int[np.ndarray, " feature"]
    units: Standardisation

    @property
    def parameters(self) -> SDGMParameters:
        """The most probable mode."""
        return self.modes.best

    def with_one_mode(self) -> FittedSDGM:
        """Leave the other modes out.

        Returns
        -------
        FittedSDGM
            The most probable mode.
        """
        return replace(self, modes=self.modes.alone)

    def predict(
        self,
        companion: FittedMixture,
        rows: Observations,
        *,
        average: bool,
        temperature: float = 1.0,
        shift: Float[np.ndarray, " label"] | float = 0.0,
    ) -> tuple[Float[np.ndarray, "obs label"], Float[np.ndarray, "obs label"]]:
        """Class probabilities of rows, and their numerical standard errors.

        Parameters
        ----------
        companion : FittedMixture
            Density of the columns, which completes rows with holes.
        rows : Observations
            Rows in the user's units.
        average : bool
            Over the Laplace posterior of the weights; else at its most probable mode.
        temperature : float
            Factor of the log probabilities under every draw and completion.
        shift : ndarray of shape (n_classes,), or 0
            Added to them: log ratio of the prevalences of use to those of the fit.

        Returns
        -------
        probabilities : ndarray of shape (n_obs, n_classes)
            Rows sum to one.
        error : ndarray of shape (n_obs, n_classes)
            Standard errors.
        """
        return predict(
            self.modes,
            self.basis,
            self.units,
            lambda replicate: completions(companion, rows, PREDICTION_DRAWS, replicate),
            average=average,
            temperature=temperature,
            shift=shift,
        )

    def drawn_log_probabilities(
        self, companion: FittedMixture, rows: Observations, *, average: bool
    ) -> Float[np.ndarray, "obs draw label"]:
        """Class log probabilities of which :meth:`predict` gives the mean.

        Parameters
        ----------
        companion : FittedMixture
            Density of the columns, which completes rows with holes.
        rows : Observations
            Rows in the user's units.
        average : bool
            Draw weights from their Laplace posterior; else they stay at its most
            probable mode.

        Returns
        -------
        ndarray of shape (n_obs, n_draws, n_classes)
            In nats.
        """
        return drawn_log_probabilities(
            self.modes,
            self.basis,
            self.units,
            lambda replicate: completions(companion, rows, PREDICTION_DRAWS, replicate),
            average=average,
        )


def fit_rows_sdgm(
    rows: Observations,
    sets: LabelSets,
    levels: tuple[int, ...],
    component_class: tuple[int, ...],
    solver: SDGMSolver,
) -> tuple[FittedMixture, FittedSDGM, SDGMFit]:
    """Fit the companion, complete the rows, and fit the sparse mixture.

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
    companion = _fit_companion(rows, levels, solver)
    units = _point_units(companion, rows, shrink=solver.kernel is not None)
    specification = MixtureSpecification(rows.real.shape[1], levels, component_class)
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
    return companion, _sparse(fit.modes, basis, units), fit


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
