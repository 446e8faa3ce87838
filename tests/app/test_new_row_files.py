"""New rows are read by the options of the training table."""

from __future__ import annotations

import json
import warnings
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayesrbf import HybridMixtureClassifier, TableError
from bayesrbf.app.arguments import typed
from bayesrbf.app.predict import (
    BlockPredictions,
    complete_blocks,
    complete_cells,
    read_complete,
    read_rows,
    row_number,
    warn_of_extra,
)
from bayesrbf.app.report.options import (
    ANYTHING,
    OPTIONS,
    ReportOptions,
    options_content,
    read_options,
)
from bayesrbf.base.table_options import TableOptions
from bayesrbf.reading.formats import raw_blocks
from bayesrbf.reading.read import read_file

ASKED = TableOptions(
    na=("-999", "n/k"),
    id="case",
    ignore=("prose",),
    dates=("seen", "visit"),
    group="patient",
    time="visit",
)


def written(folder: Path, rows: int = 40) -> Path:
    rng = np.random.default_rng(0)
    days = pd.date_range("2020-01-01", periods=rows)
    table = pd.DataFrame(
        {
            "case": [f"C{i}" for i in range(rows)],
            "patient": np.arange(rows) // 2,
            "age": np.where(np.arange(rows) % 7 == 0, -999, rng.integers(20, 80, rows)),
            "seen": days.strftime("%d/%m/%Y"),
            "fee": [f"${900 + 31 * i:,}" for i in range(rows)],
            "site": np.where(np.arange(rows) % 5 == 0, "n/k", "north"),
            "prose": [f"walked {i} steps, then slept" for i in range(rows)],
            "visit": days.strftime("%Y-%m-%d"),
            "y": np.where(rng.random(rows) < 0.5, "a", "b"),
        }
    )
    table.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def test_the_rows_of_training_are_read_again_as_they_were(tmp_path: Path) -> None:
    path = written(tmp_path)
    read = read_file(path, "y", ASKED)
    model = HybridMixtureClassifier(random_state=0, column_kinds=read.kinds)
    model.fit(read.frame, read.target)
    (tmp_path / OPTIONS).write_bytes(options_content(ReportOptions("y", table=read.options)))
    kept = read_options(tmp_path)
    assert kept is not None
    assert kept.table == read.options
    pd.testing.assert_frame_equal(read_complete(model, path, kept.table), read.frame)
    short = tmp_path / "short.csv"  # one row alone leaves day and month, and the comma, open
    lines = path.read_text().splitlines()
    short.write_text("\n".join([lines[0], lines[5]]))
    pd.testing.assert_frame_equal(read_complete(model, short, kept.table), read.frame.iloc[[4]])
    pd.read_csv(path).drop(columns=["case", "site", "y"]).assign(more=[[1]] * 40).to_csv(
        short, index=False
    )
    new = read_rows(model, short, kept.table)
    assert new.columns.tolist() == ["age", "seen", "fee", "more"]
    assert new["more"].isna().all()
    assert new.index.tolist() == list(range(40))


@pytest.mark.parametrize(
    ("column", "cells", "advice"),
    [
        ("age", ["haemolytic", "12"], "Write numbers as 1234.5, or leave it empty."),
        pytest.param(
            "age",
            ["2020-01-01"],
            "Write numbers as 1234.5, or leave it empty.",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "age", ["inf"], "Write numbers as 1234.5, or leave it empty.", marks=pytest.mark.slow
        ),
        ("age", ["1,234"], "Write numbers as 1234.5, or leave it empty."),
        ("seen", ["3/4/2020"], "Write a date as 2020-12-31, or leave it empty."),
        ("seen", ["soon"], "Write a date as 2020-12-31, or leave it empty."),
    ],
)
def test_advice_on_new_rows_names_no_option(
    column: str, cells: list[str], advice: str, tmp_path: Path
) -> None:
    # predict, check, explain, validate and the server read by the options of training alone.
    options = TableOptions(dates=("seen",))
    training = pd.DataFrame({"age": np.arange(40.0) % 9, "seen": np.arange(40.0) % 7})
    model = HybridMixtureClassifier(1, random_state=0, column_kinds={"seen": "date"})
    model.fit(training, np.arange(40) % 2)
    new = pd.DataFrame({"age": "1", "seen": "2020-01-13"}, index=range(30)).astype(object)
    new.loc[: len(cells) - 1, column] = cells
    if cells[0] in ("1,234", "3/4/2020"):  # open only where all cells leave it so
        new[column] = cells[0]
    path = tmp_path / "new.csv"
    new.to_csv(path, index=False)
    raw = next(raw_blocks(path))
    for read in (
        lambda: read_rows(model, path, options),
        lambda: read_complete(model, path, options),
        lambda: list(complete_blocks(model, path, options)),
        lambda: list(complete_blocks(model, path, options, 7)),
        lambda: complete_cells(model, raw, "the request", options),
    ):
        with pytest.raises(TableError) as caught:
            read()
        assert str(caught.value).endswith(advice)
        assert "--" not in str(caught.value)
    with pytest.raises(TableError, match="1234,5"):
        read_complete(model, _with_text(tmp_path), replace(options, decimal=","))


def test_new_rows_without_a_cell_are_told(tmp_path: Path) -> None:
    """Lines of a text file are none; a table with types has as many answers as rows."""
    training = pd.DataFrame({"a": np.arange(40.0) % 9, "b": np.arange(40.0) % 7})
    model = HybridMixtureClassifier(1, random_state=0).fit(training, np.arange(40) % 2)
    new = training[:3].reindex([0, 7, 1, 8, 2]).reset_index(drop=True)
    new.to_csv(tmp_path / "new.csv", index=False)
    new.to_parquet(tmp_path / "new.parquet")
    with pytest.warns(UserWarning, match="new.csv: lines without a cell .*: 3 and 5"):
        read = read_complete(model, tmp_path / "new.csv")
    np.testing.assert_array_equal(read, training[:3])
    np.testing.assert_array_equal(read_complete(model, tmp_path / "new.parquet"), new)


def _with_text(folder: Path) -> Path:
    (folder / "text.csv").write_text("age,seen\nodd,2020-01-13\n")
    return folder / "text.csv"


@pytest.mark.parametrize(
    ("index", "asked", "message"),
    [
        (pd.Index(["a", "b", "b"], name="id"), "b", "names 2 rows: 2 and 3"),
        (pd.Index(["a", "7", "b"], name="id"), "1", "must be the name of a row in column .id."),
        (pd.RangeIndex(3), "a", "must be the number of a row"),
    ],
)
def test_a_row_that_cannot_be_told(index: pd.Index, asked: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        row_number(pd.DataFrame({"x": np.zeros(3)}, index), asked)


def test_what_a_file_of_options_may_not_hold(tmp_path: Path) -> None:
    held = json.loads(options_content(ReportOptions("y", table=ASKED)))
    for wrong in ({"na": "x"}, {"id": 3}, {"day_first": "yes"}, {"speed": 1}, {"dates": [1]}):
        broken = held | {"table": asdict(ASKED) | wrong}
        (tmp_path / OPTIONS).write_text(json.dumps(broken))
        with pytest.raises(ValueError, match="cannot be read as the options of a report"):
            read_options(tmp_path)


def test_names_are_typed_together_or_one_by_one() -> None:
    asked = TableOptions(na=("-999,n/k", "?"), ignore=('a,"b,c"',), id="x,y")
    options = typed(asked, Path("t.csv"))
    assert options == TableOptions(na=("-999", "n/k", "?"), ignore=("a", "b,c"), id="x,y")


@pytest.mark.filterwarnings("ignore:The model was fitted to a point:UserWarning")
def test_columns_that_changed_are_warned_of_once() -> None:
    """By the predictions; what stands out of novel rows is asked of a part of the same rows."""
    rng = np.random.default_rng(0)
    labels = np.arange(120) % 2
    rows = pd.DataFrame(rng.normal(50.0 + 5.0 * labels[:, None], 4.0, (120, 3)), columns=[*"abc"])
    model = HybridMixtureClassifier(random_state=0).fit(rows, labels)
    new = rows.assign(a=rows["a"] / 38.67)
    scored = BlockPredictions(model, ANYTHING)
    with pytest.warns(UserWarning, match="'a' has 120 cells far outside"):
        list(scored.over([new]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "a stands out in" in scored.novelty()


def test_a_column_that_may_stand_for_an_absent_one_is_named(tmp_path: Path) -> None:
    table = pd.DataFrame({"Ward": np.tile(["a", "b"], 20), "age": np.arange(40.0)})
    model = HybridMixtureClassifier(random_state=0).fit(table, np.arange(40) % 2)
    path = tmp_path / "new.csv"
    table.rename(columns={"Ward": "WARD"}).assign(bed=1).to_csv(path, index=False)
    with pytest.raises(TableError, match=r"lacks 'Ward'.*'WARD' is here and was not in training"):
        read_complete(model, path)
    with pytest.warns(UserWarning, match=r"columns that were not there at fit \('WARD'\)"):
        warn_of_extra(model, ["age", "WARD", "bed"], "new.csv", ReportOptions("bed"))
