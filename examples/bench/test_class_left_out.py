"""How much wider are intervals on rows of a class that no row of the fit was of?

The last class of eight tables is left out of a fit to 200 rows of the others, or half of them. The
mean width of the intervals of 90 % is taken over new rows of known classes, and over rows of the
class left out. Beside the ratio: how well novelty tells the two apart (area under the ROC curve).

``BAYESRBF_TABLES`` and ``BAYESRBF_METHODS`` choose (beginnings of names, with commas),
``BAYESRBF_SEEDS`` sets the number of splits (1). Results are kept as they come.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from bayesrbf import HybridMixtureClassifier, KernelNetworkClassifier, StackedClassifier
from bench.figures import Row, show
from bench.teachers import rows_of
from bench.test_stack import chosen
from tests.measured import part

TABLES = ("iris", "wine", "glass", "vehicle", "vowel", "segment", "soybean", "digits")
SEEDS = int(os.environ.get("BAYESRBF_SEEDS", "1"))
TRAINING, TESTED = 200, 300
METHODS: dict[str, Callable[..., Any]] = {
    "stack, bootstrap": partial(StackedClassifier, inference="bootstrap"),
    "mixture, laplace": partial(HybridMixtureClassifier, inference="laplace"),
    "kernel, laplace": partial(KernelNetworkClassifier, inference="laplace"),
}


def results() -> Iterator[Row]:
    """Every split of every table and method."""
    for method in chosen(METHODS, "BAYESRBF_METHODS"):
        for name in chosen(TABLES, "BAYESRBF_TABLES"):
            for seed in range(SEEDS):
                key = {"model": method, "table": name, "seed": seed}
                yield part("class_left_out", key, partial(widths, name, method, seed))


def widths(name: str, method: str, seed: int) -> Row:
    """Mean widths on rows of known classes and on those of the last one."""
    X, y = rows_of(name)
    order = np.random.default_rng(seed).permutation(len(y))
    odd = y[order] == np.unique(y)[-1]
    known, left_out = order[~odd], order[odd][:TESTED]
    train, rest = np.split(known, [min(TRAINING, len(known) // 2)])
    new = np.concatenate([rest[:TESTED], left_out])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = METHODS[method](random_state=seed).fit(X.iloc[train], y[train])
        told = model.uncertainty(X.iloc[new])
    width = (told["upper"] - told["lower"]).mean("label").to_numpy()
    is_odd = np.isin(new, left_out)
    return {
        "known": width[~is_odd].mean(),
        "left out": width[is_odd].mean(),
        "novelty": roc_auc_score(is_odd, told["novelty"]),
    }


def test_intervals_of_a_class_left_out(data_folder: object) -> None:
    found = pd.DataFrame(results())
    columns = ["novelty", "known", "left out"]
    means = found.groupby(["model", "table"], sort=False)[columns].mean()
    means["ratio"] = means["left out"] / means["known"]
    models = found["model"].unique()
    counts = {
        "tables": (found["table"].nunique(), len(TABLES)), "models": (len(models), len(METHODS))
    }  # fmt: skip
    show("class_left_out", means, 2, counts, commits=found["commit"])
    for model in models:
        assert means.loc[model, "ratio"].median() > 1
    if "stack, bootstrap" in models and counts["tables"] == (len(TABLES), len(TABLES)):
        assert (means.loc["stack, bootstrap", "ratio"] >= 2).sum() >= 6
