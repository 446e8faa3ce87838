"""Real columns: normal given the component, under precisions that are products of factors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import gammaln

from bayesrbf.base import names
from bayesrbf.base.rows import MixtureSpecification, Order, Variable, in_blocks
from bayesrbf.mixture.gaussian import LOG_2PI, Conditional, components_at
from bayesrbf.mixture.matrices import Held, Matrices, Vectors, lower_indices
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

# Real columns: normal given the component, under covariances of one shape.
#
# Which components share a covariance is the specification's to say; a shape says what one matrix
# is: all of it, its diagonal, or one number.


START_VARIANCE = 0.5
"""Variance of a component at the start; columns have variance 1 in standard units."""


class RealColumns(ABC):
    r"""The real columns of a mixture; a subclass is one shape of their covariances.

    The precision of covariance group g, of :math:`G_g` means, is

    .. math:: P_g = L L', \quad L = L_0 A, \quad
        L_0 = \mathrm{diag}\bigl(1 / (s \sqrt{\nu_0 + G_g})\bigr)

    for column scales s, and A lower triangular with a positive diagonal.
    A shape defines the stored form of its matrices and the free variables of the factor A of a
    group: the first seven methods. All other methods are shared.
    """

    form: ClassVar[type[Matrices]]
    depends_on_order: ClassVar[bool] = False
    """Whether the order of the columns means something, as where correlations fall with distance.

    Such a shape is fitted to the columns in the user's order, and no other.
    """

    def __init__(self, specification: MixtureSpecification) -> None:
        self.specification = specification
        self.n_components, self.n_features = specification.n_components, specification.n_features
        self.group = specification.covariance_group
        self.n_groups = specification.group_sizes.size
        self.matrices = self.form(self.n_features)

    # Methods that a shape defines. All arrays have an axis of groups.

    @abstractmethod
    def shape_variables(self) -> tuple[Variable, ...]:
        """Free variables of one group, with coordinates on the log ("log") or identity scale.

        Variables under "identity" are standard normal in the prior.
        """

    @abstractmethod
    def shape_values(self, unit: Held) -> dict[str, np.ndarray]:
        """Values of the free variables that give factors A, by name."""

    @abstractmethod
    def unit_factors(self, values: Values) -> Float[np.ndarray, "*batch group *entry"]:
        """Factors A from values of the free variables, at one point or at many."""

    @abstractmethod
    def shape_gradient(self, values: Values, pull: Pull) -> dict[str, np.ndarray]:
        """Gradient of the log posterior in the variables, or in their logarithms."""

    @abstractmethod
    def log_normaliser(self, freedom: float) -> float:
        """Log normaliser of the gamma densities of all groups under nu0, ``freedom``."""

    def nearest(self, covariances: Held, scale: Float[np.ndarray, " feature"]) -> Held:
        """Maximum-likelihood covariances of this shape from unrestricted covariances.

        ``scale`` are the scales of the columns.
        """
        return covariances

    @abstractmethod
    def conjugate(
        self, scales: Vectors, cells: Float[np.ndarray, "*batch d"], inner: Held
    ) -> ConjugatePrecisions:
        """Density of the factors given ``cells`` observed cells of every column, nu0 included.

        ``inner`` is T, and ``scales`` are the base scales.
        """

    # Variables of the graph

    @cached_property
    def _group_variables(self) -> tuple[Variable, ...]:
        """Free variables of one covariance group; empty without real columns."""
        return self.shape_variables() if self.n_features else ()

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Free variables: the means, then the variables of the precision factors."""
        if not self.n_features:
            return ()
        dims = (names.COMPONENT, names.FEATURE)
        shape = (self.n_components, self.n_features)
        groups, sizes = self.specification.group_dims, self.specification.group_shape
        of_groups = [
            replace(v, dims=(*groups, *v.dims), shape=(*sizes, *v.shape))
            for v in self._group_variables
        ]
        return (Variable(names.MEANS, dims, shape, "identity"), *of_groups)

    @cached_property
    def logs(self) -> tuple[str, ...]:
        """Names of the variables of the shape that have log coordinates."""
        return tuple(v.name for v in self._group_variables if v.transform == "log")

    def values(self, point: Point, hyper: Hyper) -> dict[str, np.ndarray]:
        """Values of the variables at a point, in the units of the prior."""
        values = {names.MEANS: point.means}
        if self.n_features:
            group_values = self.shape_values(point.precisions_cholesky * self.row_scales(hyper))
            values |= {v.name: group_values[v.name].reshape(v.shape) for v in self.variables[1:]}
        return values

    def with_values(self, point: Point, values: Values, hyper: Hyper) -> Point:
        """``point`` with means and precision factors from the values of the variables."""
        means = values.get(names.MEANS, np.zeros((self.n_components, 0)))
        factors = self.factors(values, hyper)
        return replace(point, means=means, precisions_cholesky=factors)

    def factors(self, values: Values, hyper: Hyper) -> Float[np.ndarray, "*batch group *entry"]:
        """Precision factors of all groups from values of the variables, at one point or many."""
        if not self.n_features:
            return np.zeros((self.n_groups, *self.matrices.shape))
        return self.unit_factors(self.of_groups(values)) / self.row_scales(hyper)

    def of_groups(self, values: Values) -> dict[str, np.ndarray]:
        """Values of the shape's variables with one axis of groups, at one point or many."""
        groups = (*values[names.MEANS].shape[:-2], self.n_groups)
        return {v.name: values[v.name].reshape(*groups, *v.shape) for v in self._group_variables}

    def split(self, side_by_side: Float[np.ndarray, "group number"]) -> dict[str, np.ndarray]:
        """Values of the shape's variables by name, from rows that concatenate them."""
        edges = np.cumsum([v.size for v in self._group_variables])[:-1]
        pairs = zip(self._group_variables, np.split(side_by_side, edges, axis=1), strict=True)
        return {v.name: block.reshape(len(block), *v.shape) for v, block in pairs}

    def base_scales(self, hyper: Hyper) -> Float[np.ndarray, "group feature"]:
        """Inverse diagonal of L0: ``s sqrt(nu0 + G)`` of every covariance group."""
        sample_size = hyper.degrees_of_freedom + self.specification.group_sizes
        return np.sqrt(sample_size)[:, None] * hyper.scale

    def row_scales(self, hyper: Hyper) -> Float[np.ndarray, "group feature *one"]:
        """Base scales, shaped to multiply the rows of a factor."""
        return self.of_rows(self.base_scales(hyper))

    def of_rows(self, scales: Vectors) -> Float[np.ndarray, "matrix feature *one"]:
        """``scales`` of columns, shaped to multiply the rows of matrices in the stored form."""
        return scales.reshape(*scales.shape, *(1,) * (len(self.matrices.shape) - 1))

    def prior(self, hyper: Hyper) -> NormalPrior | None:
        """The declared prior, prepared for many points; None without columns."""
        return NormalPrior(self, hyper) if self.n_features else None

    # Points

    def by_component(
        self, factors: Float[np.ndarray, "group *entry"]
    ) -> Float[np.ndarray, "component *entry"]:
        """Precision factor of every component."""
        return factors if self.n_groups == self.n_components else factors[self.group]

    def reordered(self, point: Point, order: Order) -> Point:
        """``point`` with its real columns in another order."""
        factors = self.matrices.reordered(point.precisions_cholesky, order.features)
        means = point.means.take(order.features, 1)
        return replace(point, means=means, precisions_cholesky=factors)

    def no_moments(self) -> tuple[Vectors, Held]:
        """First and second moments of an empty table."""
        first = np.zeros((self.n_components, self.n_features))
        return first, np.zeros((self.n_components, *self.matrices.shape))

    def mode(self, point: Point, statistics: Statistics, hyper: Hyper) -> Point:
        r"""Means and precision factors of the M-step.

        With the scatter :math:`S_g` about the new means, the covariance of the shape is that of
        maximum likelihood given

        .. math::
           \mu_k &= (\textstyle\sum_n r_{nk} x_n + \kappa_0 m_0) / (n_k + \kappa_0) \\
           \Sigma_g &= \frac{S_g + (\nu_0 + G_g) S_0
               + \kappa_0 \sum_k (\mu_k - m_0)(\mu_k - m_0)'}{n_g + \nu_0 + G_g}

        A component without rows keeps m0 and S0: the prior preserves the mean covariance instead
        of shrinking it.
        """
        if not self.n_features:
            return point
        kappa, pull = hyper.mean_precision, point.means - hyper.location
        rows = statistics.counts[:, None] + kappa
        shift = (statistics.first - kappa * pull) / rows
        means = point.means + shift
        # Scatter about the new means plus kappa_0 (mu - m_0)(mu - m_0)', from the old means.
        scatter = statistics.second + self.matrices.outer(pull, kappa)
        scatter -= self.matrices.outer(shift, rows)
        sample_size = hyper.degrees_of_freedom + self.specification.group_sizes
        total = sum_by_group(statistics.counts, self.specification) + sample_size
        covariances = sum_by_group(scatter, self.specification)
        self.matrices.add_to_diagonal(covariances, sample_size[:, None] * hyper.scale**2)
        covariances /= total.reshape(-1, *(1,) * len(self.matrices.shape))
        factors = self.matrices.factors(self.nearest(covariances, hyper.scale))
        return replace(point, means=means, precisions_cholesky=factors)

    def initial(self, point: Point, rows: Rows, memberships: Memberships, hyper: Hyper) -> Point:
        """``point`` with shrunken means of observed cells and covariances ``START_VARIANCE I``."""
        seen = memberships.T @ ~np.isnan(rows.real)
        sums = memberships.T @ np.nan_to_num(rows.real)
        means = sums / (seen + hyper.mean_precision)
        roots = np.full((self.n_groups, self.n_features), START_VARIANCE**-0.5)
        return replace(point, means=means, precisions_cholesky=self.matrices.of_diagonal(roots))

    # Rows

    def embedding(self, rows: Rows) -> Float[np.ndarray, "row feature"]:
        """Cells in standard units, the column mean where missing."""
        return np.nan_to_num(rows.real)

    def holes(self, observed: Bool[np.ndarray, "row feature"]) -> Int[np.ndarray, " row"]:
        """Number of missing cells of a row that are dependent given the component."""
        if self.specification.independent:
            return np.zeros(len(observed), dtype=int)
        return (~observed).sum(axis=1)

    def drawn(
        self,
        real: Float[np.ndarray, "row feature"],
        components: Int[np.ndarray, "draw row"],
        point: Point,
        noise: Float[np.ndarray, "draw row feature"],
    ) -> Float[np.ndarray, "draw row feature"]:
        """Rows of every draw, missing cells from ``p(x_m | x_o, k)`` by normal ``noise``."""
        whole = np.repeat(real[None], len(components), axis=0)
        for block in self.conditionals(real, point):
            lane = np.arange(block.rows.size)
            hole = np.isnan(real[block.rows])
            k, normal = components[:, block.rows], noise[:, block.rows]
            if block.roots is None:
                steps = normal * np.sqrt(block.variances[lane, k])
            else:
                steps = np.zeros_like(normal)
                m = block.roots.shape[-1]
                offsets = np.einsum("snij,snj->sni", block.roots[lane, k], normal[..., :m])
                steps[:, hole] = offsets.reshape(len(normal), -1)
            cells = block.means[lane, k] + steps
            whole[:, block.rows] = np.where(hole, cells, whole[:, block.rows])
        return whole

    def sampled(self, rows: Rows, components: Assignment, point: Point, rng: Rng) -> Rows:
        """Rows with all real cells drawn given their components, in the units of the point."""
        noise = rng.standard_normal(rows.real.shape)
        real, factors = point.means[components], self.by_component(point.precisions_cholesky)
        for k in range(self.n_components):
            members = components == k
            real[members] += self.matrices.spread(noise[None, members], factors[k : k + 1])[0]
        return replace(rows, real=real)

    def conditionals(
        self, real: Float[np.ndarray, "row feature"], point: Point
    ) -> Iterator[Conditional]:
        """Conditional moments under every component; the blocks cover every row once.

        Rows and point are in standard units.
        """
        factors = point.precisions_cholesky
        # One covariance of all components has one law of the missing cells, not one a component.
        components = components_at(
            point.means, factors if self.n_groups == 1 else self.by_component(factors)
        )
        holes = self.holes(~np.isnan(real))
        for m in np.unique(holes):
            same = np.flatnonzero(holes == m)
            for rows in in_blocks(same.size, self.n_components * max(self.n_features, int(m) ** 2)):
                yield components.conditional(same[rows], real[same[rows]])


@dataclass(frozen=True)
class Pull:
    """Gradient of the log posterior in the factors A, before a shape maps it to its variables."""

    matrices: Matrices
    row_scales: Float[np.ndarray, "group feature *one"]
    counts: Float[np.ndarray, "group _"]  # Rows under each factor.
    powers: Float[np.ndarray, "group _"]  # Exponents of A_ii^2 in the prior.
    factors: Held  # L.
    scatter: Held  # S + kappa0 M, where M is the scatter of the means about the prior's.

    @cached_property
    def stress(self) -> Held:
        """``(S + kappa0 M) L``."""
        return self.matrices.product(self.scatter, self.factors)

    def by_log(self, squares: Float[np.ndarray, "group _"]) -> Vectors:
        """Gradient in ``log A_ii^2``; ``squares`` are ``A_ii^2``."""
        stress = self.matrices.diagonal(self.stress) * self.matrices.diagonal(self.factors)
        return 0.5 * (self.counts - squares) - 0.5 * stress + self.powers

    @property
    def by_entry(self) -> Held:
        """Gradient in A_ij below the diagonal, without the prior's -A_ij.

        L^-T is upper triangular, so only the scatter contributes.
        """
        return self.stress / -self.row_scales


class NormalPrior:
    r"""Prior of means and precision factors of any shape.

    Without the Jacobian of the coordinates it is, but for a constant, the same function of A under
    every shape:

    .. math::
       \log p(A, \mu) = \mathrm{const} + \sum_g \Big( (\nu_0 + G_g) \sum_i \log A_{g,ii}
           - \tfrac12 \sum_{ij} A_{g,ij}^2 \Big)
           - \tfrac{\kappa_0}{2} \sum_k |L'(\mu_k - m_0)|^2,

    in which the normaliser of the means has the term :math:`G_g`.
    """

    def __init__(self, law: RealColumns, hyper: Hyper) -> None:
        self._law, self._specification = law, law.specification
        sizes, d = law.specification.group_sizes, law.n_features
        self._location = hyper.location
        self._kappa = kappa = hyper.mean_precision
        alpha = 0.5 * hyper.degrees_of_freedom + 1  # of the gamma law of one column's precision
        self._powers = np.repeat(alpha - 1 + 0.5 * sizes, d).reshape(-1, d)
        self._row_scales = law.row_scales(hyper)
        self.constant = law.log_normaliser(hyper.degrees_of_freedom)
        self.constant += 0.5 * law.n_components * d * float(np.log(kappa) - LOG_2PI)
        # From the normaliser of the means: log L_ii = log A_ii less this.
        self.constant -= float(sizes @ np.log(law.base_scales(hyper)).sum(axis=1))
        entries = sum(v.size for v in law.shape_variables() if v.name not in law.logs)
        self.constant -= 0.5 * law.n_groups * entries * LOG_2PI

    def log_density(self, parameters: Point, jacobian: bool) -> float:
        """Log density at one point in nats, without ``constant``."""
        law, factors = self._law, parameters.precisions_cholesky
        unit = factors * self._row_scales
        total = 2 * float(np.vdot(self._powers, np.log(law.matrices.diagonal(unit))))
        total -= 0.5 * float(np.vdot(unit, unit))
        if jacobian:
            group_values = law.shape_values(unit)
            total += sum(float(np.log(group_values[name]).sum()) for name in law.logs)
        pull = parameters.means - self._location
        if law.n_groups == 1:  # all are under one factor, in one product
            whitened = law.matrices.whiten(pull[None], factors)
        else:
            whitened = law.matrices.whiten(pull[:, None, :], law.by_component(factors))
        return total - 0.5 * self._kappa * float(np.vdot(whitened, whitened))

    def gradient(
        self, values: Values, parameters: Point, statistics: Statistics, jacobian: bool
    ) -> dict[str, np.ndarray]:
        """Gradient of log likelihood plus log prior in the coordinates, by name of the variable."""
        law, factors = self._law, parameters.precisions_cholesky
        pull = parameters.means - self._location
        force = statistics.first - self._kappa * pull
        scatter = statistics.second + law.matrices.outer(pull, self._kappa)
        counts = sum_by_group(statistics.counts, self._specification)[:, None]
        scatter = sum_by_group(scatter, self._specification)
        of_rows = Pull(law.matrices, self._row_scales, counts, self._powers, factors, scatter)
        gradient = law.shape_gradient(law.of_groups(values), of_rows)
        if jacobian:
            for name in law.logs:
                gradient[name] += 1.0
        by_means = law.matrices.precision_times(law.by_component(factors), force)
        return gradient | {names.MEANS: by_means}


# Conjugate laws of precision factors.
#
# The prior, the posterior of rows with known components and the proposals of jumps between modes
# belong to one conjugate family.


@dataclass(frozen=True)
class ConjugatePrecisions(ABC):
    """Density of the precision factors of all groups, the means integrated out.

    Where densities are stacked, their arrays have the axis of references in front.
    """

    scales: Float[np.ndarray, "group feature"]  # Inverse diagonals of L0.
    shapes: Float[np.ndarray, "*reference group gamma"]
    # T, or the sums over T's diagonal that are twice the rates of the gamma variables.
    inner: Float[np.ndarray, "*reference group *gamma"]

    @classmethod
    def stacked(cls, densities: Sequence[Self]) -> Self:
        """Densities of one structure, stacked on a first axis of references."""
        shapes = np.stack([density.shapes for density in densities])
        return replace(
            densities[0], shapes=shapes, inner=np.stack([density.inner for density in densities])
        )

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "group *feature"]:
        """Precision factors of every group, in the units of the rows."""

    @abstractmethod
    def log_densities(
        self, factors: Float[np.ndarray, "point *feature"]
    ) -> Float[np.ndarray, "reference point group"]:
        """Log density of every factor under every group, in the variables of the graph.

        All groups must have the same scales.
        """


class FullPrecisions(ConjugatePrecisions):
    r"""Density of the precision factors of full covariances.

    With :math:`T = I + L_0' S L_0 = U U'`, U upper triangular,

    .. math::
       A = U'^{-1} B, \quad B_{ii}^2 \sim \mathrm{Gamma}((n + \nu_0)/2 + 1,\ 1/2), \quad
       B_{ij} \sim N(0, 1).
    """

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
        unit[:, lower_indices(d)] = rng.standard_normal((n_groups, d * (d - 1) // 2))
        return (self._lower @ unit.reshape(self.inner.shape)) / self.scales[:, :, None]

    def log_densities(
        self, factors: Float[np.ndarray, "point feature feature"]
    ) -> Float[np.ndarray, "reference point group"]:
        """Log density of every factor under every group, in the variables of the graph."""
        d = factors.shape[1]
        unit = factors * self.scales[0][:, None]
        b = self.upper.swapaxes(-1, -2)[:, None] @ unit[None, :, None]
        diagonal = np.einsum("mabii->mabi", b) ** 2
        total = _log_gamma(diagonal, self.shapes[:, None], 0.5).sum(axis=-1)
        squares = np.einsum("mabij,mabij->mab", b, b) - diagonal.sum(axis=-1)
        total -= 0.5 * squares + 0.25 * d * (d - 1) * LOG_2PI
        log_jacobian = np.log(np.einsum("mbii->mbi", self.upper)) @ (2.0 + np.arange(d))
        return total + log_jacobian[:, None, :]


@dataclass(frozen=True)
class GammaPrecisions(ConjugatePrecisions):
    """Density of the precision factors of diagonal or spherical covariances: gamma variables."""

    law: RealColumns

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "group *feature"]:
        """Precision factors of every group, in the units of the rows."""
        if not self.law.n_features:
            return np.zeros((len(self.scales), *self.law.matrices.shape))
        gammas = 2.0 * rng.standard_gamma(self.shapes) / self.inner
        unit = self.law.unit_factors(self.law.split(gammas))
        return unit / self.law.of_rows(self.scales)

    def log_densities(
        self, factors: Float[np.ndarray, "point *feature"]
    ) -> Float[np.ndarray, "reference point group"]:
        """Log density of every factor under every group, in the variables of the graph."""
        values = self.law.shape_values(factors * self.law.of_rows(self.scales[:1]))
        gammas = np.concatenate([v.reshape(len(factors), -1) for v in values.values()], axis=1)
        rates = 0.5 * self.inner[:, None]
        return _log_gamma(gammas[:, None, :], self.shapes[:, None], rates).sum(axis=-1)


def _log_gamma(values: np.ndarray, shape: np.ndarray, rate: np.ndarray | float) -> np.ndarray:
    """Log densities of gamma variables."""
    return shape * np.log(rate) - gammaln(shape) + (shape - 1) * np.log(values) - rate * values


def log_gamma_constant(freedom: float, columns: int) -> float:
    """Log normaliser of the gamma prior of a precision that ``columns`` columns share."""
    rate = 0.5 * columns
    shape = rate * freedom + 1
    return float(shape * np.log(rate) - gammaln(shape))
