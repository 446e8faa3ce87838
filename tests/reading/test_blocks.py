"""A file read block by block is the file read at once: its cells, its problems and their lines."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pandas as pd
import pytest

from bayesrbf import TableError
from bayesrbf.base.table_options import TableOptions
from bayesrbf.reading import formats as decoding
from bayesrbf.reading import formats as parquet_rows
from bayesrbf.reading.read import names_in_file, read_blocks, read_file

WHERE = re.compile(r"[;.] | \(and")
"""What ends the first part of a message, which says where something is wrong, and what."""

OPTIONS = TableOptions(real=("a",), categorical=("b",))


def both(path: Path, options: TableOptions = OPTIONS, size: int = 3) -> tuple[object, object]:
    """What a file is at once and in blocks: a frame, or the words of an error."""

    def outcome(whole: bool) -> object:
        try:
            if whole:
                return read_file(path, None, options, kinds={}).frame
            parts = [read.frame for read in read_blocks(path, options, size, {})]
            return pd.concat(parts, ignore_index=options.id is None)
        except TableError as error:
            return str(error)

    return outcome(True), outcome(False)


def assert_alike(path: Path, options: TableOptions = OPTIONS, size: int = 3) -> object:
    """Hold that blocks are the whole; an error may count what it has seen so far."""
    whole, parts = both(path, options, size)
    if isinstance(whole, pd.DataFrame):
        assert isinstance(parts, pd.DataFrame), parts
        pd.testing.assert_frame_equal(parts, whole)
    else:
        assert isinstance(parts, str)
        assert WHERE.split(parts)[0] == WHERE.split(str(whole))[0]
    return whole


def table(cells: list[str], separator: str = ";") -> bytes:
    lines = [f"{cell}{separator}t{i % 3}" for i, cell in enumerate(cells)]
    return "\n".join([f"a{separator}b", *lines, ""]).encode()


COLUMNS = {
    "plain": ["1", "2.5", "-3e2", "", "NA", "7"],
    "thousands told by a later row": ["1.234", "5", "6", "7", "8", "1.234.567"],
    "decimal commas told by a later row": ["1,234", "5", "6", "7", "8", "0,5"],
    "thousands and a point": ["1,234", "5", "6", "7", "8", "9,000.5"],
    "a comma that stays open": ["1,234", "5", "6", "7", "8", "9"],
    "another unit in a later row": ["50%", "51%", "52%", "53%", "0.5", "0.6"],
    "a currency throughout": ["$1", "$2", "$3", "", "", "$1,200"],
    "a word in a later row": ["1", "2", "3", "4", "5", "n.d."],
    "infinity in a later row": ["1", "2", "3", "4", "5", "inf"],
    "commas, and a point in a later row": ["1,5", "2", "3", "4", "5", "2.5"],
    "missing alone in a block": ["", "", "", "1", "2", "3"],
}


@pytest.mark.parametrize("cells", COLUMNS.values(), ids=COLUMNS.keys())
def test_notation_is_that_of_the_whole_column(cells: list[str], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(table(cells))
    assert_alike(path)
    assert_alike(path, size=2)


DATES = {
    "day first, told by a later row": ["3/4/2020", "5/6/2020", "7/8/2020", "13/4/2020"],
    "month first, told by a later row": ["3/4/2020", "5/6/2020", "7/8/2020", "4/13/2020"],
    "orders that are mixed": ["13/4/2020", "5/6/2020", "7/8/2020", "4/13/2020"],
    "an order that is open": ["3/4/2020", "5/6/2020", "7/8/2020", "1/2/2020"],
    "the year first": ["2020-01-02", "2020-01-03", "", "2020-01-04"],
}


@pytest.mark.parametrize("cells", DATES.values(), ids=DATES.keys())
def test_order_of_day_and_month_is_that_of_the_whole_column(
    cells: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(table(cells))
    assert_alike(path, TableOptions(dates=("a",), categorical=("b",)), size=2)


def test_random_columns_are_read_alike(tmp_path: Path) -> None:
    """Cells of several notations, at random; most such files are refused, both ways."""
    pool = ["1", "-2.5", "1,5", "1.234", "1,234", "12.345.678", "9,876,543.2", "50%", "$3", "007"]
    pool += ["", "NA", "x", "1e5", "1 234", "1'234", "€4", "inf", "0.5", "100", "0,750"]
    path, rng, frames = tmp_path / "t.csv", random.Random(0), 0
    for _ in range(300):
        few = rng.sample(pool, rng.randint(1, 4))
        path.write_bytes(table([rng.choice(few) for _ in range(rng.randint(2, 14))]))
        frames += isinstance(assert_alike(path, size=rng.randint(2, 5)), pd.DataFrame)
    assert 50 < frames < 280


STRUCTURES = {
    "blank lines between": b"a,b\n\n1,x\n\n\n\n\n\n2,y\n3,z\n",
    "lines of separators between": b"a,b\n,\n1,x\n,\n,\n , \n,\n\n2,y\n3,z\n,\n",
    "a row that is too long": b"a,b\n1,x\n2,y\n3,z\n4,u,\n",
    "a row that is too short": b"a,b\n1,x\n2,y\n3,z\n4\n",
    "the header again": b"a,b\n1,x\n2,y\n3,z\na,b\n",
    "numbers of rows": b",a,b\n0,1,x\n1,2,y\n2,3,z\n3,4,u\n4,5,v\n",
    "too short by the column without a name": b",a,b\n0,1,x\n1,2,y\n2,3,z\n3,4\n",
    "a line that says the separator": b"sep=;\na;b\n1;x\n2;y\n3;z\n4;u\n",
    "quotes over lines": b'a,b\n1,"x\ny"\n2,"\n\n"\n3,z\n4,u\n5,"v\n',
    "old line ends": b"a,b\r1,x\r2,y\r3,z\r4,u",
    "a control character": b"a,b\n1,x\n2,y\n3,z\n4,\x00\n",
}


@pytest.mark.filterwarnings("ignore:.* without a cell are no rows")
@pytest.mark.parametrize("content", STRUCTURES.values(), ids=STRUCTURES.keys())
def test_structure_is_that_of_the_whole_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    assert_alike(path)
    assert_alike(path, size=2)


def test_blocks_of_parquet_are_the_file(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.5, None, 3.0, 4.25, 5.0, 6.0, 7.0], "b": list("xyxyxyx")})
    frame.assign(case=[f"P{i}" for i in range(7)]).to_parquet(tmp_path / "t.parquet")
    options = TableOptions(real=("a",), categorical=("b",), id="case")
    whole = assert_alike(tmp_path / "t.parquet", options)
    assert isinstance(whole, pd.DataFrame)
    assert whole.index.tolist()[-1] == "P6"
    frame["b"] = ["x"] * 6 + ["\x1b"]
    frame.to_parquet(tmp_path / "t.parquet")
    assert "row 7, column 'b'" in str(assert_alike(tmp_path / "t.parquet"))


def long_file(path: Path, monkeypatch: pytest.MonkeyPatch, rows: int = 500) -> pd.DataFrame:
    """A file of several row groups that counts as long, of which 50 rows are sampled."""
    monkeypatch.setattr(parquet_rows, "MAX_PARQUET_CELLS", 1)
    monkeypatch.setattr(parquet_rows, "DRAWN_ROWS", 50)
    cells = [None if row % 7 == 0 else row / 4 for row in range(rows)]
    frame = pd.DataFrame({"a": cells, "b": [f"t{row % 5}" for row in range(rows)]})
    frame["case"] = [f"P{row}" for row in range(rows)]
    frame.to_parquet(path, row_group_size=37)
    return frame


def test_a_long_parquet_file_goes_by_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, options = tmp_path / "t.parquet", TableOptions(real=("a",), categorical=("b",), id="case")
    frame = long_file(path, monkeypatch)
    whole = assert_alike(path, options, size=20)
    assert isinstance(whole, pd.DataFrame)
    assert whole.index.tolist() == frame["case"].tolist()
    assert names_in_file(path) == ["a", "b", "case"]
    frame.loc[400, "b"] = "\x1b"
    frame.to_parquet(path, row_group_size=37)
    assert "row 401, column 'b'" in str(assert_alike(path, size=20))


def test_sampled_rows_are_rows_of_the_file_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, options = tmp_path / "t.parquet", TableOptions(id="case")
    long_file(path, monkeypatch)
    whole, some = (read_file(path, "b", options, sampled=one) for one in (False, True))
    assert whole.target is not None
    assert some.target is not None
    assert len(some.frame) == 50
    assert some.frame.index.is_unique
    pd.testing.assert_frame_equal(some.frame, whole.frame.loc[some.frame.index])
    assert some.target.equals(whole.target.loc[some.target.index])
    assert any("500 rows" in note and "50 of them" in note for note in some.notes)
    again = read_file(path, "b", options, sampled=True)
    assert again.frame.index.equals(some.frame.index)


def test_every_row_of_a_long_file_is_as_likely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Row groups of any size: the sampled places spread evenly over 50,000 rows."""
    long_file(tmp_path / "t.parquet", monkeypatch, rows=50_000)
    monkeypatch.setattr(parquet_rows, "DRAWN_ROWS", 5_000)
    opened = parquet_rows.long_parquet(tmp_path / "t.parquet")
    places, table = parquet_rows.random_rows(opened, "t.parquet")
    assert table["case"].to_pylist() == [f"P{place}" for place in places]
    counts = pd.Series(places).floordiv(5_000).value_counts()
    assert counts.between(400, 600).all()


def test_a_file_whose_groups_are_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_file(tmp_path / "t.parquet", monkeypatch)
    monkeypatch.setattr(decoding, "MAX_TABLE_BYTES", 100)
    for read in (
        lambda path: list(read_blocks(path, OPTIONS, 3)),
        lambda path: read_file(path, "b", TableOptions(), sampled=True),
    ):
        with pytest.raises(TableError, match="has more than"):
            read(tmp_path / "t.parquet")
