"""Rates of KernelNetworkClassifier: what they are, what must not change them, and their file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import bayesrbf
from bayesrbf import KernelNetworkClassifier
from bayesrbf.families.kernel_network import classifier
from bayesrbf.families.kernel_network.fitted import fit_kernel_network
from bayesrbf.fit.held_out import split_rows
from tests.cases import some_quick
from tests.fit.class_tables import table

RATES = ("fixed", "evidence", "leave-one-out")
LEARNED = RATES[1:]

every_way = pytest.mark.parametrize("rates", some_quick(RATES, "fixed", "evidence"))
every_learned = pytest.mark.parametrize("rates", some_quick(LEARNED, "evidence"))


def model(rates: str, **settings: object) -> KernelNetworkClassifier:
    return KernelNetworkClassifier(rates=rates, **({"random_state": 0} | settings))


@every_way
def test_rates_are_named_by_column_and_move_with_the_scale(rates: str) -> None:
    X, y = table(60)
    whole = model(rates).fit(X, y)
    assert whole.rates_.index.tolist() == ["wind", "pressure", "sky"]
    assert whole.rates_.index.name == "column"
    assert (whole.rates_ > 0).all()
    short = model(rates, scale=1 / 3).fit(X, y)
    pd.testing.assert_series_equal(short.rates_, 3 * whole.rates_)
    np.testing.assert_allclose(short.relevance_, whole.relevance_)
    gram = whole.transform(X) @ whole.transform(X).T
    assert np.abs(short.transform(X) @ short.transform(X).T - gram).max() > 0.1


def test_there_are_no_rates_before_a_fit() -> None:
    with pytest.raises(NotFittedError):
        _ = model("evidence").rates_


def test_masks_of_missing_cells_have_rates() -> None:
    X, y = table(60)
    informative = model("evidence", missingness="informative").fit(X, y)
    assert informative.rates_.size == 3 + X.isna().any().sum()


@every_learned
def test_learned_rates_are_neither_fixed_ones_nor_of_units_or_order(rates: str) -> None:
    X, y = table(60)
    found = model(rates).fit(X, y).rates_
    assert np.abs(np.log(found / model("fixed").fit(X, y).rates_)).max() > 0.1
    other = X.assign(wind=X["wind"] * 1e4 + 3)
    pd.testing.assert_series_equal(model(rates).fit(other, y).rates_, found, rtol=1e-5)
    order = np.random.default_rng(1).permutation(len(X))
    shuffled = model(rates).fit(X.iloc[order], y[order]).rates_
    pd.testing.assert_series_equal(shuffled, found, rtol=1e-10)
    turned = model(rates).fit(X[["sky", "pressure", "wind"]], y).rates_
    pd.testing.assert_series_equal(turned[found.index], found, rtol=1e-5)


@every_learned
def test_weight_two_is_the_row_twice(rates: str) -> None:
    X, y = table(60)
    weights, twice = np.r_[2.0, 0.0, np.ones(58)], np.r_[0, 0, np.arange(2, 60)]
    weighted = model(rates).fit(X, y, weights).rates_
    pd.testing.assert_series_equal(
        weighted, model(rates).fit(X.iloc[twice], y[twice]).rates_, rtol=1e-8
    )


@every_learned
def test_where_cells_are_missing_a_column_that_tells_still_leads(rates: str) -> None:
    """A class in the middle of one column, between another."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.7, 1.7, (200, 4))
    y = np.abs(X[:, 2]) < 0.85
    X[rng.random(X.shape) < 0.15] = np.nan
    X_new = rng.uniform(-1.7, 1.7, (300, 4))
    y_new = np.abs(X_new[:, 2]) < 0.85
    found, fixed = (model(way, relevance=0.0).fit(X, y) for way in (rates, "fixed"))
    assert found.rates_.idxmax() == "x2"
    assert found.rates_["x2"] > 2 * found.rates_.drop("x2").max()
    assert found.score(X_new, y_new) > fixed.score(X_new, y_new)


@every_learned
def test_rates_are_learned_inside_each_fold(rates: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fold that saw the labels of its rows held out would have other rates."""
    X, y = table(60)
    turned = y.copy()
    turned[40:] = np.roll(y[40:], 1)
    folds = [(np.arange(40), np.arange(40, 60))]
    networks, held_out = [], []

    def spied(*args: Any) -> Any:
        networks.append(fit_kernel_network(*args))
        return networks[-1]

    monkeypatch.setattr(classifier, "fit_kernel_network", spied)
    for labels in (y, turned):
        fitted = model(rates, calibrate=True, cv=folds).fit(X, labels)
        (_, (network, _)) = networks  # to all rows, and to those of the fold
        networks.clear()
        _, test = next(split_rows(folds, fitted.rows_, fitted.row_indices_, fitted.seed_))
        held_out.append(network.class_log_joint(test))
        assert fitted.temperature_ != 1
        pd.testing.assert_series_equal(fitted.rates_, model(rates).fit(X, labels).rates_)
        networks.clear()
    assert (turned != y).any()
    np.testing.assert_allclose(np.sort(held_out[0], axis=0), np.sort(held_out[1], axis=0))


@every_learned
def test_what_is_saved_has_the_same_rates(rates: str, tmp_path: Path) -> None:
    X, y = table(60)
    fitted = model(rates, scale=0.5).fit(X, y)
    fitted.save(tmp_path / "model.safetensors")
    loaded = bayesrbf.load(tmp_path / "model.safetensors")
    pd.testing.assert_series_equal(loaded.rates_, fitted.rates_)
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert loaded.get_params() == fitted.get_params()


@every_learned
@pytest.mark.filterwarnings("ignore:.*received one class alone:UserWarning")
def test_one_class_has_the_fixed_rates(rates: str) -> None:
    X, _ = table(40)
    alone = np.full(40, "calm")
    pd.testing.assert_series_equal(
        model(rates).fit(X, alone).rates_, model("fixed").fit(X, alone).rates_
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rates": "ard"}, "must be 'fixed' or 'evidence' or 'leave-one-out'; received 'ard'"),
        ({"scale": 0.0}, "must be a finite positive number"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments: dict[str, object], message: str) -> None:
    X, y = table(40)
    with pytest.raises(ValueError, match=message):
        KernelNetworkClassifier(**arguments).fit(X, y)
