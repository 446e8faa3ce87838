"""What every cell adds to the answer, against predictions with cells hidden one by one."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    RBFNetworkClassifier,
    SDGMClassifier,
    StackedClassifier,
)
from bayesrbf.table import encode, hide
from tests.cases import generative, some_quick
from tests.fit.class_tables import CLASSES, table

PRIOR = {"calm": 0.2, "gale": 0.5, "storm": 0.3}
MAKERS: dict[str, Callable[[], Any]] = {
    "mixture": lambda: generative(2, n_init=1, random_state=0),
    "mixture, draws": lambda: generative(n_init=1, random_state=0, inference="laplace"),
    "mixture, prevalence": lambda: generative(n_init=1, class_prior=PRIOR, random_state=0),
    "mixture, masks": lambda: generative(n_init=1, missingness="informative", random_state=0),
    "blend": lambda: HybridMixtureClassifier(
        covariance_type="full", shared_covariance=True, random_state=0
    ),
    "rbf": lambda: RBFNetworkClassifier(1, n_init=1, random_state=0),
    "kernel": lambda: KernelNetworkClassifier(n_basis=10, random_state=0),
    "sdgm": lambda: SDGMClassifier(1, n_init=1, companion_components=1, random_state=0),
    "exemplars": lambda: MedianLVQClassifier(2, sigma=0.5, random_state=0),
    "exemplars, margins": lambda: MedianLVQClassifier(
        2, objective="glvq", calibrate=True, random_state=0
    ),
    "stack": lambda: StackedClassifier(
        ["laplace", "normal"], cv=2, missingness="ignorable", random_state=0
    ),
    "stack, evidence": lambda: StackedClassifier(
        ["laplace", "normal"], cv=2, missingness="informative", random_state=0
    ),
}
QUICK = ("mixture, draws", "mixture, prevalence", "exemplars", "stack")
NAMES = some_quick(MAKERS, *QUICK, "mixture, masks", "stack, evidence")


@cache
def fitted(name: str) -> Any:
    frame, y = table()
    if name == "stack, evidence":  # of which most of one class alone have a cell
        frame["pressure"] = frame["pressure"].where(
            (y == CLASSES[0]) | (np.arange(len(y)) % 4 == 0)
        )
    return MAKERS[name]().fit(frame, y)


def new_rows() -> pd.DataFrame:
    """A complete row, one with a hole, one without a cell."""
    frame = table(n=30, missing=0.0, seed=1)[0].iloc[:3].copy()
    frame.iloc[1, 0] = np.nan
    frame.iloc[2] = [np.nan, np.nan, None]
    return frame.set_index(pd.Index(["whole", "holed", "empty"]))


def log_odds(model: Any, frame: pd.DataFrame) -> np.ndarray:
    p = model.predict_proba(frame)
    return np.log(p) - np.log(1 - p)


def log_odds_hidden(model: Any, frame: pd.DataFrame, hidden: list[str], known: bool) -> np.ndarray:
    """Log odds where the package hides cells, and knows or not that they were measured."""
    columns = model.columns_
    mask = np.isin(columns.names, hidden)[None] & frame.notna().to_numpy()
    rows = hide(encode(frame, columns), mask, columns, indicators=not known)
    p = np.exp(model.fitted_.class_log_probabilities(rows))
    return np.log(p) - np.log(1 - p)


def told_in_orders(value: Callable[[tuple[str, ...]], np.ndarray], observed: list[str]) -> Any:
    """What every player adds, averaged over all orders in which they may be revealed."""
    orders = list(permutations(observed))
    added = {name: np.zeros(3) for name in observed}
    for order in orders:
        for place, name in enumerate(order):
            step = value(order[: place + 1]) - value(order[:place])
            added[name] += step / len(orders)
    return added


@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_predictions_with_cells_hidden(name: str) -> None:
    model, frame = fitted(name), new_rows()
    told, evidence = model.explain(frame), model.fitted_.uses_indicators
    assert evidence == (name in ("mixture, masks", "stack, evidence"))
    blind = copy(model).assume_missingness("ignorable") if evidence else model
    np.testing.assert_allclose(told["log_odds"], log_odds(model, frame), atol=1e-9)
    added = told["shapley"].sum("column") + told["pattern_shapley"]
    np.testing.assert_allclose(added - (told["log_odds"] - told["base"]), 0, atol=1e-9)
    for row in frame.index:
        observed = frame.columns[frame.loc[row].notna()].tolist()
        hidden = [column for column in frame if column not in observed]
        assert np.isnan(told["shapley"].sel(obs=row, column=hidden)).all()
        cells = told.sel(obs=row)

        def value(shown: tuple[str, ...], row: str = row) -> np.ndarray:
            one = frame.loc[[row]].copy()
            absent = [column for column in frame if column not in shown]
            if "pattern" in shown or name == "stack":  # which counts who took a cell away
                return log_odds_hidden(model, one, absent, "pattern" in shown)[0]
            for column in absent:
                one[column] = None if column == "sky" else np.nan
            return log_odds(blind, one.astype({"wind": float, "pressure": float}))[0]

        players = [*observed, *(["pattern"] if evidence else [])]
        np.testing.assert_allclose(cells["base"], value(()), atol=1e-9)
        for player, expected in told_in_orders(value, players).items():
            rest = tuple(other for other in players if other != player)
            lost = value(tuple(players)) - value(rest)
            pattern = player == "pattern"
            for variable, figure in (("shapley", expected), ("left_out", lost)):
                found = cells[f"pattern_{variable}" if pattern else variable]
                found = found if pattern else found.sel(column=player)
                np.testing.assert_allclose(found, figure, atol=1e-9)


def planted(n: int, seed: int, measured: bool | None = None) -> tuple[pd.DataFrame, np.ndarray]:
    """Two tests of half of the ill and one in 25 of the well; of all rows, or none, if said."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.4
    frame = pd.DataFrame(rng.normal(size=(n, 6)), columns=["x", *NOISE, "g", "h"])
    frame["x"] += 1.5 * ill
    tested = rng.random(n) < np.where(ill, 0.5, 0.04)
    frame.loc[~(tested if measured is None else np.full(n, measured)), ["g", "h"]] = np.nan
    return frame, np.where(ill, "ill", "well")


NOISE = ["noise 1", "noise 2", "noise 3"]
PLANTED: dict[str, Callable[[], Any]] = {
    "stack": lambda: StackedClassifier(["laplace_evidence", "normal_blend"], cv=3, random_state=0),
    "mixture": lambda: HybridMixtureClassifier(missingness="informative", random_state=0),
}


@pytest.mark.parametrize("name", list(PLANTED))
def test_a_pattern_has_what_is_missing_and_noise_has_nothing(name: str) -> None:
    model = PLANTED[name]().fit(*planted(600, seed=2))
    for measured, label, words in ((False, "well", "not measured"), (True, "ill", "measured")):
        frame = planted(40, seed=3, measured=measured)[0]
        told = model.explain(frame)
        added = told["shapley"].sum("column") + told["pattern_shapley"]
        np.testing.assert_allclose(added, told["log_odds"] - told["base"], atol=1e-6)
        np.testing.assert_array_equal(told["pattern"], f"{words}: 'g' and 'h'")
        pattern = told["pattern_shapley"].sel(label=label)
        assert pattern.min() > 0.3
        noise = abs(told["shapley"].sel(column=NOISE, label=label)).mean()
        assert noise < min(0.1, pattern.mean() / 5)
    base = told["base"]
    blind = model.assume_missingness("ignorable").explain(frame)
    np.testing.assert_allclose(base, log_odds(model, frame * np.nan), atol=1e-9)
    for variable in ("pattern_shapley", "pattern_left_out", "pattern_standard_error"):
        np.testing.assert_array_equal(blind[variable], 0.0)
    np.testing.assert_array_equal(blind["pattern"], "")
    gaps = blind["shapley"].sum("column") - (blind["log_odds"] - blind["base"])
    np.testing.assert_allclose(gaps, 0, atol=1e-6)


def test_patterns_name_a_few_columns_that_are_notable() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(100, 8)), columns=list("abcdefgh"))
    for column, share in zip("abcdefg", (0.9, 0.9, 0.9, 0.9, 0.2, 0.2, 0.2), strict=True):
        frame.loc[rng.random(100) < share, column] = np.nan
    y = np.where(rng.random(100) < 0.5, "ill", "well")
    model = generative(n_init=1, missingness="informative", random_state=0).fit(frame, y)
    asked = pd.DataFrame(np.zeros((4, 8)), columns=list("abcdefgh"))
    asked.loc[1, list("abcd")] = asked.loc[2, list("abcdefg")] = asked.loc[3, "b"] = np.nan
    assert model.explain(asked)["pattern"].to_numpy().tolist() == [
        "measured: 'a', 'b', 'c' and 1 more",
        "not measured: 'a', 'b', 'c' and 1 more",
        "not measured: 'a', 'b', 'c' and 4 more",
        "not measured: 'b'; measured: 'a', 'c' and 'd'",
    ]
    often = generative(n_init=1, missingness="informative", random_state=0)
    often.fit(frame[list("efh")], y)
    assert often.explain(asked[list("efh")])["pattern"][0] == "measured: 'e' and 'f'"


def test_a_mask_is_no_part_of_its_cell() -> None:
    """What masks say of observed cells and of holes is the pattern's."""
    rng = np.random.default_rng(0)
    y = np.repeat(["ill", "well"], 60)
    X = rng.normal(size=(120, 2))
    X[:50, 0] = np.nan  # measured in the healthy
    X[61, 0] = np.nan
    model = generative(n_init=1, missingness="informative", random_state=0).fit(X, y)
    told = model.explain([[0.0, 0.0], [np.nan, 0.0]]).sel(label="well")
    assert told["pattern_shapley"].sel(obs=0) > 1.5
    assert abs(told["shapley"].sel(obs=0)).max() < 0.3
    np.testing.assert_allclose(told["base"], 0, atol=1e-6)
    assert np.isnan(told["shapley"].sel(obs=1, column="x0"))
    assert told["pattern_shapley"].sel(obs=1) < -2


def test_the_table_names_rows_columns_and_classes() -> None:
    model, frame = fitted("mixture"), new_rows()
    told = model.explain(frame)
    assert told["shapley"].dims == ("obs", "column", "label")
    assert told["obs"].to_numpy().tolist() == ["whole", "holed", "empty"]
    assert told["column"].to_numpy().tolist() == list(frame.columns)
    assert told["label"].to_numpy().tolist() == CLASSES.tolist()
    assert told["evaluations"].to_numpy().tolist() == [8, 4, 1]
    polars = model.explain(pl.from_pandas(frame))
    assert polars["obs"].to_numpy().tolist() == [0, 1, 2]
    np.testing.assert_array_equal(polars["shapley"], told["shapley"])
    twofold = frame.set_index([["a", "b", "b"], [1, 1, 2]])
    assert model.explain(twofold)["obs"].to_numpy().tolist() == [("a", 1), ("b", 1), ("b", 2)]


def test_orders_agree_with_all_coalitions() -> None:
    model, frame = fitted("kernel"), table(n=8, seed=2)[0]
    effort = {"exact": 1, "tolerance": 0.02, "max_pairs": 2000}
    exact, drawn = model.explain(frame), model.explain(frame, **effort)
    total = abs(drawn["log_odds"] - drawn["base"]).clip(1)
    assert (drawn["standard_error"] / total).max() <= 0.02
    assert (abs(drawn["shapley"] - exact["shapley"]) / total).max() <= 5 * 0.02
    gaps = drawn["shapley"].sum("column") - (drawn["log_odds"] - drawn["base"])
    np.testing.assert_allclose(gaps, 0, atol=1e-9)
    assert drawn.identical(model.explain(frame, **effort))
    assert not drawn.identical(model.explain(frame, **effort, random_state=5))
    with pytest.warns(UserWarning, match="2 pairs of orders leave a relative standard error of"):
        model.explain(frame, exact=1, tolerance=0.02, max_pairs=2)


@pytest.mark.parametrize(
    ("argument", "value", "words"),
    [
        ("exact", 0, "an integer from 1 to 20"),
        ("exact", 21, "an integer from 1 to 20"),
        ("tolerance", 0.0, "a finite positive number"),
        ("max_pairs", 1, "an integer of at least 2"),
    ],
)
def test_arguments_that_cannot_be_used_are_named(argument: str, value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=rf"explain\({argument}=...\) must be {words}; received"):
        fitted("mixture").explain(new_rows(), **{argument: value})


def test_exemplars_compared_whole_say_why_they_explain_no_cell() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), np.repeat([0, 1], 10)
    model = MedianLVQClassifier(1, metric="euclidean", sigma=1.0).fit(X, y)
    with pytest.raises(AttributeError) as refused:
        _ = model.explain
    assert re.search(
        "explain needs columns .* compares whole rows: use", str(refused.value.__cause__)
    )
    assert not hasattr(MedianLVQClassifier(objective="glvq", calibrate=False), "explain")


@pytest.mark.filterwarnings("ignore:.*received one class alone:UserWarning")
def test_a_class_that_is_impossible_has_finite_values() -> None:
    """One class alone has no odds; the bound stands in their place and no cell moves it."""
    X = np.random.default_rng(0).normal(size=(10, 2))
    told = generative(n_init=1).fit(X, np.zeros(10)).explain(X[:2])
    np.testing.assert_allclose(told["shapley"], 0, atol=1e-9)
