"""Laws of columns given the component: shapes of covariances, and categorical columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.base import names
from bayesrbf.base.arrays import draw_categories, one_hot, split_levels
from bayesrbf.base.priors import MixtureHyperparameters
from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Order, Variable
from bayesrbf.mixture.matrices import Diagonals, Held, Matrices, Vectors, lower_indices
from bayesrbf.mixture.real_columns import (
    ConjugatePrecisions,
    FullPrecisions,
    GammaPrecisions,
    Pull,
    RealColumns,
    log_gamma_constant,
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

# Shapes of covariances, subclasses of RealColumns.


class FullCovariances(RealColumns):
    r"""Unrestricted covariance matrices.

    .. math::
       A_{ii} = \sqrt{d_i}, \quad d_i \sim \mathrm{Gamma}(\nu_0 / 2 + 1,\ 1/2), \quad
       A_{ij} \sim N(0, 1) \text{ for } i > j
    """

    form = Matrices

    def shape_variables(self) -> tuple[Variable, ...]:
        """``d_i = A_ii^2`` and, of two columns or more, ``A_ij`` below the diagonal."""
        d = self.n_features
        diagonal = Variable(names.PRECISION_DIAGONAL, (names.FEATURE,), (d,), "log")
        entries = (d * (d - 1) // 2,)
        lower = Variable(names.PRECISION_LOWER, (names.PRECISION_ENTRY,), entries, "identity")
        return (diagonal, lower) if d > 1 else (diagonal,)

    def shape_values(self, unit: Held) -> dict[str, np.ndarray]:
        """``A_ii^2``, and ``A_ij`` below the diagonal, by variable."""
        return self._by_name(self.matrices.diagonal(unit) ** 2, unit)

    def unit_factors(self, values: Values) -> Float[np.ndarray, "*batch group d d"]:
        """A of every group, with ``sqrt(d_i)`` on the diagonal and ``A_ij`` below the diagonal."""
        d, squares = self.n_features, values[names.PRECISION_DIAGONAL]
        unit = np.zeros((*squares.shape[:-1], d * d))
        unit[..., :: d + 1] = np.sqrt(squares)
        if d > 1:
            unit[..., lower_indices(d)] = values[names.PRECISION_LOWER]
        return unit.reshape(*squares.shape, d)

    def shape_gradient(self, values: Values, pull: Pull) -> dict[str, np.ndarray]:
        """Gradient of the log posterior in ``log d_i`` and in ``A_ij``."""
        squares = values[names.PRECISION_DIAGONAL]
        gradients = self._by_name(pull.by_log(squares), pull.by_entry)
        if self.n_features > 1:
            gradients[names.PRECISION_LOWER] -= values[names.PRECISION_LOWER]
        return gradients

    def log_normaliser(self, freedom: float) -> float:
        """Log normaliser of the D gamma densities of every group."""
        return self.n_groups * self.n_features * log_gamma_constant(freedom, 1)

    def conjugate(
        self, scales: Vectors, cells: Float[np.ndarray, "group d"], inner: Held
    ) -> ConjugatePrecisions:
        """Bartlett density of lower factors."""
        return FullPrecisions(scales, 1 + 0.5 * cells, inner)

    def _by_name(self, diagonal: Vectors, matrices: Held) -> dict[str, np.ndarray]:
        """``diagonal`` and the strict lower entries of ``matrices``, by variable."""
        if self.n_features == 1:
            return {names.PRECISION_DIAGONAL: diagonal}
        lower = matrices.reshape(len(matrices), -1).take(lower_indices(self.n_features), axis=1)
        return {names.PRECISION_DIAGONAL: diagonal, names.PRECISION_LOWER: lower}


class DiagonalCovariances(RealColumns):
    r"""Diagonal covariance matrices, one variance for every column.

    .. math:: A = \mathrm{diag}(\sqrt{d_i}), \quad d_i \sim \mathrm{Gamma}(\nu_0 / 2 + 1,\ 1/2)
    """

    form = Diagonals

    def shape_variables(self) -> tuple[Variable, ...]:
        """``d_i = A_ii^2`` of every column."""
        return (Variable(names.PRECISION_DIAGONAL, (names.FEATURE,), (self.n_features,), "log"),)

    def shape_values(self, unit: Held) -> dict[str, np.ndarray]:
        """``d_i = A_ii^2`` of every column."""
        return {names.PRECISION_DIAGONAL: unit**2}

    def unit_factors(self, values: Values) -> Float[np.ndarray, "*batch group d"]:
        """``A_ii = sqrt(d_i)``, the diagonal of A."""
        return np.sqrt(values[names.PRECISION_DIAGONAL])

    def shape_gradient(self, values: Values, pull: Pull) -> dict[str, np.ndarray]:
        """Gradient of the log posterior in ``log d_i``."""
        return {names.PRECISION_DIAGONAL: pull.by_log(values[names.PRECISION_DIAGONAL])}

    def log_normaliser(self, freedom: float) -> float:
        """Log normaliser of the D gamma densities of every group."""
        return self.n_groups * self.n_features * log_gamma_constant(freedom, 1)

    def conjugate(
        self, scales: Vectors, cells: Float[np.ndarray, "group d"], inner: Held
    ) -> ConjugatePrecisions:
        """Independent gamma densities of ``d_i``."""
        return GammaPrecisions(scales, 1 + 0.5 * cells, inner, self)


class SphericalCovariances(RealColumns):
    r"""Spherical covariance matrices, one variance in units of the scales of the columns.

    .. math:: A = \sqrt{a}\, I, \quad a \sim \mathrm{Gamma}(D \nu_0 / 2 + 1,\ D/2)
    """

    form = Diagonals

    def shape_variables(self) -> tuple[Variable, ...]:
        """The common precision a."""
        return (Variable(names.PRECISION_DIAGONAL, (), (), "log"),)

    def shape_values(self, unit: Held) -> dict[str, np.ndarray]:
        """``a = A_ii^2``, the same for all i."""
        return {names.PRECISION_DIAGONAL: unit[:, 0] ** 2}

    def unit_factors(self, values: Values) -> Float[np.ndarray, "*batch group d"]:
        """``A_ii = sqrt(a)``, repeated for every column."""
        roots = np.sqrt(values[names.PRECISION_DIAGONAL])[..., None]
        return np.broadcast_to(roots, (*roots.shape[:-1], self.n_features))

    def shape_gradient(self, values: Values, pull: Pull) -> dict[str, np.ndarray]:
        """Gradient of the log posterior in ``log a``: the sum over columns."""
        by_column = pull.by_log(values[names.PRECISION_DIAGONAL][:, None])
        return {names.PRECISION_DIAGONAL: by_column.sum(axis=1)}

    def log_normaliser(self, freedom: float) -> float:
        """Log normaliser of the gamma density of a in every group."""
        return self.n_groups * log_gamma_constant(freedom, self.n_features)

    def nearest(self, covariances: Held, scale: Float[np.ndarray, " feature"]) -> Held:
        """Mean over columns of ``variance / scale^2``, times ``scale^2``."""
        return (covariances / scale**2).mean(axis=1, keepdims=True) * scale**2

    def conjugate(
        self, scales: Vectors, cells: Float[np.ndarray, "group d"], inner: Held
    ) -> ConjugatePrecisions:
        """Gamma density of a; cells and squares are summed over columns."""
        shapes = 1 + 0.5 * cells.sum(axis=1, keepdims=True)
        return GammaPrecisions(scales, shapes, inner.sum(axis=1, keepdims=True), self)


SHAPES: Final[dict[str, type[RealColumns]]] = {
    "full": FullCovariances,
    "diag": DiagonalCovariances,
    "spherical": SphericalCovariances,
}
"""The shapes by :attr:`bayesrbf.base.rows.MixtureSpecification.shape`."""


# Categorical columns: a simplex of level probabilities for every component and column.


Levels = tuple[Float[np.ndarray, "component _"], ...]
"""One array a column."""


CATEGORY_SCALE = 0.7
"""Length of an indicator of a level, for k-means with reals of standard deviation 1."""


class LevelColumns:
    """The categorical columns of a mixture; their prior is Dirichlet."""

    def __init__(self, specification: MixtureSpecification) -> None:
        self.n_components, self.levels = specification.n_components, specification.levels
        self.names = [names.category_probability(index) for index in range(len(self.levels))]

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """A simplex of level probabilities for every column and component."""
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
        """Arrays of all columns, such as level probabilities, by the name of the variable."""
        return dict(zip(self.names, by_column, strict=True))

    def values(self, point: Point) -> dict[str, np.ndarray]:
        """Level probabilities of a point, by the name of the variable."""
        return self.by_name(point.category_probabilities)

    def with_values(self, point: Point, values: Values) -> Point:
        """``point`` with level probabilities from the values of the variables."""
        return replace(point, category_probabilities=tuple(values[name] for name in self.names))

    def mode(self, counts: Levels, hyper: Hyper) -> Levels:
        r"""M-step of the level probabilities under their prior Dirichlet(alpha).

        .. math:: \theta_{kj}[l] \propto n_{kjl} + \alpha_{jl} - 1
        """
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

    def initial(self, point: Point, rows: Rows, memberships: Memberships, hyper: Hyper) -> Point:
        """``point`` with level probabilities from an M-step of the memberships."""
        counts = split_levels(memberships.T @ one_hot(rows.codes, self.levels), self.levels)
        return replace(point, category_probabilities=self.mode(counts, hyper))

    def embedding(self, rows: Rows) -> Float[np.ndarray, "row level"]:
        """Scaled indicators of the levels, 0 where the cell is missing."""
        return CATEGORY_SCALE * one_hot(rows.codes, self.levels)

    def reordered(self, point: Point, order: Order) -> Point:
        """``point`` with its categorical columns in another order."""
        levels = tuple(point.category_probabilities[j] for j in order.categories)
        return replace(point, category_probabilities=levels)

    def posterior(self, counts: Levels, hyper: Hyper) -> Levels:
        """Dirichlet parameters ``n + alpha`` of the conjugate posterior."""
        priors = hyper.category_concentrations
        return tuple(n + alpha for n, alpha in zip(counts, priors, strict=True))

    def counts(self, codes: Int[np.ndarray, "row categorical"], components: Assignment) -> Levels:
        """Counts of levels by component, for every column, in rows with known components."""
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
        """``p(level | x_o)`` of every cell, one array a column; 1 at an observed level."""
        results = []
        for column, theta in enumerate(parameters.category_probabilities):
            known = np.flatnonzero(codes[:, column] >= 0)
            probabilities = responsibilities @ theta
            probabilities[known] = 0.0
            probabilities[known, codes[known, column]] = 1.0
            results.append(probabilities)
        return tuple(results)

    def completed(self, rows: Rows, components: Assignment, point: Point, rng: Rng) -> Rows:
        """Rows whose missing categorical cells are drawn given their components."""
        codes = rows.codes.copy()
        for column, theta in enumerate(point.category_probabilities):
            hole = codes[:, column] < 0
            codes[hole, column] = draw_categories(theta[components[hole]], rng)
        return replace(rows, codes=codes)


def _counts(
    codes: np.ndarray, components: np.ndarray, k: int, n_levels: int
) -> Float[np.ndarray, "component level"]:
    """Counts of the levels of one column by component; missing cells do not count."""
    known = codes >= 0
    indices = components[known] * n_levels + codes[known]
    return np.bincount(indices, minlength=k * n_levels).reshape(k, n_levels).astype(float)


# The laws of all columns of a mixture.


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
        r"""The M-step: the mode of the expected complete-data log posterior.

        .. math:: w_k \propto n_k + a_w - 1, \qquad
            \pi_c \propto \sum_{k : c(k) = c} n_k + a_\pi - 1,

        and the modes of the laws of the columns. The statistics are those of the E-step at
        ``parameters``; the prior is in the same units.
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


def order_for(order: Order, specification: MixtureSpecification) -> Order:
    """``order``, but real columns unpermuted where the covariance shape depends on their order."""
    if not SHAPES[specification.shape].depends_on_order:
        return order
    return replace(order, features=np.arange(order.features.size))


@cache
def laws_of(specification: MixtureSpecification) -> Laws:
    """Laws of the real and categorical columns of a specification (cached)."""
    return Laws(SHAPES[specification.shape](specification), LevelColumns(specification))
