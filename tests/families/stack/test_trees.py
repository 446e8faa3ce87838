"""Forests and boosting: rows go down one side of a split, or both where the cell is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.special import log_softmax
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)

from bayesrbf.base.records import require
from bayesrbf.base.rows import Observations, Order
from bayesrbf.families.stack.compiled import MAX_SPLIT_WAYS
from bayesrbf.families.stack.trees import (
    ABSENT,
    BOOSTING,
    MAX_COPIES,
    MIN_LEAVES,
    Boosting,
    Forest,
    TreeRows,
    Trees,
    grow_boosting,
    grow_forest,
    tree_cells,
    unranked,
)

LABELS = 3


def table(n: int = 150, columns: int = 4, holes: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Cells, and classes of which two columns tell together."""
    rng = np.random.default_rng(n + columns)
    cells = rng.normal(size=(n, columns)).round(1)
    labels = (cells[:, 0] * cells[:, 1] > 0).astype(int) + (cells[:, 2] > 1)
    cells[rng.random(cells.shape) < holes] = np.nan
    return cells, labels


def rows_of(cells: np.ndarray, labels: np.ndarray, weights: object = None) -> TreeRows:
    weights = np.ones(len(labels)) if weights is None else np.asarray(weights)
    return TreeRows(cells, labels, weights, LABELS)


def grown(cells: np.ndarray, labels: np.ndarray, n_trees: int = 5, extra: bool = False) -> Forest:
    return grow_forest(rows_of(cells, labels), n_trees=n_trees, seed=0, extra=extra)


def boosted(cells: np.ndarray, labels: np.ndarray) -> Boosting:
    return grow_boosting(rows_of(cells, labels), n_steps=5, seed=0)


KINDS = {"forest": grown, "extra trees": partial(grown, extra=True), "boosting": boosted}


def by_leaves(trees: Trees, row: np.ndarray, node: int) -> np.ndarray:
    """The sum of the leaves below a node, each by the product of its shares."""
    feature = trees.feature[node]
    if feature < 0:
        return trees.leaves[trees.onward[node]].astype(float)
    below = node + 1, trees.onward[node]
    share = float(trees.left_share[node])
    if not np.isnan(row[feature]):
        share = float(row[feature] <= trees.threshold[node])
    parts = zip((share, 1 - share), below, strict=True)
    return sum(part * by_leaves(trees, row, child) for part, child in parts if part)


@pytest.mark.parametrize("extra", [False, True])
def test_complete_rows_get_what_a_forest_of_scikit_learn_says(extra: bool) -> None:
    cells, labels = table()
    ranks = rows_of(cells, labels).ranks
    model = (ExtraTreesClassifier if extra else RandomForestClassifier)(20, random_state=0)
    theirs = model.fit(ranks, labels).predict_proba(ranks)
    found = np.exp(grown(cells, labels, 20, extra).log_probabilities(cells))
    np.testing.assert_allclose(found, np.maximum(theirs, 1e-6), atol=2e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_complete_rows_get_what_boosting_of_scikit_learn_says(n_classes: int) -> None:
    """Of a class without a row, too: it is all but impossible."""
    cells, labels = table()
    labels = np.where(labels == 0, 0, 2) if n_classes == 2 else labels
    ranks = rows_of(cells, labels).ranks
    model = HistGradientBoostingClassifier(
        max_iter=5, max_leaf_nodes=MIN_LEAVES, random_state=0, **BOOSTING
    )
    theirs = np.log(model.fit(ranks, labels).predict_proba(ranks))
    found = boosted(cells, labels).log_probabilities(cells)
    np.testing.assert_allclose(found[:, model.classes_], theirs, atol=1e-5)
    absent = np.setdiff1d(np.arange(LABELS), labels)
    assert (found[:, absent] < ABSENT / 2).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_missing_cells_are_summed_over_both_sides(kind: str, holes: float) -> None:
    """As few rows as leave all ways open: an oracle goes down every one of them."""
    model = KINDS[kind](*table(24, holes=holes))
    new, _ = table(30, holes=0.5)
    new[0] = np.nan
    trees = model.trees
    expected = [np.sum([by_leaves(trees, row, r) for r in trees.roots], axis=0) for row in new]
    np.testing.assert_allclose(trees.sums(new), expected, atol=1e-5)
    if kind != "boosting":
        log_p = np.log(np.maximum(np.array(expected) / trees.roots.size, 1e-6))
    else:
        log_p = log_softmax(model.base + expected, axis=1)
    np.testing.assert_allclose(model.log_probabilities(new), log_p, atol=1e-4)


def test_ways_are_bounded_and_lose_nothing() -> None:
    cells, _ = table(2000)
    labels = np.random.default_rng(0).integers(LABELS, size=2000)  # so that trees are large
    forest = grown(cells, labels)
    assert forest.trees.leaves.shape[0] > 20 * MAX_SPLIT_WAYS
    p = np.exp(forest.log_probabilities(np.full((1, 4), np.nan)))
    np.testing.assert_allclose(p.sum(), 1, atol=1e-6)
    np.testing.assert_allclose(p[0], np.bincount(labels) / 2000, atol=0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_subjects_and_monotone_maps_change_nothing(kind: str) -> None:
    cells, labels = table(holes=0.2)
    other = np.exp(3 * cells + 1) * 1e200
    one, two = (KINDS[kind](of, labels).log_probabilities(of) for of in (cells, other))
    np.testing.assert_array_equal(one, two)


GROWING = {
    "forest": partial(grow_forest, n_trees=5),
    "extra trees": partial(grow_forest, n_trees=5, extra=True),
    "boosting": partial(grow_boosting, n_steps=5),
}


@pytest.mark.parametrize("kind", GROWING)
def test_whole_weights_are_copies_and_others_weigh(kind: str) -> None:
    grow: Callable[..., Forest | Boosting] = GROWING[kind]
    cells, labels = table()
    twice = np.r_[0, np.arange(150)]
    weights = np.r_[2.0, np.full(148, 1.0), 0.5]
    one = grow(rows_of(cells, labels, weights), seed=0)
    halves = np.r_[1.0, 1.0, weights[1:]]
    two = grow(rows_of(cells[twice], labels[twice], halves), seed=0)
    np.testing.assert_array_equal(one.log_probabilities(cells), two.log_probabilities(cells))
    heavy = grow(rows_of(cells, labels, np.where(labels == 0, 30.5, 0.5)), seed=0)
    nothing = np.full((1, 4), np.nan)
    assert heavy.log_probabilities(nothing)[0, 0] > one.log_probabilities(nothing)[0, 0] + 0.3


@pytest.mark.parametrize("extra", [False, True])
def test_one_row_is_enough(extra: bool) -> None:
    model = grown(np.ones((1, 4)), np.zeros(1, int), extra=extra)
    assert model.log_probabilities(np.ones((1, 4)))[0].argmax() == 0


def used(weights: np.ndarray) -> np.ndarray:
    n = weights.size
    return TreeRows(np.zeros((n, 1)), np.zeros(n, int), weights, LABELS).used


def test_weights_are_used_to_two_digits_and_keep_their_sum() -> None:
    rng = np.random.default_rng(0)
    whole = rng.integers(1, 65, 50).astype(float)
    np.testing.assert_array_equal(used(whole), whole)
    np.testing.assert_array_equal(used(whole + 1e-3), whole)
    uneven = whole * rng.exponential(size=50) * 2
    np.testing.assert_allclose(used(uneven), uneven, rtol=1 / 64)
    np.testing.assert_array_equal(used(np.full(50, 1e-12)), 1)
    assert used(np.full(50, 1e19)).sum() == pytest.approx(MAX_COPIES, rel=1 / 64)
    assert 0 < used(np.r_[1e-9, np.ones(9)])[0] < 1e-8


@pytest.mark.parametrize("kind", GROWING)
def test_a_row_of_a_small_weight_is_learned_as_much(kind: str) -> None:
    """Rows beyond a gap, which alone have their class, at a tenth of the weight of the others."""
    cells = np.r_[np.linspace(0, 1, 300), np.linspace(5, 6, 200)][:, None]
    labels = np.r_[np.arange(300) % 2, np.tile([0, 1], 100)]
    weights = np.r_[np.ones(300), np.tile([1.0, 0.1], 100)]
    grow: Callable[..., Forest | Boosting] = {
        "forest": partial(grow_forest, n_trees=200),
        "extra trees": partial(grow_forest, n_trees=200, extra=True),
        "boosting": partial(grow_boosting, n_steps=200),
    }[kind]
    model = grow(TreeRows(cells, labels, weights, 2), seed=0)
    p = np.exp(model.log_probabilities(np.linspace(5, 6, 50)[:, None]))[:, 1]
    assert p.mean() == pytest.approx(1 / 11, abs=0.03)


@pytest.mark.parametrize("kind", GROWING)
def test_repeated_rows_of_other_weights_are_learned_as_well(kind: str) -> None:
    """Least leaves and bootstraps count what the rows weigh, not how many differ."""
    rng = np.random.default_rng(0)
    cells = np.array(list(np.ndindex(3, 3, 3)), dtype=float)
    cells, labels = np.repeat(cells, 2, axis=0), np.tile([0, 1], 27)
    p = np.where(cells[:, 0] == cells[:, 1], 0.9, 0.2)
    counts = np.round(40 * np.where(labels == 1, p, 1 - p)) + 1
    grow = GROWING[kind]
    models = [
        grow(rows_of(cells, labels, weights), seed=0)
        for weights in (counts, counts * rng.uniform(0.99, 1.01, counts.size))
    ]
    one, two = (np.exp(model.log_probabilities(cells)) for model in models)
    np.testing.assert_allclose(one, two, atol=0.1)
    assert np.ptp(two[:, 1]) > (0.5 if kind != "boosting" else 0.05)


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_without_a_cell_splits_nothing(kind: str) -> None:
    cells, labels = table()
    cells[:, 3] = np.nan
    model = KINDS[kind](cells, labels)
    assert not (model.trees.feature == 3).any()
    assert np.isfinite(model.log_probabilities(np.ones((2, 4)))).all()


@pytest.mark.parametrize("kind", KINDS)
def test_another_order_of_columns_and_classes_is_the_same_model(kind: str) -> None:
    cells, labels = table(holes=0.2)
    model = KINDS[kind](cells, labels)
    order = Order(np.array([1, 0]), np.array([1, 0]), np.array([1, 2, 0]))
    columns = [*order.features, *(2 + order.categories)]
    found = model.reordered(order).log_probabilities(cells[:, columns])
    np.testing.assert_allclose(found, model.log_probabilities(cells)[:, order.classes], atol=1e-12)


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
    trees = grown(*table(20)).trees
    require(trees.__laws__(), "a tree")
    ((name, value),) = FORGERIES[what].items()
    array = getattr(trees, name).copy()
    array[trees.feature >= 0] = value
    with pytest.raises(ValueError, match="a tree needs"):
        require(replace(trees, **{name: array}).__laws__(), "a tree")


def test_forged_leaves_are_refused() -> None:
    forest = grown(*table(20))
    forged = replace(forest.trees, leaves=2 * forest.trees.leaves)
    with pytest.raises(ValueError, match="leaves with class probabilities"):
        require(Forest(forged).__laws__(), "a forest")
