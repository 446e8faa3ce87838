r"""Real columns: normal given the component, under covariances of one shape.

Which components share a covariance is the specification's to say; a shape says what one matrix is:
all of it, its diagonal, one number, or a few factors and a diagonal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.mixture.gaussian import Components, Conditional
from bayesrbf.numerics.mixture.parts.arguments import (
    Assignment,
    Hyper,
    Memberships,
    Point,
    Rng,
    Rows,
    Values,
)
from bayesrbf.numerics.mixture.parts.precision_factors import PrecisionDraws
from bayesrbf.numerics.mixture.statistics import Statistics
from bayesrbf.records import names
from bayesrbf.records.mixture import in_blocks
from bayesrbf.records.specification import MixtureSpecification, Order, Variable

Vectors = Float[np.ndarray, "component feature"]
Matrices = Float[np.ndarray, "component *feature"]
Factors = Float[np.ndarray, "group *feature"]
Centres = Float[np.ndarray, "component *centre"]
ByCell = Float[np.ndarray, "row component feature"]


START_VARIANCE = 0.5
"""Variance of a fresh component, where the whole column has 1."""


@runtime_checkable
class RealsPrior(Protocol):
    """The declared prior of the real columns at any point."""

    @property
    def constant(self) -> float:
        """What no point changes, in nats."""
        ...

    def log_density(self, parameters: Point, jacobian: bool) -> float:
        """Log density at one point in nats, but for the constant."""
        ...

    def gradient(
        self, values: Values, parameters: Point, statistics: Statistics, jacobian: bool
    ) -> dict[str, np.ndarray]:
        """Gradient of log likelihood plus log prior in the coordinates of every variable."""
        ...


class RealColumns(ABC):
    """The real columns of a mixture; a subclass is one shape of their covariances."""

    in_kernels: ClassVar[bool] = True
    """Whether there are compiled kernels for the shape."""
    latent: ClassVar[bool] = False
    """Whether rows have latent variables beside component and missing cells."""

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

    # Matrices of this shape

    @property
    @abstractmethod
    def matrix_shape(self) -> tuple[int, ...]:
        """Shape of one precision factor as an array."""

    @abstractmethod
    def diagonal(self, matrices: Factors) -> Float[np.ndarray, "group feature"]:
        """Diagonals; of factor-analytic factors the roots of the inverse uniquenesses."""

    @abstractmethod
    def covariances(self, factors: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape d d"]:
        """Covariances of precision factors as whole matrices."""

    @abstractmethod
    def spread(
        self, noise: Float[np.ndarray, "component row d"], factors: Matrices
    ) -> Float[np.ndarray, "component row d"]:
        """Standard normal rows, under every component, made noise of its covariance."""

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
        """``L^-1``; of the uniquenesses alone, where there are loadings."""
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

    @abstractmethod
    def no_moments(self) -> tuple[Vectors, Matrices]:
        """First and second moments of an empty table."""

    def begun(self, point: Point, rows: Rows, memberships: Memberships, hyper: Hyper) -> Point:
        """Means of the observed cells, and covariances of ``START_VARIANCE``."""
        seen = memberships.T @ ~np.isnan(rows.real)
        sums = memberships.T @ np.nan_to_num(rows.real)
        means = sums / (seen + hyper.mean_precision)
        factors = self._start(rows.real, memberships, means)
        return replace(point, means=means, precisions_cholesky=factors)

    @abstractmethod
    def _start(
        self, real: Float[np.ndarray, "row feature"], memberships: Memberships, means: Vectors
    ) -> Factors:
        """Precision factors where EM may begin."""

    def embedding(self, rows: Rows) -> Float[np.ndarray, "row feature"]:
        """Cells in standard units, the column mean where missing."""
        return np.nan_to_num(rows.real)

    @abstractmethod
    def recentred(self, statistics: Statistics, shift: Vectors) -> Matrices:
        """Second moments about means that are moved by a shift."""

    @abstractmethod
    def mode(self, point: Point, statistics: Statistics, hyper: Hyper) -> Point:
        """The M-step, from statistics of the E-step at the point."""

    @abstractmethod
    def prior(self, hyper: Hyper) -> RealsPrior | None:
        """The declared prior, prepared for many points; None without columns."""

    def at_floor(self, factors: Factors) -> bool:
        """Whether some covariance has eigenvalues at the floor."""
        return False

    # Rows

    @abstractmethod
    def holes(self, observed: Bool[np.ndarray, "row feature"]) -> Int[np.ndarray, " row"]:
        """Number of missing cells that depend on each other given a row's component."""

    def kept_apart(self, observed: Bool[np.ndarray, "row feature"]) -> Int[np.ndarray, " row"]:
        """Number of missing cells by which an E-step must keep rows apart."""
        return self.holes(observed)

    def numbers_a_row(self, n_missing: int) -> int:
        """Numbers that an E-step holds at once for a row under a component."""
        return max(self.n_features, n_missing**2, 1)

    @abstractmethod
    def components(self, means: Vectors, factors: Matrices) -> Components:
        """Components at a point, ready for blocks of rows."""

    def completed(self, rows: Rows, components: Assignment, point: Point, rng: Rng) -> Rows:
        """Rows with their missing cells drawn given the components and the observed cells."""
        noise = rng.standard_normal(rows.real.shape)
        return replace(rows, real=self.drawn(rows.real, components[None], point, noise[None])[0])

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

    # Conjugate draws

    def augmented(
        self,
        real: Float[np.ndarray, "row feature"],
        components: Assignment,
        parameters: Point,
        rng: Rng,
    ) -> Float[np.ndarray, "row _"]:
        """Rows with a draw of their latent variables beside them, if they have any."""
        return real

    @abstractmethod
    def assigned(
        self,
        real: Float[np.ndarray, "row _"],
        components: Assignment,
        member: Bool[np.ndarray, "component row"],
    ) -> tuple[Vectors, Centres, Matrices]:
        """Cells, their means and the scatter about these, of rows whose components are known."""

    @abstractmethod
    def posterior(
        self, cells: Vectors, centres: Centres, scatter: Matrices, hyper: Hyper
    ) -> tuple[PrecisionDraws, Centres, Vectors]:
        """Law of the precision factors given what :meth:`assigned` has, the means integrated out.

        With it come the centres of the means and the rows behind these.
        """

    @abstractmethod
    def draw_means(
        self, centres: Centres, strength: Vectors, factors: Matrices, rng: Rng
    ) -> Vectors:
        """Means of every component given its precision factor."""
