"""Tables out of memory: cut into blocks of rows, and answers about the blocks put together."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

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
            return _lazy_answers(self.dask, dask_parts(self.dask), answer, like)
        return _put_together(self.blocks.map(answer), like)


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


# ---- answers about blocks of rows, put together


def no_rows(like: Any) -> Any:
    """An answer about no row, from one about some."""
    return like[{_rows_of(like): slice(0)}] if _is_dataset(like) else like[:0]


def _put_together(answered: Iterable[Any], like: Any) -> Any:
    """Arrays and datasets as one; tables stay one a block. Rows of datasets are numbered."""
    if isinstance(like, np.ndarray):
        return np.concatenate([like[:0], *answered])
    if not _is_dataset(like):
        return iter(answered)
    parts = [no_rows(like), *answered]
    columns = {name: np.concatenate([_values(part, name) for part in parts]) for name in like}
    return _dataset(columns, sum(part.sizes[_rows_of(like)] for part in parts), like)


def _lazy_answers(X: Any, parts: Sequence[Any], answer: Callable[[Any], Any], like: Any) -> Any:
    """Answers about every partition of a Dask collection, computed when they are asked for.

    Of arrays arrays, of frames frames; a dataset has lazy arrays, for which rows are counted.
    """
    from dask import array, delayed

    if hasattr(X, "map_partitions") and not _is_dataset(like):
        return X.map_partitions(answer, meta=like[:0], enforce_metadata=False)
    shared, then = delayed(answer, pure=False), delayed(_then, pure=False)
    answered = [then(shared, part) for part in parts]

    def joined(of_parts: Sequence[Any], lengths: Sequence[Any], like: Any) -> Any:
        pieces = zip(of_parts, lengths, strict=True)
        return array.concatenate(
            [array.from_delayed(one, (n, *like.shape[1:]), like.dtype) for one, n in pieces]
        )

    if not _is_dataset(like):
        return joined(answered, X.chunks[0], like)
    lengths, values = _lengths(X), delayed(_values, pure=False)
    columns = {
        name: joined([values(one, name) for one in answered], lengths, like[name]) for name in like
    }
    return _dataset(columns, sum(lengths), like)


def _dataset(columns: Mapping[str, Any], n_rows: int, like: Any) -> Any:
    """A dataset of other rows than those of ``like``, with its names and attributes."""
    variables = {name: (like[name].dims, one, like[name].attrs) for name, one in columns.items()}
    coords = {**like.coords, _rows_of(like): np.arange(n_rows)}
    return type(like)(variables, coords, like.attrs)


def _lengths(X: Any) -> tuple[int, ...]:
    """Rows of every partition; of a frame, and of an array that does not know, they are counted."""
    if hasattr(X, "map_partitions"):
        return tuple(map(int, X.map_partitions(len).compute()))
    if np.isnan(X.chunks[0]).any():
        X = X.copy()
        X.compute_chunk_sizes()
    return tuple(map(int, X.chunks[0]))


def _then(answer: Callable[[Any], Any], part: Any) -> Any:
    """Apply a function that is a task's result itself."""
    return answer(part)


def _values(answer: Any, name: str) -> np.ndarray:
    """A variable of a dataset."""
    values: np.ndarray = answer[name].to_numpy()
    return values


def _is_dataset(like: Any) -> bool:
    """Whether an answer is a dataset of xarray."""
    return hasattr(like, "data_vars")


def _rows_of(like: Any) -> str:
    """The dim of the rows: the first of every variable."""
    dim: str = next(iter(like.data_vars.values())).dims[0]
    return dim
