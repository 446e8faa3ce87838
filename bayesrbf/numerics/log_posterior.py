"""Interfaces between models and inference: a log posterior density, and a Markov kernel.

A family writes the density at one point. Everything about many points has a default that takes
them one by one; a family that is quicker at many replaces it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from jaxtyping import Float, Int, Real

from bayesrbf.numerics import coordinates
from bayesrbf.records.results import ClassPrediction
from bayesrbf.records.specification import Variable


class LogPosterior(ABC):
    r"""A log posterior density over the unconstrained coordinates of the declared graph.

    With theta the coordinates and v(theta) the constrained values,

    .. math:: \log p(\theta) = \log p(v(\theta), x, y) + \log |\det dv / d\theta|.

    A family writes ``variables``, ``value_and_gradient`` and ``pointwise``. One whose components
    can trade places also writes ``component_class``, ``component_log_joint`` and ``permute``.
    """

    points_at_once: ClassVar[int] = 1
    """Number of points that one call handles best; 1 where points are evaluated one by one."""

    @property
    @abstractmethod
    def variables(self) -> tuple[Variable, ...]:
        """Free variables, in the order of the coordinates."""

    @abstractmethod
    def value_and_gradient(
        self, theta: Float[np.ndarray, " coordinate"], jacobian: bool = True
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log density in nats and its gradient in the coordinates.

        ``jacobian`` says whether the log determinant of the transforms is in it.
        """

    @abstractmethod
    def pointwise(self, theta: Float[np.ndarray, " coordinate"]) -> Float[np.ndarray, " obs"]:
        """Unweighted log likelihood ``log p(x_n, y_n)`` of every row in nats."""

    # ---- the coordinates and the values that they stand for

    @cached_property
    def dimension(self) -> int:
        """Number of coordinates."""
        return sum(variable.size for variable in self.variables)

    @property
    def scales(self) -> Float[np.ndarray, " coordinate"]:
        """Rough size of one unit of each coordinate."""
        return np.ones(self.dimension)

    @property
    def deterministic_variables(self) -> tuple[Variable, ...]:
        """Variables that are functions of the free ones."""
        return ()

    def constrained(
        self, thetas: Float[np.ndarray, "*draws coordinate"]
    ) -> dict[str, Real[np.ndarray, "*_"]]:
        """Values of the free variables by name, at one point or many."""
        return coordinates.to_constrained(self.variables, thetas)

    def deterministic(
        self, thetas: Float[np.ndarray, "*draws coordinate"]
    ) -> dict[str, Float[np.ndarray, "*_"]]:
        """Values of the deterministic variables by name, at one point or many."""
        return {}

    # ---- components that can trade places

    @property
    def component_class(self) -> Int[np.ndarray, " component"]:
        """Class of every component; those of one class are exchangeable."""
        return np.zeros(0, dtype=np.intp)

    @property
    def exchangeable(self) -> bool:
        """Whether a class has components that can trade places."""
        return bool(np.bincount(self.component_class).max(initial=0) > 1)

    def component_log_joint(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, "row component"]:
        """Log joint of rows and components, by which components are told apart.

        ``log p(x_n, k)`` up to a constant per row, of the same rows at every call: all of the table
        or some hundreds of it.
        """
        self._require_no_exchange("component_log_joint")
        return np.zeros((0, self.component_class.size))

    def permute(
        self, theta: Float[np.ndarray, " coordinate"], order: Int[np.ndarray, " component"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Reorder components within their classes: k of the result is component ``order[k]``.

        The density at the new coordinates is the same.
        """
        self._require_no_exchange("permute")
        return theta

    def _require_no_exchange(self, method: str) -> None:
        """NotImplementedError where components can trade places and the method is missing."""
        if self.exchangeable:
            raise NotImplementedError(
                f"{type(self).__name__} has components of one class in component_class, so it must "
                f"define {method}(); it has the default, which is for one component a class."
            )

    # ---- many points

    def prepared_for_many(self) -> LogPosterior:
        """A density that is prepared for thousands of points, equal but for rounding."""
        return self

    def evaluate(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> tuple[float, Float[np.ndarray, " coordinate"]]:
        """Log density with Jacobian and its gradient anywhere; NaN where the model has none.

        Searches try points far from any posterior.
        """
        try:
            with np.errstate(all="ignore"):
                return self.value_and_gradient(theta)
        except (np.linalg.LinAlgError, FloatingPointError, OverflowError):
            return np.nan, np.full(theta.size, np.nan)

    def values_and_gradients(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, "point coordinate"]]:
        """:meth:`evaluate` at every point; not finite where there is no density."""
        values, gradients = np.empty(len(thetas)), np.empty(thetas.shape)
        for i, theta in enumerate(thetas):
            values[i], gradients[i] = self.evaluate(theta)
        return values, gradients

    def log_densities(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, " point"]:
        """Log densities of :meth:`values_and_gradients` alone, equal but for rounding."""
        return self.values_and_gradients(thetas)[0]

    def log_likelihoods(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point obs"]:
        """:meth:`pointwise` at every point, of which there is at least one."""
        return np.stack([self.pointwise(theta) for theta in thetas])

    def component_log_joints(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point row component"]:
        """:meth:`component_log_joint` at every point, of which there is at least one."""
        return np.stack([self.component_log_joint(theta) for theta in thetas])

    # ---- a kernel of its own

    def markov_kernel(self) -> MarkovKernel:
        """A kernel that leaves the posterior invariant, before any tuning.

        ValueError where the model has none, or cannot sweep its rows, such as rows of fractional
        weight.
        """
        raise ValueError(
            "Gibbs sampling needs a model whose latent variables have known conditionals, such as "
            f"a mixture or exemplars; received a {type(self).__name__}: use refine('nuts')."
        )


class MarkovKernel(ABC):
    """A Markov kernel that leaves a posterior invariant."""

    @abstractmethod
    def sweep(
        self, theta: Float[np.ndarray, " coordinate"], rng: np.random.Generator
    ) -> Float[np.ndarray, " coordinate"]:
        """Move to the next point of a chain, distributed as the posterior if theta was.

        Several threads may sweep at once, each with its own random numbers.
        """

    def adapted(self, thetas: Float[np.ndarray, "draw coordinate"]) -> Self | MarkovKernel:
        """A kernel of the same posterior that has learned from draws of all chains.

        The draws are then thrown away. The default has nothing to learn.
        """
        return self


class Predictor(ABC):
    """Class probabilities and density of rows that were prepared, under any posterior draws."""

    delivered: Float[np.ndarray, "obs label"] | None = None
    """Class log probabilities that are given out, where preparing the rows makes them."""
    stretch: Float[np.ndarray, "obs label"] | None = None
    """How much further out, in log odds, than what is given out the median of centred draws lies,
    class by class; None: it is what is given out."""

    @abstractmethod
    def at_all(self, thetas: Real[np.ndarray, "draw coordinate"]) -> ClassPrediction:
        """Predict under every draw; draws are the first axis of the result."""

    def __call__(self, theta: Real[np.ndarray, " coordinate"]) -> ClassPrediction:
        """Predict under one draw."""
        many = self.at_all(theta[None])
        return ClassPrediction(many.log_probabilities[0], many.log_density[0])


@dataclass(frozen=True)
class OneByOne(Predictor):
    """A predictor that takes draws one by one."""

    at: Callable[[np.ndarray], ClassPrediction]

    def __call__(self, theta: Float[np.ndarray, " coordinate"]) -> ClassPrediction:
        """Predict under one draw."""
        return self.at(theta)

    def at_all(self, thetas: Float[np.ndarray, "draw coordinate"]) -> ClassPrediction:
        """Predict under every draw, of which there is at least one."""
        said = [self.at(theta) for theta in thetas]
        return ClassPrediction(
            np.stack([one.log_probabilities for one in said]),
            np.stack([one.log_density for one in said]),
        )
