"""Cells revealed one at a time: by what they are worth, in a fixed order, at random.

Models are fitted to halves of at most 350 rows of three medical tables; the other rows, 120 at
most, start without a cell. ``acquire`` reveals in each row the cell that it finds best. The fixed
order is greedy: each next column is the one that gives the training rows the least log loss,
when they are predicted out of fold. Cells that the table does not have cannot be revealed.
``BAYESRBF_TABLES`` and ``BAYESRBF_METHODS`` choose (beginnings of names, with commas),
``BAYESRBF_SEEDS`` sets the number of splits (3). The picture is ``build/acquire.svg``, or the file
that ``BAYESRBF_RESULTS`` names.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from bayesrbf import HybridMixtureClassifier, StackedClassifier
from bayesrbf.posterior.scores import log_loss
from tests.benchmarks.stack_tables import Split, split
from tests.benchmarks.test_stack import chosen
from tests.house import ROOT

TABLES = ("heart_cleveland", "hepatitis", "pima_uci_missing")
SEEDS = int(os.environ.get("BAYESRBF_SEEDS", "3"))
PICTURE = Path(os.environ.get("BAYESRBF_RESULTS", ROOT / "build" / "acquire.svg"))
TRAINING, TESTED, ORDERS, STEPS = 350, 120, 10, 8
METHODS: dict[str, Callable[[], Any]] = {
    "mixture": partial(HybridMixtureClassifier, random_state=0),
    "stack, lite": partial(StackedClassifier, "lite", random_state=0),
    "mixture, likelihood": partial(HybridMixtureClassifier, objective="likelihood", random_state=0),
}
WORSE = {"mixture, likelihood"}
"""Where a column that is not normal misleads classifier and density alike."""
POLICIES = ("acquire", "fixed order", "random order")
Frame = pd.DataFrame
Next = Callable[[Frame, np.ndarray], np.ndarray]
"""Given rows and which cells may be revealed, the position of one in each row."""


def worth(model: Any, shown: Frame, hidden: np.ndarray) -> np.ndarray:
    """The cell with the largest gain."""
    gain = model.acquire(shown)["gain"].to_numpy()
    return np.where(hidden, np.nan_to_num(gain, nan=-1.0), -np.inf).argmax(axis=1)


def in_order(ranks: np.ndarray, shown: Frame, hidden: np.ndarray) -> np.ndarray:
    """The first of an order, one for all rows or one a row."""
    return np.where(hidden, ranks, np.inf).argmin(axis=1)


def losses(model: Any, X: Frame, y: np.ndarray, choose: Next, steps: int) -> list[float]:
    """Log loss with no cell, with one, with two."""
    known = X.notna().to_numpy()
    revealed = np.zeros(known.shape, dtype=bool)
    found = []
    for step in range(steps + 1):
        shown = X.where(revealed).astype(X.dtypes)
        found.append(float(log_loss(model.predict_proba(shown), y).mean()))
        hidden = known & ~revealed
        rows = np.flatnonzero(hidden.any(axis=1))
        if step < steps and rows.size:
            revealed[rows, choose(shown, hidden)[rows]] = True
    return found


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


def results(name: str, method: str, seed: int) -> list[dict[str, object]]:
    """Log losses of every policy on one split."""
    data: Split = split(name, seed, holes=False)
    X, y = data.X.iloc[:TRAINING], data.y[:TRAINING]
    X_new, y_new = data.X_new.iloc[:TESTED].reset_index(drop=True), data.y_new[:TESTED]
    steps = min(STEPS, X.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = METHODS[method]().fit(X, y)
        ranks = np.tile(greedy(METHODS[method](), X, y, steps), (len(X_new), 1))
        rng = np.random.default_rng(seed)
        by_policy: dict[str, Sequence[float]] = {
            "acquire": losses(model, X_new, y_new, partial(worth, model), steps),
            "fixed order": losses(model, X_new, y_new, partial(in_order, ranks), steps),
            "random order": np.mean(
                [
                    losses(model, X_new, y_new, partial(in_order, rng.random(X_new.shape)), steps)
                    for _ in range(ORDERS)
                ],
                axis=0,
            ).tolist(),
        }
    return [
        {"table": name, "model": method, "seed": seed, "policy": policy, "cells": m, "loss": loss}
        for policy, found in by_policy.items()
        for m, loss in enumerate(found)
    ]


def draw(means: Frame) -> None:
    """Log loss by cells revealed, a panel a table and model."""
    panels = list(means.groupby(["model", "table"], sort=False))
    figure, axes = plt.subplots(
        1, len(panels), figsize=(3 * len(panels), 3), layout="constrained", squeeze=False
    )
    for ax, ((model, name), part) in zip(axes[0], panels, strict=True):
        for policy in POLICIES:
            line = part[part["policy"] == policy]
            ax.plot(line["cells"], line["loss"], "o-", markersize=3, label=policy)
        ax.set(title=f"{name}\n{model}", xlabel="cells revealed", ylabel="log loss (nats)")
    axes[0, 0].legend()
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE)
    plt.close(figure)


def test_cells_revealed_one_at_a_time(
    data_folder: object, capsys: pytest.CaptureFixture[str]
) -> None:
    found = pd.DataFrame(
        line
        for method in chosen(METHODS, "BAYESRBF_METHODS")
        for name in chosen(TABLES, "BAYESRBF_TABLES")
        for seed in range(SEEDS)
        for line in results(name, method, seed)
    )
    keys = ["model", "table", "policy", "cells"]
    means = found.groupby(keys, sort=False)["loss"].mean().reset_index()
    wide = means.pivot_table(
        index=["model", "table", "policy"], columns="cells", values="loss", sort=False
    )
    draw(means)
    with capsys.disabled():
        print(f"\n\n## Log loss after so many cells, {SEEDS} splits\n")
        print(wide.round(3).reset_index().to_markdown(index=False))
        print(f"\nPicture: {PICTURE.name}")
    held = found[~found["model"].isin(WORSE)].groupby("policy")["loss"].mean()
    assert held.empty or held["acquire"] < held["random order"]
