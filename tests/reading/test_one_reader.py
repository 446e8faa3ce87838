"""A table is read the same from every format and frame; estimators name what they do not read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bayesrbf import MixtureDensity, TableError, read_table
from bayesrbf.reading.notes import ColumnWarning
from bayesrbf.reading.noticing import numbers_as_text

N = 60


def messy() -> pd.DataFrame:
    """Texts as people type them."""
    rng = np.random.default_rng(0)
    amounts = rng.gamma(2, 900, N)
    return pd.DataFrame(
        {
            "fee": [f"${amount:,.2f}" for amount in amounts],
            "share": [f"{amount / 100:.1f} %".replace(".", ",") for amount in amounts],
            "lab": ["<5" if a < 900 else f"{a / 100:.1f}".replace(".", ",") for a in amounts],
            "score": ["?" if i % 7 == 0 else f"{a:.3f}" for i, a in enumerate(amounts / 7)],
            "ward": rng.choice(["north", "south", "west"], N),
            "prose": [" ".join(rng.choice(["pain", "walk", "came", "went"], 9)) for _ in range(N)],
            "y": rng.choice(["sick", "well"], N),
        }
    )


def as_csv(table: pd.DataFrame, folder: Path) -> Path:
    table.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def as_parquet(table: pd.DataFrame, folder: Path) -> Path:
    table.to_parquet(folder / "t.parquet")
    return folder / "t.parquet"


def as_excel(table: pd.DataFrame, folder: Path) -> Path:
    pytest.importorskip("openpyxl")
    table.to_excel(folder / "t.xlsx", index=False)
    return folder / "t.xlsx"


SOURCES: dict[str, Callable[[pd.DataFrame, Path], Any]] = {
    "Parquet": as_parquet,
    "Excel": as_excel,
    "object": lambda table, _: table.astype(object),
    "string": lambda table, _: table.astype("string"),
    "Arrow in pandas": lambda table, _: table.astype(pd.ArrowDtype(pa.string())),
    "polars": lambda table, _: pl.from_pandas(table),
    "Arrow": lambda table, _: pa.Table.from_pandas(table),
}


@pytest.mark.parametrize("options", [{}, {"below": "missing"}, {"categorical": "prose"}])
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_of_one_table_is_read_as_its_csv(
    source: str, options: dict[str, Any], tmp_path: Path
) -> None:
    expected = read_table(as_csv(messy(), tmp_path), "y", **options)
    read = read_table(SOURCES[source](messy(), tmp_path), "y", **options)
    pd.testing.assert_frame_equal(read.frame, expected.frame)
    assert read.target is not None
    pd.testing.assert_series_equal(read.target, expected.target)
    assert (read.kinds, read.options) == (expected.kinds, expected.options)
    assert read.notes[:-1] == expected.notes[:-1]  # but the sentence on the file
    kinds = {"fee": "real", "share": "real", "lab": "real", "score": "real", "ward": "categorical"}
    assert {name: read.kinds[name].word for name in kinds} == kinds
    assert ("prose" in read.frame) == ("categorical" in options)


EMPTY_ROWS = SOURCES | {"CSV": as_csv}


@pytest.mark.parametrize("source", EMPTY_ROWS)
def test_a_row_without_a_cell_is_no_row(source: str, tmp_path: Path) -> None:
    """Spreadsheets write lines of commas below a table, and pandas keeps them as rows."""
    expected = read_table(as_csv(messy(), tmp_path), "y")
    longer = messy().reindex([*range(9), N, *range(9, N), N + 1]).reset_index(drop=True)
    read = read_table(EMPTY_ROWS[source](longer, tmp_path), "y")
    assert read.target is not None
    assert read.target.tolist() == expected.target.tolist()  # type: ignore[union-attr]
    for name in expected.frame:
        np.testing.assert_array_equal(read.frame[name], expected.frame[name])
    (note,) = [note for note in read.notes if "without a cell" in note]
    assert note.endswith("11 and 63." if source in ("CSV", "Excel") else "10 and 62.")


@pytest.mark.parametrize(
    ("cells", "separator", "refused"),
    [
        (["1.234", "980", "75"], ";", True),
        (["1.234", "-980", "<75"], "\t", True),
        (["1.234 €", "980 €"], ";", True),
        (["1.234", "0.980"], ";", False),
        (["1.234", "2.500", "12.750"], ";", False),
        (["1.234", "1980"], ";", False),
        (["1.234", "980", "2.5"], ";", False),
        (["1.234", "980"], ",", False),  # there points are decimal ones
    ],
)
def test_points_that_may_set_thousands_apart_are_refused(
    cells: list[str], separator: str, refused: bool, tmp_path: Path
) -> None:
    """Among whole numbers below 1,000, three digits after every point are rarely decimals."""
    path, table = tmp_path / "t.csv", pd.DataFrame({"a": cells, "b": "x"})
    table.to_csv(path, sep=separator, index=False)
    if refused:
        with pytest.raises(
            TableError, match=r"column 'a': '1\.234.* --decimal '\.' or --thousands"
        ):
            read_table(path)
        assert read_table(path, thousands=".").frame["a"][0] == 1234
    # A workbook and a typed table say what is a number: a point is a decimal one.
    for source, read in ((path, {"decimal": "."}), (as_parquet(table, tmp_path), {})):
        assert read_table(source, **(read if refused else {})).frame["a"][0] == 1.234


def test_an_empty_cell_in_quotes_is_a_row_of_a_table_of_one_column(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": [1.5, None, 2.5]})
    assert len(read_table(as_csv(table, tmp_path)).frame) == 3


def test_what_a_type_declares_is_kept(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "grade": pd.Categorical(["1", "2"] * 20),
            "flag": [True, False] * 20,
            "word": ["NA", "?"] * 20,
            "x": np.linspace(0, 1, 40),
        },
        index=[f"P{i}" for i in range(40)],
    )
    table.to_parquet(tmp_path / "t.parquet")
    for source in (table, tmp_path / "t.parquet", pl.from_pandas(table)):
        read = read_table(source)
        words = ["categorical", "yes or no", "categorical", "real"]
        assert [kind.word for kind in read.kinds.values()] == words
        assert read.frame["grade"].tolist() == ["1", "2"] * 20
        assert read.frame["word"].tolist() == ["NA", "?"] * 20
        np.testing.assert_array_equal(read.frame["x"], table["x"])
    assert read_table(table).frame.index.tolist() == table.index.tolist()


def test_numbers_that_a_file_calls_text_are_said(tmp_path: Path) -> None:
    table = pd.DataFrame({"zip": [str(10_000 + i % 30) for i in range(40)], "x": range(40)})
    notes = " ".join(read_table(table).notes)
    assert "'zip' holds whole numbers written as text, such as '10000', read as numbers" in notes
    assert "--categorical zip" in notes
    kept = read_table(table, categorical="zip")
    assert kept.kinds["zip"].word == "categorical"
    assert not any("zip" in note for note in kept.notes)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        ([[1, 2]], "received a list"),
        (pd.DataFrame({"a": []}), "0 rows"),
        (pd.DataFrame({1: [1.0]}), "name is no text"),
        (pd.DataFrame({"a": [[1], [2]]}), "row|column 'a': cells of type list"),
        (pd.DataFrame({"a": ["\x00"]}), "control character"),
        (pd.DataFrame({"a": ["1", "unknown", "2"]}), "the frame, row 2, column 'a': 'unknown'"),
    ],
)
def test_what_is_no_table_is_refused(frame: Any, said: str) -> None:
    with pytest.raises(TableError, match=said):
        read_table(frame)


def test_text_that_hardly_repeats_is_left_out_unless_it_is_named(tmp_path: Path) -> None:
    read = read_table(as_csv(messy(), tmp_path), "y")
    note = next(note for note in read.notes if "'prose'" in note)
    assert "hardly repeats" in note
    assert "left out, as by --ignore prose; --categorical prose keeps it" in note
    assert read.options.ignore == ("prose",)
    assert read.taken.set_index("column")["kind"]["prose"] == "ignored"
    with pytest.raises(TableError, match="no column is left: prose hardly repeats"):
        read_table(messy()[["prose"]])


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([f"{i / 7:.2f}" for i in range(N)], "holds numbers written as text, such as '0.00'"),
        ([f"${1000 + i:,}.00" for i in range(N)], r"such as '\$1,000.00': 60 different ones"),
        (["<5", *[str(i / 2) for i in range(1, N)]], "such as '<5'"),
        (["n.d.", *[f"{i / 2:.1f}".replace(".", ",") for i in range(1, N)]], r"\('n.d.' once\)"),
        ([f"came {i} times" for i in range(N)], "hardly repeats.*leave it out"),
    ],
)
def test_estimators_name_a_column_of_text_and_the_remedy(cells: list[str], said: str) -> None:
    table = pd.DataFrame({"x": np.linspace(0, 1, N), "odd": cells})
    with pytest.warns(ColumnWarning, match=f"Column 'odd' .*{said}"):
        MixtureDensity(random_state=0).fit(table.astype({"odd": "string"}))
    # A category is what it is said to be; all different ones are told, whatever they are.
    twice = pd.DataFrame({"x": np.linspace(0, 1, 2 * N), "odd": cells * 2})
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnWarning)
        MixtureDensity(random_state=0).fit(twice.astype({"odd": "category"}))


@pytest.mark.parametrize(
    "cells",
    [
        ["1", "2"] * 30,
        [f"{i % 20:03d}" for i in range(N)],
        ["a", "b", "c"] * 20,
        ["<18", ">65"] * 30,
    ],
)
def test_categories_are_not_doubted(cells: list[str]) -> None:
    assert numbers_as_text(cells) == ""
