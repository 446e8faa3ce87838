"""How the cells of a long column are written: a cell of every shape, whatever its digits."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from bayesrbf.reading.formats import RawTable
from bayesrbf.reading.inferring import TextColumn

MOST_SHAPES: Final = 10_000
"""Shapes of a column that are kept: so many are words, of which one is enough for a message."""
_DIGITS: Final = re.compile(r"[0-9]+")


def shape(text: str) -> str:
    """What the notation of a cell depends on: its signs, how many digits, a 0 first, above 12.

    >>> shape("1,234.5"), shape("31.12.2020"), shape("0.25")
    ('9,999.9', 'dd.99.9999', '0.dd')
    """
    return _DIGITS.sub(_run, text)


def _run(match: re.Match[str]) -> str:
    """A run of digits by its length, up to the five that tell it from a group of thousands."""
    digits = match.group()
    length = min(len(digits), 5)
    if digits[0] == "0":
        return "0" * length
    return ("d" if length == 2 and int(digits) > 12 else "9") * length


class Written:
    """Cells of the columns of a file, one of every shape, and the lines on which they stand."""

    def __init__(self, columns: Collection[str]) -> None:
        self._found: dict[str, dict[str, tuple[str, int]]] = {name: {} for name in columns}

    def look(self, block: RawTable) -> None:
        """Take what a block of rows has and earlier ones had not."""
        for column in block.columns:
            shapes = self._found.get(column.name)
            if shapes is None:
                continue
            for text in dict.fromkeys(column.cells):
                seen = shape(text)
                if seen not in shapes and len(shapes) < MOST_SHAPES:
                    shapes[seen] = text, block.lines[column.cells.index(text)]

    def above(self, column: TextColumn) -> tuple[TextColumn, int]:
        """A column of a block below the cells that are known of it, and how many these are."""
        earlier = self._found.get(column.name, {}).values()
        cells, lines = [text for text, _ in earlier], [line for _, line in earlier]
        longer = replace(column, cells=[*cells, *column.cells], lines=[*lines, *column.lines])
        return (longer if earlier else column), len(earlier)
