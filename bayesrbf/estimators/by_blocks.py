"""Answers of fitted estimators about tables out of memory, block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, cast

import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted

from bayesrbf.blocks import BLOCK_ROWS, as_collection, no_rows

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def by_blocks[F: Callable[..., object]](method: F) -> F:
    """Let a method that answers row by row take tables out of memory.

    Answers about Dask collections are lazy and have their partitions; others are put together.
    """

    @wraps(method)
    def answered(estimator: BaseEstimator, X: object, *args: object, **options: object) -> object:
        if isinstance(X, np.ndarray) and len(X) <= BLOCK_ROWS:
            return method(estimator, X, *args, **options)  # a memory map is one block
        fitted = vars(estimator).get("fitted_")
        names = None if fitted is None else fitted.table.names
        collection = as_collection(X, None if names is None else tuple(names))
        if collection is None:
            return method(estimator, X, *args, **options)
        check_is_fitted(estimator)
        like = method(estimator, fitted.stored_row(), *args, **options)
        if isinstance(like, list):
            raise ValueError(
                f"{method.__name__}() draws several tables from one in memory: of a table read "
                "block by block, every block would be drawn by the same random numbers. Hand over "
                "one block at a time, or leave draws out."
            )
        return collection.answers(_Answer(estimator, method.__name__, args, options, like), like)

    return cast(F, answered)


@dataclass(frozen=True)
class _Answer:
    """A method of a fitted estimator and its arguments; a function of blocks that can travel."""

    estimator: BaseEstimator
    method: str
    args: tuple[object, ...]
    options: dict[str, object]
    like: object
    """The answer about one row."""

    def __call__(self, block: object) -> object:
        """Answer about the rows of a block."""
        if not _num_samples(block):
            return no_rows(self.like)
        return getattr(self.estimator, self.method)(block, *self.args, **self.options)
