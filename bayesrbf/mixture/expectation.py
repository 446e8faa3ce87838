"""The E-step: rows prepared once, then expected statistics at any parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.base.arrays import (
    component_log_weights,
    log_levels,
    log_sum_exp,
    one_blas_thread,
    one_hot,
    split_levels,
)
from bayesrbf.base.blocks import Blocks
from bayesrbf.base.rows import (
    IN_CACHE,
    MixtureParameters,
    MixtureSpecification,
    Observations,
    in_blocks,
)
from bayesrbf.mixture.gaussian import (
    MAX_PRODUCTS,
    Components,
    FullComponents,
    Moments,
    QuadraticMoments,
    centred_moments,
    components_at,
    exact,
    products,
    quadratic_forms,
)
from bayesrbf.mixture.laws import Laws, laws_of
from bayesrbf.mixture.statistics import JointPoint, Statistics

if TYPE_CHECKING:
    from bayesrbf.mixture.compiled_expectation import CompiledExpectation


# The E-step in NumPy: the reference of the compiled kernels, and quick on small tables.


MIN_ROWS = 64
"""Rows of a block below which matrix products are slow."""


@dataclass(frozen=True)
class Block:
    """Rows that share their admissible components and their number of missing reals."""

    rows: Int[np.ndarray, " row"]
    components: slice
    bordered: Float[np.ndarray, "row bordered"]
    products: Float[np.ndarray, "product row"] | None
    observed: Bool[np.ndarray, "row feature"]
    missing: Int[np.ndarray, "row m"]
    one_hot: Float[np.ndarray, "row level"]
    weights: Float[np.ndarray, " row"]


def cut(
    table: Observations,
    specification: MixtureSpecification,
    rows: Int[np.ndarray, " row"],
    components: slice,
    *,
    by_products: bool = True,
) -> list[Block]:
    """Blocks of the ``rows`` of a table in standard units, of equal work that fits the cache.

    Rows of a block lack equally many reals and admit the given components. ``by_products`` says
    whether blocks of complete rows get the products of their cells, where affordable.
    """
    observed = ~np.isnan(table.real[rows])
    # A trailing 1 makes centring a part of one matrix product.
    bordered = np.column_stack([np.nan_to_num(table.real[rows]), np.ones(rows.size)])
    indicators = one_hot(table.codes[rows], specification.levels)
    counts = laws_of(specification).reals.holes(observed)
    k, d = components.stop - components.start, specification.n_features
    n_products = (d + 1) * (d + 2) // 2
    affordable = rows.size * n_products <= MAX_PRODUCTS and not specification.independent
    blocks: list[Block] = []
    for m in np.unique(counts):
        multiplied = by_products and affordable and m == 0
        width = max(k, n_products) if multiplied else k * max(d, int(m) ** 2, 1)
        width = min(width, IN_CACHE // MIN_ROWS) if multiplied else width
        same = np.flatnonzero(counts == m)
        for block in in_blocks(same.size, width, cached=True):
            positions = same[block]
            missing = np.nonzero(~observed[positions])[1] if m else np.empty(0, dtype=np.intp)
            blocks.append(
                Block(
                    rows=rows[positions],
                    components=components,
                    bordered=bordered[positions],
                    products=products(bordered[positions]) if multiplied else None,
                    observed=observed[positions],
                    missing=missing.reshape(positions.size, m),
                    one_hot=indicators[positions],
                    weights=table.weights[rows[positions]],
                )
            )
    return blocks


KEPT_CELLS = 20_000_000
"""Maximum size of moments stored from a density to its gradient (160 MB); else recomputed."""

LOWEST = -1e300
"""Floor of a log density: a square that overflows must not make every component -inf."""


class ComponentsAt:
    """Components at one point in standard units, with cached quantities for all blocks."""

    def __init__(self, parameters: MixtureParameters, specification: MixtureSpecification) -> None:
        self.means = parameters.means
        self.factors = parameters.precisions_cholesky[specification.covariance_group]
        self._log_weights = component_log_weights(parameters, specification)
        self._levels = log_levels(parameters)  # of all columns, side by side
        self._components: dict[tuple[int, int], Components] = {}

    def moments(self, block: Block) -> Moments | QuadraticMoments:
        r"""Conditional moments of a block's rows under its components, with their log joints.

        .. math:: \log p(x_o, k) = \log \pi_{c(k)} w_k + \log N(x^r_o; \mu_{k,o}, \Sigma_{g(k),oo})
            + \sum_{j \in o} \log \theta_{kj}[x_j]

        ``log_density`` of the result has shape (component, obs) and holds the log joints
        ``log p(x_o, k)`` in nats. The result is a QuadraticMoments if the block has products of
        cells and the quadratic form of every component is accurate, which those of narrow or
        distant components are not. Otherwise the result is a Moments.
        """
        at = block.components
        moments: Moments | QuadraticMoments
        if block.products is not None and self._forms[1][at].all():
            moments = QuadraticMoments(self._forms[0][at] @ block.products, block.products)
        else:
            components = self._components.setdefault(
                (at.start, at.stop), components_at(self.means[at], self.factors[at])
            )
            moments = components.moments(block.bordered, block.observed, block.missing)
            moments.log_density[:] += self._log_weights[at, None]
        log_joint = moments.log_density  # made for this block: what follows is in place
        if self._levels.shape[1]:
            log_joint += self._levels[at] @ block.one_hot.T
        np.maximum(log_joint, LOWEST, out=log_joint)
        return moments

    @cached_property
    def _forms(
        self,
    ) -> tuple[Float[np.ndarray, "component product"], Bool[np.ndarray, " component"]]:
        """``log w_k p(x | k)`` as quadratic forms, and a mask of the components they suit."""
        forms = quadratic_forms(FullComponents(self.means, self.factors))
        served = exact(forms)
        forms[:, -1] += self._log_weights  # the last product is 1
        return forms, served


@dataclass
class _Sums:
    """Running sums of the expected sufficient statistics, updated in place block by block."""

    counts: np.ndarray
    first: np.ndarray
    second: np.ndarray
    categories: np.ndarray
    products: np.ndarray | None = None

    @classmethod
    def zeros(cls, laws: Laws) -> _Sums:
        first, second = laws.reals.no_moments()
        k = laws.reals.n_components
        return cls(np.zeros(k), first, second, np.zeros((k, sum(laws.levels.levels))))

    def add(self, block: Block, moments: Moments | QuadraticMoments, weights: np.ndarray) -> None:
        """Add moments of a block, weighted by (component, row); products stay uncentred."""
        at = block.components
        if self.categories.shape[1]:
            self.categories[at] += weights @ block.one_hot
        if not isinstance(moments, QuadraticMoments):
            self.counts[at] += weights.sum(axis=1)
            moments.add_to(self.first[at], self.second[at], weights)
            return
        if self.products is None:
            self.products = np.zeros((len(self.counts), len(moments.products)))
        self.products[at] += moments.sums(weights)

    def statistics(
        self,
        means: np.ndarray,
        levels: tuple[int, ...],
        log_likelihood: float,
        pointwise: np.ndarray,
    ) -> Statistics:
        """The sums as statistics, products of cells converted to moments about ``means``.

        They are converted in place: a second call would count products twice.
        """
        if self.products is not None:
            first, second = centred_moments(self.products, means)
            self.counts += self.products[:, -1]  # the last product is 1
            self.first += first
            self.second += second
        by_column = split_levels(self.categories, levels)
        return Statistics(
            self.counts, self.first, self.second, by_column, log_likelihood, pointwise
        )


class ArrayExpectation:
    """E-step over rows in standard units, in NumPy. Rows are cut into blocks when first needed."""

    def __init__(self, observations: Observations, specification: MixtureSpecification) -> None:
        self._specification, self._laws = specification, laws_of(specification)
        self._observations = observations
        self._every = slice(0, specification.n_components)

    def for_many(self) -> ArrayExpectation | CompiledExpectation:
        """The E-step over the same rows in compiled kernels; itself without rows."""
        if self._observations.n_obs == 0:
            return self
        from bayesrbf.mixture.compiled_expectation import CompiledExpectation

        return CompiledExpectation(self._observations, self._specification)

    def statistics(self, parameters: MixtureParameters) -> Statistics:
        r"""Expected statistics, centred at the means; labels restrict the components of a row.

        .. math:: \log p(x_o, y) = \log \sum_{k : c(k) = y} p(x_o, k), \quad
            r_k = p(x_o, k) / p(x_o, y),

        over all components where the label is hidden.
        """
        pointwise = np.empty(self._observations.n_obs)
        point = ComponentsAt(parameters, self._specification)
        sums = _Sums.zeros(self._laws)
        for block in self._by_label:
            moments = point.moments(block)
            pointwise[block.rows], responsibilities = log_sum_exp(moments.log_density, axis=0)
            responsibilities *= block.weights
            sums.add(block, moments, responsibilities)
        log_likelihood = float(self._observations.weights @ pointwise)
        levels = self._specification.levels
        return sums.statistics(parameters.means, levels, log_likelihood, pointwise)

    def component_log_joint(
        self, parameters: MixtureParameters
    ) -> Float[np.ndarray, "obs component"]:
        """``log pi_c + log w_k + log p(x_o | k)`` of every row and component; labels ignored."""
        point = ComponentsAt(parameters, self._specification)
        log_joint = np.empty((self._observations.n_obs, self._specification.n_components))
        for block in self._all_rows:
            log_joint[block.rows] = point.moments(block).log_density.T
        return log_joint

    def at(self, parameters: MixtureParameters) -> JointPoint:
        """Log joints of rows and components, and the map of their gradients to statistics.

        The log joints are ``log p(x_o, k)`` in nats, over obs and component; labels play no part.
        ``statistics`` of the result takes the gradient of an objective in the log joints to
        sums of sufficient statistics, which the gradient in the parameters is made from.
        """
        point = ComponentsAt(parameters, self._specification)
        log_joint = np.empty((self._observations.n_obs, self._specification.n_components))
        moments_by_block: list[Moments | QuadraticMoments] = []
        keeps = self._keeps_moments
        for block in self._to_centre:
            moments = point.moments(block)
            log_joint[block.rows] = moments.log_density.T
            if keeps:
                moments_by_block.append(moments)
        return JointPoint(log_joint, partial(self._weighted_statistics, point, moments_by_block))

    def _weighted_statistics(
        self,
        point: ComponentsAt,
        moments_by_block: list[Moments | QuadraticMoments],
        gradients: Float[np.ndarray, "obs component"],
    ) -> Statistics:
        """Statistics with ``G = dJ / d log_joint`` in place of weighted responsibilities."""
        sums = _Sums.zeros(self._laws)
        for index, block in enumerate(self._to_centre):
            moments = moments_by_block[index] if moments_by_block else point.moments(block)
            sums.add(block, moments, np.ascontiguousarray(gradients[block.rows].T))
        return sums.statistics(point.means, self._specification.levels, 0.0, np.zeros(0))

    @cached_property
    def _by_label(self) -> list[Block]:
        """Blocks of the rows of every label, under the components of that label's class."""
        table, specification = self._observations, self._specification
        if not (table.labels >= 0).any():
            return self._all_rows
        blocks = []
        for label, components in [*enumerate(specification.class_slices), (-1, self._every)]:
            rows = np.flatnonzero(table.labels == label)
            blocks += cut(table, specification, rows, components)
        return blocks

    @cached_property
    def _all_rows(self) -> list[Block]:
        """Blocks of all rows under all components."""
        rows = np.arange(self._observations.n_obs)
        return cut(self._observations, self._specification, rows, self._every)

    @cached_property
    def _to_centre(self) -> list[Block]:
        """Blocks of all rows without products of cells: under signed weights they may cancel."""
        rows = np.arange(self._observations.n_obs)
        return cut(self._observations, self._specification, rows, self._every, by_products=False)

    @property
    def _keeps_moments(self) -> bool:
        """Whether the moments of all rows may be held from the density to the gradient."""
        k, d = self._specification.n_components, self._specification.n_features
        cells = sum(b.rows.size * k * (d + b.missing.shape[1] ** 2) for b in self._to_centre)
        return cells <= KEPT_CELLS


# The E-step: rows prepared once, then expected statistics at any parameters.


COMPILED_FROM = 200_000
"""Multiply-adds of an iteration above which loading the compiled kernels pays."""


@runtime_checkable
class Sums(Protocol):
    """E-step that returns sums over rows, in memory or not."""

    def statistics(self, parameters: MixtureParameters) -> Statistics:
        """Expected sufficient statistics, centred at the means; labels and row weights count."""
        ...


@runtime_checkable
class Expectation(Sums, Protocol):
    """Rows of one table under one specification, ready for any parameters in standard units."""

    def component_log_joint(
        self, parameters: MixtureParameters
    ) -> Float[np.ndarray, "obs component"]:
        """``log pi_c + log w_k + log p(x_o | k)`` of every row and component; labels ignored."""
        ...

    def at(self, parameters: MixtureParameters) -> JointPoint:
        """Log joints of every row and component, which map gradients to the parameters."""
        ...

    def for_many(self) -> Expectation:
        """The same rows prepared for many E-steps, where loading compiled code pays."""
        ...


class BlockExpectation:
    """E-step over distributed blocks of rows in standard units.

    Only sums are returned, so ``pointwise`` is empty. ``passes`` counts the E-steps.
    """

    def __init__(self, rows: Blocks[Observations], specification: MixtureSpecification) -> None:
        self._prepared = rows.map(partial(prepare, specification=specification)).persisted()
        self.passes = 0

    def statistics(self, parameters: MixtureParameters) -> Statistics:
        """Expected sufficient statistics, centred at the means; labels and row weights count."""
        self.passes += 1
        return self._prepared.map(partial(_sums, parameters=parameters)).reduce(Statistics.joined)


def _sums(rows: Sums, parameters: MixtureParameters) -> Statistics:
    """Statistics of a block, ``pointwise`` dropped."""
    with one_blas_thread():
        return replace(rows.statistics(parameters), pointwise=np.zeros(0))


def prepare(observations: Observations, specification: MixtureSpecification) -> Expectation:
    """Prepare rows for repeated E-steps, in NumPy or in compiled kernels.

    Both give the same numbers but for rounding.
    """
    return preparation(observations, specification)(observations, specification)


def preparation(
    observations: Observations, specification: MixtureSpecification
) -> Callable[[Observations, MixtureSpecification], Expectation]:
    """Class of the E-step for a table of this size and missingness.

    Small tables stay in NumPy, which needs no compiled code to be loaded. Large ones, and full
    covariances with missing cells, use the compiled kernels.
    """
    rows, d = observations.real.shape
    width = (d if specification.independent else d * d) + len(specification.levels)
    dependent = not specification.independent and bool(np.isnan(observations.real).any())
    large = dependent or rows * specification.n_components * width >= COMPILED_FROM
    if rows and large:
        from bayesrbf.mixture.compiled_expectation import CompiledExpectation

        return CompiledExpectation
    return ArrayExpectation
