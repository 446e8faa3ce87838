"""Cells that look wrong are listed at the rate that is told, and judged as their class has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayesrbf import MixtureDensity
from bayesrbf.app.report.density import JudgedTable, judge_table
from bayesrbf.app.report.filled import HeldOutCells
from bayesrbf.app.report.filled import compute as read_imputations
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.oddities import odd_cells
from bayesrbf.datasets import TARGET, demo_tables
from bayesrbf.mixture.cells import cell_law, masked_cells
from bayesrbf.table.encode import encode
from tests.app.report.test_collect import job

TABLES, ROWS, PLANTED = 10, 100, 4


def reals(X: pd.DataFrame, y: Any) -> Job:
    """A job on real columns."""
    return job(X=X, y=pd.Series(y, dtype=object), kinds=dict.fromkeys(X, "real"))


def listed(density: MixtureDensity, X: pd.DataFrame) -> tuple[set[tuple[str, str]], int]:
    """Row and column of the cells that look wrong, and how many there are."""
    judged = JudgedTable(density, X, density.surprise(X), np.zeros(len(X)), "")
    cells, found = odd_cells(reals(X, ["a", "b"] * (len(X) // 2)), judged)
    return {(cell.row, cell.column) for cell in cells}, found


def test_on_tables_of_the_density_itself_as_many_are_listed_as_the_rate_allows() -> None:
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal(np.zeros(4), 0.4 * np.eye(4) + 0.6, 400)
    columns = [f"c{j}" for j in range(4)]
    density = MixtureDensity(random_state=0).fit(pd.DataFrame(X, columns=columns))
    by_chance, wrong, planted = 0, [], []
    for _ in range(TABLES):
        table = density.sample(ROWS)
        by_chance += listed(density, table)[1] > 0
        for row, column in zip(rng.permutation(ROWS)[:PLANTED], columns, strict=True):
            table.loc[row, column] += 15 * rng.choice([-1, 1])
        errors = {(str(row + 1), c) for row, c in np.argwhere(table.abs().to_numpy() > 9)}
        errors = {(row, columns[int(c)]) for row, c in errors}
        places, found = listed(density, table)
        assert found == len(places)
        planted.append(len(errors & places) / len(errors))
        wrong.append(len(places - errors) / max(found, 1))
    assert by_chance <= 3  # of 10 at one in ten: more once in a hundred times
    assert np.mean(planted) > 0.9
    assert np.mean(wrong) <= 0.1


def test_cells_that_can_be_filled_in_are_counted_and_angles_are_directions() -> None:
    """A column without a cell stays empty; the direction between 350 and 10 degrees is 0."""
    rng = np.random.default_rng(0)
    north = np.where(rng.random(60) < 0.2, np.nan, rng.normal(0, 8, 60) % 360)
    X = pd.DataFrame({"wind": north, "empty": np.nan, "size": rng.normal(size=60)})
    kinds = {"wind": "angle", "empty": "real", "size": "real"}
    asked = job(X=X, y=pd.Series(["a", "b"] * 30, dtype=object), kinds=kinds)
    table = X.assign(outcome=asked.y)
    density = MixtureDensity(
        1,
        column_kinds={"wind": asked.kinds["wind"]},
        categorical_features=["outcome"],
        random_state=0,
    ).fit(table)
    judged = JudgedTable(density, table, density.surprise(table), np.zeros(60), "")
    none = np.zeros(0)
    found = read_imputations(asked, judged, HeldOutCells(none, none, none))
    assert found.missing == int(np.isnan(north).sum())
    assert {cell.column for cell in found.examples} == {"wind"}
    for cell in found.examples:
        assert np.cos(np.deg2rad(float(cell.value))) > 0.99
        assert 4 < float(cell.interval.removeprefix("± ")) < 16


@pytest.mark.slow
def test_the_label_has_its_say_where_it_alone_tells_a_cell() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 120)
    X = pd.DataFrame(rng.normal(size=(240, 3)), columns=["shifted", "one", "other"])
    X["shifted"] += np.where(y == "b", 4.0, 0.0)
    judged = judge_table(reals(X, y))
    expected = judged.cells["expected"].sel(column="shifted").to_numpy().astype(float)
    assert expected[y == "b"].mean() - expected[y == "a"].mean() > 3.0
    assert "knows no classes" not in judged.message


def test_a_density_that_knows_no_classes_is_said_to_know_none() -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(20, 2)), columns=["one", "other"])
    judged = judge_table(reals(X, ["a", "b"] * 10))  # too few rows for a second component
    assert {one.n_components for one in judged.density.candidates_} == {1}
    assert "knows no classes" in judged.message


def demo(planted: int = 0) -> tuple[Job, pd.DataFrame, np.ndarray]:
    """The demo with errors planted in some of its cells, its truth, and where errors are."""
    table, truth = demo_tables(np.random.default_rng(0))
    X, rng = table.drop(columns=TARGET).copy(), np.random.default_rng(1)
    marks = np.zeros(X.shape, dtype=bool)
    known = np.argwhere(X.notna().to_numpy() & (X.to_numpy() > 0))
    for row, column in rng.permutation(known)[:planted].tolist():
        X.iat[row, column] *= rng.choice([10.0, 0.1, -1.0])
        marks[row, column] = True
    return reals(X, table[TARGET]), truth, marks


@pytest.fixture(scope="module")
def judged_demo() -> tuple[Job, pd.DataFrame, JudgedTable]:
    table, truth, _ = demo()
    return table, truth, judge_table(table)


@pytest.mark.slow
def test_the_demo_has_fewer_than_twice_the_cells_that_chance_explains(judged_demo: Any) -> None:
    """Nothing is planted there; at the threshold of an empty list, one cell is chance's."""
    table, _, judged = judged_demo
    assert odd_cells(table, judged)[1] < 2


@pytest.mark.slow
def test_errors_in_the_demo_are_found() -> None:
    table, _, marks = demo(24)
    cells, found = odd_cells(table, judge_table(table))
    columns = list(table.X.columns)
    right = sum(marks[int(cell.row) - 1, columns.index(cell.column)] for cell in cells)
    assert right >= 0.85 * min(24, len(cells))
    assert 18 <= found <= 33  # beside the planted ones, cells that are right and far


@pytest.mark.slow
def test_hidden_cells_of_the_demo_are_filled_in_rightly_in_each_class(judged_demo: Any) -> None:
    table, truth, judged = judged_demo
    density, columns = judged.density, judged.density.columns_
    names = list(columns.real_names)
    whole = judged.table.assign(**{name: truth[name] for name in names})
    rest, rows = (density.model_.standardise(encode(one, columns)) for one in (judged.table, whole))
    found = masked_cells(rest, rows, cell_law(density.model_, columns))
    misses = (found.expected - truth[names].to_numpy()) / truth[names].std().to_numpy()
    for label in ("benign", "malignant"):
        for labelled in (True, False):
            some = (truth[TARGET] == label).to_numpy() & (table.y.notna() == labelled).to_numpy()
            tails = found.tail[some]
            assert (tails[~np.isnan(tails)] > 0.1).mean() == pytest.approx(0.92, abs=0.04)
            assert abs(np.nanmean(misses[some])) < 0.05
