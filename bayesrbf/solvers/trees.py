"""Trees, grown by scikit-learn on the ranks of cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int
from threadpoolctl import threadpool_limits

from bayesrbf.numerics.trees import Boosting, Forest, Trees, ranked, unranked

BOOSTING: Final = {"learning_rate": 0.05, "l2_regularization": 1.0, "early_stopping": False}
FEWEST_LEAVES, MOST_LEAVES, ROOT_OF_A_LEAF = 8, 32, 8.0
"""Leaves of a boosted tree: the root of the number of rows over eight. On adult 16 are better from
16,000 rows on and 31 from 40,000; on 4,000 rows 8 are."""
MOST_COPIES: Final = 100_000
"""Copies of all rows together, where fewer rows differ."""
DIGITS: Final = 64
"""Parts of a power of two to which weights are rounded."""
ROWS_OF_A_TREE: Final = 20_000
"""Rows that are drawn anew for a tree of a forest, at most: its nodes are as many."""
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
        """Weights to two digits, so that the same trees grow where one is moved slightly.

        Small ones are scaled up to a sum of as many as there are rows, and large ones down to
        ``MOST_COPIES`` in all.
        """
        n, total = self.labels.size, self.weights.sum()
        scale = min(max(1.0, n / total), max(n, MOST_COPIES) / total)
        mantissas, exponents = np.frexp(self.weights * scale)
        return np.ldexp(np.round(mantissas * DIGITS) / DIGITS, exponents)

    def fit(
        self,
        model: Any,
        places: Int[np.ndarray, " copy"],
        weights: Float[np.ndarray, " copy"] | None,
    ) -> list[Float[np.ndarray, " _"]]:
        """Fit a model to the ranks of the cells of some rows; different cells of each column."""
        ranks, values = ranked(self.cells)
        ranks = ranks[places]
        ranks[:, np.isnan(ranks).all(axis=0)] = 0.0  # no split uses such a column
        model.fit(ranks, self.labels[places], sample_weight=weights)
        return values


def grow_forest(rows: TreeRows, *, n_trees: int, seed: int) -> Forest:
    """Grow trees, each on rows drawn anew, some where they are many."""
    from sklearn.ensemble import RandomForestClassifier  # takes a second: predictions need it not

    drawn = min(round(rows.used.sum()), ROWS_OF_A_TREE)
    model = RandomForestClassifier(n_trees, max_samples=drawn, random_state=seed)
    # Rows are drawn as often as they weigh.
    weights = None if (rows.used == 1).all() else rows.used
    values = rows.fit(model, np.arange(rows.labels.size), weights)
    nodes = [
        _Nodes(
            tree.feature.astype(np.intp),
            tree.threshold,
            tree.children_right.astype(np.intp),
            tree.weighted_n_node_samples,
            _in_columns(tree.value[:, 0], model.classes_, rows.n_classes),
        )
        for tree in (one.tree_ for one in model.estimators_)
    ]
    trees = _joined(nodes, values)
    # In single precision shares sum to one but for rounding.
    leaves = trees.leaves / trees.leaves.sum(axis=1, keepdims=True)
    return Forest(replace(trees, leaves=leaves))


def grow_boosting(rows: TreeRows, *, n_steps: int, seed: int) -> Boosting:
    """Grow trees, each on what those before it leave."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    # Boosting counts rows, not their weights, where it bounds leaves.
    copies = np.maximum(np.round(rows.used), 1).astype(np.intp)
    places = np.repeat(np.arange(copies.size), copies)
    leaves = np.clip(np.sqrt(copies.sum()) / ROOT_OF_A_LEAF, FEWEST_LEAVES, MOST_LEAVES)
    model = HistGradientBoostingClassifier(
        max_iter=n_steps, max_leaf_nodes=int(leaves), random_state=seed, **BOOSTING
    )
    with threadpool_limits(1, user_api="openmp"):  # threads that wait spin beside other work
        values = rows.fit(model, places, (rows.used / copies)[places])
    # Of two classes the second alone has trees.
    classes = model.classes_ if model.classes_.size > 2 else model.classes_[1:]
    nodes = [
        _Nodes(
            np.where(one["is_leaf"], -1, one["feature_idx"]).astype(np.intp),
            one["num_threshold"],
            one["right"].astype(np.intp),
            one["count"].astype(float),
            _in_columns(one["value"][:, None], classes[[place]], rows.n_classes),
        )
        # scikit-learn has no public name for the nodes; a test compares what they say.
        for step in model._predictors
        for place, one in enumerate(tree.nodes for tree in step)
    ]
    base = np.full(rows.n_classes, ABSENT)
    base[model.classes_] = 0.0
    base[classes] = np.ravel(model._baseline_prediction)
    return Boosting(_joined(nodes, values), base)


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


def _joined(nodes: Sequence[_Nodes], values: Sequence[Float[np.ndarray, " _"]]) -> Trees:
    """The arrays of trees, one after another."""
    roots = [0, *accumulate(tree.feature.size for tree in nodes)]
    feature = np.concatenate([tree.feature for tree in nodes])
    split = feature >= 0
    rank = np.concatenate([tree.rank for tree in nodes])
    threshold = np.zeros(feature.size)
    for column, different in enumerate(values):
        here = feature == column
        threshold[here] = unranked(rank[here], different)
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
