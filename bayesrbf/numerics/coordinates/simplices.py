"""Points of simplices, all in one pass, however many variables they make up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.coordinates.places import places, slices
from bayesrbf.specification import Variable

SMALLEST_PROBABILITY = 1e-300
"""Keeps the log of an underflown probability finite."""


def simplex_gradient(
    counts: Float[np.ndarray, "*batch level"], probabilities: Float[np.ndarray, "*batch level"]
) -> Float[np.ndarray, "*batch free"]:
    r"""Gradient of :math:`\sum_l m_l \log p_l` in simplex coordinates.

    With :math:`g_l = m_l - (\sum m) p_l` it is :math:`g_l - g_L` without the last.

    Parameters
    ----------
    counts : ndarray of shape (..., n_levels)
        Coefficients m.
    probabilities : ndarray of shape (..., n_levels)
        Points p of the simplex.

    Returns
    -------
    ndarray of shape (..., n_levels - 1)
        Gradient.
    """
    raw = counts - counts.sum(axis=-1, keepdims=True) * probabilities
    return raw[..., :-1] - raw[..., -1:]


def safe_log(probabilities: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Logarithm that stays finite at zero.

    Parameters
    ----------
    probabilities : ndarray
        Numbers in [0, 1].

    Returns
    -------
    ndarray
        Their logarithms, at least -691.
    """
    return np.log(np.maximum(probabilities, SMALLEST_PROBABILITY))


class Simplices:
    """All simplices among the variables, their entries side by side.

    Parameters
    ----------
    variables : tuple of Variable
        Free variables in order; those that are no simplices play no part.

    Attributes
    ----------
    names : tuple of str
        The variables that hold simplices along their last axis, in order.
    slices : dict of str to slice
        Entries of each of them.
    places : ndarray of shape (n_free,)
        Coordinates of all simplices.
    log_sizes : float
        Sum of the log numbers of entries.
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
        """The simplices of these variables, prepared once.

        Parameters
        ----------
        variables : tuple of Variable
            Free variables in order.

        Returns
        -------
        Simplices
            Their simplices.
        """
        return Simplices(variables)

    def entries(self, values: Mapping[str, np.ndarray]) -> Float[np.ndarray, " entry"]:
        """Side by side what belongs to the entries of each variable.

        Parameters
        ----------
        values : mapping of str to ndarray
            One array of the variable's shape for each of ``names``.

        Returns
        -------
        ndarray of shape (n_entries,)
            The arrays' entries.
        """
        return np.concatenate([_NOTHING, *(values[name].reshape(-1) for name in self.names)])

    def probabilities(
        self, theta: Float[np.ndarray, "*batch free"]
    ) -> Float[np.ndarray, "*batch entry"]:
        """Points of the simplices at given coordinates.

        Parameters
        ----------
        theta : ndarray of shape (..., n_free)
            Coordinates of all simplices.

        Returns
        -------
        ndarray of shape (..., n_entries)
            Entries, summing to one within each simplex.
        """
        logs = np.zeros((*theta.shape[:-1], self._owner.size))
        logs[..., self._free] = theta
        logs[..., self._last] = -np.add.reduceat(logs, self._starts, axis=-1)
        logs -= np.maximum.reduceat(logs, self._starts, axis=-1).take(self._owner, axis=-1)
        powers = np.exp(logs)
        return powers / np.add.reduceat(powers, self._starts, axis=-1).take(self._owner, axis=-1)

    def coordinates(self, probabilities: Float[np.ndarray, " entry"]) -> Float[np.ndarray, " free"]:
        """Coordinates of given points.

        Parameters
        ----------
        probabilities : ndarray of shape (n_entries,)
            Entries of all simplices.

        Returns
        -------
        ndarray of shape (n_free,)
            Coordinates.
        """
        logs = safe_log(probabilities)
        means = np.add.reduceat(logs, self._starts) / self._sizes
        return (logs - means[self._owner])[self._free]

    def gradient(
        self, counts: Float[np.ndarray, " entry"], probabilities: Float[np.ndarray, " entry"]
    ) -> Float[np.ndarray, " free"]:
        """What :func:`simplex_gradient` is, of all simplices.

        Parameters
        ----------
        counts : ndarray of shape (n_entries,)
            Coefficients m.
        probabilities : ndarray of shape (n_entries,)
            Points p.

        Returns
        -------
        ndarray of shape (n_free,)
            Gradient in their coordinates.
        """
        raw = counts - np.add.reduceat(counts, self._starts)[self._owner] * probabilities
        return raw[self._free] - raw[self._last_of_free]


_NOTHING = np.zeros(0)
