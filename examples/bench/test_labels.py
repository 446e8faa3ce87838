"""Rows without a label, and a prevalence that has changed.

Nine labels in ten are hidden, and the rows without a label are dropped or have a weight: the log
loss of new rows says what they are worth. Then new rows come from a population whose frequent
classes have become rare: ``adapt_prior`` sees them without labels.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    RBFNetworkClassifier,
    StackedClassifier,
)
from bayesrbf.base.arrays import log_loss
from bayesrbf.datasets import load_table
from bench.figures import Row, at_most, show
from bench.tables import Split, split
from tests.cases import generative

TABLES: Final = (
    "heart_cleveland",
    "credit_approval",
    "house_votes84",
    "pima_uci_missing",
    "vehicle",
    "raetsch_german",
    "breast_cancer",
    "raetsch_image",
)
KNOWN: Final = 0.1
"""Share of the rows of a class that keep their label: at least five of them."""
CLASSIFIERS: Final[dict[str, Callable[..., Any]]] = {
    "mixture": HybridMixtureClassifier,
    "mixture, likelihood": generative,
    "RBF network": RBFNetworkClassifier,
    "kernel network": KernelNetworkClassifier,
    "stack": StackedClassifier,
}
WEIGHTS: Final = ("dropped", "1 / n_columns", "full")
"""What rows without a label count; the second only where a classifier can be told."""
SHIFTED: Final = (
    "breast_cancer",
    "heart_cleveland",
    "credit_approval",
    "pima_uci_missing",
    "vehicle",
)
N_SPLITS: Final = 5
ODDS: Final = 6.0
"""How many times less of the most frequent class a shifted table shows than of the rarest."""


def hidden(y: np.ndarray) -> np.ndarray:
    """Labels of which nine in ten are NaN."""
    rng = np.random.default_rng(0)
    left = np.full(y.size, np.nan)
    for label in np.unique(y):
        own = rng.permutation(np.flatnonzero(y == label))
        left[own[: max(5, round(KNOWN * own.size))]] = label
    return left


def losses(data: Split, make: Callable[..., Any]) -> Row:
    """Log loss on new rows by the weight of the rows without a label."""
    y = hidden(data.y)
    known = ~np.isnan(y)
    models = {"dropped": make(random_state=0).fit(data.X[known], y[known])}
    if "unlabelled_weight" in make().get_params():
        for label, weight in {"1 / n_columns": 1 / data.X.shape[1], "full": 1.0}.items():
            models[label] = make(unlabelled_weight=weight, random_state=0).fit(data.X, y)
    else:
        models["full"] = make(random_state=0).fit(data.X, y)
    return {
        label: float(log_loss(model.predict_proba(data.X_new), data.y_new).mean())
        for label, model in models.items()
    }


def of_default(make: Callable[..., Any]) -> str:
    """How a classifier weighs rows without a label if nothing else is asked for."""
    return "1 / n_columns" if make().get_params().get("unlabelled_weight", 1) is None else "full"


@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
def test_unlabelled_rows(holes: bool, data_folder: object) -> None:
    found = []
    for table in TABLES:
        data = split(table, 0, holes)
        for name, make in CLASSIFIERS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append({"classifier": name, "table": table, **losses(data, make)})
        print(table, flush=True)
    rows = pd.DataFrame(found).set_index(["classifier", "table"])[[*WEIGHTS]]
    told = rows.groupby("classifier", sort=False).mean()
    for name, make in CLASSIFIERS.items():
        gain = rows.loc[name, "dropped"] - rows.loc[name, of_default(make)]
        told.loc[name, ["gain of the default", "se"]] = gain.mean(), gain.sem()
    show(f"labels/unlabelled_{'with_holes' if holes else 'complete'}", told)


def shifted(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows of a population whose frequent classes have become rare."""
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    rank = (-counts).argsort(kind="stable").argsort(kind="stable")
    chances = ODDS ** (rank[codes] / (classes.size - 1) - 1)
    return np.flatnonzero(rng.random(y.size) < chances)


def of_shifted(name: str, seed: int) -> Row:
    """Log loss on a shifted half: at the trained, the estimated and the true prevalence."""
    table = load_table(name)
    X, X_new, y, y_new = train_test_split(
        table.X, table.y, test_size=0.5, stratify=table.y, random_state=seed
    )
    rows = shifted(y_new, np.random.default_rng(seed))
    X_new, y_new = X_new.iloc[rows], y_new[rows]
    model = HybridMixtureClassifier(random_state=seed).fit(X, y)
    codes = np.searchsorted(model.classes_, y_new)
    found: Row = {"unadapted": log_loss(model.predict_proba(X_new), codes).mean()}
    estimate = model.estimate_prior(X_new)
    model.adapt_prior(X_new)
    found["adapted"] = log_loss(model.predict_proba(X_new), codes).mean()
    truth = np.bincount(codes, minlength=model.classes_.size) / codes.size
    model.fitted_ = model.fitted_.at_prevalence(truth)
    found["true prevalence"] = log_loss(model.predict_proba(X_new), codes).mean()
    z = (estimate["probability"].to_numpy() - truth) / estimate["standard_error"].to_numpy()
    return found | {"largest z": np.abs(z).max()}


@pytest.mark.filterwarnings("ignore:X has categories that were not seen at fit")
def test_a_changed_prevalence_is_found(data_folder: object) -> None:
    rows = [
        {"table": name, **of_shifted(name, seed)} for name in SHIFTED for seed in range(N_SPLITS)
    ]
    found = pd.DataFrame(rows)
    show("labels/prevalence", found.groupby("table", sort=False).mean())
    for _, of_table in found.groupby("table"):
        at_most(of_table["adapted"] - of_table["unadapted"], 0.0)
