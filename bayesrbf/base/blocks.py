"""Blocks of rows: in this process, from disk, or on the workers of a Dask cluster.

A fit needs only sums over rows. :class:`Blocks` has three operations: ``map`` a function over
blocks of rows, store them (``persisted``), and ``reduce`` the results. The map runs in this
process, over blocks on disk (:class:`LocalBlocks`), or on a Dask cluster (:class:`DaskBlocks`).
:func:`as_collection` splits a user's table into such blocks.
"""

from __future__ import annotations

import os
import pickle
import shutil
import tempfile
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

# Blocks of rows, and those that this process reads one at a time.


@runtime_checkable
class Blocks[T](Protocol):
    """Ordered blocks of rows of one table, or results of a function of each block."""

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        ...

    def __iter__(self) -> Iterator[T]:
        """Every block in turn, in this process."""
        ...

    def map[S](self, function: Callable[..., S], *beside: Sequence[Any]) -> Blocks[S]:
        """Apply a function to every block and its own entry of each sequence, when needed."""
        ...

    def persisted(self) -> Blocks[T]:
        """These blocks, computed once and stored in memory, on disk or on the workers."""
        ...

    def reduce(self, combine: Callable[[T, T], T]) -> T:
        """All blocks combined into one, neighbour with neighbour."""
        ...


@dataclass(frozen=True)
class LocalBlocks[T]:
    """Blocks that this process computes one at a time and releases after use."""

    makers: tuple[Callable[[], T], ...]

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.makers)

    def __iter__(self) -> Iterator[T]:
        """Make every block in turn."""
        return (make() for make in self.makers)

    def map[S](self, function: Callable[..., S], *beside: Sequence[Any]) -> Blocks[S]:
        """Apply a function to every block and its own entry of each sequence, when needed."""
        blocks = zip(self.makers, *beside, strict=True)
        return LocalBlocks(tuple(partial(_made_then, function, *block) for block in blocks))

    def persisted(self) -> Blocks[T]:
        """These blocks, made once: a single one in memory, several in temporary files.

        The files are removed when nothing reads them any more.
        """
        if len(self.makers) == 1:
            return LocalBlocks((partial(_same, self.makers[0]()),))
        folder = _Folder()
        return LocalBlocks(tuple(folder.keep(index, block) for index, block in enumerate(self)))

    def reduce(self, combine: Callable[[T, T], T]) -> T:
        """All blocks combined from the first to the last."""
        return reduce(combine, self)


def _made_then[T, S](function: Callable[..., S], make: Callable[[], T], *beside: Any) -> S:
    """Result of a function for a block, which is made first."""
    return function(make(), *beside)


def _same[T](block: T) -> T:
    """The block itself, which is in memory."""
    return block


class _Folder:
    """A temporary folder, removed with the last reference to a block in it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="bayesrbf-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def keep[T](self, index: int, block: T) -> Callable[[], T]:
        """Write a block to the folder, and return a function that reads it."""
        with open(self.path / str(index), "wb") as file:
            pickle.dump(block, file, protocol=pickle.HIGHEST_PROTOCOL)
        return partial(self.read, index)

    def collected(self, query: Any) -> Any:
        """Rows of a polars query on a file in this folder."""
        return query.collect()

    def read(self, index: int) -> Any:
        """Block that was written under an index."""
        with open(self.path / str(index), "rb") as file:
            return pickle.load(file)


# Blocks on the workers of a Dask cluster: only functions and what they reduce to travel.


FAN_IN: Final = 8
"""Blocks that one task of the tree combines."""
PATIENCE: Final = 30.0
"""Seconds without a single worker after which a result is given up."""
BREATH: Final = 1.0
"""Seconds between two checks for workers."""


class ClusterError(RuntimeError):
    """Loss of data, of all workers or of the scheduler of a Dask cluster."""


def has_cluster() -> bool:
    """Whether this process is the client of a cluster."""
    try:
        from distributed import default_client
    except ImportError:
        return False
    try:
        default_client()
    except ValueError:
        return False
    return True


def is_dask(X: Any) -> bool:
    """Whether something is an array or a frame of Dask."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


def dask_parts(X: Any) -> tuple[Any, ...]:
    """The partitions of an array or a frame of Dask as tasks; none of anything else."""
    return tuple(np.ravel(X.to_delayed())) if is_dask(X) else ()


@dataclass(frozen=True)
class DaskBlocks[T]:
    """Blocks as tasks of the cluster whose client this process is."""

    tasks: tuple[Any, ...]
    """One ``dask.delayed.Delayed`` a block."""

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.tasks)

    def __iter__(self) -> Iterator[T]:
        """Every block in turn, in this process."""
        return map(computed, self.tasks)

    def map[S](self, function: Callable[..., S], *beside: Sequence[Any]) -> Blocks[S]:
        """Apply a function to every block; the function is sent once to each worker."""
        from dask import delayed

        shared, then = delayed(function, pure=False), delayed(_then, pure=False)
        blocks = zip(self.tasks, *beside, strict=True)
        return DaskBlocks(tuple(then(shared, *block) for block in blocks))

    def persisted(self) -> Blocks[T]:
        """These blocks, computed once and persisted on the workers; a lost block is recomputed."""
        import dask

        return DaskBlocks(tuple(dask.persist(*self.tasks)))

    def reduce(self, combine: Callable[[T, T], T]) -> T:
        """One value: all blocks, in their order, combined in a tree of tasks on the cluster.

        ClusterError if a worker dies of a block again and again, or no worker is left.
        """
        from dask import delayed

        level = list(self.tasks)
        fold = delayed(_fold, pure=False)
        while len(level) > 1:
            groups = [level[first : first + FAN_IN] for first in range(0, len(level), FAN_IN)]
            level = [fold(combine, *group) for group in groups]
        return computed(level[0])


def _then[T, S](function: Callable[..., S], block: T, *beside: Any) -> S:
    """Result of a function, itself the result of a task, for a block."""
    return function(block, *beside)


def _fold[T](combine: Callable[[T, T], T], *blocks: T) -> T:
    """Combination of neighbouring blocks from left to right."""
    return reduce(combine, blocks)


def computed(root: Any) -> Any:
    """Result of a task, once it is there; errors of the function are raised as they are.

    ClusterError if a worker dies of the task again and again, or no worker is left.
    """
    from distributed import KilledWorker, default_client, wait

    client = default_client()
    future = client.compute(root)
    alone_since: float | None = None
    while True:
        try:
            wait(future, timeout=BREATH)
        except TimeoutError:
            alone_since = _alone_since(client, alone_since)
            continue
        try:
            return future.result()
        except KilledWorker as error:
            raise ClusterError(
                "A block of rows was lost with every worker that held it; it may be larger than "
                "a worker's memory. Repartition the collection into smaller blocks, or give the "
                "workers more memory."
            ) from error


def _alone_since(client: Any, before: float | None) -> float | None:
    """Clock time at which the cluster was first seen without a worker; None if it has workers.

    ``before`` is the previous result. Times are in seconds. ClusterError if no worker comes for
    ``PATIENCE`` seconds, or the scheduler cannot be reached.
    """
    try:
        workers = client.scheduler_info()["workers"]
    except OSError as error:
        raise ClusterError("The scheduler of the Dask cluster cannot be reached.") from error
    if workers:
        return None
    now = time.monotonic()
    if before is not None and now - before > PATIENCE:
        raise ClusterError(
            f"The Dask cluster has had no worker for {PATIENCE:.0f} seconds; start workers and fit "
            "again."
        )
    return now if before is None else before


# Tables out of memory: cut into blocks of rows, and answers about the blocks put together.


BLOCK_ROWS: Final = 131_072
"""Rows of a block where the collection itself has no blocks."""
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
    """Whether X is a table out of memory: a path, Dask collection, lazy frame or chunked array.

    A memory map counts as an array in memory.

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
    """Blocks of a table out of memory or of a memory map; None for any other table.

    ``names`` are the columns to read of a file or a lazy frame. All columns are read if one of them
    is absent.
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
    """Blocks of rows of a stored array, cut at multiples of its chunks; ValueError if not 2-D."""
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns; received an array of shape {X.shape}.")
    chunk = getattr(X, "chunks", (1,))[0]
    step = max(1, BLOCK_ROWS // chunk) * chunk
    bounds = [*range(0, X.shape[0], step), X.shape[0]]
    row_slices = [slice(start, stop) for start, stop in pairwise(bounds)]
    return Collection(
        LocalBlocks(tuple(partial(_slice, X, rows) for rows in row_slices)),
        tuple(rows.stop - rows.start for rows in row_slices),
    )


def _slice(X: Any, rows: slice) -> np.ndarray:
    """Rows of an array, in memory."""
    return np.array(X[rows])


def _of_dask(X: Any) -> Collection:
    """Partitions of a Dask collection: tasks on a cluster, or computed in this process.

    Their lengths are None for frames, and for arrays of unknown chunks.
    """
    lengths = None
    if hasattr(X, "chunks"):
        if X.ndim != 2:
            raise ValueError(f"X must have rows and columns; received {X.ndim} dimensions.")
        X = X.rechunk({1: -1})
        has_lengths = not np.isnan(X.chunks[0]).any()
        lengths = tuple(map(int, X.chunks[0])) if has_lengths else None
    partitions = dask_parts(X)
    blocks: Blocks[Any] = DaskBlocks(partitions)
    if not has_cluster():
        blocks = LocalBlocks(tuple(partition.compute for partition in partitions))
    return Collection(blocks, lengths, X)


def _of_lazy_frame(X: Any, names: tuple[str, ...] | None) -> Collection:
    """Blocks of the result of a polars query, which is run once into a temporary Parquet file.

    Only the columns ``names`` are selected, if the query has all of them.
    """
    import polars

    has_names = names is not None and set(names) <= set(X.collect_schema().names())
    folder = _Folder()
    path = folder.path / "rows.parquet"
    (X.select(names) if has_names else X).sink_parquet(path, row_group_size=BLOCK_ROWS)
    file = polars.scan_parquet(path)
    n_rows = file.select(polars.len()).collect().item()
    starts = range(0, n_rows, BLOCK_ROWS)
    lengths = tuple(min(BLOCK_ROWS, n_rows - start) for start in starts)
    queries = map(file.slice, starts, lengths)
    return Collection(
        LocalBlocks(tuple(partial(folder.collected, query) for query in queries)), lengths
    )


def _of_files(path: Path, names: tuple[str, ...] | None) -> Collection:
    """Row groups of a Parquet file, or of all files of a folder in the order of their names.

    Only the columns ``names`` are read of a file that has all of them. FileNotFoundError without a
    file, ValueError if a file is not Parquet.
    """
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
            has_names = names is not None and set(names) <= set(opened.schema_arrow.names)
            columns = list(names) if names is not None and has_names else None
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
    """An empty answer with the columns and dtypes of ``like``."""
    return like[{_rows_of(like): slice(0)}] if _is_dataset(like) else like[:0]


def _put_together(answered: Iterable[Any], like: Any) -> Any:
    """The answers about all blocks as one array or xarray dataset; of other types an iterator.

    ``like`` is the answer about a single row; the type of ``like`` decides. Arrays and datasets
    are concatenated along the rows. The rows of a dataset are numbered from 0. Answers of
    another type, such as frames, come one by one, in the order of the blocks.
    """
    if isinstance(like, np.ndarray):
        return np.concatenate([like[:0], *answered])
    if not _is_dataset(like):
        return iter(answered)
    answers = [no_rows(like), *answered]
    columns = {name: np.concatenate([_values(answer, name) for answer in answers]) for name in like}
    return _dataset(columns, sum(answer.sizes[_rows_of(like)] for answer in answers), like)


def _lazy_answers(X: Any, tasks: Sequence[Any], answer: Callable[[Any], Any], like: Any) -> Any:
    """Answers about the partitions of a Dask collection, not yet computed.

    Their type follows ``like``, the answer about a single row: a Dask array, a Dask frame, or an
    xarray dataset of Dask arrays. For a dataset the rows of X are counted at once.
    """
    from dask import array, delayed

    if hasattr(X, "map_partitions") and not _is_dataset(like):
        return X.map_partitions(answer, meta=like[:0], enforce_metadata=False)
    shared, then = delayed(answer, pure=False), delayed(_answered, pure=False)
    answered = [then(shared, task) for task in tasks]

    def joined(of_parts: Sequence[Any], lengths: Sequence[Any], like: Any) -> Any:
        pieces = zip(of_parts, lengths, strict=True)
        return array.concatenate(
            [array.from_delayed(task, (n, *like.shape[1:]), like.dtype) for task, n in pieces]
        )

    if not _is_dataset(like):
        return joined(answered, X.chunks[0], like)
    lengths = _lengths(X)
    values = delayed(_values, pure=False)
    columns = {
        name: joined([values(task, name) for task in answered], lengths, like[name])
        for name in like
    }
    return _dataset(columns, sum(lengths), like)


def _dataset(columns: Mapping[str, Any], n_rows: int, like: Any) -> Any:
    """Dataset of new columns and rows with the names, dims and attributes of ``like``."""
    variables = {name: (like[name].dims, data, like[name].attrs) for name, data in columns.items()}
    coords = {**like.coords, _rows_of(like): np.arange(n_rows)}
    return type(like)(variables, coords, like.attrs)


def _lengths(X: Any) -> tuple[int, ...]:
    """Number of rows of each partition, computed where Dask does not know it."""
    if hasattr(X, "map_partitions"):
        return tuple(map(int, X.map_partitions(len).compute()))
    if np.isnan(X.chunks[0]).any():
        X = X.copy()
        X.compute_chunk_sizes()
    return tuple(map(int, X.chunks[0]))


def _answered(answer: Callable[[Any], Any], partition: Any) -> Any:
    """Apply a function that is a task's result itself."""
    return answer(partition)


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
