"""Files of a table: delimited text, Excel and Parquet."""

from __future__ import annotations

import codecs
import csv
import datetime
import gzip
import io
import numbers
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, Final

import narwhals.stable.v2 as nw
import numpy as np

from bayesrbf.base.files import check_regular
from bayesrbf.reading.cells import is_number
from bayesrbf.reading.notes import Note, TableError, listed

# Bytes of a file as text: encodings, compression, and how much of it there may be.


_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_OTHER_FORMATS: Final = {
    b"PK\x03\x04": "an Excel workbook or zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook",
    b"%PDF": "a PDF",
    b"SQLite format 3": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"ARROW1": "a Feather or Arrow file",
    b"FEA1": "an old Feather file",
    **dict.fromkeys((b"BZh%d1AY" % level for level in range(1, 10)), "compressed by bzip2"),
    b"\xfd7zXZ": "compressed by xz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd",
    b"7z\xbc\xaf": "a 7z archive",
    b"$FL2@(#)": "an SPSS file",
    b"<stata_dta>": "a Stata file",
    **dict.fromkeys((b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"), "a pickle"),
}
_MARKUP: Final = {
    r"\s*(\{\s*[\"}]|\[\s*[\[{\"\]])": "JSON",
    r"\s*(?i:<!doctype html|<html|<table)": "an HTML page",
    r"\s*<\?xml": "XML",
}
"""Patterns of texts that are no table of lines and cells."""
MAX_TABLE_BYTES: Final = 2**30
"""Bytes of a table, unpacked: beyond, its cells do not fit into the memory of most machines."""
CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NEWLINE: Final = re.compile(r"\r\n|\r|\n")


def limited(file: Any, name: str) -> bytes:
    """All bytes of a file, at most ``MAX_TABLE_BYTES`` of them."""
    content: bytes = file.read(MAX_TABLE_BYTES + 1)
    check_size(len(content), name)
    return content


def check_size(size: int, name: str) -> None:
    """TableError where the actual or declared size of a file exceeds ``MAX_TABLE_BYTES``."""
    if size > MAX_TABLE_BYTES:
        raise TableError(
            f"{name} has more than {MAX_TABLE_BYTES >> 20} MiB, unpacked; give a smaller table."
        )


def check_text(text: str, where: str) -> None:
    """TableError where a text has control characters."""
    control = CONTROL.search(text)
    if control:
        raise TableError(f"{where}: the control character {control.group()!r} is no text.")


def decode(content: bytes, name: str, notes: list[str]) -> str:
    """The text of a file, possibly compressed by gzip, whatever its encoding.

    ``name`` is the file's, for messages; ``notes`` takes a sentence where the encoding is unusual.
    TableError if the file is damaged, of another format, or binary.
    """
    if content.startswith(b"\x1f\x8b"):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
                content = limited(file, name)
        except (OSError, EOFError, zlib.error) as error:
            raise TableError(f"{name} is a damaged gzip file ({error}).") from error
    for signature, description in _OTHER_FORMATS.items():
        if content.startswith(signature):
            raise TableError(f"{name} is {description}, not a CSV file: export the table as CSV.")
    encoding = next((e for mark, e in _BYTE_ORDER_MARKS if content.startswith(mark)), None)
    encoding = encoding or _without_mark(content)
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = _line_after(content[: error.start].decode("latin-1"))
        raise TableError(
            f"{name}, line {line}: not text in {encoding}; save the file as UTF-8."
        ) from error
    control = CONTROL.search(text)
    if control:
        line = _line_after(text[: control.start()])
        raise TableError(
            f"{name}, line {line}: the control character {control.group()!r} is no text; "
            "is this a binary file?"
        )
    for pattern, description in _MARKUP.items():
        if re.match(pattern, text):
            raise TableError(f"{name} is {description}, not a CSV file: export the table as CSV.")
    if encoding == "cp1252":
        strange = next(character for character in text if ord(character) > 127)
        line = _line_after(text[: text.index(strange)])
        notes.append(
            f"The file is not UTF-8; it was read as Windows-1252 (line {line} has {strange!r})."
        )
    return text


def _line_after(text: str) -> int:
    """Line number of the position behind the text."""
    return 1 + len(_NEWLINE.findall(text))


def _without_mark(content: bytes) -> str:
    """Encoding of a file without byte order mark."""
    head = content[:4096]
    zeros = (head[0::2].count(0), head[1::2].count(0))
    for which, encoding in enumerate(("utf-16-be", "utf-16-le")):
        if zeros[which] > len(head) / 4 and zeros[1 - which] == 0:
            return encoding
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


# Text files of separated cells: separator and structure, before any meaning.
#
# Whatever is unusual is either an error with its line or a sentence in the notes;
# nothing is shifted, padded or dropped in silence.


SEPARATORS: Final = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
_SAMPLE: Final = 1000  # Rows that the separators are tried on.

_QUOTED: Final = re.compile(r"'.*'", re.DOTALL)
_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_DECLARED: Final = re.compile(r'"?sep=([;\t|,])"?(?:\r\n|\r|\n)')  # For Excel, above the header.


Records = list[tuple[int, list[str]]]
"""Cells of each row, and the line of the file on which it starts."""


@dataclass(frozen=True)
class Delimited:
    """The cells of a file."""

    header: tuple[str, ...]  # Distinct column names.
    # Cells without surrounding blanks, as many in every row as there are names.
    rows: list[list[str]]
    lines: list[int]  # Line of the file on which each row starts.
    notes: tuple[str, ...]  # What was noticed.
    skipped: tuple[int, ...] = ()  # Lines without a cell, which are no rows.
    separator: str = ""


def delimited_blocks(content: bytes, name: str, size: int | None = None) -> Iterator[Delimited]:
    r"""Read a text file of separated cells with a header, so many rows at a time or all at once.

    TableError, perhaps after some blocks, if the file is binary, empty, ragged, or has no usable
    header.

    >>> (table,) = delimited_blocks(b"name;size\nfox;1,5\n", "animals.csv")
    >>> table.header, table.rows
    (('name', 'size'), [['fox', '1,5']])
    """
    notes: list[str] = []
    text = decode(content, name, notes)
    declared = _DECLARED.match(text)
    separator = declared[1] if declared else _separator(text, name, notes)
    records = islice(_records(text, separator, name), 1 if declared else 0, None)
    del content, text
    source = f"{name}, line"
    advice = f"look for a missing or extra {separator!r}, or quote the cell that contains one"
    first = list(islice(records, size))
    while sum(1 for _, cells in first if cells) < 2 and (more := list(islice(records, size))):
        first += more
    table = tabulated(first, source, f"separated by {SEPARATORS[separator]}", advice, notes)
    yield replace(table, separator=separator)
    head = next(record for record in first if record[1])
    while block := list(islice(records, size)):
        if any(cells for _, cells in block):
            yield _continued([head, *block], source, advice)


def _continued(records: Records, source: str, advice: str) -> Delimited:
    """Table of further rows under a known header; columns without a name are left out."""
    records, skipped = _without_empty(records)
    header, rows, lines = _structure(records, source, advice)
    _check_header_does_not_return(header, rows, lines, source)
    positions = [position for position, title in enumerate(header) if title]
    if len(positions) < len(header):
        rows = [[row[position] for position in positions] for row in rows]
    return Delimited(tuple(header[position] for position in positions), rows, lines, (), skipped)


def _without_empty(records: Records) -> tuple[Records, tuple[int, ...]]:
    """Records with a cell, and the lines of the empty records."""
    return [record for record in records if record[1]], tuple(
        line for line, cells in records if not cells
    )


def tabulated(records: Records, source: str, form: str, advice: str, notes: list[str]) -> Delimited:
    """Records as a table, the first being the header.

    ``source`` is the file and the unit of its records, ``form`` its format, and ``advice`` what to
    do where records differ in length. TableError if there is no table.
    """
    name = source.rpartition(", ")[0]
    if not records:
        raise TableError(f"{name} is empty: a header line and rows are needed.")
    records, skipped = _without_empty(records)
    header, rows, lines = _structure(records, source, advice)
    header, rows = _without_unnamed(header, rows, f"{source} {records[0][0]}", notes)
    _check_names(header, f"{source} {records[0][0]}")
    _check_quotes(header, rows, f"{source} {records[0][0]}")
    _check_header_does_not_return(header, rows, lines, source)
    _check_header_is_none_of_the_rows(header, rows, f"{source} {records[0][0]}")
    notes.insert(0, f"{len(rows)} rows and {len(header)} columns, {form}.")
    return Delimited(header, rows, lines, tuple(notes), skipped)


def _separator(text: str, name: str, notes: list[str]) -> str:
    """The separator that splits the lines most evenly, then into most cells."""
    scores = {}
    for separator in SEPARATORS:
        reader = csv.reader(_lines(text), delimiter=separator)
        try:
            widths = [len(cells) for cells in islice(reader, _SAMPLE) if cells]
        except csv.Error:
            continue
        if widths and widths[0] > 1:
            scores[separator] = (widths.count(widths[0]) / len(widths), widths[0])
    if not scores:
        return ","
    best = max(scores, key=lambda separator: scores[separator])
    even = [separator for separator, (share, _) in scores.items() if share == 1]
    if len(even) > 1:
        rivals = " and ".join(SEPARATORS[separator] for separator in even)
        notes.append(f"{rivals} both split every line evenly; {SEPARATORS[best]} were taken.")
    return best


def _lines(text: str) -> Iterator[str]:
    """Lines with their ends, one at a time: a copy of the text would be four times as large."""
    return (match.group() for match in _LINE.finditer(text))


def _records(text: str, separator: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Records and their first lines; a line without a cell is an empty record."""
    reader = csv.reader(_lines(text), delimiter=separator, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise TableError(
                f"{name}, line {line}: {error}; look for a quote that is not closed, or that "
                "stands inside a cell without being doubled."
            ) from error
        stripped = [cell.strip() for cell in cells]
        # A quoted empty cell alone is how a table of one column writes a missing cell.
        yield line, stripped if any(stripped) or cells == [""] else []


def _structure(
    records: Records, source: str, advice: str
) -> tuple[tuple[str, ...], list[list[str]], list[int]]:
    """Header and rows of one width."""
    name = source.rpartition(", ")[0]
    if not records:
        raise TableError(f"{name} has no cell: a header line and rows are needed.")
    header = tuple(records[0][1])
    rows = records[1:]
    if not rows:
        raise TableError(f"{name} has a header but no rows.")
    uneven = [(line, len(cells)) for line, cells in rows if len(cells) != len(header)]
    if uneven:
        line, width = uneven[0]
        more = f" (and so {len(uneven) - 1} more of {len(rows)})" if len(uneven) > 1 else ""
        raise TableError(
            f"{source} {line}: {width} cells where the header has {len(header)}{more}; {advice}."
        )
    return header, [cells for _, cells in rows], [line for line, _ in rows]


def _without_unnamed(
    header: tuple[str, ...], rows: list[list[str]], source: str, notes: list[str]
) -> tuple[tuple[str, ...], list[list[str]]]:
    """Leave out an unnamed column that is empty or numbers the rows; refuse other ones."""
    positions = []
    counts = [[str(start + i) for i in range(len(rows))] for start in (0, 1)]
    for position, title in enumerate(header):
        cells = [row[position] for row in rows]
        if title:
            positions.append(position)
        elif not any(cells):
            notes.append(f"Column {position + 1} has neither name nor cells and was left out.")
        elif cells in counts:
            notes.append(f"Column {position + 1} has no name, numbers the rows, and was left out.")
        else:
            raise TableError(f"{source}: column {position + 1} has no name; name it.")
    if not positions:
        raise TableError(f"{source}: no column has a name.")
    if len(positions) == len(header):
        return header, rows
    return tuple(header[i] for i in positions), [[row[i] for i in positions] for row in rows]


def _check_names(header: tuple[str, ...], source: str) -> None:
    """Refuse column names that stand twice."""
    twice = [title for title, count in Counter(header).items() if count > 1]
    if twice:
        where = " and ".join(str(i + 1) for i, title in enumerate(header) if title == twice[0])
        raise TableError(
            f"{source}: columns {where} are both named {twice[0]!r}; give them distinct names."
        )


def _check_quotes(header: tuple[str, ...], rows: list[list[str]], source: str) -> None:
    """Refuse names in single quotes, and columns whose cells are all in single quotes."""
    for position, title in enumerate(header):
        cells = {row[position] for row in rows} - {""}
        quoted = len(cells) > 1 and all(map(_QUOTED.fullmatch, cells))
        if quoted or _QUOTED.fullmatch(title):
            shown = max(cells) if quoted else title
            raise TableError(
                f"{source}: cells of column {position + 1} stand in single quotes, such as "
                f"{shown}; write double quotes, or none."
            )


def _check_header_does_not_return(
    header: tuple[str, ...], rows: list[list[str]], lines: list[int], source: str
) -> None:
    """Refuse a header among the rows, as in concatenated files."""
    if len(header) > 1 and list(header) in rows:
        line = lines[rows.index(list(header))]
        raise TableError(
            f"{source} {line} is the header again; delete it, or put the column names above the "
            "rows if the file has no header."
        )


def _check_header_is_none_of_the_rows(
    header: tuple[str, ...], rows: list[list[str]], source: str
) -> None:
    """Refuse a header of data: fractions, or cells of its own columns throughout."""
    numbers = [title for title in header if is_number(title)]
    fractions = [title for title in numbers if not title.lstrip("+-").isdigit()]
    below = [
        is_number(title) or title in {row[position] for row in rows}
        for position, title in enumerate(header)
    ]
    if fractions or all(below):
        shown = (fractions or numbers or list(header))[0]
        raise TableError(
            f"{source}: the file seems to have no header, since {shown!r} looks like a "
            "cell; put the column names above the rows."
        )


# Rows of Parquet files: all at once, by row groups, or some at random of a long file.


MAX_PARQUET_CELLS: Final = 10_000_000
"""Cells of a Parquet file that are read at once; as text, each takes some 80 bytes."""
DRAWN_ROWS: Final = 20_000
"""Rows in the sample of a longer file for a report."""


@dataclass(frozen=True)
class OpenedParquet:
    """A Parquet file with distinct names."""

    file: Any
    texts: frozenset[str]  # Columns of text, which are read as dictionaries, as categories are.

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.file.metadata.num_rows, self.file.metadata.num_columns


def opened_parquet(source: Any, name: str) -> OpenedParquet:
    """A Parquet file with distinct names; texts stay in dictionaries: one may be in many rows."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
        import pyarrow.types as t
    except ImportError as error:
        raise TableError(
            f"{name} is a Parquet file, which needs pyarrow: pip install pyarrow."
        ) from error
    try:
        schema = pq.ParquetFile(source).schema_arrow
        texts = [field.name for field in schema if t.is_string(field.type)]
        opened = pq.ParquetFile(source, read_dictionary=texts)
    except (pa.ArrowException, OSError, ValueError) as error:  # ValueError: names that are no text
        raise TableError(f"{name} is a damaged Parquet file ({error}).") from error
    metadata = opened.metadata
    if not metadata.num_rows or not metadata.num_columns:
        raise TableError(f"{name} has {metadata.num_rows} rows and {metadata.num_columns} columns.")
    if len(set(schema.names)) < len(schema.names) or "" in schema.names:
        raise TableError(f"{name} has columns without a name or with the same name; rename them.")
    for title in schema.names:
        check_text(title, f"{name}, the name of a column")
    return OpenedParquet(opened, frozenset(texts))


def long_parquet(path: Path) -> OpenedParquet | None:
    """A Parquet file of more than ``MAX_PARQUET_CELLS`` cells, opened; else None."""
    with open(path, "rb") as file:
        if file.read(4) != b"PAR1":
            return None
    opened = opened_parquet(path, path.name)
    rows, columns = opened.shape
    return opened if rows * columns > MAX_PARQUET_CELLS else None


def rows_of(opened: OpenedParquet, name: str, groups: Sequence[int] | None = None) -> Any:
    """Arrow table of some row groups, or of all.

    TableError where they say, or turn out, to hold more than a CSV file may.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as t

    file = opened.file
    groups = range(file.metadata.num_row_groups) if groups is None else groups
    metadata = [file.metadata.row_group(group) for group in groups]
    size = max(
        sum(2 * row_group.num_rows * row_group.num_columns for row_group in metadata),
        sum(row_group.total_byte_size for row_group in metadata),
    )
    check_size(size, name)
    try:
        table = file.read_row_groups(list(groups))
        lengths = (
            pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0
            for column in table.columns
            if t.is_dictionary(column.type) and t.is_string(column.type.value_type)
            for chunk in column.chunks
        )
        size = sum(lengths, start=size)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TableError(f"{name} is a damaged Parquet file ({error}).") from error
    check_size(size, name)
    return table


def row_groups(opened: OpenedParquet, name: str) -> Iterator[tuple[int, Any]]:
    """Number of the first row of every row group, and its rows."""
    start = 0
    for group in range(opened.file.metadata.num_row_groups):
        table = rows_of(opened, name, [group])
        yield start, table
        start += table.num_rows


def random_rows(opened: OpenedParquet, name: str) -> tuple[list[int], Any]:
    """Indices and rows of a simple random sample, in order; the seed is fixed."""
    import pyarrow as pa

    total, _ = opened.shape
    rng = np.random.default_rng(0)
    chosen = np.sort(rng.choice(total, min(DRAWN_ROWS, total), replace=False, shuffle=False))
    tables = []
    for start, table in row_groups(opened, name):
        first, last = np.searchsorted(chosen, [start, start + len(table)])
        tables.append(table.take(chosen[first:last] - start))
    return chosen.tolist(), pa.concat_tables(tables)


# Columns of text cells from files: CSV, Parquet and Excel.


@dataclass(frozen=True)
class RawColumn:
    """A column of a file before anything is known of it."""

    name: str
    cells: list[str]
    has_levels: bool = False  # Whether its type says that its cells are levels.
    problem: str = ""  # Why it cannot be read at all; it can still be left out.
    is_text: bool = False  # Whether its type is text, which may yet be numbers.
    order: tuple[str, ...] = ()  # Of its levels, where its type says one.


@dataclass(frozen=True)
class RawTable:
    """The columns of a file."""

    columns: tuple[RawColumn, ...]
    lines: list[int]  # Line (or row) of the file of each row.
    source: str  # File and unit of ``lines``, for messages.
    notes: tuple[Note, ...]
    marked: bool  # Whether words of the file may mean missing; Parquet has nulls instead.
    whole: bool = True  # Whether all rows are there.
    separator: str = ""  # Of the cells of a line, in a file of text.
    index: Any = None  # Of a frame of pandas.

    def without_empty_rows(self) -> RawTable:
        """The table without rows of which no column has a cell, as in files of text."""
        if len(self.columns) < 2 or any(column.problem for column in self.columns):
            return self  # a missing cell alone is a row; cells of a problem are not known
        cells = zip(*(column.cells for column in self.columns), strict=True)
        filled = [i for i, row in enumerate(cells) if any(row)]
        if len(filled) in (0, len(self.lines)):
            return self
        skipped = sorted({*self.lines}.difference(self.lines[i] for i in filled))
        return replace(
            self,
            columns=tuple(replace(c, cells=[c.cells[i] for i in filled]) for c in self.columns),
            lines=[self.lines[i] for i in filled],
            notes=(*self.notes, *_skipped(skipped, self.source)),
            index=None if self.index is None else self.index[filled],
        )


def _skipped(lines: Sequence[int], source: str) -> list[Note]:
    """A note on lines without a cell, where there are any."""
    name, unit = source.rsplit(", ", 1)
    message = f"{name}: {unit}s without a cell are no rows and were skipped: {listed(lines)}."
    return [Note("skipped", "", message, len(lines))] if lines else []


def read_raw(path: Path, sampled: bool = False) -> RawTable:
    """Columns of a file, whose first bytes give its format; TableError if it is no table.

    Of a Parquet file too long to be read at once, ``sampled`` has some rows, and a note says so.
    """
    check_regular(path, TableError)
    opened = long_parquet(path) if sampled else None
    if opened is None:
        return next(raw_blocks(path))
    row_indices, table = random_rows(opened, path.name)
    message = (
        f"{path.name} has {opened.shape[0]} rows, too many to be read at once: all that "
        f"follows is about {len(row_indices)} of them, drawn at random."
    )
    rows = [index + 1 for index in row_indices]
    drawn = _of_arrow(table, 0, path.name, opened.texts)
    return replace(drawn, lines=rows, notes=(Note("file", "", message),), whole=False)


def raw_blocks(path: Path, size: int | None = None) -> Iterator[RawTable]:
    """Columns of a file in blocks of ``size`` rows; an Excel workbook is one block."""
    check_regular(path, TableError)  # a pipe may never end, and is empty when it is read again
    if size is not None and (opened := long_parquet(path)) is not None:
        for start, table in row_groups(opened, path.name):
            for first in range(0, table.num_rows, size):
                yield _of_arrow(table.slice(first, size), start + first, path.name, opened.texts)
        return
    with open(path, "rb") as file:
        yield from raw_content(limited(file, path.name), path.name, size)


def raw_content(content: bytes, name: str, size: int | None = None) -> Iterator[RawTable]:
    """Columns of a file in memory, in blocks of ``size`` rows."""
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


def _of_cells(table: Delimited, source: str) -> RawTable:
    """Columns of a file whose cells have no types."""
    columns = [RawColumn(n, [row[i] for row in table.rows]) for i, n in enumerate(table.header)]
    notes = [*(Note("file", "", note) for note in table.notes), *_skipped(table.skipped, source)]
    return RawTable(
        tuple(columns), table.lines, source, tuple(notes), marked=True, separator=table.separator
    )


_MARKED_SHEET: Final = re.compile(rb'<mergeCell |<row [^>]*hidden="(?:1|true)"')
"""Markup of a sheet with merged cells or hidden rows."""


_LITERAL: Final = re.compile(r'"[^"]*"|\\.')
"""Letters of a number format that are shown as they are."""


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
        with ZipFile(io.BytesIO(content)) as archive:
            check_size(sum(entry.file_size for entry in archive.infolist()), name)
            sheets = [entry for entry in archive.namelist() if entry.startswith("xl/worksheets/")]
            marked = any(_MARKED_SHEET.search(archive.read(sheet)) for sheet in sheets)
        # The read-only mode saves memory, but knows neither merged cells nor hidden rows.
        book = load_workbook(io.BytesIO(content), read_only=not marked, data_only=True)
    except TableError:
        raise
    except (BadZipFile, InvalidFileException, KeyError, ValueError) as error:
        raise TableError(f"{name} is a damaged Excel workbook ({error}).") from error
    title, *other_sheets = book.sheetnames
    of_sheets = f"Sheet {title!r} was read; {', '.join(map(repr, other_sheets))} not."
    rows = [[_sheet_text(cell).strip() for cell in row] for row in book[title].rows]
    notes = []
    if marked:
        notes += _fill(rows, book[title].merged_cells.ranges, f"{name}, sheet {title!r}")
        shown = book[title].row_dimensions
        if hidden := [i for i, row in enumerate(rows, 1) if any(row) and shown[i].hidden]:
            which = listed(hidden)
            notes.append(f"Rows that are hidden or filtered out were read as all others: {which}.")
    width = max((1 + i for row in rows for i, cell in enumerate(row) if cell), default=0)
    records = [
        (line, [*row[:width], *[""] * (width - len(row))] if any(row) else [])
        for line, row in enumerate(rows, start=1)
    ]
    try:
        if not width:
            raise TableError(f"{name}: the sheet {title!r} is empty: a header and rows are needed.")
        description = f"of the sheet {title!r}"
        table = tabulated(records, f"{name}, row", description, "mend the row", notes)
    except TableError as error:
        hint = f"{of_sheets} To read another, put it first, or save it as a file of its own."
        raise TableError(*error.problems, *[hint] * bool(other_sheets)) from None
    raw = _of_cells(table, f"{name}, row")
    return replace(raw, notes=(*raw.notes, *[Note("sheets", "", of_sheets)] * bool(other_sheets)))


def _sheet_text(cell: Any) -> str:
    """A cell of a sheet as text; the number 0.57 in per cent is 57 %, as the sheet shows it."""
    value = cell.value
    if isinstance(value, int | float) and "%" in _LITERAL.sub("", cell.number_format):
        return f"{Decimal(repr(value)) * 100:f}%"
    return cell_text(value)


def _fill(rows: list[list[str]], ranges: Any, source: str) -> list[str]:
    """Fill vertically merged cells with their value, and return notes on them.

    TableError where a value is merged over columns: it may belong to any of them.
    """
    filled = []
    for block in ranges:
        first, last, column = block.min_row - 1, block.max_row, block.min_col - 1
        value = rows[first][column] if first < len(rows) else ""
        if value and block.max_col > block.min_col:
            raise TableError(
                f"{source}: the cells {block.coord} are merged over columns; unmerge them, and "
                "give each column its own name and cells."
            )
        if value:
            filled.append(block.coord)
            for row in rows[first:last]:
                row[column] = value
    return [f"Merged cells hold their value in each row: {listed(filled)}."] if filled else []


def _of_arrow(table: Any, start: int, name: str, texts: Collection[str]) -> RawTable:
    """Columns of an Arrow table as text that round-trips; rows are numbered from ``start``.

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
    order: tuple[str, ...] = ()
    if levels and dtype.ordered:
        orders = {tuple(map(cell_text, c.dictionary.to_pylist())) for c in table[title].chunks}
        order = orders.pop() if len(orders) == 1 else ()
    return RawColumn(title, cells, has_levels=not is_number, order=order)


def cell_text(value: object) -> str:
    """Text of a typed cell; floats round-trip, and times are in UTC."""
    if value is None or value != value:
        return ""
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return value.isoformat(" ") if value.time() != datetime.time() else value.date().isoformat()
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


# Columns of frames of pandas, polars and Arrow as a file would have them.


_PLAIN: Final = (str, numbers.Number, Decimal, datetime.date)
_NAME: Final = "the frame"


def raw_frame(frame: Any) -> RawTable:
    """Columns of a frame in memory; TableError for any other object.

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
    if isinstance(dtype, nw.Boolean):
        return RawColumn(title, texts, has_levels=True)
    if isinstance(dtype, nw.Categorical | nw.Enum):
        order = series.cat.get_categories().to_list() if is_ordered(series) else ()
        return RawColumn(title, texts, has_levels=True, order=tuple(map(cell_text, order)))
    if isinstance(dtype, nw.String | nw.Object):
        return RawColumn(title, [text.strip() for text in texts], is_text=True)
    return RawColumn(title, texts)


def is_ordered(series: nw.Series[Any]) -> bool:
    """Whether the dtype of a Categorical declares an order of its categories.

    The categories of an Enum of polars have places, but need not rise.
    """
    if series.implementation.is_pyarrow():
        return bool(series.to_native().type.ordered)
    return series.implementation.is_pandas() and isinstance(series.dtype, nw.Enum)


def _present(series: nw.Series[Any]) -> Sequence[object]:
    """Cells of a column, with None for each kind of null."""
    nulls = series.is_null().to_list()
    return [None if null else cell for cell, null in zip(series.to_list(), nulls, strict=True)]
