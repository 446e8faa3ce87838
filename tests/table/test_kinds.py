"""Kinds of columns: cells become reals and codes and come back, whatever the kind."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bayesrbf
from bayesrbf.table.columns import joined_columns, learn_columns
from bayesrbf.table.encode import decode, encode, observed_cells
from bayesrbf.table.kinds import KINDS, Angle, Ordered, kind_named
from tests.kinds import KINDS_OF, PAIN, table
from tests.kinds import clock as clock
from tests.kinds import share as share

CELLS: dict[str, st.SearchStrategy[Any]] = {
    "real": st.floats(-1e9, 1e9),
    "count": st.integers(0, 10**9).map(float),
    "date": st.integers(-(10**5), 10**5).map(float),
    "angle:24": st.floats(0, 24, exclude_max=True),
    "ordered": st.sampled_from([1.0, 2.0, 4.0]),
    "ordered:none<mild<severe": st.sampled_from(PAIN),
    "categorical": st.sampled_from(["a", "b"]),
    "yes or no": st.booleans(),
}


@given(st.sampled_from([*CELLS]), st.data())
def test_decoding_gives_the_encoded_cells_back(kind: str, data: st.DataObject) -> None:
    column = data.draw(st.lists(st.none() | CELLS[kind], min_size=1, max_size=8))
    X = np.array([[cell] for cell in column], dtype=object)
    columns = learn_columns(X, column_kinds={0: kind})
    rows = encode(X, columns)
    missing = [cell is None for cell in column]
    assert (~observed_cells(rows, columns)).ravel().tolist() == missing
    for cell, back in zip(column, decode(rows.real, rows.codes, columns, X).ravel(), strict=True):
        if cell is None:
            assert back is None or back != back
        elif isinstance(cell, float):
            away = abs(back - cell)
            assert min(away, 24 - away if kind == "angle:24" else away) <= 1e-6
        else:
            assert back == cell


@given(st.sampled_from(["count", "ordered:none<mild<severe"]), st.floats(-1e6, 1e6))
def test_any_real_is_a_whole_number_or_a_level(kind: str, real: float) -> None:
    (number,) = kind_named(kind).decode(np.array([[real]]))
    assert number >= 0
    assert number == round(number)
    assert kind == "count" or number <= 2


def test_scores_keep_the_order_of_levels() -> None:
    X = pd.DataFrame(
        {"stage": ["stage 10", "stage 2", "stage 1"], "pain": ["mild", "severe", None]}
    )
    columns = learn_columns(X, column_kinds={"stage": "ordered", "pain": KINDS_OF["pain"]})
    assert columns.levels_of["stage"] == ("stage 1", "stage 2", "stage 10")
    assert columns.levels_of["pain"] == PAIN
    np.testing.assert_array_equal(encode(X, columns).real, [[2, 1], [1, 2], [0, np.nan]])


def test_turns_are_no_difference_and_midnight_is_near_to_both_sides() -> None:
    angle = Angle(24.0)
    hours = np.array([0.0, 1.0, 23.0, 12.0])
    np.testing.assert_allclose(angle.encode(hours + 48), angle.encode(hours), atol=1e-12)
    far = np.linalg.norm(angle.encode(hours) - angle.encode(np.zeros(1)), axis=1)
    assert far[1] == pytest.approx(far[2])
    assert far[2] < far[3]


@pytest.mark.parametrize(
    ("kinds", "cell", "message"),
    [
        ({"a": "count"}, -1.0, "holds -1, but its kind is 'count', whose cells are each a whole"),
        ({"a": "count"}, 0.5, "holds 0.5, but its kind is 'count'"),
        ({"a": "ordered:x<y"}, "z", "holds 'z', which is not among the levels"),
        ({"a": "count"}, "z", "held numbers at fit, but now holds text"),
        ({"a": "angel"}, 1.0, "'angel' is no kind of column; they are real, categorical"),
        ({"a": "angle:-3"}, 1.0, "angle takes its period, such as angle:24; received '-3'"),
        ({"a": "count:3"}, 1.0, "count takes nothing behind a colon"),
        ({"b": "count"}, 1.0, "column_kinds names the column 'b', which X does not have"),
        (["a"], 1.0, "column_kinds must be None or a dict"),
    ],
)
def test_kinds_that_do_not_fit_are_refused(kinds: Any, cell: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        learn_columns(pd.DataFrame({"a": [cell]}), column_kinds=kinds)


def test_dates_come_back_in_their_dtype() -> None:
    days = pd.to_datetime(["2020-01-31", None, "1999-12-31"])
    for X in (
        pd.DataFrame({"a": days}),
        pd.DataFrame({"a": days.tz_localize("Europe/Berlin")}),
        pl.DataFrame({"a": days}),
        pl.DataFrame({"a": days}).cast(pl.Date),
    ):
        columns = learn_columns(X)
        rows = encode(X, columns)
        zoned = getattr(X["a"].dtype, "tz", None) is not None
        assert rows.real[0, 0] == pytest.approx(7335 - zoned / 24)  # at the clock of UTC
        back = decode(rows.real, rows.codes, columns, X)
        assert X.equals(back)


def test_blocks_join_levels_in_their_order() -> None:
    one, other = (
        learn_columns(pd.DataFrame({"a": cells, "b": [True], "c": [word]}), column_kinds=kinds)
        for cells, word in (([1.0], "yes"), ([10.0], "no"))
        for kinds in ({"a": "ordered"},)
    )
    joined = joined_columns(one, other)
    assert [kind.word for kind in joined.kinds] == ["ordered", "yes or no", "yes or no"]
    assert joined.kinds[0] == Ordered((1, 10))
    counted = pd.DataFrame({"a": [1.0], "b": [True], "c": ["yes"]})
    with pytest.raises(TypeError, match=r"\(ordered and count\)"):
        joined_columns(one, learn_columns(counted, column_kinds={"a": "count"}))


# What a fitted density says of cells of every kind.


@pytest.fixture(scope="module")
def density() -> Any:
    X, _ = table(300)
    return bayesrbf.MixtureDensity(2, random_state=0, column_kinds=KINDS_OF).fit(X)


def test_imputed_and_drawn_cells_are_cells_of_their_kind(density: Any) -> None:
    X, _ = table(60, seed=1, holes=0.5)
    tables = [density.impute(X), *density.impute(X, draws=3), density.sample(50)]
    for completed in tables:
        assert (completed["visits"] >= 0).all()
        assert (completed["visits"] == completed["visits"].round()).all()
        assert completed["pain"].isin(PAIN).all()
        assert completed["hour"].between(0, 24, inclusive="left").all()
        assert completed["again"].isin(["yes", "no"]).all()
        assert completed["seen"].dtype == X["seen"].dtype


def test_an_hour_is_judged_on_both_sides_of_midnight(density: Any) -> None:
    X, _ = table(1, seed=3, holes=0.0)
    X["visits"], X["pain"], X["size"] = 1.0, "none", 0.0
    rows = pd.concat([X.assign(hour=hour) for hour in (23.0, 0.5, 12.0)], ignore_index=True)
    told = density.surprise(rows)
    tail = told["log_tail"].sel(column="hour").to_numpy()
    assert tail[2] < min(tail[:2]) - 1
    assert told["expected"].sel(column="pain").to_numpy()[0] in PAIN
    assert np.isnan(told["lower"].sel(column="hour").to_numpy()).all()


# Every estimator takes kinds, and those that are written in a single file.


ESTIMATORS: dict[str, dict[str, Any]] = {
    "HybridMixtureClassifier": {"n_components": 1},
    "KernelNetworkClassifier": {},
    "RBFNetworkClassifier": {"n_components": 3},
    "SDGMClassifier": {"n_components": 1},
    "MedianLVQClassifier": {},
    "StackedClassifier": {"cv": 2},
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_takes_every_kind(
    name: str, share: Any, clock: Any, tmp_path: Path
) -> None:
    X, y = table(80, planted=True)
    kinds = KINDS_OF | {"fat": "share", "woken": "clock"}
    model = getattr(bayesrbf, name)(column_kinds=kinds, random_state=0, **ESTIMATORS[name])
    p = model.fit(X, y).predict_proba(X)
    words = ["angle", "count", "ordered", "date", "yes or no", "real", "share", "clock"]
    assert model.columns_.table()["kind"].tolist() == words
    assert np.log(p[np.arange(80), (y == "well").astype(int)]).mean() > np.log(0.5)
    np.testing.assert_array_equal(model.predict_proba(X.assign(hour=X["hour"] + 24)), p)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(bayesrbf.load(tmp_path / "model").predict_proba(X), p)
    explained = model.explain(X.iloc[:2])
    assert explained.sizes["column"] == len(words)
    with pytest.raises(ValueError, match="whose cells are each a number between 0 and 1"):
        model.predict_proba(X.assign(fat=1.5))
    minutes = pd.to_timedelta(X["woken"] + ":00").dt.total_seconds() / 60
    np.testing.assert_array_equal(model.predict_proba(X.assign(woken=minutes)), p)
    with pytest.raises(ValueError, match="'25:00', which is not a time of day; write it as 14:35"):
        model.predict_proba(X.assign(woken="25:00"))


def test_texts_come_back_as_texts(clock: Any, tmp_path: Path) -> None:
    X, _ = table(80, planted=True)
    density = bayesrbf.MixtureDensity(1, random_state=0, column_kinds=KINDS_OF | {"woken": "clock"})
    holes = X.drop(columns="fat").mask(np.random.default_rng(1).random((80, 7)) < 0.2)
    filled = density.fit(X.drop(columns="fat")).impute(holes)
    for cells in (filled["woken"], density.sample(20)["woken"]):
        assert cells.str.fullmatch(r"[01]\d:[0-5]\d|2[0-3]:[0-5]\d").all()
    measured = holes["woken"].notna()
    assert (filled["woken"] == holes["woken"])[measured].all()
    X.to_csv(tmp_path / "t.csv", index=False)
    read = bayesrbf.read_table(tmp_path / "t.csv", kind=["fat=real", "woken=clock"], dates="seen")
    assert read.kinds["woken"].word == "clock"
    texts = read.kinds["woken"].texts(read.frame["woken"].to_numpy())
    assert [text for text in texts if text] == X["woken"].dropna().tolist()


def test_a_stack_counts_missing_columns_of_new_rows_as_at_the_fit(tmp_path: Path) -> None:
    X, y = table(60)
    stack = bayesrbf.StackedClassifier(["normal"], cv=2, column_kinds=KINDS_OF, random_state=0)
    stack.fit(X, y).save(tmp_path / "model")
    for one in (stack, bayesrbf.load(tmp_path / "model")):
        rows = encode(X, one.columns_)
        expected = X.isna().mean(axis=1)
        np.testing.assert_allclose(one.model_.missing_fraction(rows), expected)
        np.testing.assert_allclose(one.fitted_.missing_fraction(rows), expected)


def test_no_file_outside_the_table_asks_for_a_kind_by_its_name() -> None:
    package = Path(bayesrbf.__file__).parent
    names = {kind.__name__ for kind in KINDS.values()}
    for file in package.rglob("*.py"):
        if file.parent.name == "table":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            asked: list[ast.AST] = []
            if isinstance(node, ast.Compare):
                asked = [node.left, *node.comparators]
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                asked = [node.args[1]]
            for part in (inner for one in asked for inner in ast.walk(one)):
                assert not (isinstance(part, ast.Constant) and part.value in KINDS), file
                assert not (isinstance(part, ast.Name) and part.id in names - {"Real"}), file
