"""One progress display a run: whoever works tells it what it goes through."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Track(Protocol):
    """Goes through a sequence and shows how far it is."""

    def __call__[T](self, sequence: Sequence[T], description: str) -> Iterator[T]:
        """Yield the entries one by one."""


def silent[T](sequence: Sequence[T], description: str) -> Iterator[T]:
    """Go through a sequence and show nothing.

    Parameters
    ----------
    sequence : sequence
        What to go through.
    description : str
        What it is; not shown.

    Returns
    -------
    iterator
        The entries.

    Examples
    --------
    >>> list(silent([1, 2], "Counting"))
    [1, 2]
    """
    yield from sequence


@contextmanager
def progress(shown: bool) -> Iterator[Track]:
    """One display for all stages of a run, gone when the run ends.

    Parameters
    ----------
    shown : bool
        Whether to show anything.

    Yields
    ------
    Track
        Goes through a sequence: a bar a stage.
    """
    if not shown:
        yield silent
        return
    from rich.progress import Progress

    with Progress(transient=True) as bar:

        def track(sequence: Sequence[Any], description: str) -> Iterator[Any]:
            yield from bar.track(sequence, description=description)
            bar.refresh()  # a stage of a few milliseconds is shown, too

        yield track


@contextmanager
def shown_progress(name: str, total: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """Show how far all chains together are.

    Parameters
    ----------
    name : str
        What runs.
    total : int
        Steps of all chains.
    shown : bool
        Whether to show anything.

    Yields
    ------
    callable
        Takes how many steps were done since it was last called.
    """
    if not shown:
        yield lambda steps: None
        return
    from rich.progress import Progress

    with Progress() as bar:
        task = bar.add_task(name, total=total)
        yield lambda steps: bar.advance(task, steps)
