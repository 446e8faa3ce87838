"""The default stack and single families beside what users would pick, on real tables.

Halves of at most 700 rows, complete and with 30 % of the cells hidden at fit and at predict. Then
the loss by the number of training rows. Seconds are CPU seconds of one thread: they hold where
other work goes on.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from bayesrbf import HybridMixtureClassifier, KernelNetworkClassifier, StackedClassifier
from bench.figures import Row, at_least, show
from bench.peers import GENTLE, PEERS, Boosting, forest, logistic, scores
from bench.tables import Split, load, split

DEVELOPED_ON: Final = (
    "hepatitis",
    "heart_cleveland",
    "horse_colic",
    "credit_approval",
    "house_votes84",
    "pima_uci_missing",
    "glass",
    "vehicle",
    "raetsch_german",
    "wine",
)
"""Tables on which the stack was put together."""
FRESH: Final = (
    "raetsch_thyroid",
    "raetsch_breast_cancer",
    "raetsch_flare_solar",
    "raetsch_image",
    "raetsch_waveform",
    "raetsch_banana",
    "crabs",
    "ripley_synth",
)
"""Tables never looked at before it was fixed."""
STACK: Final = "`StackedClassifier()`"
OURS: Final[dict[str, Callable[[int], Any]]] = {
    STACK: lambda seed: StackedClassifier(random_state=seed),
    "`HybridMixtureClassifier()`": lambda seed: HybridMixtureClassifier(random_state=seed),
    "`KernelNetworkClassifier()`": lambda seed: KernelNetworkClassifier(random_state=seed),
}
CONTESTANTS: Final = OURS | PEERS

SIZES: Final = {"adult": (500, 2000, 8000), "raetsch_waveform": (500, 2000)}
NEW_ROWS: Final = 4000
OF_MORE_ROWS: Final[dict[str, Callable[[int], Any]]] = {
    "stack": OURS[STACK],
    "random forest": forest,
    "gradient boosting": lambda seed: Boosting(seed, **(GENTLE | {"max_iter": 300})),
    "logistic regression": logistic,
}


def judged(make: Callable[[int], Any], data: Split) -> Row:
    """CPU seconds of a fit, and scores on the new rows."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        begun = time.process_time()
        model = make(0).fit(data.X, data.y)
        seconds = time.process_time() - begun
        return {"seconds": seconds, **scores(model.predict_proba(data.X_new), data.y_new)}


def results(holes: bool) -> Iterator[Row]:
    """Every contestant on every table."""
    for name in (*DEVELOPED_ON, *FRESH):
        data = split(name, 0, holes)
        for model, make in CONTESTANTS.items():
            yield {"table": name, "model": model, **judged(make, data)}
        print(name, "with holes" if holes else "complete", flush=True)


def losses_behind(rows: pd.DataFrame) -> pd.DataFrame:
    """What a contestant loses to the stack, a row a table."""
    losses = rows.pivot_table("log loss", "table", "model", sort=False)
    return losses.sub(losses[STACK], axis=0)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over tables, and what a contestant loses to the stack."""
    measures = ["log loss", "AUROC", "error %", "calibration error"]
    behind = losses_behind(rows)
    told = rows.groupby("model", sort=False)[measures].mean()
    told.insert(1, "behind the stack", behind.mean())
    told.insert(2, "se", behind.sem())
    told.insert(3, "tables behind", (behind > 0).sum())
    return told


def test_quality(data_folder: object) -> None:
    warm = split("iris", 0, True)  # compiles
    StackedClassifier(random_state=0).fit(warm.X, warm.y)
    seconds, behind = {}, []
    for holes, name in ((False, "complete"), (True, "with_holes")):
        rows = pd.DataFrame(results(holes))
        behind.append(losses_behind(rows)[list(PEERS)])
        show(f"quality/{name}", summary(rows), {"error %": 1})
        taken = rows.pivot_table("seconds", "table", "model", sort=False)
        column = "30 % of the cells hidden" if holes else "complete"
        seconds[column] = taken.div(taken["random forest"], axis=0).median()
    show("quality/seconds", pd.DataFrame(seconds), 1)
    for of_peers in behind:
        at_least(of_peers, 0.0)


def of_rows(name: str, n_rows: int) -> Split:
    """Some rows of a table to learn from, and the same new rows for every number."""
    data = load(name)
    _, y = np.unique(np.asarray(data.y, dtype=str), return_inverse=True)
    order = np.random.default_rng(0).permutation(y.size)
    new, rest = np.split(order, [min(NEW_ROWS, y.size // 3)])
    train = rest[:n_rows]
    return Split(data.X.iloc[train], y[train], data.X.iloc[new], y[new])


def test_more_rows(data_folder: object) -> None:
    rows = [
        {"table": name, "rows": n, "model": model, **judged(make, of_rows(name, n))}
        for name, sizes in SIZES.items()
        for n in sizes
        for model, make in OF_MORE_ROWS.items()
    ]
    found = pd.DataFrame(rows).pivot_table(
        index=["table", "rows"], columns="model", values=["log loss", "seconds"], sort=False
    )
    show("quality/rows", found["log loss"])
    show("quality/rows_seconds", found["seconds"], 1)
