"""The E-step in NumPy: the reference of the compiled kernels, and quick on small tables."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from bayesrbf.numerics.categories import log_levels, split_levels
from bayesrbf.numerics.log_sums import component_log_weights, log_sum_exp
from bayesrbf.numerics.mixture.array_blocks import Block, cut
from bayesrbf.numerics.mixture.gaussian import Components, FullComponents, Moments
from bayesrbf.numerics.mixture.gaussian_quadratic import (
    QuadraticMoments,
    centred_moments,
    exact,
    quadratic_forms,
)
from bayesrbf.numerics.mixture.parts.laws import Laws, laws_of
from bayesrbf.numerics.mixture.statistics import Statistics
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.specification import MixtureSpecification

LOWEST = -1e300
"""Floor of a log density: a square that overflows must not make every component -inf."""


class ComponentsAt:
    """The components at one point in standard units, and once what all blocks need of them.

    ``levels`` are the log probabilities of all levels, side by side.
    """

    def __init__(self, parameters: MixtureParameters, specification: MixtureSpecification) -> None:
        self._law = laws_of(specification).reals
        self.means = parameters.means
        self.factors = parameters.precisions_cholesky[specification.covariance_group]
        self._log_weights = component_log_weights(parameters, specification)
        self.levels = log_levels(parameters)
        self._components: dict[tuple[int, int], Components] = {}

    def moments(self, block: Block) -> Moments | QuadraticMoments:
        """Evaluate the Gaussian part of a block, log weights included.

        It goes by products of cells where the block has them and the components are not too narrow.
        """
        part = block.components
        if block.products is not None and self._exact[part].all():
            return QuadraticMoments(self._weighted_forms[part] @ block.products, block.products)
        return self.centred_moments(block)

    def centred_moments(self, block: Block) -> Moments:
        """Evaluate the Gaussian part of a block without products of its cells."""
        part = block.components
        moments = self._gaussian_moments(block, part)
        moments.log_density[:] += self._log_weights[part, None]  # made for this block
        return moments

    def _gaussian_moments(self, block: Block, part: slice) -> Moments:
        """The same without log weights."""
        components = self._components.setdefault(
            (part.start, part.stop), self._law.components(self.means[part], self.factors[part])
        )
        return components.moments(block.bordered, block.observed, block.missing)

    @cached_property
    def _forms(self) -> Float[np.ndarray, "component product"]:
        """All components as quadratic forms."""
        return quadratic_forms(FullComponents(self.means, self.factors))

    @cached_property
    def _weighted_forms(self) -> Float[np.ndarray, "component product"]:
        """The same with log weights: the last product is 1."""
        forms = self._forms.copy()
        forms[:, -1] += self._log_weights
        return forms

    @cached_property
    def _exact(self) -> Bool[np.ndarray, " component"]:
        """Those that the forms serve."""
        return exact(self._forms)


@dataclass
class _Sums:
    """Statistics under way, added to in place block by block."""

    counts: np.ndarray
    first: np.ndarray
    second: np.ndarray
    categories: np.ndarray
    products: np.ndarray | None = None

    @classmethod
    def zeros(cls, laws: Laws) -> _Sums:
        k, moments = laws.reals.n_components, laws.reals.no_moments()
        return cls(np.zeros(k), *moments, np.zeros((k, sum(laws.levels.levels))))

    def add(self, part: slice, moments: Moments | QuadraticMoments, weights: np.ndarray) -> None:
        """Add a block's moments; products are centred last, all at once."""
        if not isinstance(moments, QuadraticMoments):
            self.counts[part] += weights.sum(axis=1)
            moments.add_to(self.first[part], self.second[part], weights)
            return
        if self.products is None:
            self.products = np.zeros((len(self.counts), len(moments.products)))
        self.products[part] += moments.sums(weights)

    def centre(self, means: np.ndarray) -> None:
        """Turn the sums of products into moments about the means."""
        if self.products is not None:
            first, second = centred_moments(self.products, means)
            self.counts += self.products[:, -1]  # the last product is 1
            self.first += first
            self.second += second


class ArrayExpectation:
    """E-step over prepared rows, in NumPy and in standard units."""

    def __init__(self, observations: Observations, specification: MixtureSpecification) -> None:
        self._specification, self._laws = specification, laws_of(specification)
        self._observations = observations
        self._every = slice(0, specification.n_components)
        self._by_label: list[Block] = []
        for label, components in [*enumerate(specification.class_slices), (-1, self._every)]:
            rows = np.flatnonzero(observations.labels == label)
            self._by_label.extend(cut(observations, specification, rows, components))

    def statistics(self, parameters: MixtureParameters) -> Statistics:
        """Compute the expected statistics; labels restrict the components of a row."""
        pointwise = np.empty(self._observations.n_obs)
        point = ComponentsAt(parameters, self._specification)
        sums = _Sums.zeros(self._laws)
        for block in self._by_label:
            part = block.components
            moments = point.moments(block)
            log_joint = moments.log_density  # made for this block: what follows is in place
            if self._specification.levels:
                log_joint += point.levels[part] @ block.one_hot.T
            np.maximum(log_joint, LOWEST, out=log_joint)
            pointwise[block.rows], responsibilities = log_sum_exp(log_joint, axis=0)
            responsibilities *= block.weights
            if self._specification.levels:
                sums.categories[part] += responsibilities @ block.one_hot
            sums.add(part, moments, responsibilities)
        sums.centre(parameters.means)
        return Statistics(
            counts=sums.counts,
            first=sums.first,
            second=sums.second,
            category_counts=split_levels(sums.categories, self._specification.levels),
            log_likelihood=float(self._observations.weights @ pointwise),
            pointwise=pointwise,
        )

    def component_log_joint(
        self, parameters: MixtureParameters
    ) -> Float[np.ndarray, "obs component"]:
        """``log pi_c + log w_k + log p(x_o | k)`` in nats, labels ignored."""
        point = ComponentsAt(parameters, self._specification)
        log_joint = np.empty((self._observations.n_obs, self._specification.n_components))
        for block in self._all_rows:
            log_density = point.moments(block).log_density.T
            log_joint[block.rows] = log_density + block.one_hot @ point.levels.T
        return np.maximum(log_joint, LOWEST)

    @cached_property
    def _all_rows(self) -> list[Block]:
        """All rows under all components."""
        every_row = np.arange(self._observations.n_obs)
        return cut(self._observations, self._specification, every_row, self._every)
