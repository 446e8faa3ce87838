"""Probabilities come true on new rows that come as the training rows came."""

from __future__ import annotations

import warnings
from copy import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    RBFNetworkClassifier,
    StackedClassifier,
    recalibrate,
)
from bayesrbf.fit.asking import new_rows
from bayesrbf.table import encode, without_indicators

LINES = [(0.2, 0.10, 0.05), (0.2, 0.24, 0.05), (0.2, 0.05, 0.24), (0.28, 0.24, 0.0)]
"""Events; how often one column is missing in events, and in other rows."""


def one_column_missing(
    n: int, rng: np.random.Generator, events: float, of_events: float, of_others: float
) -> tuple[pd.DataFrame, np.ndarray]:
    """Six normal columns, each .6 larger in events; the first is missing by the class."""
    y = (rng.random(n) < events).astype(int)
    X = pd.DataFrame(rng.normal(size=(n, 6)) + 0.6 * y[:, None]).add_prefix("x")
    missing = rng.random(n) < np.where(y == 1, of_events, of_others)
    return X.assign(x0=X["x0"].mask(missing)), y


def over_share(model: Any, line: tuple[float, float, float], seed: int) -> float:
    """Mean probability of the event in new rows over its share of the training rows.

    It is free of the luck of the class share of few training rows, unlike observed over expected.
    """
    rng = np.random.default_rng(seed)
    X, y = one_column_missing(500, rng, *line)
    new, _ = one_column_missing(4000, rng, *line)
    return float(model.fit(X, y).predict_proba(new)[:, 1].mean() / y.mean())


@pytest.mark.parametrize("line", LINES[1:3])
def test_a_column_that_is_missing_by_the_class_moves_no_class_share(
    line: tuple[float, float, float],
) -> None:
    model = HybridMixtureClassifier(1, random_state=0)
    assert over_share(model, line, 0) == pytest.approx(1, abs=0.12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "line"),
    [(StackedClassifier, line) for line in LINES]
    + [(HybridMixtureClassifier, line) for line in LINES[1:3]]
    + [(KernelNetworkClassifier, LINES[1]), (RBFNetworkClassifier, LINES[2])],
)
def test_the_mean_probability_is_the_class_share_in_every_family(
    make: Any, line: tuple[float, float, float]
) -> None:
    ratios = [over_share(make(random_state=0), line, seed) for seed in range(3)]
    assert np.mean(ratios) == pytest.approx(1, abs=0.08)
    assert ratios == pytest.approx([1] * 3, abs=0.15)


def rows_of_a_clinic(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Three measurements, and two tests that are made for half of the ill and one in 25 others."""
    y = (rng.random(n) < 0.4).astype(int)
    X = pd.DataFrame(rng.normal(size=(n, 3)) + 0.5 * y[:, None] * [1, 1, 0]).add_prefix("x")
    made = rng.random((n, 2)) < np.where(y == 1, 0.5, 0.04)[:, None]
    tests = pd.DataFrame(rng.normal(size=(n, 2)) + 0.6 * y[:, None], columns=["g", "h"])
    return X.join(tests.where(made)), y


SMALL = ["laplace_evidence", "normal_blend"]


@pytest.fixture(scope="module")
def tested() -> tuple[StackedClassifier, pd.DataFrame, np.ndarray]:
    """A small stack of 300 such rows, and new rows with their labels."""
    rng = np.random.default_rng(0)
    X, y = rows_of_a_clinic(300, rng)
    return StackedClassifier(SMALL, random_state=0).fit(X, y), *rows_of_a_clinic(2000, rng)


@pytest.mark.slow
@pytest.mark.parametrize("n_train", [150, 400])
def test_where_tests_are_made_for_the_ill_the_default_is_near_the_true_form(n_train: int) -> None:
    """Against a logistic regression with indicators, whose penalty is cross-validated."""
    more, said, inside = [], [], []
    for seed in range(3):
        rng = np.random.default_rng([seed, n_train])
        (X, y), (new, y_new) = rows_of_a_clinic(n_train, rng), rows_of_a_clinic(3000, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of scikit-learn's later defaults
            rival = make_pipeline(
                SimpleImputer(add_indicator=True),
                StandardScaler(),
                LogisticRegressionCV(scoring="neg_log_loss", max_iter=2000),
            ).fit(X, y)
        model = StackedClassifier(random_state=0).fit(X, y)
        ours, theirs = (log_loss(y_new, one.predict_proba(new)) for one in (model, rival))
        more.append(ours - theirs)
        both = new[["g", "h"]].notna().all(axis=1).to_numpy()
        p = model.predict_proba(new)[:, 1]
        said.append(p[both].mean() / y_new[both].mean())
        told = model.refine().uncertainty(new[:500])
        truth = probability_of_ill(new[:500])
        lower, upper = (told[end].to_numpy()[:, 1] for end in ("lower", "upper"))
        inside.append(((lower <= truth) & (truth <= upper)).mean())
    assert np.mean(more) < 0.03
    assert np.mean(said) > 0.9
    assert np.mean(inside) > 0.85


def probability_of_ill(X: pd.DataFrame) -> np.ndarray:
    """P(ill | cells, pattern of tests) by Bayes' rule."""
    means = np.array([0.5, 0.5, 0.0, 0.6, 0.6])
    cells = X.to_numpy()
    of_cells = np.where(np.isnan(cells), 0.0, means * (cells - means / 2)).sum(axis=1)
    made = ~np.isnan(cells[:, 3:])
    of_tests = np.where(made, np.log(0.5 / 0.04), np.log(0.5 / 0.96)).sum(axis=1)
    return np.asarray(expit(np.log(0.4 / 0.6) + of_cells + of_tests))


def test_other_reasons_can_be_told_without_a_new_fit(
    tested: tuple[StackedClassifier, pd.DataFrame, np.ndarray],
) -> None:
    """The answer is that of a fit to which it was said, and can be taken back."""
    model, new, _ = tested
    X, y = rows_of_a_clinic(300, np.random.default_rng(0))
    said = StackedClassifier(SMALL, missingness="ignorable", random_state=0).fit(X, y)
    before = model.predict_proba(new[:50])
    other = copy(model).assume_missingness("ignorable")
    np.testing.assert_allclose(other.predict_proba(new[:50]), said.predict_proba(new[:50]))
    assert np.abs(before - other.predict_proba(new[:50])).max() > 0.1
    np.testing.assert_array_equal(model.predict_proba(new[:50]), before)
    np.testing.assert_array_equal(
        other.assume_missingness("as_trained").predict_proba(new[:50]), before
    )
    with pytest.raises(ValueError, match="'as_trained' or 'ignorable'; received 'cv'"):
        other.assume_missingness("cv")
    exemplars = MedianLVQClassifier(random_state=0).fit(X[:60], y[:60])
    with pytest.raises(ValueError, match="makes no use of missing indicators"):
        exemplars.assume_missingness("ignorable")


def test_indicators_of_a_mixture_can_be_ignored_without_a_new_fit() -> None:
    X, y = rows_of_a_clinic(200, np.random.default_rng(0))
    model = HybridMixtureClassifier(1, missingness="informative", random_state=0).fit(X, y)
    with_them = model.predict_proba(X[:50])
    without = model.assume_missingness("ignorable").predict_proba(X[:50])
    cells = without_indicators(encode(X[:50], model.columns_), model.columns_)
    np.testing.assert_array_equal(without, np.exp(model.fitted_.class_log_probabilities(cells)))
    assert np.abs(without - with_them).max() > 0.1
    again = recalibrate(model, X[:20], y[:20], "refit", training=(X, y))
    unseen = without_indicators(encode(X[:20], again.columns_), again.columns_)
    expected = np.exp(again.fitted_.class_log_probabilities(unseen))
    np.testing.assert_array_equal(again.predict_proba(X[:20]), expected)


def test_a_rare_but_telling_pattern_counts() -> None:
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(600, 4))).add_prefix("x")
    y = (rng.random(600) < 0.4).astype(int)
    rare = (rng.random(600) < 0.125) & (y == 1)  # in 5 % of the rows
    X = X.assign(x0=X["x0"].mask(rare))
    model = StackedClassifier(SMALL, random_state=0).fit(X, y)
    row = pd.DataFrame({"x0": [np.nan, 0.0], "x1": 0.0, "x2": 0.0, "x3": 0.0})
    assert model.predict_proba(row)[0, 1] > 0.9
    assert model.fitted_.model.familiarity(new_rows(model.fitted_, row).cells).min() > 0.9


def test_a_hole_where_training_had_none_has_the_ignorable_answer(
    tested: tuple[StackedClassifier, pd.DataFrame, np.ndarray],
) -> None:
    model, new, _ = tested
    row = new[:20].assign(x1=np.nan)
    ignorable = copy(model).assume_missingness("ignorable").predict_proba(row)
    np.testing.assert_allclose(model.predict_proba(row), ignorable, rtol=1e-12)


def test_holes_at_random_in_all_columns_cost_nothing_and_warn_of_nothing() -> None:
    more = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        y = (rng.random(1200) < 0.4).astype(int)
        X = pd.DataFrame(rng.normal(size=(1200, 8)) + 0.5 * y[:, None]).add_prefix("x")
        X = X.mask(rng.random(X.shape) < 0.4)
        fits = (
            StackedClassifier(SMALL, cv=3, missingness=way, random_state=0).fit(X[:200], y[:200])
            for way in ("cv", "ignorable")
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ours, theirs = (log_loss(y[200:], fit.predict_proba(X[200:])) for fit in fits)
        more.append(ours - theirs)
    assert np.mean(more) < 0.004


def test_a_table_of_another_process_is_told(
    tested: tuple[StackedClassifier, pd.DataFrame, np.ndarray],
) -> None:
    """Trained where the ill are tested, used where everybody is."""
    model, new, _ = tested
    everybody = new[:100].fillna(0.0)
    with pytest.warns(UserWarning, match=r"'g' is missing in 0% .* assume_missingness"):
        model.predict_proba(everybody)
    other = copy(model).assume_missingness("ignorable")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other.predict_proba(everybody)
        model.predict_proba(new[:100])


def test_cells_that_are_missing_together_are_told() -> None:
    """Both columns are missing as often as in training, but in other rows."""
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.5).astype(int)
    X = pd.DataFrame(rng.normal(size=(400, 3)) + y[:, None]).add_prefix("x")
    missing = rng.random(400) < np.where(y == 1, 0.7, 0.3)
    X = X.assign(x0=X["x0"].mask(missing), x1=X["x1"].mask(missing))
    model = StackedClassifier(SMALL, random_state=0).fit(X, y)
    new = X.fillna(0.0)
    new = new.assign(x0=new["x0"].mask(missing), x1=new["x1"].mask(~missing))
    with pytest.warns(UserWarning, match="No cell is missing in 0% of 400 rows"):
        model.predict_proba(new)


def test_holes_of_rows_that_update_a_model_are_evidence(
    tested: tuple[StackedClassifier, pd.DataFrame, np.ndarray],
) -> None:
    """An update leaves what the patterns of its rows tell, unless other reasons are assumed."""
    model, new, y_new = tested
    losses = []
    for way in ("as_trained", "ignorable"):
        asked = copy(model).assume_missingness(way)
        updated = recalibrate(asked, new[:200], y_new[:200])
        losses.append(log_loss(y_new[200:], updated.predict_proba(new[200:])))
    assert losses[0] < losses[1] - 0.02
