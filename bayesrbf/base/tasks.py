"""Work of equal parts in several processes, and the progress of a run."""

from __future__ import annotations

import signal
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any, Final, Protocol, runtime_checkable

from sklearn.utils.parallel import Parallel, delayed

# Progress of a run, in one display.


@runtime_checkable
class Track(Protocol):
    """Iterates over a sequence and displays the progress."""

    def __call__[T](self, sequence: Sequence[T], description: str) -> Iterator[T]:
        """Yield the entries of the sequence in order."""


def silent[T](sequence: Sequence[T], description: str) -> Iterator[T]:
    """Go through a sequence and show nothing.

    >>> list(silent([1, 2], "Counting"))
    [1, 2]
    """
    yield from sequence


_AROUND: Final[ContextVar[Track]] = ContextVar("around", default=silent)
"""Display of the enclosing run, which shows the stages of nested runs as well."""


@contextmanager
def showing(track: Track) -> Iterator[None]:
    """Display the outermost stages of the enclosed run; stages within a stage are not shown."""
    busy = False

    def outermost[T](sequence: Sequence[T], description: str) -> Iterator[T]:
        """Items of a sequence; ``track`` displays them unless a stage is displayed already."""
        nonlocal busy
        if busy:
            yield from sequence
            return
        busy = True
        try:
            yield from track(sequence, description)
        finally:
            busy = False

    token = _AROUND.set(track if track is silent else outermost)
    try:
        yield
    finally:
        _AROUND.reset(token)


@contextmanager
def progress(shown: bool) -> Iterator[Track]:
    """Yield a track that displays the stages of a run, one bar a stage, removed when the run ends.

    It is the track in use if ``shown`` is false or a surrounding run displays its stages, and a
    silent one where no bar can be removed, as in a log.
    """
    if not shown or _AROUND.get() is not silent:
        yield _AROUND.get()
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console()
    if not console.is_jupyter and (not console.is_terminal or console.is_dumb_terminal):
        yield silent
        return
    with Progress(transient=True, console=console) as bar:

        def track(sequence: Sequence[Any], description: str) -> Iterator[Any]:
            yield from bar.track(sequence, description=description)
            bar.refresh()  # a stage of a few milliseconds is shown, too

        yield track


@contextmanager
def shown_progress(name: str, total: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """Show how far all chains together are.

    The context's value takes how many steps were done since it was last called.
    """
    with progress(shown) as track:
        steps = track(range(total), name)
        yield lambda done: deque(islice(steps, done), maxlen=0).clear()


# Work of equal parts, which processes may share.


Recorded = tuple[Warning | str, str, int]
"""A warning with its file and line."""


def run_tasks[T, A](
    function: Callable[[T], A],
    tasks: Sequence[T],
    description: str,
    n_jobs: int | None = None,
    progress_bar: bool = False,
) -> list[A]:
    """Results of a function for all tasks, in order, computed by ``n_jobs`` processes.

    Progress counts results. Warnings from all processes are issued in this process, each once.
    """
    answers: list[A] = []
    issued: set[tuple[str, str, int]] = set()
    with progress(progress_bar) as track:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        with deaf_processes():
            results = parallel(delayed(_listened)(function, task) for task in tasks)
        for _ in track(tasks, description):
            answer, handler = next(results)
            answers.append(answer)
            for message, file, line in handler:
                if (about := (str(message), file, line)) not in issued:
                    issued.add(about)
                    warnings.warn_explicit(message, None, file, line)
    return answers


@contextmanager
def deaf_processes() -> Iterator[None]:
    """Start processes that ignore Ctrl-C; this process ignores it while they start.

    A terminal sends it to every process of a command. The one that waits for the others ends
    them; one that is still importing would print where it was.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a program that is started inherits this alone
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def _listened[T, A](function: Callable[[T], A], task: T) -> tuple[A, list[Recorded]]:
    """Result of a function, and the warnings that it issued."""
    with warnings.catch_warnings(record=True) as caught:
        answer = function(task)
    return answer, [(warning.message, warning.filename, warning.lineno) for warning in caught]
