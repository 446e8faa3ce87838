"""What a report costs: CPU seconds, bytes of its model, seconds until one row is answered."""

from __future__ import annotations

import resource
import subprocess
import sys
from functools import partial
from pathlib import Path
from shutil import rmtree
from statistics import median
from time import process_time

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

import bayesrbf
from bench.figures import Row, show
from bench.test_stack import chosen
from tests.measured import COST, part


def wine() -> pd.DataFrame:
    """170 rows of wine."""
    found = load_wine(as_frame=True)
    table = found.frame.assign(target=found.target_names[found.target])
    return table.sample(170, random_state=0)


def mixed(n_rows: int, n_reals: int, n_categories: int, seed: int) -> pd.DataFrame:
    """Columns that three hidden factors move, some skew, some rounded; 5 % of the cells missing."""
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(n_rows, 3))
    columns: dict[str, np.ndarray] = {}
    for j in range(n_reals):
        x = factors @ rng.normal(size=3) + rng.normal(size=n_rows)
        x = (np.exp(x / 2), np.round(10 * x), x, x)[j % 4]
        columns[f"r{j}"] = np.where(rng.random(n_rows) < 0.05, np.nan, np.round(x, 3))
    for j in range(n_categories):
        levels = rng.integers(2, 7)
        scores = factors @ rng.normal(size=(3, levels)) + rng.gumbel(size=(n_rows, levels))
        cells = np.array([f"v{i}" for i in range(levels)], object)[scores.argmax(1)]
        cells[rng.random(n_rows) < 0.05] = None
        columns[f"c{j}"] = cells
    bad = rng.random(n_rows) < 1 / (1 + np.exp(1 - factors @ [1.5, -1, 0.5]))
    return pd.DataFrame(columns).assign(target=np.where(bad, "bad", "good"))


TABLES = {
    "wine, 170 x 13": wine,
    "mixed, 900 x 38": lambda: mixed(900, 20, 18, 1),
    "mixed, 3,772 x 28": lambda: mixed(3772, 7, 21, 2),
}


ASKED: dict[str, tuple[float | None, float | None]] = {
    "wine, 170 x 13": (None, 2.0),
    "mixed, 900 x 38": (60.0, None),
    "mixed, 3,772 x 28": (180.0, None),
}
"""CPU seconds of a report and MB of its model that were asked."""


def test_cost_of_a_report(tmp_path: Path) -> None:
    """With its defaults, kernels compiled before; one row with its intervals, after loading."""
    rows = [
        part("report", {"table": name}, partial(cost, name, tmp_path), COST)
        for name in chosen(TABLES, "BAYESRBF_TABLES")
    ]
    told = pd.DataFrame(rows).drop(columns="commit")
    told.insert(2, "asked", [ASKED[name][0] for name in told["table"]])
    told.insert(4, "asked, MB", [ASKED[name][1] for name in told["table"]])
    digits = {
        "CPU seconds": 0,
        "asked": 0,
        "MB": 2,
        "asked, MB": 0,
        "first row": 2,
        "later rows": 2,
    }
    counts = {"tables": (len(rows), len(TABLES))}
    show("report", told.astype(object).where(told.notna(), None), digits, counts, COST)
    for row in rows:
        most = ASKED[str(row["table"])][1]
        assert most is None or float(row["MB"] or 0) <= most, row
    assert (told["first row"] <= 3 * told["later rows"]).all()  # Nothing is left to be made.


def cost(name: str, folder: Path) -> Row:
    """CPU seconds of the command, size of the model, CPU seconds of one row."""
    file, out = folder / "table.csv", folder / "out"
    TABLES[name]().to_csv(file, index=False)
    words = [sys.executable, "-m", "bayesrbf", "report", file, "--target", "target", "--out", out]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(list(map(str, words)), check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    model = bayesrbf.load(out / "model.safetensors")
    row = pd.read_csv(file).drop(columns="target").iloc[[3]]
    taken = []
    for _ in range(6):
        start = process_time()
        model.uncertainty(row)
        taken.append(process_time() - start)
    size = (out / "model.safetensors").stat().st_size / 1e6
    rmtree(out)
    return {
        "CPU seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "MB": size,
        "first row": taken[0],
        "later rows": median(taken[1:]),
    }
