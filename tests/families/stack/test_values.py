"""A member of the stack that takes reals of few values for categories."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from bayesrbf import StackedClassifier, load
from bayesrbf.base.artefact import check_record
from bayesrbf.base.rows import FewValues, Observations
from bayesrbf.families.stack.members import DEFAULT, SMOOTH, own_members
from bayesrbf.fit.asking import new_rows
from bayesrbf.table.encode import few_values

CODES = np.array([3.0, 1.0, 4.0, 1.5, 9.0, 2.6])
"""Numbers that stand for nothing: the class is whether the place among them is odd."""


def coded(n_rows: int = 120, holes: float = 0.1) -> tuple[pd.DataFrame, np.ndarray]:
    """A column whose values are codes, and one without a word."""
    rng = np.random.default_rng(0)
    place = rng.integers(0, CODES.size, n_rows)
    X = pd.DataFrame({"code": CODES[place], "other": rng.normal(size=n_rows)})
    X = X.mask(rng.random(X.shape) < holes)
    return X, np.where(place % 2, "odd", "even")


@pytest.fixture(scope="module")
def alone() -> StackedClassifier:
    X, y = coded()
    return StackedClassifier(["gaussian_loo_levels"], cv=2, random_state=0).fit(X, y)


def rows_of(cells: np.ndarray, weights: np.ndarray) -> Observations:
    """Rows of reals."""
    return Observations(
        cells, np.zeros((len(cells), 0), np.intp), np.zeros(len(cells), np.intp), weights
    )


def test_a_column_has_few_values_where_each_has_rows_and_weights_are_rows() -> None:
    cells = np.column_stack([np.arange(24.0) % 3 - 1, np.arange(24.0), np.arange(24.0) % 2])
    cells[1, 0] = -0.0  # not a further value
    assert few_values(rows_of(cells, np.ones(24))).features == ()
    twice = few_values(rows_of(cells, np.full(24, 2.0)))
    copies = few_values(rows_of(np.repeat(cells, 2, axis=0), np.ones(48)))
    assert twice.features == copies.features == (0,)
    np.testing.assert_array_equal(twice.values[0], [-1, 0, 1])
    many = np.column_stack([np.arange(600.0) % 13, np.arange(600.0) % 12])
    assert few_values(rows_of(many, np.ones(600))).features == (1,)


def test_every_column_of_the_table_is_found_again_among_the_categories() -> None:
    rng = np.random.default_rng(1)
    rows = replace(
        rows_of(rng.integers(0, 3, (9, 4)).astype(float), np.ones(9)),
        codes=rng.integers(0, 3, (9, 2)),
    )
    few = FewValues((0, 2), (np.arange(3.0), np.arange(3.0)))
    seen = few.as_categories(rows)
    columns = np.concatenate([seen.real, seen.codes], axis=1)
    expected = np.concatenate([rows.real, rows.codes], axis=1)
    np.testing.assert_array_equal(columns[:, few.places(4, 2)], expected)


def test_the_member_joins_where_a_column_has_few_values() -> None:
    some, none = FewValues((1,), (np.arange(3.0),)), FewValues()
    trees = DEFAULT[len(SMOOTH) :]
    assert own_members("default", none, 60.0) == DEFAULT
    assert own_members("default", some, 60.0) == (*SMOOTH, "gaussian_loo_levels", *trees)
    assert own_members(["normal"], some, 60.0) == ("normal",)
    X, y = coded()
    assert "gaussian_loo_levels" in StackedClassifier(cv=2).fit(X, y).members_


def test_without_such_a_column_it_is_the_member_that_takes_reals_as_they_are() -> None:
    X, y = coded()
    model = StackedClassifier(["gaussian_loo", "gaussian_loo_levels"], cv=2, random_state=0).fit(
        X[["other"]], y
    )
    one, other = (member.model for member in model.model_.members.own)
    np.testing.assert_array_equal(one.theta, other.theta)
    np.testing.assert_array_equal(*np.moveaxis(model.model_.held.values, 1, 0))


def test_distances_of_the_values_do_not_matter(alone: StackedClassifier) -> None:
    X, y = coded()
    cubed = X.assign(code=X["code"] ** 3)
    found = clone(alone).fit(cubed, y).predict_proba(cubed)
    np.testing.assert_allclose(found, alone.predict_proba(X), rtol=0, atol=1e-10)


def test_codes_are_learned_and_a_new_value_is_a_missing_one(alone: StackedClassifier) -> None:
    X, y = coded()
    known = X["code"].notna().to_numpy()
    p = alone.predict_proba(X)[np.arange(len(y)), np.searchsorted(alone.classes_, y)]
    assert np.log(p[known]).mean() > -0.2
    new = pd.DataFrame({"code": [5.0, np.nan], "other": [0.3, 0.3]})
    one, other = alone.model_.members.log_probabilities(new_rows(alone.fitted_, new).cells)
    np.testing.assert_array_equal(one, other)
    assert alone.relevance_.index.tolist() == ["code", "other"]


def test_folds_share_their_rates_and_what_is_saved_says_the_same(
    alone: StackedClassifier, tmp_path: Path
) -> None:
    X, y = coded()
    path = tmp_path / "stack.bayesrbf"
    alone.save(path)
    np.testing.assert_array_equal(load(path).predict_proba(X), alone.predict_proba(X))
    both = StackedClassifier(["gaussian_loo", "gaussian_loo_levels"], cv=2, random_state=0).fit(
        X, y
    )
    one, other = both.model_.members.own
    np.testing.assert_array_equal(other.model.rates, alone.model_.members.own[0].model.rates)
    assert one.model.rates.size == other.model.rates.size == 2
    assert both.relevance_.loc["code", "gaussian_loo_levels"] == 1.0
    drawn = both.refine(draws=6).uncertainty(X[:5])
    assert np.isfinite(drawn["probability"]).all()


@pytest.mark.parametrize(
    ("few", "message"),
    [
        (FewValues((0,), (np.array([2.0, 1.0, 3.0, 4.0, 5.0, 6.0]),)), "in rising order"),
        (FewValues((0,), ()), "values of every column"),
        (FewValues((7,), (np.arange(6.0),)), "real columns of few values"),
        (FewValues((0,), (np.arange(5.0),)), "levels for the values"),
    ],
)
def test_a_stored_member_of_other_columns_is_refused(
    alone: StackedClassifier, few: FewValues, message: str
) -> None:
    (member,) = alone.model_.members.own
    forged = replace(member, columns=replace(member.columns, few=few))
    with pytest.raises(ValueError, match=message):
        list(map(check_record, (few, forged)))
