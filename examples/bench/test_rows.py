"""Log loss against the number of training rows: the stack beside boosting, forest and regression.

The same new rows, 4,000 at most, are predicted after fits to the first of them in a random order.
``BAYESRBF_TRAINING_ROWS`` sets the numbers of training rows (500, 2000, 8000, 32000);
``BAYESRBF_TABLES`` and ``BAYESRBF_METHODS`` choose as in ``test_stack``; each result is kept as it
comes.
"""

from __future__ import annotations

import os
import time
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from bench.figures import Row, show
from bench.stack_tables import load
from bench.test_real_tables import scores
from bench.test_stack import (
    GENTLE,
    Contestant,
    boosting,
    chosen,
    forest,
    logistic,
    plain,
    stack,
)
from tests.measured import COST, part

SIZES = os.environ.get("BAYESRBF_TRAINING_ROWS", "500,2000,8000,32000")
ROWS = [int(one) for one in SIZES.split(",")]
TABLES = ("adult", "mushroom", "raetsch_splice", "raetsch_waveform")
NEW_ROWS = 4000
PEERS, MOST_BEHIND = ("boosting", "forest", "logistic"), 0.002
"""Nats by which the stack may be behind the best of them."""
LONGER = GENTLE | {"max_iter": 300}

CONTESTANTS: dict[str, Contestant] = {
    "boosting": lambda X, y, seed: boosting(**LONGER)(seed).fit(X, y).predict_proba,
    "forest": plain(forest),
    "logistic": plain(logistic),
    "stack": stack("default"),
    "lite": stack("lite"),
}


def result(name: str, n_rows: int, model: str) -> Row:
    """CPU seconds of a fit on one thread to some rows of a table, and scores on the new ones."""
    data = load(name)
    _, y = np.unique(np.asarray(data.y, dtype=str), return_inverse=True)
    order = np.random.default_rng(0).permutation(y.size)
    new, rest = np.split(order, [min(NEW_ROWS, y.size // 3)])
    if n_rows > rest.size:
        return {}
    train = rest[:n_rows]
    # Threads that wait spin beside other work, and their seconds count.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        begun = time.process_time()
        predict = CONTESTANTS[model](data.X.iloc[train], y[train], 0)
        seconds = time.process_time() - begun
        return {"seconds": seconds, **scores(predict(data.X.iloc[new]), y[new])}


def test_rows(data_folder: object) -> None:
    asked = [
        {"table": name, "rows": n, "model": model}
        for name in chosen(TABLES, "BAYESRBF_TABLES")
        for n in ROWS
        for model in chosen(CONTESTANTS, "BAYESRBF_METHODS")
    ]
    results = pd.DataFrame(
        part("rows", key, partial(result, key["table"], key["rows"], key["model"])) for key in asked
    )
    if results.empty:
        pytest.skip("BAYESRBF_TABLES names no table of this benchmark")
    losses, seconds = (
        results.dropna(subset="log loss").pivot_table(
            index=["table", "rows"], columns="model", values=what, sort=False
        )
        for what in ("log loss", "seconds")
    )
    counts = {
        "tables": (results["table"].nunique(), len(TABLES)),
        "classifiers": (results["model"].nunique(), len(CONTESTANTS)),
    }
    whole = {"stack", *PEERS} <= set(losses)
    if whole:
        losses["behind the best"] = losses["stack"] - losses[list(PEERS)].min(axis=1)
        seconds["stack / boosting"] = seconds["stack"] / seconds["boosting"]
    show("rows/losses", losses, 4, counts, commits=results["commit"])
    show("rows/seconds", seconds, 1, counts, COST, commits=results["commit"])
    assert not whole or (losses["behind the best"] <= MOST_BEHIND).all()
