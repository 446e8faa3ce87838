"""Members of other libraries: what they are given, their weight, and a pretrained one."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesrbf import StackedClassifier
from bench.peers import InContext, codes_for
from tests.fit.class_tables import table


class Noise(InContext):
    """A stand-in that was told nothing."""

    def fit(self, X: object, y: np.ndarray) -> InContext:
        return super().fit(X, np.random.default_rng(0).permutation(y))


def pooled(
    X: object, y: object, stand_in: object, members: object = ("normal",)
) -> StackedClassifier:
    """A small stack with a stand-in for a pretrained model."""
    extra = None if stand_in is None else [("stand-in", stand_in)]
    return StackedClassifier(members, extra=extra, cv=3, random_state=0).fit(X, y)


def ring(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that one Gaussian each cannot tell apart; some cells are missing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = rng.random(n) < expit(4 * (np.hypot(*X.T) - 1.2))
    X[::6, 1] = np.nan
    return X, np.where(y, "out", "in")


@pytest.mark.slow
def test_a_good_extra_member_gets_the_weight_and_a_bad_one_does_not() -> None:
    weights = []
    for seed in range(4):  # on one table of 120 rows the folds have much to say
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(120, 3))
        y = (X @ [3.0, -2.0, 1.0] + 0.3 * rng.normal(size=120) > 0).astype(int)
        y = np.where(y == 1, "up", "down")
        good = StackedClassifier(["mixture"], extra=[LogisticRegression()], cv=3, random_state=0)
        weights.append(good.fit(X, y).weights_[1])
    assert good.members_ == ("mixture", "LogisticRegression")
    assert np.mean(weights) > 0.7  # a prior of one row a member holds it back
    noise = ("noise", GaussianNB(priors=[0.9, 0.1], var_smoothing=1e6))
    bad = StackedClassifier(["normal"], extra=[noise], cv=3, random_state=0).fit(X, y)
    assert bad.weights_[1] < 0.1


def test_a_member_that_takes_no_weights_joins_on_a_table_of_many_copies() -> None:
    X, y = load_iris(return_X_y=True)
    X, y = X[::10], y[::10]
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    settings = {"members": ["normal"], "extra": [pipeline], "cv": 3, "random_state": 0}
    model = StackedClassifier(**settings).fit(np.tile(X, (7, 1)), np.tile(y, 7))
    assert model.predict_proba(X).shape == (15, 3)


def test_an_extra_member_sees_the_table_as_it_was_given_and_every_row_of_it() -> None:
    seen: list[tuple[pd.DataFrame, np.ndarray]] = []

    class Watcher(DummyClassifier):
        def fit(self, X: pd.DataFrame, y: np.ndarray) -> Watcher:
            seen.append((X, y))
            return super().fit(X, y)

    X, y = table(30)
    y[-3:] = None
    weights = np.r_[2.0, np.ones(29)]
    StackedClassifier(["normal"], extra=[Watcher()], cv=3, random_state=0).fit(X, y, weights)
    whole, labels = max(seen, key=lambda one: one[1].size)  # the others are of folds
    assert list(whole.columns) == list(X.columns)
    assert whole.dtypes.equals(X.dtypes)
    assert len(whole) == labels.size == 28
    with pytest.raises(ValueError, match="takes no sample_weight"):
        StackedClassifier(["normal"], extra=[Watcher()], cv=3).fit(X, y, weights + 0.5)


def test_a_pretrained_member_answers_for_any_cells() -> None:
    X, y = ring(150)
    model = pooled(X, y, InContext())
    new = np.array([[0.1, 2.0], [0.1, np.nan], [np.nan, np.nan]])
    p = model.predict_proba(new)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(p[2], [np.mean(y == "in"), np.mean(y == "out")], atol=1e-6)
    assert p[1, 0] > p[2, 0]  # near the middle in the one column that is known
    np.testing.assert_array_equal(model.predict_proba(new[::-1])[::-1], p)
    assert model.member_table().index.tolist() == ["normal", "stand-in", "stack"]


def test_a_pretrained_member_has_the_weight_that_it_earns() -> None:
    X, y = ring(150)
    assert pooled(X, y, InContext()).weights_[1] > 0.8
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = (X @ [3.0, -2.0] + rng.normal(size=150) > 0).astype(int)
    assert pooled(X, y, Noise()).weights_[1] < 0.05


def test_a_member_that_is_too_sure_is_tempered() -> None:
    X, y = ring(150)
    members = InContext(0.25), InContext(0.05)
    stacks = [pooled(X, y, member) for member in members]
    temperatures = [stack.member_table()["temperature"]["stand-in"] for stack in stacks]
    assert temperatures[1] < temperatures[0] / 3
    usual, sure = (model.fit(X, y).predict_proba(X) for model in members)
    pooled_usual, pooled_sure = (stack.predict_proba(X) for stack in stacks)
    assert np.abs(pooled_sure - pooled_usual).mean() < np.abs(sure - usual).mean() / 4


def test_texts_need_codes_and_a_pipeline_gives_them() -> None:
    X, y = table(60)
    with pytest.raises(ValueError, match=r"(?s)could not convert.*stand-in is given the table as"):
        pooled(X, y, InContext())
    p = pooled(X, y, codes_for(InContext())).predict_proba(X.mask(X.notna()))
    np.testing.assert_allclose(p, p[:1].repeat(len(X), axis=0))


def test_a_member_is_fitted_once_a_fold_and_once_to_all_rows() -> None:
    calls: list[tuple[str, int]] = []

    class Counted(InContext):
        def fit(self, X: np.ndarray, y: np.ndarray) -> InContext:
            calls.append(("fit", len(X)))
            return super().fit(X, y)

        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            calls.append(("ask", len(X)))
            return super().predict_proba(X)

    X, y = ring(60)
    pooled(X, y, Counted())
    fold = [("fit", 40), ("ask", 1), ("ask", 5 * 20)]  # one row without cells; five of each
    assert calls == [*fold, *fold, *fold, ("fit", 60)]


def test_a_file_holds_no_member_of_another_library_and_a_pickle_does(tmp_path: Path) -> None:
    X, y = ring(60)
    model = pooled(X, y, InContext())
    with pytest.raises(ValueError, match=r"is a InContext, which a file cannot hold.* Pickle"):
        model.save(tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict_proba(X), model.predict_proba(X))


@pytest.mark.slow
def test_intervals_with_a_pretrained_member_hold_the_truth() -> None:
    held, widths = np.zeros((2, 3)), np.zeros((2, 3))
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(350, 2))
        p = expit(2 * X[:, 0] - np.abs(X[:, 1]) + 0.5)
        y = (rng.random(350) < p).astype(int)
        for place, stand_in in enumerate((None, InContext(), Noise())):
            model = pooled(X[:150], y[:150], stand_in, ["laplace", "normal"]).refine()
            told = model.uncertainty(X[150:]).sel(label=1)
            lower, upper = told["lower"].to_numpy(), told["upper"].to_numpy()
            held[seed, place] = np.mean((lower <= p[150:]) & (p[150:] <= upper))
            widths[seed, place] = np.mean(upper - lower)
    assert (held.mean(axis=0)[1:] > 0.85).all()
    assert (widths[:, 1:] > 0.95 * widths[:, :1]).all()
