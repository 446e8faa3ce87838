"""Do intervals of class probabilities hold the truth, of complete rows and given any set of cells?

The truth is known in four ways. Cells of a cross-table of many rows have a frequency
(``frequencies.py``). Normal columns with labels of a formula have their law given any cells
(``truths.py``). Complete rows of real tables have labels of teachers of other families
(``teachers.py``). Rows of which p(y | any cells) is known are drawn from Gaussian copulas of real
tables, with labels of a teacher (``copulas.py``); models are fitted to complete rows, then cells of
new rows are hidden. Each table has one teacher, in turn. There and on real tables, a stack is also
asked with one member more: a stand-in for a pretrained model.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest
from scipy.special import rel_entr

from bayesrbf import HybridMixtureClassifier, KernelNetworkClassifier, StackedClassifier
from bench import copulas
from bench.copulas import Copula
from bench.figures import Row, at_least, at_most, show
from bench.frequencies import MIN_COUNTS, Cells, CrossTable
from bench.interval_rivals import LEVELS, PEERS, RIVALS, STACK, Contestant, Said, ours
from bench.peers import InContext, codes_for
from bench.tables import split
from bench.teachers import TEACHERS, Taught, probabilities, rows_of, taught
from bench.truths import TRUTHS, Truth

MIN_COVERAGE: Final = 0.88
"""Of truths, by intervals of 90 %."""
ROWS: Final = 200
MISS: Final = 20
"""Price of a miss in the interval score of 90 %: 2 over the share that may lie outside."""
TABLES: Final = (
    "breast_cancer",
    "glass",
    "heart_cleveland",
    "heart_statlog",
    "hepatitis",
    "iris",
    "pima_uci_missing",
    "raetsch_thyroid",
    "ripley_synth",
    "vehicle",
    "vowel",
    "wine",
)
OF_COPULAS: Final = (
    "iris",
    "wine",
    "raetsch_thyroid",
    "pima_uci_missing",
    "glass",
    "vehicle",
    "breast_cancer",
    "raetsch_waveform",
)
NEW_ROWS: Final = 150
SHARES: Final = (0.0, 0.3, 0.6, 0.8, 0.95)


FREQUENCY_ROWS: Final = (100, 200, 400, 800)
FREQUENCY_DRAWS: Final = 4
MIN_CELL_ROWS: Final = 20
"""Rows of a cell whose frequency is taken for a probability: that of fewer is itself chance."""
MIN_TABLE_COVERAGE: Final = 0.75
"""Of the frequencies of such cells of every cross-table, by intervals of 90 %."""
CONTESTANTS: Final[dict[str, Contestant]] = (
    STACK
    | {
        "mixture, beside other kinds": ours(
            HybridMixtureClassifier, "laplace", model_uncertainty="pool"
        ),
        "mixture": ours(HybridMixtureClassifier, "laplace"),
        "kernel network": ours(KernelNetworkClassifier, "laplace"),
    }
    | PEERS
)

RIVAL_ROWS: Final = 200
"""Rows that rivals are fitted to, beside the stack."""


def judge(said: Said, truth: np.ndarray) -> Row:
    """Coverage by level, width, interval score, divergence; of two classes the second counts.

    The score of an interval of 90 % is its width and 20 times what the truth lies outside.
    """
    some = slice(1, None) if truth.shape[1] == 2 else slice(None)
    lower, upper = said.ends[:, 0, :, some], said.ends[:, 1, :, some]
    held = (lower <= truth[:, some]) & (truth[:, some] <= upper)
    width = (upper - lower)[-1]
    outside = np.maximum(lower[-1] - truth[:, some], truth[:, some] - upper[-1])
    return {
        **{f"{level:.0%}": float(held[k].mean()) for k, level in enumerate(LEVELS)},
        "width": float(width.mean()),
        "score": float((width + MISS * np.maximum(outside, 0)).mean()),
        "divergence": divergence(truth, said.delivered),
    }


def divergence(truth: np.ndarray, p: np.ndarray) -> float:
    """Mean Kullback-Leibler divergence of predictions from the truth, in nats."""
    return float(rel_entr(truth, np.clip(p, 1e-12, 1)).sum(axis=1).mean())


def rows_for(place: int, table: str) -> Taught:
    """Rows of a table with labels drawn from its teacher; every class has a row to learn from."""
    X, y = rows_of(table)
    truth = probabilities([*TEACHERS][place % len(TEACHERS)], X, y)
    drawn = (taught(X, truth, ROWS, seed) for seed in range(100))
    return next(data for data in drawn if data is not None)


def complete() -> Iterator[Row]:
    """Every contestant on every table."""
    for place, table in enumerate(TABLES):
        data = rows_for(place, table)
        for model, fit in CONTESTANTS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                said = fit(data.X, data.y)(data.X_new)
            yield {"table": table, "model": model, **judge(said, data.truth)}
        print(table, flush=True)


def test_intervals(data_folder: object) -> None:
    rows = pd.DataFrame(complete())
    by_model = rows.drop(columns="table").groupby("model", sort=False)
    told = by_model.mean()
    told.insert(3, "se of 90%", by_model["90%"].sem())
    told.insert(4, "lowest table", by_model["90%"].min())
    show("intervals/complete", told)
    at_least(rows.loc[rows["model"] == "stack", "90%"], MIN_COVERAGE)


def by_frequency() -> Iterator[Row]:
    """Every contestant on cells of cross-tables, complete and with one column hidden."""
    for table in MIN_COUNTS:
        whole = CrossTable.of(table)
        views = list(whole.cells())
        for n, draw in itertools.product(FREQUENCY_ROWS, range(FREQUENCY_DRAWS)):
            X, y = whole.drawn(n, np.random.default_rng([n, draw]))
            for model, fit in (STACK | (RIVALS if n == RIVAL_ROWS else {})).items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ask = fit(X, y)
                    for hidden, cells in views:
                        about = {"table": table, "model": model, "rows": n, "draw": draw}
                        about["hidden"] = "no column" if hidden is None else "one column"
                        yield about | judge_cells(ask(cells.X), cells)
        print(table, flush=True)


def judge_cells(said: Said, cells: Cells) -> Row:
    """What is judged of the cells of a cross-table, each cell alike, and coverage by rows."""
    truth = np.column_stack([1 - cells.frequency, cells.frequency])
    found = judge(said, truth)
    lower, upper = said.ends[-1, :, :, 1]
    held = (lower <= cells.frequency) & (cells.frequency <= upper)
    error = np.abs(said.delivered[:, 1] - cells.frequency).mean()
    kept = {name: found[name] for name in ("90%", "width", "score")}
    kept["90%, 20 rows"] = float(held[cells.size >= MIN_CELL_ROWS].mean())
    return kept | {"90%, by rows": float(cells.share @ held), "error": float(error)}


def test_intervals_by_frequency(data_folder: object) -> None:
    rows = pd.DataFrame(by_frequency())
    of_fit = rows.groupby(["table", "model", "rows", "draw", "hidden"], sort=False).mean()
    of_table = of_fit.groupby(["table", "model", "rows", "hidden"], sort=False).mean()
    beside = of_table.xs(RIVAL_ROWS, level="rows")
    means = beside.groupby(["model", "hidden"], sort=False).mean()
    columns = ["90%", "90%, 20 rows", "90%, by rows", "width", "error", "score"]
    show("intervals/frequencies", means[columns])
    stack = of_table.xs("stack", level="model")
    by_rows = stack.groupby(["hidden", "rows"], sort=False)[columns].mean()
    by_rows["width over error"] = by_rows["width"] / by_rows["error"]
    show("intervals/by_rows", by_rows)
    cells = stack["90%, 20 rows"].unstack("rows").reorder_levels(["hidden", "table"]).sort_index()
    show("intervals/cross_tables", cells.rename(columns="{} rows".format), 2)
    fits = of_fit.xs("stack", level="model")["90%, 20 rows"].unstack("hidden")
    for _, of_one in fits.groupby("table"):
        at_least(of_one["no column"], MIN_TABLE_COVERAGE)


TRUTH_ROWS: Final = 300
TRUTH_FITS: Final = 4
ASKED: Final = 200
OF_TRAINING: Final = 0.3
"""Share of the cells of training that are hidden in half of the fits."""
MIN_TRUTH_COVERAGE: Final = 0.85
MAX_SCORE: Final = {"no training cell": 0.31, "30%": 0.38}
"""Interval score over the five patterns of holes, by what is hidden of training."""


def of_truth(name: str, truth: Truth, seed: int, hidden_of_training: float) -> Iterator[Row]:
    """What is judged of a stack on rows of known law, a pattern of hidden columns at a time."""
    rng = np.random.default_rng([seed, 7])
    X, y = truth.drawn(TRUTH_ROWS, rng)
    X_new, _ = truth.drawn(ASKED, rng)
    X = X.mask(rng.random(X.shape) < hidden_of_training)
    ask = STACK["stack"](X, y)
    about = {"truth": name, "of training": "30%" if hidden_of_training else "no training cell"}
    for pattern, hidden in truth.patterns():
        whole = np.isin(np.arange(X.shape[1]), hidden)
        told = judge(ask(X_new.mask(np.tile(whole, (ASKED, 1)))), truth.given(X_new, hidden))
        yield about | {"hidden": pattern} | {name: told[name] for name in ("90%", "width", "score")}


@pytest.mark.parametrize("share", [0.0, OF_TRAINING])
def test_intervals_of_hidden_columns(share: float) -> None:
    """Of rows with a telling column and without, by their formula."""
    rows: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, truth in TRUTHS.items():
            for seed in range(TRUTH_FITS):
                rows += of_truth(name, truth, seed, share)
            print(name, flush=True)
    found = pd.DataFrame(rows)
    of_training = str(found.pop("of training")[0])
    some = "hidden_columns" if share == 0 else "hidden_columns_of_training"
    told = found[found["hidden"] != "nothing"]
    by_truth = told.drop(columns="hidden").groupby("truth", sort=False)
    show(f"intervals/{some}", found.drop(columns="truth").groupby("hidden", sort=False).mean())
    show(f"intervals/{some}_by_truth", by_truth.mean())
    by_fit = told["90%"].groupby([told["truth"], np.arange(len(told)) // 5], sort=False).mean()
    for _, fits in by_fit.groupby("truth"):
        at_least(fits, MIN_TRUTH_COVERAGE)
    at_most(by_truth["score"].mean(), MAX_SCORE[of_training])


FAMILIES: Final[dict[str, Contestant]] = {
    "stack": ours(StackedClassifier, "laplace"),
    "mixture": ours(HybridMixtureClassifier, "bootstrap"),
}


def masks(
    n_columns: int, rng: np.random.Generator, shares: Sequence[float]
) -> Iterator[tuple[str, np.ndarray]]:
    """Which cells are hidden, by the name of the pattern."""
    u = rng.random((NEW_ROWS, n_columns))
    for share in shares:
        yield f"{share:.0%}", u < share
    yield "one column alone", u != u.min(axis=1, keepdims=True)


def of_any_cells(
    model: str, fit: Contestant, copula: Copula, shares: Sequence[float] = SHARES
) -> Iterator[Row]:
    """What is judged of one model on one table, a pattern of hidden cells at a time."""
    rng = np.random.default_rng(0)
    scores = copula.scores(ROWS + NEW_ROWS, rng)
    y = copula.labels(scores[:ROWS], rng)
    present = np.unique(y)  # A class that no row has is left out of what is judged.
    X = copula.cells(scores)
    ask = fit(X[:ROWS], y)
    for pattern, hidden in masks(X.shape[1], rng, shares):
        truth = copula.given(scores[ROWS:], hidden, rng)[:, present]
        truth /= truth.sum(axis=1, keepdims=True)
        said = ask(X[ROWS:].mask(hidden))
        judged, delivered = judge(said, truth), said.delivered
        rarest = truth.mean(axis=0).argmin()
        yield {
            "model": model,
            "cells hidden": pattern,
            **{key: judged[key] for key in ("90%", "width", "score", "divergence")},
            "rarest class": float(delivered[:, rarest].mean() / truth[:, rarest].mean()),
        }


def by_table(found: pd.DataFrame, value: str) -> pd.DataFrame:
    """A value by table, a column for each pattern of hidden cells."""
    return found.pivot_table(value, "table", "cells hidden", sort=False)


def of_copulas() -> Iterator[tuple[str, Copula]]:
    """Every table with the teacher whose turn it is."""
    for place, table in enumerate(OF_COPULAS):
        yield table, Copula.of(table, [*copulas.TEACHERS][place % len(copulas.TEACHERS)])


def test_intervals_of_any_cells(data_folder: object) -> None:
    rows: list[Row] = []
    for table, copula in of_copulas():
        for model, fit in FAMILIES.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows += ({"table": table} | row for row in of_any_cells(model, fit, copula))
        print(table, flush=True)
    found = pd.DataFrame(rows)
    by_pattern = found.drop(columns="table").groupby(["model", "cells hidden"], sort=False)
    told = by_pattern.mean()
    told.insert(1, "se of 90%", by_pattern["90%"].sem())
    show("intervals/any_cells", told)
    at_least(by_table(found[found["model"] == "stack"], "90%"), MIN_COVERAGE)


REAL: Final = ("sonar", "glass", "heart_statlog", "pima_uci_missing")
FEW_SHARES: Final = (0.0, 0.3, 0.7)
EARLIER_ROWS: Final = 600
"""Rows of the same law that the better stand-in has in its context."""


def stack_with(**settings: Any) -> Callable[..., Any]:
    """The default stack with a stand-in for a pretrained model as one more member."""
    return partial(StackedClassifier, extra=[("stand-in", codes_for(InContext(**settings)))])


def pooled(table: str) -> Iterator[Row]:
    """Halves of a real table: a stand-in, the stack, and the stack with it."""
    data = split(table, 0, holes=False)
    u = np.random.default_rng(0).random(data.X_new.shape)
    rows: list[Row] = [{"table": table, "cells hidden": f"{share:.0%}"} for share in FEW_SHARES]
    alone = codes_for(InContext()).fit(data.X, data.y)
    for what, make in {"stack": StackedClassifier, "with it": stack_with()}.items():
        start = time.process_time()
        model = make(random_state=0).fit(data.X, data.y)
        seconds = time.process_time() - start
        model.refine()
        for row, share in zip(rows, FEW_SHARES, strict=True):
            X = data.X_new.mask(u < share)
            told = model.uncertainty(X)
            row["loss, it alone"] = loss(alone.predict_proba(X), data.y_new)
            row[f"loss, {what}"] = loss(told["probability"].to_numpy(), data.y_new)
            row[f"width, {what}"] = float((told["upper"] - told["lower"]).mean())
            row[f"seconds, {what}"] = seconds
    yield from ({**row, "weight": float(model.weights_[-1])} for row in rows)


def loss(p: np.ndarray, y: np.ndarray) -> float:
    """Mean log loss in nats."""
    return float(-np.log(np.clip(p[np.arange(y.size), y], 1e-12, 1)).mean())


def test_a_pretrained_member(data_folder: object) -> None:
    """What a stand-in for a pretrained model does to losses and intervals of the default stack."""
    rows: list[Row] = []
    told: list[Row] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in REAL:
            rows += pooled(table)
        for table, copula in of_copulas():
            rng = np.random.default_rng(1)
            earlier = copula.scores(EARLIER_ROWS, rng)
            more = copula.cells(earlier).to_numpy(), copula.labels(earlier, rng)
            makes = {
                "stack": StackedClassifier,
                "with the stand-in": stack_with(),
                f"with one of {EARLIER_ROWS} rows more": stack_with(pretraining=more),
            }
            for model, make in makes.items():
                asked = of_any_cells(model, ours(make, "laplace"), copula, FEW_SHARES)
                told += ({"table": table} | row for row in asked)
            print(table, flush=True)
    losses = pd.DataFrame(rows)
    kinds = ("loss", "width", "seconds")
    columns = ["table", "cells hidden", "loss, it alone", "weight"]
    columns[3:3] = [f"{kind}, {what}" for kind in kinds for what in ("stack", "with it")]
    show("pretrained/tables", losses[columns], dict.fromkeys(columns[-3:], 2))
    found = pd.DataFrame(told)
    by_model = found.drop(columns="table").groupby(["model", "cells hidden"], sort=False)
    means = by_model.mean().drop(columns="rarest class")
    means.insert(1, "se of 90%", by_model["90%"].sem())
    show("pretrained/intervals", means)
    losses["more"] = losses["loss, with it"] - losses["loss, stack"]
    at_most(by_table(losses, "more"), 0.01)
    for _, of_model in found.groupby("model"):
        at_least(by_table(of_model, "90%"), MIN_COVERAGE)
