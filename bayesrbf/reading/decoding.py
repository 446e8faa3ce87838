"""Bytes of a file as text: encodings, compression, and how much of it there may be."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from typing import Any, Final

from bayesrbf.reading.notes import TableError

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
