"""Columns are learnt alike from every container, and anything but a table is refused."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from bayesrbf import read_table
from bayesrbf.table.columns import Columns, learn_columns
from bayesrbf.table.encode import decode, encode
from bayesrbf.table.kinds import Category, Ordered, Real
from tests.strategies import Sheet, sheets


def words(columns: Columns) -> tuple[str, ...]:
    """What each column is."""
    return tuple(kind.word for kind in columns.kinds)


@given(sheets())
def test_kinds_and_levels_do_not_depend_on_the_container(sheet: Sheet) -> None:
    tables = [learn_columns(x) for x in (sheet.numpy(), sheet.pandas(), sheet.polars())]
    for columns in tables:
        assert words(columns) == sheet.kinds()
        assert columns.levels == tables[0].levels
        assert columns.empty == tables[0].empty
    assert [columns.has_names for columns in tables] == [False, True, True]


@given(sheets(), st.randoms())
def test_columns_do_not_depend_on_the_order_of_rows(sheet: Sheet, random: Any) -> None:
    order = list(range(len(sheet.numpy())))
    random.shuffle(order)
    for missingness in ("ignorable", "informative"):
        assert learn_columns(sheet.pandas(), missingness=missingness) == learn_columns(
            sheet.take(order).pandas(), missingness=missingness
        )


@given(sheets())
def test_levels_are_the_sorted_distinct_cells(sheet: Sheet) -> None:
    columns = learn_columns(sheet.polars())
    for position, levels in zip(columns.code_of, columns.levels, strict=True):
        cells = list(sheet.columns.values())[position]
        assert list(levels) == sorted({cell for cell in cells if cell is not None})


def test_ordered_categories_have_their_order_and_whole_numbers_are_reals() -> None:
    stages = ["low", "middle", "high"]
    X = pd.DataFrame(
        {"stage": pd.Categorical(["low", "high", None], stages, ordered=True), "visits": [0, 3, 1]}
    )
    columns = learn_columns(X)
    assert columns == learn_columns(X, column_kinds={"stage": "ordered:low<middle<high"})
    rows = encode(X, columns)
    np.testing.assert_array_equal(rows.real[:, 0], [0.0, 2.0, np.nan])
    pd.testing.assert_frame_equal(decode(rows.real, rows.codes, columns, X), X, check_dtype=False)
    assert decode(rows.real, rows.codes, columns, X)["stage"].dtype == X["stage"].dtype


@pytest.mark.parametrize("levels", [[3, 1, 2], [2.5, 0.5, 1.5], ["c", "a", "b"]])
def test_a_declared_order_is_that_of_the_levels_in_every_source(
    levels: list[Any], tmp_path: Path
) -> None:
    X = pd.DataFrame({"g": pd.Categorical(levels[:2] * 9, levels, ordered=True), "z": range(18)})
    assert learn_columns(X).kinds[0] == Ordered(tuple(levels))
    assert learn_columns(X.astype({"g": X["g"].dtype.categories.dtype})).kinds[0] != Ordered(
        tuple(levels)
    )
    assert learn_columns(X, categorical_features=["g"]).kinds[0] == Category(
        tuple(sorted(levels[:2]))
    )
    assert learn_columns(X, column_kinds={"g": "ordered"}).kinds[0] == Ordered(
        tuple(sorted(levels[:2]))
    )
    texts = tuple(map(str, levels))
    assert read_table(X).kinds["g"] == Ordered(texts)
    assert read_table(X, categorical="g").kinds["g"] == Category(tuple(sorted(texts[:2])))
    if isinstance(levels[0], str):  # Parquet keeps no categories that are numbers
        X.to_parquet(tmp_path / "t.parquet", row_group_size=5)
        assert read_table(tmp_path / "t.parquet").kinds["g"] == Ordered(texts)
        assert learn_columns(pa.Table.from_pandas(X)).kinds[0] == Ordered(texts)
        enum = pl.DataFrame({"g": pl.Series(levels, dtype=pl.Enum(levels))})
        assert learn_columns(enum).kinds[0] == Category(tuple(sorted(texts)))


def test_masks_join_where_there_are_holes() -> None:
    X = pd.DataFrame({"a": [1.0, None], "b": ["x", "y"], "c": ["u", None], "d": [None, None]})
    columns = learn_columns(X, missingness="informative")
    assert columns.masked == (0, 2)  # that of an empty column would be constant
    assert columns.categorical_names == ("b", "c", "a is missing", "c is missing")
    assert columns.n_levels == (2, 1, 2, 2)
    assert learn_columns(X).masked == ()
    assert columns.empty == (3,)
    assert columns.real_names == ("a",)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint64, bool, np.float16, object])
def test_arrays_of_numbers_are_real(dtype: type) -> None:
    assert words(learn_columns(np.eye(3).astype(dtype))) == ("real",) * 3


def test_missing_values_of_every_kind() -> None:
    for marker in (None, np.nan, np.float32("nan"), pd.NA, pd.NaT, Decimal("nan"), float("nan")):
        for cells, kind in (([1.5, marker], "real"), (["a", marker], "categorical")):
            X = np.array([[cell] for cell in cells], dtype=object)
            columns = learn_columns(X, missingness="informative")
            assert (words(columns), columns.masked) == ((kind,), (0,)), marker


@pytest.mark.parametrize(
    ("X", "kinds", "levels"),
    [
        (pd.DataFrame({"a": pd.Categorical([3, 1, None])}), ("categorical",), ((1, 3),)),
        (pd.DataFrame({"a": pd.Categorical([0.5, 1])}), ("categorical",), ((0.5, 1.0),)),
        (pd.DataFrame({"a": pd.Categorical(["v"], categories=["v", "u"])}), None, (("v",),)),
        (pd.DataFrame({"a": pd.array([True, None], dtype="boolean")}), ("yes or no",), ((True,),)),
        (pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), ("real",), ()),
        (pd.DataFrame({"a": pd.array(["x", pd.NA], dtype="string")}), None, (("x",),)),
        (pd.DataFrame({"a": np.array([1, None, Decimal(2)], dtype=object)}), ("real",), ()),
        (pl.DataFrame({"a": pl.Series(["u"], dtype=pl.Enum(["v", "u"]))}), None, (("u",),)),
        (pl.DataFrame({"a": pl.Series(["u"], dtype=pl.Categorical)}), None, (("u",),)),
        (pl.DataFrame({"a": pl.Series([1, None], dtype=pl.Decimal(9, 2))}), ("real",), ()),
        (pl.DataFrame({"a": pl.Series([1, "x"], dtype=pl.Object)[1:]}), None, (("x",),)),
        ([["b", 1], ["a", 2.5]], ("categorical", "real"), (("a", "b"),)),
        (np.array([["b"], ["a"]]), ("categorical",), (("a", "b"),)),
    ],
)
def test_dtypes(X: Any, kinds: tuple[str, ...] | None, levels: tuple[Any, ...]) -> None:
    columns = learn_columns(X)
    assert words(columns) == (kinds or ("categorical",))
    assert columns.levels == levels
    assert [type(level) for level in sum(columns.levels, ())] == [
        type(level) for level in sum(levels, ())
    ]


@pytest.mark.parametrize("chosen", [[1], [-1], ["b"], [False, True], np.array([1])])
def test_categorical_features_by_position_name_and_mask(chosen: Any) -> None:
    X = pd.DataFrame({"a": [0.5, 1.0, 2.0], "b": [1.0, 0.0, 1.0]})
    columns = learn_columns(X, categorical_features=chosen)
    assert words(columns) == ("real", "yes or no")
    assert columns.levels == ((0, 1),)


def test_chosen_columns_and_no_others_are_categorical() -> None:
    X = pd.DataFrame({"a": [True, False], "b": ["x", "y"]})
    assert words(learn_columns(X, categorical_features=["b"])) == ("real", "categorical")
    assert learn_columns(X, categorical_features="from_dtype") == learn_columns(X)
    with pytest.raises(ValueError, match="'b' holds text, such as 'x', but is not among"):
        learn_columns(X, categorical_features=["a"])


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ([2], "the column 2, which X does not have"),
        ([-3], "the column -3, which"),
        (["c"], "the column 'c', which X does not have; its columns are 'a', 'b'"),
        ([True], r"one entry per column \(2\); received 1"),
        ("b", "must be None, 'from_dtype'"),
        ([0.5], "must be None, 'from_dtype'"),
        (1, "must be None, 'from_dtype'"),
    ],
)
def test_categorical_features_that_are_not_there(chosen: Any, message: str) -> None:
    X = pd.DataFrame({"a": [0.5, 1.0], "b": [1.0, 0.0]})
    with pytest.raises(ValueError, match=message):
        learn_columns(X, categorical_features=chosen)


DAY = datetime.date(2020, 1, 1)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.ones(3), ValueError, "Reshape your data"),
        (np.ones((2, 2, 2)), ValueError, "Expected 2D array, got 3D"),
        (np.float64(1), ValueError, "Expected 2D array, got 0D"),
        (np.ones((0, 2)), ValueError, r"0 sample\(s\) \(shape=\(0, 2\)\) while a minimum of 1"),
        (np.ones((2, 0)), ValueError, r"0 feature\(s\) \(shape=\(2, 0\)\) while a minimum of 1"),
        (pd.DataFrame({"a": []}), ValueError, r"0 sample\(s\)"),
        (pl.DataFrame(), ValueError, r"0 sample\(s\)"),
        ([[1.0], [np.inf]], ValueError, "contains infinity: column 'x0' holds inf at row 1"),
        (pl.DataFrame({"a": [1.0, -np.inf]}), ValueError, "column 'a' holds -inf at row 1"),
        ([[1, "b"], ["a", "b"]], TypeError, "'x0' has mixed types: the number 1 at row 0 and the"),
        ([[True], ["a"]], TypeError, "the boolean True at row 0 and the string 'a' at row 1"),
        ([[{"a": 1}], [2]], TypeError, "argument must be a string or a number"),
        ([[1j], [2]], ValueError, "Complex data not supported"),
        (np.array([[1j], ["a"]], dtype=object), ValueError, "Complex data not supported"),
        (pd.DataFrame({"a": [1j]}), ValueError, "Complex data not supported"),
        (np.array([[DAY]], dtype="datetime64[D]"), TypeError, "dtype datetime64"),
        (pl.DataFrame({"a": [datetime.time(3)]}), ValueError, "'a' holds times"),
        (pd.DataFrame({"a": [DAY]}), TypeError, "is a date, but the argument must be"),
        (pl.DataFrame({"a": [[1, 2]]}), TypeError, "'a' must hold numbers or strings; received"),
        (np.array([[b"a"]]), TypeError, "dtype |S1"),
        (sparse.eye_array(3), TypeError, "Sparse data was passed"),
        (np.array([["a", "1.5"], ["b", "2"]]), ValueError, "'x1' of a string array holds numbers"),
        ([[10**400]], ValueError, "'x0' holds a number too large for float64"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "distinct names"),
    ],
)
def test_what_is_no_table(X: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        learn_columns(X)


def test_masked_arrays_have_holes() -> None:
    X = np.ma.array([[1.0], [2.0]], mask=[[False], [True]])
    assert learn_columns(X, missingness="informative").masked == (0,)


def test_frames_with_numbered_columns_have_no_names() -> None:
    columns = learn_columns(pd.DataFrame(np.eye(2)))
    assert (columns.names, columns.has_names) == (("x0", "x1"), False)


def test_missingness_is_checked() -> None:
    with pytest.raises(ValueError, match="missingness must be one of"):
        learn_columns(np.eye(2), missingness="random")


def test_columns_are_records_that_compare() -> None:
    expected = Columns(("x0", "x1"), (Real(), Real()), missing=(0, 0))
    assert learn_columns(np.eye(2)) == expected
