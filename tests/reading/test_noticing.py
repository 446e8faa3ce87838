"""Planted troubles are noticed, clean tables are quiet, and nothing is changed unless asked."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from bayesrbf import MedianLVQClassifier, MixtureDensity, TableError, read_table
from bayesrbf.app.look import look
from bayesrbf.reading.cells import read_numbers
from bayesrbf.reading.notes import ColumnWarning
from bayesrbf.reading.noticing import notice
from bayesrbf.table.dates import Date
from tests.cases import first_quick, generative, some_quick
from tests.reading.planting import TROUBLES, heard

LOADERS = {
    "wine": load_wine,
    "cancer": load_breast_cancer,
    "iris": load_iris,
    "diabetes": load_diabetes,
}


def clean(name: str) -> pd.DataFrame:
    loaded: Any = LOADERS[name](as_frame=True)
    labels = np.where(loaded.target > loaded.target.median(), "b", "a")
    # Rows sorted by their class would let the numbers of the rows tell it.
    return loaded.data.assign(target=labels).sample(frac=1, random_state=0, ignore_index=True)


def test_a_column_that_is_the_label_in_other_words_is_told() -> None:
    """By every command that reads a target, by look, and by fit of an estimator."""
    rng = np.random.default_rng(0)
    ill = rng.random(60) < 0.5
    table = pd.DataFrame(
        {
            "ward": np.where(ill, np.where(rng.random(60) < 0.5, "B", "C"), "home"),
            "code": np.where(ill, 7.0, 3.0),
            "dead": pd.Series(ill, dtype="boolean"),
            "marker": ill + rng.normal(0, 0.01, 60),
            "hole": np.where(ill, np.nan, rng.normal(size=60)),
            "age": rng.normal(size=60),
            "sex": rng.choice(["f", "m"], 60),
            "y": np.where(ill, "sick", "well"),
        }
    )
    for notes in (read_table(table, "y").notes, look(read_table(table), "t", "y").reading.notes):
        told, missing = (
            next(note for note in notes if start in note)
            for start in ("One column alone tells a class", "a cell is missing tells a class")
        )
        assert all(f"{name!r} (100 %)" in told for name in ("ward", "code", "dead", "marker"))
        assert "say --ignore ward,code,dead,marker" in told
        assert "'hole' (100 %)" in missing
        assert not any(f"{name!r} (" in told + missing for name in ("age", "sex"))
    X = table.drop(columns="y")
    with pytest.warns(ColumnWarning, match="tells every class") as caught:
        MedianLVQClassifier(random_state=0).fit(X, table["y"])
    sentence = str(caught[0].message)
    assert all(f"olumn {name!r} tells" in sentence for name in ("ward", "code", "dead"))
    assert not any(f"{name!r} tells" in sentence for name in ("marker", "hole", "age", "sex"))


@pytest.mark.parametrize("name", LOADERS)
def test_a_clean_table_is_quiet(name: str, tmp_path: Path) -> None:
    told = heard(clean(name), str(tmp_path))
    if name == "iris":  # petals do tell a class, and no other note is there
        told = [note for note in told if "alone tells a class" not in note]
    assert told == []


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("name", first_quick(["wine", "cancer"]))
def test_a_planted_trouble_is_the_only_thing_noticed(
    name: str, trouble: str, tmp_path: Path
) -> None:
    planted = TROUBLES[trouble].plant(clean(name), np.random.default_rng(0))
    told = heard(planted, str(tmp_path))
    said = TROUBLES[trouble].said
    assert any(said in sentence for sentence in told)
    assert all(said in sentence or "thousands apart" in sentence for sentence in told), told[:3]


def test_like_notes_are_one_sentence_and_the_worst_comes_first(tmp_path: Path) -> None:
    table = clean("wine")
    for trouble in ("prose", "-999 in three columns"):
        table = TROUBLES[trouble].plant(table, np.random.default_rng(0))
    first, second = heard(table, str(tmp_path))
    names = ", ".join(map(repr, table.columns[:2])) + f" and {table.columns[2]!r}"
    assert first.startswith(f"Columns {names} hold -999 ")
    assert first.endswith("if it means missing, say --na=-999.")
    assert "--ignore planted" in second


def test_a_quantity_with_its_unit_has_one_note(tmp_path: Path) -> None:
    n = len(table := clean("wine"))
    table["fasted"] = [f"{hour} h" for hour in range(n)]
    table["street"] = [f"{number} Long Street" for number in range(n)]
    table["seen"] = pd.date_range("2020-01-01", periods=n).strftime("%d.%m.%Y")
    prose, unit, dates = heard(table, str(tmp_path), dates="seen")
    assert "'street'" in prose
    assert "'seen' holds a date" in dates
    assert "--ignore seen" in dates
    assert "'fasted' holds text such as '100 h' that hardly repeats" in unit


def test_what_a_note_asks_for_ends_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = TROUBLES["-999 in three columns"].plant(clean("wine"), rng)
    table = TROUBLES["prose"].plant(table, rng)
    told = heard(table, str(tmp_path), na=-999, ignore="planted")
    assert [sentence.split(":")[0] for sentence in told] == ["'-999' was read as missing"]
    read = read_table(tmp_path / "table.csv", "target", na="-999", ignore="planted")
    expected = table.drop(columns=["planted", "target"]).replace(-999, np.nan)
    pd.testing.assert_frame_equal(read.frame, expected)


@given(
    st.lists(st.floats(-50, 50).map(lambda x: round(x, 2)), min_size=3, max_size=60, unique=True),
    st.sampled_from([1.0, -1.0, 0.01, 1000.0]),
)
def test_different_numbers_never_stand_in(values: list[float], unit: float) -> None:
    cells = unit * np.array(values)
    assert [note for note in notice({"a": cells}) if "stand" in note.topic] == []


@given(
    st.lists(st.integers(0, 100), min_size=20, max_size=60).filter(lambda x: len(set(x)) > 3),
    st.sampled_from([-999.0, 999.0, -9999.0, 99999.0]),
)
def test_a_code_far_away_always_stands_in(values: list[int], code: float) -> None:
    cells = np.array([*values, code, code], dtype=float)
    found = [(note.value, note.count) for note in notice({"a": cells}) if note.topic == "stand-in"]
    assert found == [(f"{code:.0f}", 2)]


amounts = st.lists(st.integers(0, 10**9), min_size=1, max_size=8)


@given(amounts, st.sampled_from(["${}", "{} €", "EUR {}", "-{} USD", "{}%", "{} %"]))
def test_amounts_come_back_from_every_dress(values: list[int], dress: str) -> None:
    texts = {dress.format(f"{value / 100:,.2f}"): value / 100 for value in values}
    sign = -1 if dress.startswith("-") else 1
    found = read_numbers(list(texts))
    assert found.problem == ""
    for text, value in texts.items():
        assert float(found.numbers[text]) == pytest.approx(sign * value)


@given(amounts, st.sampled_from([",", ".", "'", "\u00a0", " "]))
def test_thousands_come_back_where_they_are_told(values: list[int], mark: str) -> None:
    texts = {f"{value:,}".replace(",", mark): value for value in values}
    found = read_numbers(list(texts), thousands=mark)
    assert {text: float(number) for text, number in found.numbers.items()} == texts


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1,234.5", "2"], ["1234.5", "2"]),
        (["1.234,5", "2,5"], ["1234.5", "2.5"]),
        (["1,234,567"], ["1234567"]),
        (["1,234", "0.5"], ["1234", "0.5"]),
        (["1.234", "5"], ["1.234", "5"]),
        (["1.234.567", "5"], ["1234567", "5"]),
        (["+5", "-.5", "1e3"], ["+5", "-.5", "1e3"]),
    ],
)
def test_marks_that_mean_one_thing_only(texts: list[str], numbers: list[str]) -> None:
    assert list(read_numbers(texts).numbers.values()) == numbers


@pytest.mark.parametrize("text", ["1 23", "12 34 56", "$5 EUR", "5 kg", "--5", "1'2", "%", "$"])
def test_what_is_no_number_is_left_alone(text: str) -> None:
    assert text not in read_numbers([text]).numbers


@given(st.lists(st.dates(), min_size=1, max_size=20), st.sampled_from(["-", ".", "/"]))
def test_dates_of_every_form_are_the_same_days(dates: list[Any], mark: str) -> None:
    iso = [day.isoformat() for day in dates]
    expected = Date().read(iso).numbers
    shown = [f"{day.day:02d}{mark}{day.month:02d}{mark}{day.year:04d}" for day in dates]
    found = Date().read(shown, day_first=True)
    assert found.problem == ""
    assert [found.numbers[text] for text in shown] == [expected[text] for text in iso]


def test_all_problems_come_at_once_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a,b,c,target\n1,2020-01-01,"1,234",x\nfoo,2020-01-02,"5,678",y\n')
    with pytest.raises(TableError) as caught:
        read_table(path, "target", ignore=["zip"], dates="a")
    assert len(caught.value.problems) == 4
    for part in (
        "no column 'zip'",
        "column 'a': '1' is not a date",
        "'b'",
        "'1,234' may be",
    ):
        assert any(part in problem for problem in caught.value.problems), part
    assert str(caught.value).startswith("4 problems:")


def test_names_groups_and_times_are_beside_the_columns_of_the_model(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("who,p,when,x,y\n007,1,2020-01-02,1.5,u\n008,1,2020-01-01,2.5,v\n")
    read = read_table(path, "y", id="who", group="p", time="when")
    assert read.frame.to_dict("index") == {"007": {"x": 1.5}, "008": {"x": 2.5}}
    assert read.frame.index.name == "who"
    assert read.target is not None
    assert read.target.to_dict() == {"007": "u", "008": "v"}
    assert read.groups is not None
    assert read.groups.tolist() == ["1", "1"]
    assert read.times is not None
    assert read.times.tolist() == [7306.0, 7305.0]
    kinds = dict(zip(read.taken["column"], read.taken["kind"], strict=True))
    assert kinds == {"who": "id", "p": "group", "when": "time", "x": "real", "y": "target"}


def test_a_name_that_repeats_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("who,x\n1,1.5\n1,2.5\n2,3.5\n")
    assert "1 rows of 'who'" in read_table(path, id="who").notes[0]
    assert not any("'who'" in note for note in read_table(path, id="who", group="who").notes)


def test_what_a_table_told_is_kept_for_shorter_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a;b;c\n"1,5";31/12/2020;1.234.567\n"2,5";1/2/2020;9\n')
    options = read_table(path, dates="b").options
    assert (options.decimal, options.day_first, options.thousands) == (",", True, ".")
    path.write_text('a;b;c\n"1,500";1/2/2020;1.234\n')
    again = read_table(
        path, dates="b", decimal=options.decimal, day_first=True, thousands=options.thousands
    )
    assert again.frame.iloc[0].tolist() == [1.5, 7336.0, 1234.0]


NUMBERS = np.random.default_rng(6).permutation(10**6)[:240]
CODES = [f"P{i:04d}" for i in range(240)]
UUIDS = [str(UUID(int=(i + 1) * 7919**9)) for i in range(240)]
MAILS = [f"n{'abcdefghijklmnop'[i // 16]}{'abcdefghijklmnop'[i % 16]}@x.org" for i in range(240)]
LETTERS = ["".join("ABCDEFGHKM"[int(d)] for d in f"{n:06d}"[:3]) + f"{n:06d}"[3:] for n in NUMBERS]
ALL, GROUPS = "texts that are all different", "different texts in 240 rows, such as"
NAMES: dict[str, tuple[Any, str]] = {
    "patient codes": (CODES, ALL),
    "UUIDs": (UUIDS, ALL),
    "e-mails": (MAILS, ALL),
    "declared": (pd.Categorical(CODES), ALL),
    "repeated codes": (CODES[:80] * 3, GROUPS),
    "repeated UUIDs": (UUIDS[:80] * 3, GROUPS),
    "repeated e-mails": (MAILS[:80] * 3, GROUPS),
    "repeated codes of letters": (LETTERS[:80] * 3, GROUPS),
    "numbers": (NUMBERS, "whole numbers that are all different"),
    "with a hole": (np.where(NUMBERS[4] == NUMBERS, np.nan, NUMBERS), "that are all different"),
}


def with_column(cells: Any) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(5)
    a = rng.normal(size=240)
    X = pd.DataFrame({"a": a, "b": a + rng.normal(size=240), "z": cells})
    return X, np.where(a + rng.normal(size=240) > 0, "yes", "no")


@pytest.mark.parametrize(
    "what", some_quick(NAMES, "patient codes", "repeated UUIDs", "with a hole")
)
def test_names_of_rows_are_told_of_files_and_by_fit(what: str, tmp_path: Path) -> None:
    cells, said = NAMES[what]
    X, y = with_column(cells)
    with pytest.warns(ColumnWarning, match=f"Column 'z' has .*{said}") as told:
        generative().fit(X, y)
    assert len(told) == 1
    assert ("as groups= to fit" in str(told[0].message)) == (said == GROUPS)
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    assert any(said in note for note in read_table(tmp_path / "t.csv", "y").notes)
    if said == GROUPS:
        with pytest.warns(ColumnWarning, match="if it names persons or things, leave it out"):
            MixtureDensity(1, random_state=0).fit(X)


@pytest.mark.parametrize("decimals", [1, 0])
def test_measurements_are_no_names(decimals: int) -> None:
    """Whole numbers all different that go with another column, or that have decimals."""
    X, y = with_column(np.zeros(240))
    own = NUMBERS if decimals else 50_000 + 9_000 * X["b"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnWarning)
        generative().fit(X.assign(z=(own + decimals / 2).round(decimals)), y)
        of_sites = np.where(np.arange(240) % 3 == 0, 500_000, 0) + NUMBERS
        generative().fit(X.assign(z=of_sites, site=list("kmn") * 80), y)


def heavy(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Columns of some cells that are far from most."""
    return {
        "lognormal": np.exp(2 * rng.normal(size=150)).round(2),
        "cauchy": rng.standard_cauchy(150),
        "counts": np.floor(np.abs(3 * rng.standard_cauchy(150))),
        "few": np.where(rng.random(150) < 0.8, 0.0, np.exp(2 * rng.normal(size=150)).round(1)),
    }


def test_a_cell_far_beyond_all_others_is_told_and_heavy_tails_are_not() -> None:
    rng = np.random.default_rng(0)
    told = [note for _ in range(100) for note in notice(heavy(rng)) if note.topic == "far cell"]
    assert len(told) <= 2
    age, crp = rng.integers(20, 90, 120).astype(float), np.exp(rng.normal(1, 1, 120)).round(1)
    age[3] *= 100
    crp[crp.argsort()[90]] *= 10_000
    found = [(note.column, note.topic) for note in notice({"age": age, "crp": crp})]
    assert found == [("age", "far cell"), ("crp", "far cell")]
    crp[7] = crp.max()  # two such cells may mean something
    assert list(notice({"crp": crp})) == []
