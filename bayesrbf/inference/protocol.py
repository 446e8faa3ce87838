"""What inference asks of a model, and what a model may offer beyond it.

It asks for a log density over unconstrained coordinates. What is offered beyond that is the same
numbers sooner.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.records.specification import Variable


@runtime_checkable
class LogPosterior(Protocol):
    r"""A log posterior density over the graph's own unconstrained coordinates.

    A family plugs into every method by writing this and nothing else. With
    theta the unconstrained coordinates and v(theta) the constrained values,

    .. math:: \log p(\theta) = \log p(v(\theta), x, y) + \log |\det dv / d\theta|.
    """

    @property
    def dimension(self) -> int:
        """Number of unconstrained coordinates."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Free variables, in the order of the coordinates."""

    @property
    def deterministic_variables(self) -> tuple[Variable, ...]:
        """Variables that are functions of the free ones."""

    @property
    def component_class(self) -> Int[np.ndarray, " component"]:
        """Class of every component; those of one class are exchangeable."""

    @property
    def scales(self) -> Float[np.ndarray, " coordinate"]:
        """Rough size of one unit of each coordinate."""

    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log density in nats and its gradient in the coordinates.

        ``jacobian`` says whether the log determinant of the transforms is in it.
        """

    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Unweighted log likelihood ``log p(x_n, y_n)`` of every row in nats."""

    def component_log_joint(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, "row component"]:
        """Log joint of rows and components, by which components are told apart.

        ``log p(x_n, k)`` up to a constant per row, of the same rows at every call: all of the table
        or some hundreds of it.
        """

    def constrained(
        self, thetas: Float[np.ndarray, "*draws coordinate"]
    ) -> dict[str, Float[np.ndarray, "*_"]]:
        """Values of the free variables by name, at one point or many."""

    def deterministic(
        self, thetas: Float[np.ndarray, "*draws coordinate"]
    ) -> dict[str, Float[np.ndarray, "*_"]]:
        """Values of the deterministic variables by name, at one point or many."""

    def permute(
        self, theta: Float[np.ndarray, " coordinate"], order: Int[np.ndarray, " component"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Reorder components within their classes: k of the result is component ``order[k]``.

        The density at the new coordinates is the same.
        """


@runtime_checkable
class MarkovKernel(Protocol):
    """A Markov kernel that leaves a posterior invariant."""

    def sweep(
        self, theta: Float[np.ndarray, " coordinate"], rng: np.random.Generator
    ) -> Float[np.ndarray, " coordinate"]:
        """Move to the next point of a chain, distributed as the posterior if theta was.

        Several threads may sweep at once, each with its own random numbers.
        """

    def adapted(self, thetas: Float[np.ndarray, "draw coordinate"]) -> MarkovKernel:
        """Learn from draws of all chains, which are then thrown away.

        The result is a kernel of the same posterior; this one, if there is nothing to learn.
        """


@runtime_checkable
class SweptPosterior(LogPosterior, Protocol):
    """A log posterior that brings a Markov kernel of its own, such as a Gibbs sweep."""

    def markov_kernel(self) -> MarkovKernel:
        """The kernel, before any tuning.

        ValueError if the rows cannot be swept, such as rows of fractional weight.
        """


@runtime_checkable
class PreparablePosterior(LogPosterior, Protocol):
    """A log posterior that is quicker once it is told that many points will be asked for."""

    def prepared_for_many(self) -> LogPosterior:
        """The same density, but for rounding, prepared for thousands of points."""


@runtime_checkable
class BatchedPosterior(LogPosterior, Protocol):
    """A log posterior that evaluates many points in one call."""

    def values_and_gradients(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, "point coordinate"]]:
        """Log densities with Jacobian, and their gradients, at points anywhere.

        They are those of ``value_and_gradient``, NaN or infinite where there is no density.
        """

    def log_densities(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, " point"]:
        """The same log densities alone, equal but for rounding."""


@runtime_checkable
class ComparedPosterior(LogPosterior, Protocol):
    """A log posterior that tells components apart at many points in one call."""

    def component_log_joints(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point row component"]:
        """What ``component_log_joint`` gives at every point."""


@runtime_checkable
class ManyLikelihoods(LogPosterior, Protocol):
    """A log posterior that gives the rows' log likelihood at many points in one call."""

    def log_likelihoods(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point obs"]:
        """What ``pointwise`` gives at every point."""


def for_many(log_posterior: LogPosterior) -> LogPosterior:
    """The same density, but for rounding, prepared for thousands of points where it can be."""
    if isinstance(log_posterior, PreparablePosterior):
        return log_posterior.prepared_for_many()
    return log_posterior
