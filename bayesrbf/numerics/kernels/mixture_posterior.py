r"""Log posterior density of a mixture and its gradient, from coordinates to coordinates.

What :mod:`bayesrbf.numerics.mixture.mixture_prior` says in NumPy, with the E-step between its two
halves, in one call: for a table of a hundred rows the way through Python costs ten times the
arithmetic. With :math:`\theta` the coordinates, :math:`r` the E-step's responsibilities and n, S
their counts and scatters,

1. every simplex is a softmax;
2. precision factors are :math:`L_{ii} = e^{\theta / 2} / s_i`, :math:`L_{ij} = \theta / s_i`,
   means in standard units;
3. the E-step (:mod:`bayesrbf.numerics.kernels.driver`): log likelihood and statistics;
4. the log prior and, by Fisher's identity, the gradient of both.

Simplices: with coordinates t and :math:`t_L = -\sum t`, entries are
:math:`\log p_l = t_l - \log \sum_j e^{t_j}`; under counts m, prior powers among them,
:math:`\sum m_l \log p_l` has the gradient :math:`g_l - g_L` with
:math:`g_l = m_l - (\sum m) p_l`.

The caller allocates the arrays of the mixture's parts and of the sums; parts that the mixture
lacks are None.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bayesrbf.numerics.kernels.compilation import SOURCES, entry_point, kernel
from bayesrbf.numerics.kernels.declared_reals import (
    Point,
    Reals,
    diagonal_gradient,
    diagonal_point,
    full_gradient,
    full_point,
    write_precisions,
)
from bayesrbf.numerics.kernels.driver import Results, go_through
from bayesrbf.numerics.kernels.gaussian_complete import FullGaussians
from bayesrbf.numerics.kernels.gaussian_diagonal import DiagonalGaussians
from bayesrbf.numerics.kernels.gaussian_pattern import GaussiansWithHoles
from bayesrbf.numerics.kernels.tiles import Tiles


class Simplexes(NamedTuple):
    """All simplices of a mixture, their entries side by side."""

    starts: np.ndarray  # (simplex + 1,): first entry of each, and the number of entries
    places: np.ndarray  # (simplex,): first coordinate of each
    powers: np.ndarray  # (entry,): of the entries in the prior
    of_class: np.ndarray  # (component,): entry of its class probability, -1 where that is 1
    of_weight: np.ndarray  # (component,): entry of its weight, -1 where that is 1


class Levels(NamedTuple):
    """Where the probability of a level is among the entries: ``first + component * stride``."""

    members: np.ndarray  # (code, column of the pack): what combined codes stand for
    first: np.ndarray  # (line,): one line a level, the last for missing cells not among them
    stride: np.ndarray  # (line,)


@kernel
def write_logs(theta: np.ndarray, simplexes: Simplexes, logs: np.ndarray) -> None:
    """Write the log of every entry: softmax of the coordinates and minus their sum."""
    for s in range(len(simplexes.places)):
        low, high = simplexes.starts[s], simplexes.starts[s + 1]
        last, top = 0.0, -np.inf
        for e in range(low, high - 1):
            logs[e] = theta[simplexes.places[s] + e - low]
            last -= logs[e]
            top = max(top, logs[e])
        logs[high - 1] = last
        top = max(top, last)
        total = 0.0
        for e in range(low, high):
            total += math.exp(logs[e] - top)
        shift = top + math.log(total)
        for e in range(low, high):
            logs[e] -= shift


@kernel
def write_constants(simplexes: Simplexes, logs: np.ndarray, constants: np.ndarray) -> None:
    """Write the log joint weight of every component."""
    for k in range(len(constants)):
        constants[k] = 0.0
        if simplexes.of_class[k] >= 0:
            constants[k] += logs[simplexes.of_class[k]]
        if simplexes.of_weight[k] >= 0:
            constants[k] += logs[simplexes.of_weight[k]]


@kernel
def write_levels(levels: Levels, logs: np.ndarray, table: np.ndarray) -> None:
    """Write the log probability of every combined code under every component."""
    for code in range(len(table)):
        for k in range(table.shape[1]):
            table[code, k] = 0.0
            for column in range(levels.members.shape[1]):
                line = levels.members[code, column]
                if line < len(levels.first):
                    table[code, k] += logs[levels.first[line] + k * levels.stride[line]]


@kernel
def add_counts(simplexes: Simplexes, counts: np.ndarray, entries: np.ndarray) -> None:
    """Add the components' counts to the entries of classes and weights."""
    for k in range(len(counts)):
        if simplexes.of_class[k] >= 0:
            entries[simplexes.of_class[k]] += counts[k]
        if simplexes.of_weight[k] >= 0:
            entries[simplexes.of_weight[k]] += counts[k]


@kernel
def add_level_counts(levels: Levels, counts: np.ndarray, entries: np.ndarray) -> None:
    """Add the counts of combined codes to the entries of their levels."""
    for code in range(counts.shape[0]):
        for column in range(levels.members.shape[1]):
            line = levels.members[code, column]
            if line < len(levels.first):
                for k in range(counts.shape[1]):
                    entries[levels.first[line] + k * levels.stride[line]] += counts[code, k]


@kernel
def log_prior_of_simplexes(simplexes: Simplexes, logs: np.ndarray) -> float:
    """Log prior of all entries: their powers times their logs."""
    value = 0.0
    for e in range(len(logs)):
        value += simplexes.powers[e] * logs[e]
    return value


@kernel
def simplex_gradient(
    simplexes: Simplexes, logs: np.ndarray, counts: np.ndarray, gradient: np.ndarray
) -> None:
    """Write the gradient under expected counts, to which the prior's powers are added."""
    for s in range(len(simplexes.places)):
        low, high = simplexes.starts[s], simplexes.starts[s + 1]
        total = 0.0
        for e in range(low, high):
            counts[e] += simplexes.powers[e]
            total += counts[e]
        last = counts[high - 1] - total * math.exp(logs[high - 1])
        for e in range(low, high - 1):
            gradient[simplexes.places[s] + e - low] = counts[e] - total * math.exp(logs[e]) - last


def _compiled(sources: str) -> Callable[..., None]:
    """Compile :data:`log_posterior` under a key that covers all kernel files."""

    @entry_point
    def log_posterior(
        thetas: np.ndarray,
        values: np.ndarray,
        gradients: np.ndarray,
        tiles: Tiles,
        simplexes: Simplexes,
        reals: Reals,
        levels: Levels,
        point: Point,
        sums: Results,
        constants: np.ndarray,
        full: FullGaussians | None,
        holes: GaussiansWithHoles | None,
        diagonal: DiagonalGaussians | None,
        categories: np.ndarray,
    ) -> None:
        _ = sources
        n_entries, n_tiles = simplexes.starts[-1], len(tiles.sizes)
        logs, entries = np.empty(n_entries), np.empty(n_entries)
        for i in range(len(thetas)):
            theta = thetas[i]
            write_logs(theta, simplexes, logs)
            write_constants(simplexes, logs, constants)
            value = log_prior_of_simplexes(simplexes, logs)
            if full is not None:
                value += full_point(theta, reals, point, full, constants)
            if holes is not None:
                write_precisions(point.factors, holes.precisions)
            if diagonal is not None:
                value += diagonal_point(theta, reals, point, diagonal, constants)
            write_levels(levels, logs, categories)
            sums.counts[:] = sums.log_likelihood[:] = entries[:] = 0.0
            sums.first[:], sums.second[:], sums.categories[:] = 0.0, 0.0, 0.0
            go_through(
                tiles,
                tiles.components,
                0,
                n_tiles,
                sums,
                np.empty((0, 0)),
                constants,
                full,
                holes,
                diagonal,
                categories,
            )
            values[i] = value + sums.log_likelihood[0]
            if i < len(gradients):
                if full is not None:
                    full_gradient(theta, reals, point, sums, gradients[i])
                if diagonal is not None:
                    diagonal_gradient(theta, reals, point, sums, gradients[i])
                add_level_counts(levels, sums.categories, entries)
                add_counts(simplexes, sums.counts, entries)
                simplex_gradient(simplexes, logs, entries, gradients[i])

    return log_posterior


log_posterior = _compiled(SOURCES)
"""Write log densities at points ``thetas``, without constants, and their gradients.

Gradients are left out where ``gradients`` is empty; ``sums`` then has no moments either.
"""
