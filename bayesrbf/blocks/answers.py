"""Answers about blocks of rows, put together: arrays, tables and datasets over rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np


def no_rows(like: Any) -> Any:
    """An answer about no row, from one about some."""
    return like[{_rows_of(like): slice(0)}] if _is_dataset(like) else like[:0]


def put_together(answered: Iterable[Any], like: Any) -> Any:
    """Arrays and datasets as one; tables stay one a block. Rows of datasets are numbered."""
    if isinstance(like, np.ndarray):
        return np.concatenate([like[:0], *answered])
    if not _is_dataset(like):
        return iter(answered)
    parts = [no_rows(like), *answered]
    columns = {name: np.concatenate([_values(part, name) for part in parts]) for name in like}
    return _dataset(columns, sum(part.sizes[_rows_of(like)] for part in parts), like)


def lazy_answers(X: Any, parts: Sequence[Any], answer: Callable[[Any], Any], like: Any) -> Any:
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
