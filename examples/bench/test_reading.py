"""What reading notices: the troubles of tests/reading/planting.py in tables of others.

Each trouble is planted, three times, in each table that has the columns it needs. A line of the
output is a trouble: how often it was noticed, and what else was said. The last line are the tables
as they are.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from bench.figures import show
from tests.measured import COST
from tests.reading.planting import TROUBLES, heard, reals

TABLES = (
    "crabs",
    "credit_approval",
    "fgl",
    "glass",
    "heart_cleveland",
    "hepatitis",
    "horse_colic_train",
    "house_votes84",
    "pima_train2_missing",
    "pima_uci_missing",
    "segment_train",
    "sonar",
    "soybean",
    "vehicle",
)
SEEDS = 3


def load(folder: Path, name: str) -> pd.DataFrame:
    found = pd.read_csv(folder / f"{name}.csv")
    return found[[column for column in found if not column.startswith("extra_")]]


def test_planted_troubles(data_folder: Path, tmp_path: Path) -> None:
    tables = {name: load(data_folder, name) for name in TABLES}
    rows = []
    for trouble, planted in TROUBLES.items():
        noticed, others, tried = 0, 0, 0
        for name, table in tables.items():
            if "column" in trouble and len(reals(table)) < 3:
                continue
            for seed in range(SEEDS):
                made = planted.plant(table, np.random.default_rng(seed))
                told = heard(made, str(tmp_path))
                own = [sentence for sentence in told if planted.said in sentence]
                dressed = [s for s in told if "'planted' sets thousands apart" in s]
                noticed, tried = noticed + bool(own), tried + 1
                others += len(set(told) - set(own) - set(dressed))
                if not own:
                    print(f"    {trouble}: not in {name}, seed {seed}: {told[:2]}")
        rows.append(
            {"trouble": trouble, "planted": tried, "noticed": noticed, "other sentences": others}
        )
    quiet = {name: heard(table, str(tmp_path)) for name, table in tables.items()}
    said = sum(map(len, quiet.values()))
    rows.append({"trouble": "as they are", "planted": 0, "noticed": 0, "other sentences": said})
    show("reading", rows, about=COST)
    assert said == 0
    assert all(row["noticed"] == row["planted"] for row in rows)
