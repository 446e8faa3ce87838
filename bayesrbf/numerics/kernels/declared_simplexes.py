r"""Simplices of a declared mixture: softmax of their coordinates, log prior and gradient.

With coordinates t and :math:`t_L = -\sum t`, entries are :math:`\log p_l = t_l - \log \sum_j
e^{t_j}`; under counts m, prior powers among them, :math:`\sum m_l \log p_l` has the gradient
:math:`g_l - g_L` with :math:`g_l = m_l - (\sum m) p_l`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bayesrbf.numerics.kernels.compilation import kernel


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
    """Powers times logs."""
    value = 0.0
    for e in range(len(logs)):
        value += simplexes.powers[e] * logs[e]
    return value


@kernel
def simplex_slopes(
    simplexes: Simplexes, logs: np.ndarray, counts: np.ndarray, slope: np.ndarray
) -> None:
    """Write the slopes under expected counts, to which the prior's powers are added."""
    for s in range(len(simplexes.places)):
        low, high = simplexes.starts[s], simplexes.starts[s + 1]
        total = 0.0
        for e in range(low, high):
            counts[e] += simplexes.powers[e]
            total += counts[e]
        last = counts[high - 1] - total * math.exp(logs[high - 1])
        for e in range(low, high - 1):
            slope[simplexes.places[s] + e - low] = counts[e] - total * math.exp(logs[e]) - last
