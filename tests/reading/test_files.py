"""Files to frames: kinds, missing cells, and what is said about them."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesrbf import ReadTable, TableError, read_table
from bayesrbf.table.columns import learn_columns


def read(folder: Path, text: str, **options: Any) -> ReadTable:
    path = folder / "a.csv"
    path.write_text(text, encoding="utf-8")
    return read_table(path, **options)


def column(folder: Path, *cells: str, **options: Any) -> ReadTable:
    """Read a table whose column ``a`` has these cells."""
    rows = [f'"{cell}";{"xyz"[i % 3]}' for i, cell in enumerate(cells)]
    return read(folder, "\n".join(["a;other", *rows]), **options)


def values(table: ReadTable) -> list[Any]:
    return [None if pd.isna(v) else v for v in table.frame["a"].tolist()]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (("1", "2.5", "-3e2"), [1.0, 2.5, -300.0]),
        (("1", "", "NA", "?", "nan", "2"), [1.0, None, None, None, None, 2.0]),
        (("0", "0.5", "10"), [0.0, 0.5, 10.0]),
        (("1,5", "2", "-,25"), [1.5, 2.0, -0.25]),
        (("1,500", "2,5"), [1.5, 2.5]),
        (("9007199254740992", "1"), [2.0**53, 1.0]),
        (("100000000000000000000", "1"), [1e20, 1.0]),
        (("1e-400", "1"), [0.0, 1.0]),
        (("", ""), [None, None]),
        ((" 1 ", "2"), [1.0, 2.0]),
    ],
)
def test_numbers_are_real(tmp_path: Path, cells: tuple[str, ...], expected: list[Any]) -> None:
    table = column(tmp_path, *cells)
    assert table.kinds["a"].word == "real"
    assert table.frame["a"].dtype == np.float64
    assert values(table) == expected


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (("x", "y", "", "NA"), ["x", "y", None, None]),
        (("None", "none", "-"), ["None", "none", "-"]),
        (("007", "150"), ["007", "150"]),
        (("9007199254740993", "1"), ["9007199254740993", "1"]),
        (("True", "False"), ["True", "False"]),
        (("1.0", "0.0", "", "1"), ["1", "0", None, "1"]),
        (("5 kg", "7 kg"), ["5 kg", "7 kg"]),
        (("inf", "sup"), ["inf", "sup"]),
        (("=1+1", "@x"), ["=1+1", "@x"]),
    ],
)
def test_text_is_categorical(tmp_path: Path, cells: tuple[str, ...], expected: list[Any]) -> None:
    table = column(tmp_path, *cells)
    assert table.kinds["a"].has_levels
    assert values(table) == expected


@pytest.mark.parametrize(
    ("cells", "note"),
    [
        (("1", "NA", "NA", "?"), "'NA' was read as missing: 2 cells of 'a'."),
        (
            ("007", "150"),
            "leading zeros, such as '007': read as categories; if they are",
        ),
        (("9007199254740993", "1"), "too long for a float, such as '9007199254740993'"),
        (("1,5", "2"), "'a' has decimal commas, such as '1,5'."),
        (
            ("1", "2", "2"),
            "'a' holds the whole numbers 1, 2: read as real; if they are codes",
        ),
        (("1", "0", ""), "'a' holds 0 and 1 alone, read as no and yes; if they are quantities"),
        (("7", "7"), "'a' holds one value only."),
        (("", "NA"), "'a' has no value."),
        (
            tuple(f"word {i}" for i in range(40)),
            "(40 distinct values), such as 'word 10'. It is left out",
        ),
        (("5 kg", "7 kg"), "text such as '5 kg', read as categories; if it is a quantity"),
    ],
)
def test_what_is_doubtful_is_noted(tmp_path: Path, cells: tuple[str, ...], note: str) -> None:
    assert any(note in found for found in column(tmp_path, *cells).notes)


def test_nothing_is_noted_about_what_is_plain(tmp_path: Path) -> None:
    assert len(column(tmp_path, "1.5", "2.5").notes) == 1


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (("1", "2", "unknown"), "a.csv, line 4, column 'a': 'unknown' is text among numbers"),
        (("1.5", "2,5"), "line 3, column 'a': '2,5' has a decimal comma, but '1.5' has a point"),
        (
            ("1,234", "5"),
            "line 2, column 'a': '1,234' may be a decimal comma or a mark between",
        ),
        (("1", "inf"), "line 3, column 'a': 'inf' is infinite"),
        (("1", "-1e999"), "line 3, column 'a': '-1e999' is infinite"),
        (("2020-01-31", "2021-02-01"), "line 2, column 'a': '2020-01-31' is a date"),
        (("1.2.2020", "3.4.2021"), "'1.2.2020' is a date"),
    ],
)
def test_what_is_ambiguous_is_refused(tmp_path: Path, cells: tuple[str, ...], message: str) -> None:
    with pytest.raises(TableError, match=message):
        column(tmp_path, *cells)


@pytest.mark.parametrize(
    ("cells", "categorical", "real"),
    [
        (("1", "02", "x"), ["1", "02", "x"], None),
        (("1", "02", "3.5"), ["1", "02", "3.5"], [1.0, 2.0, 3.5]),
        (("007", "150"), ["007", "150"], [7.0, 150.0]),
        (("2020-01-31", ""), ["2020-01-31", None], None),
        (("", "NA"), [None, None], [None, None]),
    ],
)
def test_a_kind_that_is_given_holds(
    tmp_path: Path, cells: tuple[str, ...], categorical: list[Any], real: list[Any] | None
) -> None:
    table = column(tmp_path, *cells, categorical=["a"])
    assert (table.kinds["a"].word, values(table)) == ("categorical", categorical)
    if real is None:
        with pytest.raises(TableError, match="is text"):
            column(tmp_path, *cells, real=["a"])
    else:
        table = column(tmp_path, *cells, real=["a"])
        assert (table.kinds["a"].word, values(table)) == ("real", real)


def test_columns_can_be_ignored_and_markers_be_given(tmp_path: Path) -> None:
    table = column(tmp_path, "1", "x", "NA", ignore=["a"])
    assert list(table.frame) == ["other"]
    assert values(column(tmp_path, "north", "NA", "-", na=["-"])) == ["north", None, None]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ignore": ["othre"]}, "has no column 'othre'; did you mean 'other'?"),
        ({"categorical": ["zip"]}, "has no column 'zip'; it has a and other"),
        ({"real": ["a"], "categorical": ["a"]}, "cannot be what --categorical and --real say"),
        ({"ignore": ["a", "other"]}, "no column is left"),
    ],
)
def test_options_that_do_not_fit(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(TableError, match=message):
        column(tmp_path, "1", "2", **options)


def test_a_missing_file_is_reported_as_such(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "absent.csv")


FRAME = pd.DataFrame(
    {
        "real": [0.1 + 0.2, None, -3e8],
        "whole": pd.array([1, None, 3], dtype="Int64"),
        "text": ["b", None, "c"],
        "flag": pd.array([True, False, None], dtype="boolean"),
        "level": pd.Categorical(["u", "v", None]),
        "nothing": [None, None, None],
    }
)


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    words = ["real", "real", "categorical", "yes or no", "categorical", "real"]
    assert [kind.word for kind in table.kinds.values()] == words
    np.testing.assert_array_equal(table.frame["real"], FRAME["real"])
    np.testing.assert_array_equal(table.frame["whole"], [1, np.nan, 3])
    cells = table.frame.astype(object).where(table.frame.notna(), None)
    assert cells["text"].tolist() == ["b", None, "c"]
    assert cells["flag"].tolist() == ["True", "False", None]
    assert cells["level"].tolist() == ["u", "v", None]


def test_parquet_and_csv_of_one_table_are_one_table(tmp_path: Path) -> None:
    frame = FRAME[["real", "whole", "text", "level"]]
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    one, other = (read_table(tmp_path / name) for name in ("a.parquet", "a.csv"))
    pd.testing.assert_frame_equal(one.frame, other.frame)
    assert one.kinds == other.kinds


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            pa.table({"a": [datetime.date(2020, 1, 1)]}),
            "'2020-01-01' is a date: say --dates a",
        ),
        (pa.table({"a": [[1, 2]]}), "column 'a': cells of type list"),
        (pa.table({"a": [1.0, np.inf]}), "row 2, column 'a': 'inf' is infinite"),
        (pa.table({"a": pa.array([], pa.int64())}), "has 0 rows and 1 columns"),
        (pa.table([[1], [2]], names=["a", "a"]), "with the same name"),
    ],
)
def test_parquet_that_is_no_table(tmp_path: Path, table: pa.Table, message: str) -> None:
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(TableError, match=message):
        read_table(tmp_path / "a.parquet")


def test_damaged_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + bytes(20))
    with pytest.raises(TableError, match="damaged Parquet"):
        read_table(tmp_path / "a.parquet")


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FRAME.to_parquet(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TableError, match="pip install pyarrow"):
        read_table(tmp_path / "a.parquet")


def test_what_is_read_is_what_the_estimators_read(tmp_path: Path) -> None:
    table = column(tmp_path, "1", "", "3.5")
    columns = learn_columns(table.frame)
    assert dict(zip(columns.names, columns.kinds, strict=True)) == table.kinds


def test_the_benchmark_tables_are_read_exactly(data_folder: Path) -> None:
    for name in ("hepatitis", "soybean", "pima_uci_missing", "horse_colic_train"):
        path = data_folder / f"{name}.csv"
        expected = pd.read_csv(path, dtype={"target": "str"})
        expected = expected[[c for c in expected if not c.startswith("extra_")]]
        ignore = [c for c in pd.read_csv(path, nrows=1) if c.startswith("extra_")]
        table = read_table(path, categorical=["target"], ignore=ignore)
        found = table.frame.where(table.frame.notna(), np.nan)  # None before pandas 3
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_the_first_sheet_of_a_workbook_is_a_table(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["who", "size", "when", "flag", None])
    book.active.append(["fox", 1.5, datetime.datetime(2000, 1, 2), True])
    book.active.append([])
    book.active.append(["owl", 2, datetime.datetime(2000, 1, 3, 12), None])
    book.create_sheet("more")
    book.save(tmp_path / "a.xlsx")
    table = read_table(tmp_path / "a.xlsx", dates="when")
    assert table.frame.to_numpy().tolist()[0] == ["fox", 1.5, 1.0, "True"]
    assert table.frame["when"].tolist() == [1.0, 2.5]
    assert table.frame["flag"].isna().tolist() == [False, True]
    assert "Sheet 'Sheet' was read; 'more' not." in table.notes
    (tmp_path / "b.xlsx").write_bytes(b"PK\x03\x04rest")
    with pytest.raises(TableError, match="damaged Excel workbook"):
        read_table(tmp_path / "b.xlsx")


def test_hidden_rows_of_a_workbook_are_told(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1, "x"], [2, "y"], [3, "x"], [None, None]):
        book.active.append(row)
    for row in (2, 4, 5):
        book.active.row_dimensions[row].hidden = True
    book.save(tmp_path / "t.xlsx")
    read = read_table(tmp_path / "t.xlsx")
    assert read.frame["a"].tolist() == [1, 2, 3]
    note = "Rows that are hidden or filtered out were read as all others: 2 and 4."
    assert note in read.notes


def test_merged_cells_of_a_workbook_are_filled_or_refused(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["site", "size", "y"], ["north", 1, "a"], [None, 2, "b"], [None, 3, "a"]):
        book.active.append(row)
    book.active.append(["south", 4, None])
    book.active.merge_cells("A2:A4")
    book.active.merge_cells("C5:D5")  # no value
    book.save(tmp_path / "t.xlsx")
    read = read_table(tmp_path / "t.xlsx", "y")
    assert read.frame["site"].tolist() == ["north"] * 3 + ["south"]
    assert any("Merged cells hold their value in each row: A2:A4." in note for note in read.notes)
    book.active.unmerge_cells("A2:A4")
    book.active.merge_cells("A1:B1")
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(TableError, match="cells A1:B1 are merged over columns; unmerge them"):
        read_table(tmp_path / "t.xlsx", "y")


def test_other_sheets_are_named_where_the_first_is_not_what_was_asked_for(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    data = book.create_sheet("data")
    for row in (["a", "y"], [1, "no"], [2, "yes"]):
        data.append(row)
    said = "'data' not. To read another, put it first, or save it as a file of its own"
    for cover in ([], ["Study of 2020"], ["read", "me"]):
        if cover:
            book.active.append(cover)
        book.save(tmp_path / "t.xlsx")
        with pytest.raises(TableError, match=said):
            read_table(tmp_path / "t.xlsx", "y")
    book.active.append(["some", "text"])
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(TableError, match="'data' not"):
        read_table(tmp_path / "t.xlsx", "y")


def test_a_workbook_without_its_reader_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04rest")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(TableError, match="pip install openpyxl"):
        read_table(tmp_path / "a.xlsx")


def test_columns_of_any_type_can_be_ignored(tmp_path: Path) -> None:
    pq.write_table(
        pa.table(
            {
                "list": [[1, 2], None],
                "struct": [{"a": 1}, {"a": 2}],
                "bytes": [b"\x00", b"\x01"],
                "time": pa.array([1, 2], pa.time32("s")),
                "decimal": pa.array([1, 2], pa.decimal128(5, 2)),
                "day": [datetime.date(2000, 1, 2), None],
                "moment": pa.array([0, 86_400], pa.timestamp("s", tz="Europe/Berlin")),
            }
        ),
        tmp_path / "a.parquet",
    )
    odd = ["list", "struct", "bytes", "time"]
    with pytest.raises(TableError) as caught:
        read_table(tmp_path / "a.parquet")
    assert len(caught.value.problems) == 6
    table = read_table(tmp_path / "a.parquet", ignore=odd, dates=["day", "moment"])
    assert table.frame["decimal"].tolist() == [1.0, 2.0]
    assert table.frame["day"].tolist()[0] == 1.0
    assert table.frame["moment"].tolist() == [-10957.0, -10956.0]
    assert table.taken["kind"].tolist()[:4] == ["ignored"] * 4
