"""CSV and Parquet files as frames: which reader, which kinds were given, what was noticed."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bayesrbf.reading.delimited import MOST_BYTES, TableError, check_text, limited, read_delimited
from bayesrbf.reading.inferring import Kind, TextColumn, infer

if TYPE_CHECKING:
    import pandas as pd

MISSING_MARKERS: Final = ("", "?", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null")
"""Cells of a CSV file that are read as missing."""


@dataclass(frozen=True)
class ReadTable:
    """A table and what was noticed while reading it."""

    frame: pd.DataFrame  # Real columns as float64, categorical ones as str; NaN where missing.
    kinds: dict[str, Kind]  # In the order of the columns.
    notes: tuple[str, ...]  # Sentences on what was decided, dropped or doubtful.


def read_table(
    path: str | os.PathLike[str],
    *,
    categorical: Collection[str] = (),
    real: Collection[str] = (),
    ignore: Collection[str] = (),
    missing: Sequence[str] = MISSING_MARKERS,
) -> ReadTable:
    """Read a CSV or Parquet file as real and categorical columns.

    CSV: commas, semicolons, tabs or bars; UTF-8, UTF-16 or Windows-1252; gzip or not; blanks around
    cells are removed. A column of numbers is real, one of text is categorical; decimal commas are
    understood. Whole numbers with leading zeros, or too long for a float, are codes and stay text.
    Parquet keeps its types; booleans become the text "True" and "False".

    Columns named in ``categorical`` or ``real`` are of that kind, and those in ``ignore`` are left
    out. A cell of ``missing`` in a CSV file means "missing"; an empty cell always does. TableError,
    with file, line and column, if the file is no table, a column mixes numbers and text or holds
    dates, or a named column does not exist.
    """
    name = Path(path).name
    with open(path, "rb") as file:
        content = limited(file, name)
    if content.startswith(b"PAR1"):
        columns, notes = _parquet_columns(content, name)
    else:
        columns, notes = _text_columns(content, name, missing)
    _check_named([column.name for column in columns], categorical, real, ignore, name)
    forced: dict[str, Kind] = {
        **dict.fromkeys(categorical, "categorical"),
        **dict.fromkeys(real, "real"),
    }
    kept = [column for column in columns if column.name not in ignore]
    if not kept:
        raise TableError(f"{name}: every column is ignored; keep at least one.")
    values = {
        column.name: infer(replace(column, kind=forced.get(column.name, column.kind)), notes)
        for column in kept
    }
    return _assemble(values, notes)


def _check_named(
    header: Sequence[str],
    categorical: Collection[str],
    real: Collection[str],
    ignore: Collection[str],
    name: str,
) -> None:
    """Refuse options that name a column which is not there, or name one twice."""
    for column in [*categorical, *real, *ignore]:
        if column not in header:
            near = difflib.get_close_matches(column, header, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(header[:20])}."
            raise TableError(f"{name} has no column {column!r}; {hint}")
    for column in sorted(set(categorical) & set(real)):
        raise TableError(f"Column {column!r} cannot be both real and categorical; choose one.")


def _assemble(columns: dict[str, np.ndarray | list[str | None]], notes: list[str]) -> ReadTable:
    """Columns as a frame."""
    import pandas as pd

    kinds: dict[str, Kind] = {
        name: "real" if isinstance(values, np.ndarray) else "categorical"
        for name, values in columns.items()
    }
    frame = pd.DataFrame(
        {
            name: pd.Series(values, dtype="float64" if kinds[name] == "real" else "str")
            for name, values in columns.items()
        }
    )
    return ReadTable(frame, kinds, tuple(notes))


def _text_columns(
    content: bytes, name: str, missing: Sequence[str]
) -> tuple[list[TextColumn], list[str]]:
    """Columns of a CSV file."""
    table = read_delimited(content, name)
    marks = frozenset(["", *missing])
    columns = [
        TextColumn(title, [row[i] for row in table.rows], table.lines, marks, f"{name}, line")
        for i, title in enumerate(table.header)
    ]
    return columns, list(table.notes)


def _parquet_columns(content: bytes, name: str) -> tuple[list[TextColumn], list[str]]:
    """Columns of a Parquet file as text that reads back to the same values."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise TableError(
            f"{name} is a Parquet file, which needs pyarrow: pip install 'bayesrbf[report]'."
        ) from error
    try:
        table = _parquet_table(pa.BufferReader(content), name)
    except TableError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: names that are no text
        raise TableError(f"{name} is a damaged Parquet file ({error}).") from error
    if not table.num_rows or not table.num_columns:
        raise TableError(f"{name} has {table.num_rows} rows and {table.num_columns} columns.")
    if len(set(table.column_names)) < table.num_columns or "" in table.column_names:
        raise TableError(f"{name} has columns without a name or with the same name; rename them.")
    for title in table.column_names:
        check_text(title, f"{name}, the name of a column")
    rows = list(range(1, table.num_rows + 1))
    columns = [
        TextColumn(
            title,
            _cells(table[title], title, name),
            rows,
            frozenset([""]),
            f"{name}, row",
            _parquet_kind(table.schema.field(title).type, title, name),
        )
        for title in table.column_names
    ]
    return columns, [f"{table.num_rows} rows and {table.num_columns} columns of Parquet."]


def _parquet_table(source: Any, name: str) -> Any:
    """A Parquet file as a table; texts stay in dictionaries, for one may stand in many rows.

    TableError where it says, or turns out, to hold more than a CSV file may.
    """
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    import pyarrow.types as t

    told = pq.ParquetFile(source)
    cells = told.metadata.num_rows * told.metadata.num_columns
    groups = (told.metadata.row_group(i) for i in range(told.metadata.num_row_groups))
    size = max(2 * cells, sum(group.total_byte_size for group in groups))
    texts = [field.name for field in told.schema_arrow if t.is_string(field.type)]
    if size <= MOST_BYTES:
        table = pq.ParquetFile(source, read_dictionary=texts).read()
        lengths = (
            pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0
            for text in set(texts)
            for position in table.schema.get_all_field_indices(text)
            if t.is_dictionary(table.column(position).type)
            for chunk in table.column(position).chunks
        )
        size = sum(lengths, start=size)
    if size > MOST_BYTES:
        raise TableError(
            f"{name} has {cells} cells, of more than {MOST_BYTES >> 20} MiB unpacked; "
            "give a smaller table."
        )
    return table


def _cells(column: Any, title: str, name: str) -> list[str]:
    """Cells of a Parquet column as text without control characters."""
    try:
        cells = [_cell(value) for value in column.to_pylist()]
    except UnicodeDecodeError as error:
        raise TableError(f"{name}, column {title!r} is damaged: its text is no UTF-8.") from error
    for row, cell in enumerate(cells, start=1):
        check_text(cell, f"{name}, row {row}, column {title!r}")
    return cells


def _parquet_kind(dtype: Any, title: str, name: str) -> Kind | None:
    """Kind of a Parquet type; None for numbers, which may still be identifiers."""
    import pyarrow.types as t

    if t.is_dictionary(dtype) or t.is_boolean(dtype):
        return "categorical"
    if t.is_string(dtype) or t.is_large_string(dtype) or t.is_string_view(dtype):
        return "categorical"
    if t.is_integer(dtype) or t.is_floating(dtype) or t.is_decimal(dtype) or t.is_null(dtype):
        return None
    raise TableError(
        f"{name}, column {title!r}: cells of type {dtype} are neither numbers nor categories; "
        "convert the column, or ignore it."
    )


def _cell(value: object) -> str:
    """A Parquet cell as text; floats are written so that they read back equal."""
    return "" if value is None or value != value else str(value)
