"""The Gibbs sampler of a mixture: sweeps of latents and parameters, jumps between modes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

from bayesrbf.base.arrays import draw_categories, log_sum_exp
from bayesrbf.base.log_posterior import MarkovKernel
from bayesrbf.base.priors import MixtureHyperparameters
from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Observations, in_blocks
from bayesrbf.mixture.em import problem_of, starting_point
from bayesrbf.mixture.expectation import Expectation, prepare
from bayesrbf.mixture.gaussian import LOG_2PI, FullComponents
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.points import DeclaredPrior, MixturePoints
from bayesrbf.mixture.real_columns import ConjugatePrecisions
from bayesrbf.mixture.statistics import sum_by_class, sum_by_group

# Components and missing cells of a table, drawn given the parameters.
#
# Components are drawn with the missing cells summed out, :math:`p(k \mid x_o)`, among those of
# the row's class where its label is known.


def of_class(
    parameters: MixtureParameters, components: slice, groups: Int[np.ndarray, " group"]
) -> MixtureParameters:
    """Components and covariance groups of one class, as a mixture of one class."""
    return replace(parameters.taken(components, groups), class_probabilities=np.ones(1))


@dataclass(frozen=True)
class _Open:
    """Rows with the same two or more admissible components.

    ``groups`` are the covariances of those components; ``expectation`` has the rows prepared for a
    mixture of those components alone.
    """

    rows: Int[np.ndarray, " row"]
    components: slice
    groups: Int[np.ndarray, " group"]
    expectation: Expectation

    def draw(
        self, parameters: MixtureParameters, rng: np.random.Generator
    ) -> Int[np.ndarray, " row"]:
        """Draw the component of every row from ``p(k | x_o)``."""
        components = self.components
        point = parameters
        if components.stop - components.start < parameters.weights.size:
            point = of_class(parameters, components, self.groups)
        responsibilities = log_sum_exp(self.expectation.component_log_joint(point), axis=1)[1]
        return components.start + draw_categories(responsibilities, rng)


class ComponentDraws:
    """Draws of the component of every row of one table, in standard units.

    Row weights are not used. ``certain`` has the component of every row where the labels leave each
    row only one, else it is None.
    """

    def __init__(self, observations: Observations, specification: MixtureSpecification) -> None:
        every = slice(0, specification.n_components)
        self._certain = np.zeros(observations.n_obs, dtype=np.intp)
        self._open: list[_Open] = []
        for label, components in [*enumerate(specification.class_slices), (-1, every)]:
            rows = np.flatnonzero(observations.labels == label)
            self._certain[rows] = components.start
            size = components.stop - components.start
            if size == 1 or not rows.size:
                continue
            classes = specification.component_class if components == every else (0,) * size
            # Where the label is known, components of other classes have probability 0: they are
            # left out.
            form = replace(specification, component_class=classes)
            groups = np.unique(specification.covariance_group[components])
            without_labels = observations.take(rows).unlabelled()
            self._open.append(_Open(rows, components, groups, prepare(without_labels, form)))
        self.certain = None if self._open else self._certain

    def draw(
        self, parameters: MixtureParameters, rng: np.random.Generator
    ) -> Int[np.ndarray, " obs"]:
        """Draw the component of every row given the parameters in standard units."""
        components = self._certain.copy()
        for block in self._open:
            components[block.rows] = block.draw(parameters, rng)
        return components


class CellDraws:
    """Draws of the missing reals of one table in standard units.

    ``are_known`` says that there is no cell to draw.
    """

    def __init__(
        self, real: Float[np.ndarray, "obs feature"], specification: MixtureSpecification
    ) -> None:
        self._real = real
        self._group = specification.covariance_group
        self._blocks: list[tuple[np.ndarray, np.ndarray]] = []
        n_missing = laws_of(specification).reals.holes(~np.isnan(real))
        for m in np.unique(n_missing[n_missing > 0]):
            # Rows with as many holes have systems of one size, which are solved together.
            same = np.flatnonzero(n_missing == m)
            for block in in_blocks(same.size, real.shape[1] ** 2):
                rows = same[block]
                missing = np.nonzero(np.isnan(real[rows]))[1].reshape(rows.size, int(m))
                self._blocks.append((rows, missing))
        self.are_known = not self._blocks

    def draw(
        self,
        parameters: MixtureParameters,
        components: Int[np.ndarray, " obs"],
        rng: np.random.Generator,
    ) -> Float[np.ndarray, "obs feature"]:
        r"""Complete rows: the missing cells drawn given every row's component.

        With y a draw from the whole component they are

        .. math:: x_m = y_m - P_{mm}^{-1} P_{mo} (x_o - y_o).

        Under diagonal and spherical covariances the rows come back as they are: the posterior of
        the parameters needs no missing cell there.
        """
        if not self._blocks:
            return self._real
        factors = parameters.precisions_cholesky[self._group]
        normal = FullComponents(parameters.means, factors)
        real = self._real.copy()
        for rows, missing in self._blocks:
            component = components[rows]
            noise = rng.standard_normal((rows.size, real.shape[1], 1))
            # A draw of the whole row is corrected to agree with the observed cells. Only the block
            # of the missing cells is solved; no conditional covariance is factored.
            drawn = normal.means[component] + (normal.back[component] @ noise)[:, :, 0]
            lane = np.arange(rows.size)[:, None]
            deviation = real[rows] - drawn
            # Missing cells do not enter P_mo (x_o - y_o).
            deviation[lane, missing] = 0.0
            precisions = normal.precisions[component]
            pull = (precisions @ deviation[:, :, None])[lane, missing]
            inner = precisions[lane[:, :, None], missing[:, :, None], missing[:, None, :]]
            step = np.linalg.solve(inner, pull)[:, :, 0]
            real[rows[:, None], missing] = drawn[lane, missing] - step
        return real


# The declared prior is conjugate: exact draws once rows have components.
#
# Diagonal and spherical covariances have the diagonal alone, and need no cell that is missing;
# simplices are Dirichlet.


@dataclass(frozen=True)
class Assigned:
    """Sufficient statistics of rows with known components."""

    counts: Float[np.ndarray, " component"]
    # Real cells of every component; all its rows under full covariances.
    cells: Float[np.ndarray, "component feature"]
    # Means of those cells; 0 where there is none.
    centres: Float[np.ndarray, "component feature"]
    # Sums of squares and products about the centres; the diagonal alone for diagonal and spherical
    # covariances.
    scatter: Float[np.ndarray, "component *feature"]
    # Counts of the observed levels, one array per categorical column.
    categories: tuple[Float[np.ndarray, "component _"], ...]


def assigned(
    real: Float[np.ndarray, "row feature"],
    codes: Int[np.ndarray, "row categorical"],
    components: Int[np.ndarray, " row"],
    specification: MixtureSpecification,
) -> Assigned:
    """Sufficient statistics of rows with known components, complete under full covariances."""
    member = components == np.arange(specification.n_components)[:, None]
    ones = member.astype(float)
    counts = ones.sum(axis=1)
    if specification.independent:
        known = ~np.isnan(real)
        cells = ones @ known
        # A component without a cell has a centre of 0, which the posterior multiplies by 0 cells.
        centres = (ones @ np.where(known, real, 0.0)) / np.maximum(cells, 1)
        scatter = ones @ np.where(known, real - centres[components], 0.0) ** 2
    else:
        cells = np.repeat(counts[:, None], real.shape[1], axis=1)
        centres = (ones @ real) / np.maximum(cells, 1)
        deviations = real - centres[components]
        by_component = [deviations[rows] for rows in member]
        scatter = np.stack([block.T @ block for block in by_component])
    levels = laws_of(specification).levels.counts(codes, components)
    return Assigned(counts, cells, centres, scatter, levels)


@dataclass(frozen=True)
class Conjugate:
    """Conjugate density of the parameters: the prior, or the posterior of assigned rows."""

    specification: MixtureSpecification
    precisions: ConjugatePrecisions
    # Dirichlet parameters: of the class probabilities, of the weights of each class one after the
    # other, and of every categorical column.
    classes: Float[np.ndarray, " label"]
    weights: Float[np.ndarray, " component"]
    levels: tuple[Float[np.ndarray, "component _"], ...]
    centres: Float[np.ndarray, "component feature"]
    # Prior sample size of the centres: kappa_0 + n.
    sample_size: Float[np.ndarray, "component feature"]

    def draw(self, rng: np.random.Generator) -> MixtureParameters:
        """An exact, independent draw of all parameters, in the units of the rows."""
        factors = self.precisions.draw(rng)
        return MixtureParameters(
            class_probabilities=_dirichlet(self.classes, rng),
            weights=self._draw_weights(rng),
            means=self._draw_means(factors, rng),
            precisions_cholesky=factors,
            category_probabilities=tuple(_dirichlet(level, rng) for level in self.levels),
        )

    def _draw_weights(self, rng: np.random.Generator) -> np.ndarray:
        """Draw ``p(k | class)`` of every component."""
        specification = self.specification
        if specification.n_components == specification.n_classes:
            return np.ones(specification.n_components)
        # Gamma variables divided by their sum within a class are Dirichlet.
        gammas = _gammas(self.weights, rng)
        sums = sum_by_class(gammas, specification)
        return gammas / sums[np.asarray(specification.component_class)]

    def _draw_means(self, factors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw the means given the precision factors."""
        law = laws_of(self.specification).reals
        noise = rng.standard_normal(self.centres.shape) / np.sqrt(self.sample_size)
        steps = law.matrices.spread(noise[:, None, :], law.by_component(factors))
        return self.centres + steps[:, 0]


def posterior(
    rows: Assigned, hyperparameters: MixtureHyperparameters, specification: MixtureSpecification
) -> Conjugate:
    r"""Conjugate posterior of the parameters given assigned rows; the prior where there are none.

    With n the rows of a component, :math:`\bar x` their mean and S the scatter about it,

    .. math::
       \mu \mid P \sim N\Big(\frac{n \bar x + \kappa_0 m_0}{n + \kappa_0},\
       ((n + \kappa_0) P)^{-1}\Big), \quad
       S' = S + \frac{n\kappa_0}{n + \kappa_0}(\bar x - m_0)(\bar x - m_0)'.

    The shape of the covariances derives the density of the precision factors from the sum of
    :math:`S'` over the components under one covariance.
    """
    laws = laws_of(specification)
    law, matrices = laws.reals, laws.reals.matrices
    kappa, location = hyperparameters.mean_precision, hyperparameters.location
    sample_size, scales = rows.cells + kappa, law.base_scales(hyperparameters)
    pull = matrices.outer(rows.centres - location, rows.cells * kappa / sample_size)
    # T = I + L0' S L0
    inner = matrices.scaled(sum_by_group(rows.scatter + pull, specification), 1 / scales)
    matrices.add_to_diagonal(inner, 1.0)
    cells = sum_by_group(rows.cells, specification) + hyperparameters.degrees_of_freedom
    precisions = law.conjugate(scales, cells, inner)
    return Conjugate(
        specification=specification,
        precisions=precisions,
        classes=sum_by_class(rows.counts, specification) + hyperparameters.class_concentration,
        weights=rows.counts + hyperparameters.weight_concentration,
        levels=laws.levels.posterior(rows.categories, hyperparameters),
        centres=(rows.cells * rows.centres + kappa * location) / sample_size,
        sample_size=sample_size,
    )


def _dirichlet(concentration: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Dirichlet draws; the last axis sums to 1."""
    draws = _gammas(concentration, rng)
    return draws / draws.sum(axis=-1, keepdims=True)


def _gammas(shapes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw gamma variables, positive even where a draw underflows."""
    return np.maximum(rng.standard_gamma(shapes), np.finfo(float).tiny)


# Reference points of jumps between modes, and the conjugate densities around them.


_SMOOTHING: Final = 2
"""EM steps from a draw to its reference point, which must stay near the draw.

More steps would lead all points to the same few modes, and chains also stay between modes.
"""

_STARTS: Final = 8  # Starts of EM in search of modes that no chain has seen.

_STEPS: Final = 20  # EM steps of each start.

_TRUST: Final = 0.8
"""Fraction of the expected counts given to a reference. Below 1, so that a proposal is wider than
the posterior."""


@dataclass(frozen=True)
class Reference:
    """A point near a mode, in standard units, with effective counts of a conjugate density."""

    parameters: MixtureParameters
    counts: Float[np.ndarray, " component"]  # Rows of every component.
    # Rows of every level of every categorical column.
    categories: tuple[Float[np.ndarray, "component _"], ...]

    @classmethod
    def near(
        cls,
        point: MixtureParameters,
        share: float,
        expectation: Expectation,
        specification: MixtureSpecification,
        hyperparameters: MixtureHyperparameters,
    ) -> Reference:
        """The point after a few EM steps, with ``share`` of the expected counts there."""
        step = problem_of(expectation, specification, hyperparameters).step
        for _ in range(_SMOOTHING):
            point = step(point).following
        statistics = expectation.statistics(point)
        categories = tuple(share * counts for counts in statistics.category_counts)
        return cls(point, share * statistics.counts, categories)

    def of_class(self, components: slice, groups: np.ndarray) -> Reference:
        """The reference restricted to the components and covariance groups of one class."""
        return Reference(
            of_class(self.parameters, components, groups),
            self.counts[components],
            tuple(counts[components] for counts in self.categories),
        )

    def with_empty(
        self, specification: MixtureSpecification, hyperparameters: MixtureHyperparameters
    ) -> Reference:
        """The reference of one component, padded with components without rows, at the prior.

        ``specification`` has the components of the class as a mixture of one class.
        """
        empty = _at_prior(hyperparameters, specification)
        grouped = specification.group_sizes.size > 1
        factors = self.parameters.precisions_cholesky
        parameters = replace(
            empty,
            means=_with_first(self.parameters.means, empty.means),
            precisions_cholesky=_with_first(factors, empty.precisions_cholesky)
            if grouped
            else factors,
        )
        counts = _with_first(self.counts, np.zeros(specification.n_components))
        categories = tuple(
            _with_first(levels, np.zeros((counts.size, levels.shape[1])))
            for levels in self.categories
        )
        return Reference(parameters, counts, categories)

    def density(
        self, specification: MixtureSpecification, hyperparameters: MixtureHyperparameters
    ) -> Conjugate:
        """Conjugate density with its mode at the point and the prior sample size of the counts."""
        point, counts = self.parameters, self.counts
        laws = laws_of(specification)
        law = laws.reals
        scales = law.base_scales(hyperparameters)
        cells = np.repeat(counts[:, None], scales.shape[1], axis=1)
        total = sum_by_group(cells, specification)
        freedom = hyperparameters.degrees_of_freedom
        sample_size = total + freedom + specification.group_sizes[:, None]
        # T at the mode, where the covariance is T / strength, in units of the prior.
        covariances = law.matrices.covariances(point.precisions_cholesky)
        inner = law.matrices.scaled(covariances, np.sqrt(sample_size) / scales)
        return Conjugate(
            specification=specification,
            precisions=law.conjugate(scales, total + freedom, inner),
            classes=np.ones(1),
            weights=counts + hyperparameters.weight_concentration,
            levels=laws.levels.posterior(self.categories, hyperparameters),
            centres=point.means,
            sample_size=cells + hyperparameters.mean_precision,
        )


def known_share(observations: Observations) -> float:
    """Fraction of the expected counts given to a reference: ``_TRUST`` times observed cells."""
    holes = np.isnan(observations.real).sum() + (observations.codes < 0).sum()
    cells = observations.real.size + observations.codes.size
    return _TRUST * (1.0 - float(holes) / max(1, cells))


def searched(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
) -> list[MixtureParameters]:
    """Points after ``_STEPS`` EM steps from random starts with a fixed seed, in standard units."""
    rng = np.random.default_rng(0)
    step = problem_of(prepare(observations, specification), specification, hyperparameters).step
    found = []
    for _ in range(_STARTS):
        point = starting_point(observations, specification, hyperparameters, rng)
        for _ in range(_STEPS):
            point = step(point).following
        found.append(point)
    return found


def fewest_components(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    share: float,
) -> Reference:
    """Reference with one component a class, fitted by EM, with ``share`` of its expected counts."""
    single = replace(specification, component_class=tuple(range(specification.n_classes)))
    expectation = prepare(observations, single)
    step = problem_of(expectation, single, hyperparameters).step
    point = _at_prior(hyperparameters, single)
    for _ in range(_STEPS):
        point = step(point).following
    return Reference.near(point, share, expectation, single, hyperparameters)


def _with_first(first: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Replace the first entries of an array."""
    return np.concatenate([first, rest[1:]])


def _at_prior(
    hyperparameters: MixtureHyperparameters, specification: MixtureSpecification
) -> MixtureParameters:
    """Prior means, scales and mean level probabilities; classes are even, all weights 1.

    With one component a class it is a start of EM.
    """
    n_classes, k = specification.n_classes, specification.n_components
    scales = np.tile(1 / hyperparameters.scale, (specification.group_sizes.size, 1))
    return MixtureParameters(
        class_probabilities=np.full(n_classes, 1 / n_classes),
        weights=np.ones(k),
        means=np.tile(hyperparameters.location, (k, 1)),
        precisions_cholesky=laws_of(specification).reals.matrices.of_diagonal(scales),
        category_probabilities=tuple(
            np.tile(levels / levels.sum(), (k, 1))
            for levels in hyperparameters.category_concentrations
        ),
    )


# Jumps between modes: all components of a class proposed at once, the rows' latents summed out.
#
# Chains can stay for thousands of sweeps in one of several ways to spread a class over its
# components: ten odd rows have a component of their own, or none. A jump proposes the whole
# class from a :class:`ModeProposal`, whose reference points
# were seen while the chains were tuned, and accepts by Metropolis and Hastings.
# What is proposed does not depend on where the chain is, so one accepted jump forgets the mode.


MAX_COMPONENTS = 4
"""Maximum number of components of a class for jumps, whose density sums over all 24 orders."""


class ModeProposal:
    r"""Independence proposal for the components of one class: a mixture over posterior modes.

    At each of M reference points the posterior is approximated by the conjugate density of a
    fraction of the expected statistics: rows with missing cells or uncertain components carry less
    information. The proposal is the mixture of the M densities, symmetric in the components:

    .. math::
       q(\theta) = \frac{1}{K!}
           \sum_{m} w_m \sum_{\pi} q_m(\theta_{\pi(1)}, \dots, \theta_{\pi(K)}).

    Draws and densities are exact, as Metropolis-Hastings requires. ``shares`` are the weights w,
    which sum to one.
    """

    def __init__(
        self,
        references: Sequence[Conjugate],
        shares: Float[np.ndarray, " reference"],
    ) -> None:
        self._references = references
        self._shares = shares
        self._specification = references[0].specification
        self._matrices = laws_of(self._specification).reals.matrices
        densities = [reference.precisions for reference in references]
        self._precisions = type(densities[0]).stacked(densities)
        self._orders = np.array(
            list(itertools.permutations(range(self._specification.n_components)))
        )
        self._centres = np.stack([reference.centres for reference in references])
        self._sample_sizes = np.stack([reference.sample_size for reference in references])
        self._weights = np.stack([reference.weights for reference in references])
        columns = zip(*(reference.levels for reference in references), strict=True)
        self._levels = [np.stack(column) for column in columns]

    def draw(self, rng: np.random.Generator) -> MixtureParameters:
        """Draw the components of the class, in random order."""
        chosen = int(draw_categories(self._shares[None], rng)[0])
        order = self._orders[rng.integers(len(self._orders))]
        point = self._references[chosen].draw(rng)
        grouped = len(point.precisions_cholesky) == len(order)
        return point.taken(order, order if grouped else slice(None))

    def log_densities(self, *points: MixtureParameters) -> list[float]:
        """Log density of the proposal at each point of the class, in nats.

        It is a density in the constrained variables of the graph.
        """
        pairs = self._dirichlets(points)
        common = gammaln(self._weights.sum(axis=1)) - gammaln(self._weights).sum(axis=1)
        common = (common + np.log(self._shares))[:, None]
        if self._specification.n_features:
            pairs = pairs + self._means(points)
            precision_factors = np.concatenate([point.precisions_cholesky for point in points])
            factors = self._precisions.log_densities(precision_factors)
            if factors.shape == pairs.shape:
                pairs = pairs + factors
            else:  # one covariance, whatever the order
                common = common + factors[:, :, 0]
        k = pairs.shape[2]
        by_point = pairs.reshape(len(pairs), len(points), k, k)
        # Every order is a way to name the components: component i as reference component order[i].
        by_order = by_point[:, :, np.arange(k), self._orders].sum(axis=-1) + common[:, :, None]
        flat = np.moveaxis(by_order, 1, 0).reshape(len(points), -1)
        return (log_sum_exp(flat, axis=1)[0] - np.log(len(self._orders))).tolist()

    def _dirichlets(
        self, points: Sequence[MixtureParameters]
    ) -> Float[np.ndarray, "reference point component"]:
        """Log densities of weights and levels: each component under each reference component."""
        weights = np.concatenate([p.weights for p in points])
        total = (self._weights - 1)[:, None, :] * np.log(weights)[:, None]
        for column, levels in enumerate(self._levels):
            logs = np.log(np.concatenate([p.category_probabilities[column] for p in points]))
            total = total + np.einsum("mbl,al->mab", levels - 1, logs)
            total += (gammaln(levels.sum(axis=2)) - gammaln(levels).sum(axis=2))[:, None, :]
        return total

    def _means(
        self, points: Sequence[MixtureParameters]
    ) -> Float[np.ndarray, "reference point component"]:
        """Log densities of the means given the factors, under each reference component."""
        group = self._specification.covariance_group
        factors = np.concatenate([point.precisions_cholesky[group] for point in points])
        means = np.concatenate([point.means for point in points])
        pull = means[:, None, :] - self._centres[:, None, :, :]
        whitened, diagonals = self._matrices.whiten(pull, factors), self._matrices.diagonal(factors)
        square = np.einsum("mabi,mbi->mab", whitened**2, self._sample_sizes)
        constant = 0.5 * (np.log(self._sample_sizes) - LOG_2PI).sum(axis=2)
        return constant[:, None, :] - 0.5 * square + np.log(diagonals).sum(axis=1)[:, None]


MAX_REFERENCES: Final = 128
"""Most draws that are turned into reference points: each costs two EM steps."""

_BATCHES: Final = 16  # Batches of successive draws for the variance of a batch mean.


def can_jump(specification: MixtureSpecification) -> bool:
    """Whether some class has 2 to ``MAX_COMPONENTS`` components and covariances of its own."""
    return any(_jumps(specification, components) for components in specification.class_slices)


def _jumps(specification: MixtureSpecification, components: slice) -> bool:
    """Whether the components of one class can be proposed at once."""
    shared = specification.shared_covariance and specification.n_classes > 1
    return not shared and 1 < components.stop - components.start <= MAX_COMPONENTS


def slowness_of(
    weights: Float[np.ndarray, "draw component"], specification: MixtureSpecification
) -> Float[np.ndarray, " label"]:
    r"""Autocorrelation time of each class, in draws per independent draw.

    For the largest weight w of the class, by batch means,
    :math:`b \operatorname{Var}(\bar w_b) / \operatorname{Var}(w)` for batches of b successive
    draws; at least 1, and 1 for a class of one component.
    """
    largest = np.stack([weights[:, p].max(axis=1) for p in specification.class_slices], axis=1)
    size = max(1, len(largest) // _BATCHES)
    batches = largest[: len(largest) // size * size].reshape(-1, size, largest.shape[1])
    # The weight of the only component of a class is 1 in every draw.
    spread = np.maximum(largest.var(axis=0), np.finfo(float).tiny)
    return np.maximum(1.0, size * batches.mean(axis=1).var(axis=0) / spread)


class ModeJumps:
    """Independence Metropolis proposals of the components of one class, in standard units.

    ``points`` are draws and ends of EM. A class is proposed in proportion to its autocorrelation
    time ``slowness`` (:func:`slowness_of`).
    """

    def __init__(
        self,
        observations: Observations,
        specification: MixtureSpecification,
        hyperparameters: MixtureHyperparameters,
        points: Sequence[MixtureParameters],
        slowness: Float[np.ndarray, " label"],
    ) -> None:
        self._specification = specification
        self._hyperparameters = hyperparameters
        self._prior = DeclaredPrior(hyperparameters, specification)
        self._expectation = prepare(observations, specification)
        share = known_share(observations)
        found = [
            Reference.near(point, share, self._expectation, specification, hyperparameters)
            for point in points
        ]
        fewest = fewest_components(observations, specification, hyperparameters, share)
        self._proposals = [
            (components, self._proposal(components, label, found, fewest))
            for label, components in enumerate(specification.class_slices)
            if _jumps(specification, components)
        ]
        offers = slowness[[_jumps(specification, c) for c in specification.class_slices]]
        self._until = np.cumsum(offers / offers.sum())

    def jump(self, parameters: MixtureParameters, rng: np.random.Generator) -> MixtureParameters:
        r"""Metropolis-Hastings update of one class; the same point if the proposal is rejected.

        The proposal :math:`\phi'`, drawn from q, is accepted with probability

        .. math:: \min\{1,\ p(\phi' \mid x, y)\, q(\phi) / (p(\phi \mid x, y)\, q(\phi'))\}.
        """
        offered = np.searchsorted(self._until[:-1], rng.random(), side="right")
        components, proposal = self._proposals[int(offered)]
        groups = np.unique(self._specification.covariance_group[components])
        old = of_class(parameters, components, groups)
        new = proposal.draw(rng)
        candidate = _with_class(parameters, new, components, groups)
        before, after = proposal.log_densities(old, new)
        rise = self._log_posterior(candidate) - self._log_posterior(parameters)
        return candidate if np.log(rng.random()) < rise + before - after else parameters

    def _log_posterior(self, parameters: MixtureParameters) -> float:
        """Log posterior density, without Jacobian, up to a constant."""
        prior = self._prior.log_density(parameters)
        return self._expectation.statistics(parameters).log_likelihood + prior

    def _proposal(
        self, components: slice, label: int, found: list[Reference], fewest: Reference
    ) -> ModeProposal:
        """Mixture proposal of one class: half for the references, half for a single component."""
        size, hyper = components.stop - components.start, self._hyperparameters
        form = replace(self._specification, component_class=(0,) * size)
        groups = np.unique(self._specification.covariance_group[components])
        densities = [
            reference.of_class(components, groups).density(form, hyper) for reference in found
        ]
        singleton = fewest.of_class(slice(label, label + 1), np.array([label]))
        densities.append(singleton.with_empty(form, hyper).density(form, hyper))
        # Half of the weight for what the draws may not have seen: a class of one component.
        weights = np.array([*np.full(len(found), 0.5 / max(1, len(found))), 0.5])
        return ModeProposal(densities, weights / weights.sum())


def _with_class(
    parameters: MixtureParameters, new: MixtureParameters, components: slice, groups: np.ndarray
) -> MixtureParameters:
    """The mixture with the components of one class, and their groups, replaced by ``new``."""
    return replace(
        parameters,
        weights=_put(parameters.weights, components, new.weights),
        means=_put(parameters.means, components, new.means),
        precisions_cholesky=_put(parameters.precisions_cholesky, groups, new.precisions_cholesky),
        category_probabilities=tuple(
            _put(values, components, replacement)
            for values, replacement in zip(
                parameters.category_probabilities, new.category_probabilities, strict=True
            )
        ),
    )


def _put(values: np.ndarray, index: slice | np.ndarray, replacement: np.ndarray) -> np.ndarray:
    """A copy with some entries replaced."""
    copied = values.copy()
    copied[index] = replacement
    return copied


# One Gibbs sweep of a mixture: theta -> components, missing cells -> theta.
#
# Components and missing cells are drawn jointly given theta, and theta is drawn jointly given both.
# Before or after that, on the toss of a coin, one class is offered a jump to another mode, once
# draws of the posterior have been seen. So a sweep reads the same backwards: it is a reversible
# Markov kernel of the posterior.


MAX_SWEEP_ROWS = 10_000_000  # Most rows, copies counted, that a sweep takes in.


class MixtureSweep(MarkovKernel):
    """Gibbs sweeps over the coordinates of a mixture's declared graph.

    Rows are in standard units, and a row of weight w stands for w rows: ValueError if a weight is
    no whole number, if there are more than 10,000,000 rows, or if a column has a law without
    conjugate prior. The prior is in the user's units.
    """

    def __init__(
        self,
        observations: Observations,
        specification: MixtureSpecification,
        hyperparameters: MixtureHyperparameters,
    ) -> None:
        rows = _repeated(observations)
        self._specification = specification
        self._points = MixturePoints(specification, hyperparameters)
        self._standard = self._points.standard
        self._weighted = observations
        self._jumps: ModeJumps | None = None
        self._codes = rows.codes
        self._components = ComponentDraws(rows, specification)
        self._cells = CellDraws(rows.real, specification)
        certain = self._components.certain if self._cells.are_known else None
        self._posterior = None if certain is None else self._conditional(certain, rows.real)

    def sweep(
        self, theta: Float[np.ndarray, " coordinate"], rng: np.random.Generator
    ) -> Float[np.ndarray, " coordinate"]:
        """Next coordinates: components and missing cells drawn given theta, then theta given both.

        With jump proposals, a jump of one class comes before or after, at random. The posterior is
        invariant under the sweep. Without latent variables the draw is independent of theta.
        """
        if self._posterior is not None:  # nothing is latent, and sweeps are independent
            return self._points.pack_standard(self._posterior.draw(rng))
        parameters = self._points.unpack_standard(theta)
        if self._jumps is None:
            return self._points.pack_standard(self._augment(parameters, rng))
        # A fair coin decides which move is first: read backwards, the sweep is as probable.
        if rng.random() < 0.5:
            return self._points.pack_standard(self._jumps.jump(self._augment(parameters, rng), rng))
        return self._points.pack_standard(self._augment(self._jumps.jump(parameters, rng), rng))

    def adapted(self, thetas: Float[np.ndarray, "draw coordinate"]) -> MixtureSweep:
        """The sweep with jump proposals learnt from warm-up draws; itself if no class can jump."""
        if not can_jump(self._specification):
            return self
        points = [self._points.unpack_standard(theta) for theta in thetas]
        slowness = slowness_of(np.stack([point.weights for point in points]), self._specification)
        positions = np.linspace(0, len(thetas) - 1, min(len(thetas), MAX_REFERENCES)).round()
        references = [points[position] for position in positions.astype(np.intp)] + self._searched
        learnt = copy(self)  # with what was found
        learnt._jumps = ModeJumps(
            self._weighted, self._specification, self._standard, references, slowness
        )
        return learnt

    @cached_property
    def _searched(self) -> list[MixtureParameters]:
        """Ends of EM, among them modes that no chain may have visited."""
        return searched(self._weighted, self._specification, self._standard)

    def _augment(
        self, parameters: MixtureParameters, rng: np.random.Generator
    ) -> MixtureParameters:
        """Draw components and missing cells, then the parameters given both."""
        components = self._components.draw(parameters, rng)
        real = self._cells.draw(parameters, components, rng)
        return self._conditional(components, real).draw(rng)

    def _conditional(self, components: np.ndarray, real: np.ndarray) -> Conjugate:
        """Conjugate posterior of the parameters given components and complete rows."""
        statistics = assigned(real, self._codes, components, self._specification)
        return posterior(statistics, self._standard, self._specification)


def _repeated(observations: Observations) -> Observations:
    """Every row repeated by its weight; ValueError unless weights are whole numbers."""
    weights = observations.weights
    whole = np.round(weights)
    if not np.allclose(weights, whole):  # parts that were added up are whole but for rounding
        worst = float(weights[np.argmax(np.abs(weights - whole))])
        raise ValueError(
            "Gibbs sampling needs row weights that are whole numbers, because it draws a "
            f"component for every row; received a weight of {worst:g}: use inference='nuts', or "
            "unlabelled_weight=1 if it is that of a row without a label."
        )
    if whole.sum() > MAX_SWEEP_ROWS:
        raise ValueError(
            f"Gibbs sampling takes row weights that add up to at most {MAX_SWEEP_ROWS:,}; "
            f"received {whole.sum():.6g}: use inference='nuts'."
        )
    return observations.take(np.repeat(np.arange(weights.size), whole.astype(np.intp)))
