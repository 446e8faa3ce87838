"""A fitted sparse mixture: the steps to it, and its averaged predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import ndtri

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.base.arrays import log_sum_exp, one_hot, uniforms
from bayesrbf.base.log_posterior import OneByOne, Predictor
from bayesrbf.base.priors import MixturePrior, PrecisionPrior
from bayesrbf.base.records import Requirements, classes_in_order, stored, within
from bayesrbf.base.rows import MixtureSpecification, Observations, Order, Standardisation, in_blocks
from bayesrbf.families.sdgm.evidence import Settings, fit_sdgm
from bayesrbf.families.sdgm.posterior import (
    SDGMLogPosterior,
    class_log_probabilities,
    learned_specification,
    learned_weights,
    numbers_of,
    quadratic_basis,
    standard_points,
)
from bayesrbf.families.sdgm.records import (
    Basis,
    CompletedRows,
    KernelBasis,
    QuadraticBasis,
    SDGMFit,
    SDGMModes,
    SDGMParameters,
    SDGMSpecification,
    SDGMTrace,
)
from bayesrbf.fit.chain import AnySource, Source
from bayesrbf.fit.model import Axes, Description, FittedModel, row_weights
from bayesrbf.inference.draws import Draws
from bayesrbf.mixture.fitted import FittedMixture, Solver, fit_mixture_rows
from bayesrbf.mixture.missing import complete

if TYPE_CHECKING:
    import pymc as pm

    from bayesrbf.base.priors import ClassPrediction


# Points that rows may be: those with missing cells are completed by the companion.


TRAINING_DRAWS = 32  # Completions of a row with holes in the likelihood.

LabelSets = Bool[np.ndarray, "set label"]
"""Classes of every kind of label: a code per class, then the sets of several classes."""


def completions(
    companion: FittedMixture, rows: Observations, draws: int, replicate: int = 0
) -> tuple[Float[np.ndarray, "point coordinate"], Int[np.ndarray, " row"]]:
    """Completed points of all rows, and the index of the first point of each row.

    A complete row is its own only point; one with missing cells has ``draws`` completions, a power
    of two, drawn from the companion. ``replicate`` numbers independent sets of draws. Points are
    the reals in the user's units, then the indicators of all levels. Labels are not used.
    """
    units, specification = companion.units, companion.specification
    whole, starts = complete(
        replace(rows, real=units.forward(rows.real)),
        companion.parameters,
        specification,
        draws=draws,
        replicate=replicate,
        order=companion.order,
    )
    # Observed cells keep their values to the last bit.
    seen = np.repeat(rows.real, np.diff(starts, append=whole.n_obs), axis=0)
    real = np.where(np.isnan(seen), units.backward(whole.real), seen)
    return np.column_stack([real, one_hot(whole.codes, specification.levels)]), starts


def labelled(companion: FittedMixture, rows: Observations, sets: LabelSets) -> CompletedRows:
    """Training rows as completed points, with the classes that each label allows."""
    points, starts = completions(companion, rows, TRAINING_DRAWS)
    allowed = np.concatenate([sets, np.ones((1, sets.shape[1]), dtype=bool)])[rows.labels]
    return CompletedRows(points, starts, allowed, rows.weights)  # a hidden label, -1, allows all


def informative(rows: Observations, sets: LabelSets) -> Bool[np.ndarray, " obs"]:
    """Mask of rows whose label excludes a class; all rows where there is only one class."""
    return (rows.labels >= 0) | (sets.shape[1] == 1)


# Class probabilities of points, at the mode and averaged over the posterior of the weights.
#
# .. math:: \bar p(c | x) = \sum_j q_j \int p(c | x, w) \, N(w; \hat w_j, \Sigma_j) \, dw
#
# with q the probabilities of the modes. The average is a mean over quasi-random draws of
# the weights along the principal axes of their covariance, assigned to modes, in replicates
# whose spread is the numerical error.


REPLICATES = 8
"""Independent sets of quasi-random draws, whose spread is the numerical error of a prediction."""
DRAWS = 256  # Draws of the weights in a replicate.
DRAWS_OF_COMPLETED = 32
"""Draws of the weights for each completion of a row with missing cells.

Fewer are enough, because completions differ more than draws.
"""
Completion = Callable[[int], tuple[np.ndarray, np.ndarray]]
"""Number of a replicate -> points of all rows in the user's units, first point of every row."""


@dataclass(frozen=True)
class WeightDraws:
    """Draws of a mode and its active weights.

    ``number`` is the index of the mode of every draw; ``weights`` has one array a mode.
    """

    modes: tuple[SDGMParameters, ...]
    number: Int[np.ndarray, " draw"]
    weights: tuple[Float[np.ndarray, "_ _"], ...]


def weight_draws(modes: SDGMModes, n_draws: int, replicate: int, *, average: bool) -> WeightDraws:
    """Quasi-random draws of a mode and its weights, by the principal axes of their covariance.

    ``n_draws`` are assigned to modes in proportion to their probabilities, to within one or two.
    ``replicate`` numbers independent sets of draws. Without ``average``, the most probable mode is
    the only draw.
    """
    if not average:
        alone = modes.best.coefficients[None]
        return WeightDraws(modes.parameters[:1], np.zeros(1, dtype=np.intp), (alone,))
    widest = max(mode.n_weights for mode in modes.parameters)
    numbers = uniforms(n_draws, 1 + widest, replicate)
    # Without the last sum, which rounding may leave below 1.
    chosen = np.searchsorted(np.cumsum(modes.probabilities)[:-1], numbers[:, 0], side="right")
    normals = (
        ndtri(numbers[chosen == number, 1 : 1 + mode.n_weights])
        for number, mode in enumerate(modes.parameters)
    )
    pairs = zip(modes.parameters, normals, strict=True)
    weights = tuple(mode.coefficients + normal @ mode.root.T for mode, normal in pairs)
    return WeightDraws(modes.parameters, chosen, weights)


def replicated_draws(modes: SDGMModes) -> Float[np.ndarray, "replicate draw entry"]:
    """Draws from the Laplace approximation that predictions average over, in replicates.

    A draw has the index of its mode, the active weights of the mode, and zeros.
    """
    widest = max(mode.n_weights for mode in modes.parameters)
    result = np.zeros((REPLICATES, DRAWS, 1 + widest))
    for replicate in range(REPLICATES):
        drawn = weight_draws(modes, DRAWS, replicate, average=True)
        # Every other point of a quasi-random sequence lies in one half of the cube. A permutation
        # makes thinned draws representative.
        order = np.random.default_rng(replicate).permutation(DRAWS)
        result[replicate, order, 0] = drawn.number
        for number, weights in enumerate(drawn.weights):
            positions = order[drawn.number == number]
            result[replicate, positions, 1 : 1 + weights.shape[1]] = weights
    return result


def predict(
    modes: SDGMModes,
    basis: Basis,
    units: Standardisation,
    completion: Completion,
    *,
    average: bool,
    temperature: float = 1.0,
) -> tuple[Float[np.ndarray, "obs label"], Float[np.ndarray, "obs label"]]:
    """Class probabilities of rows, and their standard errors by the spread of the replicates.

    The average is over the posterior of the weights, else they stay at the most probable mode.
    Under every draw and completion log probabilities are multiplied by ``temperature``. The error
    is 0 where nothing was drawn.
    """
    estimates = []
    for replicate in range(REPLICATES):
        points, starts = completion(replicate)
        phi = basis.at(standard_points(points, units))
        sizes = np.diff(starts, append=len(points))
        whole = np.repeat(sizes == 1, sizes)
        by_point = np.empty((len(points), modes.best.component_class[-1] + 1))
        for chosen, n_draws in ((whole, DRAWS), (~whole, DRAWS_OF_COMPLETED)):
            if chosen.any():
                drawn = weight_draws(modes, n_draws, replicate, average=average)
                by_point[chosen] = _mean_over_modes(phi[chosen], drawn, temperature)
        estimates.append(np.add.reduceat(by_point, starts, axis=0) / sizes[:, None])
        # Neither weights nor cells were drawn: all replicates would be the same.
        if not average and len(points) == len(starts):
            return estimates[0], np.zeros_like(estimates[0])
    found = np.stack(estimates)
    return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(REPLICATES)


def _mean_over_modes(
    phi: Float[np.ndarray, "point feature"], drawn: WeightDraws, temperature: float
) -> Float[np.ndarray, "point label"]:
    """Class probabilities of points, averaged over draws of all modes."""
    sums = [
        len(weights) * mean_probabilities(phi, weights, mode, temperature)
        for mode, weights in zip(drawn.modes, drawn.weights, strict=True)
        if len(weights)
    ]
    return np.sum(sums, axis=0) / drawn.number.size


def mean_probabilities(
    phi: Float[np.ndarray, "point feature"],
    draws: Float[np.ndarray, "draw weight"],
    parameters: SDGMParameters,
    temperature: float,
) -> Float[np.ndarray, "point label"]:
    """Class probabilities of points, averaged over draws of the active weights of one mode.

    Under every draw probabilities are proportional to their power ``temperature``.
    """
    k, classes = parameters.n_components, parameters.component_class
    # Draws come last: sums over few components in the last place would take ten times as long.
    dense = np.zeros((phi.shape[1], k, len(draws)))
    dense[parameters.feature, parameters.component] = draws.T
    flat = dense.reshape(phi.shape[1], -1)
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    result = np.empty((len(phi), classes[-1] + 1))
    for block in in_blocks(len(phi), flat.shape[1], cached=True):
        logits = (phi[block] @ flat).reshape(-1, k, len(draws))
        logits += np.log(parameters.proportions)[:, None]
        by_class = np.add.reduceat(log_sum_exp(logits, axis=1)[1], starts, axis=1)
        if temperature != 1:
            by_class **= temperature
            by_class /= by_class.sum(axis=1, keepdims=True)
        result[block] = by_class.mean(axis=2)
    return result


def drawn_log_probabilities(
    modes: SDGMModes, basis: Basis, units: Standardisation, completion: Completion, *, average: bool
) -> Float[np.ndarray, "obs draw label"]:
    """Class log probabilities of rows under draws of the weights and of their missing cells.

    Every draw takes one draw of the weights and one completion of every row. Without
    ``average``, the weights stay at the most probable mode.
    """
    points, starts = completion(0)
    phi = basis.at(standard_points(points, units))
    sizes = np.diff(starts, append=len(points))
    drawn = weight_draws(modes, DRAWS, 0, average=average)
    points_of_modes = [
        replace(mode, coefficients=coefficients)
        for mode, weights in zip(drawn.modes, drawn.weights, strict=True)
        for coefficients in weights
    ]
    if not average:
        points_of_modes *= sizes.max(initial=1)
    # Draws of weights and of cells with the same number are of one quasi-random point, and so
    # dependent. A permutation pairs them at random.
    order = np.random.default_rng(0).permutation(len(points_of_modes))
    result = []
    for s, mode in zip(order, points_of_modes, strict=True):
        logits = phi[starts + s % sizes] @ mode.dense(phi.shape[1]) + np.log(mode.proportions)
        result.append(class_log_probabilities(logits, mode.component_class))
    return np.stack(result, axis=1)


# A fitted sparse discriminative mixture.


PREDICTION_DRAWS = 64  # Completions of a row with holes in each replicate of a prediction.
POSTERIOR_DRAWS = 128  # Completions of a row with holes under every posterior draw.

Prediction = Literal["average", "single-mode", "plug-in"]
"""Average of a prediction: over modes and their spread, over one mode's spread, over nothing."""


@stored
class FittedSDGM(FittedModel):
    """A fitted sparse discriminative mixture."""

    comparable = True

    modes: SDGMModes
    basis: Basis  # The features that are used.
    features: Int[np.ndarray, " feature"]  # Indices of the used features among all features.
    units: Standardisation  # Location and scale of the coordinates of a point.
    companion: FittedMixture
    """A density of the columns, blind to the labels: it completes rows with holes."""
    sets: LabelSets  # The classes of every code of a label.
    component_class: tuple[int, ...]  # Class of every component before any was pruned.
    precision_prior: PrecisionPrior | None
    """Prior of the declared graph; None holds the precisions at their evidence's maximum."""
    prediction: Prediction

    @property
    def density(self) -> FittedMixture:
        """The companion."""
        return self.companion

    @property
    def parameters(self) -> SDGMParameters:
        """The most probable mode."""
        return self.modes.best

    @property
    def averages(self) -> bool:
        """Whether predictions average over the spread around a mode."""
        return self.prediction != "plug-in"

    @property
    def averaged_modes(self) -> SDGMModes:
        """The modes that predictions use."""
        return self.modes if self.prediction == "average" else self.modes.alone

    def predict(
        self, rows: Observations, temperature: float = 1.0
    ) -> tuple[Float[np.ndarray, "obs label"], Float[np.ndarray, "obs label"]]:
        """Class probabilities of rows, and their numerical standard errors."""
        return predict(
            self.averaged_modes,
            self.basis,
            self.units,
            lambda replicate: completions(self.companion, rows, PREDICTION_DRAWS, replicate),
            average=self.averages,
            temperature=temperature,
        )

    def drawn_log_probabilities(self, rows: Observations) -> Float[np.ndarray, "obs draw label"]:
        """Class log probabilities under every draw; their mean probability is :meth:`predict`'s."""
        return drawn_log_probabilities(
            self.averaged_modes,
            self.basis,
            self.units,
            lambda replicate: completions(self.companion, rows, PREDICTION_DRAWS, replicate),
            average=self.averages,
        )

    def component_probabilities(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """Probabilities of classes and components together, at the fitted weights."""
        points, starts = completions(self.companion, rows, POSTERIOR_DRAWS)
        phi = self.basis.at(standard_points(points, self.units))
        mode = self.parameters
        logits = phi @ mode.dense(phi.shape[1]) + np.log(mode.proportions)
        sizes = np.diff(starts, append=len(points))
        return np.add.reduceat(log_sum_exp(logits, axis=1)[1], starts, axis=0) / sizes[:, None]

    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        """``log(mean of p(c | x, w)^t) / t`` for a temperature t."""
        with np.errstate(divide="ignore"):
            # The mean is one of tempered draws; the caller's temperature gives it back.
            return np.log(self.predict(rows, temperature)[0]) / temperature

    def declared(self, rows: Observations) -> tuple[CompletedRows, Basis, SDGMSpecification]:
        """Training rows, features and structure of the declared graph."""
        completed = labelled(self.companion, rows, self.sets)
        if self.precision_prior is None:
            return completed, self.basis, self.parameters.specification
        distinct, _ = table.distinct(rows)  # the exemplars of the fit
        basis = full_basis(
            self.companion.specification,
            self.units,
            labelled(self.companion, distinct.take(informative(distinct, self.sets)), self.sets),
            self.basis.kernel,
        )
        return (
            completed,
            basis,
            learned_specification(self.component_class, basis.n_features, self.precision_prior),
        )

    def class_shares(self, rows: Observations, n_classes: int) -> Float[np.ndarray, " label"]:
        """Weighted class shares of the rows whose label excludes a class.

        A row with several classes is divided in proportion to the counts of rows with one class
        plus 1/2, so that no class has a share of 0. Without such rows nothing is added.
        """
        sets, known = self.sets, rows.labels >= 0
        by_set = np.bincount(rows.labels[known], rows.weights[known], minlength=len(sets))
        within = sets * (by_set[: sets.shape[1]] + 0.5)
        counts = by_set @ (within / within.sum(axis=1, keepdims=True))
        return counts / counts.sum()

    def n_codes(self, n_classes: int) -> int:
        """Number of sets of classes."""
        return len(self.sets)

    def log_posterior(self, rows: Observations) -> SDGMLogPosterior:
        """The log posterior of the weights of one mode."""
        completed, basis, specification = self.declared(rows)
        return SDGMLogPosterior(completed, basis, self.units, specification)

    def point(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """Unconstrained coordinates of the fitted weights, or of all weights if alpha is free."""
        parameters = self.parameters
        if self.precision_prior is None:
            return log_posterior.pack(parameters.coefficients)
        everywhere = replace(parameters, feature=self.features[parameters.feature])
        return log_posterior.pack(learned_weights(everywhere, log_posterior.specification))

    def predictor(
        self, log_posterior: Any, rows: Observations, temperature: float = 1.0
    ) -> Predictor:
        """Prepare rows for predictions at any coordinates: they are completed once."""
        points, starts = completions(self.companion, rows, POSTERIOR_DRAWS)
        density = self.companion.log_density(rows.unlabelled())  # it has no classes
        return log_posterior.predictor(points, starts, density, temperature)

    def chain_source(
        self,
        log_posterior: Callable[[], Any],
        rows: Observations,
        draws: Draws | None,
        temperature: float,
        missing_fraction: Callable[[Observations], np.ndarray],
    ) -> AnySource:
        """Source of posterior draws: ``draws``, else draws from the Laplace approximation."""
        if draws is not None or not self.averages:
            return super().chain_source(log_posterior, rows, draws, temperature, missing_fraction)
        return Source(
            (REPLICATES, DRAWS),
            cache(lambda: replicated_draws(self.averaged_modes)),
            self.modes_predictor(rows, temperature),
            lambda new: self.class_log_joint(new, temperature),
            missing_fraction,
        )

    def modes_predictor(
        self, training: Observations, temperature: float
    ) -> Callable[[Observations], Predictor]:
        """Prepares rows for predictions at :func:`replicated_draws`."""
        completed = labelled(self.companion, training, self.sets)
        modes = self.averaged_modes.parameters
        log_posteriors = [
            SDGMLogPosterior(completed, self.basis, self.units, mode.specification)
            for mode in modes
        ]

        def prepare(rows: Observations) -> Predictor:
            predictors = [self.predictor(target, rows, temperature) for target in log_posteriors]

            def predicted(theta: np.ndarray) -> ClassPrediction:
                number = int(theta[0])
                return predictors[number](theta[1 : 1 + modes[number].n_weights])

            return OneByOne(predicted)

        return prepare

    def declare(self, rows: Observations, axes: Axes) -> pm.Model:
        """The graph of the weights on training rows."""
        from bayesrbf.models.sdgm import declare_sdgm

        assert axes.classes is not None
        completed, basis, specification = self.declared(rows)
        return declare_sdgm(
            completed,
            basis,
            self.units,
            specification,
            class_names=axes.classes.tolist(),
            obs_names=axes.obs.tolist(),
            coefficient_names=coefficient_names(basis, specification, axes),
        )

    def description(self, rows: Observations, axes: Axes) -> Description:
        """Names of weights and components, and the classes that every row may have."""
        assert axes.classes is not None
        completed, basis, specification = self.declared(rows)
        coords = {
            names.OBS: axes.obs,
            names.LABEL: axes.classes,
            names.COMPONENT: np.arange(specification.n_components),
            names.COEFFICIENT: coefficient_names(basis, specification, axes),
        }
        allowed = (names.OBS, names.LABEL), completed.allowed.astype(np.int64)
        component_class = axes.classes[specification.component_class]
        constant = row_weights(rows) | {
            "proportions": ((names.COMPONENT,), specification.proportions),
            names.COMPONENT_LABEL: ((names.COMPONENT,), component_class),
        }
        return Description(coords, {"allowed": allowed}, constant, names.OBSERVED_LABEL)

    def __laws__(self) -> Requirements:
        structure, n_features = self.companion.specification, self.basis.n_features
        n_coordinates = structure.n_features + sum(structure.levels)
        yield structure.n_classes == 1, "a companion without classes"
        yield self.units.scale.size == n_coordinates, "units of all coordinates"
        yield self.basis.fits(n_coordinates), "features of its coordinates"
        yield self.features.size == n_features and within(self.features, 0), "numbers of features"
        modes = self.modes.parameters
        n_classes = modes[0].component_class[-1] + 1
        yield all(within(mode.feature, 0, n_features) for mode in modes), "weights of its features"
        yield all(mode.component_class[-1] + 1 == n_classes for mode in modes), "modes of one table"
        yield classes_in_order(self.component_class), "classes in order"
        yield self.component_class[-1] + 1 == n_classes, "components of all classes"
        sets = self.sets
        yield sets.shape[1] == n_classes and bool(sets.any(axis=1).all()), "sets of its classes"
        has_singletons = sets.shape[0] >= n_classes and bool(sets[:n_classes].diagonal().all())
        yield has_singletons, "a set of every class"


def coefficient_names(basis: Basis, specification: SDGMSpecification, axes: Axes) -> list[str]:
    """Names of the weights: class, component within the class, feature."""
    assert axes.classes is not None
    assert axes.columns is not None
    columns = axes.columns
    coordinates = list(columns.real_names)
    for code in columns.codes:
        coordinates += [f"{code.name}={level}" for level in code.levels]
    features = basis.named(coordinates)
    component_class = specification.component_class
    first = np.searchsorted(component_class, component_class)
    within = np.arange(component_class.size) - first
    return [
        f"{axes.classes[component_class[k]]} {within[k]}: {features[h]}"
        for k, h in zip(specification.component, specification.feature, strict=True)
    ]


def full_basis(
    specification: MixtureSpecification, units: Standardisation, rows: CompletedRows, kernel: Any
) -> Basis:
    """Features before pruning; exemplars of a kernel are the first completion of every row."""
    if kernel is None:
        return quadratic_basis(specification.n_features, specification.levels)
    return KernelBasis(kernel, standard_points(rows.points[rows.starts], units))


# From weighted rows to a fitted sparse discriminative mixture and its companion.


@stored
class EvidencePath:
    """Path of the search for the most probable precisions."""

    trace: SDGMTrace
    completion_error: float
    """Standard error of the evidence by the draws of missing cells."""


@dataclass(frozen=True)
class SDGMSolver:
    """Settings of the fit of a sparse discriminative mixture and of its predictions."""

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
    order, codes_order = _canonical_orders(rows, sets, columns=not callable(solver.kernel))
    specification = MixtureSpecification(rows.real.shape[1], levels, component_class)
    specification, rows = specification.reordered(order), rows.reordered(codes_order)
    canonical_sets = sets[codes_order.classes][:, order.classes]
    companion = _fit_companion(rows, specification.levels, solver)
    units = _point_units(companion, rows, shrink=solver.kernel is not None)
    rows = rows.take(informative(rows, canonical_sets))
    completed = labelled(companion, rows, canonical_sets)
    basis = full_basis(specification, units, completed, solver.kernel)
    codes = np.where(rows.labels < canonical_sets.shape[1], rows.labels, -1)
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
    positions = order.inverse.coordinates(specification.levels)
    basis = basis.take(features).reordered(positions)
    if solver.kernel is None:  # products are numbered by the columns that they are of
        features = numbers_of(
            cast(QuadraticBasis, basis), quadratic_basis(specification.n_features, levels)
        )
    fitted = FittedSDGM(
        SDGMModes(
            tuple(mode.reordered(order.inverse) for mode in modes.parameters), modes.probabilities
        ),
        basis,
        features,
        Standardisation(units.location[positions], units.scale[positions]),
        companion.reordered(order.inverse.of_one_class),
        sets,
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
    order = table.canonical_order(rows, len(sets))
    if not columns:
        order = Order(np.sort(order.features), np.sort(order.categories), order.classes)
    classes = np.lexsort(~sets[order.classes[::-1]])
    several = order.classes[order.classes >= classes.size]
    return replace(order, classes=classes), replace(
        order, classes=np.concatenate([classes, several])
    )


def _sparse(modes: SDGMModes) -> tuple[SDGMModes, Int[np.ndarray, " feature"]]:
    """Modes re-indexed to the features in use, and the sorted indices of these features."""
    used = np.concatenate([[0], *(mode.feature for mode in modes.parameters)]).astype(np.intp)
    features = np.unique(used)
    parameters = tuple(
        replace(mode, feature=np.searchsorted(features, mode.feature)) for mode in modes.parameters
    )
    return SDGMModes(parameters, modes.probabilities), features


def _fit_companion(
    rows: Observations, levels: tuple[int, ...], solver: SDGMSolver
) -> FittedMixture:
    """Mixture density of the columns, fitted by EM to the unlabelled rows."""
    n_components = min(solver.companion_components, rows.n_obs)
    specification = MixtureSpecification(rows.real.shape[1], levels, (0,) * n_components)
    unlabelled = replace(rows, labels=np.zeros_like(rows.labels))
    by_em = Solver(n_init=4, max_iter=200, tol=1e-4, seed=solver.seed)
    return fit_mixture_rows(unlabelled, specification, MixturePrior(), by_em)[0]


def _point_units(companion: FittedMixture, rows: Observations, *, shrink: bool) -> Standardisation:
    """Location and scale of all coordinates of a point: reals, then indicators of levels."""
    marginals = table.marginals(rows.codes, companion.specification.levels, rows.weights)
    shares = np.concatenate([np.zeros(0), *marginals])
    location = np.concatenate([companion.units.location, shares])
    scale = np.concatenate([companion.units.scale, np.sqrt(shares * (1 - shares))])
    scale = np.where(scale > 0, scale, 1.0)
    return Standardisation(location, scale * np.sqrt(location.size) if shrink else scale)
