r"""Unconstrained coordinates of declared variables, as PyMC's value variables have them.

- identity: :math:`\theta = v`;
- log: :math:`\theta = \log v`, log Jacobian :math:`\theta`;
- simplex: :math:`\theta = (\log p - \overline{\log p})` without its last entry,
  log Jacobian :math:`\sum \log p + \log K`.

All simplices go through one pass, however many variables they make up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from functools import cache

import numpy as np
from jaxtyping import Float

from bayesrbf.records.specification import Variable

SMALLEST_PROBABILITY = 1e-300  # Stands for an underflown probability, so that its log stays finite.

_NOTHING = np.zeros(0)


def to_unconstrained(
    variables: tuple[Variable, ...], values: Mapping[str, np.ndarray]
) -> Float[np.ndarray, " coordinate"]:
    """Coordinates of one point."""
    return Coordinates.of(variables).to_unconstrained(values)


def to_constrained(
    variables: tuple[Variable, ...], thetas: Float[np.ndarray, "*batch coordinate"]
) -> dict[str, np.ndarray]:
    """Constrained values of one point or of many."""
    return Coordinates.of(variables).to_constrained(thetas)


def log_jacobian(
    variables: tuple[Variable, ...], values: Mapping[str, np.ndarray]
) -> tuple[float, Float[np.ndarray, " coordinate"]]:
    """Log determinant of d values / d coordinates, and its gradient in the coordinates."""
    simplices = Simplices.among(variables)
    entries = simplices.entries(values)
    value = simplices.log_sizes + float(safe_log(entries).sum())
    gradient = np.zeros(sum(variable.size for variable in variables))
    gradient[simplices.places] = simplices.gradient(np.ones_like(entries), entries)
    for variable, place in slices(variables):
        if variable.transform == "log":
            value += float(np.log(values[variable.name]).sum())
            gradient[place] = 1.0
    return value, gradient


def in_coordinates(
    variables: tuple[Variable, ...],
    values: Mapping[str, np.ndarray],
    gradients: Mapping[str, np.ndarray],
) -> Float[np.ndarray, " coordinate"]:
    """Gradient in the coordinates from that in the constrained values."""
    result = np.zeros(sum(variable.size for variable in variables))
    for variable, place in slices(variables):
        gradient, value = gradients[variable.name], values[variable.name]
        if variable.transform == "log":
            gradient = gradient * value
        elif variable.transform == "simplex":
            gradient = simplex_gradient(gradient * value, value)
        result[place] = gradient.reshape(-1)
    return result


@cache
def slices(variables: tuple[Variable, ...]) -> tuple[tuple[Variable, slice], ...]:
    """Each variable with its place in the vector of coordinates."""
    return tuple(zip(variables, places([v.size for v in variables]), strict=True))


def places(sizes: list[int]) -> list[slice]:
    """Lay things of these sizes one after the other: the entries of each."""
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


class Simplices:
    """All simplices among the variables, their entries side by side.

    A simplex lies along the last axis of its variable. ``names``, ``slices`` and ``places`` have
    the variables that hold simplices, the entries of each of them, and the coordinates of all.
    ``log_sizes`` is the sum of the log numbers of entries.
    """

    def __init__(self, variables: tuple[Variable, ...]) -> None:
        chosen = [(v, place) for v, place in slices(variables) if v.transform == "simplex"]
        shapes = [v.shape for v, _ in chosen]
        entries = places([math.prod(shape) for shape in shapes])
        self.names = tuple(v.name for v, _ in chosen)
        self.slices = dict(zip(self.names, entries, strict=True))
        indices = [np.arange(place.start, place.stop) for _, place in chosen]
        self.places = np.concatenate([np.zeros(0, np.intp), *indices])
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
    """The way from values of some variables to their coordinates and back, prepared once."""

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
        """Coordinates of one point."""
        simplices, theta = self._simplices, np.zeros(self._dimension)
        theta[simplices.places] = simplices.coordinates(simplices.entries(values))
        for variable, place in self._slices:
            if variable.transform != "simplex":
                value = np.asarray(values[variable.name], dtype=float).reshape(-1)
                theta[place] = np.log(value) if variable.transform == "log" else value
        return theta

    def to_constrained(
        self, thetas: Float[np.ndarray, "*batch coordinate"]
    ) -> dict[str, np.ndarray]:
        """Constrained values of one point or of many."""
        simplices, batch = self._simplices, thetas.shape[:-1]
        probabilities = simplices.probabilities(thetas[..., simplices.places])
        values = {}
        for variable, place in self._slices:
            if variable.transform == "simplex":
                value = probabilities[..., simplices.slices[variable.name]]
            else:
                value = thetas[..., place]
                value = np.exp(value) if variable.transform == "log" else value
            values[variable.name] = value.reshape((*batch, *variable.shape))
        return values
