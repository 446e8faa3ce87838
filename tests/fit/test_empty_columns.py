"""A column without a cell changes nothing, and nothing is known of its cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    MixtureDensity,
    RBFNetworkClassifier,
    RBFNetworkRegressor,
    SDGMClassifier,
    StackedClassifier,
)
from bayesrbf.reading.notes import ColumnWarning
from tests.cases import some_quick

EMPTY = ["e", "f", "g"]
FAMILIES: dict[str, Callable[[], Any]] = {
    "mixture": lambda: HybridMixtureClassifier(random_state=0),
    "informative": lambda: HybridMixtureClassifier(missingness="informative", random_state=0),
    "kernel network": lambda: KernelNetworkClassifier(random_state=0),
    "RBF network": lambda: RBFNetworkClassifier(2, n_init=1, random_state=0),
    "sparse mixture": lambda: SDGMClassifier(1, n_init=1, random_state=0),
    "exemplars": lambda: MedianLVQClassifier(random_state=0),
    "stack": lambda: StackedClassifier(random_state=0),
    "density": lambda: MixtureDensity(2, random_state=0),
    "regression": lambda: RBFNetworkRegressor(2, random_state=0),
}


def tables() -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """A table, the same with three columns that hold nothing, and labels."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 60)
    X = pd.DataFrame(rng.normal(size=(60, 2)) + y[:, None], columns=["a", "b"])
    X["c"] = pd.Categorical(np.where(rng.random(60) < 0.3 + 0.4 * y, "u", "v"))
    X.loc[::5, "b"] = np.nan
    wide = X.copy()
    wide.insert(1, "e", np.nan)
    wide["f"] = pd.Categorical([None] * 60, categories=["low", "high"])
    wide["g"] = pd.Series([None] * 60, dtype=object)
    return X, wide, y


def fitted(family: str, X: pd.DataFrame, y: np.ndarray) -> tuple[Any, np.ndarray]:
    """A model, and what it says of its rows."""
    model = FAMILIES[family]()
    if family == "density":
        return model.fit(X), model.score_samples(X)
    if family == "regression":
        return model.fit(X, y + 0.1 * np.arange(y.size)), model.predict(X)
    return model.fit(X, y), model.predict_proba(X)


@pytest.mark.parametrize("family", some_quick(FAMILIES, "mixture", "kernel network", "density"))
def test_columns_without_a_cell_change_nothing_and_stay_unknown(family: str) -> None:
    X, wide, y = tables()
    _, plain = fitted(family, X, y)
    with pytest.warns(ColumnWarning, match="(?i)column 'e' has no cell"):
        model, answers = fitted(family, wide, y)
    np.testing.assert_array_equal(answers, plain)
    assert model.columns_.table().loc[EMPTY, "kind"].tolist() == ["empty"] * 3
    if not hasattr(model, "impute"):
        return
    law = model.conditional(wide)
    for filled in (model.impute(wide), *model.impute(wide, draws=2), *law.sample(1)):
        assert filled[EMPTY].isna().all(axis=None)
        assert list(filled.f.cat.categories) == ["low", "high"]
        assert filled[["a", "b", "c"]].notna().all(axis=None)
    for frame in (law.mean(), law.sd(), law.quantile(0.9)):
        assert frame[EMPTY].isna().all(axis=None)
    assert "e nan" in repr(law)


def test_cells_that_come_later_are_told_and_not_read() -> None:
    _, wide, y = tables()
    with pytest.warns(ColumnWarning, match="has no cell"):
        model = HybridMixtureClassifier(random_state=0).fit(wide, y)
    before = model.predict_proba(wide)
    with pytest.warns(UserWarning, match="'e' had no observed cell at fit, .*its 60 observed"):
        np.testing.assert_array_equal(model.predict_proba(wide.assign(e=1.0)), before)


def test_of_an_array_it_stays_missing() -> None:
    X, _, y = tables()
    cells = np.column_stack([X[["a", "b"]].to_numpy(), np.full(60, np.nan)])
    with pytest.warns(ColumnWarning, match="has no cell"):
        model = HybridMixtureClassifier(random_state=0).fit(cells, y)
    filled = model.impute(cells)
    assert np.isnan(filled[:, 2]).all()
    assert not np.isnan(filled[:, :2]).any()


@pytest.mark.parametrize(
    "name",
    ["mixture", "kernel network", "exemplars"]
    + [pytest.param(n, marks=pytest.mark.slow) for n in ("RBF network", "sparse mixture")],
)
def test_a_test_that_one_class_had_is_no_sign_of_it(name: str) -> None:
    """Its values cannot be compared: whoever has it later is as probable as without it."""
    X, _, y = tables()
    tested = np.random.default_rng(0).normal(2, 1, len(X))
    one = X.assign(t=np.where(y == y[0], tested, np.nan))
    with pytest.warns(ColumnWarning, match="'t' has cells in rows of one class alone"):
        model = FAMILIES[name]().fit(one, y)
    p = model.predict_proba(X.assign(t=tested))
    np.testing.assert_allclose(p, FAMILIES[name]().fit(X, y).predict_proba(X), atol=1e-6)


def test_that_it_was_measured_counts_where_that_is_asked_for() -> None:
    X, _, y = tables()
    one = X.assign(t=np.where(y == y[0], 1.0, np.nan) + np.arange(len(X)))
    p = FAMILIES["informative"]().fit(one, y).predict_proba(one)
    assert (p[y == y[0]].argmax(axis=1) == p[y == y[0]].argmax(axis=1)[0]).all()
