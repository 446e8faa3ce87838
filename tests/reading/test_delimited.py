"""The structure of text files: one documented result, or an error with its line."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import pickle

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesrbf import TableError
from bayesrbf.reading.cells import is_number
from bayesrbf.reading.formats import Delimited, delimited_blocks

PLAIN = "name,size\nfox,1.5\nowl,2\n"


def read(content: str | bytes, encoding: str = "utf-8") -> Delimited:
    data = content.encode(encoding) if isinstance(content, str) else content
    return next(delimited_blocks(data, "a.csv"))


def cells(table: Delimited) -> tuple[tuple[str, ...], list[list[str]]]:
    return table.header, table.rows


@pytest.mark.parametrize(
    "encoding",
    ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"],
)
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_encodings_separators_and_newlines_give_the_same_cells(
    encoding: str, separator: str, newline: str
) -> None:
    text = PLAIN.replace(",", separator).replace("\n", newline).replace("fox", "Füchsin")
    table = read(text, encoding)
    assert cells(table) == (("name", "size"), [["Füchsin", "1.5"], ["owl", "2"]])
    assert table.lines == [2, 3]
    assert any("Windows-1252 (line 2 has 'ü')" in n for n in table.notes) == (encoding == "cp1252")


def feather() -> bytes:
    stream = io.BytesIO()
    pd.DataFrame({"a": [1]}).to_feather(stream)
    return stream.getvalue()


texts = st.text(st.characters(exclude_categories=["Cc", "Cs"]) | st.just("\n"), max_size=6)


@given(
    st.lists(st.lists(texts, min_size=2, max_size=2), min_size=1, max_size=5),
    st.sampled_from(list(",;\t|")),
)
def test_whatever_is_written_quoted_comes_back(rows: list[list[str]], separator: str) -> None:
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=separator, quoting=csv.QUOTE_ALL)
    writer.writerows([["first column", "second column"], *rows])
    writer.writerow(["last", "row"])
    table = read(file.getvalue())
    stripped = [[cell.strip() for cell in row] for row in rows]
    assert cells(table) == (
        ("first column", "second column"),
        [*(row for row in stripped if any(row)), ["last", "row"]],
    )


def test_gzip_is_unpacked() -> None:
    assert cells(read(gzip.compress(PLAIN.encode()))) == cells(read(PLAIN))


def test_lines_are_those_of_the_file() -> None:
    table = read('a,b\n"x\ny",1\n\n\nz,2\n\n')
    assert table.rows == [["x\ny", "1"], ["z", "2"]]
    assert table.lines == [2, 6 - 1 + 1]
    assert table.skipped == (4, 5, 7)


def test_the_first_note_says_what_was_read() -> None:
    assert read("a;b\n1,5;x\n").notes == ("1 rows and 2 columns, separated by semicolons.",)


def test_decimal_commas_do_not_separate() -> None:
    assert read("a;b\n1,5;2,5\n3,5;4,5\n").rows == [["1,5", "2,5"], ["3,5", "4,5"]]


def test_separators_that_split_alike_are_noted() -> None:
    table = read("a,b;c\nx,y;z\n")
    assert any("both split every line evenly" in note for note in table.notes)


def test_one_column_needs_no_separator() -> None:
    assert cells(read("size\n1.5\n2\n")) == (("size",), [["1.5"], ["2"]])


@pytest.mark.parametrize("start", [0, 1])
def test_row_numbers_without_a_name_are_left_out_with_a_note(start: int) -> None:
    table = read(f",a,\n{start},x,\n{start + 1},y,\n")
    assert cells(table) == (("a",), [["x"], ["y"]])
    assert "Column 1 has no name, numbers the rows, and was left out." in table.notes
    assert "Column 3 has neither name nor cells and was left out." in table.notes


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "a.csv is empty"),
        ("\n\n", "has no cell"),
        ("a,b\n", "header but no rows"),
        ("a,b\n1,x,\n2,y\n", r"line 2: 3 cells where the header has 2"),
        ("a,b\n1,x\n2\n", "line 3: 1 cells where the header has 2"),
        ('a,b\n1,"x\ny"\n\n2,y,z\n', "line 5: 3 cells"),
        ('a,b\n1,x\n2,"y\n3,z\n', "line 3: .*quote that is not closed"),
        ('a,b\n1,"x"y\n', "line 2: .*quote"),
        ('a,b\n1,"' + "x" * 200_000 + '"\n', "line 2: field larger than field limit"),
        ("a,b,a\n1,2,3\n", "columns 1 and 3 are both named 'a'"),
        ("a, a\n1,x\n", "columns 1 and 2 are both named 'a'"),
        ("a,,b\n1,2,3\n1,2,3\n", "line 1: column 2 has no name"),
        (",\nx,\n", "header but no rows"),
        (",\n,\n", "has no cell"),
        ("a,b\n,\n , \n", "header but no rows"),
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n", "seems to have no header, since '5.1'"),
        ("1,2\n3,4\n", "seems to have no header, since '1'"),
        ("p,x\ne,x\np,y\n", "seems to have no header, since 'p'"),
        ("7.5,row1\n8.5,row2\n", "seems to have no header"),
        (b"a,b\n1,\x00\n", r"line 2: the control character '\\x00' is no text"),
        (b"a,b\n1,\x81\n", "line 2: not text in cp1252"),
        (bytes(range(256)), "line 3: not text in cp1252"),
        (b"PK\x03\x04rest", "an Excel workbook"),
        (b"%PDF-1.7", "a PDF"),
        (bz2.compress(b"a,b\n1,2\n"), "is compressed by bzip2, not a CSV file: export the table"),
        (lzma.compress(b"a,b\n1,2\n"), "compressed by xz"),
        (pickle.dumps({"a": [1]}), "a pickle"),
        (feather(), "a Feather or Arrow file"),
        ('{"a": 1}\n{"a": 2}\n', "is JSON"),
        ('[\n {"a": 1}]', "is JSON"),
        ('\ufeff{ "a": [1]}', "is JSON"),
        ("<!DOCTYPE html><table>", "an HTML page"),
        (b"\x1f\x8brest", "damaged gzip"),
        (gzip.compress(PLAIN.encode(), mtime=0)[:-9], "damaged gzip"),
        (b"\xff\xfea\x00,", "not text in utf-16"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(content: str | bytes, message: str) -> None:
    with pytest.raises(TableError, match=message) as caught:
        read(content)
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_table_or_an_error(content: bytes) -> None:
    try:
        table = read(content)
    except TableError:
        return
    assert all(len(row) == len(table.header) for row in table.rows)


def test_years_may_be_column_names() -> None:
    assert read("name,2019,2020\nfox,1,2\nowl,3,4\n").header == ("name", "2019", "2020")


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", True), ("-.5e-3", True), ("1.", True), ("+2E+5", True), ("", False), ("1 000", False)]
    + [(word, False) for word in ("nan", "inf", "0x10", "1_0", "1e", ".", "-", "٣")],
)
def test_numbers_are_plain(text: str, number: bool) -> None:
    assert is_number(text) is number
