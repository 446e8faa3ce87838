"""The density of real columns beside scikit-learn: hidden cells, planted errors, a class left out.

Tables of at most 1000 rows, their halves, one split.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from bayesrbf.app.tails import tails_beside
from bayesrbf.datasets import TARGET, demo_tables
from bench.density_models import OURS, Answer
from bench.density_peers import PEERS
from bench.density_scores import (
    auroc,
    average_precision,
    crps,
    held,
    level_loss,
    r_precision,
)
from bench.density_tables import KINDS, MIXED, REALS, Task, tasks
from bench.figures import Row, at_least, show

DEMOS: Final = 2
TAILS: Final = (0.01, 0.005, 0.001)
REPORT: Final = "trimmed pool"
Scores = dict[str, float]


def hidden_scores(task: Task, answer: Answer) -> Scores:
    """Of a density, of draws and of level probabilities, whichever there are."""
    (real, code), found = task.holes, Scores()
    if "log_density" in answer:
        found["log density a cell, mixed, holes"] = answer["log_density"].sum() / task.test.n_cells
    if len(real):
        truth = task.truth.real[real[:, 0], real[:, 1]]
        sd = np.nanstd(task.truth.real, axis=0)[real[:, 1]]
        found["CRPS of hidden reals (sd)"] = (crps(answer["draws"], truth) / sd).mean()
        for level in (0.5, 0.9):
            inside = held(answer["draws"], truth, level, np.random.default_rng(0))
            found[f"{level:.0%} intervals hold"] = inside.mean()
    if "probabilities" in answer and len(code):
        truth = task.truth.codes[code[:, 0], code[:, 1]]
        found["log loss of hidden categories"] = level_loss(answer["probabilities"], truth).mean()
    return found


def reals_scores(task: Task, answer: Answer) -> Scores:
    """Log density of a cell."""
    return {"log density a cell, complete reals": answer["log_density"].sum() / task.test.n_cells}


def errors_scores(task: Task, answer: Answer) -> Scores:
    """Average precision of all cells, and of each kind of error among the cells without one."""
    seen = np.concatenate([~np.isnan(task.test.real).ravel(), (task.test.codes >= 0).ravel()])
    score, kind = (
        np.concatenate([part.ravel() for part in parts])[seen]
        for parts in (
            (answer["real"], answer["codes"]),
            (task.truth.real, task.truth.codes),
        )
    )
    found = {
        "planted errors, average precision": average_precision(score, kind > 0),
        "planted errors, precision at their number": r_precision(score, kind > 0),
    }
    for number, name in enumerate(KINDS, start=1):
        some = (kind == 0) | (kind == number)
        if (kind == number).any():
            found[f"... {name}"] = average_precision(score[some], kind[some] > 0)
    return found


def novelty_scores(task: Task, answer: Answer) -> Scores:
    """How well a class that was left out is told from new rows of the others."""
    return {"a class left out, AUROC": auroc(answer["score"], task.truth.codes[:, 0] == 1)}


SCORES: Final[dict[str, Callable[[Task, Answer], Scores]]] = {
    "hidden": hidden_scores,
    "reals": reals_scores,
    "errors": errors_scores,
    "novelty": novelty_scores,
}


def results() -> Iterator[Row]:
    """Every score of ours and of the peers."""
    for name in dict.fromkeys(MIXED + REALS):
        for task in tasks(name, 0):
            answers = {model: our.answer for model, our in OURS.items()} | PEERS[task.kind]
            for model, answer in answers.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = SCORES[task.kind](task, answer(task))
                for line, value in found.items():
                    yield {"table": name, "model": model, "line": line, "value": float(value)}
        print(name, flush=True)


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean over tables and its standard error, a line a score."""
    cells = rows.groupby(["line", "model"], sort=False)["value"].agg(["mean", "sem", "size"])
    text = [f"{one.mean:.3f} ± {one.sem:.3f}" for one in cells.itertuples()]
    wide = pd.Series(text, cells.index).unstack(sort=False).fillna("")
    wide.insert(0, "tables", cells["size"].groupby("line", sort=False).max())
    return wide


def test_density_of_tables(data_folder: object) -> None:
    rows = pd.DataFrame(results())
    show("density/scores", summary(rows))
    found = rows[rows["line"] == "planted errors, average precision"]
    found = found.pivot_table("value", "table", "model")
    at_least(found[REPORT] - found["z-score"], 0.0)


def test_density_of_the_demo() -> None:
    """Cells below a tail where nothing was planted, and how many chance puts there."""
    lines: list[Row] = []
    for seed in range(DEMOS):
        table, _ = demo_tables(np.random.default_rng(seed))
        cells = [name for name in table if name != TARGET]
        density = OURS[REPORT].make().set_params(categorical_features=[TARGET]).fit(table)
        log_tail = density.surprise(table).sel(column=cells)["log_tail"].to_numpy()
        log_tail = log_tail[~np.isnan(log_tail)]
        confirmed = tails_beside(-log_tail, -log_tail)
        row: Row = {"seed": seed, "cells": log_tail.size}
        for tail in TAILS:
            row[f"chance below {tail:g}"] = round(log_tail.size * tail)
            row[f"below {tail:g}"] = int((log_tail < np.log(tail)).sum())
        listed = int((false_discovery_control(confirmed) <= 0.1).sum())  # As by the report.
        lines.append(row | {"listed by the report": listed})
        assert listed < 2
    show("density/demo", lines)
