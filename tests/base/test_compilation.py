"""A first compilation is told, once, and no interrupt is lost in it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from numba import njit
from numba.core import event

from bayesrbf.base.compiled import ANNOUNCEMENT, entry_point


def of_no_file(body: str) -> Callable[[float], float]:
    """An entry point that no file on disk can hold."""
    room: dict[str, Callable[[float], float]] = {}
    exec(f"def function(x):\n    return {body}", room)
    return entry_point(room["function"])


def test_a_first_compilation_is_told_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ANNOUNCEMENT, "reported", False)
    assert of_no_file("2 * x")(1.5) == 3.0
    assert of_no_file("3 * x")(1.5) == 4.5
    [line] = caplog.messages
    assert "compiles its kernels" in line


def test_what_others_compile_is_not_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ANNOUNCEMENT, "reported", False)
    assert njit(lambda x: 2 * x)(1.5) == 3.0
    event.start_event("numba:compile", {"dispatcher": object()})  # such as a lifted block
    assert caplog.messages == []


class Interrupting(event.Listener):
    """Sends a signal while something is compiled."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def on_start(self, event: Any) -> None:
        """The compiler is at work."""
        signal.raise_signal(self.number)

    def on_end(self, event: Any) -> None:
        """It is done."""


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def number(request: pytest.FixtureRequest) -> Iterator[signal.Signals]:
    """A signal that is handled as Ctrl-C is."""
    before = signal.signal(request.param, stop)
    yield request.param
    signal.signal(request.param, before)


def stop(_: int, __: object) -> None:
    """End what is going on."""
    raise KeyboardInterrupt


def test_an_interrupt_waits_for_the_end_of_a_compilation(number: signal.Signals) -> None:
    function = of_no_file("4 * x")
    with (
        event.install_listener("numba:compile", Interrupting(number)),
        pytest.raises(KeyboardInterrupt),
    ):
        function(1.5)
    assert function.overloads  # type: ignore[attr-defined]  # it was compiled to the end
    assert signal.getsignal(number) is stop
    assert function(1.5) == 6.0


def test_others_are_interrupted_at_once(number: signal.Signals) -> None:
    function = njit(lambda x: 5 * x)
    with (
        event.install_listener("numba:compile", Interrupting(number)),
        pytest.raises(KeyboardInterrupt),
    ):
        function(1.5)
    assert not function.overloads
    assert function(1.5) == 7.5


COMPILING = """
import numba.core.event as event, numpy as np
from bayesrbf.mixture.compiled import write_logs

class Counter(event.Listener):
    def on_start(self, event): print(event.data["dispatcher"].__name__)
    def on_end(self, event): pass

event.register("numba:compile", Counter())
write_logs(np.ones((1, 3)), np.zeros((1, 1), np.int64), np.empty(1), np.empty((1, 1)))
"""


@pytest.mark.slow
def test_of_several_processes_one_compiles_and_the_others_wait(tmp_path: Path) -> None:
    given = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    words = [sys.executable, "-c", COMPILING]
    going = [subprocess.Popen(words, env=given, stdout=subprocess.PIPE) for _ in range(3)]
    said = [process.communicate()[0].split() for process in going]
    assert [process.returncode for process in going] == [0, 0, 0]
    assert sum(line.count(b"write_logs") for line in said) == 1
