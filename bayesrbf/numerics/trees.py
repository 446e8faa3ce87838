r"""Trees of thresholds, and the classes of rows of which any cells are missing.

A split sends a row left where its cell is at most the threshold. Where the cell is missing the row
goes both ways, by the shares s of the training rows that went there [1]_,

.. math:: f(x_o) = \frac{1}{T} \sum_t \sum_l p_{tl} \prod_{k \in path(t, l)} w_{tk}(x_o), \quad
    w_{tk} \in \{0, 1\} \text{ where the cell is known}, \; \{s_{tk}, 1 - s_{tk}\} \text{ else},

with class probabilities p of the leaves l. Boosting adds log odds of its leaves likewise. A row
without a cell gets the mean of all leaves by their training rows. Ways with less than 1/64 of a row
are not parted any more: the row goes where most rows went.

Thresholds lie between ranks: trees are grown on the ranks of the cells among those of training, so
units and monotone maps of a column change nothing.

.. [1] Quinlan (1993), C4.5: programs for machine learning, chapter 3.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float, Float32, Int32

from bayesrbf.numerics.kernels.tree_descent import add_leaves
from bayesrbf.numerics.log_sums import log_softmax
from bayesrbf.numerics.stack.pooling import LEAST_MEMBER_PROBABILITY
from bayesrbf.records.mixture import Observations
from bayesrbf.records.specification import Order
from bayesrbf.records.stored import (
    MOST_LOG,
    TOLERANCE,
    Requirements,
    ascending,
    simplex,
    stored,
    within,
)


@stored
class Trees:
    """Trees, whose nodes stand one after another: a split, all of its left side, its right side."""

    feature: Int32[np.ndarray, " node"]
    """Column of a split, reals before categories; -1 of a leaf."""
    threshold: Float[np.ndarray, " node"]
    """Largest cell that goes left, in the user's units; 0 of a leaf."""
    onward: Int32[np.ndarray, " node"]
    """Right child of a split; row of a leaf in ``leaves``."""
    left_share: Float32[np.ndarray, " node"]
    """Share of the training rows that went left; 0 of a leaf."""
    leaves: Float32[np.ndarray, "leaf label"]
    """What a leaf says of every class."""
    roots: Int32[np.ndarray, " tree"]

    def sums(self, cells: Float[np.ndarray, "obs column"]) -> Float[np.ndarray, "obs label"]:
        """What the leaves say of rows, over all trees. Missing cells are NaN."""
        totals = np.zeros((len(cells), self.leaves.shape[1]))
        arrays = self.feature, self.threshold, self.onward, self.left_share, self.leaves
        add_leaves(np.ascontiguousarray(cells), *arrays, self.roots, totals)
        return totals

    def reordered(self, order: Order) -> Trees:
        """The same trees for columns and classes in another order."""
        new = np.argsort(np.append(order.features, order.features.size + order.categories))
        feature = np.where(self.feature < 0, -1, new[self.feature]).astype(np.int32)
        return replace(self, feature=feature, leaves=self.leaves[:, order.classes])

    def __laws__(self) -> Requirements:
        n, here = self.feature.size, np.arange(self.feature.size)
        split, end = self.feature >= 0, self.feature < 0
        yield n > 0 and bool(end[-1]) and within(self.feature, -1), "nodes, the last of them a leaf"
        yield within(self.onward[end], 0, len(self.leaves)), "a row of values of every leaf"
        yield bool((self.onward[split] > here[split]).all()), "children behind their parents"
        yield within(self.onward[split], 0, n), "children of every split"
        yield within(self.left_share, 0, 1 + TOLERANCE), "shares from 0 to 1"
        begin = self.roots.size > 0 and within(self.roots, 0, n) and ascending(self.roots)
        yield begin, "trees that begin at nodes, one after another"


@stored
class Forest:
    """Trees whose leaves have class probabilities; a forest says their mean."""

    trees: Trees

    def log_probabilities(
        self, cells: Float[np.ndarray, "obs column"]
    ) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities of rows. Missing cells are NaN."""
        means = self.trees.sums(cells) / self.trees.roots.size
        logs: np.ndarray = np.log(np.maximum(means, LEAST_MEMBER_PROBABILITY))
        return logs

    def reordered(self, order: Order) -> Forest:
        """The same forest for columns and classes in another order."""
        return replace(self, trees=self.trees.reordered(order))

    def __laws__(self) -> Requirements:
        yield simplex(self.trees.leaves), "leaves with class probabilities"


@stored
class Boosting:
    """Trees whose leaves are added to the log odds of the classes."""

    trees: Trees
    base: Float[np.ndarray, " label"]
    """Log odds without a tree; -60 of a class without a row."""

    def log_probabilities(
        self, cells: Float[np.ndarray, "obs column"]
    ) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities of rows. Missing cells are NaN."""
        return log_softmax(self.base + self.trees.sums(cells), axis=1)

    def reordered(self, order: Order) -> Boosting:
        """The same trees for columns and classes in another order."""
        return Boosting(self.trees.reordered(order), self.base[order.classes])

    def __laws__(self) -> Requirements:
        leaves, base = self.trees.leaves, self.base
        yield base.size == leaves.shape[1], "a class for every column of its leaves"
        yield all(within(abs(one), 0, MOST_LOG) for one in (leaves, base)), "log odds"


def tree_cells(rows: Observations) -> Float[np.ndarray, "obs column"]:
    """Reals, then categories as their codes; missing cells are NaN."""
    codes = np.where(rows.codes < 0, np.nan, rows.codes)
    return np.concatenate([rows.real, codes], axis=1)


def ranked(
    cells: Float[np.ndarray, "obs column"],
) -> tuple[Float32[np.ndarray, "obs column"], list[Float[np.ndarray, " _"]]]:
    """Rank of every cell among the different ones of its column, and these in rising order.

    >>> ranked(np.array([[7.0], [1e300], [np.nan], [7.0]]))
    (array([[ 0.],
           [ 1.],
           [nan],
           [ 0.]], dtype=float32), [array([7.e+000, 1.e+300])])
    """
    values = [np.unique(column[~np.isnan(column)]) for column in cells.T]
    ranks = np.full(cells.shape, np.nan, np.float32)
    for column, different in enumerate(values):
        here = ~np.isnan(cells[:, column])
        ranks[here, column] = np.searchsorted(different, cells[here, column])
    return ranks, values


def unranked(
    thresholds: Float[np.ndarray, " split"], values: Float[np.ndarray, " value"]
) -> Float[np.ndarray, " split"]:
    """Thresholds between ranks as thresholds between values, which part them alike.

    An infinite one parts known cells from missing ones: all numbers are below.

    >>> unranked(np.array([0.0, 0.5, 1.5]), np.array([2.0, 4.0, 16.0]))
    array([ 2.,  3., 10.])
    """
    values = np.append(values, np.finfo(float).max)
    thresholds = np.minimum(thresholds, values.size - 1)
    below = np.floor(thresholds).astype(np.intp)
    above = np.minimum(below + 1, values.size - 1)
    part = thresholds - below
    between = (1 - part) * values[below] + part * values[above]
    # A mean of neighbouring numbers is one of them, and must not be the upper one.
    lower, upper = values[below], np.nextafter(values[above], -np.inf)
    return np.where(above > below, np.clip(between, lower, np.maximum(lower, upper)), lower)
