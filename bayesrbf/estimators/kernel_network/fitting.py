"""From weighted rows to a fitted kernel network: the steps that every fit and fold shares."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Int

from bayesrbf import table
from bayesrbf.estimators.kernel_network.fitted import FittedKernelNetwork, cells_of
from bayesrbf.estimators.mixture.fitting import FittedMixture, Solver, fit_rows
from bayesrbf.numerics.kernel_network.kernel_layer import (
    eigen_basis,
    product_kernel,
    relevance_factors,
)
from bayesrbf.numerics.kernel_network.kernel_network_log_posterior import (
    KernelNetworkLogPosterior,
    OutputFit,
    fit_output,
)
from bayesrbf.numerics.kernel_network.product_kernels import CellMoments, KernelName
from bayesrbf.parameters import Observations
from bayesrbf.priors import MixturePrior
from bayesrbf.specification import MixtureSpecification

SHARED_STRENGTH, LEAST_STRENGTH = 0.3, 0.1
"""Rows of prior per real column behind a covariance that all classes share."""
COMPANION_TOL, COMPANION_ITERATIONS = 1e-4, 100
"""When the companion's EM stops: it fills cells, and fills them no better for the last digits."""


@dataclass(frozen=True)
class KernelSettings:
    """How a kernel network is built.

    Attributes
    ----------
    kernel : {"laplace", "gaussian"}
        Shape of the kernel.
    relevance : float
        How far columns that tell nothing are shrunk, from 0 to 1.
    l2 : float
        Precision of the normal prior of the output weights, positive.
    n_basis : int
        Most eigenfunctions.
    n_exemplars : int
        Most training rows that centre them.
    tol : float
        Where the search for the output weights ends.
    max_iter : int
        Most iterations of it.
    seed : int
        Seed of the choice of exemplars.
    """

    kernel: KernelName
    relevance: float
    l2: float
    n_basis: int = 250
    n_exemplars: int = 2000
    tol: float = 1e-3
    max_iter: int = 1000
    seed: int = 0


def fit_companion(
    rows: Observations, levels: tuple[int, ...], n_classes: int, prior: MixturePrior, seed: int
) -> FittedMixture:
    """Fit the mixture that says what missing cells may hold: one component a class, tied.

    Parameters
    ----------
    rows : Observations
        Distinct weighted rows in canonical order, in the user's units.
    levels : tuple of int
        Number of levels of every categorical column.
    n_classes : int
        Number of classes.
    prior : MixturePrior
        Declared prior.
    seed : int
        Seed of its start.

    Returns
    -------
    FittedMixture
        The companion.
    """
    specification = MixtureSpecification(
        rows.real.shape[1], levels, tuple(range(n_classes)), "full", True
    )
    solver = Solver(1, COMPANION_ITERATIONS, COMPANION_TOL, "squarem", seed)
    return fit_rows(rows, specification, shared_prior(prior, specification), solver)[0]


def shared_prior(prior: MixturePrior, specification: MixtureSpecification) -> MixturePrior:
    """The prior of a covariance that all components share, unless the user set its strength.

    The declared prior puts ``nu0 + G`` rows behind a covariance under G means. Where G is
    as large as D, the default nu0 = 0.3 D would double them: here they are 0.3 D in all.

    Parameters
    ----------
    prior : MixturePrior
        Declared prior.
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    MixturePrior
        With ``degrees_of_freedom = max(0.3 D - G, 0.1 D)`` where they were None.
    """
    d, n_means = specification.n_features, specification.n_components
    if prior.degrees_of_freedom is not None or d == 0 or not specification.tied:
        return prior
    freedom = max(SHARED_STRENGTH * d - n_means, LEAST_STRENGTH * d)
    return replace(prior, degrees_of_freedom=freedom)


def fit_kernel_network(
    rows: Observations,
    levels: tuple[int, ...],
    n_classes: int,
    prior: MixturePrior,
    settings: KernelSettings,
) -> tuple[FittedKernelNetwork, OutputFit]:
    """Fit companion and network to distinct rows.

    Parameters
    ----------
    rows : Observations
        Distinct weighted rows in canonical order, in the user's units.
    levels : tuple of int
        Number of levels of every categorical column.
    n_classes : int
        Number of classes.
    prior : MixturePrior
        Declared prior of the companion.
    settings : KernelSettings
        How to build.

    Returns
    -------
    network : FittedKernelNetwork
        What predicts.
    fit : OutputFit
        How the search for the output weights went.
    """
    companion = fit_companion(rows, levels, n_classes, prior, settings.seed)
    return fit_kernel_rows(rows, cells_of(rows, companion), companion, settings)


def fit_kernel_rows(
    rows: Observations, cells: CellMoments, companion: FittedMixture, settings: KernelSettings
) -> tuple[FittedKernelNetwork, OutputFit]:
    """Place the exemplars, fix the kernel's rates and find the output weights.

    Parameters
    ----------
    rows : Observations
        Distinct weighted rows in canonical order, in the user's units.
    cells : CellMoments
        The same rows as the kernel sees them.
    companion : FittedMixture
        Gave missing cells their distributions.
    settings : KernelSettings
        How to build.

    Returns
    -------
    network : FittedKernelNetwork
        What predicts.
    fit : OutputFit
        How the search for the output weights went.
    """
    structure = companion.specification
    levels, n_classes = structure.levels, structure.n_classes
    standard = companion.standardise(rows)
    factors = relevance_factors(standard, levels, n_classes, settings.relevance)
    kernel = product_kernel(settings.kernel, cells, rows.weights, levels, factors)
    chosen, place = _exemplars(rows, settings.n_exemplars, settings.seed)
    basis, features = eigen_basis(kernel, cells.take(chosen), settings.n_basis)
    features = features[place] if place is not None else basis.features(cells)
    log_posterior = KernelNetworkLogPosterior(
        features, rows.labels, rows.weights, n_classes, settings.l2
    )
    fit = fit_output(log_posterior, tol=settings.tol, max_iter=settings.max_iter)
    return FittedKernelNetwork(companion, basis, fit.theta, n_classes, settings.l2), fit


def _exemplars(
    rows: Observations, n_exemplars: int, seed: int
) -> tuple[Int[np.ndarray, " exemplar"], Int[np.ndarray, " obs"] | None]:
    """Rows with different cells, some of them if they are many; each row's place among all."""
    alike = replace(rows, labels=np.zeros_like(rows.labels), weights=np.ones(rows.n_obs))
    _, place = table.distinct(alike)
    _, chosen = np.unique(place, return_index=True)
    if chosen.size <= n_exemplars:
        return chosen, place
    drawn = np.random.default_rng(seed).choice(chosen, n_exemplars, replace=False)
    return np.sort(drawn), None
