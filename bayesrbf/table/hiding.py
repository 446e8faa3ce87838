"""Hides cells of encoded rows, and says which are observed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.base.rows import Observations
from bayesrbf.table.columns import Columns
from bayesrbf.table.encode import at_atoms
from bayesrbf.table.order import canonical_order


def observed_cells(rows: Observations, columns: Columns) -> Bool[np.ndarray, "obs column"]:
    """Whether each cell of the table is observed, columns in the order of the table.

    >>> from bayesrbf.table import encode, learn_columns
    >>> X = [["b", 1.5], [None, 2.5], ["a", None]]
    >>> columns = learn_columns(X)
    >>> observed_cells(encode(X, columns), columns)
    array([[ True,  True],
           [False,  True],
           [ True, False]])
    """
    observed = np.zeros((rows.n_obs, len(columns.names)), dtype=bool)
    real = ~np.isnan(rows.real)
    for feature, category in columns.atomic.items():
        real[:, feature] |= rows.codes[:, category] > 0
    observed[:, columns.real_positions] = real
    observed[:, columns.categorical_positions] = rows.codes[:, : len(columns.levels)] >= 0
    return observed


def with_masks(rows: Observations, columns: Columns) -> Observations:
    """Rows that were read without masks, beside the masks that the columns have.

    >>> from bayesrbf.table import encode, learn_columns
    >>> columns = learn_columns([["b", 1.5], ["a", None]])
    >>> with_masks(encode([["b", 1.5], ["a", None]], columns), columns.with_masks).codes
    array([[1, 0],
           [0, 1]])
    """
    observed = observed_cells(rows, replace(columns, masked=()))[:, columns.masked]
    before, after = np.split(rows.codes, [len(columns.levels)], axis=1)
    return replace(rows, codes=np.column_stack([before, (~observed).astype(np.intp), after]))


def hidden_share(rows: Observations, columns: Columns) -> Float[np.ndarray, " obs"]:
    """Share of the cells of every row that are missing; 0 in a table without columns.

    >>> from bayesrbf.table import encode, learn_columns
    >>> X = [["b", 1.5], [None, 2.5], [None, None]]
    >>> columns = learn_columns(X)
    >>> hidden_share(encode(X, columns), columns)
    array([0. , 0.5, 1. ])
    """
    missing = ~observed_cells(rows, columns)
    missing = np.delete(missing, columns.empty, axis=1)
    shares: np.ndarray = missing.sum(axis=1) / max(1, missing.shape[1])
    return shares


def canonical_positions(rows: Observations, columns: Columns) -> Int[np.ndarray, " column"]:
    """Places in the table of its columns in the canonical order of some rows."""
    order = canonical_order(rows)
    # Masks and atoms go with their columns.
    own = order.categories[order.categories < len(columns.levels)]
    pairs = ((columns.real_positions, order.features), (columns.categorical_positions, own))
    return np.concatenate([np.array(positions, int)[places] for positions, places in pairs])


def hide(
    rows: Observations, hidden: Bool[np.ndarray, "obs column"], columns: Columns
) -> Observations:
    """Hide cells: they become missing, and no mask says so.

    A mask of ``missingness="informative"`` is hidden with its cell, because it says that the cell
    was observed; the masks of all other cells stay. So is what is said of its atoms.

    >>> from bayesrbf.table import encode, learn_columns
    >>> columns = learn_columns([["b", 1.5], ["a", None]], missingness="informative")
    >>> rows = encode([["b", 1.5], ["a", None]], columns)
    >>> rows.codes
    array([[1, 0],
           [0, 1]])
    >>> hide(rows, np.array([[False, True], [True, False]]), columns).codes
    array([[ 1, -1],
           [-1,  1]])
    """
    reals, codes = _by_kind(hidden, columns)
    return replace(
        rows,
        real=np.where(reals, np.nan, rows.real),
        codes=np.where(codes, -1, rows.codes),
    )


def replaced(
    rows: Observations,
    others: Observations,
    taken: Bool[np.ndarray, "obs column"],
    columns: Columns,
) -> Observations:
    """Rows with some cells of others, and what is said of the atoms of these; masks stay.

    >>> from bayesrbf.table import encode, learn_columns
    >>> columns = learn_columns([["b", 1.5], ["a", 2.5]])
    >>> rows, others = encode([["b", 1.5]], columns), encode([["a", 2.5]], columns)
    >>> filled = replaced(rows, others, np.array([[True, False]]), columns)
    >>> filled.codes.item(), filled.real.item()
    (0, 1.5)
    """
    reals, codes = _by_kind(taken, columns)
    first = len(columns.levels)
    codes[:, first : first + len(columns.masked)] = False
    return replace(
        rows,
        real=np.where(reals, others.real, rows.real),
        codes=np.where(codes, others.codes, rows.codes),
    )


def with_column(
    rows: Observations, position: int, cells: Float[np.ndarray, " obs"], columns: Columns
) -> Observations:
    """Rows with cells of one column measured: numbers, or codes of levels; masks stay.

    >>> from bayesrbf.table import encode, learn_columns
    >>> columns = learn_columns([["b", 1.5], ["a", 2.5]])
    >>> with_column(encode([[None, 1.5]], columns), 0, np.array([1.0]), columns).codes
    array([[1]])
    """
    kind = columns.kinds[position]
    place = columns.positions(kind).index(position)
    if kind == "real":
        real, codes = rows.real.copy(), rows.codes.copy()
        real[:, place] = cells
        if place in columns.atomic:
            codes[:, columns.atomic[place]] = at_atoms(cells, columns.atoms[place])
            real[:, place] = np.where(codes[:, columns.atomic[place]] > 0, np.nan, cells)
        return replace(rows, real=real, codes=codes)
    codes = rows.codes.copy()
    codes[:, place] = cells.astype(codes.dtype)
    return replace(rows, codes=codes)


def _by_kind(
    cells: Bool[np.ndarray, "obs column"], columns: Columns
) -> tuple[Bool[np.ndarray, "obs feature"], Bool[np.ndarray, "obs categorical"]]:
    """Cells of the table as those of the reals and of the codes."""
    atomic = tuple(columns.real_positions[feature] for feature in columns.atomic)
    of_codes = columns.categorical_positions + columns.masked + atomic
    return cells[:, columns.real_positions], cells[:, of_codes]
