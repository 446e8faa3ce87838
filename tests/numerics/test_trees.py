"""Forests: rows go down one side of a split, or both where the cell is missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from bayesrbf.numerics.kernels.tree_descent import MOST_WAYS
from bayesrbf.numerics.trees import Forest, ranked, tree_cells, unranked
from bayesrbf.records.mixture import Observations
from bayesrbf.records.specification import Order
from bayesrbf.records.stored import require
from bayesrbf.solvers.forests import grow_forest

LABELS = 3


def table(n: int = 150, columns: int = 4, holes: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Cells, and classes of which two columns tell together."""
    rng = np.random.default_rng(n + columns)
    cells = rng.normal(size=(n, columns)).round(1)
    labels = (cells[:, 0] * cells[:, 1] > 0).astype(int) + (cells[:, 2] > 1)
    cells[rng.random(cells.shape) < holes] = np.nan
    return cells, labels


def grown(cells: np.ndarray, labels: np.ndarray, n_trees: int = 5) -> Forest:
    return grow_forest(cells, labels, np.ones(len(labels)), LABELS, n_trees=n_trees, seed=0)


def by_leaves(forest: Forest, row: np.ndarray, node: int) -> np.ndarray:
    """The mean of the leaves below a node, each by the product of its shares."""
    feature = forest.feature[node]
    if feature < 0:
        return forest.leaves[forest.onward[node]].astype(float)
    below = node + 1, forest.onward[node]
    share = float(forest.left_share[node])
    if not np.isnan(row[feature]):
        share = float(row[feature] <= forest.threshold[node])
    parts = zip((share, 1 - share), below, strict=True)
    return sum(part * by_leaves(forest, row, child) for part, child in parts if part)


def test_complete_rows_get_what_scikit_learn_says() -> None:
    cells, labels = table()
    ranks, _ = ranked(cells)
    theirs = RandomForestClassifier(20, random_state=0).fit(ranks, labels).predict_proba(ranks)
    np.testing.assert_allclose(grown(cells, labels, 20).probabilities(cells), theirs, atol=1e-6)


@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_missing_cells_are_summed_over_both_sides(holes: float) -> None:
    """As many rows as leave all ways open: an oracle goes down every one of them."""
    forest = grown(*table(20, holes=holes))
    new, _ = table(30, holes=0.5)
    new[0] = np.nan
    expected = [np.mean([by_leaves(forest, row, r) for r in forest.roots], axis=0) for row in new]
    np.testing.assert_allclose(forest.probabilities(new), expected, atol=1e-6)


def test_ways_are_bounded_and_lose_nothing() -> None:
    cells, _ = table(2000)
    labels = np.random.default_rng(0).integers(LABELS, size=2000)  # so that trees are large
    forest = grown(cells, labels)
    assert forest.leaves.shape[0] > 20 * MOST_WAYS
    p = forest.probabilities(np.full((1, 4), np.nan))
    np.testing.assert_allclose(p.sum(), 1, atol=1e-6)
    np.testing.assert_allclose(p[0], np.bincount(labels) / 2000, atol=0.05)


def test_units_and_monotone_maps_change_nothing() -> None:
    cells, labels = table(holes=0.2)
    other = np.exp(3 * cells + 1) * 1e200
    one, two = grown(cells, labels), grown(other, labels)
    np.testing.assert_array_equal(one.probabilities(cells), two.probabilities(other))


def test_whole_weights_are_copies_and_others_weigh() -> None:
    cells, labels = table()
    weights = np.r_[2.0, np.ones(149)]
    twice = np.r_[0, np.arange(150)]
    settings = {"n_trees": 5, "seed": 0}
    one = grow_forest(cells, labels, weights, LABELS, **settings)
    two = grow_forest(cells[twice], labels[twice], np.ones(151), LABELS, **settings)
    np.testing.assert_array_equal(one.probabilities(cells), two.probabilities(cells))
    heavy = grow_forest(cells, labels, np.where(labels == 0, 30.5, 0.5), LABELS, **settings)
    nothing = np.full((1, 4), np.nan)
    assert heavy.probabilities(nothing)[0, 0] > one.probabilities(nothing)[0, 0] + 0.3


def test_another_order_of_columns_and_classes_is_the_same_forest() -> None:
    cells, labels = table(holes=0.2)
    forest = grown(cells, labels)
    order = Order(np.array([1, 0]), np.array([1, 0]), np.array([1, 2, 0]))
    columns = [*order.features, *(2 + order.categories)]
    found = forest.reordered(order).probabilities(cells[:, columns])
    np.testing.assert_array_equal(found, forest.probabilities(cells)[:, order.classes])


def test_thresholds_part_neighbouring_numbers() -> None:
    values = np.array([1.0, np.nextafter(1.0, 2.0), 1e308])
    found = unranked(np.array([0.5, 1.5, np.inf]), values)
    assert values[0] <= found[0] < values[1] <= found[1] < values[2] <= found[2] < np.inf


def test_cells_are_reals_then_codes() -> None:
    rows = Observations(
        np.array([[0.5], [np.nan]]), np.array([[2], [-1]]), np.zeros(2, int), np.ones(2)
    )
    np.testing.assert_array_equal(tree_cells(rows), [[0.5, 2.0], [np.nan, np.nan]])


FORGERIES = {
    "a child before its parent": {"onward": 0},
    "a child that is not there": {"onward": 10**6},
    "a share above one": {"left_share": 1.5},
}


@pytest.mark.parametrize("what", FORGERIES)
def test_forged_trees_are_refused(what: str) -> None:
    forest = grown(*table(20))
    require(forest.__laws__(), "a forest")
    ((name, value),) = FORGERIES[what].items()
    array = getattr(forest, name).copy()
    array[forest.feature >= 0] = value
    with pytest.raises(ValueError, match="a forest needs"):
        require(replace(forest, **{name: array}).__laws__(), "a forest")
