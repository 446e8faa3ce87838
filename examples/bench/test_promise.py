"""Probabilities of new rows that come as in training, where cells are missing by the class.

Tables are made, so that P(class | row, pattern of missing cells) is known. In the first, tests are
made for half (of three tests for .7) of the ill and one in 25 of the others. In the second, one of
six columns is missing a little more often in one class. The rival is a logistic regression with
missing indicators, which is the true form here; its penalty is chosen by cross-validation.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    RBFNetworkClassifier,
    StackedClassifier,
)
from bayesrbf.base.arrays import log_loss
from bayesrbf.fit.calibration import calibration_slope
from bench.figures import at_least, at_most, near_one, show
from bench.peers import chosen_logistic

SEEDS, FEWER, NEW_ROWS, ASKED = 20, 10, 4_000, 500
"""Fits of each table, those of each line, new rows, and those whose intervals are judged."""
TESTED = ((150, 2, 2), (150, 3, 2), (150, 2, 3), (600, 2, 2), (600, 3, 2))
"""Training rows, tests and classes."""
LINES = ((0.2, 0.10, 0.05), (0.2, 0.24, 0.05), (0.2, 0.05, 0.24), (0.28, 0.24, 0.0))
"""Share of events; how often a column is missing in events, and in other rows."""


@dataclass(frozen=True)
class Made:
    """Training rows, new rows, and the probabilities of the classes of these."""

    X: pd.DataFrame
    y: np.ndarray
    new: pd.DataFrame
    y_new: np.ndarray
    p: np.ndarray


def made(
    n_train: int,
    shares: np.ndarray,
    means: np.ndarray,
    missing: np.ndarray,
    rng: np.random.Generator,
) -> Made:
    """Normal columns around means by class and column, missing by class and column."""
    n = n_train + NEW_ROWS
    y = rng.choice(shares.size, size=n, p=shares)
    cells = rng.normal(size=(n, means.shape[1])) + means[y]
    holes = rng.random(cells.shape) < missing[y]
    of_cells = -np.square(cells[:, None] - means) / 2
    with np.errstate(divide="ignore"):
        measured, not_measured = np.log(1 - missing), np.log(missing)
    log_p = np.log(shares) + np.where(holes[:, None], not_measured, of_cells + measured).sum(axis=2)
    frame = pd.DataFrame(np.where(holes, np.nan, cells)).add_prefix("x")
    first, rest = slice(n_train), slice(n_train, None)
    return Made(
        frame[first], y[first], frame[rest], y[rest], np.exp(log_softmax(log_p, axis=1))[rest]
    )


def made_for_the_ill(n_train: int, tests: int, classes: int, seed: int) -> Made:
    """Six measurements, and tests that are made by the class."""
    level = np.arange(classes)[:, None]
    means = level * np.array([0.5, 0.5, 0.25, 0.0, 0.0, 0.0, *[0.6] * tests])
    of_class = np.array([0.04, 0.5 if tests == 2 else 0.7, 0.2])[:classes]
    missing = np.zeros(means.shape)
    missing[:, 6:] = 1 - of_class[:, None]
    shares = np.array([0.6, 0.4]) if classes == 2 else np.array([0.5, 0.3, 0.2])
    rng = np.random.default_rng([seed, n_train, tests, classes])
    return made(n_train, shares, means, missing, rng)


def one_column_missing(line: tuple[float, float, float], seed: int) -> Made:
    """Six columns, each .6 larger in events; the first is missing by the class."""
    events, of_events, of_others = line
    missing = np.zeros((2, 6))
    missing[:, 0] = of_others, of_events
    rng = np.random.default_rng([seed, LINES.index(line)])
    return made(
        500, np.array([1 - events, events]), np.array([[0.0], [0.6]]) * np.ones(6), missing, rng
    )


def logistic() -> ClassifierMixin:
    """A logistic regression with missing indicators."""
    return make_pipeline(
        SimpleImputer(add_indicator=True),
        StandardScaler(),
        chosen_logistic(),
    )


def judged(model: Any, of: Made) -> dict[str, float]:
    """Loss, slope, and observed over expected rows of the last class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows that training had few of, of changes to come
        p = model.fit(of.X, of.y).predict_proba(of.new)
    return {
        "loss": float(log_loss(p, of.y_new).mean()),
        "slope": calibration_slope(p, of.y_new)[0],
        "O:E": float((of.y_new == p.shape[1] - 1).mean() / p[:, -1].mean()),
    }


def test_tested_are_ill() -> None:
    rows, found = [], []
    for n_train, tests, classes in TESTED:
        stack, rival, inside, width = [], [], [], []
        for seed in range(SEEDS):
            of = made_for_the_ill(n_train, tests, classes, 1_000 + seed)
            model = StackedClassifier(random_state=0)
            stack.append(judged(model, of))
            rival.append(judged(logistic(), of))
            told = model.refine().uncertainty(of.new[:ASKED])
            lower, upper = told["lower"].to_numpy(), told["upper"].to_numpy()
            inside.append(((lower <= of.p[:ASKED]) & (of.p[:ASKED] <= upper))[:, -1].mean())
            width.append((upper - lower)[:, -1].mean())
        ours, theirs = pd.DataFrame(stack), pd.DataFrame(rival)
        more = ours["loss"] - theirs["loss"]
        row: dict[str, object] = {
            "table": f"{n_train} rows, {tests} tests, {classes} classes",
            "log loss": ours["loss"].mean(),
            "less logistic": more.mean(),
            "s.e.": more.std() / np.sqrt(SEEDS),
        }
        for figure in ("slope", "O:E"):
            row[figure] = ours[figure].mean()
            row[f"{figure}, logistic"] = theirs[figure].mean()
        row |= {"inside 90 %": np.mean(inside), "width": np.mean(width)}
        rows.append(row)
        found.append((ours, theirs, pd.Series(inside)))
        print(row, flush=True)
    show("missing/tested", pd.DataFrame(rows).set_index("table"))
    for ours, theirs, held in found:
        at_most(ours["loss"] - theirs["loss"], 0.01)
        near_one(ours["slope"], max(0.1, abs(theirs["slope"].mean() - 1)))
        near_one(ours["O:E"], 0.07)
        at_least(held, 0.85)


def test_observed_over_expected() -> None:
    families = {
        "stack": partial(StackedClassifier, random_state=0),
        "mixture": partial(HybridMixtureClassifier, random_state=0),
        "kernel network": partial(KernelNetworkClassifier, random_state=0),
        "RBF network": partial(RBFNetworkClassifier, random_state=0),
    }
    rows, of_lines = [], []
    for line in LINES:
        events, of_events, of_others = line
        row: dict[str, object] = {
            "events": events,
            "missing in events": of_events,
            "in others": of_others,
        }
        tables = [one_column_missing(line, 1_000 + seed) for seed in range(FEWER)]
        found = pd.DataFrame(
            {
                name: [judged(make(), of)["O:E"] for of in tables]
                for name, make in {**families, "logistic": logistic}.items()
            }
        )
        rows.append(row | found.mean().to_dict())
        of_lines.append(found[[*families]])
        print(rows[-1], flush=True)
    show("missing/observed_over_expected", pd.DataFrame(rows))
    for found in of_lines:
        near_one(found, 0.07)
