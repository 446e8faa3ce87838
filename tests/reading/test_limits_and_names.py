"""Cells beyond a limit are numbers or missing, and ids that repeat have a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesrbf import TableError, read_table
from bayesrbf.reading.noticing import ROW_NAMES, notice


def lab(*cells: str) -> pd.DataFrame:
    return pd.DataFrame({"lab": list(cells)})


def numbers(*cells: str, **options: Any) -> list[float]:
    cells_read: list[float] = read_table(lab(*cells), **options).frame["lab"].tolist()
    return cells_read


def test_a_cell_below_a_limit_is_one_value_of_its_own_next_to_it() -> None:
    low, five, seven, again, high = numbers("<5", "5", "7", "< 5", ">100")
    assert low == again == np.nextafter(5, -np.inf)
    assert (five, seven, high) == (5.0, 7.0, np.nextafter(100, np.inf))
    assert numbers("<1,5", "2,5", "<=1,5")[0] == np.nextafter(1.5, -np.inf)
    assert numbers("<$1,500.00", "$2,500.00")[0] == np.nextafter(1500, -np.inf)
    assert numbers("<-3", "-2")[0] == np.nextafter(-3, -np.inf)


def test_limits_are_noted_and_missing_where_asked() -> None:
    note = read_table(lab("<5", "6.5", "<5")).notes[0]
    assert "such as '<5' in 'lab' (2 cells)" in note
    assert "not missing" in note
    assert note.endswith("say --below missing.")
    asked = read_table(lab("<5", "6.5", "<5"), below="missing")
    assert asked.frame["lab"].isna().tolist() == [True, False, True]
    assert "were read as missing" in asked.notes[0]
    assert np.isnan(numbers("<5", "6.5", na="<5")[0])
    with pytest.raises(TableError, match="--below takes limit or missing; got 'half'"):
        read_table(lab("<5", "6.5"), below="half")


def test_limits_alone_are_categories_and_other_text_is_refused() -> None:
    assert read_table(lab("<18", ">65")).kinds["lab"].word == "categorical"
    assert numbers("<18", ">65", real="lab") == [np.nextafter(18, 0), np.nextafter(65, 99)]
    with pytest.raises(TableError) as caught:
        read_table(lab("<5", "6", "neg", "<low"))
    assert "'neg' is text among numbers" in str(caught.value)
    assert "say --na neg,<low" in str(caught.value).replace("'", "")


def test_a_limit_far_from_all_else_is_no_stand_in() -> None:
    rng = np.random.default_rng(0)
    cells = ["<5"] * 10 + [f"{x:.1f}" for x in rng.normal(5000, 10, 80)]
    assert not any("far from" in note for note in read_table(lab(*cells)).notes)


def ids(n: int, different: int, seed: int) -> np.ndarray:
    """Whole numbers of seven digits, of which some stand in several rows."""
    rng = np.random.default_rng(seed)
    own = rng.choice(9_000_000, different, replace=False) + 1_000_000
    return rng.permutation(np.r_[own, rng.choice(own, n - different)])


@pytest.mark.parametrize("seed", range(5))
def test_ids_that_repeat_are_named_with_groups_as_the_remedy(seed: int) -> None:
    frame = pd.DataFrame({"sample": ids(450, 426, seed), "x": np.linspace(0, 1, 450)})
    note = read_table(frame).notes[0]
    assert note.startswith("Column 'sample' has 426 different numbers in 450 rows, such as")
    assert "both fitted and held out" in note
    assert "say --group sample; if it tells nothing, --ignore sample." in note
    assert not any("'sample'" in said for said in read_table(frame, group="sample").notes)
    assert "sample" not in read_table(frame, group="sample").frame


@pytest.mark.parametrize(("different", "kept"), [(426, False), (150, True)])
def test_ids_of_text_that_repeat_are_named_too(different: int, kept: bool) -> None:
    cells = [f"P{number}" for number in ids(450, different, 0)]
    read = read_table(pd.DataFrame({"who": cells, "x": np.linspace(0, 1, 450)}))
    assert f"{different} different texts in 450 rows" in read.notes[0]
    assert "--group who" in read.notes[0]
    assert ("who" in read.frame) == kept


@pytest.mark.parametrize("name", ["patientID", "rowId", "caseID", "case_no", "uuid"])
def test_names_of_rows_are_known_however_they_are_written(name: str) -> None:
    assert ROW_NAMES.search(name)
    assert not ROW_NAMES.search("valid")


def test_the_name_of_a_column_tells_of_few_patients_with_many_rows() -> None:
    cells = np.repeat(np.arange(40), 5).astype(float)
    assert [note.topic for note in notice({"patient_id": cells})] == ["repeated numbers"]
    assert [note.topic for note in notice({"MRN": cells})] == ["repeated numbers"]
    assert list(notice({"visits": cells})) == []


@pytest.mark.parametrize("name", ["hospital_number", "Hospital Number", "case"])
def test_a_column_named_as_names_are_may_repeat_a_little(name: str) -> None:
    cells = ids(300, 298, 0).astype(float)
    assert [note.topic for note in notice({name: cells})] == ["repeated numbers"]
    assert list(notice({"platelets": cells})) == []
    assert list(notice({name: np.round(cells, -3)})) == []


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 5, 10, 50, 100]),
    st.sampled_from([100, 450, 1000]),
    st.floats(0.05, 1.0),
)
def test_rounded_quantities_are_no_ids(seed: int, unit: int, n: int, width: float) -> None:
    rng = np.random.default_rng(seed)
    cells = unit * np.round(np.exp(rng.normal(11, width, n)) / unit)
    assert [note for note in notice({"income": cells}) if note.topic == "repeated numbers"] == []
