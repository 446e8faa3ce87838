"""What stands in for missing cells: matched by value, in the columns that are named, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesrbf import TableError, read_table
from bayesrbf.base.table_options import TableOptions
from bayesrbf.reading.cells import Missing, stand_ins
from bayesrbf.reading.noticing import notice
from bayesrbf.reading.read import read_file


def table(*cells: str, **more: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"a": list(cells), **more})


def holes(frame: pd.DataFrame, column: str = "a", **options: Any) -> list[bool]:
    return read_table(frame, **options).frame[column].isna().tolist()


@given(
    st.integers(-(10**6), 10**6), st.sampled_from(["{},0", "{}.00", "{} €", "${}", "{} %", "+{}"])
)
def test_a_number_is_found_however_it_is_written(value: int, dress: str) -> None:
    if dress.startswith("+") and value < 0:
        return
    missing = Missing(frozenset([""]), stand_ins([str(value)], []))
    assert missing.among([dress.format(value), str(value + 1)]) == {dress.format(value): str(value)}


@pytest.mark.parametrize("na", [-999, -999.0, "-999", "-999,0", ["-999"], {"a": -999}, "a=-999,0"])
def test_remedies_find_what_a_note_names_in_a_european_file(na: Any, tmp_path: Path) -> None:
    cells = ["-999,0" if i % 5 == 0 else f"{i},5" for i in range(30)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["a;b", *(f"{cell};x{i % 2}" for i, cell in enumerate(cells))]))
    assert "say --na=-999." in read_table(path).notes[0]
    read = read_table(path, na=na)
    assert read.frame["a"].isna().tolist() == [i % 5 == 0 for i in range(30)]
    assert not any("far from" in note for note in read.notes)
    assert "was read as missing: 6 cells of 'a'." in " ".join(read.notes)


def test_the_notation_of_a_column_decides_where_a_cell_can_be_two_numbers() -> None:
    assert holes(table("1,234", "2,5"), na=1.234) == [True, False]
    with pytest.raises(TableError, match="no cell '1234'"):
        read_table(table("1,234", "2,5"), na=1234)
    assert holes(table("1,234", "2,345.5"), na=1234) == [True, False]
    assert holes(table("1.234", "5"), na=1.234) == [True, False]


def test_a_column_has_stand_ins_of_its_own() -> None:
    frame = table("1", "2", "3", b=["2", "2", "5"])
    assert holes(frame, na="a=2") == [False, True, False]
    assert holes(frame, "b", na="a=2") == [False] * 3
    assert holes(frame, "b", na={"a": 1, "b": [5, 2]}) == [True] * 3
    named = frame.rename(columns={"a": "a=b"})
    assert holes(named, "a=b", na="a=b=2") == [False, True, False]


@pytest.mark.parametrize(
    ("na", "said"),
    [
        (-998, "--na=-998: the frame has no cell '-998'; correct the value"),
        ("word=unknwon", "column 'word' has no cell 'unknwon'; did you mean 'unknown'?"),
        ("wrod=unknown", "no column 'wrod'; did you mean 'word'?"),
        ("dose=-9", "no cell 'dose=-9', and no column 'dose'; it has a, word and b."),
        ({"a": 9}, "--na a=9: the frame, column 'a' has no cell '9'"),
    ],
)
def test_a_value_that_no_cell_is_is_refused(na: Any, said: str) -> None:
    frame = table("1", "2", "3", word=["unknown", "north", "unknown"], b=["9", "8", "7"])
    with pytest.raises(TableError) as caught:
        read_table(frame, na=na)
    assert said in str(caught.value)


def test_markers_that_are_known_anyway_and_new_rows_need_no_such_cell(tmp_path: Path) -> None:
    read_table(table("1", "2"), na=["NA", ""])
    (tmp_path / "t.csv").write_text("a\n1\n2\n")
    read = read_file(tmp_path / "t.csv", None, TableOptions(na=("-999", "a=7")), kinds={})
    assert read.frame["a"].tolist() == [1.0, 2.0]


def test_a_remedy_is_about_one_column_where_others_have_the_value() -> None:
    rng = np.random.default_rng(0)
    far = np.where(np.arange(60) % 6 == 0, 9.0, rng.random(60).round(3))
    frame = pd.DataFrame({"far": far, "also": far, "scale": np.tile([0, 1, 2, 9], 15), "x": 1.5})
    note = read_table(frame.drop(columns="scale")).notes[0]
    assert note.endswith("say --na 9.")
    note = next(n for n in read_table(frame, categorical="scale").notes if "'far'" in n)
    assert "--na far=9,also=9." in note or "--na 'far=9,also=9'." in note or "scale" in note
    labelled = frame.drop(columns="scale").assign(y=np.tile(["9", "8"], 30))
    assert "say --na far=9,also=9." in read_table(labelled, "y").notes[0]


@given(st.integers(1, 9), st.integers(1, 4), st.integers(-1, 1))
def test_the_steps_of_a_scale_never_stand_in(top: int, n_columns: int, least: int) -> None:
    cells = np.tile(np.arange(least, top + 1, dtype=float), 6)
    told = [n for n in notice({f"c{i}": cells for i in range(n_columns)}) if "stand" in n.topic]
    assert told == []


def test_words_of_formats_are_missing_in_small_letters_too(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\nx,1\ny,2\nn/a,3\nN/A,4\nx,5\n")
    read = read_table(tmp_path / "t.csv")
    assert read.frame["a"].isna().tolist() == [False, False, True, True, False]
