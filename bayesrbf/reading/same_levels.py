"""When two cells of a column of levels are the same level, however they are written.

This is decided here alone: for the cells of one table, and for new rows beside a model, in files,
in frames and over HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Final

from bayesrbf.reading.delimited import is_number
from bayesrbf.reading.notation import possible_numbers

_WORDS: Final = {
    **dict.fromkeys(("True", "TRUE", "true"), "True"),
    **dict.fromkeys(("False", "FALSE", "false"), "False"),
}
"""Booleans as Python, spreadsheets and JSON write them."""
_WHOLE: Final = re.compile(r"(-?(?:0|[1-9]\d*))(?:\.0)?", re.ASCII)
"""A whole number; pandas adds ".0" once a cell of the column is missing."""
_MIDNIGHT: Final = re.compile(r"(\d{4}-\d{2}-\d{2})[T ]00:00(?::00(?:\.0+)?)?Z?", re.ASCII)
"""A date, written with a time of day that it does not have."""
_MOST_DIGITS: Final = 300
"""Letters of the numbers that are compared; no level that is a number has more."""


def _are_whole(texts: Collection[str]) -> bool:
    """Whether numbers are numbers and no codes: whole, without leading zeros or decimals but .0.

    The codes 250 and 250.00 of diagnoses differ, as do 007 and 7.
    """
    return all(_WHOLE.fullmatch(text) for text in texts if is_number(text))


def _key(text: str, whole: bool) -> str:
    """One text for all ways to write a level."""
    if text in _WORDS:
        return _WORDS[text]
    if date := _MIDNIGHT.fullmatch(text):
        return date[1]
    number = _WHOLE.fullmatch(text) if whole else None
    return text if number is None else "0" if number[1] == "-0" else number[1]


def in_one_spelling(texts: Collection[str]) -> dict[str, str]:
    """The level of each distinct text of a column.

    It is the text itself, unless the column writes some level in several ways.

    >>> in_one_spelling(["1", "1.0", "2.0"]), in_one_spelling(["1.0", "2.0"])
    ({'1': '1', '1.0': '1', '2.0': '2'}, {'1.0': '1.0', '2.0': '2.0'})
    >>> in_one_spelling(["250", "250.0", "250.00"])
    {'250': '250', '250.0': '250.0', '250.00': '250.00'}
    """
    whole = _are_whole(texts)
    keys = {text: _key(text, whole) for text in texts}
    several = len(set(keys.values())) < len(keys)
    return keys if several else {text: text for text in texts}


def written_apart(texts: Collection[str]) -> list[str]:
    """Texts of one number that are several levels: the codes 7 and 007; the first such number.

    >>> written_apart(["8", "7", "007"]), written_apart(["1", "1.0"])
    (['007', '7'], [])
    """
    alike: dict[Decimal, set[str]] = {}
    for level in set(in_one_spelling(texts).values()):
        if is_number(level) and "e" not in level.lower():
            alike.setdefault(Decimal(level), set()).add(level)
    return next((sorted(several) for several in alike.values() if len(several) > 1), [])


@dataclass(frozen=True)
class KnownLevels:
    """The levels of a column, and which of them a cell is."""

    levels: tuple[object, ...]  # Of one type: text, numbers or booleans.

    @cached_property
    def _texts(self) -> list[str]:
        return [level for level in self.levels if isinstance(level, str)]

    @cached_property
    def _whole(self) -> bool:
        return _are_whole(self._texts)

    @cached_property
    def _places(self) -> dict[object, int]:
        """Place of each level, as it is and as other cells write it."""
        places: dict[object, int] = {level: place for place, level in enumerate(self.levels)}
        for text in self._texts:
            places.setdefault(_key(text, self._whole), places[text])
        return places

    def place(self, cell: object) -> int | None:
        """Which level a text, a number or a boolean is; None where it is none.

        A level that is a number has no spelling of its own: "007" is the level 7, but not "7".

        >>> KnownLevels((0, 1)).place("1.0"), KnownLevels(("0.0", "1.0")).place(1)
        (1, 1)
        >>> KnownLevels((False, True)).place("TRUE"), KnownLevels(("7", "8")).place("007")
        (1, None)
        """
        ways = self._as_text(cell) if self._texts else self._as_value(cell)
        return next((self._places[way] for way in ways if way in self._places), None)

    def name(self, cell: object) -> str:
        """A cell as its level is called; as it is where it is no level."""
        place = self.place(cell)
        return str(cell if place is None else self.levels[place])

    def _as_text(self, cell: object) -> tuple[object, ...]:
        """What a cell may be called among levels of text, the most literal name first."""
        if isinstance(cell, str):
            return cell, _key(cell, self._whole)
        if isinstance(cell, float) and cell.is_integer():
            return str(int(cell)), str(cell)
        return (str(cell),)

    def _as_value(self, cell: object) -> tuple[object, ...]:
        """The number or boolean that a cell is, where it can be one level only."""
        if not isinstance(cell, str):
            return (cell,)
        if cell in _WORDS:
            return (
                (_WORDS[cell] == "True",) if isinstance(next(iter(self.levels), None), bool) else ()
            )
        if (whole := _WHOLE.fullmatch(cell)) and len(cell) < _MOST_DIGITS:
            return (int(whole[1]),)
        possible = tuple(self._places.keys() & possible_numbers(cell))
        return possible if len(possible) == 1 else ()
