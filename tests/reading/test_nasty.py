"""Nasty files become what they must: cells, or an error that names the file."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from bayesrbf import TableError, read_table
from tests.reading import nasty, nasty_parquet
from tests.reading.nasty import Nasty

FILES = {
    **{f"CSV, {name}": one for name, one in nasty.CORPUS.items()},
    **{f"Parquet, {name}": one for name, one in nasty_parquet.CORPUS.items()},
}


LONG = "CSV, 10,001 columns"


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(one, id=name, marks=[pytest.mark.slow] * (name == LONG))
        for name, one in FILES.items()
    ],
)
def test_nasty_file_becomes_what_it_must(file: Nasty, tmp_path: Path) -> None:
    path = tmp_path / f"nasty{file.suffix}"
    path.write_bytes(file.written())
    if isinstance(file.becomes, str):
        with pytest.raises(TableError, match=file.becomes) as caught:
            read_table(path)
        said = str(caught.value)
        assert path.name in said
        assert said.isprintable()
        return
    read = read_table(path)
    cells = {
        name: [None if pd.isna(cell) else cell for cell in read.frame[name].tolist()]
        for name in read.frame
    }
    assert cells == file.becomes
    assert file.note in " ".join(read.notes)
