"""Blocks on the workers of a Dask cluster: only functions and what they reduce to travel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np

from bayesrbf.blocks.local_blocks import Blocks

FAN_IN: Final = 8
"""Blocks that one task of the tree combines."""
PATIENCE: Final = 30.0
"""Seconds without a single worker after which a result is given up."""
BREATH: Final = 1.0
"""Seconds between two looks at the workers."""


class ClusterError(RuntimeError):
    """A Dask cluster lost what a fit needs of it."""


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

    parts: tuple[Any, ...]
    """One ``dask.delayed.Delayed`` a block."""

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self.parts)

    def __iter__(self) -> Iterator[T]:
        """Every block in turn, in this process."""
        return map(computed, self.parts)

    def map[S](self, function: Callable[..., S], *beside: Sequence[Any]) -> Blocks[S]:
        """Apply a function to every block; the function is sent once to each worker."""
        from dask import delayed

        shared, then = delayed(function, pure=False), delayed(_then, pure=False)
        each = zip(self.parts, *beside, strict=True)
        return DaskBlocks(tuple(then(shared, *of_block) for of_block in each))

    def kept(self) -> Blocks[T]:
        """These blocks, made once and held by the workers; one that is lost is made again."""
        import dask

        return DaskBlocks(tuple(dask.persist(*self.parts)))

    def reduce(self, combine: Callable[[T, T], T]) -> T:
        """All blocks combined in a tree.

        ClusterError if a worker dies of a block again and again, or no worker is left.
        """
        from dask import delayed

        level, fold = list(self.parts), delayed(_fold, pure=False)
        while len(level) > 1:
            groups = [level[first : first + FAN_IN] for first in range(0, len(level), FAN_IN)]
            level = [fold(combine, *group) for group in groups]
        return computed(level[0])


def _then[T, S](function: Callable[..., S], block: T, *beside: Any) -> S:
    """Apply a function that is a task's result itself."""
    return function(block, *beside)


def _fold[T](combine: Callable[[T, T], T], *blocks: T) -> T:
    """Combine neighbours."""
    return reduce(combine, blocks)


def computed(root: Any) -> Any:
    """The result of a task; errors of the function are raised as they are."""
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
    """Since when no worker is left; ClusterError where that is too long."""
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
