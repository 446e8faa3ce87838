"""Of very many rows networks are fitted to some, and one fold gives the weights of the pool."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bayesrbf import StackedClassifier
from bayesrbf.base.rows import Observations
from bayesrbf.families.stack import fitting, trees
from bayesrbf.families.stack import members as shared_training
from bayesrbf.families.stack.fitting import pool_splits
from bayesrbf.fit.drawing import weighted_sample
from bayesrbf.table.order import distinct

MEMBERS = ("laplace_short", "gaussian_loo", "normal", "forest", "boosting")
N = 600


def table(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Two classes that are many, one of five rows, holes, and a column of few values."""
    rng = np.random.default_rng(seed)
    y = np.append(rng.integers(0, 2, N - 5), np.full(5, 2))
    X = pd.DataFrame({"a": rng.normal(size=N) + 2 * y, "b": rng.integers(0, 4, N) + 0.5 * y})
    X["level"] = pd.Categorical(rng.choice(["low", "high"], N))
    X.loc[::7, "a"] = np.nan
    return X, np.array(["calm", "gale", "storm"])[y]


def shrink(patch: pytest.MonkeyPatch) -> None:
    """Few rows are very many."""
    patch.setattr(shared_training, "NETWORK_ROWS", 150)
    patch.setattr(shared_training, "MIXTURE_ROWS", 200)
    patch.setattr(fitting, "MAX_HELD_OUT", 100)
    patch.setattr(trees, "ROWS_OF_A_TREE", 100)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch)


def fitted() -> StackedClassifier:
    return StackedClassifier(MEMBERS, random_state=0, n_jobs=1).fit(*table(0))


@pytest.fixture(scope="module")
def whole() -> StackedClassifier:
    """A stack whose networks see all rows."""
    return fitted()


@pytest.fixture(scope="module")
def model() -> StackedClassifier:
    """A stack whose networks see some rows."""
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        return fitted()


def test_the_status_says_what_saw_which_rows(model: StackedClassifier) -> None:
    n_rows = distinct(model.fitted_.rows)[0].n_obs
    assert f"Kernel networks were fitted to 150 of {n_rows} different rows." in model.status_
    assert f"Mixtures were fitted to 200 of {n_rows} different rows." in model.status_
    judged = model.fitted_.model.held.labels.size
    assert 100 <= judged < 120
    assert f"{judged} different rows held out gave weights and temperatures." in model.status_
    assert judged <= len(model.out_of_fold_) < N / 2  # copies of a row have the same answer
    members = {one.name: one.model for one in model.fitted_.model.members.fitted}
    network = members["laplace_short"]
    assert 145 <= len(network.basis.exemplars.mean) <= 150  # labels apart
    shares = np.bincount(model.fitted_.rows.labels) / N
    np.testing.assert_allclose(network.class_frequencies, shares, atol=0.02)


@pytest.mark.slow
def test_few_rows_are_all_seen(whole: StackedClassifier) -> None:
    assert "different rows" not in whole.status_
    assert "held out gave" not in whole.status_
    assert len(whole.out_of_fold_) == N


def test_what_is_held_out_once_is_judged_by_others(model: StackedClassifier) -> None:
    """Changing the label of a held-out row moves the pool that judges the other half alone."""
    stack, held = model.fitted_.model, model.fitted_.model.held
    assert np.unique(held.folds).size == 1
    assert np.unique(held.pool_folds).tolist() == [0, 1]
    before = stack.out_of_fold()
    turned = held.labels.copy()
    turned[0] = (turned[0] + 1) % 3
    after = replace(stack, held=replace(held, labels=turned)).out_of_fold()
    np.testing.assert_array_equal(after[held.pool_folds == 0], before[held.pool_folds == 0])
    assert (after[held.pool_folds == 1] != before[held.pool_folds == 1]).any()


@pytest.mark.slow
def test_it_says_nearly_what_all_rows_say(
    model: StackedClassifier, whole: StackedClassifier
) -> None:
    X, _ = table(1)
    assert abs(model.predict_proba(X) - whole.predict_proba(X)).mean() < 0.04


@pytest.mark.slow
def test_order_of_rows_changes_nothing(model: StackedClassifier, small: None) -> None:
    X, y = table(0)
    order = np.random.default_rng(2).permutation(N)
    turned = StackedClassifier(MEMBERS, random_state=0, n_jobs=1).fit(X.iloc[order], y[order])
    np.testing.assert_allclose(turned.predict_proba(X), model.predict_proba(X), atol=1e-9)


def test_classes_keep_their_weight_and_heavy_rows_are_drawn() -> None:
    """A rare class is whole, the others share what is left, and sums are unbiased."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2, -1], [3000, 900, 5, 40])
    weights = rng.exponential(size=labels.size)
    weights[7] = 800.0
    rows = Observations(
        rng.normal(size=(labels.size, 1)), np.zeros((labels.size, 0), int), labels, weights
    )
    sums = []
    for seed in range(60):
        some = weighted_sample(rows, 1000, seed)
        assert some.n_obs == 1000
        np.testing.assert_array_equal(np.bincount(some.labels + 1), [40, 478, 477, 5])
        np.testing.assert_allclose(
            np.bincount(some.labels + 1, some.weights), np.bincount(labels + 1, weights)
        )
        assert rows.real[7, 0] in some.real[:, 0]
        sums.append(some.weights @ (some.real[:, 0] > 0))
    truth = weights @ (rows.real[:, 0] > 0)
    assert abs(np.mean(sums) - truth) < 4 * np.std(sums) / np.sqrt(len(sums)) + 1e-9


@pytest.mark.parametrize("scale", [1.0, 100.0, 1000.3])
def test_large_weights_change_no_folds(scale: float) -> None:
    """Folds are of different rows, whatever they weigh, and no row is copied for every fold."""
    rng = np.random.default_rng(0)
    rows = Observations(
        rng.normal(size=(300, 1)), np.zeros((300, 0), int), rng.integers(0, 2, 300), np.ones(300)
    )
    weighted = replace(rows, weights=scale * rows.weights)
    folds = list(pool_splits(None, weighted, np.arange(300), 0))
    assert len(folds) in (3, 5)
    assert sum(test.n_obs for _, test in folds) <= 5 * 300
    assert sum(test.weights.sum() for _, test in folds) == pytest.approx(scale * 300)
