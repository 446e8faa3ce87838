"""A forest as a member of a stack: without a density, and with any set of cells."""

from __future__ import annotations

import sys
from subprocess import run

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier

import bayesrbf
from bayesrbf import StackedClassifier
from bayesrbf.families.stack.members import DEFAULT, ROWS_FOR_BOOSTING, SMOOTH, chosen_members

MEMBERS = ("normal", "forest")


def table(n: int = 120, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A rule over two columns, and holes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.normal(size=n)})
    X["level"] = pd.Categorical(rng.choice(["low", "mid", "high"], n))
    y = np.where((X["a"] > 0) == (X["level"] == "low"), "yes", "no")
    X.loc[::7, "b"] = np.nan
    X.loc[3::11, "level"] = np.nan
    return X, y


@pytest.fixture(scope="module")
def fitted() -> StackedClassifier:
    return StackedClassifier(MEMBERS, cv=3, random_state=0).fit(*table())


def test_the_default_has_a_forest_and_smooth_has_none() -> None:
    X, y = table(40)
    assert (*SMOOTH, "forest", "extra_trees") == DEFAULT
    smooth = StackedClassifier("smooth", cv=2, random_state=0).fit(X, y)
    assert smooth.members_ == SMOOTH


def test_a_rule_gives_it_the_weight(fitted) -> None:
    assert dict(zip(fitted.members_, fitted.weights_, strict=True))["forest"] > 0.8


@pytest.mark.slow
def test_boosting_joins_where_rows_are_many() -> None:
    few, many = (chosen_members("default", n) for n in (ROWS_FOR_BOOSTING - 1, ROWS_FOR_BOOSTING))
    assert many == (*few, "boosting")
    assert chosen_members("smooth", ROWS_FOR_BOOSTING) == SMOOTH
    X, y = table(60)
    heavy = np.full(60, ROWS_FOR_BOOSTING / 60)
    settings = {"cv": 2, "random_state": 0}
    assert "boosting" not in StackedClassifier(**settings).fit(X, y, heavy).members_
    model = StackedClassifier([*MEMBERS, "boosting"], **settings).fit(X, y)
    assert model.members_ == (*MEMBERS, "boosting")
    assert np.isfinite(model.predict_proba(X)).all()


def test_names_come_in_one_order_and_forests_alone_are_refused() -> None:
    X, y = table(40)
    assert StackedClassifier(MEMBERS[::-1], cv=2).fit(X, y).members_ == MEMBERS
    with pytest.raises(ValueError, match="not of trees alone"):
        StackedClassifier(["forest"]).fit(X, y)


def test_a_member_of_ones_own_must_have_another_name() -> None:
    X, y = table(40)
    mine = [("forest", RandomForestClassifier(5))]
    with pytest.raises(ValueError, match=r"extra=\.\.\.\) has a member 'forest', as stacks"):
        StackedClassifier(MEMBERS, extra=mine).fit(X, y)


def test_weights_of_rows_make_no_member_know_what_is_held_out() -> None:
    """Labels by chance: a forest remembers rows, and a part of one in training tells the rest."""
    X, _ = table(200)
    y = np.random.default_rng(1).integers(0, 2, 200)
    weights = np.random.default_rng(2).uniform(1.1, 2.9, 200)
    model = StackedClassifier(MEMBERS, random_state=0).fit(X, y, weights)
    assert model.member_table()["log_loss"].min() > 0.99 * np.log(2)


@pytest.mark.slow
def test_a_file_says_the_same_without_scikit_learns_forests(fitted, tmp_path) -> None:
    X, _ = table(30, seed=1)
    X.iloc[0] = np.nan
    model = clone(fitted).fit(*table()).refine(draws=8)
    model.save(tmp_path / "model")
    loaded = bayesrbf.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X), atol=1e-12)
    for one, two in zip(loaded.uncertainty(X).values(), model.uncertainty(X).values(), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-12)
    X.to_pickle(tmp_path / "rows")
    program = (
        "import sys, pandas, bayesrbf\n"
        f"model = bayesrbf.load({str(tmp_path / 'model')!r})\n"
        f"model.predict_proba(pandas.read_pickle({str(tmp_path / 'rows')!r}))\n"
        "assert 'sklearn.ensemble' not in sys.modules"
    )
    assert run([sys.executable, "-c", program], check=False).returncode == 0


def test_it_is_a_kind_of_its_own(fitted) -> None:
    assert np.unique(fitted.model_.member_groups).size == 2
