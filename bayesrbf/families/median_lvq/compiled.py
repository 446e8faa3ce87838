"""Compiled loops over pairs of rows and over candidates for a prototype."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from numba import njit

from bayesrbf.base.compiled import entry_point, exponential, inlined, kernel, logarithm

# Every pair of two sets of rows by a compiled function of two rows.
#
# It is compiled again for each function and not kept on disk: Numba cannot check whether a function
# that it was given is still the same.


@njit(nogil=True)
def every_pair(
    rows: np.ndarray, others: np.ndarray, metric: Callable[[np.ndarray, np.ndarray], float]
) -> np.ndarray:
    """``metric(rows[n], others[m])`` for every pair; Numba compiled the metric."""
    values = np.empty((len(rows), len(others)))
    for n in range(len(rows)):
        for m in range(len(others)):
            values[n, m] = metric(rows[n], others[m])
    return values


# Label scores of every candidate for a prototype in one pass over the rows.
#
# With :math:`k_{nc} = e^{-d(x_n, c) / \sigma^2}` the kernels of candidates, and :math:`a_n, s_n`
# the sums of those of the other prototypes, of the row's own class and of all,
#
# .. math:: \log p(y_n | x_n) = \log\frac{a_n}{s_n} + [c \text{ joins } y_n]
#     \log\Bigl(1 + \frac{k_{nc}}{a_n}\Bigr) - \log\Bigl(1 + \frac{k_{nc}}{s_n}\Bigr).
#
# A sum of logs is the log of a product: factors of rows of one weight are multiplied while the
# largest that they can be, :math:`1 + 1/a_n`, leaves room among the doubles, and one logarithm
# is taken of all. What does not depend on the candidate is left to the caller.
#
# Likelihoods of given prototypes are taken relative to the nearest of the own class and of all,
# so that none underflows.


ROOM: Final = 690.0  # Largest log of a product: exp(690) is a double, and so is exp(-690).


@inlined
def _add_terms(
    kernels: np.ndarray,
    joins: np.ndarray,
    own: np.ndarray,
    whole: np.ndarray,
    weights: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Add the terms that depend on the candidate.

    Kernels are (row, candidate). Each row has whether the candidate is of its class, the sums over
    the other prototypes of its class and of all, and a weight.
    """
    n_rows, n_candidates = kernels.shape
    up, down = np.ones(n_candidates), np.ones(n_candidates)
    room, weight = ROOM, 0.0
    for n in range(n_rows):
        alone = joins[n] and own[n] == 0.0
        smallest = own[n] if joins[n] else whole[n]
        # A kernel is at most 1, so no factor exceeds 1 + 1 / smallest. A kernel that is itself
        # a factor may be as small as a product, and has one to itself.
        reach = ROOM if alone else math.log1p(1.0 / smallest)
        if reach > room or weights[n] != weight:
            for c in range(n_candidates):
                totals[c] += weight * (logarithm(up[c]) - logarithm(down[c]))
                up[c] = down[c] = 1.0
            room, weight = ROOM, weights[n]
        room -= reach
        if alone:
            for c in range(n_candidates):
                up[c] *= kernels[n, c]
        elif joins[n]:
            inverse = 1.0 / own[n]
            for c in range(n_candidates):
                up[c] *= 1.0 + kernels[n, c] * inverse
        if whole[n] == 0.0:
            for c in range(n_candidates):
                down[c] *= kernels[n, c]
        else:
            inverse = 1.0 / whole[n]
            for c in range(n_candidates):
                down[c] *= 1.0 + kernels[n, c] * inverse
    for c in range(n_candidates):
        totals[c] += weight * (logarithm(up[c]) - logarithm(down[c]))


@entry_point
def add_swap_scores(
    kernels: np.ndarray,
    joins: np.ndarray,
    own: np.ndarray,
    whole: np.ndarray,
    weights: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Call :func:`_add_terms` from Python."""
    _add_terms(kernels, joins, own, whole, weights, totals)


@entry_point
def sweep_exemplars(
    kernels: np.ndarray,
    starts: np.ndarray,
    classes: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    bound: np.ndarray,
    order: np.ndarray,
    uniforms: np.ndarray,
    tolerance: float,
    lines: np.ndarray,
    positions: np.ndarray,
) -> None:
    """Move prototypes, in an order, to the best of their candidates or to a drawn one.

    Kernels of all classes follow each other, each (row, candidate) in one piece; ``starts`` says
    where each class begins among the candidates. ``bound`` (prototype, candidate) replaces the own
    class in a bound, and ``uniforms`` give the draws; both are empty where unused. Gains up to
    ``tolerance`` count as rounding. ``lines``, the kernels (prototype, row), and ``positions`` of
    the prototypes are written to.
    """
    n_prototypes, n_rows = lines.shape
    for turn in range(order.size):
        j = order[turn]
        first, last = starts[classes[j]], starts[classes[j] + 1]
        block = kernels[n_rows * first : n_rows * last].reshape((n_rows, last - first))
        own, whole = np.zeros(n_rows), np.zeros(n_rows)
        for k in range(n_prototypes):
            if k != j:
                for n in range(n_rows):
                    whole[n] += lines[k, n]
                    own[n] += lines[k, n] if labels[n] == classes[k] else 0.0
        totals, joins = np.zeros(last - first), np.zeros(n_rows, np.bool_)
        if bound.size == 0:
            joins = labels == classes[j]
        else:
            totals += bound[j, : last - first]
        _add_terms(block, joins, own, whole, weights, totals)
        if uniforms.size == 0:
            chosen = best_position(totals, positions[j], tolerance)
        else:
            chosen = drawn_position(totals, uniforms[turn])
        positions[j] = chosen
        for n in range(n_rows):
            lines[j, n] = block[n, chosen]


@kernel
def best_position(totals: np.ndarray, now: int, tolerance: float) -> int:
    """The place with the largest total, or the present one if the gain is at most ``tolerance``."""
    best = now
    for c in range(totals.size):
        if totals[c] > totals[best]:
            best = c
    return best if totals[best] - totals[now] > tolerance else now


@kernel
def drawn_position(totals: np.ndarray, uniform: float) -> int:
    """A draw with probabilities proportional to the exponentials, by their running sum."""
    largest = totals.max()
    cumulative = np.empty(totals.size)
    whole = 0.0
    for c in range(totals.size):
        whole += exponential(totals[c] - largest)
        cumulative[c] = whole
    drawn = int(np.searchsorted(cumulative, uniform * whole, side="right"))
    return min(drawn, totals.size - 1)


@entry_point
def add_margin_scores(
    values: np.ndarray,
    joins: np.ndarray,
    near: np.ndarray,
    far: np.ndarray,
    weights: np.ndarray,
    logs: bool,
    totals: np.ndarray,
) -> None:
    """Add margins 2 g - 1 or logs of g, the far fraction, as if each candidate were the prototype.

    Dissimilarities are (row, candidate). Each row has whether the candidate is of its class, the
    nearest other prototype of its class and of the other classes, and a weight.
    """
    n_rows, n_candidates = values.shape
    for n in range(n_rows):
        if weights[n] == 0.0:
            continue
        for c in range(n_candidates):
            a = min(near[n], values[n, c]) if joins[n] else near[n]
            b = far[n] if joins[n] else min(far[n], values[n, c])
            share = b / (a + b) if a + b > 0.0 and b < np.inf else 0.5
            if not logs:
                totals[c] += weights[n] * (2.0 * share - 1.0)
            elif share > 0.0:
                totals[c] += weights[n] * logarithm(share)
            else:
                totals[c] = -np.inf


@entry_point
def write_label_logs(
    values: np.ndarray,
    labels: np.ndarray,
    starts: np.ndarray,
    precision: float,
    lowest: float,
    logs: np.ndarray,
) -> None:
    """Write log p(y | x) of rows.

    Takes dissimilarities (row, prototype), class codes, where each class begins among the
    prototypes, ``1 / sigma^2``, and a lower bound of the log kernels.
    """
    n_rows, n_prototypes = values.shape
    near = np.empty(n_prototypes)
    for n in range(n_rows):
        first, last = starts[labels[n]], starts[labels[n] + 1]
        largest = own = -np.inf
        for j in range(n_prototypes):
            near[j] = max(-precision * values[n, j], lowest)
            largest = max(largest, near[j])
        for j in range(first, last):
            own = max(own, near[j])
        of_own = of_all = 0.0
        for j in range(first, last):
            of_own += exponential(near[j] - own)
        for j in range(n_prototypes):
            of_all += exponential(near[j] - largest)
        logs[n] = (own - largest) + math.log(of_own) - math.log(of_all)
