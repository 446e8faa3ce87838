"""Tables to arrays and back."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayesrbf.table.columns import learn_columns
from bayesrbf.table.encode import decode, encode
from tests.strategies import Sheet, sheets


def plain(X: Any) -> list[list[Any]]:
    """The cells of any container, None where missing."""
    rows = X.rows() if isinstance(X, pl.DataFrame) else np.asarray(X, dtype=object).tolist()
    return [[None if cell is None or cell != cell else cell for cell in row] for row in rows]


@given(sheets())
def test_what_is_encoded_comes_back(sheet: Sheet) -> None:
    for X in (sheet.numpy(), sheet.pandas(), sheet.polars()):
        columns = learn_columns(X)
        table = encode(X, columns)
        back = decode(table.real, table.codes, columns, X)
        assert type(back) is type(X)
        assert plain(back) == plain(sheet.numpy())


@given(sheets())
def test_containers_encode_alike(sheet: Sheet) -> None:
    tables = [
        encode(X, learn_columns(X, missingness="informative"))
        for X in (sheet.numpy(), sheet.pandas(), sheet.polars())
    ]
    for table in tables[1:]:
        np.testing.assert_array_equal(table.real, tables[0].real)
        np.testing.assert_array_equal(table.codes, tables[0].codes)


@given(sheets(), st.randoms())
def test_permuted_rows_encode_to_permuted_arrays(sheet: Sheet, random: Any) -> None:
    order = list(range(len(sheet.numpy())))
    random.shuffle(order)
    columns = learn_columns(sheet.pandas())
    table, permuted = (encode(s.pandas(), columns) for s in (sheet, sheet.take(order)))
    np.testing.assert_array_equal(permuted.real, table.real[order])
    np.testing.assert_array_equal(permuted.codes, table.codes[order])


def test_masks_follow_the_categorical_columns() -> None:
    X = pd.DataFrame({"a": [1.0, None], "b": ["x", "y"], "c": ["u", None]})
    table = encode(X, learn_columns(X, missingness="informative"))
    assert table.codes.tolist() == [[0, 0, 0, 0], [1, -1, 1, 1]]
    assert table.codes.dtype == np.intp


def test_an_unseen_category_is_missing_with_one_warning_or_an_error() -> None:
    X = pd.DataFrame({"a": ["x", "y", None], "b": [True, True, False]})
    new = pd.DataFrame({"a": ["z", "x", "w"], "b": ["?", None, "?"]})
    columns = learn_columns(X, missingness="informative")
    with pytest.warns(UserWarning, match=r"'a': 'w', 'z'; 'b': '\?'") as caught:
        table = encode(new, columns)
    assert len(caught) == 1
    # The value is unknown, but it is there: the mask says so.
    assert table.codes.tolist() == [[-1, -1, 0], [0, -1, 0], [-1, -1, 0]]
    with pytest.raises(ValueError, match="not seen at fit"):
        encode(new, columns, handle_unknown="error")
    with pytest.raises(ValueError, match="handle_unknown must be one of"):
        encode(X, columns, handle_unknown="ignore")


def test_a_column_that_was_empty_stays_missing() -> None:
    columns = learn_columns(np.array([[1.0, np.nan], [2.0, np.nan]]))
    with pytest.warns(
        UserWarning,
        match="'x1' had no observed cell at fit, .*its 1 observed cells",
    ):
        table = encode([[1.0, "text"], [2.0, None]], columns)
    assert table.real.tolist() == [[1.0], [2.0]]  # no model knows of the other
    back = decode(table.real, table.codes, columns, np.zeros((2, 2)))
    assert np.isnan(back[:, 1]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encode([[1.0, None]], columns)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (np.ones((2, 1)), r"X has 1 features, but \w+ is expecting 2 features as input"),
        (pd.DataFrame({"b": ["x"], "a": [1.0]}), "must be in the same order"),
        (pd.DataFrame({"a": [1.0], "c": ["x"]}), r"(?s)unseen at fit time: c.*now missing: b"),
        (pd.DataFrame({"a": ["1"], "b": ["x"]}), "'a' held numbers at fit, but now holds text"),
        ([[np.inf, "x"]], "contains infinity"),
    ],
)
def test_another_table_is_refused(new: Any, message: str) -> None:
    columns = learn_columns(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}))
    with pytest.raises(ValueError, match=message):
        encode(new, columns)


def test_codes_of_numbers_and_booleans_are_found_whatever_their_type() -> None:
    columns = learn_columns(np.array([[0.0], [1.0], [2.5]]), categorical_features=[0])
    assert encode(pd.DataFrame({"x0": [1, 0]}), columns).codes.tolist() == [[1], [0]]
    columns = learn_columns(pd.DataFrame({"a": [True, False]}))
    assert encode(np.array([[1.0], [0.0]]), columns).codes.tolist() == [[1], [0]]


def test_minus_zero_is_the_level_zero() -> None:
    columns = learn_columns(np.array([[-0.0], [1.0]]), categorical_features=[0])
    assert columns.levels == ((0, 1),)
    assert encode([[0.0], [-0.0]], columns).codes.tolist() == [[0], [0]]


def test_frames_come_back_with_index_and_dtypes() -> None:
    X = pd.DataFrame(
        {"a": [1.0, 2.0], "b": pd.Categorical(["u", "v"]), "c": ["x", "y"], "d": [True, False]},
        index=["first", "second"],
    )
    columns = learn_columns(X)
    table = encode(X, columns)
    pd.testing.assert_frame_equal(decode(table.real, table.codes, columns, X), X)
    longer = decode(table.real.repeat(2, 0), table.codes.repeat(2, 0), columns, X)
    assert longer.index.tolist() == [0, 1, 2, 3]
    Y = pl.DataFrame(
        {"a": [1.0], "b": pl.Series(["u"], dtype=pl.Enum(["v", "u"])), "c": ["x"], "d": [True]}
    )
    columns = learn_columns(Y)
    table = encode(Y, columns)
    assert decode(table.real, table.codes, columns, Y).equals(Y)
    assert decode(table.real, table.codes, columns, Y).schema == Y.schema


def test_no_rows_come_back_as_an_empty_frame() -> None:
    for X in (pd.DataFrame({"a": [1.0], "b": ["x"]}), pl.DataFrame({"a": [1.0], "b": ["x"]})):
        columns = learn_columns(X)
        table = encode(X, columns)
        empty = decode(table.real[:0], table.codes[:0], columns, X)
        assert empty.shape == (0, 2)
        assert list(empty.dtypes) == list(X.dtypes)


def test_arrays_of_numbers_come_back_as_floats() -> None:
    X = np.array([[1.5, 1.0], [2.5, np.nan]])
    columns = learn_columns(X, categorical_features=[1])
    table = encode(X, columns)
    back = decode(table.real, table.codes, columns, X)
    assert back.dtype == np.float64
    np.testing.assert_array_equal(back, X)


def test_the_table_is_not_changed_by_reading_it() -> None:
    X = np.array([[-0.0, np.nan], [1.0, 2.0]])
    X.flags.writeable = False
    table = encode(X, learn_columns(X))
    assert table.real.flags.writeable
    assert not np.shares_memory(table.real, X)
