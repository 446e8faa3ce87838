"""Inputs of a kind that was not meant: an error that says what to do, or the right answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from bayesrbf import HybridMixtureClassifier, TableError, read_table
from tests.cases import generative

N = 80
X = pd.DataFrame(np.random.default_rng(0).normal(size=(N, 2)), columns=["a", "b"])
Y = (X["a"] + X["b"] / 2 > 0).to_numpy().astype(int)


def test_a_dict_is_refused_by_fit_and_by_predictions() -> None:
    columns: Any = {"a": X["a"], "b": X["b"]}
    with pytest.raises(TypeError, match=r"received a dict. Make a frame .*pandas.DataFrame\(X\)"):
        generative().fit(columns, Y)
    with pytest.raises(TypeError, match="received a dict"):
        generative().fit(X, Y).predict(columns)


def test_paths_that_do_not_serve_say_what_would(tmp_path: Path) -> None:
    X.assign(y=Y).to_parquet(tmp_path / "t.parquet")
    X.assign(y=Y).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match=r"y='yy' names no column of X; did you mean 'y'\?"):
        generative().fit(str(tmp_path / "t.parquet"), "yy")
    with pytest.raises(ValueError, match="y='outcome' names no column of X; it has a, b, y"):
        generative().fit(str(tmp_path / "t.parquet"), "outcome")
    with pytest.raises(ValueError, match=r"must be Parquet.* read_table\(path, target\)"):
        generative().fit(str(tmp_path / "t.csv"), "y")


def test_integers_of_128_bits_are_numbers() -> None:
    pl = pytest.importorskip("polars")
    plain = pl.DataFrame({"a": X["a"].to_numpy(), "z": [*range(N - 1), None]})
    wide = plain.with_columns(pl.col("z").cast(pl.Int128))
    p = [generative().fit(table, Y).predict_proba(table) for table in (plain, wide)]
    np.testing.assert_array_equal(*p)


def test_masks_of_cv_are_masks_and_no_row_is_beyond_the_table() -> None:
    def temperature(cv: Any) -> float:
        return HybridMixtureClassifier(1, cv=cv, random_state=0).fit(X, Y).temperature_

    halves = [(np.arange(N) < 40, np.arange(N) >= 40), (np.arange(N) >= 40, np.arange(N) < 40)]
    places = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in halves]
    assert temperature(halves) == temperature(places)
    assert temperature([[part.tolist() for part in pair] for pair in halves]) == temperature(places)
    for odd in (
        np.arange(100, 200),
        np.array([-1, 3]),
        np.arange(40) + 0.5,
        np.ones(9, dtype=bool),
    ):
        with pytest.raises(ValueError, match="cv must give positions of rows"):
            temperature([(np.arange(40), odd)])


@pytest.mark.parametrize(
    ("text", "target", "said"),
    [
        ("'a','y'\n" + "'1','no'\n'2','yes'\n" * 10, "y", "single quotes.* double quotes, or none"),
        ("a,y\n" + "'1','no'\n'2','yes'\n" * 10, "y", "single quotes.* double quotes, or none"),
        ("x,no\nz,yes\n" * 10, "no", "put the column names above the rows"),
        ("x,no\nz,yes\nx,yes\nz,no\nz,yes\n", "no", "put the column names above the rows"),
    ],
)
def test_files_of_another_form_are_refused_in_words(
    text: str, target: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(TableError, match=said):
        read_table(tmp_path / "t.csv", target)


@pytest.mark.parametrize(
    "index",
    [
        pd.MultiIndex.from_product([range(40), ["l", "r"]]),
        pd.period_range("2000-01", periods=N, freq="M"),
        pd.Index([*range(N - 1), "last"], dtype=object),
    ],
    ids=["tuples", "periods", "numbers and text"],
)
def test_answers_about_rows_of_any_name_can_be_saved(index: pd.Index, tmp_path: Path) -> None:
    named = X.set_axis(index)
    answers = generative().fit(named, Y).surprise(named)
    answers.to_netcdf(tmp_path / "t.nc")
    with xr.open_dataset(tmp_path / "t.nc") as back:
        assert back["obs"].to_numpy().tolist() == [str(name) for name in index]
        name = next(iter(answers.data_vars))
        np.testing.assert_array_equal(back[name], answers[name])
