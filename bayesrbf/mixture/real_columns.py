"""Real columns: normal given the component, under precisions that are products of factors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.linalg import lapack
from scipy.special import gammaln

from bayesrbf.base import names
from bayesrbf.base.rows import MixtureSpecification, Order, Variable, in_blocks
from bayesrbf.mixture.gaussian import LOG_2PI, Components, Conditional
from bayesrbf.mixture.statistics import (
    Assignment,
    Hyper,
    Memberships,
    Point,
    Rng,
    Rows,
    Statistics,
    Values,
    sum_by_group,
)

if TYPE_CHECKING:
    from bayesrbf.mixture.compiled_gaussian import (
        DiagonalGaussians,
        FullGaussians,
        GaussiansWithHoles,
    )


# Precision factors of covariances, the floor of their eigenvalues, and their conjugate laws.
#
# The conjugate family of a shape is that of its prior, of the posterior of rows whose components
# are known, and of the proposals of jumps between modes. With :math:`T = I + L_0' S L_0 = U U'`, U
# upper triangular,
#
# .. math::
#    A = U'^{-1} B, \quad B_{ii}^2 \sim \mathrm{Gamma}((n + \nu_0)/2 + 1,\ 1/2), \quad
#    B_{ij} \sim N(0, 1).
#
# Diagonal and spherical covariances have the diagonal alone.


@cache
def lower_entries(size: int) -> tuple[Int[np.ndarray, " entry"], Int[np.ndarray, " entry"]]:
    """Rows and columns of the entries below the diagonal."""
    rows, columns = np.tril_indices(size, -1)
    return rows, columns


@cache
def lower_places(size: int) -> Int[np.ndarray, " entry"]:
    """Places of these entries in the flattened matrix."""
    rows, columns = lower_entries(size)
    return rows * size + columns


SMALLEST_EIGENVALUE = 1e-10
"""Floor of a covariance's eigenvalues, relative to its largest; smaller ones are rounding
errors."""


def precision_factor(
    covariances: Float[np.ndarray, "group feature feature"],
) -> Float[np.ndarray, "group feature feature"]:
    """Lower L with ``(L L')^-1`` equal to each covariance, its eigenvalues raised to the floor."""
    try:
        factors = _factor(covariances)
        # The product of the traces of Sigma and P = L L' bounds the condition number from above.
        traces = np.einsum("gii->g", covariances) * np.einsum("gij,gij->g", factors, factors)
        if (traces <= 1 / SMALLEST_EIGENVALUE).all():
            return factors
        # So does that of their Frobenius norms, more narrowly.
        conditions = _norms(covariances) * _norms(factors @ factors.swapaxes(1, 2))
        weak = ~(conditions <= 1 / SMALLEST_EIGENVALUE)
    except np.linalg.LinAlgError:
        factors, weak = np.empty_like(covariances), np.ones(len(covariances), dtype=bool)
    if weak.any():
        factors[weak] = _factor(_floored(covariances[weak]))
    return factors


def at_floor(factors: Float[np.ndarray, "group feature feature"]) -> bool:
    """Whether a covariance is as badly conditioned as the floor allows."""
    if not factors.size:
        return False
    # cond(Sigma) = cond(L)^2; the margin covers the rounding of the floored matrix.
    return bool((np.linalg.cond(factors) ** 2 > 0.5 / SMALLEST_EIGENVALUE).any())


def _factor(covariances: np.ndarray) -> np.ndarray:
    """Precision factors of well-conditioned covariances.

    Sigma = U U' with U upper comes from the Cholesky factor C of the reversed matrix, and
    L = U'^-1 is lower, C^-1 transposed and reversed: Sigma itself is never inverted.
    """
    factors = np.empty_like(covariances)
    # LAPACK itself: for matrices of a few columns, the way through NumPy takes ten times as long.
    for group, covariance in enumerate(covariances):
        lower, failed = lapack.dpotrf(covariance[::-1, ::-1], lower=1)
        if failed:
            raise np.linalg.LinAlgError("the covariance is not positive definite")
        factors[group] = lapack.dtrtri(lower, lower=1, overwrite_c=1)[0].T[::-1, ::-1]
    return factors


def _floored(covariances: np.ndarray) -> np.ndarray:
    """Covariances with their small eigenvalues raised to the floor."""
    values, vectors = np.linalg.eigh(covariances)
    values = np.maximum(values, SMALLEST_EIGENVALUE * values[:, -1:])
    return (vectors * values[:, None, :]) @ vectors.swapaxes(1, 2)


def _norms(matrices: np.ndarray) -> np.ndarray:
    """Frobenius norms."""
    return np.sqrt(np.einsum("gij,gij->g", matrices, matrices))


@dataclass(frozen=True)
class ConjugatePrecisions(ABC):
    """Density of the precision factors of all groups, the means integrated out.

    Where densities are stacked, their arrays have the axis of references in front.
    """

    scales: Float[np.ndarray, "group feature"]  # Inverse diagonals of L0.
    # Of the gamma variables; one a group for spherical covariances.
    shapes: Float[np.ndarray, "*reference group gamma"]
    # T; its diagonal for diagonal covariances, the sum of that for spherical ones.
    inner: Float[np.ndarray, "*reference group *gamma"]

    @classmethod
    def stacked(cls, densities: Sequence[Self]) -> Self:
        """Several densities of one structure side by side."""
        shapes = np.stack([one.shapes for one in densities])
        return cls(densities[0].scales, shapes, np.stack([one.inner for one in densities]))

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "group *feature"]:
        """Precision factors of every group, in the units of the rows."""

    @abstractmethod
    def log_densities(
        self, factors: Float[np.ndarray, "given *feature"]
    ) -> Float[np.ndarray, "reference given group"]:
        """Log densities, in the graph's variables, of each given factor as that of each group.

        All groups must have the same scales.
        """


class FullPrecisions(ConjugatePrecisions):
    """Density of the precision factors of full covariances."""

    @cached_property
    def upper(self) -> Float[np.ndarray, "*reference group feature feature"]:
        """U with T = U U'."""
        return np.linalg.cholesky(self.inner[..., ::-1, ::-1])[..., ::-1, ::-1]

    @cached_property
    def _lower(self) -> Float[np.ndarray, "group feature feature"]:
        """``U'^-1``, from B to A."""
        return np.linalg.inv(self.upper).swapaxes(1, 2)

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "group feature feature"]:
        """Precision factors of every group, in the units of the rows."""
        gammas = 2.0 * rng.standard_gamma(self.shapes)
        n_groups, d = gammas.shape
        unit = np.zeros((n_groups, d * d))
        # Bartlett's decomposition of a Wishart variable: roots of chi-squared on the diagonal.
        unit[:, :: d + 1] = np.sqrt(gammas)
        unit[:, lower_places(d)] = rng.standard_normal((n_groups, d * (d - 1) // 2))
        return (self._lower @ unit.reshape(self.inner.shape)) / self.scales[:, :, None]

    def log_densities(
        self, factors: Float[np.ndarray, "given feature feature"]
    ) -> Float[np.ndarray, "reference given group"]:
        """Log densities of each given factor as that of each group."""
        d = factors.shape[1]
        unit = factors * self.scales[0][:, None]
        b = self.upper.swapaxes(-1, -2)[:, None] @ unit[None, :, None]
        diagonal = np.einsum("mabii->mabi", b) ** 2
        total = _log_gamma(diagonal, self.shapes[:, None], 0.5).sum(axis=-1)
        squares = np.einsum("mabij,mabij->mab", b, b) - diagonal.sum(axis=-1)
        total -= 0.5 * squares + 0.25 * d * (d - 1) * LOG_2PI
        stretch = np.log(np.einsum("mbii->mbi", self.upper)) @ (2.0 + np.arange(d))
        return total + stretch[:, None, :]


class IndependentPrecisions(ConjugatePrecisions):
    """Density of the precision factors of diagonal and spherical covariances."""

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "group feature"]:
        """Square roots of the precisions of every group, in the units of the rows."""
        return np.sqrt(2.0 * rng.standard_gamma(self.shapes) / self.inner) / self.scales

    def log_densities(
        self, factors: Float[np.ndarray, "given feature"]
    ) -> Float[np.ndarray, "reference given group"]:
        """Log densities of each given factor as that of each group."""
        squares = (factors * self.scales[0])[:, : self.shapes.shape[-1]] ** 2
        rates = 0.5 * self.inner[:, None]
        return _log_gamma(squares[:, None, :], self.shapes[:, None], rates).sum(axis=-1)


def _log_gamma(values: np.ndarray, shape: np.ndarray, rate: np.ndarray | float) -> np.ndarray:
    """Log densities of gamma variables."""
    return shape * np.log(rate) - gammaln(shape) + (shape - 1) * np.log(values) - rate * values


# Real columns: normal given the component, under covariances of one shape.
#
# Which components share a covariance is the specification's to say; a shape says what one matrix
# is: all of it, its diagonal, or one number.
#
# The precision of covariance group g is :math:`P = L L'`, :math:`L = L_0 A`, with :math:`L_0 =
# \mathrm{diag}(1 / (s \sqrt{\nu_0 + G_g}))` for column scales s, and A lower triangular with
# diagonal :math:`\sqrt d` (``precision_diagonal``) and strict lower part ``precision_lower``: all
# of it, its diagonal, or one number.
#
# The M-step, with counts :math:`n`, :math:`G_g` means and the scatter :math:`S_g` about the new
# ones:
#
# .. math::
#    \mu_k &= (\textstyle\sum_n r_{nk} x_n + \kappa_0 m_0) / (n_k + \kappa_0) \\
#    \Sigma_g &= \frac{S_g + (\nu_0 + G_g) S_0
#        + \kappa_0 \sum_k (\mu_k - m_0)(\mu_k - m_0)'}{n_g + \nu_0 + G_g}


Vectors = Float[np.ndarray, "component feature"]
Matrices = Float[np.ndarray, "component *feature"]
Factors = Float[np.ndarray, "group *feature"]
Weights = Float[np.ndarray, "component _"]
ByCell = Float[np.ndarray, "row component feature"]


START_VARIANCE = 0.5
"""Variance of a fresh component, where the whole column has 1."""


class KernelNormals(NamedTuple):
    """Normals as the compiled kernels read them, and the log normalisers of the components."""

    constants: np.ndarray
    full: FullGaussians | None
    holes: GaussiansWithHoles | None
    diagonal: DiagonalGaussians | None


class RealColumns(ABC):
    """The real columns of a mixture; a subclass is one shape of their covariances."""

    conjugate_family: type[ConjugatePrecisions]

    def __init__(self, specification: MixtureSpecification) -> None:
        self.specification = specification
        self.n_components, self.n_features = specification.n_components, specification.n_features
        self.group = specification.covariance_group
        self.n_groups = specification.group_sizes.size

    # Variables of the graph

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Free variables: the means, and what stands behind the precision factors."""
        if not self.n_features:
            return ()
        dims, shape = (names.COMPONENT, names.FEATURE), (self.n_components, self.n_features)
        return (Variable(names.MEANS, dims, shape, "identity"), *self._precision_variables())

    @abstractmethod
    def _precision_variables(self) -> tuple[Variable, ...]:
        """The variables behind the precision factors."""

    def values(self, point: Point, hyper: Hyper) -> dict[str, np.ndarray]:
        """Values of the variables at a point, in the units of the prior."""
        values = {names.MEANS: point.means}
        if self.n_features:
            scales = self.row_scales(hyper)
            values |= self._precision_values(point.precisions_cholesky * scales)
        return values

    @abstractmethod
    def _precision_values(self, unit: Factors) -> dict[str, np.ndarray]:
        """Values of the variables behind factors in units of the prior."""

    def placed(self, point: Point, values: Values, hyper: Hyper) -> Point:
        """The point at given values of the variables."""
        means = values.get(names.MEANS, np.zeros((self.n_components, 0)))
        factors = self.factors(values, hyper)
        return replace(point, means=means, precisions_cholesky=factors)

    def factors(self, values: Values, hyper: Hyper) -> Float[np.ndarray, "*shape"]:
        """Precision factors of all groups at given values, of one point or of many."""
        if not self.n_features:
            return np.zeros((self.n_groups, *self.matrix_shape))
        batch = values[names.MEANS].shape[:-2]
        roots = np.sqrt(values[names.PRECISION_DIAGONAL]).reshape((*batch, self.n_groups, -1))
        return self._unit_factors(roots, values) / self.row_scales(hyper)

    @abstractmethod
    def _unit_factors(
        self, roots: Float[np.ndarray, "*batch group root"], values: Values
    ) -> Float[np.ndarray, "*shape"]:
        """Factors in units of the prior whose diagonal has these roots."""

    def base_scales(self, hyper: Hyper) -> Float[np.ndarray, "group feature"]:
        """Inverse diagonal of L0: ``s sqrt(nu0 + G)`` of every covariance group."""
        strength = hyper.degrees_of_freedom + self.specification.group_sizes
        return np.sqrt(strength)[:, None] * hyper.scale

    def row_scales(self, hyper: Hyper) -> Float[np.ndarray, "*shape"]:
        """The base scales as what multiplies the rows of a factor."""
        scales = self.base_scales(hyper)
        return scales.reshape(*scales.shape, *(1,) * (len(self.matrix_shape) - 1))

    @property
    def columns_a_gamma(self) -> int:
        """Columns whose precisions are the same gamma variable."""
        return 1

    def prior(self, hyper: Hyper) -> NormalPrior | None:
        """The declared prior, prepared for many points; None without columns."""
        return NormalPrior(self, hyper) if self.n_features else None

    # Matrices of this shape

    @property
    @abstractmethod
    def matrix_shape(self) -> tuple[int, ...]:
        """Shape of one precision factor as an array."""

    @abstractmethod
    def diagonal(self, matrices: Factors) -> Float[np.ndarray, "group feature"]:
        """Diagonals."""

    @abstractmethod
    def covariances(self, factors: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape d d"]:
        """Covariances of precision factors as whole matrices."""

    @abstractmethod
    def spread(
        self, noise: Float[np.ndarray, "component row d"], factors: Matrices
    ) -> Float[np.ndarray, "component row d"]:
        """Standard normal rows, under every component, made noise of its covariance."""

    @abstractmethod
    def outer(self, vectors: Vectors, factor: float | Weights) -> Matrices:
        """``factor v v'`` for every component."""

    @abstractmethod
    def product(self, matrices: Factors, factors: Factors) -> Factors:
        """Matrix products."""

    @abstractmethod
    def of_diagonal(self, diagonal: Float[np.ndarray, "*batch d"]) -> Float[np.ndarray, "*shape"]:
        """Matrices of given diagonals."""

    def pooled(self, by_column: Float[np.ndarray, "*batch d"]) -> Float[np.ndarray, "*batch gamma"]:
        """Sums over the columns of each gamma variable."""
        return by_column

    @abstractmethod
    def whiten(
        self, deviations: Float[np.ndarray, "*batch component row d"], factors: Matrices
    ) -> Float[np.ndarray, "*batch component row d"]:
        """``L' (x - mu)`` of rows under every component."""

    # Prior: what depends on the shape

    @abstractmethod
    def unit_entries(self, unit: Factors) -> tuple[np.ndarray, np.ndarray]:
        """Free entries of A, and those on its diagonal, the roots of ``precision_diagonal``."""

    def lower_scales(
        self, scales: Float[np.ndarray, "group feature"]
    ) -> Float[np.ndarray, "group entry"]:
        """The base scales of the rows that the entries of ``precision_lower`` are in."""
        return np.zeros((self.n_groups, 0))

    def lower_gradient(
        self, stress: Factors, values: Values, scales: Float[np.ndarray, "group entry"]
    ) -> dict[str, np.ndarray]:
        """Gradient in ``precision_lower``, where there is one; stress is ``(S + kappa0 M) L``."""
        return {}

    @abstractmethod
    def precision_times(self, force: Vectors, factors: Matrices) -> Vectors:
        """``P f`` for every component."""

    # Another order, and solving

    def reordered(self, point: Point, order: Order) -> Point:
        """The point of the columns in another order."""
        factors = self._reordered(point.precisions_cholesky, order.features)
        return replace(
            point, means=point.means.take(order.features, 1), precisions_cholesky=factors
        )

    def _reordered(
        self, factors: Factors, features: Int[np.ndarray, " feature"]
    ) -> Float[np.ndarray, "group *feature"]:
        """Precision factors of the columns in another order."""
        return factors.take(features, 1)

    def inverse(self, factors: Matrices) -> Float[np.ndarray, "component *entry"]:
        """``L^-1``."""
        return 1 / self.diagonal(factors)

    def inverse_times(
        self, inverse: Float[np.ndarray, "component *entry"], vectors: Vectors, transposed: bool
    ) -> Vectors:
        """``L^-1`` or ``L^-T`` times a vector of every component."""
        return inverse * vectors

    def by_component(self, factors: Factors) -> Matrices:
        """The factor that each component uses."""
        return factors if self.n_groups == self.n_components else factors[self.group]

    # Statistics and mode

    def no_moments(self) -> tuple[Vectors, Matrices]:
        """First and second moments of an empty table."""
        first = np.zeros((self.n_components, self.n_features))
        return first, np.zeros((self.n_components, *self.matrix_shape))

    def mode(self, point: Point, statistics: Statistics, hyper: Hyper) -> Point:
        """Means and precision factors of the M-step.

        A component without rows keeps m0 and S0: the prior preserves the mean covariance instead
        of shrinking it.
        """
        if not self.n_features:
            return point
        kappa, pull = hyper.mean_precision, point.means - hyper.location
        rows = statistics.counts[:, None] + kappa
        shift = (statistics.first - kappa * pull) / rows
        means = point.means + shift
        # The scatter about the new means and the prior's pull on these, both from the old ones.
        scatter = statistics.second + self.outer(pull, kappa)
        scatter -= self.outer(shift, rows)
        strength = hyper.degrees_of_freedom + self.specification.group_sizes
        total = sum_by_group(statistics.counts, self.specification) + strength
        prior = strength[:, None] * hyper.scale**2
        sums = sum_by_group(scatter, self.specification)
        factors = self._mode_factors(sums, prior, total, hyper.scale)
        return replace(point, means=means, precisions_cholesky=factors)

    @abstractmethod
    def _mode_factors(
        self,
        scatter: Factors,
        prior: Float[np.ndarray, "group feature"],
        total: Float[np.ndarray, " group"],
        scale: Float[np.ndarray, " feature"],
    ) -> Factors:
        """Precision factors of the covariances ``(scatter + diag(prior)) / total``."""

    def begun(self, point: Point, rows: Rows, memberships: Memberships, hyper: Hyper) -> Point:
        """Means of the observed cells, and covariances of ``START_VARIANCE``."""
        seen = memberships.T @ ~np.isnan(rows.real)
        sums = memberships.T @ np.nan_to_num(rows.real)
        means = sums / (seen + hyper.mean_precision)
        factors = self.of_diagonal(np.full((self.n_groups, self.n_features), START_VARIANCE**-0.5))
        return replace(point, means=means, precisions_cholesky=factors)

    def embedding(self, rows: Rows) -> Float[np.ndarray, "row feature"]:
        """Cells in standard units, the column mean where missing."""
        return np.nan_to_num(rows.real)

    def at_floor(self, factors: Factors) -> bool:
        """Whether some covariance has eigenvalues at the floor."""
        return False

    # Rows

    @abstractmethod
    def holes(self, observed: Bool[np.ndarray, "row feature"]) -> Int[np.ndarray, " row"]:
        """Number of missing cells that depend on each other given a row's component."""

    @abstractmethod
    def components(self, means: Vectors, factors: Matrices) -> Components:
        """Components at a point, ready for blocks of rows."""

    def drawn(
        self,
        real: Float[np.ndarray, "row feature"],
        components: Int[np.ndarray, "draw row"],
        point: Point,
        noise: Float[np.ndarray, "draw row feature"],
    ) -> Float[np.ndarray, "draw row feature"]:
        """Cells of many draws, each from its components and standard normal noise."""
        whole = np.repeat(real[None], len(components), axis=0)
        for block in self.conditionals(real, point):
            lane, hole = np.arange(block.rows.size), np.isnan(real[block.rows])
            mine, own = components[:, block.rows], noise[:, block.rows]
            if block.roots is None:
                steps = own * np.sqrt(block.variances[lane, mine])
            else:
                steps, m = np.zeros_like(own), block.roots.shape[-1]
                moved = np.einsum("snij,snj->sni", block.roots[lane, mine], own[..., :m])
                steps[:, hole] = moved.reshape(len(own), -1)
            cells = block.means[lane, mine] + steps
            whole[:, block.rows] = np.where(hole, cells, whole[:, block.rows])
        return whole

    def sampled(self, rows: Rows, components: Assignment, point: Point, rng: Rng) -> Rows:
        """Rows drawn given their components."""
        noise = rng.standard_normal(rows.real.shape)
        real, factors = point.means[components], self.by_component(point.precisions_cholesky)
        for k in range(self.n_components):
            mine = components == k
            real[mine] += self.spread(noise[None, mine], factors[k : k + 1])[0]
        return replace(rows, real=real)

    def conditionals(
        self, real: Float[np.ndarray, "row feature"], point: Point
    ) -> Iterator[Conditional]:
        """Conditional moments under every component; the blocks cover every row once.

        Rows and point are in standard units.
        """
        factors = self.by_component(point.precisions_cholesky)
        holes = self.holes(~np.isnan(real))
        for m in np.unique(holes):
            same = np.flatnonzero(holes == m)
            for part in in_blocks(same.size, self.n_components * max(self.n_features, int(m) ** 2)):
                rows = same[part]
                yield self.conditional(rows, real[rows], point.means, factors)

    @abstractmethod
    def conditional(
        self,
        rows: Int[np.ndarray, " row"],
        real: Float[np.ndarray, "row feature"],
        means: Vectors,
        factors: Matrices,
    ) -> Conditional:
        """Moments of rows that :meth:`holes` does not keep apart."""

    @abstractmethod
    def leave_one_out(
        self, real: Float[np.ndarray, "row feature"], means: Vectors, factors: Factors
    ) -> tuple[ByCell, ByCell]:
        """``x_j - E[x_j | rest, k]`` and ``1 / Var[x_j | rest, k]``; 0 and 1 where missing."""

    # Kernels

    @abstractmethod
    def kernel_normals(self, means: Vectors, factors: Factors, with_holes: bool) -> KernelNormals:
        """The normals at a point in the form that the kernels read."""

    @abstractmethod
    def kernel_room(self, means: Vectors, with_holes: bool) -> tuple[np.ndarray, KernelNormals]:
        """Room for precision factors, and for normals that the kernels write themselves."""

    # Conjugate draws

    @abstractmethod
    def assigned(
        self,
        real: Float[np.ndarray, "row feature"],
        components: Assignment,
        member: Bool[np.ndarray, "component row"],
    ) -> tuple[Vectors, Vectors, Matrices]:
        """Cells, their means and the scatter about these, of rows whose components are known."""

    def posterior(
        self, cells: Vectors, centres: Vectors, scatter: Matrices, hyper: Hyper
    ) -> tuple[ConjugatePrecisions, Vectors, Vectors]:
        """Law of the precision factors given such rows, the means integrated out."""
        kappa, location = hyper.mean_precision, hyper.location
        strength = cells + kappa
        about = scatter + self.outer(centres - location, cells * kappa / strength)
        sums = sum_by_group(about, self.specification)
        inner = self.inner(sums, self.base_scales(hyper))
        by_group = sum_by_group(cells, self.specification)
        precisions = self.conjugate(by_group, inner, hyper)
        return precisions, (cells * centres + kappa * location) / strength, strength

    def draw_means(
        self, centres: Vectors, strength: Vectors, factors: Matrices, rng: Rng
    ) -> Vectors:
        """Means of every component given its precision factor."""
        noise = rng.standard_normal(centres.shape) / np.sqrt(strength)
        return centres + self.spread(noise[:, None, :], factors)[:, 0]

    def conjugate(
        self, cells: Float[np.ndarray, "group feature"], inner: Factors, hyper: Hyper
    ) -> ConjugatePrecisions:
        """Density of the prior's family behind so many cells; inner is T of every column."""
        shapes = 1 + self.pooled(0.5 * (cells + hyper.degrees_of_freedom))
        scales = self.base_scales(hyper)
        return self.conjugate_family(scales, shapes, self.pooled(inner))

    @abstractmethod
    def inner(self, scatter: Factors, scales: Float[np.ndarray, "group feature"]) -> Factors:
        """``T = I + L0' S L0``."""

    @abstractmethod
    def inner_at(
        self,
        factors: Factors,
        strength: Float[np.ndarray, "group feature"],
        scales: Float[np.ndarray, "group feature"],
    ) -> Factors:
        """T of the density behind so many rows whose mode has these factors."""


class NormalPrior:
    """Prior of means and precision factors of any shape.

    ``gamma_powers`` are the powers of ``precision_diagonal``, without and with Jacobian, and
    ``rate`` is that of its gamma distribution.
    """

    def __init__(self, law: RealColumns, hyper: Hyper) -> None:
        self._law, self._specification = law, law.specification
        sizes, d = law.specification.group_sizes, law.n_features
        self._location = hyper.location
        self._kappa = kappa = hyper.mean_precision
        self.rate = 0.5 * law.columns_a_gamma
        shape = self.rate * hyper.degrees_of_freedom + 1
        n_gammas = d // law.columns_a_gamma
        powers = np.repeat(shape - 1 + self.rate * sizes, n_gammas).reshape(-1, n_gammas)
        self.gamma_powers = [powers, powers + 1]
        scales = law.base_scales(hyper)
        self._lower_scales = law.lower_scales(scales)
        self._row_scales = law.row_scales(hyper)
        self.constant = powers.size * float(shape * np.log(self.rate) - gammaln(shape))
        self.constant += 0.5 * law.n_components * d * float(np.log(kappa) - LOG_2PI)
        self.constant -= float(sizes @ np.log(scales).sum(axis=1))
        self.constant -= 0.5 * self._lower_scales.size * LOG_2PI

    def log_density(self, parameters: Point, jacobian: bool) -> float:
        """Log density at one point in nats, but for the constant."""
        law, factors = self._law, parameters.precisions_cholesky
        entries, roots = law.unit_entries(factors * self._row_scales)
        # Under full covariances the rate is 1/2, as is that of the squares below the diagonal.
        total = 2 * float(np.vdot(self.gamma_powers[jacobian], np.log(roots)))
        total -= self.rate * float(np.vdot(entries, entries))
        pull = parameters.means - self._location
        if law.n_groups == 1:  # all are under one factor, in one product
            whitened = law.whiten(pull[None], factors)
        else:
            whitened = law.whiten(pull[:, None, :], law.by_component(factors))
        return total - 0.5 * self._kappa * float(np.vdot(whitened, whitened))

    def gradient(
        self, values: Values, parameters: Point, statistics: Statistics, jacobian: bool
    ) -> dict[str, np.ndarray]:
        """Gradient of log likelihood plus log prior in the coordinates of every variable."""
        law, factors = self._law, parameters.precisions_cholesky
        pull = parameters.means - self._location
        force = statistics.first - self._kappa * pull
        # (S + kappa0 M) L: what pulls a precision factor towards zero.
        scatter = statistics.second + law.outer(pull, self._kappa)
        stress = law.product(sum_by_group(scatter, self._specification), factors)
        # In log d, where dL_ii / d log d_i = L_ii / 2.
        diagonal = values[names.PRECISION_DIAGONAL].reshape(len(factors), -1)
        counts = sum_by_group(statistics.counts, self._specification)[:, None]
        squares = law.pooled(law.diagonal(stress) * law.diagonal(factors))
        by_log = self.rate * (counts - diagonal) - 0.5 * squares
        by_log += self.gamma_powers[jacobian]
        return {
            names.MEANS: law.precision_times(force, law.by_component(factors)),
            names.PRECISION_DIAGONAL: by_log,
            **law.lower_gradient(stress, values, self._lower_scales),
        }
