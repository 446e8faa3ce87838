"""Kinds of columns of text cells: numbers or categories, and what is doubtful about them."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np

from bayesrbf.reading.delimited import TableError, is_number

Kind = Literal["real", "categorical"]
Values = np.ndarray | list[str | None]

_FEW: Final = 10
"""Whole numbers with at most this many distinct values may be codes: there is a note."""
_MANY: Final = 20  # Text with more distinct values than this may be no category: there is a note.
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?", re.ASCII)
_GROUPED: Final = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)
_LEADING_ZERO: Final = re.compile(r"0\d+", re.ASCII)
_INFINITY: Final = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_DATE: Final = re.compile(
    r"(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{2,4})([T ].*)?", re.ASCII
)
_AMOUNT: Final = re.compile(r"[+-]?[$€£]?[.,]?\d.*", re.ASCII)


@dataclass(frozen=True)
class TextColumn:
    """One column of a file, as text."""

    name: str
    cells: list[str]  # Without surrounding blanks.
    lines: list[int]  # Line (or row) of the file of each cell.
    missing: frozenset[str]  # Cells that mean "missing".
    place: str  # File and unit of ``lines`` for messages, such as "a.csv, line".
    kind: Kind | None = None  # None when it is to be inferred.

    @cached_property
    def present(self) -> list[str]:
        """Distinct cells that are not missing, in order of appearance."""
        return [text for text in dict.fromkeys(self.cells) if text not in self.missing]

    def at(self, text: str) -> str:
        """File, line and column where a cell with this text first stands, for messages."""
        return f"{self.place} {self.lines[self.cells.index(text)]}, column {self.name!r}"

    def numbers(self) -> np.ndarray:
        """The cells as float64, with decimal point or comma."""
        values = {text: float(text.replace(",", ".")) for text in self.present}
        return np.array([values.get(cell, np.nan) for cell in self.cells], dtype=np.float64)

    def texts(self) -> list[str | None]:
        """The cells as text, None where missing."""
        return [None if cell in self.missing else cell for cell in self.cells]


def infer(column: TextColumn, notes: list[str]) -> Values:
    """Read a column as numbers (float64) or as text.

    ``notes`` takes a sentence for whatever was decided or is doubtful. TableError, with the line,
    if numbers and text are mixed, a number is infinite or ambiguous, or the column holds dates.

    >>> notes = []
    >>> infer(TextColumn("zip", ["0150", "0151"], [2, 3], frozenset([""]), "a.csv, line"), notes)
    ['0150', '0151']
    >>> print(notes[0])
    Column 'zip' holds whole numbers with leading zeros, such as '0150': read as categories,
    unless it is named as real.
    """
    _note_markers(column, notes)
    if not column.present:
        notes.append(f"Column {column.name!r} has no value.")
        return column.texts() if column.kind == "categorical" else column.numbers()
    if len(column.present) == 1:
        notes.append(f"Column {column.name!r} holds one value only: {column.present[0]!r}.")
    if column.kind == "categorical":
        return column.texts()
    numeric = [text for text in column.present if _is_numeric(column, text)]
    if len(numeric) == len(column.present):
        codes = _reason_for_codes(column)
        if codes and column.kind is None:
            notes.append(
                f"Column {column.name!r} holds {codes}: read as categories, unless it is named as "
                "real."
            )
            return column.texts()
        return _real(column, notes)
    if numeric or column.kind == "real":
        _refuse_mixture(column, numeric)
    _note_text(column, notes)
    return column.texts()


def _note_markers(column: TextColumn, notes: list[str]) -> None:
    """Note which words were read as missing: one of them might be a category."""
    marked = Counter(cell for cell in column.cells if cell and cell in column.missing)
    if marked:
        found = ", ".join(f"{text!r} ({count} cells)" for text, count in marked.items())
        notes.append(f"Column {column.name!r}: read as missing are {found}.")


def _is_numeric(column: TextColumn, text: str) -> bool:
    """Whether a cell is a number, with decimal point or comma."""
    if _DECIMAL_COMMA.fullmatch(text):
        return True
    return is_number(text) or (
        _INFINITY.fullmatch(text) is not None and any(map(is_number, column.present))
    )


def _reason_for_codes(column: TextColumn) -> str | None:
    """Why whole numbers are codes and not quantities, None if they are not."""
    if not all(text.lstrip("+-").isdigit() for text in column.present):
        return None
    for text in column.present:
        if _LEADING_ZERO.fullmatch(text):
            return f"whole numbers with leading zeros, such as {text!r}"
        if len(text) > 15 and math.isfinite(float(text)) and int(float(text)) != int(text):
            return f"whole numbers too long for a float, such as {text!r}"
    return None


def _real(column: TextColumn, notes: list[str]) -> np.ndarray:
    """Numbers of one notation, all finite."""
    commas = [text for text in column.present if "," in text]
    points = [text for text in column.present if "." in text]
    if commas and points:
        raise TableError(
            f"{column.at(commas[0])}: {commas[0]!r} has a decimal comma, but {points[0]!r} has a "
            "point; write one of them throughout."
        )
    if commas and all(_GROUPED.fullmatch(text) for text in commas):
        raise TableError(
            f"{column.at(commas[0])}: {commas[0]!r} may be a decimal comma or a separator of "
            "thousands; write a decimal point, or no separator."
        )
    if commas:
        notes.append(f"Column {column.name!r} has decimal commas, such as {commas[0]!r}.")
    values = column.numbers()
    infinite = np.flatnonzero(np.isinf(values))
    if infinite.size:
        text = column.cells[infinite[0]]
        raise TableError(
            f"{column.at(text)}: {text!r} is infinite; leave the cell empty if it is missing."
        )
    _note_few(column, values, notes)
    return values


def _note_few(column: TextColumn, values: np.ndarray, notes: list[str]) -> None:
    """Note which real columns may be codes."""
    distinct = np.unique(values[~np.isnan(values)])
    whole = bool(np.all(distinct == np.round(distinct)))
    if column.kind is None and whole and 1 < distinct.size <= _FEW:
        shown = ", ".join(f"{value:g}" for value in distinct)
        notes.append(
            f"Column {column.name!r} holds the whole numbers {shown}: read as real; if they are "
            "codes, name it as categorical."
        )


def _refuse_mixture(column: TextColumn, numeric: list[str]) -> None:
    """TableError that names a cell of text among numbers."""
    text = next(text for text in column.present if text not in numeric)
    among = f" among numbers such as {numeric[0]!r}" if numeric else ", but the column is real"
    raise TableError(
        f"{column.at(text)}: {text!r} is text{among}; leave the cell empty if it is missing, or "
        "name the column as categorical."
    )


def _note_text(column: TextColumn, notes: list[str]) -> None:
    """Note which columns of text may be no categories; refuse dates."""
    if all(map(_DATE.fullmatch, column.present)):
        raise TableError(
            f"{column.at(column.present[0])}: {column.present[0]!r} is a date; convert it to a "
            "number such as days since a fixed date, ignore the column, or name it as categorical."
        )
    n_distinct, n_cells = len(column.present), len(column.cells)
    if n_distinct > max(_MANY, n_cells // 2):
        notes.append(
            f"Column {column.name!r} is text with {n_distinct} distinct values in {n_cells} rows: "
            "ignore it if it names or describes the rows."
        )
    if all(map(_AMOUNT.fullmatch, column.present)):
        notes.append(
            f"Column {column.name!r} holds text such as {column.present[0]!r}, read as categories; "
            "if it is a quantity, write plain numbers."
        )
