"""Levels of columns as codes, and codes as levels."""

from __future__ import annotations

import warnings
from typing import Final

import numpy as np

from bayesrbf.reading.same_levels import KnownLevels
from bayesrbf.table.column_kinds import Columns
from bayesrbf.table.containers import Cells, missing_cells

MISSING: Final = -1
UNKNOWN: Final = -2


def level_codes(column: np.ndarray, levels: tuple[object, ...]) -> np.ndarray:
    """Position of each cell among the levels, -1 where missing, -2 where unknown."""
    present, own = ~missing_cells(column), KnownLevels(levels)
    cells = column[present].tolist()
    places = {cell: own.place(cell) for cell in set(cells)}
    codes = np.full(len(column), MISSING, dtype=np.intp)
    codes[present] = [UNKNOWN if (place := places[cell]) is None else place for cell in cells]
    return codes


def as_levels(column: np.ndarray, levels: tuple[object, ...]) -> np.ndarray:
    """Cells as the levels that they are, None where missing; the others stay as they are."""
    codes = level_codes(column, levels)
    named = np.array([*levels, None], dtype=object)[np.maximum(codes, MISSING)]
    named[codes == UNKNOWN] = column[codes == UNKNOWN]
    return named


def report_unknown(
    cells: Cells,
    columns: Columns,
    codes: list[np.ndarray],
    handle_unknown: str,
) -> None:
    """One warning, or an error, that names columns and unseen categories."""
    unknown_levels = []
    for position, code in zip(columns.categorical_positions, codes, strict=True):
        unknown = set(cells.of_levels(position)[code == UNKNOWN].tolist())
        if unknown:
            values = ", ".join(sorted(map(repr, unknown))[:5])
            more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            unknown_levels.append(f"{columns.names[position]!r}: {values}{more}")
    message = f"X has categories that were not seen at fit ({'; '.join(unknown_levels)})"
    if handle_unknown == "error":
        raise ValueError(f"{message}; correct them, or pass handle_unknown='missing'.")
    warnings.warn(f"{message}; they are treated as missing.", UserWarning, stacklevel=3)


def level_values(codes: np.ndarray, levels: tuple[object, ...]) -> np.ndarray:
    """Levels of codes: float64 for numbers that it holds, object otherwise."""
    long = any(isinstance(level, int) and int(float(level)) != level for level in levels)
    numeric = not (long or isinstance(levels[0], str | bool))
    values = np.empty(len(levels) + 1, dtype=np.float64 if numeric else object)
    values[:-1] = levels
    values[-1] = np.nan if numeric else None
    return values[codes]
