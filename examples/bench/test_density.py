"""The density of real columns beside CrossCat, chained equations, a copula and scikit-learn.

Tables of at most 1000 rows, their halves, one split. ``BAYESRBF_TABLES`` and ``BAYESRBF_METHODS``
choose (beginnings of names, with commas), ``BAYESRBF_SEEDS`` sets the number of splits (1). Every
figure is kept, as soon as there is one, in the CSV file that ``BAYESRBF_RESULTS`` names,
``build/density.csv`` without it; what was answered is printed on the way.

The peers run beside ours in ``.venv-density/``, which ``make bench`` makes; where that is missing,
scikit-learn's run in this environment, and the others are said to be absent.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control

from bayesrbf.app.report.sections import tails_among
from bayesrbf.datasets import TARGET, demo_tables
from bench.density_models import OURS
from bench.density_peers import PEERS as ANSWERS
from bench.density_scores import (
    auroc,
    average_precision,
    crps,
    held,
    level_loss,
    r_precision,
)
from bench.density_tables import KINDS, MIXED, REALS, Task, tasks
from bench.figures import show
from bench.test_stack import chosen

ROOT = Path(__file__).resolve().parents[2]
SEEDS = int(os.environ.get("BAYESRBF_SEEDS", "1"))
DEMOS = int(os.environ.get("BAYESRBF_SEEDS", "2"))
TAILS = (0.01, 0.005, 0.001)
RESULTS = Path(os.environ.get("BAYESRBF_RESULTS", ROOT / "build" / "density.csv"))

PEERS = {name for asked in ANSWERS.values() for name in asked}
Answer = dict[str, Any]
Scores = dict[str, float]


def hidden_scores(task: Task, answer: Answer) -> Scores:
    """Of a density, of draws and of level probabilities, whichever there are."""
    (real, code), found = task.holes, {}
    if "log_density" in answer:
        found["log density a cell, mixed, holes"] = answer["log_density"].sum() / task.test.n_cells
    if "draws" in answer and len(real):
        truth = task.truth.real[real[:, 0], real[:, 1]]
        sd = np.nanstd(task.truth.real, axis=0)[real[:, 1]]
        found["CRPS of hidden reals (sd)"] = (crps(answer["draws"], truth) / sd).mean()
        for level in (0.5, 0.9):
            inside = held(answer["draws"], truth, level, np.random.default_rng(0))
            found[f"{level:.0%} intervals hold"] = inside.mean()
    if "probabilities" in answer and len(code):
        truth = task.truth.codes[code[:, 0], code[:, 1]]
        found["log loss of hidden categories"] = level_loss(answer["probabilities"], truth).mean()
    return found | {"CPU seconds of a fit": float(answer["cpu"])}


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


SCORES = {
    "hidden": hidden_scores,
    "reals": reals_scores,
    "errors": errors_scores,
    "novelty": novelty_scores,
}


def contest(folder: Path) -> Iterator[dict[str, object]]:
    """Every score of ours and of the peers, who work in a process of their own meanwhile."""
    asked = {
        f"{name}__{seed}__{task.kind}": task
        for name in chosen(dict.fromkeys(MIXED + REALS), "BAYESRBF_TABLES")
        for seed in range(SEEDS)
        for task in tasks(name, seed)
    }
    for key, task in asked.items():
        task.write(folder / f"{key}.npz")
    answers = folder / "answers"
    answers.mkdir()
    with (folder / "peers.log").open("wb") as printed, start_peers(folder, printed) as peers:
        try:
            for key, task in asked.items():
                for model in chosen(OURS, "BAYESRBF_METHODS"):
                    begun = time.perf_counter()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        answer = OURS[model].answer(task)
                    print(f"{key} {model} {time.perf_counter() - begun:.1f} s", flush=True)
                    yield from rows(key, model, task, answer)
                    yield from of_peers(answers, asked)
            while peers.poll() is None:
                time.sleep(1)
                yield from of_peers(answers, asked)
        except BaseException:
            peers.terminate()
            raise
    assert peers.returncode == 0, (folder / "peers.log").read_text()
    yield from of_peers(answers, asked)


def of_peers(answers: Path, asked: dict[str, Task]) -> Iterator[dict[str, object]]:
    """What peers have answered since it was last asked."""
    for path in sorted(answers.glob("*.npz")):
        key, model = path.stem.rsplit("__", 1)
        with np.load(path) as answer:
            yield from rows(key, model, asked[key], dict(answer))
        print(f"{key} {model}", flush=True)
        path.unlink()


def start_peers(folder: Path, printed: IO[bytes]) -> subprocess.Popen[bytes]:
    """The peers' process."""
    own = ROOT / ".venv-density"
    whole = (own / ".with-bench-density").exists()
    python = str(own / "bin" / "python") if whole else sys.executable
    methods = os.environ.get("BAYESRBF_METHODS", "")
    arguments = [str(folder), str(folder / "answers"), methods]
    command = [python, "-m", "bench.density_peers", *arguments]
    beside = ROOT / "examples"
    return subprocess.Popen(command, cwd=beside, stdout=printed, stderr=subprocess.STDOUT)


def rows(key: str, model: str, task: Task, answer: Answer) -> Iterator[dict[str, object]]:
    """One row for every score."""
    table, seed, _ = key.split("__")
    for line, value in SCORES[task.kind](task, answer).items():
        yield {"table": table, "seed": int(seed), "model": model, "line": line, "value": value}


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """Mean over tables and its standard error, a line a score; the median of seconds."""
    of_table = results.groupby(["line", "model", "table"], sort=False)["value"].mean()
    cells = of_table.groupby(["line", "model"], sort=False).agg(["mean", "sem", "median", "size"])
    seconds = cells.index.get_level_values("line").str.startswith("CPU")
    text = [
        f"{one.median:.2f}" if timed else f"{one.mean:.3f} ± {one.sem:.3f}"
        for one, timed in zip(cells.itertuples(), seconds, strict=True)
    ]
    wide = pd.Series(text, cells.index).unstack(sort=False).fillna("")
    wide.insert(0, "tables", cells["size"].groupby("line", sort=False).max())
    return wide


LOW_IS_GOOD = ("CRPS", "log loss")
NOT_RANKED = ("...", "CPU", "50%", "90%")


def lead(results: pd.DataFrame) -> pd.DataFrame:
    """How far ours are ahead of the best peer that answered for every table, and in how many."""
    found = []
    for line, of_line in results.groupby("line", sort=False):
        wide = of_line.groupby(["table", "model"], sort=False)["value"].mean().unstack(sort=False)
        wide = -wide if str(line).startswith(LOW_IS_GOOD) else wide
        peers = wide.drop(columns=[*OURS], errors="ignore").dropna(axis=1)
        if peers.empty or str(line).startswith(NOT_RANKED):
            continue
        best = peers.mean().idxmax()
        row: dict[str, object] = {"line": line, "best peer": best}
        for model in wide.columns.intersection([*OURS]):
            ahead = (wide[model] - wide[best]).dropna()
            row[model] = f"{ahead.mean():+.3f} ± {ahead.sem():.3f}"
            row[f"tables {model} is ahead"] = f"{(ahead > 0).sum()} of {ahead.size}"
        found.append(row)
    return pd.DataFrame(found)


def test_density_of_tables(data_folder: object, tmp_path: Path) -> None:
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    with RESULTS.open("w") as kept:
        lines = csv.DictWriter(kept, ["table", "seed", "model", "line", "value"])
        lines.writeheader()
        for row in contest(tmp_path):
            lines.writerow(row)
            kept.flush()
    results = pd.read_csv(RESULTS)
    absent = pd.DataFrame(json.loads((tmp_path / "answers" / "absent.json").read_text()))
    if len(absent):
        print(f"not answered\n{absent.to_string(index=False)}")
    counts = {
        "tables": (results["table"].nunique(), len({*MIXED, *REALS})),
        "models": (results["model"].nunique(), len(OURS) + len(PEERS)),
    }
    show("density/scores", summary(results), counts=counts)
    ahead = lead(results)
    show("density/ahead", ahead, counts=counts)
    errors = ahead[ahead["line"] == "planted errors, average precision"]
    if "trimmed pool" in errors:
        assert errors["trimmed pool"].str.startswith("+").all()


def test_density_of_the_demo() -> None:
    """Cells below a tail where nothing was planted, and how many chance puts there."""
    lines = []
    for seed in range(DEMOS):
        table, _ = demo_tables(np.random.default_rng(seed))
        cells = [name for name in table if name != TARGET]
        for name in ("trimmed", "trimmed pool"):
            density = OURS[name].make().set_params(categorical_features=[TARGET]).fit(table)
            surprise = density.surprise(table).sel(column=cells)
            log_tail = surprise["log_tail"].to_numpy()
            log_tail = log_tail[~np.isnan(log_tail)]
            n, confirmed = log_tail.size, tails_among(-log_tail)
            listed = int((false_discovery_control(confirmed) <= 0.1).sum())  # As by the report.
            if name == "trimmed pool":
                assert listed < 2
                assert all((confirmed < tail).sum() < 2 * n * tail for tail in TAILS)
            row: dict[str, object] = {"seed": seed, "model": name, "cells": n}
            for tail in TAILS:
                row[f"chance below {tail:g}"] = round(n * tail)
                row[f"below {tail:g}"] = int((log_tail < np.log(tail)).sum())
            row["at a false discovery rate of .1"] = int(surprise["stands_out"].sum())
            lines.append(row | {"listed by the report": listed})
    show("density/demo", lines, counts={"seeds": (DEMOS, 2)})
    for row in lines:
        if row["model"] == "trimmed pool":
            assert row["below 0.01"] < 2 * row["chance below 0.01"]
            assert row["at a false discovery rate of .1"] < 0.003 * row["cells"]
