"""A fitted kernel network, with companion mixtures for its missing cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from jaxtyping import Float, Int

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.base.arrays import class_shares
from bayesrbf.base.log_posterior import OneByOne, Predictor
from bayesrbf.base.priors import ClassPrediction, MixturePrior
from bayesrbf.base.records import MAX_LOG, Requirements, scales, simplex, stored, within
from bayesrbf.base.rows import MixtureSpecification, Observations, default_shape
from bayesrbf.families.kernel_network.kernels import (
    Basis,
    CellMoments,
    EigenBasis,
    Kernel,
    KernelName,
    LinearBasis,
    ProductKernel,
    averaged,
    cell_moments,
    eigen_basis,
    linear_basis,
    product_kernel,
    relevance_factors,
)
from bayesrbf.families.kernel_network.posterior import (
    INTERCEPT_SD,
    KernelNetworkLogPosterior,
    OutputFit,
    attenuated,
    class_log_probabilities,
    fit_by_evidence,
    fit_output,
    output_layer,
)
from bayesrbf.families.kernel_network.rates import (
    RateSearch,
    learn_rates,
    rate_log_posteriors,
    rates_at,
)
from bayesrbf.families.kernel_network.records import RateCriterion
from bayesrbf.fit.model import Axes, Description, FittedModel, observed_rows, row_weights
from bayesrbf.mixture.fitted import (
    FittedMixture,
    Solver,
    component_class,
    fit_mixture_rows,
    mixture_coords,
)

if TYPE_CHECKING:
    import pymc as pm


# What the missing cells of a kernel may hold: companion mixtures whose answers are averaged.


SHARED_PRIOR_SIZE, MIN_PRIOR_SIZE = 0.3, 0.1
"""Rows of prior per real column behind a covariance that all classes share."""
COMPANION_TOL, COMPANION_ITERATIONS = 1e-3, 100
"""When a companion's EM stops: it fills cells, and fills them no better for the last digits."""
MAX_PER_CLASS: Final = 4
"""Components that a class of the second companion has at most."""
ROWS_OF_A_GROUP, MIN_GROUPS, MAX_GROUPS = 25, 2, 24
"""Rows per component of the third companion, and the bounds of their number."""


@stored
class Companions:
    """Mixtures whose equally weighted predictions fill in missing cells."""

    mixtures: tuple[FittedMixture, ...]

    @property
    def first(self) -> FittedMixture:
        """The mixture that serves as the density of the model."""
        return self.mixtures[0]

    def cells(self, rows: Observations) -> CellMoments:
        """Rows as a kernel sees them: cells with their moments, in standard units."""
        unlabelled, seen = rows.unlabelled(), []  # companions need not know the classes
        for mixture in self.mixtures:
            standard = mixture.standardise(unlabelled)
            seen.append(cell_moments(standard, mixture.parameters, mixture.specification))
        return averaged(seen)

    def __laws__(self) -> Requirements:
        structures = [mixture.specification for mixture in self.mixtures]
        columns = {(structure.n_features, structure.levels) for structure in structures}
        yield len(columns) == 1, "mixtures, all of the same columns"


def fit_companions(
    rows: Observations,
    levels: tuple[int, ...],
    n_classes: int,
    prior: MixturePrior,
    seed: int,
) -> Companions:
    """Three companions where a cell is missing, else the first alone.

    They differ in the groups of rows that a covariance, common to all, is taken within: the
    classes, up to four groups a class, and groups found without the labels. Which of them fills
    the cells best differs from table to table.
    """
    first = fit_companion(rows, levels, tuple(range(n_classes)), prior, seed)
    if not (np.isnan(rows.real).any() or (rows.codes < 0).any()):
        return Companions((first,))
    n_groups = np.clip(rows.weights.sum() // ROWS_OF_A_GROUP, MIN_GROUPS, MAX_GROUPS)
    of_classes = component_class(rows, n_classes, MAX_PER_CLASS)
    unlabelled = table.distinct(replace(rows, labels=np.zeros_like(rows.labels)))[0]
    second = fit_companion(rows, levels, of_classes, prior, seed)
    third = fit_companion(unlabelled, levels, (0,) * int(n_groups), prior, seed)
    return Companions((first, second, third))


def fit_companion(
    rows: Observations,
    levels: tuple[int, ...],
    components: tuple[int, ...],
    prior: MixturePrior,
    seed: int,
) -> FittedMixture:
    """A mixture of components of given classes, with one covariance for all."""
    d = rows.real.shape[1]
    specification = MixtureSpecification(d, levels, components, default_shape(d), True)
    solver = Solver(1, COMPANION_ITERATIONS, COMPANION_TOL, seed)
    shared = shared_prior(prior, specification)
    return fit_mixture_rows(rows, specification, shared, solver)[0]


def shared_prior(prior: MixturePrior, specification: MixtureSpecification) -> MixturePrior:
    """The prior of a covariance that all components share, unless the user set its strength.

    0.3 D rows stand behind the one covariance in all: with the declared prior's strength a mean,
    few components would decide for many.
    """
    d, n_means = specification.n_features, specification.n_components
    if prior.degrees_of_freedom is not None or d == 0 or not specification.shared_covariance:
        return prior
    freedom = max(SHARED_PRIOR_SIZE * d - n_means, MIN_PRIOR_SIZE * d)
    return replace(prior, degrees_of_freedom=freedom)


# A fitted kernel network, and the steps from weighted rows to it.


Rates = Literal["fixed"] | RateCriterion
"""Ways to find the rates of a kernel."""


@dataclass(frozen=True)
class KernelSettings:
    """Settings of a kernel network, as the estimator's arguments describe them."""

    kernel: Kernel
    relevance: float
    l2: float | Literal["evidence"]
    n_basis: int = 250
    n_exemplars: int = 2000
    tol: float = 1e-3
    max_iter: int = 1000
    seed: int = 0
    rates: Rates = "fixed"
    scale: float = 1.0
    search: RateSearch = field(default_factory=RateSearch)
    """Effort of the search for rates."""


@stored
class FittedKernelNetwork(FittedModel):
    """A fitted kernel network: eigenfunctions of the kernel, and output weights upon them."""

    comparable = True

    companions: Companions  # Give missing cells their distributions.
    basis: Basis
    theta: Float[np.ndarray, " coordinate"]  # Output weights, then intercepts.
    class_frequencies: Float[np.ndarray, " label"]
    """Weighted shares of the classes among the labelled training rows: the prediction for a row
    without a cell."""
    l2: float  # Precision of the prior of the output weights.

    @property
    def density(self) -> FittedMixture:
        """The first companion."""
        return self.companions.first

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return int(self.class_frequencies.size)

    @property
    def n_features(self) -> int:
        """Width of the hidden layer."""
        return self.basis.n_basis

    @property
    def rates(self) -> Float[np.ndarray, " column"]:
        """Rate of every column, reals then categorical."""
        return self._kernel.rates

    @property
    def _kernel(self) -> ProductKernel:
        assert isinstance(self.basis, EigenBasis)  # a linear network has no rates
        return self.basis.kernel

    @property
    def relevance(self) -> Float[np.ndarray, " column"]:
        """Rate of every column over the largest of its kind, reals then categorical."""
        kernel = self._kernel
        by_kind = (kernel.real_rates, kernel.category_rates)
        # There may be no column of a kind, or only rates of 0.
        return np.concatenate([rates / rates.max(initial=1e-300) for rates in by_kind])

    def features(self, rows: Observations) -> Float[np.ndarray, "obs basis"]:
        """The hidden layer of rows."""
        return self.basis.features(self.companions.cells(rows))

    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities at the fitted point; shares of classes need no calibration."""
        return self.of_cells(self.companions.cells(rows), temperature)(self.theta)

    def of_cells(self, cells: CellMoments, temperature: float) -> Callable[..., np.ndarray]:
        """Class log probabilities of rows as the kernel sees them, under any output weights."""
        basis, n_classes = self.basis, self.n_classes
        features, empty = basis.features(cells), cells.empty[:, None]
        # The caller multiplies by the temperature, which the shares do not need.
        by_shares = np.log(self.class_frequencies) / temperature
        variances = basis.variances(cells) if isinstance(basis, LinearBasis) else None

        def log_probabilities(theta: Float[np.ndarray, " coordinate"]) -> np.ndarray:
            log_p = class_log_probabilities(features, theta, n_classes)
            if variances is not None:
                slopes = basis.projection @ output_layer(theta, basis.n_basis)[0].T
                log_p = attenuated(log_p, variances, slopes)
            return np.where(empty, by_shares, log_p)

        return log_probabilities

    @property
    def condensed(self) -> FittedKernelNetwork:
        """A copy with equal predictions and one feature an output, without a posterior."""
        # Projections and output weights are multiplied into one matrix.
        weights, intercepts = output_layer(self.theta, self.n_features)
        basis = replace(self.basis, projection=self.basis.projection @ weights.T)
        return replace(
            self, basis=basis, theta=np.concatenate([np.eye(len(weights)).ravel(), intercepts])
        )

    @property
    def rounded(self) -> FittedKernelNetwork:
        """A copy whose large arrays, exemplars and projection, have single precision's digits."""
        return replace(self, basis=self.basis.rounded)

    def at_scale(self, scale: float, rows: Observations) -> FittedKernelNetwork:
        """The network at its rates over a scale, with as many features at most."""
        assert isinstance(self.basis, EigenBasis)  # a linear network has no scale
        kernel = self.basis.kernel.with_rates(self.rates / scale)
        basis, _ = eigen_basis(kernel, self.basis.exemplars, self.n_features)
        scaled = replace(self, basis=basis)
        tol, max_iter = KernelSettings.tol, KernelSettings.max_iter
        fit = fit_output(scaled.log_posterior(rows), tol=tol, max_iter=max_iter)
        return replace(scaled, theta=fit.theta)

    def log_posterior(self, rows: Observations) -> KernelNetworkLogPosterior:
        """The log posterior of the output weights; hidden layer and companion are held."""
        return KernelNetworkLogPosterior(
            self.features(rows), rows.labels, rows.weights, self.n_classes, self.l2
        )

    def point(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """The fitted output weights."""
        return self.theta

    def predictor(
        self, log_posterior: Any, rows: Observations, temperature: float = 1.0
    ) -> Predictor:
        """Prepare rows for predictions under any output weights; no draw changes the density."""
        log_probabilities = self.of_cells(self.companions.cells(rows), temperature)
        density = self.density.log_density(rows)
        return OneByOne(lambda theta: ClassPrediction(log_probabilities(theta), density))

    def declare(self, rows: Observations, axes: Axes) -> pm.Model:
        """The graph of the output layer on the hidden layer of training rows."""
        from bayesrbf.models.kernel_network import declare_kernel_network

        assert axes.classes is not None  # a network of classes
        return declare_kernel_network(
            self.features(rows),
            rows.labels,
            rows.weights,
            class_names=axes.classes.tolist(),
            weight_precision=float(self.l2),
            intercept_sd=INTERCEPT_SD,
            obs_names=axes.obs.tolist(),
        )

    def description(self, rows: Observations, axes: Axes) -> Description:
        """Names of companion and output layer; of two classes only the second has weights."""
        assert axes.classes is not None
        coords = mixture_coords(self.density.specification, axes) | {
            names.BASIS: np.arange(self.n_features),
            names.OUTPUT: axes.classes[1:] if axes.classes.size == 2 else axes.classes,
        }
        labels = (names.OBS,), np.where(rows.labels < 0, np.nan, rows.labels)
        observed = observed_rows(rows.unlabelled()) | {names.OBSERVED_LABEL: labels}
        return Description(coords, observed, row_weights(rows), names.OBSERVED_LABEL)

    def __laws__(self) -> Requirements:
        structure, n = self.density.specification, self.n_classes
        yield self.basis.is_of(structure.n_features, structure.levels), "its companion's columns"
        yield structure.n_classes in (1, n), "its companion's classes"
        yield simplex(self.class_frequencies), "shares of classes that sum to one"
        yield n > 0 and bool((self.class_frequencies > 0).all()), "positive shares of classes"
        outputs = 1 if n == 2 else n
        yield self.theta.size == outputs * (self.n_features + 1), "a weight of every feature"
        yield within(abs(self.theta), 0, MAX_LOG), "output weights"
        yield scales(self.l2), "a positive precision"


def fit_kernel_network(
    rows: Observations,
    levels: tuple[int, ...],
    n_classes: int,
    prior: MixturePrior,
    settings: KernelSettings,
) -> tuple[FittedKernelNetwork, OutputFit]:
    """Fit companion and network to distinct weighted rows, in the user's units."""
    alone = fit_companion(rows, levels, tuple(range(n_classes)), prior, settings.seed)
    companions = Companions((alone,))
    exemplars = find_exemplars(rows, settings.n_exemplars, settings.seed)
    layer = hidden_layer(rows, companions.cells(rows), companions, settings, exemplars)
    return fit_kernel_rows(rows, companions, layer, settings)


Exemplars = tuple[Int[np.ndarray, " exemplar"], Int[np.ndarray, " seen"] | None]
"""Rows with different cells, some of them if they are many; each row's place among all."""


@dataclass(frozen=True)
class HiddenLayer:
    """Features of a network, and their values at the training rows."""

    basis: Basis
    features: Float[np.ndarray, "obs basis"]


def hidden_layer(
    rows: Observations,
    cells: CellMoments,
    companions: Companions,
    settings: KernelSettings,
    exemplars: Exemplars,
) -> HiddenLayer:
    """Find the kernel's rates, and place the exemplars; a linear network has neither.

    ``cells`` are the rows as kernels see them with the companions; several networks share them and
    the exemplars.
    """
    if settings.kernel == "linear":
        axes = linear_basis(cells, rows.weights, settings.n_basis)
        return HiddenLayer(axes, axes.features(cells))
    kernel = fixed_kernel(rows, cells, companions, settings.kernel, settings.relevance)
    n_classes, criterion = companions.first.specification.n_classes, settings.rates
    rates = kernel.rates
    if criterion != "fixed" and n_classes > 1:
        search = settings.search
        judges = rate_log_posteriors(
            kernel, cells, rows, n_classes, criterion, settings.seed, search
        )
        rates = rates_at(learn_rates(judges, search.steps), rates)
    chosen, exemplar_index = exemplars
    kernel = kernel.with_rates(rates / settings.scale)
    basis, features = eigen_basis(kernel, cells.take(chosen), settings.n_basis)
    features = features[exemplar_index] if exemplar_index is not None else basis.features(cells)
    return HiddenLayer(basis, features)


def fixed_kernel(
    rows: Observations,
    cells: CellMoments,
    companions: Companions,
    name: KernelName,
    relevance: float,
) -> ProductKernel:
    """The kernel at fixed rates."""
    structure = companions.first.specification
    levels, n_classes = structure.levels, structure.n_classes
    standard = companions.first.standardise(rows)
    factors = relevance_factors(standard, levels, n_classes, relevance)
    return product_kernel(name, cells, rows.weights, levels, factors)


def fit_kernel_rows(
    rows: Observations, companions: Companions, layer: HiddenLayer, settings: KernelSettings
) -> tuple[FittedKernelNetwork, OutputFit]:
    """Find the output weights of a network with a hidden layer."""
    n_classes = companions.first.specification.n_classes
    log_posterior = partial(
        KernelNetworkLogPosterior, layer.features, rows.labels, rows.weights, n_classes
    )
    l2, tol, max_iter = settings.l2, settings.tol, settings.max_iter
    if l2 == "evidence":
        fit, l2 = fit_by_evidence(log_posterior, tol=tol, max_iter=max_iter)
    else:
        fit = fit_output(log_posterior(l2), tol=tol, max_iter=max_iter)
    shares = class_shares(rows.labels, rows.weights, n_classes)
    return FittedKernelNetwork(companions, layer.basis, fit.theta, shares, l2), fit


def find_exemplars(rows: Observations, n_exemplars: int, seed: int) -> Exemplars:
    """Indices of distinct rows, a random sample of ``n_exemplars`` where they are more."""
    # Rows that differ in label or weight alone are one exemplar: twice the same row would make
    # the kernel matrix singular.
    alike = replace(rows, labels=np.zeros_like(rows.labels), weights=np.ones(rows.n_obs))
    _, distinct_index = table.distinct(alike)
    _, chosen = np.unique(distinct_index, return_index=True)
    if chosen.size <= n_exemplars:
        return chosen, distinct_index
    drawn = np.random.default_rng(seed).choice(chosen, n_exemplars, replace=False)
    return np.sort(drawn), None
