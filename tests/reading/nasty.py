"""Nasty tables, made by code: what each CSV file is, and what it must become.

A dictionary has the cells of every column as they must be read, None where they are missing; a text
has words of the error. None may be read in another way.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Cells = Mapping[str, list[Any]]


@dataclass(frozen=True)
class Nasty:
    """A file and what it must become."""

    content: bytes | Callable[[], bytes]
    becomes: Cells | str
    note: str = ""  # Words that a note must have.
    suffix: str = ".csv"

    def written(self) -> bytes:
        """The bytes of the file."""
        return self.content if isinstance(self.content, bytes) else self.content()


TWO: Final[Cells] = {"a": [1.5, 2.0], "b": ["x", "y"]}
PLAIN: Final = "a,b\n1.5,x\n2,y\n"


def in_rows(*cells: str, name: str = "a") -> bytes:
    """A file of a column and of one of texts beside it."""
    return "\n".join([f"{name},b", *(f"{c},t{i}" for i, c in enumerate(cells))]).encode()


def beside(*cells: Any, name: str = "a") -> Cells:
    """What :func:`in_rows` becomes."""
    return {name: list(cells), "b": [f"t{i}" for i in range(len(cells))]}


def encoded(encoding: str, text: str = PLAIN) -> bytes:
    return text.encode(encoding)


ENCODINGS: Final = {
    "UTF-8 with a mark": Nasty(encoded("utf-8-sig"), TWO),
    "UTF-16 with a mark": Nasty(encoded("utf-16"), TWO),
    "UTF-16 without a mark, little": Nasty(encoded("utf-16-le"), TWO),
    "UTF-16 without a mark, big": Nasty(encoded("utf-16-be"), TWO),
    "UTF-32": Nasty(encoded("utf-32"), TWO),
    "Windows-1252": Nasty(
        "a,b\n1,grün\n2,süß\n".encode("cp1252"),
        {"a": [1.0, 2.0], "b": ["grün", "süß"]},
        "Windows-1252",
    ),
    "half a character of UTF-8 at the end": Nasty(
        "a,b\n1,x\n2,ü".encode()[:-1], {"a": [1.0, 2.0], "b": ["x", "Ã"]}, "Windows-1252"
    ),
    "UTF-16 of an odd number of bytes": Nasty(encoded("utf-16")[:-1], "not text in utf-16"),
    "surrogates in UTF-8": Nasty(
        b"a,b\n1,\xed\xa0\x80\n2,y\n", {"a": [1.0, 2.0], "b": ["í\xa0€", "y"]}, "Windows-1252"
    ),
    "bytes that Windows-1252 lacks": Nasty(b"a,b\n1,\x81\n", "line 2: not text in cp1252"),
    "gzip": Nasty(gzip.compress(PLAIN.encode(), mtime=0), TWO),
    "gzip of gzip": Nasty(
        gzip.compress(gzip.compress(PLAIN.encode(), mtime=0), mtime=0), "gzip|control|cp1252"
    ),
    "gzip that is cut": Nasty(gzip.compress(PLAIN.encode(), mtime=0)[:-6], "damaged gzip"),
    "gzip with bytes behind it": Nasty(
        gzip.compress(PLAIN.encode(), mtime=0) + b"more", "damaged gzip"
    ),
    "two gzips, one after the other": Nasty(
        gzip.compress(b"a,b\n1.5,x\n", mtime=0) + gzip.compress(b"2,y\n", mtime=0), TWO
    ),
}

STRUCTURE: Final = {
    "no byte": Nasty(b"", "is empty"),
    "a byte order mark alone": Nasty(b"\xef\xbb\xbf", "is empty"),
    "line ends alone": Nasty(b"\n\r\n\r", "has no cell"),
    "a header alone": Nasty(b"a,b\n", "header but no rows"),
    "no line end at the end": Nasty(b"a,b\n1.5,x\n2,y", TWO),
    "old line ends": Nasty(b"a,b\r1.5,x\r2,y\r", TWO),
    "three kinds of line ends": Nasty(b"a,b\r\n1.5,x\r2,y\n", TWO),
    "blank lines between": Nasty(b"\n\na,b\n\n1.5,x\n\n2,y\n\n", TWO, "without a cell"),
    "lines of separators": Nasty(
        b",\na,b\n,\n1.5,x\n , \n2,y\n,\n", TWO, "skipped: 1, 3, 5 and 7."
    ),
    "a row that is too long": Nasty(b"a,b\n1,x,\n2,y\n", "line 2: 3 cells where the header has 2"),
    "every row too long by one": Nasty(
        b"a,b\n1,x,9\n2,y,9\n", "line 2: 3 cells where the header has 2"
    ),
    "a row that is too short": Nasty(b"a,b\n1,x\n2\n", "line 3: 1 cells where the header has 2"),
    "a comma at the end of every line": Nasty(
        b"a,b,\n1.5,x,\n2,y,\n", TWO, "neither name nor cells"
    ),
    "a quote that is not closed": Nasty(b'a,b\n1,"x\n2,y\n', "quote that is not closed"),
    "a quote inside a cell": Nasty(b'a,b\n1,x"y"\n2,z\n', {"a": [1.0, 2.0], "b": ['x"y"', "z"]}),
    "text behind a closed quote": Nasty(b'a,b\n1,"x"y\n2,z\n', "line 2: .*quote"),
    "line ends and separators in quotes": Nasty(
        b'a,b\n1,"x,\n;y"\n2,z\n', {"a": [1.0, 2.0], "b": ["x,\n;y", "z"]}
    ),
    "doubled quotes": Nasty(b'a,b\n1,"say ""x"""\n2,z\n', {"a": [1.0, 2.0], "b": ['say "x"', "z"]}),
    "a cell of 200 kB": Nasty(b"a,b\n1," + b"x" * 200_000 + b"\n", "field larger than field limit"),
    "a line that says the separator": Nasty(b"sep=;\na;b\n1,5;x\n2;y\n", TWO),
    "comments above the header": Nasty(b"# made by x\na,b\n1,x\n", "cells where the header has"),
    "spaces for separators": Nasty(
        b"a b\n1 x\n2 y\n", {"a b": ["1 x", "2 y"]}, "text such as '1 x'"
    ),
    "a NUL": Nasty(b"a,b\n1,\0\n", "control character"),
    "an escape sequence": Nasty(b"a,b\n1,\x1b[31mred\n", "control character"),
    "10,001 columns": Nasty(
        (
            ",".join(f"c{i}" for i in range(10_001)) + "\n" + ",".join(["1"] * 10_001) + "\n"
        ).encode(),
        {f"c{i}": [1.0] for i in range(10_001)},
        "one value only",
    ),
    "a name of 100 kB": Nasty(
        b"a" * 100_000 + b",b\n1.5,x\n2,y\n", {"a" * 100_000: [1.5, 2.0], "b": ["x", "y"]}
    ),
    "the same name twice": Nasty(b"a,a\n1,2\n", "both named 'a'"),
    "names that differ by blanks": Nasty(b"a, a\n1,2\n", "both named 'a'"),
    "a column without a name": Nasty(b"a,,b\n1,2,x\n3,5,y\n", "column 2 has no name"),
    "no header": Nasty(b"1.5,2\n3,4\n", "no header"),
    "a header in the middle again": Nasty(b"a,b\n1,x\na,b\n2,y\n", "line 3 is the header again"),
    "names that look alike": Nasty(
        "a,а\n1.5,x\n2,y\n".encode(), {"a": [1.5, 2.0], "а": ["x", "y"]}
    ),
    "a turn of the writing direction": Nasty(
        "a,b\n1.5,\u202ex\n2,y\n".encode(), {"a": [1.5, 2.0], "b": ["\u202ex", "y"]}
    ),
}

NUMBERS: Final = {
    "integers beyond 2^53": Nasty(
        in_rows("9007199254740993", "1", "3"),
        beside("9007199254740993", "1", "3"),
        "too long for a float",
    ),
    "numbers that overflow": Nasty(
        in_rows("1e999", "1"), "line 2, column 'a': '1e999' is infinite"
    ),
    "numbers that underflow": Nasty(in_rows("1e-400", "1"), beside(0.0, 1.0)),
    "infinity": Nasty(in_rows("inf", "1"), "line 2, column 'a': 'inf' is infinite"),
    "hexadecimal": Nasty(in_rows("0x1F", "1"), "'0x1F' is text among numbers"),
    "underscores": Nasty(in_rows("1_000", "1"), "'1_000' is text among numbers"),
    "digits of other scripts": Nasty(in_rows("١٢", "٣"), beside("١٢", "٣"), "write plain numbers"),
    "zeros in front": Nasty(in_rows("007", "012"), beside("007", "012"), "leading zeros"),
    "decimal commas": Nasty(b"a;b\n1,5;x\n2;y\n", TWO, "decimal commas"),
    "a decimal comma and a point": Nasty(
        b"a;b\n1,5;x\n2.5;y\n", "'1,5' has a decimal comma, but '2.5' has a point"
    ),
    "1,234 alone": Nasty(b"a;b\n1,234;x\n2;y\n", "decimal comma or a mark"),
    "numbers and a word": Nasty(
        in_rows("1", "2", "n.d.", "3"), "line 4, column 'a': 'n.d.' is text among numbers"
    ),
    "numbers and the letter O": Nasty(in_rows("1O", "2", "3"), "'1O' is text among numbers"),
    "two currencies": Nasty(in_rows("$1", "€2"), "another unit"),
    "per cent and none": Nasty(in_rows("50%", "0.5"), "another unit"),
    "brackets for minus": Nasty(in_rows("(5)", "3"), "is text among numbers"),
    "minus behind": Nasty(in_rows("5-", "3"), "is text among numbers"),
    "a typographic minus": Nasty(in_rows("\u22125", "3"), "is text among numbers"),
    "an error of a spreadsheet": Nasty(in_rows("#DIV/0!", "3"), "is text among numbers"),
    "formulas": Nasty(in_rows("=1+1", "=2+2"), beside("=1+1", "=2+2")),
    "dates without a word": Nasty(in_rows("2020-01-01", "2021-01-01"), "is a date: say --dates a"),
    "times": Nasty(in_rows("12:30", "13:45"), beside("12:30", "13:45"), "text such as '12:30'"),
    "words for missing": Nasty(
        in_rows("NA", "?", "", "NULL", "1.5"), beside(None, None, None, None, 1.5)
    ),
    "missing alone": Nasty(in_rows("", "", ""), beside(None, None, None), "has no value"),
    "yes, no and missing": Nasty(in_rows("yes", "no", "NA"), beside("yes", "no", None)),
    "levels that differ by case": Nasty(in_rows("Yes", "yes", "YES"), beside("Yes", "yes", "YES")),
    "levels that differ by a hard blank": Nasty(
        in_rows("a\u00a0b", "a b"), beside("a\u00a0b", "a b")
    ),
}


CORPUS: Final[dict[str, Nasty]] = {**ENCODINGS, **STRUCTURE, **NUMBERS}
