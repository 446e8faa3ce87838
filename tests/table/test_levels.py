"""Levels that have to stay apart, cells written in other ways, and dtypes that come back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bayesrbf.table.columns import in_one_name, joined_columns, learn_columns
from bayesrbf.table.encode import decode, encode

LONG = [2**53, 2**53 + 1, 1577134800018226901, 2**70, 2**70 + 1]
CONTAINERS = {
    "category": lambda cells: pd.DataFrame({"x": pd.Categorical(cells)}),
    "objects": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype=object)}),
    "array of objects": lambda cells: np.array(cells, dtype=object).reshape(-1, 1),
    "list": lambda cells: [[cell] for cell in cells],
}
SHORT = {
    "int64": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype="int64")}),
    "Int64": lambda cells: pd.DataFrame({"x": pd.array([*cells, None], dtype="Int64")}),
    "uint64": lambda cells: np.array(cells, dtype=np.uint64).reshape(-1, 1),
    "array": lambda cells: np.array(cells).reshape(-1, 1),
    "polars": lambda cells: pl.DataFrame({"x": [*cells, None]}),
}


def cells_of(X: Any) -> list[Any]:
    """The cells of the only column."""
    cells: list[Any] = X.ravel().tolist() if isinstance(X, np.ndarray) else list(X["x"])
    return cells


def there_and_back(X: Any, **options: Any) -> Any:
    columns = learn_columns(X, **options)
    rows = encode(X, columns, handle_unknown="error")
    return decode(rows.real, rows.codes, columns, X)


@pytest.mark.parametrize("container", CONTAINERS)
def test_long_numbers_are_levels_apart(container: str) -> None:
    X = CONTAINERS[container](LONG)
    columns = learn_columns(X, categorical_features=[0])
    assert columns.levels == (tuple(LONG),)
    assert encode(X, columns).codes.ravel().tolist() == [0, 1, 2, 3, 4]
    assert cells_of(there_and_back(X, categorical_features=[0])) == LONG


@pytest.mark.parametrize("container", SHORT)
def test_long_numbers_of_any_dtype_are_levels_apart(container: str) -> None:
    X = SHORT[container](LONG[:3])
    columns = learn_columns(X, categorical_features=[0])
    assert columns.levels == (tuple(LONG[:3]),)
    assert encode(X, columns).codes.ravel().tolist()[:3] == [0, 1, 2]
    assert cells_of(there_and_back(X, categorical_features=[0]))[:3] == LONG[:3]


def test_a_long_number_is_unknown_where_floats_would_not_tell() -> None:
    columns = learn_columns(pd.DataFrame({"x": pd.Categorical([2**60, 2**60 + 2])}))
    with pytest.raises(ValueError, match=f"'x': {2**60 + 1}"):
        encode(pd.DataFrame({"x": [2**60 + 1]}), columns, handle_unknown="error")


def test_long_numbers_are_reals() -> None:
    X = pd.DataFrame({"x": [2**53, 2**53 + 1, 7]})
    assert encode(X, learn_columns(X)).real.ravel().tolist() == [2.0**53, 2.0**53, 7.0]


def test_blocks_keep_long_numbers_and_codes_apart() -> None:
    blocks = [["250", "250.0"], ["250.00"]]
    tables = [pd.DataFrame({"x": cells}) for cells in blocks]
    one, other = (learn_columns(X, whole=False) for X in tables)
    assert in_one_name(joined_columns(one, other)).levels == (("250", "250.0", "250.00"),)
    long = [pd.DataFrame({"x": pd.Categorical([n])}) for n in (2**60, 2**60 + 1)]
    assert joined_columns(*map(learn_columns, long)).levels == ((2**60, 2**60 + 1),)


@pytest.mark.parametrize(
    ("cells", "levels", "codes"),
    [
        (["1", "1.0", "2"], ("1", "2"), [0, 0, 1]),
        (["TRUE", "true", "False"], ("False", "True"), [1, 1, 0]),
        (["250", "250.0", "250.00"], ("250", "250.0", "250.00"), [0, 1, 2]),
    ],
)
def test_levels_of_a_frame_are_told_apart_as_in_a_file(
    cells: list[str], levels: tuple[str, ...], codes: list[int]
) -> None:
    X = pd.DataFrame({"x": cells})
    columns = learn_columns(X)
    assert columns.levels == (levels,)
    assert encode(X, columns).codes.ravel().tolist() == codes


@pytest.mark.parametrize(
    ("trained", "new"),
    [
        ([0, 1, 2], ["0.0", "1", "2"]),
        ([0, 1, 2], [0.0, 1.0, 2.0]),
        (["0", "1", "2"], [0.0, 1.0, 2.0]),
        (["0.0", "1.0", "2.0"], [0, 1, 2]),
        ([False, True], ["FALSE", "true"]),
        ([False, True], [0.0, 1.0]),
        (["false", "true"], [False, True]),
        ([0.5, 1.5], ["0.5", "1.5"]),
    ],
)
def test_new_cells_are_the_levels_of_training(trained: list[Any], new: list[Any]) -> None:
    columns = learn_columns(pd.DataFrame({"x": pd.Categorical(trained)}))
    codes = encode(pd.DataFrame({"x": new}), columns, handle_unknown="error").codes
    assert codes.ravel().tolist() == list(range(len(trained)))


DAYS = ["2020-01-01", "2021-06-01 12:30"]


@pytest.mark.parametrize(
    "dates", [pd.to_datetime(DAYS, format="mixed"), pd.to_datetime(DAYS, format="mixed").date]
)
def test_dates_are_categories_where_their_dtype_says_so(dates: Any) -> None:
    X = pd.DataFrame({"x": pd.Categorical([*dates, None])})
    columns = learn_columns(X)
    assert [str(level)[:10] for level in columns.levels[0]] == ["2020-01-01", "2021-06-01"]
    text = pd.DataFrame({"x": [str(day) for day in dates]})
    assert encode(text, columns, handle_unknown="error").codes.ravel().tolist() == [0, 1]
    pd.testing.assert_frame_equal(there_and_back(X), X)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([True, False, True]),
        pd.Series([True, False, None], dtype="boolean"),
        pd.Series([True, False, None], dtype="bool[pyarrow]"),
        pd.Series([True, False, None], dtype=object),
        pd.Series(pd.Categorical([True, False, None])),
        pd.Series(pd.Categorical([3, 1, None], categories=[3, 1, 2])),
        pd.Series(pd.Categorical(["b", "a", None], categories=["b", "a"])),
    ],
    ids=["bool", "nullable", "pyarrow", "object", "of booleans", "of numbers", "of texts"],
)
def test_levels_come_back_in_their_dtype(column: pd.Series) -> None:
    X = pd.DataFrame({"x": column})
    pd.testing.assert_frame_equal(there_and_back(X), X)
    empty = X.iloc[:0]
    columns = learn_columns(X)
    none = encode(X, columns).take(np.arange(0))
    assert decode(none.real, none.codes, columns, X).dtypes.tolist() == empty.dtypes.tolist()


def test_a_boolean_that_was_read_as_a_number_stays_one() -> None:
    X = pd.DataFrame({"x": pd.array([True, False, None], dtype="boolean"), "y": [1.0, 2.0, 3.0]})
    columns = learn_columns(X, categorical_features=[])
    back = decode(np.array([[0.25, 1.0]] * 3), np.empty((3, 0), dtype=int), columns, X)
    assert back["x"].tolist() == [0.25] * 3


NUMBERS = pd.DataFrame(np.arange(6.0).reshape(2, 3), columns=[10, 20, 30])
TUPLES = NUMBERS.set_axis(pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]), axis=1)
DEFAULT = NUMBERS.set_axis(range(3), axis=1)


@pytest.mark.parametrize("X", [NUMBERS, TUPLES, DEFAULT], ids=["numbers", "tuples", "default"])
def test_names_that_are_no_text_are_compared(X: pd.DataFrame) -> None:
    columns = learn_columns(X)
    encode(X, columns)
    encode(X.to_numpy(), columns)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        encode(X.iloc[:, [1, 0, 2]], columns)
    with pytest.raises(ValueError, match="Feature names unseen at fit time: 7, 8, 9"):
        encode(X.set_axis([7, 8, 9], axis=1), columns)


def test_numbers_that_pandas_gave_are_no_names_beside_text() -> None:
    text = NUMBERS.set_axis(list("abc"), axis=1)
    assert encode(DEFAULT, learn_columns(text)).n_obs == 2
    assert encode(text, learn_columns(DEFAULT)).n_obs == 2
