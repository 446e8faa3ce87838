"""Cells revealed one at a time: by what they are worth, in a fixed order, at random.

Models are fitted to halves of at most 350 rows of three medical tables; the other rows, 120 at
most, start without a cell. ``acquire`` reveals in each row the cell that it finds best. The fixed
order is greedy: each next column is the one that gives the training rows the least log loss,
when they are predicted out of fold. Cells that the table does not have cannot be revealed.

Cells have prices, too (after Turney 1995: fees of the Ontario Health Insurance Plan in Canadian
dollars, each test by itself; 1 for a question). ``gain per price`` reveals the cell with the most
gain for its price. The second table has the log loss of rows when no more than so much was spent
on each: after the last cell that was within the budget.

``make bench ARGS='-k acquire'`` prints what is gained and the prices, and draws a picture a table.
``BAYESRBF_TABLES`` and ``BAYESRBF_METHODS`` choose (beginnings of names, with commas),
``BAYESRBF_SEEDS`` sets the number of splits (3). Pictures are written into the folder that
``BAYESRBF_RESULTS`` names, ``build`` without it; bands are standard errors between splits.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from bayesrbf import HybridMixtureClassifier, StackedClassifier
from bayesrbf.base.arrays import log_loss
from bench.figures import show
from bench.stack_tables import Split, split
from bench.test_stack import chosen
from tests.house import ROOT
from tests.measured import part

TABLES = ("heart_cleveland", "hepatitis", "pima_uci_missing")
SEEDS = int(os.environ.get("BAYESRBF_SEEDS", "3"))
PICTURES = Path(os.environ.get("BAYESRBF_RESULTS", ROOT / "build"))
TRAINING, TESTED, ORDERS, STEPS = 350, 120, 10, 8
BUDGETS = (5, 10, 20, 50, 100, 200, 400)
QUESTION = 1.0
STRESS_TEST = 87.30
PRICES = {
    "heart_cleveland": {
        "chol": 7.27,
        "fbs": 5.20,
        "restecg": 15.50,
        "thalach": 102.90,
        "exang": STRESS_TEST,
        "oldpeak": STRESS_TEST,
        "slope": STRESS_TEST,
        "ca": 100.90,
        "thal": 102.90,
    },
    "hepatitis": {
        "bilirubin": 7.27,
        "alk_phosphate": 7.27,
        "sgot": 7.27,
        "albumin": 7.27,
        "protime": 8.30,
    },
    "pima_uci_missing": {"glucose": 17.61, "insulin": 22.78},
}
"""Prices of cells that are no mere question."""
METHODS: dict[str, Callable[[], Any]] = {
    "mixture": partial(HybridMixtureClassifier, random_state=0),
    "stack, lite": partial(StackedClassifier, "lite", random_state=0),
    "mixture, likelihood": partial(HybridMixtureClassifier, objective="likelihood", random_state=0),
}
WORSE = {"mixture, likelihood"}
"""Where a column that is not normal misleads classifier and density alike."""
POLICIES = ("acquire", "gain per price", "fixed order", "random order")
Frame = pd.DataFrame
Next = Callable[[Frame, np.ndarray], np.ndarray]
"""Given rows and which cells may be revealed, the position of one in each row."""


def worth(model: Any, prices: np.ndarray, shown: Frame, hidden: np.ndarray) -> np.ndarray:
    """The cell with the largest gain for its price."""
    gain = model.acquire(shown)["gain"].to_numpy()
    return np.where(hidden, np.nan_to_num(gain, nan=-1.0) / prices, -np.inf).argmax(axis=1)


def in_order(ranks: np.ndarray, shown: Frame, hidden: np.ndarray) -> np.ndarray:
    """The first of an order, one for all rows or one a row."""
    return np.where(hidden, ranks, np.inf).argmin(axis=1)


def revealed(
    model: Any, X: Frame, y: np.ndarray, choose: Next, prices: np.ndarray, steps: int
) -> np.ndarray:
    """Log loss of every row with no cell, one, two, and what these cost: (2, step, row)."""
    known = X.notna().to_numpy()
    seen = np.zeros(known.shape, dtype=bool)
    found = []
    for step in range(steps + 1):
        shown = X.where(seen).astype(X.dtypes)
        found.append([log_loss(model.predict_proba(shown), y), seen @ prices])
        hidden = known & ~seen
        rows = np.flatnonzero(hidden.any(axis=1))
        if step < steps and rows.size:
            seen[rows, choose(shown, hidden)[rows]] = True
    return np.swapaxes(found, 0, 1)


def within(budget: float, told: np.ndarray) -> float:
    """Mean log loss after the last cell of each row that the budget allows."""
    loss, spent = told
    last = (spent <= budget).sum(axis=0) - 1
    return float(loss[last, np.arange(loss.shape[1])].mean())


def greedy(model: Any, X: Frame, y: np.ndarray, steps: int) -> np.ndarray:
    """Ranks of the columns, each the best next one for rows that were held out."""
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, y))
    fitted = [clone(model).fit(X.iloc[train], y[train]) for train, _ in folds]
    ranks = np.full(X.shape[1], np.inf)
    for step in range(min(steps, X.shape[1])):
        told = {}
        for column in np.flatnonzero(np.isinf(ranks)):
            told_here = np.isfinite(ranks) | (np.arange(X.shape[1]) == column)
            shown = X.where(np.tile(told_here, (len(X), 1))).astype(X.dtypes)
            p = np.vstack(
                [m.predict_proba(shown.iloc[t]) for m, (_, t) in zip(fitted, folds, strict=True)]
            )
            told[column] = log_loss(p, np.concatenate([y[test] for _, test in folds])).mean()
        ranks[min(told, key=told.__getitem__)] = step
    return np.where(np.isinf(ranks), steps, ranks)


def results(table: str, model: str, seed: int) -> list[dict[str, object]]:
    """Log losses of every policy on one split."""
    data: Split = split(table, seed, holes=False)
    X, y = data.X.iloc[:TRAINING], data.y[:TRAINING]
    X_new, y_new = data.X_new.iloc[:TESTED].reset_index(drop=True), data.y_new[:TESTED]
    prices = np.array([PRICES[table].get(column, QUESTION) for column in X.columns])
    even, every = np.ones(X.shape[1]), X.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = METHODS[model]().fit(X, y)
        ranks = np.tile(greedy(METHODS[model](), X, y, every), (len(X_new), 1))
        rng = np.random.default_rng(seed)
        orders = [partial(in_order, rng.random(X_new.shape)) for _ in range(ORDERS)]
        choices: dict[str, list[Next]] = {
            "acquire": [partial(worth, fitted, even)],
            "gain per price": [partial(worth, fitted, prices)],
            "fixed order": [partial(in_order, ranks)],
            "random order": orders,
        }
        told = {
            policy: [revealed(fitted, X_new, y_new, one, prices, every) for one in ways]
            for policy, ways in choices.items()
        }
    lines: list[dict[str, object]] = []
    for policy, ways in told.items():
        line = {"table": table, "model": model, "seed": seed, "policy": policy}
        for m in range(min(STEPS, every) + 1):
            lines.append(
                line | {"cells": m, "loss": float(np.mean([one[0, m].mean() for one in ways]))}
            )
        for budget in BUDGETS:
            spent = float(np.mean([within(budget, one) for one in ways]))
            lines.append(line | {"budget": budget, "loss": spent})
    return lines


def draw(found: Frame, name: str) -> Path:
    """Log loss of one table by cells revealed and by money spent, a row of panels a model."""
    models = found["model"].unique()
    figure, axes = plt.subplots(
        len(models), 2, figsize=(8, 3 * len(models)), layout="constrained", squeeze=False
    )
    for panels, model in zip(axes, models, strict=True):
        for ax, across in zip(panels, ("cells", "budget"), strict=True):
            for policy in POLICIES:
                here = found[(found["model"] == model) & (found["policy"] == policy)]
                losses = here.dropna(subset=across).groupby(across)["loss"]
                mean, error = losses.mean(), losses.sem().fillna(0.0)
                ax.plot(mean.index, mean, "o-", markersize=3, label=policy)
                ax.fill_between(mean.index, mean - error, mean + error, alpha=0.2)
        panels[0].set(title=model, xlabel="cells revealed", ylabel="log loss (nats)")
        panels[1].set(xlabel="dollars spent on a row, at most", xscale="log")
    axes[0, 0].legend()
    PICTURES.mkdir(parents=True, exist_ok=True)
    file = PICTURES / f"acquire_{name}.svg"
    figure.savefig(file)
    plt.close(figure)
    return file


def printed(found: Frame, across: str) -> Frame:
    """Mean log losses over the splits."""
    wide = found.dropna(subset=across).pivot_table(
        index=["model", "table", "policy"], columns=across, values="loss", sort=False
    )
    wide.columns = [f"{number:g}" for number in wide.columns]
    return wide.reset_index()


def ahead(found: Frame) -> Frame:
    """By how much ``acquire`` is below the others after so many cells, paired by split."""
    wide = found.dropna(subset="cells").pivot(
        index=["model", "table", "seed", "cells"], columns="policy", values="loss"
    )
    lines = []
    for other in ("fixed order", "random order"):
        less = (wide[other] - wide["acquire"]).unstack("cells")
        splits = less.groupby(["model", "table"], sort=False)
        told = splits.mean(), splits.sem()
        text = told[0].map("{:+.3f}".format) + " ± " + told[1].map("{:.3f}".format)
        text.columns = [f"{number:g}" for number in text.columns]
        text = text.reset_index()
        text.insert(2, "against", other)
        lines.append(text)
    return pd.concat(lines, ignore_index=True).drop(columns="0")


def test_cells_revealed_one_at_a_time(data_folder: object) -> None:
    lines: list[dict[str, object]] = []
    models, tables = chosen(METHODS, "BAYESRBF_METHODS"), chosen(TABLES, "BAYESRBF_TABLES")
    for method in models:
        for name in tables:
            for seed in range(SEEDS):
                key = {"table": name, "model": method, "seed": seed}
                told = part("acquire", key, lambda key=key: {"lines": json.dumps(results(**key))})  # type: ignore[misc]
                lines += json.loads(str(told["lines"]))
    found = pd.DataFrame(lines)
    pictures = [draw(of_table, name) for name, of_table in found.groupby("table", sort=False)]
    counts = {
        "tables": (len(tables), len(TABLES)),
        "classifiers": (len(models), len(METHODS)),
        "splits": (SEEDS, 3),
    }
    show("acquire/ahead", ahead(found), counts=counts)
    show("acquire/budget", printed(found, "budget"), counts=counts)
    prices = [
        {"table": name, "prices": ", ".join(f"{c} {p:g}" for c, p in PRICES[name].items())}
        for name in tables
    ]
    show("acquire/prices", prices, counts={"tables": counts["tables"]})
    print("Pictures: " + ", ".join(file.name for file in pictures))
    sound = found[~found["model"].isin(WORSE) & (found["cells"] > 0)]
    by_policy = sound.groupby(["model", "table", "policy"])["loss"].mean().unstack()
    assert by_policy.empty or (by_policy["acquire"] < by_policy["random order"]).all()
