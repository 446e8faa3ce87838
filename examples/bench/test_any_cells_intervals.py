"""Do intervals of class probabilities hold the truth given any set of cells?

Rows are drawn from Gaussian copulas of real tables, labels from a teacher (``copulas.py``), so that
p(y | known cells) is known. Models are fitted to complete rows; then cells of new rows are hidden.
For every pattern: how often intervals of 90 % hold the truth, their mean width, the divergence of
the delivered probability from the truth in nats, the mean probability of the rarest class over its
mean truth, and how many rows are called novel, of which one in twenty should be above .95.

``BAYESRBF_TABLES``, ``BAYESRBF_METHODS`` and ``BAYESRBF_TEACHERS`` choose. Results are kept as they
come.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pandas as pd

from bayesrbf import HybridMixtureClassifier, StackedClassifier
from bench.copulas import TEACHERS, Copula
from bench.figures import Row, show
from bench.test_intervals import divergence
from bench.test_stack import chosen
from tests.measured import part

TABLES: Final = (
    "iris",
    "wine",
    "raetsch_thyroid",
    "pima_uci_missing",
    "glass",
    "vehicle",
    "breast_cancer",
    "raetsch_waveform",
)
TRAINING, NEW_ROWS, PROB = 200, 150, 0.9
SHARES: Final = (0.0, 0.3, 0.6, 0.8, 0.95)
NOVEL: Final = 0.95
CONTESTANTS: Final[dict[str, Callable[[], object]]] = {
    "stack": lambda: StackedClassifier(random_state=0),
    "lite": lambda: StackedClassifier("lite", random_state=0),
    "mixture": lambda: HybridMixtureClassifier(random_state=0),
}


def masks(n_columns: int, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """Which cells are hidden, by the name of the pattern."""
    u = rng.random((NEW_ROWS, n_columns))
    for share in SHARES:
        yield f"{share:.0%}", u < share
    yield "one column alone", u != u.min(axis=1, keepdims=True)


def figures(table: str, teacher: str, model: str) -> Row:
    """What is judged of one model on one table, under every pattern."""
    copula, rng = Copula.of(table, teacher), np.random.default_rng(0)
    scores = copula.scores(TRAINING + NEW_ROWS, rng)
    p = copula.probabilities(scores[:TRAINING])
    y = (p.cumsum(axis=1) > rng.random((TRAINING, 1))).argmax(axis=1)
    present = np.unique(y)  # A class that no row has is left out of what is judged.
    X, result = copula.cells(scores), Row()
    fitted = CONTESTANTS[model]().fit(X[:TRAINING], y).refine("bootstrap")
    for pattern, hidden in masks(X.shape[1], rng):
        truth = copula.given(scores[TRAINING:], hidden, rng)[:, present]
        truth /= truth.sum(axis=1, keepdims=True)
        said = fitted.uncertainty(X[TRAINING:].mask(hidden), prob=PROB)
        some = slice(1, None) if present.size == 2 else slice(None)
        lower, upper = (said[end].to_numpy()[:, some] for end in ("lower", "upper"))
        delivered = said["probability"].to_numpy()
        rarest = truth.mean(axis=0).argmin()
        held = (lower <= truth[:, some]) & (truth[:, some] <= upper)
        result |= {
            f"held, {pattern}": float(held.mean()),
            f"width, {pattern}": float((upper - lower).mean()),
            f"divergence, {pattern}": divergence(truth, delivered),
            f"rarest, {pattern}": float(delivered[:, rarest].mean() / truth[:, rarest].mean()),
            f"novel, {pattern}": float((said["novelty"].to_numpy() > NOVEL).mean()),
        }
    return result


def test_any_cells_hold(data_folder: object) -> None:
    rows = []
    for table in chosen(TABLES, "BAYESRBF_TABLES"):
        for teacher in chosen(TEACHERS, "BAYESRBF_TEACHERS"):
            for model in chosen(CONTESTANTS, "BAYESRBF_METHODS"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    key = {"table": table, "truth": teacher, "model": model}
                    row = part("any_cells_held", key, lambda k=key: figures(*k.values()))
                rows.append(row)
    results = pd.DataFrame(rows)
    means = results.groupby("model", sort=False).mean(numeric_only=True)
    counts = {
        "tables": (results["table"].nunique(), len(TABLES)),
        "teachers": (results["truth"].nunique(), len(TEACHERS)),
        "models": (results["model"].nunique(), len(CONTESTANTS)),
    }
    patterns = [name.removeprefix("held, ") for name in means if name.startswith("held, ")]
    told = pd.DataFrame(
        {"model": model, "figure": figure}
        | {pattern: row[f"{figure}, {pattern}"] for pattern in patterns}
        for model, row in means.iterrows()
        for figure in ("held", "width", "divergence", "rarest", "novel")
    )
    show("any_cells/held", told, 3, counts, commits=results["commit"])
    if results["table"].nunique() == len(TABLES):
        held = told[(told["figure"] == "held") & (told["model"] == "stack")][patterns]
        assert held.ge(0.85).all(axis=None), held
        assert held.le(0.97).all(axis=None), held
