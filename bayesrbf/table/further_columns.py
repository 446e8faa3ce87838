"""Columns of counts and of ordered levels: their cells, and the records of their laws."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float

from bayesrbf.records.column_laws import CountColumns, OrdinalColumns
from bayesrbf.records.mixture import Observations
from bayesrbf.records.specification import FurtherColumns
from bayesrbf.table.column_kinds import Columns

LARGEST_COUNT: Final = 100_000

Further = tuple[Float[np.ndarray, "row _"], ...]
"""Cells of the counts, then codes of the ordered levels; no array where there is no column."""


def further_laws(columns: Columns, rows: Observations) -> tuple[FurtherColumns, ...]:
    """Records of the laws of counts and ordered levels, their priors centred on the rows."""
    laws: list[FurtherColumns] = []
    cells = iter(rows.further)
    if columns.count_names:
        laws.append(CountColumns.of(columns.count_names, next(cells), rows.weights))
    if columns.ordinal_names:
        sizes = tuple(map(len, columns.ordinal_levels))
        laws.append(OrdinalColumns.of(columns.ordinal_names, sizes, next(cells), rows.weights))
    return tuple(laws)


def read_counts(column: np.ndarray, name: str) -> Float[np.ndarray, " row"]:
    """A column of counts; ValueError if a cell is none."""
    if column.dtype == object:
        present = next(value for value in column.tolist() if value is not None)
        raise ValueError(
            f"Column {name!r} is among count_features and holds {present!r}; convert it to whole "
            "numbers, or leave it out of count_features."
        )
    odd = (column < 0) | (column > LARGEST_COUNT) | (column % 1 > 0)
    if odd.any():
        row = int(odd.argmax())
        raise ValueError(
            f"Column {name!r} is among count_features, whose cells must be whole numbers from 0 to "
            f"{LARGEST_COUNT}; row {row} holds {column[row]:g}. Correct the cell or mark it as "
            "missing (NaN), or leave the column out of count_features: it is real then."
        )
    return column + 0.0  # -0.0 is 0.0


def split_further(
    further: Further, columns: Columns
) -> tuple[Float[np.ndarray, "row _"], Float[np.ndarray, "row _"]]:
    """Counts and codes of ordered levels, without a column where there are none."""
    cells = iter(further)
    nothing = np.zeros((len(further[0]) if further else 0, 0))
    counts = next(cells) if columns.count_names else nothing
    return counts, next(cells) if columns.ordinal_names else nothing
