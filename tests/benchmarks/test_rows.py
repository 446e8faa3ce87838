"""Log loss against the number of training rows: the stack beside boosting, forest and regression.

The same new rows, 4,000 at most, are predicted after fits to the first of them in a random order.
``BAYESRBF_ROWS`` sets the numbers of training rows (500, 2000, 8000), ``BAYESRBF_TABLES`` and
``BAYESRBF_METHODS`` choose as in ``test_stack``; each result is printed as it comes.
"""

from __future__ import annotations

import os
import time
import warnings

import numpy as np
import pandas as pd
import pytest

from tests.benchmarks.stack_tables import load
from tests.benchmarks.test_real_tables import scores
from tests.benchmarks.test_stack import (
    GENTLE,
    Contestant,
    boosting,
    chosen,
    forest,
    logistic,
    plain,
    stack,
)

ROWS = [int(one) for one in os.environ.get("BAYESRBF_ROWS", "500,2000,8000").split(",")]
TABLES = ("adult", "mushroom", "raetsch_splice", "raetsch_waveform")
NEW_ROWS = 4000
LONGER = GENTLE | {"max_iter": 300}

CONTESTANTS: dict[str, Contestant] = {
    "boosting": lambda X, y, seed: boosting(**LONGER)(seed).fit(X, y).predict_proba,
    "forest": plain(forest),
    "logistic": plain(logistic),
    "stack": stack("default"),
    "stack with boosting": stack("default", lambda seed: [("boosting", boosting(**LONGER)(seed))]),
    "lite": stack("lite"),
    "lite with boosting": stack("lite", lambda seed: [("boosting", boosting(**LONGER)(seed))]),
}


def test_rows(data_folder: object, capsys: pytest.CaptureFixture[str]) -> None:
    results = []
    for name in chosen(TABLES, "BAYESRBF_TABLES"):
        data = load(name)
        _, y = np.unique(np.asarray(data.y, dtype=str), return_inverse=True)
        order = np.random.default_rng(0).permutation(y.size)
        new, rest = np.split(order, [min(NEW_ROWS, y.size // 3)])
        for n_rows in (n for n in ROWS if n <= rest.size):
            train = rest[:n_rows]
            for model in chosen(CONTESTANTS, "BAYESRBF_METHODS"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    begun = time.process_time()
                    predict = CONTESTANTS[model](data.X.iloc[train], y[train], 0)
                    seconds = time.process_time() - begun
                    found = scores(predict(data.X.iloc[new]), y[new])
                row = {"table": name, "rows": n_rows, "model": model, "seconds": seconds, **found}
                results.append(row)
                with capsys.disabled():
                    told = f"{found['log loss']:.4f} {seconds:.1f} s"
                    print(name, n_rows, model, told, flush=True)
    if not results:
        pytest.skip("BAYESRBF_TABLES names no table of this benchmark")
    table = pd.DataFrame(results)
    losses = table.pivot(index=["table", "rows"], columns="model", values="log loss")
    with capsys.disabled():
        print(f"\n\n## Log loss against rows\n\n{losses.round(4).to_markdown()}\n")
    assert np.isfinite(losses.to_numpy()).any()
