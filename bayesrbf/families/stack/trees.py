"""Members of a stack that are trees: forests and boosting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Float32, Int, Int32
from joblib import parallel_config
from threadpoolctl import threadpool_limits

from bayesrbf.base.arrays import log_softmax
from bayesrbf.base.priors import POOL_PRIOR
from bayesrbf.base.records import (
    MAX_LOG,
    TOLERANCE,
    Requirements,
    ascending,
    simplex,
    stored,
    within,
)
from bayesrbf.base.rows import Observations, Order
from bayesrbf.families.stack.compiled import add_leaves
from bayesrbf.table.order import cell_ranks

# Trees of thresholds, and the classes of rows with any missing cells.
#
# Thresholds lie between ranks: trees are grown on the ranks of the cells among those of training,
# so units and monotone transforms of a column change nothing.


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
    """Value of every leaf for every class."""
    roots: Int32[np.ndarray, " tree"]

    def sums(self, cells: Float[np.ndarray, "obs column"]) -> Float[np.ndarray, "obs label"]:
        r"""Sums of the leaves' values over all trees. Missing cells are NaN.

        A split k sends a row left where its cell is at most the threshold. Where the cell is
        missing the row goes both ways, by the shares s of the training rows that went there:

        .. math:: \sum_t \sum_l v_{tl} \prod_{k \in path(t, l)} w_{tk}(x_o), \quad
            w_{tk} \in \{0, 1\} \text{ where the cell is known}, \;
            \{s_{tk}, 1 - s_{tk}\} \text{ else},

        with values v of the leaves l. A row without a cell gets the mean of all leaves by their
        training rows. Below 1/64 of a row it goes where most rows went. See Quinlan (1993), C4.5:
        programs for machine learning, chapter 3.
        """
        totals = np.zeros((len(cells), self.leaves.shape[1]))
        arrays = self.feature, self.threshold, self.onward, self.left_share, self.leaves
        add_leaves(np.ascontiguousarray(cells), *arrays, self.roots, totals)
        return totals

    def reordered(self, order: Order) -> Trees:
        """The trees with columns and classes in another order."""
        new = np.argsort(np.append(order.features, order.features.size + order.categories))
        feature = np.where(self.feature < 0, -1, new[self.feature]).astype(np.int32)
        return replace(self, feature=feature, leaves=self.leaves[:, order.classes])

    def __laws__(self) -> Requirements:
        n, index = self.feature.size, np.arange(self.feature.size)
        split, end = self.feature >= 0, self.feature < 0
        yield n > 0 and bool(end[-1]) and within(self.feature, -1), "nodes, the last of them a leaf"
        yield within(self.onward[end], 0, len(self.leaves)), "a row of values of every leaf"
        yield bool((self.onward[split] > index[split]).all()), "children behind their parents"
        yield within(self.onward[split], 0, n), "children of every split"
        yield within(self.left_share, 0, 1 + TOLERANCE), "shares from 0 to 1"
        begin = self.roots.size > 0 and within(self.roots, 0, n) and ascending(self.roots)
        yield begin, "trees that begin at nodes, one after another"


@stored
class Forest:
    """Trees whose leaves have class probabilities; a forest predicts their mean."""

    trees: Trees

    def log_probabilities(
        self, cells: Float[np.ndarray, "obs column"]
    ) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities of rows, of the mean over trees. Missing cells are NaN."""
        means = self.trees.sums(cells) / self.trees.roots.size
        # A class may have no training row in any leaf that a row reaches.
        logs: np.ndarray = np.log(np.maximum(means, POOL_PRIOR.least))
        return logs

    def reordered(self, order: Order) -> Forest:
        """The forest with columns and classes in another order."""
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
        """The trees with columns and classes in another order."""
        return Boosting(self.trees.reordered(order), self.base[order.classes])

    def __laws__(self) -> Requirements:
        leaves, base = self.trees.leaves, self.base
        yield base.size == leaves.shape[1], "a class for every column of its leaves"
        yield all(within(abs(values), 0, MAX_LOG) for values in (leaves, base)), "log odds"


def tree_cells(rows: Observations) -> Float[np.ndarray, "obs column"]:
    """Reals, then categories as their codes; missing cells are NaN."""
    codes = np.where(rows.codes < 0, np.nan, rows.codes)
    return np.concatenate([rows.real, codes], axis=1)


def grouped(
    ranks: Float32[np.ndarray, " obs"], weights: Float[np.ndarray, " obs"]
) -> tuple[Float32[np.ndarray, " obs"], Float[np.ndarray, " group"]]:
    """Group of every rank, at most 255 groups of neighbouring ranks, and the last rank of each.

    Of more ranks groups have about the same weight. Left to itself, boosting would find them in
    Python, one by one.

    >>> grouped(np.array([2.0, 0.0, np.nan, 1.0], np.float32), np.ones(4))
    (array([ 2.,  0., nan,  1.], dtype=float32), array([0., 1., 2.]))
    """
    known = ~np.isnan(ranks)
    rank = ranks[known].astype(np.intp)
    mass = np.bincount(rank, weights[known])
    if mass.size <= GROUPS:
        return ranks, np.arange(float(mass.size))
    # A rank belongs to the group in which its weight begins.
    group = np.floor(GROUPS * (np.cumsum(mass) - mass) / max(mass.sum(), 1e-300))
    edges = np.append(np.flatnonzero(np.diff(group)), mass.size - 1)
    codes = np.full(ranks.shape, np.nan, np.float32)
    codes[known] = np.searchsorted(edges, rank)
    return codes, edges.astype(float)


OFF_MIDDLE: Final = 0.98
"""Factor of the distance of thresholds from the cell below. Cells that are written with few
decimals often lie in the very middle of two others, where rounding would decide on their side."""


def unranked(
    thresholds: Float[np.ndarray, " split"], values: Float[np.ndarray, " value"]
) -> Float[np.ndarray, " split"]:
    """Thresholds between values that split the cells as thresholds between their ranks do.

    An infinite threshold separates known cells from missing ones: all numbers are below.

    >>> unranked(np.array([0.0, 0.5, 1.5]), np.array([2.0, 4.0, 16.0]))
    array([2.  , 2.98, 9.88])
    """
    values = np.append(values, np.finfo(float).max)
    thresholds = np.minimum(thresholds, values.size - 1)
    below = np.floor(thresholds).astype(np.intp)
    above = np.minimum(below + 1, values.size - 1)
    fraction = OFF_MIDDLE * (thresholds - below)
    between = (1 - fraction) * values[below] + fraction * values[above]
    # A mean of neighbouring numbers is one of them, and must not be the upper one.
    lower, upper = values[below], np.nextafter(values[above], -np.inf)
    return np.where(above > below, np.clip(between, lower, np.maximum(lower, upper)), lower)


# Trees, grown by scikit-learn on the ranks of cells.


BOOSTING: Final = {"learning_rate": 0.1, "l2_regularization": 1.0, "early_stopping": False}
MIN_LEAVES, MAX_LEAVES, ROOT_OF_A_LEAF = 8, 32, 8.0
"""Leaves of a boosted tree: the root of the number of rows over eight. On adult 16 are better from
16,000 rows on and 31 from 40,000; on 4,000 rows 8 are."""
MAX_COPIES: Final = 100_000
"""Copies of all rows together, where fewer rows differ."""
DIGITS: Final = 64
"""Parts of a power of two to which weights are rounded."""
ROWS_OF_A_TREE: Final = 20_000
"""Rows that are drawn anew for a tree of a forest, at most: its nodes are as many."""
GROUPS: Final = 255
"""Groups of ranks between which boosting may split; scikit-learn takes no more."""
ABSENT: Final = -60.0
"""Log odds of a class without a row."""


@dataclass(frozen=True)
class TreeRows:
    """Labelled rows; a missing cell is NaN."""

    cells: Float[np.ndarray, "obs column"]
    labels: Int[np.ndarray, " obs"]
    weights: Float[np.ndarray, " obs"]
    n_classes: int

    @cached_property
    def used(self) -> Float[np.ndarray, " obs"]:
        """Weights rounded to two digits, so that a slight change of one grows the same trees.

        A sum below the number of rows is scaled up to it, a sum above ``MAX_COPIES`` down to that.
        """
        n, total = self.labels.size, self.weights.sum()
        scale = min(max(1.0, n / total), max(n, MAX_COPIES) / total)
        mantissas, exponents = np.frexp(self.weights * scale)
        return np.ldexp(np.round(mantissas * DIGITS) / DIGITS, exponents)

    @cached_property
    def ranks(self) -> Float32[np.ndarray, "obs column"]:
        """Rank of each cell among the distinct values of its column, from 0; NaN where missing."""
        ranks = cell_ranks(self.cells).T.astype(np.float32, order="C") - 1
        ranks[ranks < 0] = np.nan
        ranks[:, np.isnan(ranks).all(axis=0)] = 0.0  # no split uses such a column
        return ranks

    def fit(
        self,
        model: Any,
        ranks: Float32[np.ndarray, "copy column"],
        row_index: Int[np.ndarray, " copy"],
        weights: Float[np.ndarray, " copy"],
    ) -> None:
        """Fit a model of scikit-learn to ranks, or groups of ranks, of the rows ``row_index``."""
        # Equal weights are left out: scikit-learn is slower with weights.
        sample_weight = None if (weights == 1).all() else weights
        with parallel_config("threading"):  # trees are not worth sending to processes
            model.fit(ranks, self.labels[row_index], sample_weight=sample_weight)


def grow_forest(rows: TreeRows, *, n_trees: int, seed: int, extra: bool = False) -> Forest:
    """Forest of ``n_trees`` trees, each grown on rows drawn with replacement by their weights.

    A tree has at most ``ROWS_OF_A_TREE`` rows. ``extra`` trees split at random places; each has all
    rows, unless they are many.
    """
    # It takes a second: predictions need it not.
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

    total = rows.used.sum()
    drawn, many = min(round(total), ROWS_OF_A_TREE), total > ROWS_OF_A_TREE
    if extra:
        # A row of little weight alone in a leaf would say as much as any.
        model = ExtraTreesClassifier(
            n_trees,
            min_weight_fraction_leaf=min(0.99 / total, 0.5),
            bootstrap=many,
            max_samples=drawn if many else None,
            random_state=seed,
        )
    else:
        model = RandomForestClassifier(n_trees, max_samples=drawn, random_state=seed)
    # Rows are drawn as often as they weigh.
    rows.fit(model, rows.ranks, np.arange(rows.labels.size), rows.used)
    nodes = [
        _Nodes(
            tree.feature.astype(np.intp),
            tree.threshold,
            tree.children_right.astype(np.intp),
            tree.weighted_n_node_samples,
            _in_columns(tree.value[:, 0], model.classes_, rows.n_classes),
        )
        for tree in (estimator.tree_ for estimator in model.estimators_)
    ]
    trees = _joined(nodes, rows.cells)
    # In single precision shares sum to one but for rounding.
    leaves = trees.leaves / trees.leaves.sum(axis=1, keepdims=True)
    return Forest(replace(trees, leaves=leaves))


def grow_boosting(rows: TreeRows, *, n_steps: int, seed: int) -> Boosting:
    """Boosted trees of ``n_steps`` steps, each grown on what the steps before leave.

    A step has a tree for each class, or for the second of two classes.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Boosting counts rows, not their weights, where it bounds leaves.
    copies = np.maximum(np.round(rows.used), 1).astype(np.intp)
    row_index = np.repeat(np.arange(copies.size), copies)
    # Larger tables support finer trees; the square root lets leaves grow in rows, too.
    leaves = np.clip(np.sqrt(copies.sum()) / ROOT_OF_A_LEAF, MIN_LEAVES, MAX_LEAVES)
    model = HistGradientBoostingClassifier(
        max_iter=n_steps, max_leaf_nodes=int(leaves), random_state=seed, **BOOSTING
    )
    groups = [grouped(column, rows.used) for column in rows.ranks.T]
    codes = np.stack([of_column for of_column, _ in groups], axis=1)
    with threadpool_limits(1, user_api="openmp"):  # threads that wait spin beside other work
        rows.fit(model, codes[row_index], row_index, (rows.used / copies)[row_index])
    # Of two classes the second alone has trees.
    classes = model.classes_ if model.classes_.size > 2 else model.classes_[1:]
    nodes = [
        _Nodes(
            np.where(tree_nodes["is_leaf"], -1, tree_nodes["feature_idx"]).astype(np.intp),
            tree_nodes["num_threshold"],
            tree_nodes["right"].astype(np.intp),
            tree_nodes["count"].astype(float),
            _in_columns(tree_nodes["value"][:, None], classes[[index]], rows.n_classes),
        )
        # scikit-learn has no public name for the nodes; a test compares what they say.
        for step in model._predictors
        for index, tree_nodes in enumerate(tree.nodes for tree in step)
    ]
    base = np.full(rows.n_classes, ABSENT)
    base[model.classes_] = 0.0
    base[classes] = np.ravel(model._baseline_prediction)
    return Boosting(_joined(nodes, rows.cells, [edges for _, edges in groups]), base)


@dataclass(frozen=True)
class _Nodes:
    """A tree of scikit-learn, whose left children, too, are the next nodes."""

    feature: Int[np.ndarray, " node"]
    rank: Float[np.ndarray, " node"]
    right: Int[np.ndarray, " node"]
    rows: Float[np.ndarray, " node"]
    """Weight of the training rows that came here."""
    values: Float[np.ndarray, "node label"]


def _in_columns(
    values: Float[np.ndarray, "node some"], classes: Int[np.ndarray, " some"], n_classes: int
) -> Float[np.ndarray, "node label"]:
    """Values of some classes as columns of all."""
    columns = np.zeros((len(values), n_classes))
    columns[:, classes] = values
    return columns


def _joined(
    nodes: Sequence[_Nodes],
    cells: Float[np.ndarray, "obs column"],
    edges: Sequence[Float[np.ndarray, " _"]] | None = None,
) -> Trees:
    """Trees of scikit-learn as one set of arrays, one tree after another.

    Thresholds are in the units of the cells: ``values`` are the distinct values of every column, of
    which trees know the ranks or, with ``edges``, the groups, whose last ranks these are.
    """
    roots = [0, *accumulate(tree.feature.size for tree in nodes)]
    feature = np.concatenate([tree.feature for tree in nodes])
    split = feature >= 0
    rank = np.concatenate([tree.rank for tree in nodes])
    threshold = np.zeros(feature.size)
    for column in np.unique(feature[split]):
        in_column = feature == column
        ranks = rank[in_column]
        if edges is not None:
            # A threshold that separates known cells from missing ones is infinite.
            last = edges[column][np.minimum(ranks, edges[column].size - 1).astype(np.intp)]
            ranks = np.where(ranks < np.inf, last + 0.5, np.inf)
        values = np.unique(cells[:, column])
        threshold[in_column] = unranked(ranks, values[~np.isnan(values)])
    onward = np.concatenate([tree.right + root for tree, root in zip(nodes, roots, strict=False)])
    onward[~split] = np.arange((~split).sum())
    weights = np.concatenate([tree.rows for tree in nodes])
    left_share = np.zeros(feature.size)
    left_share[split] = weights[np.flatnonzero(split) + 1] / weights[split]
    return Trees(
        np.where(split, feature, -1).astype(np.int32),
        threshold,
        onward.astype(np.int32),
        left_share.astype(np.float32),
        np.concatenate([tree.values for tree in nodes])[~split].astype(np.float32),
        np.array(roots[:-1], np.int32),
    )
