"""Conformal sets: exact coverage, p values by counting, planted defects, sets that grow."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import ShuffleSplit
from sklearn.neighbors import KNeighborsClassifier

from bayesrbf import ConformalSets
from tests.cases import first_quick, generative
from tests.fit.class_tables import CLASSES, table

LEVELS = (0.5, 0.8, 0.9)
N_OBS, HOLES = 200, 1.5


class Known(ClassifierMixin, BaseEstimator):
    """Knows the density of the rows below from the start, and is too sure of rows with holes."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Known:
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        sharper = 1 + 3 * np.isnan(X).sum(axis=1)
        p = 1 / (1 + np.exp(sharper * (0.5 - np.nan_to_num(X, nan=0.5).sum(axis=1))))
        return np.column_stack([1 - p, p])


def rows(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two classes over two columns, of which the second is missing in two rows of five."""
    y = (rng.random(n) < 0.5).astype(int)
    X = rng.normal(size=(n, 2)) + y[:, None]
    X[rng.random(n) < 0.4, 1] = np.nan
    return X, y


def held(repeats: int, **options: Any) -> tuple[dict[float, np.ndarray], np.ndarray]:
    """Whether the set of one new row holds its class, table after table, and its missing cells."""
    rng = np.random.default_rng(0)
    p, missing = np.empty(repeats), np.empty(repeats, dtype=int)
    for repeat in range(repeats):
        X, y = rows(121, rng)
        sets = ConformalSets(Known(), level=0.5, random_state=0, **options).fit(X[1:], y[1:])
        p[repeat] = sets.predict_p(X[:1]).to_numpy()[0, y[0]]
        missing[repeat] = np.isnan(X[0]).sum()
    return {level: p > 1 - level + 1e-9 for level in LEVELS}, missing


def too_few(found: np.ndarray, level: float) -> bool:
    """Whether so few sets hold their class by chance once in a thousand at most."""
    return bool(binom.cdf(found.sum(), found.size, level) < 1e-3)


def too_many(found: np.ndarray, level: float, calibration: int) -> bool:
    """Whether so many do where ranks among so many rows are even."""
    return bool(binom.sf(found.sum() - 1, found.size, level + 1 / (calibration + 1)) < 1e-3)


@pytest.mark.parametrize("cv", first_quick([ShuffleSplit(1, test_size=0.5, random_state=0), 4]))
def test_sets_hold_the_class_as_often_as_asked_for_in_every_group(cv: object) -> None:
    found, missing = held(400, cv=cv)
    for level, inside in found.items():
        for number in (0, 1):
            group = inside[missing == number]
            assert not too_few(group, level)
            assert not too_many(group, level, 10)


@pytest.mark.slow
def test_without_groups_rows_with_holes_are_held_too_seldom() -> None:
    found, missing = held(800, mondrian=None)
    assert not too_few(found[0.9], 0.9)
    assert too_few(found[0.9][missing == 1], 0.9)


class InSample:
    """A defect: the rows of the fit calibrate it."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        yield np.arange(len(X)), np.arange(len(X))

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        return 1


def test_scores_of_rows_that_the_model_has_seen_are_found_out() -> None:
    rng = np.random.default_rng(0)
    (X, y), (X_new, y_new) = rows(200, rng), rows(400, rng)
    X, X_new = X[:, :1], X_new[:, :1]
    neighbours = KNeighborsClassifier(1)
    own = ConformalSets(neighbours, cv=InSample()).fit(X, y).predict_set(X_new, 0.9)
    others = ConformalSets(neighbours, random_state=0).fit(X, y).predict_set(X_new, 0.9)
    new = np.arange(400)
    assert too_few(own.to_numpy()[new, y_new], 0.9)
    assert not too_few(others.to_numpy()[new, y_new], 0.9)


def model(**options: Any) -> ConformalSets:
    return ConformalSets(
        generative(shared_covariance=True, random_state=0), random_state=0, **options
    )


def test_p_values_are_what_counting_gives() -> None:
    (X, y), (X_new, _) = table(150), table(20, seed=1)
    X, X_new = X.assign(key=np.arange(150.0)), X_new.assign(key=np.arange(20.0))
    sets = model(cv=3, level=0.8).fit(X, y)
    starts = [int(name.split()[0]) for name in sets.groups_]
    assert len(starts) > 1

    def group(row: pd.Series) -> int:
        return max(i for i, start in enumerate(starts) if start <= row.isna().sum())

    found = sets.predict_p(X_new).to_numpy()
    like, stranger = np.zeros(20), np.zeros((20, 3))
    for fold in sets.models_:
        new, old = fold.predict_proba(X_new), fold.predict_proba(X)
        for i in set(range(150)) - set(fold.rows_.real[:, 2].astype(int)):
            for row in range(20):
                if group(X.iloc[i]) == group(X_new.iloc[row]):
                    like[row] += 1
                    for c in range(3):
                        stranger[row, c] += old[i, list(CLASSES).index(y[i])] <= new[row, c]
    np.testing.assert_allclose(found, (1 + stranger) / (1 + like)[:, None])


def test_sets_grow_with_the_level() -> None:
    X, y = table(90)
    sets = model(level=0.8).fit(X, y)
    found = [sets.predict_set(X, level).to_numpy() for level in (0.3, 0.6, 0.8, 0.9, 0.99, 0.9999)]
    for smaller, larger in pairwise(found):
        assert (smaller <= larger).all()
    assert found[-1].all()  # so few rows rule nothing out at such a level
    assert (sets.predict_set(X) == found[2]).all(axis=None)


def test_hidden_labels_are_in_every_fit_and_calibrate_nothing() -> None:
    X, y = table(120)
    some = np.where(np.arange(120) % 3 == 0, None, y)
    sets = model(level=0.5).fit(X, some)
    assert sum(sets.groups_.values()) == 80
    for fold in sets.models_:
        assert (fold.rows_.labels < 0).sum() == 40
        assert fold.rows_.n_obs == 40 + 64
    split = model(level=0.5, cv=ShuffleSplit(1, test_size=20, random_state=0)).fit(X, some)
    assert split.models_[0].rows_.n_obs == 100
    told = sets.coverage(X, some, 0.5)
    assert told.loc["all", "rows"] == 80


def test_coverage_counts_sets_by_missing_cells() -> None:
    X, y = table(150)
    X_new, y_new = table(80, seed=1)
    sets = model(level=0.8).fit(X, y)
    told = sets.coverage(X_new, y_new, 0.6)
    inside = sets.predict_set(X_new, 0.6)
    own = np.array([inside.loc[i, c] for i, c in enumerate(y_new)])
    missing = X_new.isna().sum(axis=1).to_numpy()
    assert list(told.index) == [*sets.groups_, "all"]
    none = told.loc["0"]
    assert none["rows"] == (missing == 0).sum()
    assert none["covered"] == pytest.approx(own[missing == 0].mean())
    assert none["size"] == pytest.approx(inside.to_numpy()[missing == 0].sum(axis=1).mean())
    assert (told["lower"] <= told["covered"]).all()
    assert (told["covered"] <= told["upper"]).all()
    assert told.loc["all", "covered"] == pytest.approx(own.mean())


def test_rows_keep_their_names_and_the_model_stays_as_it_is() -> None:
    X, y = table(60)
    named = X.set_axis([f"r{i}" for i in range(60)])
    sets = model(level=0.5).fit(named, y)
    found = sets.predict_set(named.iloc[[3, 1]])
    assert list(found.index) == ["r3", "r1"]
    assert list(found.columns) == list(CLASSES)
    assert set(found.dtypes) == {np.dtype(bool)}
    assert not hasattr(sets.classifier, "model_")
    pd.testing.assert_frame_equal(
        model(level=0.5).fit(named, y).predict_p(named), sets.predict_p(named)
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"level": 1.0}, r"ConformalSets\(level=...\) must be a number between 0 and 1"),
        ({"mondrian": "class"}, r"ConformalSets\(mondrian=...\) must be 'missing' or None"),
        ({"cv": 1}, r"ConformalSets\(cv=...\) must be at least 2 folds, or a splitter; received 1"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        model(**options).fit(*table(30))


def test_a_table_that_holds_nothing_out_is_named() -> None:
    with pytest.raises(ValueError, match="holds out no labelled row"):
        model().fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(ValueError, match=r"predict_set\(level=...\) must be a number between"):
        model(level=0.5).fit(*table(30)).predict_set(table(30)[0], 2.0)
