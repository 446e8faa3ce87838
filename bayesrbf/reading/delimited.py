"""Text files: encoding, compression, separator and structure, before any meaning."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from bayesrbf.reading.cells import is_number
from bayesrbf.reading.notes import TableError

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
}
MOST_TABLE_BYTES: Final = 2**30
"""Bytes of a table, unpacked: beyond, its cells do not fit into the memory of most machines."""
CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NEWLINE: Final = re.compile(r"\r\n|\r|\n")


def limited(file: Any, name: str) -> bytes:
    """All bytes of a file, at most ``MOST_TABLE_BYTES`` of them."""
    content: bytes = file.read(MOST_TABLE_BYTES + 1)
    check_size(len(content), name)
    return content


def check_size(size: int, name: str) -> None:
    """TableError where a file holds, or says that it holds, more bytes than a table may."""
    if size > MOST_TABLE_BYTES:
        raise TableError(
            f"{name} has more than {MOST_TABLE_BYTES >> 20} MiB, unpacked; give a smaller table."
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
    for signature, what in _OTHER_FORMATS.items():
        if content.startswith(signature):
            raise TableError(f"{name} is {what}, not a CSV file: export the table as CSV.")
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
    if encoding == "cp1252":
        strange = next(character for character in text if ord(character) > 127)
        line = _line_after(text[: text.index(strange)])
        notes.append(
            f"The file is not UTF-8; it was read as Windows-1252 (line {line} has {strange!r})."
        )
    return text


def _line_after(text: str) -> int:
    """Number of the line on which the text goes on."""
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
    place = f"{name}, line"
    apart = f"look for a missing or extra {separator!r}, or quote the cell that contains one"
    first = list(islice(records, size))
    while sum(1 for _, cells in first if cells) < 2 and (more := list(islice(records, size))):
        first += more
    yield tabulated(first, place, f"separated by {SEPARATORS[separator]}", apart, notes)
    head = next(record for record in first if record[1])
    while block := list(islice(records, size)):
        rows = [record for record in block if record[1]]
        if rows:
            yield _continued([head, *rows], place, apart)


def _continued(records: Records, place: str, apart: str) -> Delimited:
    """Further rows below a header that is known to be one; columns without a name are left out."""
    header, rows, lines = _structure(records, place, apart)
    _check_header_does_not_return(header, rows, lines, place)
    positions = [position for position, title in enumerate(header) if title]
    if len(positions) < len(header):
        rows = [[row[position] for position in positions] for row in rows]
    return Delimited(tuple(header[position] for position in positions), rows, lines, ())


def tabulated(records: Records, place: str, how: str, apart: str, notes: list[str]) -> Delimited:
    """Records as a table, the first being the header.

    ``place`` is the file and the unit of its records, ``how`` its format, and ``apart`` what to do
    where records differ in length. TableError if there is no table.
    """
    name = place.rpartition(", ")[0]
    if not records:
        raise TableError(f"{name} is empty: a header line and rows are needed.")
    last = max((i for i, (_, cells) in enumerate(records) if cells), default=-1)
    blank = sum(not cells for _, cells in records[: 1 + last])
    if blank:
        notes.append(f"{blank} blank lines were skipped.")
    records = [(line, cells) for line, cells in records if cells]
    header, rows, lines = _structure(records, place, apart)
    header, rows = _without_unnamed(header, rows, f"{place} {records[0][0]}", notes)
    _check_names(header, f"{place} {records[0][0]}")
    _check_quotes(header, rows, f"{place} {records[0][0]}")
    _check_header_does_not_return(header, rows, lines, place)
    _check_header_is_none_of_the_rows(header, rows, f"{place} {records[0][0]}")
    notes.insert(0, f"{len(rows)} rows and {len(header)} columns, {how}.")
    return Delimited(header, rows, lines, tuple(notes))


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
    """Records and the lines on which they start; an empty line is an empty record."""
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
        yield line, [cell.strip() for cell in cells]


def _structure(
    records: Records, place: str, apart: str
) -> tuple[tuple[str, ...], list[list[str]], list[int]]:
    """Header and rows of one width."""
    name = place.rpartition(", ")[0]
    if not records:
        raise TableError(f"{name} holds blank lines only: a header line and rows are needed.")
    header = tuple(records[0][1])
    rows = records[1:]
    if not rows:
        raise TableError(f"{name} has a header but no rows.")
    uneven = [(line, len(cells)) for line, cells in rows if len(cells) != len(header)]
    if uneven:
        line, width = uneven[0]
        more = f" (and so {len(uneven) - 1} more of {len(rows)})" if len(uneven) > 1 else ""
        raise TableError(
            f"{place} {line}: {width} cells where the header has {len(header)}{more}; {apart}."
        )
    return header, [cells for _, cells in rows], [line for line, _ in rows]


def _without_unnamed(
    header: tuple[str, ...], rows: list[list[str]], place: str, notes: list[str]
) -> tuple[tuple[str, ...], list[list[str]]]:
    """Leave out an unnamed column that is empty or numbers the rows; refuse any other."""
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
            raise TableError(f"{place}: column {position + 1} has no name; name it.")
    if not positions:
        raise TableError(f"{place}: no column has a name.")
    if len(positions) == len(header):
        return header, rows
    return tuple(header[i] for i in positions), [[row[i] for i in positions] for row in rows]


def _check_names(header: tuple[str, ...], place: str) -> None:
    """Refuse column names that stand twice."""
    twice = [title for title, count in Counter(header).items() if count > 1]
    if twice:
        where = " and ".join(str(i + 1) for i, title in enumerate(header) if title == twice[0])
        raise TableError(
            f"{place}: columns {where} are both named {twice[0]!r}; give them distinct names."
        )


def _check_quotes(header: tuple[str, ...], rows: list[list[str]], place: str) -> None:
    """Refuse names in single quotes, and columns of which every cell stands in them."""
    for position, title in enumerate(header):
        cells = {row[position] for row in rows} - {""}
        quoted = len(cells) > 1 and all(map(_QUOTED.fullmatch, cells))
        if quoted or _QUOTED.fullmatch(title):
            shown = max(cells) if quoted else title
            raise TableError(
                f"{place}: cells of column {position + 1} stand in single quotes, such as {shown}; "
                "write double quotes, or none."
            )


def _check_header_does_not_return(
    header: tuple[str, ...], rows: list[list[str]], lines: list[int], place: str
) -> None:
    """Refuse a header among the rows, as where files were put one below the other."""
    if len(header) > 1 and list(header) in rows:
        line = lines[rows.index(list(header))]
        raise TableError(
            f"{place} {line} is the header again; delete it, or put the column names above the "
            "rows if the file has no header."
        )


def _check_header_is_none_of_the_rows(
    header: tuple[str, ...], rows: list[list[str]], place: str
) -> None:
    """Refuse a first line that is data: fractions, or numbers and cells of their own columns."""
    numbers = [title for title in header if is_number(title)]
    fractions = [title for title in numbers if not title.lstrip("+-").isdigit()]
    below = [
        is_number(title) or title in {row[position] for row in rows}
        for position, title in enumerate(header)
    ]
    if fractions or all(below):
        shown = (fractions or numbers or list(header))[0]
        raise TableError(
            f"{place}: the file seems to have no header, since {shown!r} looks like a "
            "cell; put the column names above the rows."
        )
