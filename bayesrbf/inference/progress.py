"""Progress of a run, in one display."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Protocol, runtime_checkable


@runtime_checkable
class Track(Protocol):
    """Goes through a sequence and shows how far it is."""

    def __call__[T](self, sequence: Sequence[T], description: str) -> Iterator[T]:
        """Yield the entries one by one."""


def silent[T](sequence: Sequence[T], description: str) -> Iterator[T]:
    """Go through a sequence and show nothing.

    >>> list(silent([1, 2], "Counting"))
    [1, 2]
    """
    yield from sequence


_AROUND: Final[ContextVar[Track]] = ContextVar("around", default=silent)
"""The display of what a run is a part of: it shows the stages of its parts, too."""


@contextmanager
def showing(track: Track) -> Iterator[None]:
    """Let a display show the stages of whatever runs within."""
    token = _AROUND.set(track)
    try:
        yield
    finally:
        _AROUND.reset(token)


@contextmanager
def progress(shown: bool) -> Iterator[Track]:
    """One display for all stages of a run, a bar a stage, removed when the run ends."""
    if not shown or _AROUND.get() is not silent:
        yield _AROUND.get()
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

    The context's value takes how many steps were done since it was last called.
    """
    if not shown:
        yield lambda steps: None
        return
    from rich.progress import Progress

    with Progress() as bar:
        task = bar.add_task(name, total=total)
        yield lambda steps: bar.advance(task, steps)
