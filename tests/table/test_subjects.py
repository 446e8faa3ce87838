"""Copies of a row beyond chance, and groups, are one unit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesrbf import table
from bayesrbf.base.rows import Observations
from bayesrbf.datasets import load_table
from bayesrbf.table.order import copies_of, near_copies, subjects_of


def rows(real: np.ndarray, codes: np.ndarray | None = None) -> Observations:
    n = len(real) if codes is None else len(codes)
    codes = np.zeros((n, 0), int) if codes is None else codes
    return Observations(real.reshape(n, -1), codes, np.full(n, -1), np.ones(n))


def share_of_copies(of: Observations) -> float:
    """Of the rows that equal another one, the share that are copies."""
    copies = copies_of(of)
    _, place, counts = np.unique(table.distinct(of)[1], return_inverse=True, return_counts=True)
    equal = counts[place] > 1
    together = np.bincount(copies, minlength=copies.size)[copies] > 1
    assert not (together & ~equal).any()
    return float(together[equal].mean()) if equal.any() else 0.0


def noise(rng: np.random.Generator, n: int) -> dict[str, Observations]:
    """Tables of which a row is next to never drawn twice."""
    real = rng.normal(size=(n, 4))
    sexes = rng.integers(0, 2, (n, 1))
    return {
        "reals": rows(real.round(3)),
        "reals of two digits": rows(real.round(1)),
        "one real": rows(real[:, :1].round(5)),
        "a real and a level": rows(real[:, :1].round(5), sexes),
        "ids and a level": rows(np.zeros((n, 0)), np.c_[np.arange(n), sexes]),
        "ten questions of five answers": rows(np.zeros((n, 0)), rng.integers(0, 5, (n, 10))),
    }


@pytest.mark.parametrize("name", noise(np.random.default_rng(0), 2))
@pytest.mark.parametrize("n", [60, 300])
def test_rows_that_stand_there_three_times_are_copies(name: str, n: int) -> None:
    of = noise(np.random.default_rng(n), n)[name]
    assert share_of_copies(of.take(np.tile(np.arange(n), 3))) > 0.95
    some = of.take(np.append(np.arange(n), [0, 1, 1]))
    assert (copies_of(some)[n:] == [0, 1, 1]).all()


PEOPLE: dict[str, Callable[[np.random.Generator, int], Observations]] = {
    "three columns of few levels": lambda rng, n: rows(
        np.zeros((n, 0)), np.c_[rng.integers(0, 4, n), rng.integers(0, 2, (n, 2))]
    ),
    "age and sex": lambda rng, n: rows(
        rng.integers(20, 60, (n, 1)).astype(float), rng.integers(0, 2, (n, 1))
    ),
    "sex, once more in other words": lambda rng, n: rows(
        np.zeros((n, 0)), rng.integers(0, 2, (n, 1)) * [[1, 3, 1]]
    ),
    "few levels beside their names": lambda rng, n: rows(
        np.zeros((n, 0)),
        np.c_[rng.integers(0, 4, n), rng.integers(0, 2, (n, 1)) * [[1, 2]]],
    ),
    "nothing that differs": lambda rng, n: rows(np.ones((n, 2)), np.zeros((n, 1), int)),
    "one column of levels": lambda rng, n: rows(np.zeros((n, 0)), rng.integers(0, n, (n, 1))),
    "whole numbers": lambda rng, n: rows(rng.integers(0, 30, (n, 1)).astype(float)),
    "sixteen questions that two parties answer": lambda rng, n: rows(
        np.zeros((n, 0)),
        np.where(rng.random((n, 16)) < 0.04, 1, 0) ^ rng.integers(0, 2, (n, 1)),
    ),
}


@pytest.mark.parametrize("name", PEOPLE)
def test_people_who_are_alike_are_no_copies(name: str) -> None:
    of = PEOPLE[name](np.random.default_rng(1), 400)
    assert share_of_copies(of) < 0.05


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("raetsch_titanic", 0.0, 0.0),
        ("house_votes84", 0.0, 0.05),
        ("raetsch_flare_solar", 0.0, 0.01),
        ("soybean", 0.0, 0.3),
        ("raetsch_image", 0.95, 1.0),
        ("segment_test", 0.95, 1.0),
    ],
)
def test_on_real_tables(data_folder: Path, name: str, low: float, high: float) -> None:
    X = load_table(name).X if (data_folder / f"{name}.csv").exists() else pool(data_folder, name)
    of = table.encode(X, table.learn_columns(X))
    assert low <= share_of_copies(of) <= high
    # However often people are drawn, no larger part of them are copies.
    if high < 0.05:
        drawn = np.random.default_rng(0).choice(of.n_obs, 400)
        assert share_of_copies(of.take(drawn)) < 0.1


INDEPENDENT: dict[str, tuple[int, Callable[[np.random.Generator, int], Observations]]] = {
    "a value and a stage": (
        100,
        lambda rng, n: rows(rng.normal(50, 10, (n, 1)).round(1), rng.integers(0, 4, (n, 1))),
    ),
    "age, pressure and sex": (
        300,
        lambda rng, n: rows(
            np.c_[rng.integers(20, 90, n), rng.normal(130, 15, n).round()],
            rng.integers(0, 2, (n, 1)),
        ),
    ),
    "a value and age": (
        300,
        lambda rng, n: rows(np.c_[rng.normal(50, 10, n).round(1), rng.integers(20, 90, n)]),
    ),
    "age, sex and stage": (
        100,
        lambda rng, n: rows(
            rng.integers(20, 90, (n, 1)).astype(float),
            np.c_[rng.integers(0, 2, n), rng.integers(0, 4, n)],
        ),
    ),
}
"""Tables of people, some of whom are equal by chance, and their number."""


@pytest.mark.parametrize("name", INDEPENDENT)
def test_chance_is_that_of_the_table(name: str) -> None:
    """Of hundreds of rows some are equal, each improbably; a table three times over is more."""
    rng, (n, people) = np.random.default_rng(0), INDEPENDENT[name]
    drawn = [people(rng, n) for _ in range(40)]
    assert sum(share_of_copies(of) > 0 for of in drawn) <= 2
    assert sum(near_copies(of)[0] > 0.05 * n for of in drawn) <= 1
    few = people(rng, 60)
    assert share_of_copies(few.take(np.tile(np.arange(60), 3))) == 1


def test_rows_of_many_cells_are_copies_beside_rows_of_none() -> None:
    rng = np.random.default_rng(0)
    real = np.where(np.arange(100)[:, None] < 40, np.nan, rng.normal(size=(100, 3)).round(2))
    of = rows(real, rng.integers(0, 2, (100, 1))).take(np.tile(np.arange(100), 2))
    copies = copies_of(of) != np.arange(200)
    assert copies[140:].all()
    assert not copies[:140].any()


def test_rows_that_differ_in_one_cell_are_found() -> None:
    """A join repeats a patient with other values; an export leaves a cell empty."""
    rng, n = np.random.default_rng(0), 60
    people = np.tile(rng.normal(size=(n, 4)).round(3), (3, 1))
    joined = np.c_[people, rng.normal(5, 1, 3 * n).round(2)]
    assert near_copies(rows(joined)) == (2 * n, 4)
    groups = np.tile(np.arange(n), 3)
    subjects = subjects_of(np.arange(3 * n), groups)
    assert near_copies(Observations(**{**vars(rows(joined)), "subjects": subjects}))[0] == 0
    holes = people.copy()
    holes[n : 2 * n, 0] = np.nan
    holes[2 * n :, 1] = np.nan
    assert near_copies(rows(holes))[0] == n
    assert near_copies(rows(people[:n]))[0] == 0
    # All combinations of some levels, as of an experiment.
    factors = np.stack(np.meshgrid(*[np.arange(3)] * 4), axis=-1).reshape(-1, 4)
    assert near_copies(rows(np.zeros((81, 0)), factors))[0] == 0


def pool(folder: Path, name: str) -> pd.DataFrame:
    """All rows of a table of Raetsch's."""
    return pd.DataFrame(np.load(folder / f"{name}.npz")["x"].astype(float))


@given(st.integers(0, 10**6))
def test_neither_rows_nor_columns_have_an_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 40
    real = rng.normal(size=(n, 2)).round(1)
    real[rng.random((n, 2)) < 0.2] = np.nan
    of = rows(real, rng.integers(-1, 2, (n, 2))).take(rng.choice(n, n))
    order = rng.permutation(n)
    turned = Observations(of.real[order][:, ::-1], of.codes[order][:, ::-1], of.labels, of.weights)
    one, two = copies_of(of)[order], copies_of(turned)
    np.testing.assert_array_equal(one[:, None] == one, two[:, None] == two)


def test_labels_part_no_copies_and_rows_without_a_cell_are_none() -> None:
    real = np.array([[0.3123, 2.7]] * 2 + [[1.7654, 3.1]] + [[np.nan, np.nan]] * 2)
    of = Observations(real, np.zeros((5, 0), int), np.array([0, 1, 0, 0, 0]), np.ones(5))
    np.testing.assert_array_equal(copies_of(of), [0, 0, 2, 3, 4])


def test_groups_join_copies_and_those_who_have_none_are_alone() -> None:
    copies = np.array([0, 0, 2, 3, 4, 5])
    groups = np.array(["a", "b", "b", None, np.nan, "c"], dtype=object)
    subjects = subjects_of(copies, groups)
    assert subjects is not None
    assert len({*subjects.numbers[:3]}) == 1
    assert len({*subjects.numbers}) == 4
    np.testing.assert_allclose(subjects.counts, [1 / 3, 1 / 3, 1 / 3, 1, 1, 1])
    assert subjects_of(np.arange(3)) is None
    assert subjects_of(np.arange(3), np.array([7, 8, 9])) is None


def test_distinct_rows_stand_for_their_subjects() -> None:
    """Three copies are one unit, three people are three."""
    of = rows(np.array([[1.5], [1.5], [1.5], [2.5]]))
    people, _ = table.distinct(of)
    np.testing.assert_allclose(people.subject_counts, [3, 1])
    subjects = subjects_of(np.array([0, 0, 0, 3]))
    copies, _ = table.distinct(Observations(**{**vars(of), "subjects": subjects}))
    np.testing.assert_allclose(copies.subject_counts, [1, 1])
    np.testing.assert_allclose(copies.weights, [3, 1])
    again, _ = table.distinct(people)
    np.testing.assert_allclose(again.subject_counts, [3, 1])
