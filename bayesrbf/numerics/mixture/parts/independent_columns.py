"""Diagonal and spherical covariances: given the component, the columns are independent.

Factors, second moments and covariances are held by their diagonals.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.mixture.gaussian import LOG_2PI, Conditional, IndependentComponents
from bayesrbf.numerics.mixture.parts.arguments import Assignment, Values
from bayesrbf.numerics.mixture.parts.precision_factors import IndependentPrecisions
from bayesrbf.numerics.mixture.parts.real_columns import (
    ByCell,
    Factors,
    KernelNormals,
    Matrices,
    RealColumns,
    Vectors,
    Weights,
)
from bayesrbf.records import names
from bayesrbf.records.specification import Variable


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
        from bayesrbf.numerics.kernels.gaussian_diagonal import DiagonalGaussians

        scales = factors[self.group]
        constants = np.log(scales) - 0.5 * LOG_2PI
        diagonal = DiagonalGaussians(means, scales * np.sqrt(0.5), constants)
        return KernelNormals(constants.sum(axis=1), None, None, diagonal)

    def kernel_room(self, means: Vectors, with_holes: bool) -> tuple[np.ndarray, KernelNormals]:
        """Room for precision factors, and for normals that the kernels write themselves."""
        from bayesrbf.numerics.kernels.gaussian_diagonal import DiagonalGaussians

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
