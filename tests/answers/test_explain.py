"""What every cell adds to the answer, against predictions with cells hidden one by one."""

from __future__ import annotations

from collections.abc import Callable
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
from tests.cases import generative, some_quick
from tests.fit.class_tables import CLASSES, table

PRIOR = {"calm": 0.2, "gale": 0.5, "storm": 0.3}
MAKERS: dict[str, Callable[[], Any]] = {
    "mixture": lambda: generative(2, n_init=1, random_state=0),
    "mixture, draws": lambda: generative(n_init=1, random_state=0, inference="laplace"),
    "mixture, prevalence": lambda: generative(n_init=1, class_prior=PRIOR, random_state=0),
    "mixture, masks": lambda: generative(n_init=1, missingness="informative", random_state=0),
    "blend": lambda: HybridMixtureClassifier(covariance_type="full", tied=True, random_state=0),
    "rbf": lambda: RBFNetworkClassifier(1, n_init=1, random_state=0),
    "kernel": lambda: KernelNetworkClassifier(n_basis=10, random_state=0),
    "sdgm": lambda: SDGMClassifier(1, n_init=1, companion_components=1, random_state=0),
    "exemplars": lambda: MedianLVQClassifier(2, sigma=0.5, random_state=0),
    "exemplars, margins": lambda: MedianLVQClassifier(
        2, objective="glvq", calibrate=True, random_state=0
    ),
    "stack": lambda: StackedClassifier(["laplace", "normal"], cv=2, random_state=0),
}
NAMES = some_quick(MAKERS, "mixture, draws", "mixture, prevalence", "exemplars", "stack")


@cache
def fitted(name: str) -> Any:
    frame, y = table()
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


def told_in_orders(value: Callable[[tuple[str, ...]], np.ndarray], observed: list[str]) -> Any:
    """What every cell adds, averaged over all orders in which cells may be told."""
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
    told = model.explain(frame)
    np.testing.assert_allclose(told["log_odds"], log_odds(model, frame), atol=1e-9)
    gaps = told["shapley"].sum("column") - (told["log_odds"] - told["base"])
    np.testing.assert_allclose(gaps, 0, atol=1e-9)
    for row in frame.index:
        observed = frame.columns[frame.loc[row].notna()].tolist()
        hidden = [column for column in frame if column not in observed]
        assert np.isnan(told["shapley"].sel(obs=row, column=hidden)).all()
        if "masks" in name or name == "stack":
            continue  # a cell that a user takes away is seen as missing, which hiding is not
        cells = told.sel(obs=row)

        def value(shown: tuple[str, ...], row: str = row) -> np.ndarray:
            one = frame.loc[[row]].copy()
            for column in frame:
                if column not in shown:
                    one[column] = None if column == "sky" else np.nan
            return log_odds(model, one.astype({"wind": float, "pressure": float}))[0]

        np.testing.assert_allclose(cells["base"], value(()), atol=1e-9)
        for column, expected in told_in_orders(value, observed).items():
            np.testing.assert_allclose(cells["shapley"].sel(column=column), expected, atol=1e-9)
            rest = tuple(other for other in observed if other != column)
            lost = value(tuple(observed)) - value(rest)
            np.testing.assert_allclose(cells["left_out"].sel(column=column), lost, atol=1e-9)


def test_a_hidden_cell_hides_its_mask() -> None:
    """What a mask says of an observed cell is the cell's; what it says of a hole is in the base."""
    rng = np.random.default_rng(0)
    y = np.repeat(["ill", "well"], 60)
    X = rng.normal(size=(120, 2))
    X[:50, 0] = np.nan  # measured in the healthy
    X[61, 0] = np.nan
    model = generative(n_init=1, missingness="informative", random_state=0).fit(X, y)
    told = model.explain([[0.0, 0.0], [np.nan, 0.0]]).sel(label="well")
    assert told["shapley"].sel(obs=0, column="x0") > 1.5  # that it was measured counts as its own
    assert told["base"].sel(obs=0) == pytest.approx(0, abs=1e-6)
    assert np.isnan(told["shapley"].sel(obs=1, column="x0"))
    assert told["base"].sel(obs=1) < -2  # what a hole says is there before any cell is told


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
    with pytest.raises(AttributeError, match=r"explain needs columns .* compares whole rows: use"):
        _ = model.explain
    assert not hasattr(MedianLVQClassifier(objective="glvq", calibrate=False), "explain")


@pytest.mark.filterwarnings("ignore:.*received one class alone:UserWarning")
def test_a_class_that_is_impossible_has_finite_values() -> None:
    """One class alone has no odds; the bound stands in their place and no cell moves it."""
    X = np.random.default_rng(0).normal(size=(10, 2))
    told = generative(n_init=1).fit(X, np.zeros(10)).explain(X[:2])
    np.testing.assert_allclose(told["shapley"], 0, atol=1e-9)
