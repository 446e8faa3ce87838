"""Answers about rows as frames: one line for every row, whatever else they are about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesrbf import HybridMixtureClassifier, RBFNetworkRegressor, acquire_labels
from tests.cases import generative

COSTS = {"sick": {"treat": 1.0, "wait": 20.0}, "well": {"treat": 2.0, "wait": 0.0}}
QUESTIONS: dict[str, Callable[[Any, pd.DataFrame], xr.Dataset]] = {
    "uncertainty": lambda model, X: model.uncertainty(X),
    "surprise": lambda model, X: model.surprise(X),
    "explain": lambda model, X: model.explain(X),
    "acquire_cells": lambda model, X: model.acquire_cells(X),
    "acquire_labels": lambda model, X: acquire_labels(model, X),
    "decide": lambda model, X: model.decide(X, COSTS, reject=0.5),
}


@pytest.fixture(scope="module")
def fitted() -> tuple[HybridMixtureClassifier, pd.DataFrame]:
    rng = np.random.default_rng(0)
    sick = rng.random(60) < 0.5
    X = pd.DataFrame({"age": rng.normal(50 + 9 * sick, 5), "sex": rng.choice(["f", "m"], 60)})
    X.loc[::7, "age"] = np.nan
    y = np.where(sick, "sick", "well")
    model = generative(random_state=0).fit(X, y).refine("laplace", draws=30, chains=2)
    return model, X.set_index(pd.Index([f"P{i}" for i in range(60)])).head(9)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_row_is_a_line(question: str, fitted: Any) -> None:
    told = QUESTIONS[question](*fitted)
    frame = told.to_dataframe()
    assert frame.index.tolist() == fitted[1].index.tolist()
    assert frame.columns.is_unique
    for name, variable in told.data_vars.items():
        for row in ("P2", "P7"):
            of_row = [frame.at[row, c] for c in frame if c == name or c.startswith(f"{name}[")]
            cells = np.ravel(variable.sel(obs=row).to_numpy()).tolist()
            assert pd.Series(of_row, dtype=object).equals(pd.Series(cells, dtype=object))


def test_columns_are_named_by_what_they_are_about(fitted: Any) -> None:
    model, X = fitted
    told = model.uncertainty(X)
    frame = told.to_dataframe()
    assert list(frame)[:2] == ["probability[sick]", "probability[well]"]
    np.testing.assert_array_equal(frame["novelty"], told["novelty"])
    one = told.sel(label="well")[["probability", "novelty"]].to_dataframe()
    assert list(one) == ["probability", "novelty"]
    np.testing.assert_allclose(one["probability"], model.predict_proba(X)[:, 1], rtol=1e-12)
    assert "shapley[age, sick]" in model.explain(X).to_dataframe()
    assert len(told.isel(obs=slice(0)).to_dataframe()) == 0
    long = told[["probability"]].to_dataframe(dim_order=["obs", "label"])
    assert long.index.names == ["obs", "label"]


def test_numbers_have_an_uncertainty_too() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    X.iloc[:6, 1] = np.nan
    y = X["a"].to_numpy() ** 2 + rng.normal(0, 0.2, 60)
    model = RBFNetworkRegressor(2, n_init=1, cv=3, max_iter=200, random_state=0).fit(X, y)
    at_point = model.uncertainty(X, prob=0.5)
    told = model.refine("nuts", draws=40, chains=2, tune=100).uncertainty(X, prob=0.5)
    for one, drawn in ((at_point, False), (told, True)):
        assert one.attrs["point_estimate"] != drawn
        assert one.to_dataframe().shape == (60, 7)
        assert ((one["lower"] < one["mean"]) & (one["mean"] < one["upper"])).all()
        assert (one["sd_of_mean"] < one["sd"]).all()
    np.testing.assert_array_equal(
        np.stack(model.predict(X, return_std=True)), told[["mean", "sd"]].to_array()
    )
    ends = np.stack([told["lower"], told["upper"]], axis=1)
    np.testing.assert_array_equal(model.predict_interval(X, prob=0.5), ends)
    np.testing.assert_array_equal(told["novelty"], model.novelty(X))
    np.testing.assert_array_equal(told["log_density"], model.score_samples(X))
    assert (at_point["sd_of_mean"][6:] < 1e-12).all()
    assert (at_point["sd_of_mean"][:6] > 1e-6).all()
    assert (told["sd_of_mean"] > 0).all()
    with pytest.raises(ValueError, match="must be a probability"):
        model.uncertainty(X, prob=1.0)
