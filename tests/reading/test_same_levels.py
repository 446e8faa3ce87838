"""When two written cells are the same level, within a table and beside the levels of a model."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesrbf import read_table
from bayesrbf.reading.noticing import KnownLevels, in_one_spelling, written_apart

WHOLE = ["0", "0.0", "1", "1.0", "-2", "-2.0", "A"]


def groups(texts: list[str]) -> set[frozenset[str]]:
    spelled = in_one_spelling(texts)
    return {frozenset(t for t in texts if spelled[t] == level) for level in spelled.values()}


@pytest.mark.parametrize(
    ("texts", "levels"),
    [
        (["1", "1.0", "2.0"], {"1", "2"}),
        (["1.0", "2.0"], {"1.0", "2.0"}),  # each is written in one way: nothing is renamed
        (["0", "-0.0"], {"0"}),
        (["250", "250.0", "250.00"], {"250", "250.0", "250.00"}),
        (["007", "7", "7.0"], {"007", "7", "7.0"}),
        (["1", "1.0", "2.5"], {"1", "1.0", "2.5"}),
        (["1e3", "1000"], {"1e3", "1000"}),
        (["True", "TRUE", "true", "False", "?"], {"True", "False", "?"}),
        (["tRUE", "True"], {"tRUE", "True"}),
        (["True", "1"], {"True", "1"}),
        (["2020-01-01", "2020-01-01 00:00:00", "2020-01-02"], {"2020-01-01", "2020-01-02"}),
        (["2020-01-01 00:00:01", "2020-01-01"], {"2020-01-01 00:00:01", "2020-01-01"}),
        (["1577134800018226901", "1577134800018226902"],) * 2,
        (["9" * 5000, f"{'9' * 5000}.0"], {"9" * 5000}),
    ],
)
def test_levels_of_a_table(texts: list[str], levels: object) -> None:
    assert set(in_one_spelling(texts).values()) == set(levels)  # type: ignore[call-overload]


def test_the_order_of_the_rows_decides_nothing() -> None:
    spellings = {tuple(sorted(in_one_spelling(way).items())) for way in permutations(WHOLE[:5])}
    assert len(spellings) == 1


@given(st.sets(st.sampled_from([*WHOLE, "007", "250.00", "TRUE", "true", "2.5"]), min_size=1))
def test_a_level_is_found_among_the_levels_that_its_table_had(texts: set[str]) -> None:
    spelled = in_one_spelling(texts)
    levels = tuple(sorted(set(spelled.values())))
    known = KnownLevels(levels)
    assert {text: known.name(text) for text in texts} == spelled


@pytest.mark.parametrize(
    ("texts", "apart"),
    [
        (["250", "250.0", "250.00", "401"], ["250", "250.0", "250.00"]),
        (["007", "7"], ["007", "7"]),
        (["1", "1.0"], []),
        (["1577134800018226901", "1577134800018226902", "007"], []),
        (["1e3", "1000", "x"], []),
    ],
)
def test_codes_of_one_number_are_named(texts: list[str], apart: list[str]) -> None:
    assert written_apart(texts) == apart


@pytest.mark.parametrize(
    ("levels", "cell", "position"),
    [
        ((0, 1, 2), "1", 1),
        ((0, 1, 2), "1.0", 1),
        ((0, 1, 2), 1.0, 1),
        ((0, 1, 2), "01", 1),  # a number has no spelling of its own
        ((0, 1, 2), "1.5", None),
        ((0, 1, 2), "True", None),
        ((0, 1, 2), "x", None),
        ((0.5, 1.0), "0,5", 0),
        ((1, 1000), "1,000", None),  # it may be either
        ((2**53, 2**53 + 1), str(2**53 + 1), 1),
        ((2**53, 2**53 + 1), "9" * 5000, None),
        ((False, True), "TRUE", 1),
        ((False, True), False, 0),
        ((False, True), "1.0", 1),
        ((False, True), "yes", None),
        (("False", "True"), True, 1),
        (("FALSE", "TRUE"), "true", 1),
        (("0", "1"), 1.0, 1),
        (("0.0", "1.0"), 1, 1),
        (("0.0", "1.0"), "1", 1),
        (("0.5", "1.0"), 1.0, 1),
        (("250", "250.0"), "250.00", None),
        (("250", "401"), "250.00", None),
        (("250", "401"), "250.0", 0),
        (("7", "8"), "007", None),
        (("2020-01-01", "2020-01-02"), "2020-01-02T00:00:00Z", 1),
        ((), "True", None),
    ],
)
def test_cells_beside_the_levels_of_a_model(
    levels: tuple[object, ...], cell: object, position: int | None
) -> None:
    assert KnownLevels(levels).position(cell) == position


def written(folder: Path, **columns: list[str]) -> Path:
    pd.DataFrame(columns).to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def test_a_file_has_one_name_for_a_level_and_a_note(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        grade=["0", "0.0", "1", "1.0"],
        flag=["TRUE", "True", "false", "x"],
        y=list("abab"),
    )
    table = read_table(path, "y", categorical="grade")
    assert table.frame["grade"].tolist() == ["0", "0", "1", "1"]
    assert table.frame["flag"].tolist() == ["True", "True", "False", "x"]
    assert "Column 'grade' holds '0' and '0.0', read as one level: '0'." in table.notes
    assert "Column 'flag' holds 'TRUE' and 'True', read as one level: 'True'." in table.notes


def test_codes_stay_apart_in_a_file_with_a_note(tmp_path: Path) -> None:
    codes = ["250", "250.0", "250.00", "401"]
    path = written(tmp_path, dx=codes, code=["007", "7", "8", "8"], y=list("abab"))
    table = read_table(path, "y", categorical=("dx", "code"))
    assert table.frame["dx"].tolist() == codes
    assert table.frame["code"].tolist() == ["007", "7", "8", "8"]
    (note,) = (note for note in table.notes if "'250'" in note)
    assert "'250', '250.0' and '250.00', which are one number: read as levels apart" in note
    assert any("'007' and '7'" in note for note in table.notes)


def test_labels_of_one_number_are_one_class_and_names_of_rows_stay(tmp_path: Path) -> None:
    path = written(tmp_path, x=["1", "2", "3"], case=["1", "1.0", "2"], y=["1", "1.0", "0"])
    table = read_table(path, "y", id="case")
    assert table.target is not None
    assert table.target.tolist() == ["1", "1", "0"]
    assert table.frame.index.tolist() == ["1", "1.0", "2"]
    assert "Column 'y' holds '1' and '1.0', read as one level: '1'." in table.notes
