"""Is a report's cross-validation by the folds of the stack's own pool as honest as a nested one?

For each table and split: held-out log loss of the training rows by folds whose pool the other
folds chose, by a whole stack that is fitted anew in every fold (with folds of its own within), and
the log loss of new rows, in nats; and the CPU time of both ways beside that of the fit.
``BAYESRBF_TABLES`` chooses (beginnings of names, with commas), ``BAYESRBF_SEEDS`` sets the number
of splits (3). Results are kept as they come.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from functools import cache, partial

import numpy as np
import pandas as pd

from bayesrbf import StackedClassifier
from bayesrbf.base.arrays import log_loss
from bayesrbf.fit.held_out import stratified_folds
from bench.figures import Row, show
from bench.stack_tables import Split, split
from bench.test_stack import chosen
from tests.measured import part

SEEDS = int(os.environ.get("BAYESRBF_SEEDS", "3"))
TABLES = (
    "hepatitis",
    "heart_cleveland",
    "heart_statlog",
    "iris",
    "wine",
    "glass",
    "pima_uci_missing",
    "crabs",
    "raetsch_thyroid",
    "raetsch_banana",
)
FOLDS, ROWS = 5, 250
OPTIMISM = 0.002
"""Nats by which shared folds may look better than nested ones in the mean."""


def figures(rows: Callable[[], Split], seed: int) -> Row:
    """Log losses of one split, and the CPU seconds of what is beside the fit."""
    data = rows()
    X, y = data.X[:ROWS].reset_index(drop=True), data.y[:ROWS]
    folds = stratified_folds(y, FOLDS, seed)
    splits = [(np.flatnonzero(folds != f), np.flatnonzero(folds == f)) for f in range(FOLDS)]
    out = np.flatnonzero(folds >= 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = StackedClassifier(cv=splits, random_state=seed)
        fit, _ = timed(lambda: model.fit(X, y))
        shared, p = timed(lambda: model.out_of_fold_.loc[out].to_numpy())
        nested, q = timed(lambda: nested_probabilities(X, y, splits, seed)[out])
        known = np.isin(data.y_new, model.classes_)
        of_new = model.predict_proba(data.X_new[known])
    places = np.searchsorted(model.classes_, data.y_new[known])
    own = np.searchsorted(model.classes_, y[out])
    losses, others = log_loss(p, own), log_loss(q, own)
    return {
        "shared folds": float(losses.mean()),
        "nested": float(others.mean()),
        "new rows": float(log_loss(of_new, places).mean()),
        "time of shared folds": shared / fit,
        "time of nested ones": nested / fit,
    }


def nested_probabilities(
    X: pd.DataFrame, y: np.ndarray, splits: list[tuple[np.ndarray, np.ndarray]], seed: int
) -> np.ndarray:
    """Probabilities of every held-out row by a stack fitted to the other folds."""
    classes = np.unique(y)
    p = np.zeros((len(X), classes.size))
    for train, test in splits:
        model = StackedClassifier(random_state=seed).fit(X.iloc[train], y[train])
        p[np.ix_(test, np.searchsorted(classes, model.classes_))] = model.predict_proba(
            X.iloc[test]
        )
    return p


def timed[T](work: Callable[[], T]) -> tuple[float, T]:
    """CPU seconds, and what came out."""
    start = time.process_time()
    outcome = work()
    return time.process_time() - start, outcome


def test_shared_folds(data_folder: object) -> None:
    results = []
    warm = split(TABLES[1], 0, True)  # compiles what the first fit would be charged with
    StackedClassifier(random_state=0).fit(warm.X, warm.y)
    for seed in range(SEEDS):
        for name in chosen(TABLES, "BAYESRBF_TABLES"):
            rows = cache(partial(split, name, seed, False))
            key = {"table": name, "seed": seed}
            results.append(part("shared_folds", key, partial(figures, rows, seed)))
    by_table = pd.DataFrame(results).drop(columns="seed")
    means = by_table.groupby("table", sort=False).mean(numeric_only=True)
    commits = [str(row["commit"]) for row in results]
    counts = {"tables": (len(means), len(TABLES)), "splits": (SEEDS, 3)}
    differences = means["shared folds"] - means["nested"]
    means.loc["mean"] = means.mean()
    show("shared_folds", means, 4, counts, commits=commits)
    assert differences.mean() > -OPTIMISM
    assert (means["time of shared folds"] < 0.1 * means["time of nested ones"]).all()
