"""Kinds of columns of text cells: numbers or categories, and what is doubtful about them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from bayesrbf.reading.cells import (
    Missing,
    Notation,
    beside_limit,
    limits_among,
    read_numbers,
)
from bayesrbf.reading.notes import Note, listed, option, ways_of

if TYPE_CHECKING:
    from bayesrbf.table.kinds import Kind

Values = np.ndarray | list[str | None]

_FEW: Final = 10
"""Whole numbers with at most this many distinct values may be codes: there is a note."""
_FEW_TEXTS: Final = 5
"""Different texts among numbers that are all named."""
FEW_OTHERS: Final = 0.1
"""Share of the observed cells up to which others than numbers are an exception."""
_YES_OR_NO: Final = {"0": "0", "1": "1", "0.0": "0", "1.0": "1"}
"""Marks for no and yes, as files write them where a cell is missing, too."""
_LEADING_ZERO: Final = re.compile(r"[+-]?0\d+", re.ASCII)
_INFINITY: Final = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
AMOUNT: Final = re.compile(r"[+-]?[.,]?\d[\d.,]*( ?[-/] ?[\d.,]+)?( ?\S{1,10})?")
"""A number or a range, and at most one short word behind it: its unit."""


@dataclass(frozen=True)
class TextColumn:
    """One column of a file, as text."""

    name: str
    cells: list[str]  # Without surrounding blanks.
    lines: Sequence[int]  # Line (or row) of the file of each cell.
    missing: Missing
    source: str  # File and unit of ``lines`` for messages, such as "a.csv, line".
    kind: Kind | None = None  # None when it is to be inferred.
    day_first: bool = False  # In dates, where they leave it open.
    thousands: str | None = None  # The mark between thousands, where it is open.
    decimal: str | None = None  # The decimal mark, where it is open.
    points_open: bool = False  # Whether points may set thousands apart where the numbers allow it.
    below: str = "limit"  # Meaning of a cell such as "<5" among numbers.

    @cached_property
    def marks(self) -> dict[str, str]:
        """Stand-in of each distinct missing cell."""
        return self.missing.among(
            dict.fromkeys(self.cells),
            plain=self.kind is not None and not self.is_number,
            thousands=self.thousands,
            decimal=self.decimal,
        )

    @property
    def has_levels(self) -> bool:
        """Whether the requested kind has levels, which stay text."""
        return self.kind is not None and self.kind.has_levels

    @property
    def is_number(self) -> bool:
        """Whether the requested kind is plain numbers."""
        return self.kind is not None and not (self.kind.has_levels or self.kind.of_texts)

    @cached_property
    def counts(self) -> Counter[str]:
        """Frequency of every distinct cell that is not missing."""
        every = Counter(self.cells)
        return Counter({text: n for text, n in every.items() if text not in self.marks})

    @property
    def present(self) -> list[str]:
        """Distinct cells that are not missing, in order of appearance."""
        return list(self.counts)

    def at(self, text: str) -> str:
        """File, line and column of the first cell with this text or limit, for messages."""
        limits = limits_among(dict.fromkeys(self.cells))
        first = next(i for i, cell in enumerate(self.cells) if text in (cell, limits.get(cell)))
        return f"{self.source} {self.lines[first]}, column {self.name!r}"

    def texts(self) -> list[str | None]:
        """The cells as text, None where missing."""
        return [cell if cell in self.counts else None for cell in self.cells]

    def reals(self, numbers: Mapping[str, float]) -> np.ndarray:
        """Cells as float64, by the number of each text; NaN where missing."""
        return np.array([numbers.get(cell, np.nan) for cell in self.cells], dtype=np.float64)


@dataclass(frozen=True)
class ReadColumn:
    """Values and notes of a column, or its problem."""

    values: Values  # float64 with NaN, or text with None, where missing.
    notes: tuple[Note, ...] = ()
    problem: str = ""  # First clause of the message; empty without a problem.
    advice: str = "."  # End of the message, with the options that solve the problem, if any.
    limits: tuple[float, ...] = ()  # Numbers that stand for cells beyond a limit.
    among: tuple[str, ...] = ()  # The few texts among numbers, which are the problem.
    kind: Kind | None = None  # Requested kind; None if it was inferred.
    day_first: bool = False  # Whether the day was found to stand before the month.

    @property
    def measured(self) -> Values:
        """Values with NaN for cells beyond a limit, whose stand-ins may be outliers."""
        if not self.limits or not isinstance(self.values, np.ndarray):
            return self.values
        return np.where(np.isin(self.values, self.limits), np.nan, self.values)

    def sentence(self, remedy: str = "") -> str:
        """Message on the problem, with its advice, or with a remedy without options."""
        advice = f". {remedy}" if remedy and self.advice != "." else self.advice
        return f"{self.problem}{advice}"


def read_column(column: TextColumn) -> ReadColumn:
    """Values of a column, numbers (float64) or text, with notes on decisions and doubts.

    >>> read = read_column(
    ...     TextColumn("zip", ["0150", "0151"], [2, 3], Missing(frozenset([""])), "a.csv, line")
    ... )
    >>> read.values, read.notes[0].topic, read.notes[0].example
    (['0150', '0151'], 'codes', '0150')
    """
    marked = Counter(column.marks[cell] for cell in column.cells if cell and cell in column.marks)
    notes = [Note("missing", column.name, text, count) for text, count in marked.items()]
    if not column.present:
        empty = column.texts() if column.has_levels else column.reals({})
        return ReadColumn(empty, (*notes, Note("empty", column.name)))
    if len(column.present) == 1:
        notes.append(Note("constant", column.name, count=column.counts.total()))
    if column.kind is not None and column.kind.of_texts:
        read = _of_kind(column, column.kind)
    elif column.has_levels:
        read = ReadColumn(column.texts())
    else:
        read = _inferred(column)
    return replace(read, notes=(*notes, *read.notes))


def _of_kind(column: TextColumn, kind: Kind) -> ReadColumn:
    """Numbers of texts of a kind, such as dates."""
    texts = kind.read(column.present, column.day_first)
    if texts.problem:
        problem = f"{column.at(texts.culprit)}: {texts.culprit!r} {texts.problem}"
        advice = f"; write it as {kind.example}{texts.advice}."
        return ReadColumn([], problem=problem, advice=advice)
    order = "day first" if texts.day_first else ""
    topic = "grows" if kind.grows else "read as"
    note = Note(topic, column.name, kind.word, column.counts.total(), order)
    return ReadColumn(column.reals(texts.numbers), (note,), day_first=texts.day_first)


def _inferred(column: TextColumn) -> ReadColumn:
    """Numbers if all cells are numbers, text if none is; else a problem."""
    notation, limits = _numbers_and_limits(column)
    numeric = [text for text in column.present if limits.get(text, text) in notation.numbers]
    infinite = [text for text in column.present if _INFINITY.fullmatch(text)]
    if infinite and notation.numbers:
        return _infinite(column, infinite[0])
    if len(numeric) == len(column.present):
        return _numbers(column, notation, limits)
    if notation.numbers or column.is_number:
        return _mixture(column, numeric)
    # Loaded where cells are read, as the readers of files do.
    from bayesrbf.table.kinds import resembled

    text = column.present[0]
    if (kind := resembled(text)) and all(map(kind.resembles, column.present)):
        return ReadColumn(
            [],
            problem=f"{column.at(text)}: {text!r} is {kind.cell_description}",
            advice=f": {ways_of(kind, column.name)}",
        )
    units = all(map(AMOUNT.fullmatch, column.present))
    notes = (Note("units", column.name, count=column.counts.total(), example=text),)
    return ReadColumn(column.texts(), notes if units else ())


def _numbers_and_limits(column: TextColumn) -> tuple[Notation, dict[str, str]]:
    """The notation of a column's numbers, and its limits such as "<18" with their numbers.

    Where no cell is a number, "<18" is the name of a category.
    """
    limits = limits_among(column.present)
    texts = dict.fromkeys(limits.get(text, text) for text in column.present)
    notation = read_numbers(list(texts), column.thousands, column.decimal)
    plain = any(text in notation.numbers for text in column.present)
    if limits and not plain and not column.is_number:
        return read_numbers(column.present, column.thousands, column.decimal), {}
    return notation, {text: bare for text, bare in limits.items() if bare in notation.numbers}


def _numbers(column: TextColumn, notation: Notation, limits: Mapping[str, str]) -> ReadColumn:
    """Finite numbers in a single notation, or text where they are codes."""
    if notation.below and column.points_open:
        problem = (
            f"may be a decimal point or a mark between thousands, as {notation.below!r} has no "
            "point and is below 1000"
        )
        notation = replace(notation, problem=problem, culprit=notation.doubtful)
    if notation.problem:
        return _open(column, notation)
    plain = not notation.symbol and not notation.thousands
    codes = _reason_for_codes(column) if plain and column.kind is None else None
    if codes is not None:
        return ReadColumn(column.texts(), (codes,))
    numbers = {text: float(number) for text, number in notation.numbers.items()}
    infinite = [text for text, number in numbers.items() if math.isinf(number)]
    if infinite:
        return _infinite(column, infinite[0])
    distinct = sorted(set(numbers.values()))
    if distinct == [0, 1] and _YES_OR_NO.keys() >= numbers.keys() and column.kind is None:
        marks = {text: _YES_OR_NO[text] for text in numbers}
        note = Note("yes or no", column.name, count=column.counts.total())
        return ReadColumn([marks.get(cell) for cell in column.cells], (note,))
    few = _few(column, distinct) if plain and not limits else []
    beside = {text: beside_limit(text, numbers[bare]) for text, bare in limits.items()}
    if limits:
        n = sum(column.counts[text] for text in limits)
        example = next(iter(limits))
        few = [Note("limits", column.name, column.below, n, example)]
    if column.below == "missing":
        beside = dict.fromkeys(limits, math.nan)
    values = column.reals(numbers | beside)
    notes = (*_written(column, notation), *few)
    return ReadColumn(values, notes, limits=tuple(set(beside.values())))


def _written(column: TextColumn, notation: Notation) -> list[Note]:
    """Notes on the notation of numbers, where it is not plain."""
    name, total = column.name, column.counts.total()
    first = next(iter(notation.numbers))
    notes = []
    if notation.symbol == "%":
        notes.append(Note("percent", name, notation.numbers[first], total, first))
    elif notation.symbol:
        notes.append(Note("currency", name, notation.symbol, total, first))
    if notation.thousands:
        having = [text for text in notation.numbers if _is_apart(text, notation)]
        count = sum(column.counts[text] for text in having)
        notes.append(Note("thousands", name, notation.thousands, count, having[0]))
    if notation.decimal_comma:
        notes.append(Note("decimal commas", name, count=total, example=notation.decimal_comma))
    if notation.doubtful:
        notes.append(Note("points", name, count=total, example=notation.doubtful))
    return notes


def _is_apart(text: str, notation: Notation) -> bool:
    """Whether a number has marks between thousands."""
    return len(re.findall(r"\d+", text)) > len(re.findall(r"\d+", notation.numbers[text]))


def _reason_for_codes(column: TextColumn) -> Note | None:
    """Note on why integers are codes rather than quantities; None for quantities."""
    if not all(text.lstrip("+-").isdigit() for text in column.present):
        return None
    for text in column.present:
        if _LEADING_ZERO.fullmatch(text):
            reason = "whole numbers with leading zeros"
        elif len(text) > 15 and math.isfinite(float(text)) and int(float(text)) != int(text):
            reason = "whole numbers too long for a float"
        else:
            continue
        return Note("codes", column.name, reason, column.counts.total(), text)
    return None


def _few(column: TextColumn, distinct: Sequence[float]) -> list[Note]:
    """Note on a real column that may be codes: few integers, repeated."""
    whole = all(value == round(value) for value in distinct)
    repeated = column.counts.total() > len(distinct)
    if column.kind is not None or not (whole and repeated and 1 < len(distinct) <= _FEW):
        return []
    shown = ", ".join(f"{value:g}" for value in distinct)
    return [Note("few whole numbers", column.name, shown, column.counts.total())]


def _infinite(column: TextColumn, text: str) -> ReadColumn:
    """Problem of an infinite cell."""
    advice = f"; leave the cell empty if it is missing, or say {option('na', text)}."
    return ReadColumn([], problem=f"{column.at(text)}: {text!r} is infinite", advice=advice)


def _open(column: TextColumn, notation: Notation) -> ReadColumn:
    """Problem of an ambiguous notation."""
    text = notation.culprit
    advice = "."
    if "thousands" in notation.problem:
        mark = "." if notation.doubtful else ","
        advice = f"; say which by {option('decimal', mark)} or {option('thousands', mark)}."
    problem = f"{column.at(text)}: {text!r} {notation.problem}"
    return ReadColumn([], problem=problem, advice=advice)


def _mixture(column: TextColumn, numeric: list[str]) -> ReadColumn:
    """Problem of text among numbers, with the frequency of each text."""
    texts = [text for text in column.present if text not in set(numeric)]
    among = f" among numbers such as {numeric[0]!r}" if numeric else ", but the column is real"
    cells = sum(column.counts[text] for text in texts)
    extent = f"; {cells} of {column.counts.total()} cells are text" if cells > 1 else ""
    if len(texts) > 1:
        extent += f": {listed([f'{text!r} ({column.counts[text]})' for text in texts], 5)}"
    few = texts if len(texts) <= _FEW_TEXTS else texts[:1]
    rare = numeric and few == texts and cells <= FEW_OTHERS * column.counts.total()
    return ReadColumn(
        [],
        among=tuple(texts) if rare else (),
        problem=f"{column.at(texts[0])}: {texts[0]!r} is text{among}{extent}",
        advice=(
            f". If it means missing, say {option('na', *few)}; if the column holds categories, "
            f"{option('categorical', column.name)}."
        ),
    )
