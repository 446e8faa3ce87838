"""Groups and times decide what is held out: no patient on both sides, nothing learnt from later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesrbf import ReadTable, TableError, performance, read_table
from bayesrbf.answers.comparisons import score_as_probability
from bayesrbf.app.report.families import FAMILIES, compare, peers
from bayesrbf.app.report.held_out import Fitter, HeldOutRows, hold_out
from bayesrbf.app.report.job import Job, splits_of
from bayesrbf.app.report.options import ANYTHING, Fitting
from bayesrbf.app.report.performance import event_among, read_score
from bayesrbf.app.report.run import prepare
from bayesrbf.app.report.subgroups import read_parts
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
    fitting = Fitting(family, inference="map", jobs=1)  # type: ignore[arg-type]
    return prepare(read, "t", fitting, judged=judged)


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
        held = hold_out(asked.X, asked.y, {"lookup": Lookup}, asked.splits)
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
    subjects = pd.Series(model.fitted_.table.rows.subjects.numbers)
    if family == "mixture":  # exemplars order their rows anew
        assert (subjects.groupby(groups).nunique() == 1).all()
    assert subjects.nunique() == groups.nunique()
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
    assert "'x' alone tells 40 rows from an earlier row" in asked.too_good  # visits of a patient
    assert "--group" in asked.too_good
    assert not job(table(tmp_path, group="who"), judged=False).too_good
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
    held = hold_out(asked.X, asked.y, {one: fitted(one) for one in names}, asked.splits)
    for name in names:
        p = held.probabilities[name][held.scored, held.labels[held.scored]]
        assert (p > 0.5).mean() < 0.65, name


def test_each_centre_is_held_out_and_taught_by_all_others(tmp_path: object) -> None:
    labels = np.array([0, 1, -1, 0, 1, 0, 1, 0])
    centres = pd.Series(["b", "a", "a", "b", "c", None, "a", "c"])
    splits = splits_of(labels, 5, 0, centres=centres)
    assert splits.centres == ("a", "b", "c")
    held = [sorted(test.tolist()) for _, test in splits.pairs()]
    assert held == [[1, 6], [0, 3], [4, 7]]
    for train, test in splits.pairs():
        assert set(train) | set(test) == set(range(8))
    assert "Each of 3 centres was held out in turn" in splits.message


def test_centres_have_figures_of_their_own(tmp_path: Path) -> None:
    read = centred(tmp_path)
    asked = job(read)
    assert asked.judged_apart
    assert asked.splits.numbers.size == 3
    assert "Each of 3 centres" in asked.notes[0]
    p = np.random.default_rng(0).random((len(read.frame), 2))
    p /= p.sum(axis=1, keepdims=True)
    held_out = HeldOutRows(("sick", "well"), asked.labels, asked.splits.folds, {"own": p})
    site, part = read_parts(asked, held_out, "own", np.arange(len(p)), np.full(p.shape, 0.3))
    assert (site.by, part.by) == ("site", "part")
    assert [one.name for one in part.parts] == ["left", "right"]
    inside = (asked.by["part"] == "left").to_numpy() & (asked.labels >= 0)
    focus = event_among(held_out, ANYTHING).column
    found = performance(asked.labels[inside] == focus, p[inside, focus]).events[0]
    assert part.parts[0].performance.auroc == found.auroc
    assert part.parts[0].width == pytest.approx(0.3)
    score = read_score(asked, held_out, "own")
    assert score is not None
    assert score.name == "score points"


def centred(tmp_path: Path) -> ReadTable:
    """A table with centres, parts and points of a score."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "x": rng.normal(size=90),
            "site": np.array(["a", "b", "c"])[np.arange(90) % 3],
            "part": rng.choice(["left", "right"], 90),
            "points": rng.integers(0, 12, 90),
            "y": rng.choice(["sick", "well"], 90),
        }
    )
    rows.to_csv(tmp_path / "t.csv", index=False)
    return read_table(tmp_path / "t.csv", "y", centre="site", by="part", score="points")


def test_centre_and_score_are_no_part_of_the_model_and_parts_are(tmp_path: Path) -> None:
    read = centred(tmp_path)
    assert list(read.frame) == ["x", "part"]
    assert read.options.beside == ("site", "points")
    assert read.scores is not None
    assert read.scores.dtype == float
    both = read_table(tmp_path / "t.csv", "y", by=["part", "x"], ignore="part")
    assert list(both.frame) == ["x", "site", "points"]
    assert list(both.by) == ["part", "x"]


@pytest.mark.parametrize(
    "options", [{"by": "y"}, {"score": "y"}, {"by": "points", "score": "points"}]
)
def test_one_column_is_not_two_things(tmp_path: Path, options: dict[str, str]) -> None:
    centred(tmp_path)
    with pytest.raises(TableError, match="cannot be what"):
        read_table(tmp_path / "t.csv", "y", **options)  # type: ignore[arg-type]


def test_times_and_centres_exclude_each_other(tmp_path: Path) -> None:
    read = centred(tmp_path)
    with pytest.raises(TableError, match="choose one"):
        job(ReadTable(**{**vars(read), "times": read.frame["x"]}))


def test_a_score_beside_three_classes_is_refused(tmp_path: Path) -> None:
    read = centred(tmp_path)
    three = read.target.mask(np.arange(90) % 5 == 0, "dead")  # type: ignore[union-attr]
    with pytest.raises(TableError, match="leave --score and --by out"):
        job(ReadTable(**{**vars(read), "target": three}))


def test_a_score_becomes_a_probability_of_the_event() -> None:
    rng, folds = np.random.default_rng(0), np.arange(400) % 5
    p = rng.random(400)
    happened = rng.random(400) < p
    same, how = score_as_probability(p, happened, folds)
    np.testing.assert_array_equal(same, p)
    turned, how = score_as_probability(1 - p, happened, folds)
    np.testing.assert_allclose(turned, p)
    assert "does not happen" in how
    points = 10 - 5 * np.log(p / (1 - p))
    points[::9] = np.nan
    mapped, how = score_as_probability(points, happened, folds)
    assert "logistic regression" in how
    assert np.isnan(mapped).tolist() == np.isnan(points).tolist()
    known = ~np.isnan(mapped)
    assert np.abs(mapped - p)[known].mean() < 0.05
    # A row has no part in the map of its own points.
    other = happened.copy()
    other[1] = ~other[1]
    again, _ = score_as_probability(points, other, folds)
    assert again[1] == mapped[1]


def test_a_useless_probability_is_not_turned_and_a_rule_is_points() -> None:
    rng, folds = np.random.default_rng(0), np.arange(200) % 5
    happened = rng.random(200) < 0.5
    for seed in range(5):
        p = np.random.default_rng(seed + 1).random(200)
        np.testing.assert_array_equal(score_as_probability(p, happened, folds)[0], p)
    rule, how = score_as_probability(happened.astype(float), happened, folds)
    assert "logistic regression" in how
    assert 0.5 < rule[happened].min() < 1
    large, _ = score_as_probability(1e9 * rng.normal(size=200), happened, folds)
    assert np.isfinite(large).all()
    with pytest.raises(ValueError, match="finite"):
        score_as_probability(np.array([np.inf, 1.0]), happened[:2], folds[:2])


def test_a_score_that_hardly_stands_anywhere_is_refused(tmp_path: Path) -> None:
    read = centred(tmp_path)
    scores = read.scores.where(np.arange(90) < 0)  # type: ignore[union-attr]
    with pytest.raises(TableError, match="alone; leave it out"):
        job(ReadTable(**{**vars(read), "scores": scores}))


def test_a_score_named_like_a_peer_stands_beside_it(tmp_path: Path) -> None:
    read = centred(tmp_path)
    points = read.scores.rename("logistic regression").mask(np.arange(90) % 3 == 0)  # type: ignore[union-attr]
    asked = replace(job(ReadTable(**{**vars(read), "scores": points, "centres": None})), folds=2)
    told = compare(asked, ("median_lvq",))
    names = [one.name for one in told.contestants]
    assert {"logistic regression", "score logistic regression"} <= set(names)
    assert told.rows == 60
    assert "60 rows with a score are compared" in told.note
