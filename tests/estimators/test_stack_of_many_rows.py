"""Of very many rows networks are fitted to some, and one fold gives the weights of the pool."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bayesrbf import StackedClassifier
from bayesrbf.estimators.stack import stack_folds
from bayesrbf.fitted.sampling import Sample
from bayesrbf.fitted.stack import shared_training
from bayesrbf.solvers import trees
from bayesrbf.table import distinct

MEMBERS = ("laplace_equal", "gaussian_loo_levels", "normal", "forest", "boosting")
N = 600


def table(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Two classes that are many, one of five rows, holes, and a column of few values."""
    rng = np.random.default_rng(seed)
    y = np.append(rng.integers(0, 2, N - 5), np.full(5, 2))
    X = pd.DataFrame({"a": rng.normal(size=N) + 2 * y, "b": rng.integers(0, 4, N) + 0.5 * y})
    X["level"] = pd.Categorical(rng.choice(["low", "high"], N))
    X.loc[::7, "a"] = np.nan
    return X, np.array(["calm", "gale", "storm"])[y]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_training, "NETWORK_ROWS", 150)
    monkeypatch.setattr(stack_folds, "ENOUGH", 120.0)
    monkeypatch.setattr(trees, "ROWS_OF_A_TREE", 100)


def fitted() -> StackedClassifier:
    return StackedClassifier(MEMBERS, random_state=0, n_jobs=1).fit(*table(0))


def test_the_status_says_what_saw_which_rows(small: None) -> None:
    model = fitted()
    # five rows of the rarest class, 50 of either other; folds of 120 rows
    n_rows = distinct(model.fitted_.rows)[0].n_obs
    assert f"Kernel networks were fitted to 105 of {n_rows} different rows." in model.status_
    judged = float(model.fitted_.model.held.weights.sum())
    assert abs(judged - 120) <= 1
    assert f"{judged:.0f} rows held out gave weights and temperatures." in model.status_
    assert judged <= len(model.out_of_fold_) < N / 2  # copies of a row have the same answer
    members = {one.name: one.model for one in model.fitted_.model.members.own}
    network = members["laplace_equal"]
    assert len(network.basis.exemplars.mean) == 105
    shares = np.bincount(model.fitted_.rows.labels) / N
    np.testing.assert_allclose(network.class_frequencies, shares, atol=0.02)


def test_few_rows_are_all_seen() -> None:
    model = fitted()
    assert "different rows" not in model.status_
    assert "held out gave" not in model.status_
    assert len(model.out_of_fold_) == N


def test_what_is_held_out_once_is_judged_by_others(small: None) -> None:
    """Changing the label of a held-out row moves the pool that judges the other half alone."""
    model = fitted()
    stack, held = model.fitted_.model, model.fitted_.model.held
    assert np.unique(held.folds).size == 1
    assert np.unique(held.parts).tolist() == [0, 1]
    before = stack.out_of_fold()
    turned = held.labels.copy()
    turned[0] = (turned[0] + 1) % 3
    after = replace(stack, held=replace(held, labels=turned)).out_of_fold()
    np.testing.assert_array_equal(after[held.parts == 0], before[held.parts == 0])
    assert (after[held.parts == 1] != before[held.parts == 1]).any()


def test_it_says_nearly_what_all_rows_say(monkeypatch: pytest.MonkeyPatch, small: None) -> None:
    X, _ = table(1)
    some = fitted().predict_proba(X)
    monkeypatch.undo()
    assert abs(some - fitted().predict_proba(X)).mean() < 0.04


def test_the_bootstrap_refits_networks_to_the_same_rows(small: None) -> None:
    model = fitted()
    model.refine("bootstrap", draws=8, refits=2, random_state=0)
    for refit in model.fitted_.details.members:
        assert len(refit.own[0].model.basis.exemplars.mean) == 105
    assert all(np.isfinite(one).all() for one in model.uncertainty(table(1)[0]).values())


def test_order_of_rows_changes_nothing(small: None) -> None:
    X, y = table(0)
    order = np.random.default_rng(2).permutation(N)
    model = StackedClassifier(MEMBERS, random_state=0, n_jobs=1).fit(X.iloc[order], y[order])
    np.testing.assert_allclose(model.predict_proba(X), fitted().predict_proba(X), atol=1e-9)


def test_classes_keep_their_weight_in_a_sample() -> None:
    model = fitted()
    rows = model.fitted_.rows
    sample = Sample.of(rows, 0, 3, 50, 0).weighed()
    shares = np.bincount(sample.labels, sample.weights) / sample.weights.sum()
    np.testing.assert_allclose(shares, np.bincount(rows.labels, rows.weights) / N, atol=1e-12)
