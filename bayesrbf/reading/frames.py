"""Columns of frames of pandas, polars and Arrow as a file would have them."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, Final

import narwhals.stable.v2 as nw

from bayesrbf.reading.decoding import check_text
from bayesrbf.reading.formats import RawColumn, RawTable, cell_text
from bayesrbf.reading.notes import Note, TableError

_PLAIN: Final = (str, numbers.Number, Decimal, datetime.date)
_NAME: Final = "the frame"


def raw_frame(frame: Any) -> RawTable:
    """The columns of a frame in memory; TableError if it is none.

    Texts have no kind yet: they may be numbers. Booleans and categories are what they are.
    """
    try:
        table = nw.from_native(frame, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise TableError(
            f"{_NAME} has columns with the same name ({error}); rename them."
        ) from None
    if not isinstance(table, nw.DataFrame):
        raise TableError(
            "read_table takes the path of a file, or a frame in memory of pandas, polars or Arrow; "
            f"received a {type(frame).__name__}."
        )
    n_rows, n_columns = table.shape
    if not n_rows or not n_columns:
        raise TableError(f"{_NAME} has {n_rows} rows and {n_columns} columns.")
    if not all(isinstance(title, str) and title for title in table.columns):
        raise TableError(f"{_NAME} has columns whose name is no text; rename them.")
    columns = tuple(_column(table[title], title) for title in table.columns)
    note = Note("file", "", f"{n_rows} rows and {n_columns} columns of a frame.")
    index = table.to_native().index if table.implementation.is_pandas() else None
    lines = list(range(1, n_rows + 1))
    return RawTable(columns, lines, f"{_NAME}, row", (note,), marked=False, index=index)


def _column(series: nw.Series[Any], title: str) -> RawColumn:
    """One column of a frame."""
    dtype, cells = series.dtype, _present(series)
    odd = next((cell for cell in cells if cell is not None and not isinstance(cell, _PLAIN)), None)
    if odd is not None or isinstance(dtype, nw.Time | nw.Duration):
        kind = dtype if odd is None else type(odd).__name__
        problem = (
            f"{_NAME}, column {title!r}: cells of type {kind} are neither numbers nor categories; "
            "convert the column"
        )
        return RawColumn(title, [""] * len(cells), problem=problem)
    texts = [cell_text(cell) for cell in cells]
    for row, text in enumerate(texts, start=1):
        check_text(text, f"{_NAME}, row {row}, column {title!r}")
    if isinstance(dtype, nw.Categorical | nw.Enum | nw.Boolean):
        return RawColumn(title, texts, "categorical")
    if isinstance(dtype, nw.String | nw.Object):
        return RawColumn(title, [text.strip() for text in texts], is_text=True)
    return RawColumn(title, texts)


def _present(series: nw.Series[Any]) -> Sequence[object]:
    """The cells of a column, None where missing, whatever stands for it."""
    nulls = series.is_null().to_list()
    return [None if null else cell for cell, null in zip(series.to_list(), nulls, strict=True)]
