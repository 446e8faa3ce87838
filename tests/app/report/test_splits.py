"""Groups and times decide what is held out: no patient on both sides, nothing learnt from later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesrbf import ReadTable, TableError, read_table
from bayesrbf.app.report.families import FAMILIES, peers
from bayesrbf.app.report.held_out import Fitter, hold_out
from bayesrbf.app.report.job import Job, splits_of
from bayesrbf.app.report.run import prepare
from bayesrbf.fit.held_out import grouped_folds

LABELS = st.lists(st.integers(-1, 2), min_size=8, max_size=50)


@given(LABELS, st.integers(2, 12), st.integers(2, 5), st.integers(0, 9))
def test_no_group_is_on_both_sides_and_every_class_is_taught(
    given_labels: list[int], n_groups: int, n_folds: int, seed: int
) -> None:
    labels = np.array([0, 1, *given_labels])
    groups = np.random.default_rng(seed).integers(0, n_groups, labels.size)
    splits = splits_of(labels, n_folds, seed, groups)
    held = np.concatenate([test for _, test in splits.pairs()]) if splits.pairs() else []
    assert len(held) == len(set(held))
    for train, test in splits.pairs():
        assert (labels[test] >= 0).all()
        assert not set(groups[train]) & set(groups[test])
        assert set(labels[train][labels[train] >= 0]) == set(labels[labels >= 0])


def test_groups_are_dealt_to_folds_of_similar_size() -> None:
    groups = np.repeat(np.arange(40), 5)
    labels = np.random.default_rng(0).integers(0, 2, 200)
    sizes = np.bincount(grouped_folds(labels, groups, 5, 0))
    assert sizes.min() > 0.8 * sizes.max()


@given(LABELS, st.lists(st.integers(0, 9), min_size=60, max_size=60), st.integers(2, 5))
def test_only_earlier_rows_teach_and_the_later_half_is_judged(
    given_labels: list[int], ranks: list[int], n_folds: int
) -> None:
    labels = np.array([0, 1, *given_labels])
    times = np.array(ranks, dtype=float)[: labels.size]
    times[::7] = np.nan
    splits = splits_of(labels, n_folds, 0, None, times)
    for train, test in splits.pairs():
        known = times[train][~np.isnan(times[train])]
        assert known.size == 0 or known.max() < times[test].min()
        assert not np.isnan(times[test]).any()
    assert len(splits.pairs()) <= n_folds
    scored = int((splits.folds >= 0).sum())
    assert scored <= (int((labels >= 0).sum()) + 1) // 2


def table(folder: object, n: int = 60, **options: str) -> ReadTable:
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(n // 3), 3)
    y = np.repeat(rng.integers(0, 2, n // 3), 3)
    frame = pd.DataFrame(
        {
            "who": [f"P{i}" for i in who],
            "when": pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"),
            "mark": np.repeat(rng.normal(size=n // 3), 3),  # tells the patient, not the class
            "x": y + rng.normal(size=n),
            "y": np.where(y, "sick", "well"),
        }
    )
    frame.to_csv(f"{folder}/t.csv", index=False)
    left = [name for name in ("who", "when") if name not in options.values()]
    return read_table(f"{folder}/t.csv", "y", ignore=left, **options)  # type: ignore[arg-type]


def job(read: ReadTable, family: str = "median_lvq", judged: bool = True) -> Job:
    return prepare(
        read,
        title="t",
        family=family,
        inference="map",
        seed=0,
        facts=(),  # type: ignore[arg-type]
        judged=judged,
    )


def test_a_patient_known_by_heart_is_worth_nothing_where_patients_are_held_out(
    tmp_path: object,
) -> None:
    """A classifier that looks patients up is right about rows at random, not about new patients."""

    class Lookup:
        def __init__(self, X: pd.DataFrame, y: pd.Series) -> None:
            self.classes_ = np.array(["sick", "well"], dtype=object)
            self.X, self.sick = X["mark"].to_numpy(), (y == "sick").to_numpy(float)

        def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
            near = np.abs(X["mark"].to_numpy()[:, None] - self.X).argmin(axis=1)
            p = 0.98 * self.sick[near] + 0.01
            return np.stack([p, 1 - p], axis=1)

    rates = []
    for options in ({}, {"group": "who"}):
        asked = job(table(tmp_path, **options))
        held = hold_out(asked.X, asked.y, {"lookup": Lookup}, splits=asked.splits)
        rows = held.scored
        right = held.probabilities["lookup"][rows].argmax(1) == held.labels[rows]
        rates.append(right.mean())
    assert rates[0] > 0.95
    assert rates[1] < 0.75


@pytest.mark.parametrize("family", ["median_lvq", "mixture"])
def test_calibration_keeps_groups_together(tmp_path: object, family: str) -> None:
    asked = job(table(tmp_path, group="who"), family)
    some = np.flatnonzero(np.arange(60) % 9 < 6)  # a training part of the validation
    model = FAMILIES[family].procedure(asked)(asked.X.iloc[some], asked.y.iloc[some]).model
    groups = pd.Series(asked.groups[some])
    units = pd.Series(model.fitted_.table.rows.units.numbers)
    if family == "mixture":  # exemplars order their rows anew
        assert (units.groupby(groups).nunique() == 1).all()
    assert units.nunique() == groups.nunique()
    assert model.temperature_ > 0


def test_the_job_says_how_rows_were_held_out(tmp_path: object) -> None:
    both = job(table(tmp_path, group="who", time="when"))
    assert both.notes[0].startswith("The latest 30 labelled rows were held out in 4 parts, each")
    assert "Rows of one group (20 groups) were never on both sides" in both.notes[0]
    assert "held out" not in job(table(tmp_path)).notes[0]


def test_a_fit_that_is_not_judged_holds_nothing_out_by_time_and_says_so(tmp_path: object) -> None:
    read = table(tmp_path, time="when")
    asked = job(read, judged=False)
    assert asked.times is None
    assert asked.notes[0].startswith("Column 'when' orders the rows and is no part of the model.")
    assert not any("were held out" in note for note in asked.notes)
    late = read.target.mask(read.target == "sick", "well")  # type: ignore[union-attr]
    late.iloc[-2:] = "sick"
    job(ReadTable(**{**vars(read), "target": late}), judged=False)


def test_times_that_teach_no_class_are_refused(tmp_path: object) -> None:
    read = table(tmp_path, time="when")
    late = read.target.mask(read.target == "sick", "well")  # type: ignore[union-attr]
    late.iloc[-2:] = "sick"
    with pytest.raises(TableError, match="leaves no row to be held out"):
        job(ReadTable(**{**vars(read), "target": late}))


@pytest.mark.slow
def test_copies_of_rows_are_on_one_side_of_every_split(tmp_path: Path) -> None:
    """Labels are coins, and every row stands there three times: a bad join."""
    rng = np.random.default_rng(4)
    rows = pd.DataFrame(rng.normal(size=(60, 4)).round(3), columns=list("abcd"))
    rows["y"] = np.array(["no", "yes"])[rng.integers(0, 2, 60)]
    pd.concat([rows] * 3).to_csv(tmp_path / "joined.csv", index=False)
    asked = replace(job(read_table(tmp_path / "joined.csv", "y"), "mixture"), folds=2)
    assert asked.notes[0].startswith("120 rows equal an earlier row in every cell")
    cells = asked.X.apply(tuple, axis=1).to_numpy()
    for train, test in asked.splits.pairs():
        assert not set(cells[train]) & set(cells[test])
    fitters = {"mixture": FAMILIES["mixture"].procedure(asked), **peers(asked)}

    def fitted(name: str) -> Fitter:
        return lambda X, y: getattr(found := fitters[name](X, y), "model", found)

    names = ["mixture", "logistic regression", "random forest"]
    held = hold_out(asked.X, asked.y, {one: fitted(one) for one in names}, splits=asked.splits)
    for name in names:
        p = held.probabilities[name][held.scored, held.labels[held.scored]]
        assert (p > 0.5).mean() < 0.65, name
