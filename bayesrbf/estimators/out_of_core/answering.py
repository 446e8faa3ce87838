"""Answers of fitted estimators about tables out of memory, block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast

import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted

from bayesrbf.blocks import BLOCK_ROWS, as_collection, is_collection, no_rows


def by_blocks[F: Callable[..., Any]](method: F) -> F:
    """Let a method that answers row by row take tables out of memory.

    Answers about Dask collections are lazy and have their partitions; others are put together.
    """

    @wraps(method)
    def answered(self: Any, X: Any, *args: Any, **options: Any) -> Any:
        names = self.__dict__.get("feature_names_in_")
        if isinstance(X, np.ndarray) and len(X) <= BLOCK_ROWS:
            return method(self, X, *args, **options)  # a memory map is one block
        collection = as_collection(X, None if names is None else tuple(names))
        if collection is None:
            return method(self, X, *args, **options)
        check_is_fitted(self)
        like = method(self, self._stored_row(), *args, **options)
        if isinstance(like, list):
            raise ValueError(
                f"{method.__name__}() draws several tables from one in memory: of a table read "
                "block by block, every block would be drawn by the same random numbers. Hand over "
                "one block at a time, or leave draws out."
            )
        return collection.answers(_Answer(self, method.__name__, args, options, like), like)

    return cast(F, answered)


def has_all_rows(self: Any) -> bool:
    """Whether the training rows are all in the estimator, not a sample or the first block."""
    held = self.__dict__  # what was fitted block by block before samples were told apart has passes
    return not held.get("_sampled", held.get("passes_", 0) > 0)


def need_all_rows(self: Any, what: str) -> None:
    """ValueError where the training rows are out of memory, which a posterior is asked of."""
    if not has_all_rows(self):
        raise ValueError(
            f"{type(self).__name__}.{what} needs the training rows in memory, and this fit read "
            f"them block by block ({self.passes_} passes); fit a random sample of the rows for it."
        )


def refuse_collection(self: Any, X: Any) -> None:
    """TypeError where a table out of memory is handed to a fit that needs all rows at once."""
    if is_collection(X):
        name = type(self).__name__
        raise TypeError(
            f"{name}.fit takes a table in memory, about {self._rows_in_8_gib:,} rows of ten "
            f"columns in 8 GiB; received {type(X).__name__}, a table out of memory. Hand a random "
            "sample of its rows to fit, as a frame, drawn from all blocks and not from the first, "
            "such as X.sample(frac=0.01).compute() of Dask: predict and uncertainty then take the "
            "whole table, block by block. MixtureDensity, HybridMixtureClassifier, "
            "RBFNetworkClassifier and KernelNetworkClassifier fit all rows, StackedClassifier a "
            "random sample that it draws itself."
        )


@dataclass(frozen=True)
class _Answer:
    """A method of a fitted estimator and its arguments; a function of blocks that can travel."""

    estimator: Any
    method: str
    args: tuple[Any, ...]
    options: dict[str, Any]
    like: Any
    """The answer about one row."""

    def __call__(self, block: Any) -> Any:
        """Answer about the rows of a block."""
        if not _num_samples(block):
            return no_rows(self.like)
        return getattr(self.estimator, self.method)(block, *self.args, **self.options)
