"""Tables for examples and benchmarks, and holes in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bayesrbf.datasets import data_folder as find_folder
from bayesrbf.datasets import demo_tables, hide_cells, hide_labels, load_table
from bayesrbf.table.columns import learn_columns


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [("iris", (150, 4), 3), ("wine", (178, 13), 3), ("breast_cancer", (569, 30), 2)],
)
def test_tables_of_scikit_learn(name: str, shape: tuple[int, int], classes: int) -> None:
    data = load_table(name)
    assert data.X.shape == shape
    assert len(set(data.y)) == classes
    assert {type(label) for label in data.y} == {str}


@pytest.mark.parametrize(
    ("name", "n_obs", "n_real", "n_categorical", "missing"),
    [
        ("glass", 214, 9, 0, 0),
        ("hepatitis", 155, 6, 13, 167),
        ("credit_approval", 690, 6, 9, 67),
        ("mushroom", 8124, 0, 22, 2480),
        ("heart_cleveland", 303, 6, 7, 6),
    ],
)
def test_stored_tables_are_as_described(
    data_folder: Path, name: str, n_obs: int, n_real: int, n_categorical: int, missing: int
) -> None:
    data = load_table(name)
    columns = learn_columns(data.X)
    assert data.X.shape == (n_obs, n_real + n_categorical)
    assert len(columns.real_positions) == n_real
    assert int(data.X.isna().sum().sum()) == missing
    assert len(data.y) == n_obs


def test_tables_that_are_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "known.csv").write_text("a,target\n1,x\n")
    monkeypatch.setenv("BAYESRBF_DATA", str(tmp_path))
    assert load_table("known").y.tolist() == load_table("known", tmp_path).y.tolist() == ["x"]
    with pytest.raises(FileNotFoundError, match="no table 'other'; there are known"):
        load_table("other")
    for name in ("", str(tmp_path / "absent")):
        monkeypatch.setenv("BAYESRBF_DATA", name)
        with pytest.raises(FileNotFoundError, match="BAYESRBF_DATA must name the folder"):
            find_folder()


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {"a": np.arange(200.0), "b": ["x", "y"] * 100, "c": [True, False] * 100},
        index=range(1000, 1200),
    )


@pytest.mark.parametrize("make", [frame, lambda: pl.DataFrame(frame().to_dict("list"))])
def test_hidden_cells_leave_the_others_as_they_were(make: Any) -> None:
    X = make()
    holes = hide_cells(X, 0.3, np.random.default_rng(0))
    assert type(holes) is type(X)
    before, after = np.asarray(X, dtype=object), np.asarray(holes, dtype=object)
    hidden = np.asarray(pd.isna(after))
    assert 0.2 < hidden.mean() < 0.4
    assert (before[~hidden] == after[~hidden]).all()


def test_no_cell_or_every_cell_may_be_hidden() -> None:
    X = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(hide_cells(X, 0.0, np.random.default_rng(0)), X)
    assert np.isnan(hide_cells(X, 1.0, np.random.default_rng(0))).all()
    assert not np.isnan(X).any()


@pytest.mark.parametrize("fraction", [0.0, 0.3, 0.5, 1.0])
def test_the_same_share_of_each_class_is_hidden_but_never_all(fraction: float) -> None:
    y = np.repeat(["a", "b", "c"], [100, 10, 1])
    hidden = hide_labels(y, fraction, np.random.default_rng(0))
    left = [sum(label == name for label in hidden) for name in "abc"]
    assert left == [max(round((1 - fraction) * n), 1) for n in (100, 10, 1)]
    assert all(old == new for old, new in zip(y, hidden, strict=True) if new is not None)


def test_labels_that_were_hidden_stay_hidden() -> None:
    hidden = hide_labels([1, None, 0, 1], 0.5, np.random.default_rng(0))
    assert hidden[1] is None
    assert {type(label) for label in hidden} <= {int, type(None)}


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan")])
def test_shares_are_checked(fraction: float) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"fraction must be in \[0, 1\]"):
        hide_cells(np.eye(2), fraction, rng)
    with pytest.raises(ValueError, match=r"fraction must be in \[0, 1\]"):
        hide_labels([0, 1], fraction, rng)


def test_the_demo_table_agrees_with_its_truth() -> None:
    incomplete, truth = demo_tables(np.random.default_rng(0))
    assert list(incomplete) == list(truth)
    assert list(incomplete)[-1] == "target"
    assert not truth.isna().any(axis=None)
    holes = incomplete.isna()
    assert holes["target"].mean() == pytest.approx(0.5, abs=0.01)
    assert holes.drop(columns="target").to_numpy().mean() == pytest.approx(0.3, abs=0.01)
    assert (incomplete.where(~holes, truth) == truth).all(axis=None)
    again, _ = demo_tables(np.random.default_rng(0))
    pd.testing.assert_frame_equal(incomplete, again)
