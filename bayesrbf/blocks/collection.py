"""Collections out of memory that a user hands over, cut into blocks of rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from bayesrbf.blocks.answers import lazy_answers, put_together
from bayesrbf.blocks.dask_blocks import (
    DaskBlocks,
    dask_parts,
    has_cluster,
    is_dask,
)
from bayesrbf.blocks.local_blocks import Blocks, LocalBlocks

BLOCK_ROWS: Final = 131_072
"""Rows of a block where the collection has no blocks of its own."""
FORMS: Final = (
    "a Parquet file or folder by path, a dask.array or dask.dataframe, a Zarr array, a memory map "
    "or a polars LazyFrame"
)


@dataclass(frozen=True)
class Collection:
    """A table out of memory."""

    blocks: Blocks[Any]
    """Frames or arrays, whole rows each."""
    lengths: tuple[int, ...] | None
    """Rows of every block; None where only a pass over the data tells."""
    dask: Any = None
    """The Dask collection, whose partitions answers keep."""

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return self.blocks.n_blocks

    def answers(self, answer: Callable[[Any], Any], like: Any) -> Any:
        """Answers about all rows; ``like`` is one about a single row.

        Of a Dask collection they are lazy. Of any other, arrays and datasets are put together, and
        tables come one by one.
        """
        if self.dask is not None:
            return lazy_answers(self.dask, dask_parts(self.dask), answer, like)
        return put_together(self.blocks.map(answer), like)


def is_collection(X: Any) -> bool:
    """Whether something is a table out of memory; a memory map is an array as well.

    >>> is_collection("registry.parquet"), is_collection(np.zeros((2, 2)))
    (True, False)
    """
    return (
        isinstance(X, str | os.PathLike)
        or is_dask(X)
        or _is_lazy_frame(X)
        or (hasattr(X, "dtype") and getattr(X, "chunks", None) is not None)
    )


def as_collection(X: Any, names: tuple[str, ...] | None = None) -> Collection | None:
    """Cut a table out of memory into blocks; None where it is in memory.

    ``names`` are the columns to read of a file or a lazy frame, where it has them all.
    """
    if isinstance(X, str | os.PathLike):
        return _of_files(Path(X), names)
    if is_dask(X):
        return _of_dask(X)
    if _is_lazy_frame(X):
        return _of_lazy_frame(X, names)
    if is_collection(X) or isinstance(X, np.memmap):
        return _of_array(X)
    return None


def _is_lazy_frame(X: Any) -> bool:
    """Whether something is a polars LazyFrame."""
    return type(X).__name__ == "LazyFrame" and type(X).__module__.startswith("polars")


def _of_array(X: Any) -> Collection:
    """Rows of a stored array, in multiples of its chunks."""
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns; received an array of shape {X.shape}.")
    chunk = getattr(X, "chunks", (1,))[0]
    step = max(1, BLOCK_ROWS // chunk) * chunk
    bounds = [*range(0, X.shape[0], step), X.shape[0]]
    places = [slice(*ends) for ends in pairwise(bounds)]
    return Collection(
        LocalBlocks(tuple(partial(_slice, X, place) for place in places)),
        tuple(place.stop - place.start for place in places),
    )


def _slice(X: Any, place: slice) -> np.ndarray:
    """Some rows in memory."""
    return np.array(X[place])


def _of_dask(X: Any) -> Collection:
    """Partitions of Dask: tasks of a cluster, or made here one at a time where there is none."""
    lengths = None
    if hasattr(X, "chunks"):
        if X.ndim != 2:
            raise ValueError(f"X must have rows and columns; received {X.ndim} dimensions.")
        X = X.rechunk({1: -1})
        has_lengths = not np.isnan(X.chunks[0]).any()
        lengths = tuple(map(int, X.chunks[0])) if has_lengths else None
    parts = dask_parts(X)
    blocks: Blocks[Any] = DaskBlocks(parts)
    if not has_cluster():
        blocks = LocalBlocks(tuple(part.compute for part in parts))
    return Collection(blocks, lengths, X)


def _of_lazy_frame(X: Any, names: tuple[str, ...] | None) -> Collection:
    """A query of polars, run once into a temporary file in blocks of rows."""
    return _LazyRows(X, names).collection()


class _LazyRows:
    """The rows of a lazy frame, written when a block is first asked for."""

    def __init__(self, frame: Any, names: tuple[str, ...] | None) -> None:
        columns = frame.collect_schema().names()
        wanted = names is not None and set(names) <= set(columns)
        self._frame = frame.select(names) if wanted else frame

    def collection(self) -> Collection:
        """Blocks of the file that the query was written to; the file goes with the last one."""
        import tempfile
        import weakref

        import polars

        handle, path = tempfile.mkstemp(prefix="bayesrbf-", suffix=".parquet")
        os.close(handle)
        weakref.finalize(self, Path(path).unlink, missing_ok=True)
        self._frame.sink_parquet(path, row_group_size=BLOCK_ROWS)
        self._file = polars.scan_parquet(path)
        n_rows = self._file.select(polars.len()).collect().item()
        starts = range(0, n_rows, BLOCK_ROWS)
        lengths = tuple(min(BLOCK_ROWS, n_rows - start) for start in starts)
        pairs = zip(starts, lengths, strict=True)
        makers = tuple(partial(self.rows, start, length) for start, length in pairs)
        return Collection(LocalBlocks(makers), lengths)

    def rows(self, start: int, length: int) -> Any:
        """Some rows as a polars frame."""
        return self._file.slice(start, length).collect()


def _of_files(path: Path, names: tuple[str, ...] | None) -> Collection:
    """Row groups of a Parquet file, or of all files of a folder in the order of their names."""
    try:
        import pyarrow.parquet as parquet
        from pyarrow.lib import ArrowInvalid
    except ImportError as error:
        raise ImportError(
            "Reading Parquet by path needs pyarrow and pandas: pip install pyarrow pandas."
        ) from error
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files or not path.exists():
        raise FileNotFoundError(
            f"X={str(path)!r} names no Parquet file, and no folder with files named *.parquet."
        )
    makers, lengths = [], []
    for file in files:
        try:
            opened = parquet.ParquetFile(file)
        except ArrowInvalid as error:
            raise ValueError(
                f"X={str(path)!r} must be Parquet, which {file.name} is not ({error}). A CSV or "
                "Excel file is read into memory by read_table(path, target) of this package: fit "
                "its frame and target."
            ) from error
        with opened:
            wanted = names is not None and set(names) <= set(opened.schema_arrow.names)
            columns = list(names) if names is not None and wanted else None
            for group, length in _groups(opened.metadata):
                makers.append(partial(_read_group, file, group, columns))
                lengths.append(length)
    return Collection(LocalBlocks(tuple(makers)), tuple(lengths))


def _groups(metadata: Any) -> Iterator[tuple[int, int]]:
    """Number and rows of every row group."""
    for group in range(metadata.num_row_groups):
        yield group, metadata.row_group(group).num_rows


def _read_group(file: Path, group: int, columns: list[str] | None) -> Any:
    """One row group as a pandas frame."""
    import pyarrow.parquet as parquet

    with parquet.ParquetFile(file) as opened:
        return opened.read_row_group(group, columns=columns).to_pandas(self_destruct=True)
