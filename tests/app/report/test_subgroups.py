"""Parts of the table in which probabilities do not come true are found, others are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bayesrbf.app.report.held_out import HeldOutRows
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.judgement import MODEL
from bayesrbf.app.report.reading import compute as read
from bayesrbf.app.report.subgroups import compute, groups_of
from bayesrbf.table.kinds import kind_named


def table(seed: int, n: int = 600) -> tuple[Job, np.ndarray]:
    """A job without labels of its own, and probabilities of its rows."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.integers(20, 80, n).astype(float),
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "ward": rng.choice(["north", "south", "west"], n),
        }
    )
    real = kind_named("real")
    kinds = {"age": real, "size": real, "ward": kind_named("categorical")}
    return Job("t", "y", X, pd.Series([None] * n), kinds, "map", 0), rng.uniform(0.1, 0.9, n)


def held_out(p: np.ndarray, truth: np.ndarray, seed: int) -> HeldOutRows:
    """What was said, and labels drawn from the truth."""
    labels = (np.random.default_rng(1000 + seed).random(p.size) < truth).astype(int)
    said = {MODEL: np.column_stack([1 - p, p])}
    return HeldOutRows(("no", "yes"), labels, np.arange(p.size) % 5, said)


def test_calibrated_probabilities_are_seldom_told_as_off() -> None:
    off = 0
    for seed in range(60):
        job, p = table(seed, 200)
        off += bool(compute(job, held_out(p, p, seed), MODEL).off)
    assert off / 60 <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 60)


@pytest.mark.parametrize("where", ["ward = west", "size missing", "age oldest"])
def test_a_part_that_is_off_is_the_first_to_be_named(where: str) -> None:
    job, p = table(0, 1200)
    inside = {
        "ward = west": (job.X["ward"] == "west").to_numpy(),
        "size missing": job.X["size"].isna().to_numpy(),
        "age oldest": (job.X["age"] > 65).to_numpy(),
    }[where]
    found = compute(job, held_out(p, np.where(inside, p**3, p), 0), MODEL)
    first = found.off[0]
    assert first.name.startswith(where.removesuffix(" oldest"))
    assert first.came.upper < first.predicted
    assert first.chance < 0.05 / found.looked_at


@pytest.mark.parametrize("planted", [True, False])
def test_classes_that_lack_cells_beyond_chance_are_named(planted: bool) -> None:
    job, _ = table(2)
    y = pd.Series(np.where(np.arange(600) % 3, "here", "absence"), dtype=object)
    y[::50] = None
    holes = (y == "absence") & (np.random.default_rng(0).random(600) < 0.8 * planted)
    reading = read(replace(job, X=job.X.mask(holes), y=y))
    for column in reading.columns:
        named = dict(column.missing_more)
        share = job.X[column.name].mask(holes).isna()[y == "absence"].mean()
        assert named == ({"absence": pytest.approx(share)} if planted else {})


def test_groups_of_a_column_are_all_of_its_rows_once() -> None:
    job, _ = table(1)
    rows = np.arange(0, 600, 2)
    for column in job.X.columns:
        inside = np.stack([m for name, m in groups_of(job, rows) if name.startswith(column)])
        assert (inside.sum(axis=0) == 1).all()
        assert inside.shape[1] == rows.size
