"""Chains of one run, in this process or in several where that is faster.

Python's threads do not help samplers whose steps take microseconds: all chains want the
interpreter, and handing it over costs more than a step. So chains run in groups, each group in
one thread of one process.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from itertools import pairwise
from pathlib import Path
from pickle import PicklingError
from tempfile import TemporaryDirectory
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from threadpoolctl import threadpool_limits

WORTHWHILE: Final = 10.0
"""Seconds of work below which no further process is started, because a start takes time, too."""

_PATIENCE: Final = 0.1  # Seconds between two looks at the progress and at the wish to stop.

_IDLE: Final = 60.0
"""Seconds that idle processes are kept, so that the next run need not start any."""

_THREADS: Final = ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@runtime_checkable
class Watch(Protocol):
    """The link of a group of chains with its run: steps are reported, and the wish to stop."""

    @property
    def stopped(self) -> bool:
        """Whether the chains are to end now, with what they have drawn."""
        ...

    def stop(self) -> None:
        """Tell all groups to end."""
        ...

    def advance(self) -> None:
        """One more step of one chain is done."""
        ...


Work = Callable[[Any, Watch], list[Any]]
"""Runs the chains of one group, and returns what they drew, complete or not."""


def run_chains(
    work: Work, chains: Sequence[Any], *, processes: int, advance: Callable[[int], None]
) -> tuple[list[Any], bool]:
    """Run chains in groups, one a process: one result a chain, and whether the run is complete.

    ``work(group, watch)`` runs a list of chains and returns one result a chain. Where
    ``watch.stopped`` or interrupted it tells all groups to stop and returns what is there. If there
    are several processes it must be a function of a module, whose arguments can be pickled.
    ``advance`` takes how many steps were done since it was last called.
    """
    if processes == 1:
        watch = _HereWatch(advance)
        with threadpool_limits(1, "blas"):  # as in other processes: the same bits
            return work(chains, watch), not watch.stopped
    bounds = np.linspace(0, len(chains), processes + 1).round().astype(int)
    groups = [chains[a:b] for a, b in pairwise(bounds)]
    with TemporaryDirectory(prefix="bayesrbf-", ignore_cleanup_errors=True) as folder:
        board = _FileWatch.started(Path(folder) / "board", len(groups))
        try:
            executor = _executor(processes)
            runs = [
                executor.submit(_in_group, work, group, board.path, place)
                for place, group in enumerate(groups)
            ]
            _await(runs, board, advance)
        except BaseException:  # nobody waits for the groups any more
            board.stop()
            raise
        results = [result for run in runs for result in run.result()]
        return results, not board.stopped


def check_cores(cores: int | None) -> None:
    """ValueError if the caller asks for a number of processes below 1, before any work."""
    if cores is not None and cores < 1:
        raise ValueError(f"cores must be at least 1, or None; received {cores!r}.")


def processes_for(chains: int, seconds: float, cores: int | None, work: Sequence[object]) -> int:
    """Number of processes, from 1 to the number of chains.

    ``seconds`` is what the run is expected to take in one process, and ``work`` what would have to
    be sent to the others. None for ``cores`` means as many as there are processors, if the run is
    long enough to be worth their start.
    """
    if cores is not None:
        return min(cores, chains)
    import loky

    if chains == 1 or seconds < WORTHWHILE or not _can_be_sent(work):
        return 1
    return int(min(chains, loky.cpu_count()))


def longest_rectangle(lengths: Sequence[int]) -> int:
    """Length to which interrupted chains are cut, so that most draws are kept.

    It is the length L with the most draws in chains that have L or more.

    >>> longest_rectangle([100, 100, 3, 0]), longest_rectangle([90, 100, 80, 0])
    (100, 80)
    """
    return max(lengths, key=lambda least: least * sum(length >= least for length in lengths))


class _HereWatch:
    """The watch of chains in this process."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self.stopped = False
        self._tell = tell

    def stop(self) -> None:
        self.stopped = True

    def advance(self) -> None:
        self._tell(1)


class _FileWatch:
    """A watch that processes share: a file with the request to stop and every group's steps."""

    def __init__(self, path: Path, place: int = 0) -> None:
        self.path = path
        self._cells = np.memmap(path, dtype=np.int64, mode="r+")
        self._place = 1 + place

    @classmethod
    def started(cls, path: Path, n_groups: int) -> _FileWatch:
        """Make the file, with all steps at 0."""
        np.zeros(1 + n_groups, dtype=np.int64).tofile(path)
        return cls(path)

    @property
    def stopped(self) -> bool:
        """Whether the chains are to end now."""
        return bool(self._cells[0])

    def stop(self) -> None:
        """Tell all groups to end."""
        self._cells[0] = 1

    def advance(self) -> None:
        """One more step of this group."""
        self._cells[self._place] += 1

    @property
    def steps(self) -> int:
        """Steps of all groups."""
        return int(self._cells[1:].sum())


def _await(
    runs: list[Future[list[Any]]], board: _FileWatch, advance: Callable[[int], None]
) -> None:
    """Wait for all groups; an interrupt, or an error of one, stops the others."""
    told, pending = 0, set(runs)
    while pending:
        try:
            done, pending = wait(runs, timeout=_PATIENCE)
            if any(run.exception() for run in done):
                board.stop()
            told, before = board.steps, told
            advance(told - before)
        except KeyboardInterrupt:
            if board.stopped:  # interrupted a second time
                raise
            board.stop()


def _executor(processes: int) -> Any:
    """Processes that are kept for the next run, with one thread each."""
    from loky import get_reusable_executor

    return get_reusable_executor(
        processes,
        timeout=_IDLE,
        # Ctrl-C reaches every process of a terminal; the one that waits passes it on.
        initializer=signal.signal,
        initargs=(signal.SIGINT, signal.SIG_IGN),
        env=dict.fromkeys(_THREADS, "1"),
    )


def _in_group(work: Work, group: Sequence[Any], path: Path, place: int) -> list[Any]:
    """Run a group of chains in another process."""
    with threadpool_limits(1, "blas"):
        return work(group, _FileWatch(path, place))


def _can_be_sent(work: Sequence[object]) -> bool:
    """Whether objects can be pickled and so sent to another process."""
    import cloudpickle

    try:
        cloudpickle.dumps(work)
    except (PicklingError, TypeError, AttributeError):
        return False
    return True


def seconds_of(step: Callable[[], object], repeats: int = 3) -> float:
    """Shortest time of a step of a chain in seconds; the first run of it is not timed."""
    step()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return min(times)
