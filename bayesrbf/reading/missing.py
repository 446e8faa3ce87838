"""Which cells mean "missing": words of the format, and what stands in, by text or by number."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from bayesrbf.reading.delimited import is_number
from bayesrbf.reading.notation import possible_numbers, read_numbers
from bayesrbf.reading.notes import listed, option

MISSING_MARKERS: Final = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null")
"""Cells that are read as missing where a file has no nulls of its own."""


@dataclass(frozen=True)
class StandIn:
    """A value that was named as missing, of one column or of all."""

    given: str  # As it was typed: VALUE or COLUMN=VALUE.
    text: str
    column: str | None = None

    @property
    def number(self) -> float | None:
        """The number that it is; None for text."""
        values = {float(self.text)} if is_number(self.text) else possible_numbers(self.text)
        return next(iter(values)) if len(values) == 1 else None


def stand_ins(given: Iterable[str], header: Collection[str]) -> tuple[StandIn, ...]:
    """Values that were named as missing; ``COLUMN=VALUE`` where there is such a column.

    >>> [(mark.column, mark.text) for mark in stand_ins(["-9", "a=-9", "b=-9"], ["a"])]
    [(None, '-9'), ('a', '-9'), (None, 'b=-9')]
    """
    return tuple(_stand_in(text, header) for text in given)


def _stand_in(given: str, header: Collection[str]) -> StandIn:
    """One of them; the longest name counts where a name has an equals sign itself."""
    for place in reversed([i for i, character in enumerate(given) if character == "="]):
        if given[:place] in header:
            return StandIn(given, given[place + 1 :], given[:place])
    return StandIn(given, given)


@dataclass(frozen=True)
class Missing:
    """Which cells of a column mean "missing"."""

    marks: frozenset[str]  # As they are written; the empty cell is one of them.
    named: tuple[StandIn, ...] = ()  # Those that were asked for.

    @cached_property
    def texts(self) -> dict[str, str]:
        """Every stand-in as cells have it, with the text that was typed for it."""
        return {mark: mark for mark in self.marks} | {
            stand_in.text: stand_in.text for stand_in in self.named
        }

    @cached_property
    def numbers(self) -> dict[float, str]:
        """Stand-ins that are numbers, with the text that was typed for each."""
        typed = {mark.number: mark.text for mark in reversed(self.named)}
        return {number: text for number, text in typed.items() if number is not None}

    def among(
        self,
        distinct: Iterable[str],
        *,
        plain: bool = False,
        thousands: str | None = None,
        decimal: str | None = None,
    ) -> dict[str, str]:
        """The missing ones of the distinct cells of a column, and the mark of each.

        A number is found however it is written. Where a cell could be two numbers, the notation of
        the other cells decides; ``plain`` means that numbers have a decimal point or are text.

        >>> missing = Missing(frozenset(["", "NA"]), stand_ins(["-999"], []))
        >>> missing.among(["", "NA", "-999,0", "-999 €", "1,5"])
        {'': '', 'NA': 'NA', '-999,0': '-999', '-999 €': '-999'}
        """
        distinct = list(distinct)
        marks = {text: self.texts[text] for text in distinct if text in self.texts}
        if not self.numbers:
            return marks
        values = {text: possible_numbers(text) for text in distinct if text not in marks}
        for text, possible in values.items():
            if len(possible) == 1 and (number := next(iter(possible))) in self.numbers:
                marks[text] = self.numbers[number]
        rest = [text for text in values if text not in marks]
        if not any(values[text] & self.numbers.keys() for text in rest):
            return marks
        if plain:
            read = {text: text for text in rest if is_number(text)}
        else:
            notation = read_numbers(rest, thousands, decimal)
            read = {} if notation.problem else notation.numbers
        for text, written in read.items():
            if float(written) in self.numbers:
                marks[text] = self.numbers[float(written)]
        return marks


def unmatched(
    given: Sequence[StandIn],
    matched: Collection[tuple[str, str]],
    texts: Mapping[str, Collection[str]],
    place: str,
) -> Iterable[str]:
    """A sentence on every value that was named as missing and that no cell is.

    ``matched`` are columns and marks that some cell has, ``texts`` distinct cells of each column.
    """
    keys = {(column, _key(text)) for column, text in matched}
    anywhere = {key for _, key in keys}
    for mark in given:
        key = _key(mark.text)
        hit = key in anywhere if mark.column is None else (mark.column, key) in keys
        if hit or mark.text in MISSING_MARKERS:
            continue
        where = place if mark.column is None else f"{place}, column {mark.column!r}"
        yield f"{option('na', mark.given)}: {where} has no cell {mark.text!r}{_hint(mark, texts)}"


def _hint(mark: StandIn, texts: Mapping[str, Collection[str]]) -> str:
    """A suggestion for a stand-in that no cell has."""
    column, equals, _ = mark.given.partition("=")
    if mark.column is None and equals:
        near = difflib.get_close_matches(column, texts, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {listed(list(texts), 20)}."
        return f", and no column {column!r}; {hint}"
    if re.search(r"\d,\d", mark.text):
        several = " ".join(option("na", value) for value in mark.text.split(","))
        return f"; as numbers here have commas, name several values by {several}."
    words = texts.values() if mark.column is None else [texts[mark.column]]
    cells = {cell for some in words for cell in some if not is_number(cell)}
    near = difflib.get_close_matches(mark.text, cells, n=1, cutoff=0.8)
    return (
        f"; did you mean {near[0]!r}?" if near else "; correct the value, or leave the option out."
    )


def _key(text: str) -> float | str:
    """A mark by which those of one value are the same."""
    number = StandIn(text, text).number
    return text if number is None else number
