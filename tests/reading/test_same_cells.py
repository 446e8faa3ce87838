"""One cell is one value: in a file of any format, in a frame, and in JSON for the interface."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bayesrbf import read_table
from bayesrbf.app.predict import read_complete
from bayesrbf.app.serve.rows import rows_of
from bayesrbf.app.serve.served import CSV, JSON, PARQUET, ModelFolder, ServedModel
from bayesrbf.table.encode import encode
from tests.app.serve.desks import write_desk

WRITTEN = pd.DataFrame(
    {
        "number": ["1.5", "-0.25", "1e5", "", "0.1"],
        "share": ["57%", "3.5 %", "0%", "", "56.7%"],
        "fee": ["$1,200.50", "$7", "$0.25", "", "$80"],
        "count": ["3", "0", "12", "", "1"],
        "day": ["2020-01-31", "1999-12-31", "2024-02-29", "", "2000-01-01"],
        "moment": [
            "2020-07-01T12:00:00+02:00",
            "2020-01-01 00:30:15.250+01:00",
            "2000-01-01T00:00:00Z",
            "",
            "2020-07-01 08:00-0430",
        ],
        "flag": ["True", "False", "True", "", "False"],
        "code": ["007", "012", "007", "", "012"],
        "grade": ["1", "2", "1", "", "10"],
        "pain": ["none", "severe", "mild", "", "none"],
        "site": ["x", "y", "x", "x", "y"],
    }
)
"""Cells as people and programs write them."""
ZONE = "Europe/Berlin"
MOMENTS = ["2020-07-01 10:00", "2019-12-31 23:30:15.250", "2000-01-01", None, "2020-07-01 12:30"]
TYPED = pd.DataFrame(
    {
        "number": [1.5, -0.25, 1e5, None, 0.1],
        "share": [57, 3.5, 0, None, 56.7],
        "fee": [1200.5, 7, 0.25, None, 80],
        "count": pd.array([3, 0, 12, None, 1], dtype="Int64"),
        "day": pd.to_datetime(WRITTEN["day"]),
        "moment": pd.to_datetime(pd.Series(MOMENTS), format="ISO8601", utc=True).dt.tz_convert(
            ZONE
        ),
        "flag": pd.array([True, False, True, None, False], dtype="boolean"),
        "code": ["007", "012", "007", None, "012"],
        "grade": pd.array([1, 2, 1, None, 10], dtype="Int64"),
        "pain": pd.Categorical(
            ["none", "severe", "mild", None, "none"], ["none", "mild", "severe"], ordered=True
        ),
        "site": WRITTEN["site"],
    }
)
"""The same cells with types."""
DAYS = {
    "day": [7335, -1, 8825, np.nan, 0],
    "moment": [7487 + 10 / 24, 7304 + (23.5 * 3600 + 15.25) / 86400, 0, np.nan, 7487 + 12.5 / 24],
}
OPTIONS: dict[str, Any] = {
    "dates": ("day", "moment"),
    "count": "count",
    "categorical": "grade",
    "ordered": "pain=none<mild<severe",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> ServedModel:
    folder = tmp_path_factory.mktemp("desk")
    table = pd.concat([WRITTEN] * 8, ignore_index=True)
    table["outcome"] = np.where(np.arange(len(table)) % 3, "ill", "well")
    table.to_csv(folder / "t.csv", index=False)
    read = read_table(folder / "t.csv", "outcome", **OPTIONS)
    write_desk(folder, read.frame.assign(outcome=read.target), options=read.options, costs={})
    return ServedModel.of(ModelFolder("", folder))


def workbook(folder: Path) -> Path:
    """Typed cells; a share is a number that is shown in per cent, and no cell has a zone."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(list(TYPED))
    typed = TYPED.assign(
        share=TYPED["share"] / 100, moment=TYPED["moment"].dt.tz_convert("UTC").dt.tz_localize(None)
    )
    for row in typed.astype(object).itertuples(index=False):
        book.active.append([None if pd.isna(cell) else cell for cell in row])
    for row in range(2, 2 + len(typed)):
        book.active.cell(row, 2).number_format = "0.0%"
        book.active.cell(row, 3).number_format = '"$"#,##0.00'
    book.save(folder / "new.xlsx")
    return folder / "new.xlsx"


def csv(folder: Path, table: pd.DataFrame = WRITTEN) -> Path:
    table.to_csv(folder / "new.csv", index=False)
    return folder / "new.csv"


def parquet(folder: Path, table: pd.DataFrame = TYPED) -> Path:
    table.to_parquet(folder / "new.parquet")
    return folder / "new.parquet"


def of_file(written: Callable[[Path], Path]) -> Callable[[ServedModel, Path], Any]:
    return lambda served, folder: read_complete(
        served.estimator, written(folder), served.options.table
    )


def of_request(body: Callable[[Path], bytes], form: str) -> Callable[[ServedModel, Path], Any]:
    return lambda served, folder: rows_of(served, body(folder), form, 100)


def json_of(table: pd.DataFrame) -> bytes:
    rows = [
        {name: cell for name, cell in row.items() if not pd.isna(cell)}
        for row in table.astype(object).to_dict("records")
    ]
    return json.dumps({"rows": rows}, default=lambda cell: cell.isoformat()).encode()


READERS: dict[str, Callable[[ServedModel, Path], Any]] = {
    "CSV": of_file(csv),
    "CSV of pandas": of_file(lambda folder: csv(folder, TYPED.assign(share=WRITTEN["share"]))),
    "workbook": of_file(workbook),
    "Parquet": of_file(parquet),
    "Parquet of text": of_file(lambda folder: parquet(folder, WRITTEN)),
    "frame of pandas": lambda *_: TYPED,
    "frame of polars": lambda *_: pl.from_pandas(TYPED),
    "table of Arrow": lambda *_: pa.Table.from_pandas(TYPED),
    "frame of text": lambda *_: read_table(WRITTEN, **OPTIONS).frame,
    "read_table of a frame": lambda *_: read_table(TYPED, **OPTIONS).frame,
    "JSON of text": of_request(lambda _: json_of(WRITTEN), JSON),
    "JSON": of_request(lambda _: json_of(TYPED), JSON),
    "CSV over HTTP": of_request(lambda folder: csv(folder).read_bytes(), CSV),
    "Parquet over HTTP": of_request(lambda folder: parquet(folder).read_bytes(), PARQUET),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_cell_is_the_same_value_wherever_it_is_read(
    reader: str, served: ServedModel, tmp_path: Path
) -> None:
    columns = served.estimator.columns_
    expected = encode(TYPED.assign(**DAYS), columns)
    assert np.isnan(expected.real[3]).all()
    rows = READERS[reader](served, tmp_path)
    found = encode(rows, columns)
    np.testing.assert_allclose(found.real, expected.real, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(found.codes, expected.codes)
