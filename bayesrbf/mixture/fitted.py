"""A fitted mixture, and the steps from weighted rows to it, in memory and over blocks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.base.arrays import at_prevalence, class_log_joint, single_digits
from bayesrbf.base.blocks import Blocks
from bayesrbf.base.log_posterior import Predictor
from bayesrbf.base.priors import (
    Fit,
    MixtureHyperparameters,
    MixturePrior,
    Objective,
    PowerTransforms,
)
from bayesrbf.base.records import Requirements, by_class, scales, stored
from bayesrbf.base.rows import (
    MixtureParameters,
    MixtureSpecification,
    Observations,
    Order,
    Standardisation,
)
from bayesrbf.fit.model import Axes, Description, FittedModel, observed_rows, row_weights
from bayesrbf.mixture.em import EMSettings, InitialisedFit, initialise_fit
from bayesrbf.mixture.expectation import BlockExpectation, prepare
from bayesrbf.mixture.laws import laws_of, order_for
from bayesrbf.mixture.objective import HybridLogPosterior, climb_objective
from bayesrbf.mixture.points import MixturePoints, reordered
from bayesrbf.mixture.posterior import MixtureLogPosterior, MixtureOnRows
from bayesrbf.mixture.transforms import fit_power

if TYPE_CHECKING:
    import pymc as pm


# A fitted mixture, and the steps from weighted rows to it that every fit and fold shares.


LIKELIHOOD = Objective()

FARTHEST = 1e8
"""Standardised cells are clipped to this. Beyond it a square is rounded by more than one nat, and
the linear term, which separates the classes of distant rows, would be lost."""


@stored
class FittedMixture(FittedModel):
    """A fitted mixture; with one class, a density."""

    comparable = True

    specification: MixtureSpecification
    hyperparameters: MixtureHyperparameters
    """The resolved prior, in the user's units; its centre is the standardisation."""
    parameters: MixtureParameters
    """The fitted point, in standard units."""
    order: Order
    """The canonical order of columns and classes, in which it was fitted."""
    objective: Objective = LIKELIHOOD
    """Objective of the fit, which replaces the likelihood in its posterior."""
    transforms: PowerTransforms | None = None
    """Transforms of the real columns; prior and parameters refer to transformed columns."""

    @property
    def density(self) -> FittedMixture:
        """The mixture itself."""
        return self

    def at_prevalence(
        self, parameters: MixtureParameters, log_ratio: Float[np.ndarray, " label"]
    ) -> MixtureParameters:
        """Parameters with class probabilities ``pi_c exp(log_ratio_c)``, normalised."""
        log_probabilities = at_prevalence(np.log(parameters.class_probabilities), log_ratio)
        return replace(parameters, class_probabilities=np.exp(log_probabilities))

    @property
    def n_classes(self) -> int:
        """Number of classes; 1 for a density."""
        return self.specification.n_classes

    @property
    def units(self) -> Standardisation:
        """Location and scale of the real columns."""
        return self.hyperparameters.units

    @property
    def start(self) -> MixtureParameters:
        """The fitted point in the units of the mapped columns, from where another fit may start."""
        return self.parameters.in_units(self.units)

    @property
    def condensed(self) -> FittedMixture:
        """The mixture itself: it keeps nothing that predictions do not need."""
        return self

    @property
    def rounded(self) -> FittedMixture:
        """A copy whose precision factors, which are large, have the digits of single precision."""
        factors = single_digits(self.parameters.precisions_cholesky)
        return replace(self, parameters=replace(self.parameters, precisions_cholesky=factors))

    def reordered(self, order: Order) -> FittedMixture:
        """The mixture with columns and classes in another order."""
        return FittedMixture(
            self.specification.reordered(order),
            self.hyperparameters.reordered(order),
            reordered(self.parameters, order, self.specification),
            order.inverse.then(self.order),
            self.objective,
            None if self.transforms is None else self.transforms.reordered(order),
        )

    def mapped(self, rows: Observations) -> Observations:
        """Rows with their reals transformed, and the log Jacobian of the transform."""
        return rows if self.transforms is None else self.transforms.applied(rows)

    def standardise(self, rows: Observations) -> Observations:
        """Transformed rows in standard units, clipped to ``FARTHEST`` scales."""
        rows = self.mapped(rows)
        # Cells that overflow in standard units are infinite, and clipped.
        with np.errstate(over="ignore"):
            real = self.hyperparameters.units.forward(rows.real)
        return replace(rows, real=np.clip(real, -FARTHEST, FARTHEST))

    def in_users_units(
        self, standard: Float[np.ndarray, "*rows feature"]
    ) -> Float[np.ndarray, "*rows feature"]:
        """Cells in the user's units from standard units, by the inverse transform."""
        mapped = self.units.backward(standard)
        return (
            mapped
            if self.transforms is None
            else self.transforms.within_range(self.transforms.backward(mapped))
        )

    def component_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """``log pi_c + log w_k + log p(x_o | k)`` in standard units; labels are not used."""
        log_joint = np.empty((rows.n_obs, self.specification.n_components))
        for block, block_rows in rows.in_blocks():
            log_joint[block] = self._component_log_joint(block_rows)
        return log_joint

    def _component_log_joint(self, block: Observations) -> Float[np.ndarray, "obs component"]:
        """``log pi_c + log w_k + log p(x_o | k)`` of one block of rows; labels are not used."""
        prepared = prepare(self.standardise(block), self.specification)
        return prepared.component_log_joint(self.parameters)

    def responsibilities(self, rows: Observations) -> Float[np.ndarray, "obs component"]:
        """``p(k | x_o)`` of every component; labels are not used."""
        shares = np.empty((rows.n_obs, self.specification.n_components))
        for block, block_rows in rows.in_blocks():
            shares[block] = softmax(self._component_log_joint(block_rows), axis=1)
        return shares

    def class_log_joint(
        self, rows: Observations, temperature: float = 1.0
    ) -> Float[np.ndarray, "obs label"]:
        r"""``log pi_c + log p(x_o | c)`` in standard units; labels are not used.

        .. math:: p(x_o, c) = \pi_c \sum_{k : c(k) = c} w_k \, p(x_o | k)
        """
        slices = self.specification.class_slices
        log_joint = np.empty((rows.n_obs, len(slices)))
        for block, block_rows in rows.in_blocks():
            log_joint[block] = class_log_joint(self._component_log_joint(block_rows), slices)[0]
        return log_joint

    def log_unit(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Log density in the user's units less that in standard units."""
        return self.units.log_unit(self.mapped(rows))

    def log_density(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        r"""``log p(x_o)`` in the user's units.

        With r the observed reals that are at no point mass, and the transforms g,

        .. math:: p(x_o) = \sum_k \pi_{c(k)} w_k \, N(g(x_r); \mu_{k,r}, \Sigma_{g(k),rr})
            \prod_{j \in r} g_j'(x_j) \prod_{j \in o} \theta_{kj}[x_j],

        where the point mass of a cell is the level of a category.
        """
        log_density = np.empty(rows.n_obs)
        for block, block_rows in rows.in_blocks():
            in_standard_units = np.logaddexp.reduce(self._component_log_joint(block_rows), axis=1)
            log_density[block] = in_standard_units + self.log_unit(block_rows)
        return log_density

    def class_shares(self, rows: Observations, n_classes: int) -> Float[np.ndarray, " label"]:
        """Class shares of the training rows, to which the predicted probabilities refer.

        Under the likelihood, rows without a label count by their class probabilities in the last
        M-step. Under other objectives the shares are of the labelled rows alone, because these
        objectives distort the class probabilities.
        """
        labelled, unlabelled = super().class_shares(rows, n_classes), rows.labels < 0
        if self.objective.coefficients != LIKELIHOOD.coefficients or not unlabelled.any():
            return labelled
        extra = self.hyperparameters.class_concentration - 1
        smoothed = self.parameters.class_probabilities
        counts = smoothed * (rows.weights.sum() + extra * smoothed.size) - extra
        # Short of the fixed point, too, a class has at least the weight of its labelled rows.
        counts = np.maximum(counts, labelled * rows.weights[~unlabelled].sum())
        return counts / counts.sum()

    def log_posterior(self, rows: Observations) -> MixtureOnRows:
        """Log posterior of the mixture, or log Gibbs posterior of another objective."""
        standard, specification = self.standardise(rows), self.specification
        if self.objective.name == "likelihood":
            return MixtureLogPosterior(standard, specification, self.hyperparameters)
        return HybridLogPosterior(standard, specification, self.hyperparameters, self.objective)

    def point(self, log_posterior: Any) -> Float[np.ndarray, " coordinate"]:
        """Unconstrained coordinates of the fitted point."""
        return log_posterior.pack(self.start)

    def mixture_at(
        self, log_posterior: Any, theta: Float[np.ndarray, " coordinate"]
    ) -> MixtureParameters:
        """The mixture under a posterior draw, in standard units."""
        return log_posterior.unpack(theta).standardised(self.units)

    def predictor(
        self, log_posterior: Any, rows: Observations, temperature: float = 1.0
    ) -> Predictor:
        """Predictor of new rows at any coordinates: class probabilities and density."""
        return log_posterior.predictor(self.standardise(rows))

    def declare(
        self,
        rows: Observations,
        axes: Axes,
        latent: Literal["marginal", "explicit"] = "marginal",
    ) -> pm.Model:
        """PyMC model of the rows with free parameters: the prior, and the density of the rows.

        Without classes in ``axes`` the density of a row is ``p(x_o)``. With classes it is
        ``p(x_o, y)``, and an objective other than the likelihood replaces that density. Missing
        cells are summed out. ``latent="marginal"`` sums the component of every row out, too;
        ``latent="explicit"`` makes the component a node.
        """
        from bayesrbf.models.mixture import declare_hybrid_mixture, declare_mixture

        options = axes.of_graph | {"latent": latent, "column_transforms": self.transforms}
        declare = declare_mixture
        if axes.classes is not None:
            declare = partial(declare_hybrid_mixture, objective=self.objective)
        return declare(rows, self.specification, self.hyperparameters, **options)

    def description(self, rows: Observations, axes: Axes) -> Description:
        """Names along every dim of the graph, and the training rows with weights and labels."""
        coords = mixture_coords(self.specification, axes)
        constant = row_weights(rows)
        if axes.classes is not None:
            of_component = axes.classes[list(self.specification.component_class)]
            constant |= {names.COMPONENT_LABEL: ((names.COMPONENT,), of_component)}
        return Description(coords, observed_rows(rows), constant, self._scored(axes))

    def _scored(self, axes: Axes) -> str:
        """Name of the variable that the log likelihood is of, such as the labels."""
        if axes.classes is None:
            return names.OBSERVED
        alpha, beta, hinge = self.objective.coefficients
        named = {(1.0, 0.0, 0.0): names.JOINT, (1.0, -1.0, 0.0): names.OBSERVED_LABEL}
        return named.get((alpha, beta, hinge), names.OBJECTIVE)

    def __laws__(self) -> Requirements:
        structure, point, prior = self.specification, self.parameters, self.hyperparameters
        k, d, levels = structure.n_components, structure.n_features, structure.levels
        yield point.class_probabilities.size == structure.n_classes, "a probability of every class"
        yield point.means.shape == (k, d), "a mean of every component and column"
        yield point.weights.size == k, "a weight of every component"
        yield by_class(point.weights, structure.component_class), "weights that sum to one by class"
        reals, factors = laws_of(structure).reals, point.precisions_cholesky
        shape = reals.n_groups, *reals.matrices.shape
        yield factors.shape == shape, "a factor of every covariance"
        yield scales(reals.matrices.diagonal(factors)), "factors of positive diagonal"
        shapes = [array.shape for array in point.category_probabilities]
        yield shapes == [(k, n) for n in levels], "probabilities of all levels"
        yield all((array > 0).all() for array in point.category_probabilities), "levels that can be"
        yield prior.location.size == d, "a centre of every column"
        sizes = [array.size for array in prior.category_concentrations]
        yield sizes == list(levels), "concentrations of all levels"
        order = self.order.features.size, self.order.categories.size, self.order.classes.size
        ordered = order == (d, len(levels), structure.n_classes)
        yield ordered, "an order of its columns and classes"
        yield (
            self.transforms is None or self.transforms.scale.size == d,
            "a transform of every column",
        )


def mixture_coords(specification: MixtureSpecification, axes: Axes) -> dict[str, Any]:
    """Names along every dim of a mixture's posterior, as the declared graph has them."""
    columns = axes.columns
    assert columns is not None  # a mixture is one of columns
    features = columns.real_names
    entries = range(specification.n_features)
    coords: dict[str, Any] = {
        names.OBS: axes.obs,
        names.COLUMN: [names.LABEL, *features, *columns.categorical_names],
        names.COMPONENT: np.arange(specification.n_components),
        names.FEATURE: list(features),
        names.FEATURE_BIS: list(features),
        names.PRECISION_ENTRY: [f"{features[i]},{features[j]}" for i in entries for j in range(i)],
    }
    for index, code in enumerate(columns.codes):
        coords[names.category_level(index)] = [str(level) for level in code.levels]
    if axes.classes is not None:
        coords[names.CLASS_LABEL] = axes.classes
    return coords


# From weighted rows to a fitted mixture: in memory, and over blocks of rows.


ColumnTransforms = Literal["power"] | None
"""Kind of the transforms in front of the real columns."""

STEPS = {"blend": 60}
"""Iterations by objective: a blend that is followed further overfits."""
DEFAULT_STEPS = 200  # Of all other objectives.
ROWS_PER_COMPONENT = 8
"""Rows of a class that a component needs: a class with fewer gets fewer components."""


@stored
class Solver:
    """Settings of a mixture fit: restarts, iterations, tolerance and objective."""

    n_init: int
    max_iter: int
    tol: float
    """Smallest rise of the log posterior per unit of row weight that counts."""
    seed: int
    """Seed of the restarts."""
    objective: Objective = LIKELIHOOD
    """Objective; any but the likelihood starts at the fit by EM."""
    steps: int | None = None
    """Most iterations that the objective is followed; None: ``STEPS``."""

    @property
    def em(self) -> EMSettings:
        """Settings of the fit by EM."""
        return EMSettings(np.random.default_rng(self.seed), self.n_init, self.max_iter, self.tol)

    @property
    def most_steps(self) -> int:
        """Most iterations that the objective is followed."""
        return STEPS.get(self.objective.name, DEFAULT_STEPS) if self.steps is None else self.steps


def component_class(rows: Observations, n_classes: int, most: int) -> tuple[int, ...]:
    """Class of every component; small classes have fewer.

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
    column_transforms: ColumnTransforms = None,
) -> tuple[FittedMixture, Fit]:
    """Mixture fitted to distinct weighted rows in the user's units, and the winning restart.

    Columns are transformed if ``column_transforms`` says so, then standardised. Rows that the
    caller does not hold are freed early, so that a large table is in memory once.

    A start, in the units of the transformed columns, replaces restarts. The fit uses the canonical
    order of columns and classes, so it does not depend on the user's order.
    """
    order = order_for(table.canonical_order(rows, specification.n_classes), specification)
    canonical = specification.reordered(order)
    rows = rows.reordered(order)
    units = table.standardisation(rows.real, rows.weights)
    transforms = None
    if column_transforms == "power" and rows.real.shape[1]:
        transforms = fit_power(units, rows.real, rows.weights)
        rows = transforms.applied(rows)
        units = table.standardisation(rows.real, rows.weights)
    marginals = table.marginals(rows.codes, canonical.levels, rows.weights)
    hyperparameters = prior.resolve(canonical, units, marginals)
    standard_prior = hyperparameters.standardised()
    rows = replace(rows, real=units.forward(rows.real))
    begin = None
    if start is not None:
        begin = reordered(start, order, specification).standardised(units)
    by_em = solver.objective.name == "likelihood"
    if by_em or begin is None:
        initialised = initialise_fit(rows, canonical, standard_prior, solver.em, begin)
        if by_em:
            del rows  # EM has its own copy of them
        fit = initialised.climb(solver.em)
        begin = fit.parameters
    if not by_em:
        fit = climb_objective(
            HybridLogPosterior(rows, canonical, standard_prior, solver.objective),
            MixturePoints(canonical, standard_prior),
            begin,
            max_iter=solver.most_steps,
            tolerance=solver.tol * float(rows.weights.sum()),
        )
    unchanged = order.inverse.then(order)
    mixture = FittedMixture(
        canonical, hyperparameters, fit.parameters, unchanged, solver.objective, transforms
    )
    mixture = mixture.reordered(order.inverse)
    return mixture, replace(fit, parameters=mixture.parameters)


def fit_mixture_blocks(
    rows: Blocks[Observations],
    mixture: FittedMixture,
    sample: Observations,
    *,
    prior: MixturePrior,
    solver: Solver,
) -> tuple[FittedMixture, Fit, int]:
    """Mixture refitted to weighted rows in the user's units by EM, its fit, and passes over rows.

    Structure, transforms and start are those of ``mixture``; units and prior are by all rows.
    ``sample`` has some of the rows, reweighted to the total weight of all.
    """
    rows = rows.map(mixture.mapped)
    form = mixture.specification
    count = partial(table.RowSums.of, n_levels=form.levels, n_classes=form.n_classes)
    sums = rows.map(count).reduce(table.RowSums.joined)
    units = sums.units
    hyperparameters = prior.resolve(form, units, sums.marginals)
    standard = rows.map(partial(_standardised, units=units))
    expectation = BlockExpectation(standard, form)
    initialised = InitialisedFit(
        specification=form,
        hyperparameters=hyperparameters.standardised(),
        expectation=expectation,
        starts=[mixture.start.standardised(units)],
        weight=float(sample.weights.sum()),
    )
    fit = initialised.climb(solver.em)
    refitted = replace(mixture, hyperparameters=hyperparameters, parameters=fit.parameters)
    return refitted, fit, expectation.passes + 2  # to prepare the rows, and for their units


def _standardised(rows: Observations, units: Standardisation) -> Observations:
    """Rows in standard units."""
    return replace(rows, real=units.forward(rows.real))
