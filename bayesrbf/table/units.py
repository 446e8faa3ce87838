r"""Rows that are one unit: copies of a row, and rows of one group.

Equal rows are different people where their columns have few levels, and copies of one where they
do not. The expected number of other people with the cells of a row x is estimated from each
column j in turn, over the R different rows:

.. math:: \lambda_j(x) = n_j(x) \, \frac{c_j(x) - 1 + t_j}{R},

with n the number of different rows that differ from x in column j alone, c the number that have its
cell there, and t the share of rows whose cell there some other row has, or the share of the grid of
a real column that its values take up, if that is larger. The step of a grid is the last decimal.
Equal rows are copies beyond chance where the largest of these is below ``CHANCE``. No column is
taken to be independent of another: rows that agree in all columns but one show how often rows come
so close. Of a single column t is the share of its grid; levels take up all of theirs. A column that
is a function of another, and that one of it, counts once.

See Good (1953), The population frequencies of species and the estimation of population parameters,
Biometrika 40, for t.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from bayesrbf.base.rows import Observations, Units
from bayesrbf.table.order import differ, sort_keys, sorted_by

CHANCE: Final = 0.05
"""Expected number of other people with the cells of a row, below which equal rows are copies. On 30
real tables, copies of rows of many values have below .001 and people who are alike above .3."""


def with_units(
    rows: Observations,
    groups: Shaped[np.ndarray, " obs"] | None = None,
    *,
    relative: bool = True,
) -> tuple[Observations, int]:
    """Rows with their units, and how many rows are copies of an earlier one.

    ``relative`` weights are those over the median weight of a labelled row, whose copies are added
    up: rows of weight 2 are as many rows of weight 1.

    >>> cells = np.array([[0.12, 3.41], [0.57, 3.38], [0.12, 3.41]])
    >>> rows = Observations(cells, np.zeros((3, 0), int), np.zeros(3, int), np.full(3, 2.0))
    >>> of_units, repeated = with_units(rows)
    >>> of_units.weights, of_units.unit_counts, repeated
    (array([1., 1., 1.]), array([0.5, 1. , 0.5]), 1)
    """
    copies = copies_of(rows)
    rows = replace(rows, units=units_of(copies, groups))
    if relative:
        rows = replace(rows, weights=rows.weights / usual_weight(copies, rows))
    return rows, int((copies != np.arange(copies.size)).sum())


def usual_weight(copies: Int[np.ndarray, " obs"], rows: Observations) -> float:
    """Median weight of the labelled rows, whose copies are added up."""
    labelled = np.flatnonzero(rows.labels >= 0)
    _, place = np.unique(copies[labelled], return_inverse=True)
    weights = np.bincount(place, rows.weights[labelled])
    # One of the weights, so that whole ones stay whole where the usual row weighs one.
    return float(np.quantile(weights, 0.5, method="lower"))


def copies_of(rows: Observations) -> Int[np.ndarray, " obs"]:
    """Position of the first of the copies of every row, whatever their labels.

    It is the row's own where it has no copy, or is equal to others by chance.

    >>> cells = np.array([[0.12, 3.41], [0.57, 3.38], [0.12, 3.41], [0.95, 3.07]])
    >>> copies_of(Observations(cells, np.zeros((4, 0), int), np.array([0, 1, 1, -1]), np.ones(4)))
    array([0, 1, 0, 3])
    """
    cells, numbers = replace(rows, labels=np.zeros_like(rows.labels)), np.arange(rows.n_obs)
    keys = sort_keys(cells)
    if len(keys) == 1:  # a table of empty columns
        return numbers
    order = sorted_by(keys)
    first = differ(keys, order)
    place = np.empty(rows.n_obs, dtype=np.intp)
    place[order] = np.cumsum(first) - 1
    several = np.bincount(place) > 1
    if not several.any():
        return numbers
    if several.size == 1:  # columns without a second value tell nobody apart
        return numbers
    copies = several & (_expected(cells.take(order[first])) < CHANCE)
    leader = np.full(several.size, rows.n_obs)
    np.minimum.at(leader, place, numbers)
    return np.where(copies[place], leader[place], numbers)


def units_of(
    copies: Int[np.ndarray, " obs"], groups: Shaped[np.ndarray, " obs"] | None = None
) -> Units | None:
    """Units of the rows of a table: copies of a row (:func:`copies_of`), and rows of one group.

    None where every row is alone. A row without a group (None or NaN) is no part of any.

    >>> units_of(np.array([0, 1, 0, 3]), np.array(["a", "b", None, "b"])).numbers
    array([0, 1, 0, 1])
    """
    numbers = copies
    if groups is not None:
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        rows, codes = np.arange(copies.size), copies.size + _group_codes(groups)
        pairs = np.tile(rows, 2), np.append(copies, codes)
        size = int(codes.max()) + 1
        links = coo_array((np.ones(pairs[0].size), pairs), shape=(size, size))
        numbers = connected_components(links, directed=False)[1][: copies.size]
    units = Units.of(numbers)
    return units if units.split.any() else None


def _group_codes(groups: Shaped[np.ndarray, " obs"]) -> Int[np.ndarray, " obs"]:
    """A number for every group, and one of its own for a row without a group."""
    import pandas as pd

    codes = pd.factorize(np.asarray(groups, dtype=object))[0]
    alone = codes < 0
    codes[alone] = codes.max(initial=-1) + 1 + np.arange(alone.sum())
    return np.asarray(codes)


def _expected(rows: Observations) -> Float[np.ndarray, " obs"]:
    """Expected number of other people with the cells of a row, of different rows.

    That of a row without a cell has no bound: nothing is known of it.
    """
    codes, grids = _different([*rows.codes.T, *rows.real.T])
    # Sums of random words, one a cell, tell rows apart; without a column they differ by its word.
    words = np.random.default_rng(0)
    of_cells = [words.integers(2**63, size=code.max() + 1, dtype=np.uint64)[code] for code in codes]
    of_rows = np.sum(of_cells, axis=0, dtype=np.uint64)
    expected = np.zeros(rows.n_obs)
    for code, grid, of_column in zip(codes, grids, of_cells, strict=True):
        alike = np.bincount(code)[code]
        # A full grid says nothing beside other columns: ids that are levels fill theirs, too.
        of_grid = grid if grid < 1 or len(codes) == 1 else 0.0
        repeats = max(np.mean(alike > 1), of_grid)
        _, rest, sizes = np.unique(of_rows - of_column, return_inverse=True, return_counts=True)
        one = (sizes[rest] - 1) * (alike - 1 + repeats) / rows.n_obs
        np.maximum(expected, one, out=expected)
    expected[~_has_cells(rows)] = np.inf
    return expected


def _different(
    columns: Sequence[Shaped[np.ndarray, " obs"]],
) -> tuple[list[Int[np.ndarray, " obs"]], list[float]]:
    """Codes of the columns that part the rows differently, and the least share of their grids.

    A column that is another one in other words tells nothing more.
    """
    by_codes: dict[bytes, tuple[Int[np.ndarray, " obs"], float]] = {}
    for column in columns:
        _, first, code = np.unique(column, return_index=True, return_inverse=True)
        code = np.argsort(np.argsort(first))[code]  # numbered as they come
        key, grid = code.tobytes(), _share_of_grid(column)
        by_codes[key] = code, min(grid, by_codes[key][1] if key in by_codes else 1.0)
    codes, grids = zip(*by_codes.values(), strict=True)
    return list(codes), list(grids)


def _share_of_grid(column: np.ndarray) -> float:
    """Share of its grid that the different values of a column take up; 1 for levels.

    The step of the grid is the last decimal that a value has.
    """
    values = np.unique(column[~np.isnan(column)])
    if column.dtype.kind != "f" or values.size < 2:
        return 1.0
    for step in 10.0 ** np.arange(3, -12, -1):
        if np.allclose(values / step, np.round(values / step), rtol=0, atol=1e-6):
            return float(values.size / ((values[-1] - values[0]) / step + 1))
    return 0.0


def _has_cells(rows: Observations) -> Bool[np.ndarray, " obs"]:
    """Rows of which some cell is known."""
    return (rows.codes >= 0).any(axis=1) | (~np.isnan(rows.real)).any(axis=1)
