"""Hidden cells are cells that were never there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesrbf.base.missing_fraction import missing_fraction_of
from bayesrbf.table.columns import learn_columns
from bayesrbf.table.encode import encode, hide, observed_cells, replaced, with_column

X = np.array(
    [["b", 1.5, True, 3.0], [None, 2.5, False, None], ["a", None, None, 4.0]], dtype=object
)


@pytest.mark.parametrize("point_masses", [(), ((1.5,), (3.0, 4.0))])
@pytest.mark.parametrize("seed", range(4))
def test_a_hidden_cell_is_as_a_missing_one(
    seed: int, point_masses: tuple[tuple[float, ...], ...]
) -> None:
    columns = replace(learn_columns(X), point_masses=point_masses)
    hidden = np.random.default_rng(seed).random(X.shape) < 0.5
    expected = encode(np.where(hidden, None, X), columns)
    found = hide(encode(X, columns), hidden, columns)
    np.testing.assert_array_equal(found.real, expected.real)
    np.testing.assert_array_equal(found.codes, expected.codes)
    present = np.array([[cell is not None for cell in row] for row in X])
    np.testing.assert_array_equal(observed_cells(found, columns), present & ~hidden)


@pytest.mark.parametrize("missingness", ["ignorable", "informative"])
def test_the_share_of_missing_cells_counts_columns(missingness: str) -> None:
    """Whatever a column has in a row: two reals, a real and a point mass, an indicator."""
    some = {"column_kinds": {3: "angle:24"}, "missingness": missingness}
    columns = replace(learn_columns(X, **some), point_masses=((1.5,), (), ()))
    hidden = np.random.default_rng(0).random((64, *X.shape)) < 0.5
    for mask in hidden:
        rows = hide(encode(X, columns), mask, columns)
        expected = 1 - observed_cells(rows, columns).mean(axis=1)
        np.testing.assert_allclose(missing_fraction_of(rows, columns.column_of), expected)


def test_a_mask_goes_with_its_cell_and_with_no_other() -> None:
    columns = learn_columns(X, missingness="informative")
    rows = encode(X, columns)
    for column in range(X.shape[1]):
        hidden = np.zeros(X.shape, dtype=bool)
        hidden[:, column] = True
        codes = hide(rows, hidden, columns).codes
        masks = [place == column for place in columns.masked]
        kept = rows.codes[:, len(columns.levels) :]
        np.testing.assert_array_equal(codes[:, len(columns.levels) :], np.where(masks, -1, kept))


@pytest.mark.parametrize("point_masses", [(), ((1.5,), (3.0, 4.0))])
@pytest.mark.parametrize("seed", range(4))
def test_cells_of_another_row_are_as_if_they_had_stood_there(
    seed: int, point_masses: tuple[tuple[float, ...], ...]
) -> None:
    columns = replace(learn_columns(X), point_masses=point_masses)
    taken, others = np.random.default_rng(seed).random(X.shape) < 0.5, X[::-1]
    expected = encode(np.where(taken, others, X), columns)
    found = replaced(encode(X, columns), encode(others, columns), taken, columns)
    np.testing.assert_array_equal(found.real, expected.real)
    np.testing.assert_array_equal(found.codes, expected.codes)


def test_a_measured_column_is_as_if_it_had_been_observed() -> None:
    table = np.array([[1.5, 3, 1], [2.5, 0, np.nan], [np.nan, 2, 2], [0.5, np.nan, 1]])
    columns = learn_columns(table, categorical_features=[2])
    columns = replace(columns, point_masses=((0.5,), ()))
    rows = encode(table, columns)
    for position, cells in enumerate(([0.5, 1.0, 2.0, 0.5], [7, 0, 1, 2], [2, 1, 1, 2])):
        whole = table.copy()
        whole[:, position] = cells
        codes = np.array(cells, dtype=float) - (position == 2)  # codes of levels that start at 1
        found, expected = with_column(rows, position, codes, columns), encode(whole, columns)
        np.testing.assert_array_equal(found.real, expected.real)
        np.testing.assert_array_equal(found.codes, expected.codes)


def test_a_mask_stays_with_a_measured_cell() -> None:
    columns = learn_columns(X, missingness="informative")
    rows = encode(X, columns)
    masks = rows.codes[:, len(columns.levels) :]
    taken = np.ones(X.shape, dtype=bool)
    whole = replaced(rows, encode(X[::-1], columns), taken, columns)
    np.testing.assert_array_equal(whole.codes[:, len(columns.levels) :], masks)
    measured = with_column(rows, 3, np.full(3, 2.0), columns)
    np.testing.assert_array_equal(measured.codes[:, len(columns.levels) :], masks)
