r"""Gradients of any function of the log joints of rows and components.

An objective :math:`J(\ell)` of :math:`\ell_{nk} = \log p(x_n, k)` has the gradient

.. math::
   \frac{\partial J}{\partial \phi}
       = \sum_{nk} G_{nk} \frac{\partial \log p(x_n, k)}{\partial \phi},
   \qquad G_{nk} = \frac{\partial J}{\partial \ell_{nk}}

in the parameters of the mixture. That sum is linear in the same sufficient statistics
as EM's, with G, of any sign, in the place of weighted responsibilities: missing cells
enter by their conditional moments (Fisher's identity, component by component). So one
routine serves every objective, and :func:`bayesrbf.numerics.mixture.mixture_prior.gradient`
carries the statistics on to the coordinates of the declared graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.categories import split_levels
from bayesrbf.numerics.mixture.array_blocks import Block, cut
from bayesrbf.numerics.mixture.array_expectation import LOWEST, ComponentsAt
from bayesrbf.numerics.mixture.expectation import is_small
from bayesrbf.numerics.mixture.gaussian import Moments
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

    def statistics(self, slopes: np.ndarray) -> Statistics:
        """Sums over the rows with slopes in the place of shares."""
        k, d = self.specification.n_components, self.specification.n_features
        first = np.zeros((k, d))
        second = np.zeros((k, d, d) if self.specification.shape == "full" else (k, d))
        categories = np.zeros((k, sum(self.specification.levels)))
        for index, block in enumerate(self.blocks):
            shares = np.ascontiguousarray(slopes[block.rows].T)
            self._evaluated(index).add_to(first, second, shares)
            categories += shares @ block.one_hot
        category_counts = split_levels(categories, self.specification.levels)
        counts = slopes.sum(axis=0)
        return Statistics(counts, first, second, category_counts, 0.0, np.zeros(0))

    def _evaluated(self, index: int) -> Moments:
        """Moments of one block: kept, or made again where they would fill the memory."""
        if self.moments is not None:
            return self.moments[index]
        return self.components.centred_moments(self.blocks[index])


@dataclass(frozen=True)
class JointPoint:
    """Rows under one point of the mixture.

    Attributes
    ----------
    log_joint : ndarray of shape (n_obs, n_components)
        ``log pi_c + log w_k + log p(x_o | k)`` in nats; labels play no part.
    """

    log_joint: Float[np.ndarray, "obs component"]
    _sums: Callable[[np.ndarray], Statistics]

    def statistics(self, slopes: Float[np.ndarray, "obs component"]) -> Statistics:
        """Sums over rows that carry slopes in the log joints to the parameters.

        Parameters
        ----------
        slopes : ndarray of shape (n_obs, n_components)
            G, of any sign: derivative of the objective in ``log_joint``. Row
            weights are part of it.

        Returns
        -------
        Statistics
            Statistics with G in the place of weighted responsibilities, centred at
            the point's means. ``pointwise`` and ``log_likelihood`` are the row and
            total sums of ``G log_joint``.
        """
        pointwise = np.einsum("nk,nk->n", slopes, self.log_joint)
        return replace(
            self._sums(slopes), log_likelihood=float(pointwise.sum()), pointwise=pointwise
        )


class JointDensities:
    """Rows prepared for their log joints with every component, and for gradients of these.

    Small complete tables stay in NumPy, as :func:`bayesrbf.numerics.mixture.expectation.prepare`
    has it; both ways give the same numbers.

    Parameters
    ----------
    observations : Observations
        Rows in standard units; labels and row weights are not used.
    specification : MixtureSpecification
        Structure of the mixture.
    many : bool
        Whether so many thousands of points follow that compiled code pays for a
        small table too.

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
    >>> shares = np.exp(joint.log_joint - np.logaddexp.reduce(joint.log_joint, axis=1)[:, None])
    >>> joint.statistics(shares).counts
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
        """Evaluate all rows at one point.

        Parameters
        ----------
        parameters : MixtureParameters
            Point of the mixture, in standard units.

        Returns
        -------
        JointPoint
            The log joints, ready to carry slopes back.
        """
        if self._compiled is not None:
            log_joint = self._compiled.component_log_joint(parameters)
            return JointPoint(log_joint, partial(self._compiled.slope_statistics, parameters))
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
