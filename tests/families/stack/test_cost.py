"""What keeps the cost of a stack down: wide tables, members on trial, groups of ranks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from bayesrbf import HybridMixtureClassifier, StackedClassifier
from bayesrbf.base import rows
from bayesrbf.families.stack import members
from bayesrbf.families.stack.trees import BOOSTING, GROUPS, TreeRows, grouped, grow_boosting

WIDE = 30


def wide(n_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """More columns than rows; three of them tell the class, and some cells are missing."""
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % 2
    X = rng.normal(size=(n_rows, WIDE))
    X[:, :3] += 1.5 * y[:, None]
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y


@pytest.mark.parametrize(
    "model", [StackedClassifier(random_state=0), HybridMixtureClassifier(random_state=0)]
)
def test_a_wide_table_has_diagonal_covariances_and_every_answer(
    model: StackedClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MAX_FULL", WIDE - 10)
    X, y = wide(26, 0)
    new, true = wide(60, 1)
    model.fit(X, y)
    assert model.model_.density.specification.shape == "diag"
    if isinstance(model, StackedClassifier):
        assert f"Covariances of {WIDE} columns of numbers are diagonal." in model.status_
    assert (model.predict(new) == true).mean() > 0.75
    assert np.isfinite(model.impute(new)).all()
    assert np.isfinite(model.surprise(new[:2]).to_array()).any()
    told = model.refine(draws=20).uncertainty(new)
    assert (told["lower"] <= told["upper"]).all()


def test_groups_are_of_neighbours_and_of_equal_weight() -> None:
    rng = np.random.default_rng(0)
    ranks = rng.permutation(2000).astype(np.float32)
    weights = rng.gamma(2.0, size=2000)
    codes, edges = grouped(ranks, weights)
    assert np.unique(codes).size == edges.size <= GROUPS
    np.testing.assert_array_equal(codes, np.searchsorted(edges, ranks))
    mass = np.bincount(codes.astype(int), weights)
    assert mass.max() < weights.sum() / GROUPS + 2 * weights.max()


def test_boosting_on_groups_says_what_scikit_learn_says_on_them() -> None:
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(1200, 3))
    cells[rng.random(cells.shape) < 0.1] = np.nan
    labels = (np.nan_to_num(cells).sum(axis=1) + rng.normal(size=1200) > 0).astype(int)
    grown = grow_boosting(TreeRows(cells, labels, np.ones(1200), 2), n_steps=30, seed=0)
    ranks = np.where(np.isnan(cells), np.nan, cells.argsort(axis=0).argsort(axis=0))
    codes = np.stack([grouped(one.astype(np.float32), np.ones(1200))[0] for one in ranks.T], axis=1)
    leaves = int(np.sqrt(1200) / 8)
    rival = HistGradientBoostingClassifier(
        max_iter=30, max_leaf_nodes=max(leaves, 8), random_state=0, **BOOSTING
    )
    expected = rival.fit(codes, labels).predict_proba(codes)
    complete = ~np.isnan(cells).any(axis=1)
    found = np.exp(grown.log_probabilities(cells))
    np.testing.assert_allclose(found[complete], expected[complete], atol=1e-6)


@pytest.mark.slow
def test_boosting_leaves_where_the_first_fold_has_no_use_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(members, "ROWS_FOR_BOOSTING", 300.0)
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    line = rng.normal(size=(600, 2)) + 1.2 * y[:, None]
    chess = rng.uniform(-1, 1, size=(300, 2))
    boxes = (np.floor(4 * chess[:, 0]) + np.floor(4 * chess[:, 1]) > -1).astype(int)
    smooth = StackedClassifier(cv=2, random_state=0).fit(line, y)
    assert "boosting" not in smooth.members_
    assert "The first fold gave boosting little weight" in smooth.status_
    assert "boosting" in StackedClassifier(cv=2, random_state=0).fit(chess, boxes).members_
    named = StackedClassifier(["normal", "boosting"], cv=2, random_state=0).fit(line, y)
    assert "boosting" in named.members_
