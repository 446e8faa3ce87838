"""Ends a command on SIGTERM, or when its time limit has passed."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import active_children
from os import _exit as exit_at_once  # public, for all its name
from types import FrameType
from typing import Final

from bayesrbf.files import remove_scratch

TERMINATED: Final = 143
TIMED_OUT: Final = 124  # As the command timeout has it.
GRACE: Final = 4.0
"""Seconds in which a command may stop by itself, so that it has ended within five."""

_ALARM: Final = getattr(signal, "SIGALRM", None)  # Windows has none.
_KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)
_CODES: Final = {signal.SIGTERM: TERMINATED} | ({} if _ALARM is None else {_ALARM: TIMED_OUT})
SENTENCES: Final = {
    TERMINATED: "terminated; nothing was written.",
    TIMED_OUT: "the time limit was reached; nothing was written. Allow more; --quick makes "
    "report and fit faster.",
}
"""What is said, by exit code."""


def limit_time(seconds: float | None) -> None:
    """End this command after so many seconds, if any."""
    if seconds is None:
        return
    if not seconds > 0:
        raise ValueError(f"--time-limit takes seconds above 0; got {seconds:g}.")
    if _ALARM is None:
        raise ValueError("--time-limit needs a system with alarms, such as Linux or macOS.")
    signal.setitimer(signal.ITIMER_REAL, seconds)


@contextmanager
def obeying() -> Iterator[list[int]]:
    """Interrupt what runs when it is told to end; the value then holds the exit code.

    What is begun is undone as after Ctrl-C. Python hears a signal only between its own steps, and
    a compiler or a long call of a library may take none for a minute. A thread therefore waits
    for the signal, too, and ends the process where the main one has not ended by itself.
    """
    codes: list[int] = []

    def end(number: int, _: FrameType | None) -> None:
        codes.append(_CODES[signal.Signals(number)])
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in _CODES}
    source, sink = os.pipe()
    os.set_blocking(sink, False)
    wakeup = signal.set_wakeup_fd(sink, warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(source,), daemon=True).start()
    try:
        yield codes
    finally:
        if _ALARM is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
        signal.set_wakeup_fd(wakeup)
        os.close(sink)  # the thread reads the end of it
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(source: int) -> None:
    """End the process some seconds after it was told to, unless it has gone on to its end."""
    while signals := os.read(source, 1):
        if signals[0] in _CODES:
            time.sleep(GRACE)
            if _closed(source):
                break
            _end_now(_CODES[signal.Signals(signals[0])])
    os.close(source)


def _closed(source: int) -> bool:
    """Whether the command has ended and nobody writes to the pipe any more."""
    os.set_blocking(source, False)
    try:
        return not os.read(source, 65536)
    except BlockingIOError:
        return False


def _end_now(code: int) -> None:
    """Remove what was begun, end the processes that work for this one, and this one."""
    remove_scratch()
    for child in active_children():
        with suppress(ProcessLookupError):
            os.kill(child.pid or 0, _KILL)  # by number: processes of loky have no kill()
    sys.stderr.write(f"bayesrbf: {SENTENCES[code]}\n")
    sys.stderr.flush()
    exit_at_once(code)
