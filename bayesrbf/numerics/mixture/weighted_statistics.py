r"""Gradients of any function of the log joints of rows and components.

An objective :math:`J(\ell)` of :math:`\ell_{nk} = \log p(x_n, k)` has the gradient

.. math::
   \frac{\partial J}{\partial \phi}
       = \sum_{nk} G_{nk} \frac{\partial \log p(x_n, k)}{\partial \phi},
   \qquad G_{nk} = \frac{\partial J}{\partial \ell_{nk}}

in the parameters of the mixture. That sum is linear in the same sufficient statistics
as EM's, with G, of any sign, in the place of weighted responsibilities: missing cells
enter by their conditional moments (Fisher's identity, component by component). So one
routine serves every objective, and :mod:`bayesrbf.numerics.mixture.mixture_prior`
carries the statistics on to the coordinates of the declared graph.

Columns under laws of their own add their log densities and statistics here, whatever evaluates
the real and categorical columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.categories import split_levels
from bayesrbf.numerics.log_sums import log_sum_exp
from bayesrbf.numerics.mixture.array_blocks import Block, cut
from bayesrbf.numerics.mixture.array_expectation import LOWEST, ComponentsAt
from bayesrbf.numerics.mixture.expectation import is_small
from bayesrbf.numerics.mixture.gaussian import Moments
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.numerics.mixture.statistics import Statistics
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.specification import MixtureSpecification

if TYPE_CHECKING:
    from bayesrbf.numerics.mixture.compiled_expectation import CompiledExpectation

KEPT_CELLS = 20_000_000
"""Numbers up to which the moments of all rows are kept from the density to the gradient."""


@dataclass(frozen=True)
class _ArrayPoint:
    """Rows under one point of the mixture, in NumPy."""

    components: ComponentsAt
    specification: MixtureSpecification
    blocks: list[Block]
    moments: tuple[Moments, ...] | None

    def statistics(self, weights: np.ndarray) -> Statistics:
        """Sums over the rows with given weights of rows and components."""
        first, second = laws_of(self.specification).reals.no_moments()
        categories = np.zeros((len(first), sum(self.specification.levels)))
        for index, block in enumerate(self.blocks):
            of_block = np.ascontiguousarray(weights[block.rows].T)
            self._evaluated(index).add_to(first, second, of_block)
            categories += of_block @ block.one_hot
        category_counts = split_levels(categories, self.specification.levels)
        counts = weights.sum(axis=0)
        return Statistics(counts, first, second, category_counts, 0.0, np.zeros(0))

    def _evaluated(self, index: int) -> Moments:
        """Moments of one block: kept, or made again where they would fill the memory."""
        if self.moments is not None:
            return self.moments[index]
        return self.components.centred_moments(self.blocks[index])


@dataclass(frozen=True)
class JointPoint:
    """Rows under one point of the mixture, labels playing no part."""

    log_joint: Float[np.ndarray, "obs component"]  # log pi_c + log w_k + log p(x_o | k) in nats.
    _sums: Callable[[np.ndarray], Statistics]

    def statistics(self, weights: Float[np.ndarray, "obs component"]) -> Statistics:
        """Statistics with G in the place of weighted responsibilities, centred at the means.

        The weights are G, of any sign, row weights included. ``pointwise`` and ``log_likelihood``
        are the row and total sums of ``G log_joint``.
        """
        pointwise = np.einsum("nk,nk->n", weights, self.log_joint)
        return replace(
            self._sums(weights), log_likelihood=float(pointwise.sum()), pointwise=pointwise
        )


class JointDensities:
    """Rows prepared for their log joints with every component, and for gradients of these.

    Rows are in standard units; their labels and weights are not used. Small complete tables stay
    in NumPy, as :func:`bayesrbf.numerics.mixture.expectation.prepare` has it, unless so ``many``
    thousands of points follow that compiled code pays. Both ways give the same numbers.

    Examples
    --------
    The gradient of the mixture's own log likelihood: G are the responsibilities.

    >>> rows = Observations(
    ...     real=np.array([[0.5], [np.nan]]), codes=np.zeros((2, 0), int),
    ...     labels=np.zeros(2, int), weights=np.ones(2))
    >>> specification = MixtureSpecification(1, (), (0, 0))
    >>> point = MixtureParameters(
    ...     np.ones(1), np.array([0.5, 0.5]), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)), ())
    >>> joint = JointDensities(rows, specification).at(point)
    >>> weights = np.exp(joint.log_joint - np.logaddexp.reduce(joint.log_joint, axis=1)[:, None])
    >>> joint.statistics(weights).counts
    array([0.769, 1.231])
    """

    def __init__(
        self,
        observations: Observations,
        specification: MixtureSpecification,
        *,
        many: bool = False,
    ) -> None:
        self._specification = specification
        self._n_obs = observations.n_obs
        self._laws, self._cells = laws_of(specification).further, observations.further
        self._compiled: CompiledExpectation | None = None
        if observations.n_obs and (many or not is_small(observations, specification)):
            from bayesrbf.numerics.mixture.compiled_expectation import CompiledExpectation

            unlabelled = observations.unlabelled()
            self._compiled = CompiledExpectation(unlabelled, specification)
            return
        every = slice(0, specification.n_components)
        rows = np.arange(observations.n_obs)
        self._blocks = cut(observations, specification, rows, every, by_products=False)
        k, d = specification.n_components, specification.n_features
        kept = sum(b.rows.size * k * (d + b.missing.shape[1] ** 2) for b in self._blocks)
        self._keeps = kept <= KEPT_CELLS

    def at(self, parameters: MixtureParameters) -> JointPoint:
        """Evaluate all rows at one point in standard units."""
        point = self._without_further(parameters)
        if not self._laws:
            return point
        log_joint = point.log_joint.copy()
        for law, cells in zip(self._laws, self._cells, strict=True):
            log_joint += law.log_density(cells, parameters.further)
        return JointPoint(np.maximum(log_joint, LOWEST), partial(self._with_further, point))

    def _with_further(self, point: JointPoint, weights: np.ndarray) -> Statistics:
        """Statistics of all columns."""
        pairs = zip(self._laws, self._cells, strict=True)
        further = tuple(law.statistics(cells, weights) for law, cells in pairs)
        return replace(point.statistics(weights), further=further)

    def _without_further(self, parameters: MixtureParameters) -> JointPoint:
        """Evaluate the real and categorical columns."""
        if self._compiled is not None:
            log_joint = self._compiled.component_log_joint(parameters)
            return JointPoint(log_joint, partial(self._compiled.weighted_statistics, parameters))
        specification = self._specification
        components = ComponentsAt(parameters, specification)
        log_joint = np.empty((self._n_obs, specification.n_components))
        kept: list[Moments] = []
        for block in self._blocks:
            moments = components.centred_moments(block)
            log_joint[block.rows] = moments.log_density.T + block.one_hot @ components.levels.T
            if self._keeps:
                kept.append(moments)
        rows = _ArrayPoint(
            components, specification, self._blocks, tuple(kept) if self._keeps else None
        )
        return JointPoint(np.maximum(log_joint, LOWEST), rows.statistics)


class JointExpectation:
    """The E-step from log joints, as a mixture with columns under laws of their own takes it.

    Rows are in standard units.
    """

    def __init__(
        self,
        observations: Observations,
        specification: MixtureSpecification,
        *,
        many: bool = False,
    ) -> None:
        self._densities = JointDensities(observations, specification, many=many)
        self._weights = observations.weights
        labels = observations.labels[:, None]
        self._excluded = (labels >= 0) & (labels != np.asarray(specification.component_class))

    def statistics(self, parameters: MixtureParameters) -> Statistics:
        """Compute the expected statistics; labels restrict the components of a row."""
        point = self._densities.at(parameters)
        admitted = np.where(self._excluded, -np.inf, point.log_joint)
        pointwise, responsibilities = log_sum_exp(admitted, axis=1)
        found = point.statistics(self._weights[:, None] * responsibilities)
        total = float(self._weights @ pointwise)
        return replace(found, log_likelihood=total, pointwise=pointwise)

    def component_log_joint(
        self, parameters: MixtureParameters
    ) -> Float[np.ndarray, "obs component"]:
        """Joint log density of every row with every component, labels ignored."""
        return self._densities.at(parameters).log_joint
