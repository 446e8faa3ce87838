"""The interface of a log posterior density, and unconstrained coordinates of its variables."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import ClassVar, Self

import numpy as np
from jaxtyping import Float, Int, Real

from bayesrbf.base.priors import ClassPrediction
from bayesrbf.base.rows import Variable

# Unconstrained coordinates of declared variables, as PyMC's value variables have them.
#
# All simplices go through one pass, however many variables they make up.


SMALLEST_PROBABILITY = 1e-300  # Stands for an underflown probability, so that its log stays finite.

# np.concatenate takes no empty list: a model may have no simplex.
_NOTHING = np.zeros(0)


def to_unconstrained(
    variables: tuple[Variable, ...], values: Mapping[str, np.ndarray]
) -> Float[np.ndarray, " coordinate"]:
    r"""Coordinates of one point: of reals, of positive values, and of simplices of K entries.

    .. math:: \theta = v, \qquad \theta = \log v, \qquad
        \theta_l = \log p_l - \overline{\log p} \text{ for } l < K
    """
    return Coordinates.of(variables).to_unconstrained(values)


def to_constrained(
    variables: tuple[Variable, ...], thetas: Float[np.ndarray, "*batch coordinate"]
) -> dict[str, np.ndarray]:
    """Constrained values of one point or of many."""
    return Coordinates.of(variables).to_constrained(thetas)


def log_jacobian(
    variables: tuple[Variable, ...], values: Mapping[str, np.ndarray]
) -> tuple[float, Float[np.ndarray, " coordinate"]]:
    r"""Log determinant of d values / d coordinates, and its gradient in the coordinates.

    A positive value adds :math:`\log v`, a simplex of K entries :math:`\sum_l \log p_l + \log K`.
    """
    simplices = Simplices.among(variables)
    entries = simplices.entries(values)
    value = simplices.log_sizes + float(safe_log(entries).sum())
    gradient = np.zeros(sum(variable.size for variable in variables))
    gradient[simplices.indices] = simplices.gradient(np.ones_like(entries), entries)
    for variable, coordinates in slices(variables):
        if variable.transform == "log":
            value += float(np.log(values[variable.name]).sum())
            gradient[coordinates] = 1.0
    return value, gradient


@cache
def slices(variables: tuple[Variable, ...]) -> tuple[tuple[Variable, slice], ...]:
    """Each variable with its slice of the vector of coordinates."""
    return tuple(zip(variables, consecutive_slices([v.size for v in variables]), strict=True))


def consecutive_slices(sizes: list[int]) -> list[slice]:
    """Consecutive slices of the given sizes, from 0."""
    edges = [0, *itertools.accumulate(sizes)]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def simplex_gradient(
    counts: Float[np.ndarray, "*batch level"], probabilities: Float[np.ndarray, "*batch level"]
) -> Float[np.ndarray, "*batch free"]:
    r"""Gradient of :math:`\sum_l m_l \log p_l` in simplex coordinates.

    With :math:`g_l = m_l - (\sum m) p_l` it is :math:`g_l - g_L` without the last.
    """
    raw = counts - counts.sum(axis=-1, keepdims=True) * probabilities
    return raw[..., :-1] - raw[..., -1:]


def safe_log(probabilities: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Logarithm that stays finite at zero: at least -691."""
    return np.log(np.maximum(probabilities, SMALLEST_PROBABILITY))


def log_normal(values: Float[np.ndarray, "*shape"], sd: float) -> float:
    """Log density of independent normal values about 0."""
    squares = float((values**2).sum()) / sd**2
    return -0.5 * squares - values.size * float(np.log(sd) + 0.5 * np.log(2 * np.pi))


class Simplices:
    """All simplices among the variables, their entries side by side.

    A simplex lies along the last axis of its variable. ``names`` are the variables with simplices,
    ``slices`` the entries of each variable, ``indices`` the coordinates of all entries, and
    ``log_sizes`` the sum of ``log K`` over simplices of K entries.
    """

    def __init__(self, variables: tuple[Variable, ...]) -> None:
        chosen = [(v, free) for v, free in slices(variables) if v.transform == "simplex"]
        shapes = [v.shape for v, _ in chosen]
        entries = consecutive_slices([math.prod(shape) for shape in shapes])
        self.names = tuple(v.name for v, _ in chosen)
        self.slices = dict(zip(self.names, entries, strict=True))
        indices = [np.arange(free.start, free.stop) for _, free in chosen]
        self.indices = np.concatenate([np.zeros(0, np.intp), *indices])
        numbers = [math.prod(shape[:-1]) for shape in shapes]
        self._sizes = np.repeat([0, *(shape[-1] for shape in shapes)], [0, *numbers])
        self.log_sizes = float(np.log(self._sizes).sum())
        stops = self._sizes.cumsum()
        self._starts, self._last = stops - self._sizes, stops - 1
        self._owner = np.repeat(np.arange(stops.size), self._sizes)
        self._free = np.delete(np.arange(self._owner.size), self._last)
        self._last_of_free = self._last[self._owner[self._free]]

    @staticmethod
    @cache
    def among(variables: tuple[Variable, ...]) -> Simplices:
        """The simplices of these variables, prepared once."""
        return Simplices(variables)

    def entries(self, values: Mapping[str, np.ndarray]) -> Float[np.ndarray, " entry"]:
        """Entries of all simplices, side by side, from one array per variable of ``names``."""
        return np.concatenate([_NOTHING, *(values[name].reshape(-1) for name in self.names)])

    def probabilities(
        self, theta: Float[np.ndarray, "*batch free"]
    ) -> Float[np.ndarray, "*batch entry"]:
        """Points of the simplices, entries side by side, at given coordinates."""
        logs = np.zeros((*theta.shape[:-1], self._owner.size))
        logs[..., self._free] = theta
        # Logs of a simplex are centred: the last is minus the sum of the others.
        logs[..., self._last] = -np.add.reduceat(logs, self._starts, axis=-1)
        # The largest entry becomes exp(0): no sum overflows or vanishes.
        logs -= np.maximum.reduceat(logs, self._starts, axis=-1).take(self._owner, axis=-1)
        powers = np.exp(logs)
        return powers / np.add.reduceat(powers, self._starts, axis=-1).take(self._owner, axis=-1)

    def coordinates(self, probabilities: Float[np.ndarray, " entry"]) -> Float[np.ndarray, " free"]:
        """Coordinates of given points."""
        logs = safe_log(probabilities)
        means = np.add.reduceat(logs, self._starts) / self._sizes
        return (logs - means[self._owner])[self._free]

    def gradient(
        self, counts: Float[np.ndarray, " entry"], probabilities: Float[np.ndarray, " entry"]
    ) -> Float[np.ndarray, " free"]:
        """:func:`simplex_gradient` of all simplices."""
        raw = counts - np.add.reduceat(counts, self._starts)[self._owner] * probabilities
        return raw[self._free] - raw[self._last_of_free]


class Coordinates:
    """Maps between values of variables and unconstrained coordinates, prepared once."""

    def __init__(self, variables: tuple[Variable, ...]) -> None:
        self._simplices = Simplices.among(variables)
        self._slices = slices(variables)
        self._dimension = sum(variable.size for variable in variables)

    @staticmethod
    @cache
    def of(variables: tuple[Variable, ...]) -> Coordinates:
        """The coordinates of these variables."""
        return Coordinates(variables)

    def to_unconstrained(
        self, values: Mapping[str, np.ndarray]
    ) -> Float[np.ndarray, " coordinate"]:
        """Unconstrained coordinates of one point, whose constrained values are given by name."""
        simplices = self._simplices
        theta = np.zeros(self._dimension)
        theta[simplices.indices] = simplices.coordinates(simplices.entries(values))
        for variable, coordinates in self._slices:
            if variable.transform != "simplex":
                value = np.asarray(values[variable.name], dtype=float).reshape(-1)
                theta[coordinates] = np.log(value) if variable.transform == "log" else value
        return theta

    def to_constrained(
        self, thetas: Float[np.ndarray, "*batch coordinate"]
    ) -> dict[str, np.ndarray]:
        """Constrained values by name; dims of the batch come first, then those of the variable."""
        simplices = self._simplices
        batch = thetas.shape[:-1]
        probabilities = simplices.probabilities(thetas[..., simplices.indices])
        values = {}
        for variable, coordinates in self._slices:
            if variable.transform == "simplex":
                value = probabilities[..., simplices.slices[variable.name]]
            else:
                value = thetas[..., coordinates]
                value = np.exp(value) if variable.transform == "log" else value
            values[variable.name] = value.reshape((*batch, *variable.shape))
        return values


# Interfaces between models and inference: a log posterior density, and a Markov kernel.
#
# A family writes the density at one point. Everything about many points has a default that takes
# them one by one; a family that is quicker at many replaces it.


class LogPosterior(ABC):
    r"""A log posterior density over the unconstrained coordinates of the declared graph.

    With theta the coordinates and v(theta) the constrained values,

    .. math:: \log p(\theta) = \log p(v(\theta), x, y) + \log |\det dv / d\theta|.

    A family writes ``variables``, ``value_and_gradient`` and ``pointwise``. One whose components
    can trade places also writes ``component_class``, ``component_log_joint`` and ``permute``.
    """

    points_at_once: ClassVar[int] = 1
    """Number of points that one call handles best; 1 where points are evaluated one by one."""
    no_prior: ClassVar[str] = ""
    """Why the sensitivity to the prior says nothing; empty where it does."""

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
        return to_constrained(self.variables, thetas)

    def deterministic(
        self, thetas: Float[np.ndarray, "*draws coordinate"]
    ) -> dict[str, Float[np.ndarray, "*_"]]:
        """Values of the deterministic variables by name, at one point or many."""
        return {}

    # ---- components that can trade places

    @property
    def component_class(self) -> Int[np.ndarray, " component"]:
        """Class of each component; components of one class are exchangeable."""
        return np.zeros(0, dtype=np.intp)

    @property
    def exchangeable(self) -> bool:
        """Whether a class has several components, whose labels can be permuted."""
        return bool(np.bincount(self.component_class).max(initial=0) > 1)

    def component_log_joint(
        self, theta: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, "row component"]:
        """Log joint of rows and components, which identifies components for relabelling.

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
        """:meth:`pointwise` at one point or more, stacked."""
        return np.stack([self.pointwise(theta) for theta in thetas])

    def label_log_likelihoods(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point obs"] | None:
        """``log p(y_n | x_n)`` where :meth:`pointwise` is ``log p(x_n, y_n)``.

        None where it is the same, or where a label adds something else, such as a margin.
        """
        return None

    @property
    def row_weights(self) -> Float[np.ndarray, " obs"] | float:
        """Factor of every row's :meth:`pointwise` in the density."""
        return 1.0

    def copies_log_likelihoods(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point obs"] | None:
        """Log likelihood of copies of the rows, in addition to :meth:`pointwise`; None without."""
        return None

    def component_log_joints(
        self, thetas: Float[np.ndarray, "point coordinate"]
    ) -> Float[np.ndarray, "point row component"]:
        """:meth:`component_log_joint` at one point or more, stacked."""
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

    @abstractmethod
    def at_all(self, thetas: Real[np.ndarray, "draw coordinate"]) -> ClassPrediction:
        """Predict under every draw; draws are the first axis of the result."""

    def __call__(self, theta: Real[np.ndarray, " coordinate"]) -> ClassPrediction:
        """Predict under one draw."""
        many = self.at_all(theta[None])
        return ClassPrediction(many.log_probabilities[0], many.log_density[0])


@dataclass(frozen=True)
class OneByOne(Predictor):
    """A predictor that is evaluated draw by draw."""

    at: Callable[[np.ndarray], ClassPrediction]

    def __call__(self, theta: Float[np.ndarray, " coordinate"]) -> ClassPrediction:
        """Predict under one draw."""
        return self.at(theta)

    def at_all(self, thetas: Float[np.ndarray, "draw coordinate"]) -> ClassPrediction:
        """Predict under each of one or more draws."""
        predictions = [self.at(theta) for theta in thetas]
        return ClassPrediction(
            np.stack([prediction.log_probabilities for prediction in predictions]),
            np.stack([prediction.log_density for prediction in predictions]),
        )
