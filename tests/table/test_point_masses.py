"""Which values of a column are point masses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesrbf.table.columns import learn_columns
from bayesrbf.table.encode import (
    AHEAD,
    OTHERS,
    ROWS_OF_POINT_MASS,
    SHARE,
    decode,
    encode,
    find_point_masses,
)

SPREAD = np.arange(1.0, 96.0)


def column(n_spiked: int, others: np.ndarray = SPREAD, spike: float = 0.0) -> np.ndarray:
    """A value so many times, and others once each."""
    return np.r_[np.full(n_spiked, spike), others]


def point_masses_of(cells: np.ndarray) -> tuple[float, ...]:
    return find_point_masses(cells, np.ones(cells.size))


def test_a_frequent_value_is_an_atom_wherever_it_lies() -> None:
    for spike in (0.0, 50.5, 200.0):
        assert point_masses_of(column(20, spike=spike)) == (spike,)
    assert point_masses_of(np.r_[column(20), np.full(20, 300.0)]) == (0.0, 300.0)


def test_each_condition_counts() -> None:
    few, many = np.arange(1.0, 20.0), np.arange(1.0, 191.0)
    assert point_masses_of(column(int(ROWS_OF_POINT_MASS) - 1, few)) == ()
    assert point_masses_of(column(int(ROWS_OF_POINT_MASS), few)) == (0.0,)
    assert SHARE * (10 + many.size) == 10
    assert point_masses_of(column(9, many)) == ()
    assert point_masses_of(column(10, many)) == (0.0,)
    beside = np.repeat(SPREAD[:12], 5)
    assert point_masses_of(column(int(AHEAD * 5) - 1, beside)) == ()  # too near to its neighbour
    assert point_masses_of(column(int(AHEAD * 5), beside)) == (0.0,)
    assert point_masses_of(column(50, np.arange(1.0, OTHERS))) == ()  # a coarse scale
    assert point_masses_of(column(50, np.arange(1.0, OTHERS + 1))) == (0.0,)


@pytest.mark.parametrize("n_levels", [2, 5, 11])
def test_whole_numbers_of_a_coarse_scale_are_no_point_masses(n_levels: int) -> None:
    assert (
        point_masses_of(np.random.default_rng(0).binomial(n_levels, 0.4, 500).astype(float)) == ()
    )


def test_a_row_counts_as_often_as_it_weighs() -> None:
    cells = column(3)
    weights = np.where(cells == 0, 7.0, 1.0)
    assert find_point_masses(cells, np.ones(cells.size)) == ()
    assert (
        find_point_masses(cells, weights)
        == find_point_masses(column(21), np.ones(21 + SPREAD.size))
        != ()
    )
    holes = np.r_[cells, np.full(1000, np.nan)]  # a missing cell is no cell of the column
    assert find_point_masses(holes, np.r_[weights, np.ones(1000)]) == find_point_masses(
        cells, weights
    )


def test_an_empty_column_has_none() -> None:
    assert point_masses_of(np.full(5, np.nan)) == ()


def test_encoded_cells_come_back() -> None:
    X = np.column_stack([column(20), np.r_[SPREAD, np.full(20, np.nan)]])
    X[3] = np.nan
    columns = replace(learn_columns(X), point_masses=((0.0,), ()))
    rows = encode(X, columns)
    (code,) = columns.codes
    assert (code.name, code.levels) == ("x0 is", ("another value", 0.0))
    at = rows.codes[:, 0]
    np.testing.assert_array_equal(at == 1, X[:, 0] == 0)
    np.testing.assert_array_equal(at == -1, np.isnan(X[:, 0]))
    assert np.isnan(rows.real[at == 1, 0]).all()
    np.testing.assert_array_equal(decode(rows.real, rows.codes, columns, X), X)
    np.testing.assert_array_equal(encode(-X, columns).codes, rows.codes)  # -0.0 is 0.0
