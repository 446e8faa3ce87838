"""Laws of columns given the component: shapes of covariances, and categorical columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.base import names
from bayesrbf.base.arrays import draw_categories, one_hot, split_levels
from bayesrbf.base.priors import MixtureHyperparameters
from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Order, Variable
from bayesrbf.mixture.gaussian import (
    LOG_2PI,
    Conditional,
    FullComponents,
    IndependentComponents,
    MissingMoments,
)
from bayesrbf.mixture.real_columns import (
    ByCell,
    Factors,
    FullPrecisions,
    IndependentPrecisions,
    KernelNormals,
    Matrices,
    RealColumns,
    Vectors,
    Weights,
    at_floor,
    lower_entries,
    lower_places,
    precision_factor,
)
from bayesrbf.mixture.statistics import (
    Assignment,
    Hyper,
    Memberships,
    Point,
    Rng,
    Rows,
    Statistics,
    Values,
)

# Full covariances: a matrix a group.


class FullCovariances(RealColumns):
    """Real columns under full covariances, each component's own or shared by several."""

    conjugate_family = FullPrecisions

    def _precision_variables(self) -> tuple[Variable, ...]:
        """Squares of the diagonal of A, and its strict lower part."""
        dims, shape = self.specification.group_dims, self.specification.group_shape
        d = self.n_features
        diagonal = Variable(names.PRECISION_DIAGONAL, (*dims, names.FEATURE), (*shape, d), "log")
        if d == 1:
            return (diagonal,)
        entries = (*shape, d * (d - 1) // 2)
        lower = Variable(names.PRECISION_LOWER, (*dims, names.PRECISION_ENTRY), entries, "identity")
        return diagonal, lower

    def _precision_values(self, unit: Factors) -> dict[str, np.ndarray]:
        shape, places = self.specification.group_shape, lower_places(self.n_features)
        lower = unit.reshape(len(unit), -1).take(places, axis=1)
        return {
            names.PRECISION_DIAGONAL: self.diagonal(unit).reshape((*shape, -1)) ** 2,
            names.PRECISION_LOWER: lower.reshape((*shape, places.size)),
        }

    def _unit_factors(
        self, roots: Float[np.ndarray, "*batch group root"], values: Values
    ) -> Float[np.ndarray, "*batch group root root"]:
        d, batch = self.n_features, roots.shape[:-1]
        unit = np.zeros((*batch, d * d))
        unit[..., :: d + 1] = roots
        if d > 1:
            unit[..., lower_places(d)] = values[names.PRECISION_LOWER].reshape((*batch, -1))
        return unit.reshape((*batch, d, d))

    @property
    def matrix_shape(self) -> tuple[int, ...]:
        """Shape of one covariance as an array."""
        return self.n_features, self.n_features

    def outer(self, vectors: Vectors, factor: float | Weights) -> Matrices:
        """``factor v v'`` for every component."""
        return (factor * vectors)[:, :, None] * vectors[:, None, :]

    def product(self, matrices: Factors, factors: Factors) -> Factors:
        """Matrix products."""
        return matrices @ factors

    def diagonal(self, matrices: Factors) -> Float[np.ndarray, "group feature"]:
        """Diagonals."""
        return matrices.diagonal(0, 1, 2)

    def of_diagonal(self, diagonal: Float[np.ndarray, "*batch d"]) -> Float[np.ndarray, "*shape"]:
        """Matrices of given diagonals."""
        return diagonal[..., None] * np.eye(self.n_features)

    def _reordered(
        self, factors: Factors, features: Int[np.ndarray, " feature"]
    ) -> Float[np.ndarray, "group *feature"]:
        """Lower triangles L of positive diagonal with L L' = R R', R the factor's rows in order."""
        rows = factors.take(features, 1)
        lower = np.linalg.qr(rows.swapaxes(-1, -2), mode="r").swapaxes(-1, -2)
        return np.ascontiguousarray(lower * np.sign(np.einsum("gii->gi", lower))[:, None, :])

    def inverse(self, factors: Matrices) -> Float[np.ndarray, "component *entry"]:
        """``L^-1``."""
        return np.linalg.inv(factors)

    def inverse_times(
        self, inverse: Float[np.ndarray, "component *entry"], vectors: Vectors, transposed: bool
    ) -> Vectors:
        """``L^-1`` or ``L^-T`` times a vector of every component."""
        return np.einsum("kji,kj->ki" if transposed else "kij,kj->ki", inverse, vectors)

    def covariances(self, factors: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """``(L L')^-1`` as whole matrices."""
        inverse = np.linalg.inv(factors)
        return inverse.swapaxes(-1, -2) @ inverse

    def whiten(
        self, deviations: Float[np.ndarray, "*batch component row d"], factors: Matrices
    ) -> Float[np.ndarray, "*batch component row d"]:
        """``L' (x - mu)`` of rows under every component."""
        return deviations @ factors

    def spread(
        self, noise: Float[np.ndarray, "component row d"], factors: Matrices
    ) -> Float[np.ndarray, "component row d"]:
        """``L'^-1 z`` of rows under every component: noise of their covariance."""
        return np.linalg.solve(factors.swapaxes(1, 2), noise.swapaxes(1, 2)).swapaxes(1, 2)

    def unit_entries(self, unit: Factors) -> tuple[np.ndarray, np.ndarray]:
        """Free entries of A, and those on its diagonal."""
        return unit, unit.diagonal(0, 1, 2)

    def lower_scales(
        self, scales: Float[np.ndarray, "group feature"]
    ) -> Float[np.ndarray, "group entry"]:
        """The base scales of the rows that the entries of ``precision_lower`` are in."""
        return scales[:, lower_entries(self.n_features)[0]]

    def lower_gradient(
        self, stress: Factors, values: Values, scales: Float[np.ndarray, "group entry"]
    ) -> dict[str, np.ndarray]:
        """Gradient in ``precision_lower``: L^-T is upper triangular, so only the scatter pulls."""
        if self.n_features == 1:
            return {}
        places = lower_places(self.n_features)
        gradient = stress.reshape(len(stress), -1).take(places, axis=1)
        gradient /= -scales
        gradient -= values[names.PRECISION_LOWER].reshape(gradient.shape)
        return {names.PRECISION_LOWER: gradient}

    def precision_times(self, force: Vectors, factors: Matrices) -> Vectors:
        """``P f`` for every component."""
        return ((force[:, None, :] @ factors) @ factors.swapaxes(1, 2))[:, 0]

    def _mode_factors(
        self,
        scatter: Factors,
        prior: Float[np.ndarray, "group feature"],
        total: Float[np.ndarray, " group"],
        scale: Float[np.ndarray, " feature"],
    ) -> Factors:
        scatter.reshape(len(scatter), -1)[:, :: self.n_features + 1] += prior
        scatter /= total[:, None, None]
        return precision_factor(scatter)

    def at_floor(self, factors: Factors) -> bool:
        """Whether some covariance has eigenvalues at the floor."""
        return at_floor(factors)

    def holes(self, observed: Bool[np.ndarray, "row feature"]) -> Int[np.ndarray, " row"]:
        """Number of missing cells."""
        return (~observed).sum(axis=1)

    def components(self, means: Vectors, factors: Matrices) -> FullComponents:
        """Components at a point, ready for blocks of rows."""
        return FullComponents(means, factors)

    def conditional(
        self,
        rows: Int[np.ndarray, " row"],
        real: Float[np.ndarray, "row feature"],
        means: Vectors,
        factors: Matrices,
    ) -> Conditional:
        """Moments of rows that miss the same number of cells."""
        hole, cells = np.isnan(real), np.nan_to_num(real)
        places = np.nonzero(hole)[1].reshape(len(rows), -1)
        if self.n_groups == 1:  # one covariance of the missing cells, not one a component
            factors = factors[:1]
        moments = MissingMoments.of(cells, places, FullComponents(means, factors))
        expected = np.where(hole[:, None, :], moments.deviations + means, cells[:, None, :])
        return Conditional.of(rows, expected, moments.covariances, places)

    def leave_one_out(
        self, real: Float[np.ndarray, "row feature"], means: Vectors, factors: Factors
    ) -> tuple[ByCell, ByCell]:
        """Conditionals of every observed cell, from the inverse of the observed covariance."""
        observed = ~np.isnan(real)
        deviations = np.where(observed[:, None], np.nan_to_num(real)[:, None] - means, 0.0)
        shift, precision = np.zeros_like(deviations), np.ones_like(deviations)
        pairs = observed[:, :, None] & observed[:, None, :]
        hole = np.where(observed, 0.0, 1.0)[:, :, None] * np.eye(self.n_features)
        for g, covariance in enumerate(self.covariances(factors)):
            inverse = np.linalg.inv(np.where(pairs, covariance, hole))
            own = np.diagonal(inverse, axis1=1, axis2=2)
            for k in np.flatnonzero(self.group == g):
                precision[:, k] = own
                shift[:, k] = np.einsum("nij,nj->ni", inverse, deviations[:, k]) / own
        return shift, precision

    def kernel_normals(self, means: Vectors, factors: Factors, with_holes: bool) -> KernelNormals:
        """The normals at a point in the form that the kernels read."""
        from bayesrbf.mixture.compiled_gaussian import FullGaussians, GaussiansWithHoles

        full, holes = FullGaussians(means, factors * np.sqrt(0.5), self.group), None
        constants = np.log(factors.diagonal(0, 1, 2)).sum(axis=1) - 0.5 * self.n_features * LOG_2PI
        if with_holes:
            precisions = factors @ factors.swapaxes(1, 2)
            holes = GaussiansWithHoles(means, full.factors, precisions, self.group)
        return KernelNormals(constants[self.group], full, holes, None)

    def kernel_room(self, means: Vectors, with_holes: bool) -> tuple[np.ndarray, KernelNormals]:
        """Room for precision factors, and for normals that the kernels write themselves."""
        from bayesrbf.mixture.compiled_gaussian import FullGaussians, GaussiansWithHoles

        factors, halves, precisions = np.empty((3, self.n_groups, *self.matrix_shape))
        full, holes = FullGaussians(means, halves, self.group), None
        if with_holes:
            holes = GaussiansWithHoles(means, halves, precisions, self.group)
        return factors, KernelNormals(np.empty(len(means)), full, holes, None)

    def assigned(
        self,
        real: Float[np.ndarray, "row feature"],
        components: Assignment,
        member: Bool[np.ndarray, "component row"],
    ) -> tuple[Vectors, Vectors, Matrices]:
        """Cells, their means and the scatter about these; the rows must be complete."""
        ones = member.astype(float)
        cells = np.repeat(ones.sum(axis=1)[:, None], self.n_features, axis=1)
        centres = (ones @ real) / np.maximum(cells, 1)
        deviations = real - centres[components]
        parts = [deviations[rows] for rows in member]
        return cells, centres, np.stack([part.T @ part for part in parts])

    def inner(self, scatter: Factors, scales: Float[np.ndarray, "group feature"]) -> Factors:
        """``T = I + L0' S L0``."""
        return scatter / scales[:, :, None] / scales[:, None, :] + np.eye(self.n_features)

    def inner_at(
        self,
        factors: Factors,
        strength: Float[np.ndarray, "group feature"],
        scales: Float[np.ndarray, "group feature"],
    ) -> Factors:
        """T of the density behind so many rows whose mode has these factors."""
        unit = self.covariances(factors) / (scales[:, :, None] * scales[:, None, :])
        return unit * strength[:, :, None]


# Diagonal and spherical covariances: given the component, the columns are independent.
#
# Factors, second moments and covariances are held by their diagonals.


class IndependentColumns(RealColumns):
    """Real columns that are independent given the component."""

    conjugate_family = IndependentPrecisions

    @property
    def matrix_shape(self) -> tuple[int, ...]:
        """Shape of one covariance as an array."""
        return (self.n_features,)

    def outer(self, vectors: Vectors, factor: float | Weights) -> Matrices:
        """``factor v v'`` for every component, its diagonal."""
        return factor * vectors**2

    def product(self, matrices: Factors, factors: Factors) -> Factors:
        """Matrix products."""
        return matrices * factors

    def diagonal(self, matrices: Factors) -> Float[np.ndarray, "group feature"]:
        """Diagonals."""
        return matrices

    def of_diagonal(self, diagonal: Float[np.ndarray, "*batch d"]) -> Float[np.ndarray, "*shape"]:
        """Matrices of given diagonals."""
        return diagonal

    def covariances(
        self, factors: Float[np.ndarray, "*shape d"]
    ) -> Float[np.ndarray, "*shape d d"]:
        """``(L L')^-1`` as whole matrices."""
        return factors[..., None] ** -2.0 * np.eye(factors.shape[-1])

    def whiten(
        self, deviations: Float[np.ndarray, "*batch component row d"], factors: Matrices
    ) -> Float[np.ndarray, "*batch component row d"]:
        """``L' (x - mu)`` of rows under every component."""
        return deviations * factors[:, None, :]

    def spread(
        self, noise: Float[np.ndarray, "component row d"], factors: Matrices
    ) -> Float[np.ndarray, "component row d"]:
        """``L'^-1 z`` of rows under every component: noise of their covariance."""
        return noise / factors[:, None, :]

    def precision_times(self, force: Vectors, factors: Matrices) -> Vectors:
        """``P f`` for every component."""
        return force * factors**2

    def holes(self, observed: Bool[np.ndarray, "row feature"]) -> Int[np.ndarray, " row"]:
        """Zero: rows with holes need not be kept apart."""
        return np.zeros(len(observed), dtype=int)

    def components(self, means: Vectors, factors: Matrices) -> IndependentComponents:
        """Components at a point, ready for blocks of rows."""
        return IndependentComponents(means, factors)

    def conditional(
        self,
        rows: Int[np.ndarray, " row"],
        real: Float[np.ndarray, "row feature"],
        means: Vectors,
        factors: Matrices,
    ) -> Conditional:
        """Moments of any rows: a missing cell has those of its component."""
        hole = np.isnan(real)[:, None, :]
        expected = np.where(hole, means, np.nan_to_num(real)[:, None, :])
        return Conditional(rows, expected, np.where(hole, factors**-2.0, 0.0), None)

    def leave_one_out(
        self, real: Float[np.ndarray, "row feature"], means: Vectors, factors: Factors
    ) -> tuple[ByCell, ByCell]:
        """Deviations and precisions of every observed cell: the rest says nothing of it."""
        observed = ~np.isnan(real)[:, None]
        deviations = np.where(observed, np.nan_to_num(real)[:, None] - means, 0.0)
        return deviations, np.where(observed, self.by_component(factors) ** 2, 1.0)

    def kernel_normals(self, means: Vectors, factors: Factors, with_holes: bool) -> KernelNormals:
        """The normals at a point in the form that the kernels read."""
        from bayesrbf.mixture.compiled_gaussian import DiagonalGaussians

        scales = factors[self.group]
        constants = np.log(scales) - 0.5 * LOG_2PI
        diagonal = DiagonalGaussians(means, scales * np.sqrt(0.5), constants)
        return KernelNormals(constants.sum(axis=1), None, None, diagonal)

    def kernel_room(self, means: Vectors, with_holes: bool) -> tuple[np.ndarray, KernelNormals]:
        """Room for precision factors, and for normals that the kernels write themselves."""
        from bayesrbf.mixture.compiled_gaussian import DiagonalGaussians

        diagonal = DiagonalGaussians(means, np.empty_like(means), np.empty_like(means))
        room = KernelNormals(np.empty(len(means)), None, None, diagonal)
        return np.empty((self.n_groups, self.n_features)), room

    def assigned(
        self,
        real: Float[np.ndarray, "row feature"],
        components: Assignment,
        member: Bool[np.ndarray, "component row"],
    ) -> tuple[Vectors, Vectors, Matrices]:
        """Known cells, their means and the squares about these."""
        ones, known = member.astype(float), ~np.isnan(real)
        cells = ones @ known
        centres = (ones @ np.nan_to_num(real)) / np.maximum(cells, 1)
        return cells, centres, ones @ np.where(known, real - centres[components], 0.0) ** 2

    def inner(self, scatter: Factors, scales: Float[np.ndarray, "group feature"]) -> Factors:
        """``T = I + L0' S L0``."""
        return 1 + scatter / scales**2

    def inner_at(
        self,
        factors: Factors,
        strength: Float[np.ndarray, "group feature"],
        scales: Float[np.ndarray, "group feature"],
    ) -> Factors:
        """T of the density behind so many rows whose mode has these factors."""
        return strength / (factors * scales) ** 2


class DiagonalCovariances(IndependentColumns):
    """Real columns with a variance each."""

    def _precision_variables(self) -> tuple[Variable, ...]:
        """A precision a column, in units of its prior."""
        dims, shape = self.specification.group_dims, self.specification.group_shape
        axes, sizes = (*dims, names.FEATURE), (*shape, self.n_features)
        return (Variable(names.PRECISION_DIAGONAL, axes, sizes, "log"),)

    def _precision_values(self, unit: Factors) -> dict[str, np.ndarray]:
        shape = (*self.specification.group_shape, self.n_features)
        return {names.PRECISION_DIAGONAL: (unit**2).reshape(shape)}

    def _unit_factors(
        self, roots: Float[np.ndarray, "*batch group root"], values: Values
    ) -> Float[np.ndarray, "*batch group root"]:
        return roots

    def unit_entries(self, unit: Factors) -> tuple[np.ndarray, np.ndarray]:
        """Free entries of A, all on its diagonal."""
        return unit, unit

    def _mode_factors(
        self,
        scatter: Factors,
        prior: Float[np.ndarray, "group feature"],
        total: Float[np.ndarray, " group"],
        scale: Float[np.ndarray, " feature"],
    ) -> Factors:
        return ((scatter + prior) / total[:, None]) ** -0.5


class SphericalCovariances(IndependentColumns):
    """Real columns with one variance, in units of the columns' scales."""

    @property
    def columns_a_gamma(self) -> int:
        """All columns of a group share one gamma variable."""
        return self.n_features

    def _precision_variables(self) -> tuple[Variable, ...]:
        """One precision a group."""
        dims, shape = self.specification.group_dims, self.specification.group_shape
        return (Variable(names.PRECISION_DIAGONAL, dims, shape, "log"),)

    def _precision_values(self, unit: Factors) -> dict[str, np.ndarray]:
        squares = unit[:, 0] ** 2
        return {names.PRECISION_DIAGONAL: squares.reshape(self.specification.group_shape)}

    def _unit_factors(
        self, roots: Float[np.ndarray, "*batch group root"], values: Values
    ) -> Float[np.ndarray, "*batch group feature"]:
        return np.broadcast_to(roots, (*roots.shape[:-1], self.n_features))

    def pooled(self, by_column: Float[np.ndarray, "*batch d"]) -> Float[np.ndarray, "*batch gamma"]:
        """Sums over the columns."""
        return by_column.sum(axis=-1, keepdims=True)

    def unit_entries(self, unit: Factors) -> tuple[np.ndarray, np.ndarray]:
        """The one free entry of A, twice."""
        return unit[:, :1], unit[:, :1]

    def _mode_factors(
        self,
        scatter: Factors,
        prior: Float[np.ndarray, "group feature"],
        total: Float[np.ndarray, " group"],
        scale: Float[np.ndarray, " feature"],
    ) -> Factors:
        variances = (scatter + prior) / total[:, None]
        if self.n_features:  # a mean over no columns has no value
            variances = (variances / scale**2).mean(axis=1, keepdims=True) * scale**2
        return variances**-0.5


# Categorical columns: a simplex of level probabilities for every component and column.
#
# With counts n of the levels and the prior Dirichlet(alpha), the mode is in proportion to
# n + alpha - 1 and the conjugate posterior is Dirichlet(n + alpha).


Levels = tuple[Float[np.ndarray, "component _"], ...]
"""One array a column."""


CATEGORY_SCALE = 0.7
"""Length of one category's indicator beside reals of standard deviation 1."""


class LevelColumns:
    """The categorical columns of a mixture; their prior is Dirichlet."""

    def __init__(self, specification: MixtureSpecification) -> None:
        self.n_components, self.levels = specification.n_components, specification.levels
        self.names = [names.category_probability(index) for index in range(len(self.levels))]

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Level probabilities of every column."""
        return tuple(
            Variable(
                name,
                (names.COMPONENT, names.category_level(index)),
                (self.n_components, n_levels),
                "simplex",
            )
            for index, (name, n_levels) in enumerate(zip(self.names, self.levels, strict=True))
        )

    def by_name(self, by_column: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
        """Level probabilities, or what stands in their place, by the name of the variable."""
        return dict(zip(self.names, by_column, strict=True))

    def values(self, point: Point) -> dict[str, np.ndarray]:
        """Values of the variables at a point."""
        return self.by_name(point.category_probabilities)

    def placed(self, point: Point, values: Values) -> Point:
        """The point at given values of the variables."""
        return replace(point, category_probabilities=tuple(values[name] for name in self.names))

    def mode(self, counts: Levels, hyper: Hyper) -> Levels:
        """The M-step, in proportion to n + alpha - 1."""
        if not counts:
            return ()
        pseudo = np.concatenate(counts, axis=1)
        pseudo += np.concatenate(hyper.category_concentrations) - 1
        starts, column = self._layout
        pseudo /= np.add.reduceat(pseudo, starts, axis=1).take(column, axis=1)
        return split_levels(pseudo, self.levels)

    @cached_property
    def _layout(self) -> tuple[Int[np.ndarray, " column"], Int[np.ndarray, " level"]]:
        """The first level of every column, and the column of every level, side by side."""
        sizes = np.asarray(self.levels)
        return sizes.cumsum() - sizes, np.repeat(np.arange(sizes.size), sizes)

    def begun(self, point: Point, rows: Rows, memberships: Memberships, hyper: Hyper) -> Point:
        """An M-step from memberships of rows."""
        counts = split_levels(memberships.T @ one_hot(rows.codes, self.levels), self.levels)
        return replace(point, category_probabilities=self.mode(counts, hyper))

    def embedding(self, rows: Rows) -> Float[np.ndarray, "row level"]:
        """Scaled indicators of the levels, 0 where the cell is missing."""
        return CATEGORY_SCALE * one_hot(rows.codes, self.levels)

    def reordered(self, point: Point, order: Order) -> Point:
        """The point of the columns in another order."""
        levels = tuple(point.category_probabilities[j] for j in order.categories)
        return replace(point, category_probabilities=levels)

    def posterior(self, counts: Levels, hyper: Hyper) -> Levels:
        """Dirichlet parameters of the conjugate posterior."""
        priors = hyper.category_concentrations
        return tuple(n + alpha for n, alpha in zip(counts, priors, strict=True))

    def counts(self, codes: Int[np.ndarray, "row categorical"], components: Assignment) -> Levels:
        """How often each component has each level, in rows whose components are known."""
        return tuple(
            _counts(column, components, self.n_components, n_levels)
            for column, n_levels in zip(codes.T, self.levels, strict=True)
        )

    def conditional(
        self,
        codes: Int[np.ndarray, "row categorical"],
        responsibilities: Float[np.ndarray, "row component"],
        parameters: Point,
    ) -> tuple[Float[np.ndarray, "row _"], ...]:
        """Probabilities of every cell's levels; an observed cell has one at its level."""
        results = []
        for column, theta in enumerate(parameters.category_probabilities):
            known = np.flatnonzero(codes[:, column] >= 0)
            probabilities = responsibilities @ theta
            probabilities[known] = 0.0
            probabilities[known, codes[known, column]] = 1.0
            results.append(probabilities)
        return tuple(results)

    def completed(self, rows: Rows, components: Assignment, point: Point, rng: Rng) -> Rows:
        """Rows with their missing cells drawn given the components."""
        codes = rows.codes.copy()
        for column, theta in enumerate(point.category_probabilities):
            hole = codes[:, column] < 0
            codes[hole, column] = draw_categories(theta[components[hole]], rng)
        return replace(rows, codes=codes)


def _counts(
    codes: np.ndarray, components: np.ndarray, k: int, n_levels: int
) -> Float[np.ndarray, "component level"]:
    """How often each component has each level of a column."""
    known = codes >= 0
    places = components[known] * n_levels + codes[known]
    return np.bincount(places, minlength=k * n_levels).reshape(k, n_levels).astype(float)


# The laws of all columns of a mixture.


SHAPES: Final[dict[str, type[RealColumns]]] = {
    "full": FullCovariances,
    "diag": DiagonalCovariances,
    "spherical": SphericalCovariances,
}


@dataclass(frozen=True)
class Laws:
    """The laws of the real and the categorical columns."""

    reals: RealColumns
    levels: LevelColumns

    @cached_property
    def classes(self) -> Int[np.ndarray, " component"]:
        """Class of every component."""
        return np.asarray(self.reals.specification.component_class)

    def mode(
        self,
        statistics: Statistics,
        parameters: MixtureParameters,
        hyperparameters: MixtureHyperparameters,
    ) -> MixtureParameters:
        """The M-step: the mode of the expected complete-data log posterior.

        The statistics are those of the E-step at ``parameters``; the prior is in the same units.
        """
        by_class = np.bincount(self.classes, statistics.counts)
        classes = by_class + (hyperparameters.class_concentration - 1)
        counts = statistics.counts + (hyperparameters.weight_concentration - 1)
        weights = counts / np.bincount(self.classes, counts).take(self.classes)
        following = MixtureParameters(
            classes / classes.sum(),
            weights,
            parameters.means,
            parameters.precisions_cholesky,
            self.levels.mode(statistics.category_counts, hyperparameters),
        )
        return self.reals.mode(following, statistics, hyperparameters)


@cache
def laws_of(specification: MixtureSpecification) -> Laws:
    """The laws of a mixture's columns, made once."""
    return Laws(SHAPES[specification.shape](specification), LevelColumns(specification))
