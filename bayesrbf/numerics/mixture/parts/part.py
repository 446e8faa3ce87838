"""What a mixture asks of its columns of one kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.mixture.statistics import Statistics
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import Order, Variable

Point = MixtureParameters
Hyper = MixtureHyperparameters
Rows = Observations
Rng = np.random.Generator
Values = Mapping[str, np.ndarray]
"""Values of free variables by name."""
Assignment = Int[np.ndarray, " row"]
"""The component of every row."""
Memberships = Float[np.ndarray, "row component"]


@runtime_checkable
class PartPrior(Protocol):
    """The declared prior of one part at any point."""

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


class Part(ABC):
    """Columns of one kind: the reals, the categories, or those under a law of their own.

    Each part reads and writes its own fields of points, statistics and rows, and hands on the
    others as they are: what is done to a mixture is done to one part after another.
    """

    @property
    @abstractmethod
    def variables(self) -> tuple[Variable, ...]:
        """Free variables of the graph."""

    @abstractmethod
    def values(self, point: Point, hyper: Hyper) -> Values:
        """Values of the variables at a point, in the units of the prior."""

    @abstractmethod
    def placed(self, point: Point, values: Values, hyper: Hyper) -> Point:
        """The point at given values of the variables: the inverse of :meth:`values`."""

    @abstractmethod
    def mode(self, point: Point, statistics: Statistics, hyper: Hyper) -> Point:
        """The M-step, from statistics of the E-step at the point."""

    @abstractmethod
    def begun(self, point: Point, rows: Rows, memberships: Memberships, hyper: Hyper) -> Point:
        """Where EM may begin, from memberships of rows."""

    @abstractmethod
    def embedding(self, rows: Rows) -> Float[np.ndarray, "row coordinate"]:
        """Rows as points for the first clusters, where a missing cell is at the middle."""

    @abstractmethod
    def completed(self, rows: Rows, components: Assignment, point: Point, rng: Rng) -> Rows:
        """Rows with their missing cells drawn given components and observed cells."""

    def sampled(self, rows: Rows, components: Assignment, point: Point, rng: Rng) -> Rows:
        """Rows without a cell, drawn given their components."""
        return self.completed(rows, components, point, rng)

    def reordered(self, point: Point, order: Order) -> Point:
        """The point of the columns in another order."""
        return point

    def prior(self, hyper: Hyper) -> PartPrior | None:
        """The prior; None where all of it is Dirichlet, as that of classes and weights is."""
        return None
