"""How much wider are intervals on rows of a class that no row of the fit was of?

The last class of eight tables is left out of a fit to 200 rows of the others, or half of them. The
mean width of the intervals of 90 % is taken over new rows of known classes, and over rows of the
class left out. Beside the ratio: how well novelty tells the two apart (area under the ROC curve).
Where it does not, no interval can know.

``BAYESRBF_TABLES`` and ``BAYESRBF_METHODS`` choose (beginnings of names, with commas),
``BAYESRBF_SEEDS`` sets the number of splits (1). Results are printed as they come, and
``BAYESRBF_RESULTS`` keeps them for a run that stops (``kept.py``).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from bayesrbf import HybridMixtureClassifier, KernelNetworkClassifier, StackedClassifier
from tests.benchmarks.kept import Row, kept
from tests.benchmarks.teachers import rows_of
from tests.benchmarks.test_stack import chosen

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
                yield kept(key, partial(widths, name, method, seed))


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


def test_intervals_of_a_class_left_out(
    data_folder: object, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        print(f"\n\n## Mean width on rows of known classes and of one left out, {TRAINING} rows\n")
        found = pd.DataFrame(list(results()))
        means = found.groupby(["model", "table"], sort=False).mean().drop(columns="seed")
        means["ratio"] = means["left out"] / means["known"]
        print(f"\n{means.round(3).reset_index().to_markdown(index=False)}", flush=True)
    assert np.isfinite(means["ratio"]).all()
