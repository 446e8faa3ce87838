"""What rows without a label are worth to each classifier, by the weight that they have.

Nine labels in ten are hidden. ``BAYESRBF_TABLES`` and ``BAYESRBF_METHODS`` choose (beginnings of
names, with commas), ``BAYESRBF_SEEDS`` sets the number of splits (3). Results are kept as they
come.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    RBFNetworkClassifier,
    SDGMClassifier,
    StackedClassifier,
)
from bayesrbf.base.arrays import log_loss
from bench.figures import Row, show
from bench.stack_tables import split
from bench.test_stack import chosen
from tests.cases import generative
from tests.measured import part

TABLES = (
    "heart_cleveland",
    "credit_approval",
    "house_votes84",
    "pima_uci_missing",
    "mushroom",
    "adult",
    "vehicle",
    "raetsch_german",
    "breast_cancer",
    "raetsch_image",
)
SEEDS = int(os.environ.get("BAYESRBF_SEEDS", "3"))
KNOWN = 0.1
"""Share of the rows of a class that keep their label: at least five of them."""
CLASSIFIERS: dict[str, Callable[..., Any]] = {
    "mixture": HybridMixtureClassifier,
    "mixture, likelihood": generative,
    "mixture, tied, tempered": partial(generative, tied=True, calibrate=True),
    "RBF network": RBFNetworkClassifier,
    "RBF network, untempered": partial(RBFNetworkClassifier, calibrate=False),
    "kernel network": KernelNetworkClassifier,
    "stack, lite": partial(StackedClassifier, "lite"),
    "stack": StackedClassifier,
    "sparse mixture": partial(SDGMClassifier, prediction="single-mode", n_init=1),
}
WEIGHTS = ("dropped", "1 / n_columns", "full")
"""What rows without a label count; the second only where a classifier can be told."""
WORSE = {"mixture, likelihood"}
"""Where the default is worse than leaving these rows out: docs/hybrid.md says so."""


@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
@pytest.mark.filterwarnings("ignore:X has categories that were not seen at fit")
@pytest.mark.filterwarnings("ignore:SDGMClassifier. .* rows without a label teach nothing")
@pytest.mark.filterwarnings("ignore:SDGMClassifier. (the .* levels|max_iter was reached)")
def test_unlabelled_rows(holes: bool, data_folder: object) -> None:
    names = chosen(CLASSIFIERS, "BAYESRBF_METHODS")
    found = pd.DataFrame(results(names, holes))
    means = found.groupby(["classifier", "table"], sort=False)[[*WEIGHTS]].mean()
    told = means.groupby("classifier", sort=False).mean()
    told.insert(0, "splits", SEEDS)
    for name in names:
        of_tables = means.loc[name]
        gain = of_tables["dropped"] - of_tables[default(CLASSIFIERS[name])]
        told.loc[name, ["gain of the default", "its error"]] = gain.mean(), gain.sem()
    counts = {
        "tables": (found["table"].nunique(), len(TABLES)),
        "splits": (SEEDS, 3),
        "classifiers": (len(names), len(CLASSIFIERS)),
    }
    show(
        f"unlabelled/{'with_holes' if holes else 'complete'}",
        told,
        counts=counts,
        commits=found["commit"],
    )
    print(means.round(3).to_string())
    sound = told.drop(index=WORSE, errors="ignore")
    assert (sound["gain of the default"] > -sound["its error"]).all()


def results(names: list[str], holes: bool) -> Iterator[Row]:
    """Every split of every table and classifier."""
    for label in names:
        for name in chosen(TABLES, "BAYESRBF_TABLES"):
            for seed in range(SEEDS):
                key = {"classifier": label, "table": name, "holes": holes, "seed": seed}
                yield part(
                    "unlabelled", key, partial(losses, name, seed, holes, CLASSIFIERS[label])
                )


def default(make: Callable[..., Any]) -> str:
    """How a classifier weighs rows without a label if nothing else is asked for."""
    return "1 / n_columns" if make().get_params().get("unlabelled_weight", 1) is None else "full"


def losses(name: str, seed: int, holes: bool, make: Callable[..., Any]) -> Row:
    """Log loss on new rows by the weight of the rows without a label."""
    data = split(name, seed, holes)
    y = hidden(data.y, seed)
    known = ~np.isnan(y)
    models = {"dropped": make(random_state=seed).fit(data.X[known], y[known])}
    if "unlabelled_weight" in make().get_params():
        for label, weight in {"1 / n_columns": 1 / data.X.shape[1], "full": 1.0}.items():
            models[label] = make(unlabelled_weight=weight, random_state=seed).fit(data.X, y)
    else:
        models["full"] = make(random_state=seed).fit(data.X, y)
    return {
        label: float(log_loss(models[label].predict_proba(data.X_new), data.y_new).mean())
        if label in models
        else np.nan
        for label in WEIGHTS
    }


def hidden(y: np.ndarray, seed: int) -> np.ndarray:
    """Labels of which nine in ten are NaN."""
    rng = np.random.default_rng(seed)
    left = np.full(y.size, np.nan)
    for label in np.unique(y):
        own = rng.permutation(np.flatnonzero(y == label))
        left[own[: max(5, round(KNOWN * own.size))]] = label
    return left
