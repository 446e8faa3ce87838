"""Did a change of speed change the answers? A stack of an earlier commit beside today's.

Both are fitted to the same rows. With real labels, the log loss of new rows is compared. With
labels of teachers, whose class probabilities are known, it is how often bootstrap intervals hold
the truth, and their width. ``BAYESRBF_BEFORE`` names a checkout of the earlier commit.

``BAYESRBF_TABLES`` and ``BAYESRBF_TEACHERS`` choose (beginnings of names, with commas),
``BAYESRBF_SEEDS`` sets the number of splits for log losses (3); intervals have one. Results are
kept as they come.
"""

from __future__ import annotations

import os
import pickle
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import pytest

from bench.figures import Row, show
from bench.stack_tables import split
from bench.teachers import TEACHERS
from bench.test_intervals import JUDGED, LEVELS, Said, judge, rows_for
from bench.test_real_tables import scores
from bench.test_stack import chosen
from bench.test_wait import BEFORE, FITTED, TREES, alone
from tests.measured import part

SEEDS: Final = int(os.environ.get("BAYESRBF_SEEDS", "3"))
ROWS: Final = 200
"""Rows of the fits whose intervals are compared."""
LOSS: Final = "log loss"
INTERVALS: Final = ("50%", "90%", "width", "delivered")
PROGRAM: Final = """
import pickle, sys, warnings
import numpy as np
from bayesrbf import StackedClassifier
warnings.simplefilter("ignore")
X, y, X_new, levels = pickle.load(open(sys.argv[1], "rb"))
model = StackedClassifier(random_state=0).fit(X, y)
said = {"point": model.predict_proba(X_new)}
if levels:
    model.refine("bootstrap")
    ends = [model.uncertainty(X_new, prob=level) for level in levels]
    said["delivered"] = model.predict_proba(X_new)
    said["ends"] = np.array([[u["lower"].to_numpy(), u["upper"].to_numpy()] for u in ends])
pickle.dump(said, open(sys.argv[2], "wb"))
"""


def answers(tree: Path, folder: Path, rows: tuple[object, ...]) -> dict[str, np.ndarray]:
    """What the stack of a version says in a process of its own."""
    given, said = folder / "rows.pickle", folder / "answers.pickle"
    given.write_bytes(pickle.dumps(rows))
    alone(tree, folder, ["-c", PROGRAM, given, said])
    return pickle.loads(said.read_bytes())


def losses(folder: Path, table: str, holes: bool, seed: int) -> Row:
    """Log loss of new rows, by version."""
    rows = split(table, seed, holes)
    found: Row = {}
    for name, tree in TREES.items():
        p = answers(tree, folder, (rows.X, rows.y, rows.X_new, ()))["point"]
        found[f"{LOSS}, {name}"] = scores(p, rows.y_new)[LOSS]
    return found


def intervals(folder: Path, table: str, holes: bool, teacher: str) -> Row:
    """How often intervals hold a known truth, their width, and the divergence, by version."""
    data = rows_for(table, teacher, ROWS, holes, 0)
    found: Row = {}
    for name, tree in TREES.items():
        judged = dict.fromkeys(JUDGED, np.nan)
        if data is not None:
            judged = judge(
                Said(**answers(tree, folder, (data.X, data.y, data.X_new, LEVELS))), data.truth
            )
        found |= {f"{what}, {name}": judged[what] for what in INTERVALS}
    return found


def compared(rows: pd.DataFrame, what: str, holes: bool) -> Row:
    """Means over tables of a figure, by version; mean difference and its standard error."""
    by_table = rows.groupby("table", sort=False).mean(numeric_only=True).dropna()
    before, today = by_table[f"{what}, before"], by_table[f"{what}, today"]
    return {
        "figure": what,
        "cells": "30 % hidden" if holes else "complete",
        "tables": len(by_table),
        "before": before.mean(),
        "today": today.mean(),
        "difference": (today - before).mean(),
        "se": (today - before).sem(),
    }


def test_same_answers(data_folder: object, tmp_path: Path) -> None:
    if BEFORE is None:
        pytest.skip("BAYESRBF_BEFORE names no checkout of an earlier commit")
    lines, commits = [], []
    tables = chosen(FITTED, "BAYESRBF_TABLES")
    teachers = chosen(TEACHERS, "BAYESRBF_TEACHERS")
    for holes in (False, True):
        scored, judged = [], []
        for table in tables:
            for seed in range(SEEDS):
                key: Row = {"table": table, "holes": holes, "seed": seed, "measured": LOSS}
                scored.append(
                    part("same_answers", key, partial(losses, tmp_path, table, holes, seed))
                )
            for teacher in teachers:
                key = {"table": table, "holes": holes, "teacher": teacher, "measured": "intervals"}
                make = partial(intervals, tmp_path, table, holes, teacher)
                judged.append(part("same_answers", key, make))
        lines.append(compared(pd.DataFrame(scored).drop(columns="seed"), LOSS, holes))
        lines += [compared(pd.DataFrame(judged), what, holes) for what in INTERVALS]
        commits += [row["commit"] for row in (*scored, *judged)]
    counts = {
        "tables": (len(tables), len(FITTED)),
        "splits": (SEEDS, 3),
        "teachers": (len(teachers), len(TEACHERS)),
    }
    show("same_answers", lines, digits=4, counts=counts, commits=commits)
    behind = [line["difference"] - 2 * line["se"] for line in lines if line["figure"] == LOSS]
    assert max(behind) <= 0.0
