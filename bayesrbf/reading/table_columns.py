"""The columns of a file or frame, each read as what it was named or seems to be."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np

from bayesrbf.reading.formats import RawColumn, RawTable
from bayesrbf.reading.inferring import Kind, ReadColumn, TextColumn, read_column
from bayesrbf.reading.missing import MISSING_MARKERS, Missing, StandIn
from bayesrbf.reading.notation import DATE, possible_numbers
from bayesrbf.reading.notes import Note, listed
from bayesrbf.reading.same_levels import in_one_spelling, written_apart
from bayesrbf.records.table_options import TableOptions

LevelsOf = Mapping[str, Collection[object]]
"""Levels of the columns of a model, by name."""
NO_LEVELS: Final[LevelsOf] = MappingProxyType({})
MOST_SHAPES: Final = 10_000
"""Shapes of a column that are kept: so many are words, of which one is enough for a message."""
_DIGITS: Final = re.compile(r"[0-9]+")


def shape(text: str) -> str:
    """The shape of a cell: digits replaced by classes, on which its notation depends.

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
        self._examples: dict[str, dict[str, tuple[str, int]]] = {name: {} for name in columns}

    def look(self, block: RawTable) -> None:
        """Take what a block of rows has and earlier ones had not."""
        for column in block.columns:
            shapes = self._examples.get(column.name)
            if shapes is None:
                continue
            for text in dict.fromkeys(column.cells):
                form = shape(text)
                if form not in shapes and len(shapes) < MOST_SHAPES:
                    shapes[form] = text, block.lines[column.cells.index(text)]

    def above(self, column: TextColumn) -> tuple[TextColumn, int]:
        """A column of a block below the cells that are known of it, and how many these are."""
        earlier = self._examples.get(column.name, {}).values()
        cells, lines = [text for text, _ in earlier], [line for _, line in earlier]
        longer = replace(column, cells=[*cells, *column.cells], lines=[*lines, *column.lines])
        return (longer if earlier else column), len(earlier)


def read_columns(
    raw: RawTable,
    target: str | None,
    options: TableOptions,
    marks: Sequence[StandIn],
    written: Written,
    levels: LevelsOf,
    find_dates: bool,
) -> dict[str, ReadColumn]:
    """Every column that is not ignored, read as what it was named or seems to be.

    Dates have to be named, as they are or as what orders the rows, unless they are to be found.
    """
    named: dict[str | None, Kind] = {
        **dict.fromkeys([target, options.id, options.group, *options.categorical], "categorical"),
        **dict.fromkeys([*options.real, options.time], "real"),
    }
    read = {}
    for raw_column in raw.columns:
        if raw_column.name in options.ignore:
            continue
        if raw_column.problem:
            problem, advice = raw_column.problem, ", or ignore it."
            read[raw_column.name] = ReadColumn([], problem=problem, advice=advice)
            continue
        kind = named.get(raw_column.name, raw_column.kind)
        words = raw.marked or (
            raw_column.is_text and kind != "categorical" and _marked(raw_column, kind)
        )
        own = map(str, levels.get(raw_column.name, ()))
        missing = Missing(
            frozenset(MISSING_MARKERS if words else ()).difference(own) | {""},
            tuple(mark for mark in marks if mark.column in (None, raw_column.name)),
        )
        plain = TextColumn(raw_column.name, raw_column.cells, raw.lines, missing, raw.place)
        column, above = written.above(plain)
        unnamed = find_dates and kind is None and _holds_dates(column)
        dates = raw_column.name in options.dates or (
            raw_column.name == options.time and _holds_dates(column)
        )
        result = read_column(
            replace(
                column,
                kind=kind,
                dates=dates or unnamed,
                day_first=options.day_first,
                thousands=options.thousands,
                decimal=options.decimal,
                below=options.below,
            )
        )
        if unnamed and not dates:
            topics = {"dates": "unnamed dates"}
            notes = (replace(n, topic=topics.get(n.topic, n.topic)) for n in result.notes)
            result = replace(result, notes=tuple(notes))
        read[raw_column.name] = replace(result, values=result.values[above:])
        if raw_column.is_text and raw_column.name not in named:
            read[raw_column.name] = _numbers_as_text(column, read[raw_column.name])
    return read


def in_one_name(read: ReadColumn, name: str) -> ReadColumn:
    """A column of a training table, each of its levels under one name, however it is written."""
    if isinstance(read.values, np.ndarray):
        return read
    counts = Counter(cell for cell in read.values if cell is not None)
    spelled, notes = in_one_spelling(counts), list(read.notes)
    ways: dict[str, list[str]] = {}
    for text in sorted(counts):
        ways.setdefault(spelled[text], []).append(text)
    several = {level: texts for level, texts in ways.items() if len(texts) > 1}
    if several:
        level, texts = next(iter(several.items()))
        count = sum(counts[text] for texts in several.values() for text in texts)
        notes.append(Note("one level", name, listed(list(map(repr, texts))), count, level))
    if apart := written_apart(counts):
        count = sum(counts[text] for text in apart if text in counts)
        notes.append(Note("apart", name, listed(list(map(repr, apart))), count))
    values = [None if cell is None else spelled[cell] for cell in read.values]
    return replace(read, values=values, notes=tuple(notes))


def _marked(column: RawColumn, kind: Kind | None) -> bool:
    """Whether words of a column that has nulls may mean missing: if all else is numbers."""
    distinct = set(column.cells)
    others = distinct.difference(MISSING_MARKERS)
    return kind == "real" or (
        len(others) < len(distinct - {""}) and bool(others) and all(map(possible_numbers, others))
    )


def _numbers_as_text(column: TextColumn, read: ReadColumn) -> ReadColumn:
    """A column that its file calls text, with a note where it may hold codes: whole numbers."""
    whole = all(text.lstrip("+-").isdigit() for text in column.present)
    if not (isinstance(read.values, np.ndarray) and column.present and whole):
        return read
    note = Note("numbers as text", column.name, "", column.counts.total(), column.present[0])
    return replace(read, notes=(*read.notes, note))


def _holds_dates(column: TextColumn) -> bool:
    """Whether the cells of a column that orders the rows are dates."""
    return bool(column.present) and DATE.fullmatch(column.present[0]) is not None
