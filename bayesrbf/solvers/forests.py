"""Forests, grown by scikit-learn."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.trees import Forest, ranked, unranked


def grow_forest(
    cells: Float[np.ndarray, "obs column"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    n_classes: int,
    *,
    n_trees: int,
    seed: int,
) -> Forest:
    """Grow trees on the ranks of labelled rows, each on rows drawn anew.

    A row of a whole weight is there as often as it weighs: weight 2 is the row twice.
    """
    from sklearn.ensemble import RandomForestClassifier  # takes a second: predictions need it not

    ranks, values = ranked(cells)
    model = RandomForestClassifier(n_trees, random_state=seed)
    if (weights == np.round(weights)).all():
        places = np.repeat(np.arange(labels.size), weights.astype(np.intp))
        model.fit(ranks[places], labels[places])
    else:
        model.fit(ranks, labels, weights)
    return _joined([one.tree_ for one in model.estimators_], model.classes_, values, n_classes)


def _joined(
    trees: list[Any],
    classes: Int[np.ndarray, " label"],
    values: list[Float[np.ndarray, " _"]],
    n_classes: int,
) -> Forest:
    """The arrays of trees, one after another; scikit-learn, too, has left children next."""
    roots = [0, *accumulate(tree.node_count for tree in trees)]
    feature = np.concatenate([tree.feature for tree in trees])
    split = feature >= 0
    rank = np.concatenate([tree.threshold for tree in trees])
    threshold = np.zeros(feature.size)
    for column, different in enumerate(values):
        here = feature == column
        threshold[here] = unranked(rank[here], different)
    onward = np.concatenate(
        [tree.children_right + root for tree, root in zip(trees, roots, strict=False)]
    )
    onward[~split] = np.arange((~split).sum())
    rows = np.concatenate([tree.weighted_n_node_samples for tree in trees])
    left_share = np.zeros(feature.size)
    left_share[split] = rows[np.flatnonzero(split) + 1] / rows[split]
    leaves = np.zeros(((~split).sum(), n_classes))
    leaves[:, classes] = np.concatenate([tree.value[:, 0] for tree in trees])[~split]
    return Forest(
        np.where(split, feature, -1).astype(np.int32),
        threshold,
        onward.astype(np.int32),
        left_share.astype(np.float32),
        (leaves / leaves.sum(axis=1, keepdims=True)).astype(np.float32),
        np.array(roots[:-1], np.int32),
    )
