"""Files that grow when they are unpacked, and damaged ones: a sentence that names the file."""

from __future__ import annotations

import gzip
import os
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bayesrbf import TableError, read_table
from bayesrbf.reading import formats as decoding

FEW = 2**16


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MAX_TABLE_BYTES", FEW)


def refused(path: Path, match: str = "give a smaller table") -> None:
    with pytest.raises(TableError, match=match) as caught:
        read_table(path)
    assert path.name in str(caught.value)


def test_a_gzip_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * FEW))
    refused(path)


def test_a_sparse_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sparse.csv"
    path.touch()
    os.truncate(path, 4 * 2**30)
    refused(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are of POSIX")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    refused(tmp_path / "pipe.csv", "no plain file")


@pytest.mark.parametrize(
    "columns",
    [
        {"one number": np.zeros(FEW)},
        {"one long text": pa.array(["x" * 1000]).take(pa.array(np.zeros(FEW // 500, dtype=int)))},
        {"texts": [str(number) * 20 for number in range(FEW // 50)]},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_a_parquet_bomb_is_refused(tmp_path: Path, columns: dict[str, object]) -> None:
    path = tmp_path / "bomb.parquet"
    pq.write_table(pa.table(columns), path)
    refused(path)


def test_a_table_below_the_limit_is_read(tmp_path: Path) -> None:
    frame = pa.table({"a": [1.0, 2.5, None], "b": ["x", None, "y"]})
    pq.write_table(frame, tmp_path / "small.parquet")
    read = read_table(tmp_path / "small.parquet")
    assert [kind.word for kind in read.kinds.values()] == ["real", "categorical"]
    assert read.frame["b"].tolist()[::2] == ["x", "y"]


@pytest.mark.parametrize(
    "table", [{"a\0b": [1.0]}, {"a": ["x\0y"]}, {"a": ["\x1b[31mred"]}], ids=["name", "NUL", "ESC"]
)
def test_parquet_with_control_characters_is_refused(
    tmp_path: Path, table: dict[str, object]
) -> None:
    pq.write_table(pa.table(table), tmp_path / "odd.parquet")
    refused(tmp_path / "odd.parquet", "control character")


def test_every_message_about_damaged_parquet_names_the_file(tmp_path: Path) -> None:
    path, rng = tmp_path / "damaged.parquet", np.random.default_rng(0)
    pq.write_table(pa.table({"a": [1.0, 2.0], "é": ["ü", "ö"]}), path)
    whole = path.read_bytes()
    said: list[str] = []
    for cut in range(4, len(whole), 16):
        path.write_bytes(whole[:cut])
        refused(path, "damaged")
    for _ in range(200):
        content = bytearray(whole)
        content[rng.integers(4, len(content))] = rng.integers(256)
        path.write_bytes(content)
        try:
            read_table(path)
        except TableError as error:
            said.append(str(error))
    assert len(said) > 50
    assert all(path.name in sentence for sentence in said)


def test_workbook_that_says_it_is_large_is_not_opened(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    file = tmp_path / "book.xlsx"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/worksheets/sheet1.xml", bytes(2 * FEW))
    refused(file)
