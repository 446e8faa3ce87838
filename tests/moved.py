"""What moved since a table was printed last, by more than the standard error of the difference.

A column ``se`` has the standard errors of the column on its left. Rows are the same where their
words and whole numbers before the first such column are. Both runs are taken as independent: if
they share splits and seeds, the true standard error of their difference is mostly smaller.
"""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.measured import Cell, Figures

ERROR: Final = "se"
Row = tuple["Cell", ...]
Measured = dict[tuple[Row, str], tuple[float, float]]
"""Value and standard error, by row and column."""


def moved(name: str, before: Figures, now: Figures) -> list[str]:
    """A line for every figure that moved."""
    earlier = with_errors(before)
    lines = []
    for (row, column), (value, error) in with_errors(now).items():
        old, old_error = earlier.get((row, column), (value, 0.0))
        if abs(value - old) > (of_difference := hypot(error, old_error)):
            digits = now.digits[now.columns.index(column)] or 0
            shown = (f"{number:.{digits}f}" for number in (old, value, of_difference))
            what = ", ".join(map(str, row))
            lines.append("moved: {} {}: {} {} -> {} (s.e. {})".format(name, what, column, *shown))
    return lines


def with_errors(figures: Figures) -> Measured:
    """Every figure that has a standard error."""
    places = [k for k, column in enumerate(figures.columns[1:]) if column == ERROR]
    return {
        (tuple(c for c in row[: places[0]] if not isinstance(c, float)), figures.columns[k]): (
            value,
            error,
        )
        for row in figures.rows
        for k in places
        for value, error in [row[k : k + 2]]
        if isinstance(value, float | int) and isinstance(error, float | int)
    }
