r"""A log posterior whose rows lie in blocks: every figure is a sum over them, and the prior once.

.. math:: \log p(\theta) = \log p_0(\theta)
    + \sum_b \bigl( \log p_b(\theta) - \log p_0(\theta) \bigr)

with :math:`p_b` the posterior given the rows of block b alone and :math:`p_0` given none. It holds
for whatever is linear in the rows: value, gradient, and a family's own figures. So a family needs
nothing but its log posterior to be fitted to rows wherever they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.blocks import Blocks
from bayesrbf.numerics.log_posterior import LogPosterior
from bayesrbf.numerics.threads import one_blas_thread
from bayesrbf.records.mixture import Observations
from bayesrbf.records.specification import Variable

Figures = tuple[Any, ...]
"""Numbers and arrays that are linear in the rows."""


class BlockSums:
    """The log posteriors of blocks of rows, which stay where they are.

    ``given`` makes that of some rows. ``passes`` counts the times that all were looked at.
    """

    def __init__(
        self, rows: Blocks[Observations], given: Callable[[Observations], LogPosterior]
    ) -> None:
        self.of_no_rows: Any = given(next(iter(rows.map(_none))))
        self._prepared = rows.map(given).kept()
        self.passes = 1

    def total(self, evaluate: Callable[[Any], Figures]) -> Figures:
        """A figure of the log posterior of all rows, from those of the blocks."""
        prior = evaluate(self.of_no_rows)
        self.passes += 1
        of_rows = self._prepared.map(partial(_beyond, evaluate=evaluate, prior=prior))
        return _added(prior, of_rows.reduce(_added))

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log density in nats and its gradient."""
        value, gradient = self.total(partial(_at, theta=theta, jacobian=jacobian))
        return float(value), gradient


class BlockLogPosterior(LogPosterior):
    """A log posterior given rows in blocks.

    Coordinates, components and what has a number a row are those of ``some`` of the rows.
    """

    points_at_once: ClassVar[int] = 256

    def __init__(self, sums: BlockSums, some: Any) -> None:
        self._sums, self._some = sums, some

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Free variables, in the order of the coordinates."""
        return self._some.variables

    @property
    def scales(self) -> Float[np.ndarray, " coordinate"]:
        """Rough size of one unit of each coordinate."""
        return self._some.scales

    def pack(self, parameters: Any) -> Float[np.ndarray, " coordinate"]:
        """Coordinates of a point, as the family has it."""
        packed: np.ndarray = self._some.pack(parameters)
        return packed

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log density in nats and its gradient in the coordinates."""
        return self._sums.value_and_gradient(theta, jacobian)

    def values_and_gradients(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, "point coordinate"]]:
        """Log densities with Jacobian and their gradients at every point, in one pass."""
        values, gradients = self._sums.total(partial(_at_many, thetas=thetas))
        return values, gradients

    def log_densities(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, " point"]:
        """Log densities with Jacobian at every point, in one pass."""
        (values,) = self._sums.total(partial(_densities, thetas=thetas))
        return np.asarray(values)

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Unweighted log likelihood of some rows in nats."""
        return self._some.pointwise(theta)

    @property
    def component_class(self) -> Int[np.ndarray, " component"]:
        """Class of every component."""
        return self._some.component_class

    def component_log_joint(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, "row component"]:
        """Log joint of some rows and the components, by which these are told apart."""
        return self._some.component_log_joint(theta)

    def component_log_joints(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point row component"]:
        """Log joint of some rows and the components at every point."""
        return self._some.component_log_joints(thetas)

    def permute(
        self, theta: Float[np.ndarray, " coordinate"], order: Int[np.ndarray, " component"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Reorder components within their classes: k of the result is component ``order[k]``."""
        return self._some.permute(theta, order)


def _none(rows: Observations) -> Observations:
    """No row of a block."""
    return rows.take(np.arange(0))


def _beyond(given: LogPosterior, evaluate: Callable[[Any], Figures], prior: Figures) -> Figures:
    """Figures of the rows of a block, without the prior's."""
    with one_blas_thread():
        # The prior is in the density of every block: it is taken off here and added once.
        return tuple(whole - alone for whole, alone in zip(evaluate(given), prior, strict=True))


def _added(one: Figures, other: Figures) -> Figures:
    """Figures of the rows of both."""
    return tuple(mine + theirs for mine, theirs in zip(one, other, strict=True))


def _at(given: LogPosterior, theta: np.ndarray, jacobian: bool) -> Figures:
    """Value and gradient at a point."""
    return given.value_and_gradient(theta, jacobian)


def _at_many(given: LogPosterior, thetas: np.ndarray) -> Figures:
    """Values and gradients at many points."""
    return given.prepared_for_many().values_and_gradients(thetas)


def _densities(given: LogPosterior, thetas: np.ndarray) -> Figures:
    """Values at many points."""
    return (given.prepared_for_many().log_densities(thetas),)
