"""What an explanation costs, and what an explainer with a background of other rows says instead.

Ten complete wines of twelve columns. The comparison with ``shap`` (100 background rows,
permutations by its defaults) is left out where that is not installed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    RBFNetworkClassifier,
    SDGMClassifier,
    StackedClassifier,
)
from bayesrbf.base.arrays import to_log_odds
from bench.figures import show
from bench.test_stack import chosen
from tests.measured import COST

KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        HybridMixtureClassifier,
        RBFNetworkClassifier,
        MedianLVQClassifier,
        KernelNetworkClassifier,
        StackedClassifier,
        SDGMClassifier,
    )
}
PER_ROW = 8
"""Most times of a predicted row that one of the 2^12 rows with hidden cells may take."""


def seconds(call: Callable[[], object], repeats: int) -> float:
    """Least CPU seconds of some runs, which hold where other work goes on."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def with_background(model: Any, X: np.ndarray, rows: np.ndarray) -> tuple[Any, float]:
    """Explanation by ``shap`` of the same log odds, and its time."""
    import shap

    background = shap.maskers.Independent(X[np.random.default_rng(0).permutation(len(X))[:100]])
    explainer = shap.PermutationExplainer(
        lambda cells: to_log_odds(model.predict_log_proba(cells)), background, seed=0
    )
    start = time.process_time()
    return explainer(rows, silent=True), time.process_time() - start


def figures(name: str) -> dict[str, object]:
    """Times of one classifier, as multiples of its predictions of the same rows."""
    X, y = load_wine(return_X_y=True)
    X, rows = X[:, :12], X[::18, :12][:10]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KINDS[name](random_state=0).fit(X, y)
        model.explain(rows[:1], exact=1, max_pairs=2)
        predicted = seconds(lambda: model.predict_proba(rows), 5)
        start = time.process_time()
        told = model.explain(rows)
        exact = time.process_time() - start
        orders = seconds(lambda: model.explain(rows, exact=1), 1)
        found: dict[str, object] = {
            "classifier": name,
            "predict_proba (ms)": 1000 * predicted,
            "all coalitions (s)": exact,
            "multiple": exact / predicted,
            "orders (s)": orders,
            "multiple of orders": orders / predicted,
        }
        if find_spec("shap"):
            theirs, lasted = with_background(model, X, rows)
            others, ours = np.asarray(theirs.values), told["shapley"].to_numpy()
            whole = to_log_odds(model.predict_log_proba(rows)) - theirs.base_values
            left = told["log_odds"] - told["base"] - told["shapley"].sum("column")
            found |= {
                "background (s)": lasted,
                "sum, off by": float(abs(left).max()),
                "background's sum, off by": float(np.abs(whole - others.sum(axis=1)).max()),
                "correlation": np.corrcoef(ours.ravel(), others.ravel())[0, 1],
                "other sign": np.mean(ours * others < 0),
            }
    return found


def test_cost_of_an_explanation() -> None:
    results = pd.DataFrame(figures(name) for name in chosen(KINDS, "BAYESRBF_METHODS"))
    show("explain/cost", results, 1, {"classifiers": (len(results), len(KINDS))}, COST)
    assert (results["multiple"] <= 2**12 * PER_ROW).all()
    assert (results["orders (s)"] < results["all coalitions (s)"]).all()


def test_two_columns_of_which_one_counts() -> None:
    """Told alone, the other column is nearly as good; a formula does not use it."""
    rng = np.random.default_rng(0)
    first = rng.normal(size=2000)
    X = np.column_stack([first, 0.95 * first + np.sqrt(1 - 0.95**2) * rng.normal(size=2000)])
    y = (rng.random(2000) < 1 / (1 + np.exp(-3 * first))).astype(int)
    model = HybridMixtureClassifier(covariance_type="full", tied=True, random_state=0).fit(X, y)
    rows = np.array([[1.5, 1.4], [1.5, -1.5]])
    told = model.explain(rows).sel(label=1)

    def without(row: np.ndarray, shown: list[bool]) -> float:
        filled = np.where(shown, row, X)
        return float(to_log_odds(model.predict_log_proba(filled))[:, 1].mean())

    lines = []
    for place, row in enumerate(rows):
        none, one, other, both = (
            without(row, shown)
            for shown in ([False, False], [True, False], [False, True], [True, True])
        )
        lines.append(
            {
                "row": tuple(row.tolist()),
                "shapley 1": float(told["shapley"][place, 0]),
                "shapley 2": float(told["shapley"][place, 1]),
                "left out 1": float(told["left_out"][place, 0]),
                "left out 2": float(told["left_out"][place, 1]),
                "background 1": (one - none + both - other) / 2,
                "background 2": (other - none + both - one) / 2,
            }
        )
    results = pd.DataFrame(lines)
    show("explain/two_columns", results, digits=2)
    assert results["shapley 2"][0] > 1
    assert abs(results["background 2"]).max() < 0.3
