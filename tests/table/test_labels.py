"""Labels as codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import DataConversionWarning

from bayesrbf.table.encode import encode_labels


@pytest.mark.parametrize(
    ("y", "classes", "codes"),
    [
        ([2, 0, 2], [0, 2], [1, 0, 1]),
        (np.array([1.0, np.nan, 0.0]), [0.0, 1.0], [1, -1, 0]),
        (["b", None, "a"], ["a", "b"], [1, -1, 0]),
        (np.array(["b", "a"]), ["a", "b"], [1, 0]),
        ([True, None, False], [False, True], [1, -1, 0]),
        (pd.Series(["b", None, "a"]), ["a", "b"], [1, -1, 0]),
        (pd.Series([1, None, 0], dtype="Int64"), [0, 1], [1, -1, 0]),
        (pd.Series(["b", None, "a"], dtype="category"), ["a", "b"], [1, -1, 0]),
        (pd.Series([1, None, 0], dtype="Int64").astype("category"), [0, 1], [1, -1, 0]),
        (pd.Series([True, None, False], dtype="boolean"), [False, True], [1, -1, 0]),
        (pd.Series([True, False, True], dtype="boolean"), [False, True], [1, 0, 1]),
        (pd.Series([True, None, False]).astype("category"), [False, True], [1, -1, 0]),
        (
            pd.Series([True, None, False], dtype=pd.ArrowDtype(pa.bool_())),
            [False, True],
            [1, -1, 0],
        ),
        (pd.Series(["b", None, "a"], dtype="string"), ["a", "b"], [1, -1, 0]),
        (pd.Series([1.0, None, 0.0], dtype="Float64"), [0.0, 1.0], [1, -1, 0]),
        (pd.array([True, None, False], dtype="boolean"), [False, True], [1, -1, 0]),
        (pd.Index([2, 1]), [1, 2], [1, 0]),
        (pa.chunked_array([[True, None, False]]), [False, True], [1, -1, 0]),
        (pl.Series([True, None, False]), [False, True], [1, -1, 0]),
        (pl.Series(["b", None, "a"]), ["a", "b"], [1, -1, 0]),
        (pl.Series([1, None, 0]), [0, 1], [1, -1, 0]),
        (np.array([1, None, -1], dtype=object), [-1, 1], [1, -1, 0]),
        ([3], [3], [0]),
    ],
)
def test_classes_are_sorted_and_codes_point_to_them(y: Any, classes: Any, codes: Any) -> None:
    found, numbers = encode_labels(y)
    assert found.tolist() == classes
    assert [type(c) for c in found.tolist()] == [type(c) for c in classes]
    assert numbers.tolist() == codes


def test_a_marker_hides_labels_only_when_it_is_given() -> None:
    assert encode_labels([-1, 1, 0])[0].tolist() == [-1, 0, 1]
    classes, codes = encode_labels([-1, 1, 0], unlabelled=-1)
    assert (classes.tolist(), codes.tolist()) == ([0, 1], [-1, 1, 0])
    classes, codes = encode_labels(["?", "a", None, "b"], unlabelled="?")
    assert (classes.tolist(), codes.tolist()) == (["a", "b"], [-1, 0, -1, 1])


def test_a_marker_of_another_type_hides_nothing() -> None:
    assert encode_labels(np.array([0, 1]), unlabelled="?")[1].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ([None, None], ValueError, "every label is hidden"),
        (np.full(3, np.nan), ValueError, "every label is hidden"),
        ([1.0, np.inf], ValueError, "infinity"),
        ([0.5, 1.5, 0.25], ValueError, "Unknown label type"),
        ([1, "a"], TypeError, "'y' has mixed types"),
        (np.ones((3, 2)), ValueError, "1d array"),
    ],
)
def test_labels_that_are_none(y: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        encode_labels(y)


def test_a_column_of_labels_is_read_with_scikit_learns_warning() -> None:
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        _, codes = encode_labels(np.array([[0], [1]]))
    assert codes.tolist() == [0, 1]
