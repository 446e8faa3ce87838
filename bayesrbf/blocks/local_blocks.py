"""Blocks of rows, and those that this process reads one at a time."""

from __future__ import annotations

import pickle
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Blocks[T](Protocol):
    """Blocks of rows of one table in their order, or what a function made of each."""

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

    def kept(self) -> Blocks[T]:
        """These blocks, made once and held where they lie."""
        ...

    def reduce(self, combine: Callable[[T, T], T]) -> T:
        """All blocks combined into one, neighbour with neighbour."""
        ...


@dataclass(frozen=True)
class LocalBlocks[T]:
    """Blocks that this process makes one at a time; a block is forgotten after its use."""

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
        each = zip(self.makers, *beside, strict=True)
        return LocalBlocks(tuple(partial(_then, function, *of_block) for of_block in each))

    def kept(self) -> Blocks[T]:
        """These blocks, made once: a single one in memory, several in temporary files.

        The files are removed when nothing reads them any more.
        """
        if len(self.makers) == 1:
            return LocalBlocks((partial(_same, self.makers[0]()),))
        folder = _Folder()
        return LocalBlocks(tuple(folder.keep(place, block) for place, block in enumerate(self)))

    def reduce(self, combine: Callable[[T, T], T]) -> T:
        """All blocks combined from the first to the last."""
        return reduce(combine, self)


def _then[T, S](function: Callable[..., S], make: Callable[[], T], *beside: Any) -> S:
    """Make a block, and of it what the function makes."""
    return function(make(), *beside)


def _same[T](block: T) -> T:
    """Give a block that is in memory."""
    return block


class _Folder:
    """A temporary folder that is removed with the last block that is read from it."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="bayesrbf-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def keep[T](self, place: int, block: T) -> Callable[[], T]:
        """Write a block, and say how to read it."""
        with open(self.path / str(place), "wb") as file:
            pickle.dump(block, file, protocol=pickle.HIGHEST_PROTOCOL)
        return partial(self.read, place)

    def read(self, place: int) -> Any:
        """Read a block that this object wrote."""
        with open(self.path / str(place), "rb") as file:
            return pickle.load(file)
