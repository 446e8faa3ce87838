"""What says nothing changes no answer: orders, names, constant columns, copies of a column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from bayesrbf import (
    KernelNetworkClassifier,
    Margin,
    MedianLVQClassifier,
    MixtureDensity,
    RBFNetworkClassifier,
    RBFNetworkRegressor,
    SDGMClassifier,
    StackedClassifier,
)
from bayesrbf.base.rows import COVARIANCE_TYPES
from tests.cases import generative, some_quick
from tests.fit.class_tables import table

TURNED = np.array(["late", "early", "noon"], dtype=object)
"""Names that sort differently."""

ROUNDING = {"rtol": 0, "atol": 1e-7}
"""Temperatures are searched for, and eigenvalues found, where the last bits differ."""

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def holes(n: int = 60) -> tuple[pd.DataFrame, np.ndarray]:
    """Three classes over five real and two categorical columns with holes, labels hidden."""
    X, y = table(n)
    rng = np.random.default_rng(2)
    for name in "abc":
        X[name] = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
    X["mood"] = np.where(rng.random(n) < 0.2, None, rng.choice(["good", "bad"], n))
    y[rng.random(n) < 0.1] = None
    return X, y


def turned(X: pd.DataFrame, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """The same table in another order, and where its rows were."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(X))
    return X.iloc[rows, rng.permutation(X.shape[1])], rows


def told_otherwise(X: pd.DataFrame) -> pd.DataFrame:
    """The same cells: levels renamed, constant columns added, and copies of columns."""
    levels = sorted(set(X["sky"].dropna()))
    sky = X["sky"].map(dict(zip(levels, [*levels[1:], levels[0]], strict=True)))
    mood = X["mood"].map({"good": "a", "bad": "b"})
    return X.assign(
        sky=sky, mood=mood, one=1.0, word="x", a_again=X["a"], mood_again=mood.to_numpy()
    )


def renamed(y: np.ndarray) -> np.ndarray:
    """The same labels under other names."""
    names: dict[Any, Any] = dict(zip(["calm", "gale", "storm"], TURNED, strict=True))
    return np.array([names.get(label) for label in y], dtype=object)


FAST = {"n_init": 2, "tol": 1e-4}
CLASSIFIERS = {
    **{shape: generative(3, covariance_type=shape, **FAST) for shape in COVARIANCE_TYPES},
    "one covariance": generative(3, shared_covariance=True, **FAST),
    "calibrated": generative(2, calibrate=True, cv=2, **FAST),
    "blend": generative(2, objective="blend", **FAST),
    "chosen": generative(shared_covariance=True, unlabelled_weight="cv", cv=2, **FAST),
    "conditional": generative(2, objective="conditional", **FAST),
    "margin": generative(2, objective=Margin(max_iter=5), covariance_type="diag", **FAST),
    "hinge": generative(2, objective="hinge", covariance_type="diag", **FAST),
    "rbf": RBFNetworkClassifier(4, max_iter=50, **FAST),
    "rbf, completions": RBFNetworkClassifier(3, features="log_density", max_iter=50, **FAST),
    "rbf, linked": RBFNetworkClassifier(4, link=20.0, max_iter=50, **FAST),
    "kernel": KernelNetworkClassifier(calibrate=True, cv=2),
    "few exemplars": KernelNetworkClassifier(n_exemplars=20),
    "kernel, evidence": KernelNetworkClassifier(rates="evidence"),
    "kernel, leave-one-out": KernelNetworkClassifier("gaussian", rates="leave-one-out"),
    "sdgm": SDGMClassifier(2, n_init=2, max_iter=10, cv=2),
    "sdgm, kernel": SDGMClassifier(form="kernel", n_init=1, max_iter=10, cv=2),
    "lvq": MedianLVQClassifier(2, metric="gower", calibrate=True, cv=3),
    "lvq, sampled": MedianLVQClassifier(2, metric="gower", sigma="sample"),
    "stack": StackedClassifier(cv=2),
}


@pytest.mark.filterwarnings("ignore:SDGMClassifier")
@pytest.mark.parametrize("name", some_quick(CLASSIFIERS, "one covariance", "calibrated", "kernel"))
def test_order_and_names_change_no_probability(name: str) -> None:
    X, y = holes()
    model = clone(CLASSIFIERS[name]).set_params(random_state=0)
    expected = clone(model).fit(X, y).predict_proba(X)
    other_X, rows = turned(told_otherwise(X))
    other = model.fit(other_X, renamed(y)[rows])
    back = np.searchsorted(other.classes_, TURNED)
    np.testing.assert_allclose(other.predict_proba(other_X)[:, back], expected[rows], **ROUNDING)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_what_says_nothing_changes_no_answer_of_the_default_stack(seed: int) -> None:
    X, y = holes(90)
    rng = np.random.default_rng(seed)
    sample = rng.permutation(len(X))[:75]
    X, y = X.iloc[sample], y[sample]
    weights, groups = rng.integers(1, 3, 75).astype(float), rng.integers(0, 50, 75)
    model = StackedClassifier(random_state=0)
    expected = clone(model).fit(X, y, sample_weight=weights, groups=groups).predict_proba(X)
    other_X, rows = turned(told_otherwise(X), seed)
    said = {"sample_weight": weights[rows], "groups": groups[rows]}
    other = model.fit(other_X, renamed(y)[rows], **said)
    back = np.searchsorted(other.classes_, TURNED)
    found = other.predict_proba(other_X)[:, back]
    np.testing.assert_allclose(found, expected[rows], **ROUNDING)


def test_the_order_of_rows_of_groups_changes_no_rate() -> None:
    """One row of each group is in a sub-sample, whatever number the group has."""
    X, y = holes(60)
    groups, back = np.arange(60) // 2, np.arange(60)[::-1]
    model = KernelNetworkClassifier(rates="leave-one-out", random_state=0)
    expected = clone(model).fit(X, y, groups=groups).predict_proba(X)
    found = model.fit(X.iloc[back], y[back], groups=groups[back]).predict_proba(X)
    np.testing.assert_allclose(found, expected, **ROUNDING)


def test_either_copy_of_a_column_serves_and_a_difference_is_told() -> None:
    X, y = holes()
    model = generative(2, random_state=0, **FAST)
    expected = clone(model).fit(X, y).predict_proba(X)
    fit = model.fit(told_otherwise(X), y)
    assert (
        "Columns left out: 'one' (constant), 'word' (constant), 'a_again' (a copy of 'a') and "
        "'mood_again' (a copy of 'mood')." in fit.status_
    )
    new = told_otherwise(X)
    for name in ("a", "mood"):
        without = new.assign(**{name: None if name == "mood" else np.nan})
        np.testing.assert_allclose(fit.predict_proba(without), expected, **ROUNDING)
        filled = fit.impute(without, draws=None)
        pd.testing.assert_series_equal(
            filled[name][new[name].notna()], new[name][new[name].notna()], check_dtype=False
        )
    row = int(np.flatnonzero(new["a"].notna())[0])
    again = new.assign(a_again=new["a_again"] + (np.arange(len(new)) == row))
    with pytest.warns(UserWarning, match="'a' and 'a_again' were equal .* differ in 1 rows: 'a'"):
        np.testing.assert_allclose(fit.predict_proba(again), expected, **ROUNDING)
    with pytest.warns(UserWarning, match="'one' had the same cell .* another in 1 rows"):
        fit.predict_proba(new.assign(one=np.where(np.arange(len(new)) == 3, 2.0, 1.0)))
    assert (fit.impute(new.assign(one=np.nan))["one"] == 1.0).all()


@pytest.mark.filterwarnings("ignore:.*one labelled row alone is of class:UserWarning")
def test_completions_do_not_depend_on_the_order_of_columns() -> None:
    X, y = holes()
    whole = X.notna().all(axis=1).to_numpy()
    model = RBFNetworkClassifier(2, features="log_density", max_iter=50, random_state=0, **FAST)
    expected = clone(model).fit(X[whole], y[whole])
    assert expected.model_.integrate
    other_X, rows = turned(X)
    other = model.fit(other_X[whole[rows]], y[rows][whole[rows]])
    np.testing.assert_allclose(
        other.predict_proba(other_X), expected.predict_proba(X)[rows], **ROUNDING
    )


@pytest.mark.slow
@pytest.mark.parametrize("form", ["primal", "kernel"])
def test_order_changes_nothing_where_labels_are_sets(form: str) -> None:
    X, y = table(60)
    allowed = pd.get_dummies(y) | (np.random.default_rng(0).random((60, 3)) < 0.2)
    model = SDGMClassifier(2, form=form, n_init=2, max_iter=10, random_state=0)
    told = ~allowed.all(axis=1).to_numpy()
    expected = clone(model).fit(X[told], allowed[told]).predict_proba(X)
    other_X, rows = turned(X)
    renaming = allowed.rename(columns=dict(zip(allowed, TURNED, strict=True)))
    other = model.fit(other_X[told[rows]], renaming.iloc[rows][told[rows]])
    back = np.searchsorted(other.classes_, TURNED)
    np.testing.assert_allclose(other.predict_proba(other_X)[:, back], expected[rows], **ROUNDING)


def test_order_changes_no_number() -> None:
    X, _ = holes()
    y = np.random.default_rng(0).normal(size=len(X)) + X["a"].fillna(0).to_numpy()
    model = RBFNetworkRegressor(3, max_iter=50, random_state=0, cv=2, **FAST)
    expected = clone(model).fit(X, y)
    other_X, rows = turned(X)
    other = model.fit(other_X, y[rows])
    np.testing.assert_allclose(other.predict(other_X), expected.predict(X)[rows], **ROUNDING)
    interval = expected.predict_interval(X)[rows]
    np.testing.assert_allclose(other.predict_interval(other_X), interval, rtol=0, atol=1e-4)


def test_order_changes_no_density() -> None:
    X, _ = holes()
    model = MixtureDensity(3, random_state=0, **FAST)
    expected = clone(model).fit(X).score_samples(X)
    other_X, rows = turned(X)
    found = model.fit(other_X).score_samples(other_X)
    np.testing.assert_allclose(found, expected[rows], rtol=1e-9)


def test_what_is_shown_keeps_the_order_of_the_table() -> None:
    X, y = holes()
    X = X.drop(columns=["sky", "mood"])
    other_X, rows = turned(X)
    model = generative(2, random_state=0, **FAST)
    one, other = clone(model).fit(X, y), model.fit(other_X, renamed(y)[rows])
    posteriors = [fitted.posterior_["posterior"] for fitted in (one, other)]
    assert posteriors[0]["feature"].values.tolist() == list(X)
    assert posteriors[1]["feature"].values.tolist() == list(other_X)
    assert posteriors[1]["class_label"].values.tolist() == sorted(TURNED)
    by_class = np.argsort(np.argsort(np.argsort(TURNED)).repeat(2), kind="stable")
    moved = posteriors[1].isel(mixture_component=np.argsort(by_class)).sel(feature=list(X))
    np.testing.assert_allclose(moved["means"].values, posteriors[0]["means"].values, rtol=1e-9)
    assert {rv.name for rv in other.declare().free_RVs} == {
        rv.name for rv in one.declare().free_RVs
    }
