"""Columns of text cells from files: CSV, Parquet and Excel."""

from __future__ import annotations

import datetime
import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bayesrbf.files import check_regular
from bayesrbf.reading.decoding import check_size, check_text, limited
from bayesrbf.reading.delimited import Delimited, delimited_blocks, tabulated
from bayesrbf.reading.inferring import Kind
from bayesrbf.reading.notes import Note, TableError, listed
from bayesrbf.reading.parquet_rows import (
    long_parquet,
    opened_parquet,
    random_rows,
    row_groups,
    rows_of,
)


@dataclass(frozen=True)
class RawColumn:
    """A column of a file before anything is known of it."""

    name: str
    cells: list[str]
    kind: Kind | None = None  # By the type that the file gives it.
    problem: str = ""  # Why it cannot be read at all; it can still be left out.
    is_text: bool = False  # Whether its type is text, which may yet be numbers.


@dataclass(frozen=True)
class RawTable:
    """The columns of a file."""

    columns: tuple[RawColumn, ...]
    lines: list[int]  # Line (or row) of the file of each row.
    place: str  # File and unit of ``lines``, for messages.
    notes: tuple[Note, ...]
    marked: bool  # Whether words of the file may mean missing; Parquet has nulls instead.
    whole: bool = True  # Whether all rows are there.
    index: Any = None  # Of a frame of pandas.


def read_raw(path: Path, sampled: bool = False) -> RawTable:
    """The columns of a file, whose first bytes tell its format; TableError if it is no table.

    Of a Parquet file too long to be read at once, ``sampled`` has some rows, and a note says so.
    """
    check_regular(path, TableError)
    opened = long_parquet(path) if sampled else None
    if opened is None:
        return next(raw_blocks(path))
    places, table = random_rows(opened, path.name)
    sentence = (
        f"{path.name} has {opened.shape[0]} rows, too many to be read at once: all that "
        f"follows is about {len(places)} of them, drawn at random."
    )
    rows = [place + 1 for place in places]
    drawn = _of_arrow(table, 0, path.name, opened.texts)
    return replace(drawn, lines=rows, notes=(Note("file", "", sentence),), whole=False)


def raw_blocks(path: Path, size: int | None = None) -> Iterator[RawTable]:
    """The columns of a file, so many rows at a time; an Excel workbook is one block."""
    check_regular(path, TableError)  # a pipe may never end, and is empty when it is read again
    if size is not None and (opened := long_parquet(path)) is not None:
        for start, table in row_groups(opened, path.name):
            for first in range(0, table.num_rows, size):
                yield _of_arrow(table.slice(first, size), start + first, path.name, opened.texts)
        return
    with open(path, "rb") as file:
        yield from raw_content(limited(file, path.name), path.name, size)


def raw_content(content: bytes, name: str, size: int | None = None) -> Iterator[RawTable]:
    """The columns of a file of this name that is in memory, so many rows at a time."""
    if content.startswith(b"PAR1"):
        opened = opened_parquet(io.BytesIO(content), name)
        table = rows_of(opened, name)
        del content
        for start in range(0, table.num_rows, size or table.num_rows):
            yield _of_arrow(table.slice(start, size), start, name, opened.texts)
    elif content.startswith(b"PK\x03\x04") and name.lower().endswith((".xlsx", ".xlsm")):
        yield _workbook(content, name)
    else:
        blocks = delimited_blocks(content, name, size)
        del content  # the text is enough
        for block in blocks:
            yield _of_cells(block, f"{name}, line")


def _of_cells(table: Delimited, place: str) -> RawTable:
    """Columns of a file whose cells have no types."""
    columns = [RawColumn(n, [row[i] for row in table.rows]) for i, n in enumerate(table.header)]
    notes = tuple(Note("file", "", note) for note in table.notes)
    return RawTable(tuple(columns), table.lines, place, notes, marked=True)


def _workbook(content: bytes, name: str) -> RawTable:
    """The first sheet of an Excel workbook; formulas are read as their last value."""
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ImportError as error:
        raise TableError(
            f"{name} is an Excel workbook, which needs openpyxl: pip install openpyxl."
        ) from error
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(io.BytesIO(content)) as parts:
            check_size(sum(part.file_size for part in parts.infolist()), name)
            sheets = [part for part in parts.namelist() if part.startswith("xl/worksheets/")]
            merged = any(b"<mergeCell " in parts.read(sheet) for sheet in sheets)
        # What is read row by row, in less memory, does not say which cells are merged.
        book = load_workbook(io.BytesIO(content), read_only=not merged, data_only=True)
    except TableError:
        raise
    except (BadZipFile, InvalidFileException, KeyError, ValueError) as error:
        raise TableError(f"{name} is a damaged Excel workbook ({error}).") from error
    title, *others = book.sheetnames
    of_sheets = f"Sheet {title!r} was read; {', '.join(map(repr, others))} not."
    rows = [[cell_text(value).strip() for value in row] for row in book[title].values]
    notes = (
        _fill(rows, book[title].merged_cells.ranges, f"{name}, sheet {title!r}") if merged else []
    )
    width = max((1 + i for row in rows for i, cell in enumerate(row) if cell), default=0)
    records = [
        (line, [*row[:width], *[""] * (width - len(row))] if any(row) else [])
        for line, row in enumerate(rows, start=1)
    ]
    try:
        if not width:
            raise TableError(f"{name}: the sheet {title!r} is empty: a header and rows are needed.")
        how = f"of the sheet {title!r}"
        table = tabulated(records, f"{name}, row", how, "mend the row", notes)
    except TableError as error:
        hint = f"{of_sheets} To read another, put it first, or save it as a file of its own."
        raise TableError(*error.problems, *[hint] * bool(others)) from None
    raw = _of_cells(table, f"{name}, row")
    return replace(raw, notes=(*raw.notes, *[Note("sheets", "", of_sheets)] * bool(others)))


def _fill(rows: list[list[str]], ranges: Any, place: str) -> list[str]:
    """Give cells that are merged downwards the value of the first, and tell of them.

    TableError where a value is merged over columns: it may belong to any of them.
    """
    filled = []
    for block in ranges:
        first, last, column = block.min_row - 1, block.max_row, block.min_col - 1
        value = rows[first][column] if first < len(rows) else ""
        if value and block.max_col > block.min_col:
            raise TableError(
                f"{place}: the cells {block.coord} are merged over columns; unmerge them, and give "
                "each column its own name and cells."
            )
        if value:
            filled.append(block.coord)
            for row in rows[first:last]:
                row[column] = value
    return [f"Merged cells hold their value in each row: {listed(filled)}."] if filled else []


def _of_arrow(table: Any, start: int, name: str, texts: Collection[str]) -> RawTable:
    """Columns of an Arrow table as text that reads back to the same values; rows go on.

    ``texts`` are columns whose dictionaries are texts and no categories.
    """
    columns = tuple(
        _arrow_column(table, title, name, start, title in texts) for title in table.column_names
    )
    size = f"{table.num_rows} rows and {table.num_columns} columns of Parquet."
    rows = list(range(start + 1, start + table.num_rows + 1))
    return RawTable(columns, rows, f"{name}, row", (Note("file", "", size),), marked=False)


def _cells(column: Any, title: str, name: str, start: int) -> list[str]:
    """Cells of a Parquet column as text without control characters."""
    try:
        cells = [cell_text(value) for value in column.to_pylist()]
    except UnicodeDecodeError as error:
        raise TableError(f"{name}, column {title!r} is damaged: its text is no UTF-8.") from error
    except (OverflowError, ValueError, KeyError) as error:  # a year of six digits, an unknown zone
        raise TableError(
            f"{name}, column {title!r}: a cell cannot be read as {column.type} ({error}); convert "
            "the column, or ignore it."
        ) from error
    for row, cell in enumerate(cells, start=start + 1):
        check_text(cell, f"{name}, row {row}, column {title!r}")
    return cells


def _arrow_column(table: Any, title: str, name: str, start: int, is_text: bool) -> RawColumn:
    """One column of a Parquet file; numbers and texts have no kind yet: either may be codes."""
    import pyarrow.types as t

    dtype = table.schema.field(title).type
    is_text |= any(holds(dtype) for holds in (t.is_string, t.is_large_string, t.is_string_view))
    levels = t.is_dictionary(dtype) and not t.is_nested(dtype.value_type)
    numbers = t.is_integer, t.is_floating, t.is_decimal, t.is_null, t.is_date, t.is_timestamp
    is_number = any(holds(dtype) for holds in numbers)
    if not (is_text or levels or is_number or t.is_boolean(dtype)):
        problem = (
            f"{name}, column {title!r}: cells of type {dtype} are neither numbers nor categories; "
            "convert the column"
        )
        return RawColumn(title, [""] * table.num_rows, problem=problem)
    cells = _cells(table[title], title, name, start)
    if is_text:
        return RawColumn(title, [cell.strip() for cell in cells], is_text=True)
    return RawColumn(title, cells, None if is_number else "categorical")


def cell_text(value: object) -> str:
    """A typed cell as text; floats are written so that they read back equal, times as in UTC."""
    if value is None or value != value:
        return ""
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return value.isoformat(" ") if value.time() != datetime.time() else value.date().isoformat()
    return value.isoformat() if isinstance(value, datetime.date) else str(value)
