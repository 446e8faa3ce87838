"""Levels of columns as codes, and codes as levels."""

from __future__ import annotations

import warnings
from typing import Final

import numpy as np

from bayesrbf.table.column_kinds import Columns
from bayesrbf.table.containers import Cells, missing_cells

MISSING: Final = -1
UNKNOWN: Final = -2


def level_codes(column: np.ndarray, levels: tuple[object, ...]) -> np.ndarray:
    """Position of each cell among the levels, -1 where missing, -2 where unknown."""
    index: dict[object, int] = {level: code for code, level in enumerate(levels)}
    positions = (index.get(value, UNKNOWN) for value in column.tolist())
    codes = np.fromiter(positions, dtype=np.intp, count=len(column))
    codes[missing_cells(column)] = MISSING
    return codes


def report_unknown(
    cells: Cells,
    columns: Columns,
    positions: list[int],
    codes: list[np.ndarray],
    handle_unknown: str,
) -> None:
    """One warning, or an error, that names columns and unseen categories."""
    unknown_levels = []
    for position, code in zip(positions, codes, strict=True):
        unknown = set(cells.columns[position][code == UNKNOWN].tolist())
        if unknown:
            values = ", ".join(sorted(map(repr, unknown))[:5])
            more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            unknown_levels.append(f"{columns.names[position]!r}: {values}{more}")
    message = f"X has categories that were not seen at fit ({'; '.join(unknown_levels)})"
    if handle_unknown == "error":
        raise ValueError(f"{message}; correct them, or pass handle_unknown='missing'.")
    warnings.warn(f"{message}; they are treated as missing.", UserWarning, stacklevel=3)


def level_values(codes: np.ndarray, levels: tuple[object, ...]) -> np.ndarray:
    """Levels of codes: float64 for numeric levels, object otherwise."""
    numeric = not isinstance(levels[0], str | bool)
    values = np.empty(len(levels) + 1, dtype=np.float64 if numeric else object)
    values[:-1] = levels
    values[-1] = np.nan if numeric else None
    return values[codes]
