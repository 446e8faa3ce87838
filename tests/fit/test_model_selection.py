"""Cross-validation with hidden labels: labelled rows are scored, all others always teach."""

from __future__ import annotations

import pickle
import re
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from bayesrbf import (
    HybridMixtureClassifier,
    LabelledKFold,
    held_out_probabilities,
    labelled_scorer,
)
from bayesrbf.reading.notes import ColumnWarning

ROWS = np.random.default_rng(0).permutation(150)
X = load_iris().data[ROWS]
Y = load_iris().target[ROWS]
HIDDEN = np.arange(150) % 3 == 0


@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, np.nan]), max_size=40), st.integers(2, 4), st.data()
)
def test_every_row_is_on_one_side_and_only_labelled_rows_are_held_out(
    labels: list[float], n_splits: int, data: st.DataObject
) -> None:
    y = np.array([0.0, 1.0] * n_splits + labels)
    shuffle = data.draw(st.booleans())
    folds = LabelledKFold(n_splits, shuffle=shuffle, random_state=0 if shuffle else None)
    held: Counter[int] = Counter()
    for train, test in folds.split(y, y):
        assert sorted([*train, *test]) == list(range(y.size))
        assert not np.isnan(y[test]).any()
        assert set(np.unique(y[train][~np.isnan(y[train])])) >= set(y[test])
        held.update(test.tolist())
    counts = Counter(y[~np.isnan(y)])
    alone = {i for i, label in enumerate(y) if counts[label] == 1}
    assert held == Counter(set(np.flatnonzero(~np.isnan(y)).tolist()) - alone)


def test_classes_are_dealt_evenly() -> None:
    y = np.where(HIDDEN, np.nan, Y)
    for _, test in LabelledKFold(5).split(X, y):
        share = np.bincount(Y[test], minlength=3) / test.size
        np.testing.assert_allclose(share, np.bincount(Y[~HIDDEN]) / (~HIDDEN).sum(), atol=0.06)


@pytest.mark.parametrize(
    "hide",
    [
        pytest.param(lambda y: np.where(HIDDEN, np.nan, y), marks=pytest.mark.slow, id="nan"),
        pytest.param(
            lambda y: np.array([None if h else v for h, v in zip(HIDDEN, y, strict=True)], object),
            marks=pytest.mark.slow,
            id="none",
        ),
        pytest.param(
            lambda y: np.array(
                [None if h else f"c{v}" for h, v in zip(HIDDEN, y, strict=True)], object
            ),
            id="text",
        ),
        pytest.param(
            lambda y: pd.Series(y, dtype="Int64").mask(HIDDEN), marks=pytest.mark.slow, id="Int64"
        ),
        pytest.param(lambda y: np.where(HIDDEN, -1, y), marks=pytest.mark.slow, id="minus one"),
    ],
)
def test_scores_are_those_of_the_labelled_rows_alone(hide: Any) -> None:
    """A classifier that knows labelled rows only gives the scores of an ordinary validation."""
    y = hide(Y)
    unlabelled = -1 if np.asarray(y).dtype.kind == "i" else None
    folds = LabelledKFold(3, unlabelled=unlabelled)
    scorer = labelled_scorer("neg_log_loss", unlabelled=unlabelled)
    model = HybridMixtureClassifier(
        objective="likelihood", unlabelled_weight=0.0, unlabelled=unlabelled, random_state=0
    )
    found = cross_val_score(model, X, y, cv=folds, scoring=scorer)
    known = np.flatnonzero(~HIDDEN)
    alone = LabelledKFold(3).split(X[known], Y[known])
    expected = []
    for train, test in alone:
        fitted = model.fit(X[known][train], Y[known][train])
        expected.append(-log_loss(Y[known][test], fitted.predict_proba(X[known][test])))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.slow
def test_a_grid_is_searched_with_hidden_labels() -> None:
    y = np.where(HIDDEN, np.nan, Y)
    grid = {"unlabelled_weight": [0.0, 1.0]}
    model = HybridMixtureClassifier(objective="likelihood", random_state=0)
    search = GridSearchCV(model, grid, cv=LabelledKFold(3), scoring=labelled_scorer("accuracy"))
    search.fit(X, y)
    assert search.best_score_ > 0.9
    assert search.best_estimator_.classes_.tolist() == [0.0, 1.0, 2.0]


def test_any_splitter_will_do_and_weights_follow_their_rows() -> None:
    y = np.where(HIDDEN, np.nan, Y)
    scorer = labelled_scorer("accuracy")
    model = HybridMixtureClassifier(objective="likelihood", random_state=0)
    scores = cross_val_score(model, X, y, cv=KFold(3), scoring=scorer)
    assert scores.min() > 0.8
    fitted = LogisticRegression(max_iter=500).fit(X, Y)
    weights = np.random.default_rng(1).random(150)
    told = scorer(fitted, X, y, sample_weight=weights)
    known = ~HIDDEN
    expected = accuracy_score(Y[known], fitted.predict(X[known]), sample_weight=weights[known])
    assert told == pytest.approx(expected)
    assert pickle.loads(pickle.dumps(scorer)) == scorer


@pytest.mark.parametrize(
    ("folds", "y", "message"),
    [
        (LabelledKFold(1), [0, 1, 0, 1], "at least 2; received 1"),
        (LabelledKFold(3), None, "needs y"),
        (LabelledKFold(5), [0, 1, 0, 1, None], "needs as many labelled rows"),
    ],
)
def test_what_cannot_be_split_is_refused(folds: LabelledKFold, y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        next(iter(folds.split(np.zeros((5, 1)), y)))


@pytest.mark.parametrize(
    ("mark", "unlabelled", "call"),
    [pytest.param(None, None, "", marks=pytest.mark.slow), (-1, -1, "unlabelled=-1")],
)
def test_scores_of_hidden_labels_say_which_splitter_and_scorer_to_take(
    mark: int | None, unlabelled: int | None, call: str
) -> None:
    y = Y.astype(object)
    y[HIDDEN] = mark
    y = y if mark is None else y.astype(int)
    model = HybridMixtureClassifier(objective="likelihood", unlabelled=unlabelled, random_state=0)
    advice = re.escape(f"cv=LabelledKFold({call}) and scoring=labelled_scorer({call})")
    with pytest.raises(ValueError, match=f"50 of the rows to be scored have none.*{advice}"):
        model.fit(X, y).score(X, y)
    with pytest.raises(ValueError, match=advice):
        cross_val_score(model, X, y, cv=KFold(3), error_score="raise")
    folds = LabelledKFold(3, unlabelled=unlabelled)
    scorer = labelled_scorer(unlabelled=unlabelled)
    assert cross_val_score(model, X, y, cv=folds, scoring=scorer).min() > 0.8
    assert model.score(X, Y) == accuracy_score(Y, model.predict(X))


def test_an_empty_text_is_a_class_with_a_warning_unless_it_hides_the_label() -> None:
    y = np.where(HIDDEN, "", Y.astype(str))
    model = HybridMixtureClassifier(objective="likelihood", random_state=0)
    with pytest.warns(ColumnWarning, match=re.escape("label '' for a class")):
        assert model.fit(X, y).classes_[0] == ""
    assert model.set_params(unlabelled="").fit(X, y).classes_.tolist() == ["0", "1", "2"]
    folds, scorer = LabelledKFold(3, unlabelled=""), labelled_scorer("accuracy", unlabelled="")
    assert cross_val_score(model, X, y, cv=folds, scoring=scorer).min() > 0.8


def test_groups_are_held_out_whole() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(20), 5)
    y = np.where(rng.random(100) < 0.3, np.nan, rng.integers(0, 2, 100))
    for shuffle in (False, True):
        folds = LabelledKFold(5, shuffle=shuffle, random_state=0 if shuffle else None)
        parts = list(folds.split(np.zeros((100, 1)), y, groups))
        assert len(parts) == 5
        for train, test in parts:
            assert not {*groups[train]} & {*groups[test]}
            assert not np.isnan(y[test]).any()
        held = np.concatenate([test for _, test in parts])
        assert {*held} == {*np.flatnonzero(~np.isnan(y))}
    with pytest.raises(ValueError, match=r"LabelledKFold\.split\(groups=\.\.\.\) must name"):
        next(LabelledKFold(5).split(np.zeros((100, 1)), y, groups[1:]))


def test_held_out_probabilities_are_those_of_fits_without_the_rows_and_keep_their_names() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    X = X.sample(frac=1, random_state=0)
    y = y[X.index].where(np.arange(150) % 3 > 0)
    model, folds = HybridMixtureClassifier(1, cv=2, random_state=0), LabelledKFold(3)
    told = held_out_probabilities(model, X, y, cv=folds)
    assert told.index.tolist() == y.index[y.notna()].tolist()
    for train, test in folds.split(X, y):
        by_hand = model.fit(X.iloc[train], y.iloc[train]).predict_proba(X.iloc[test])
        np.testing.assert_allclose(told.loc[X.index[test]], by_hand, rtol=1e-12)
    positions = held_out_probabilities(model, X.to_numpy(), y.to_numpy(), cv=folds)
    assert positions.index.tolist() == np.flatnonzero(y.notna()).tolist()
