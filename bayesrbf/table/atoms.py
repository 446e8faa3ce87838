"""Values at which a real column has a point mass, such as 0 or a limit of detection."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.records.mixture import Observations
from bayesrbf.table.column_kinds import Columns

SHARE: Final = 0.05
"""Least share of a column's cells."""
ROWS: Final = 5.0
"""Least number of rows."""
AHEAD: Final = 3.0
"""Times as frequent as either neighbour among the column's values."""
OTHERS: Final = 5
"""Least number of other values: with fewer the column is a coarse scale."""


def find_atoms(
    cells: Float[np.ndarray, " obs"], weights: Float[np.ndarray, " obs"]
) -> tuple[float, ...]:
    """The atoms of a column, in rising order; a row counts as often as it weighs.

    An ordinary value of a coarse scale is about as frequent as its neighbours:

    >>> grades, spiked = np.repeat(np.arange(8.0), 10), np.r_[np.zeros(20), np.arange(60.0)]
    >>> find_atoms(grades, np.ones(80)), find_atoms(spiked, np.ones(80))
    ((), (0.0,))
    """
    present = ~np.isnan(cells)
    values, places = np.unique(cells[present] + 0.0, return_inverse=True)  # -0.0 is 0.0
    counts = np.bincount(places, weights[present], minlength=values.size)
    beside = np.pad(counts, 1)
    neighbours = np.maximum(beside[:-2], beside[2:])
    often = (counts >= SHARE * counts.sum()) & (counts >= ROWS) & (counts >= AHEAD * neighbours)
    if values.size - often.sum() < OTHERS:
        return ()
    return tuple(values[often].tolist())


def at_atoms(cells: Float[np.ndarray, " obs"], atoms: tuple[float, ...]) -> np.ndarray:
    """Code of every cell: -1 missing, 0 at no atom, then the atoms in their order."""
    same = cells[:, None] == np.asarray(atoms)
    codes = np.where(same.any(axis=1), same.argmax(axis=1) + 1, 0)
    return np.where(np.isnan(cells), -1, codes)


def at_their_atoms(rows: Observations, columns: Columns) -> Observations:
    """Rows whose real cells at atoms are missing, and a code of each that says at which.

    >>> cells, no_codes = np.array([[0.0], [2.0]]), np.zeros((2, 0), int)
    >>> rows = Observations(cells, no_codes, np.ones(2, int), np.ones(2))
    >>> apart = at_their_atoms(rows, Columns(("x",), ("real",), (), atoms=((0.0,),)))
    >>> apart.real.ravel(), apart.codes.ravel()
    (array([nan,  2.]), array([1, 0]))
    """
    if not columns.atomic:
        return rows
    real, codes = rows.real.copy(), [rows.codes]
    for feature in columns.atomic:
        at = at_atoms(real[:, feature], columns.atoms[feature])
        real[at > 0, feature] = np.nan
        codes.append(at[:, None])
    return replace(rows, real=real, codes=np.concatenate(codes, axis=1))


def real_cells(
    real: Float[np.ndarray, "obs feature"], codes: Int[np.ndarray, "obs category"], columns: Columns
) -> Float[np.ndarray, "obs feature"]:
    """Real cells as the table has them, those at atoms too: the inverse of :func:`at_their_atoms`.

    >>> columns = Columns(("x",), ("real",), (), atoms=((0.0,),))
    >>> real_cells(np.array([[np.nan], [2.0]]), np.array([[1], [0]]), columns).ravel()
    array([0., 2.])
    """
    real = real.copy() if columns.atomic else real
    for feature, category in columns.atomic.items():
        values, at = np.array([np.nan, *columns.atoms[feature]]), codes[:, category]
        real[:, feature] = np.where(at > 0, values[at], real[:, feature])
    return real
