"""A first compilation is told, once, and no interrupt is lost in it."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest
from numba import njit
from numba.core import event

from bayesrbf.numerics.kernels.compilation import ANNOUNCEMENT, entry_point


def of_no_file(body: str) -> Callable[[float], float]:
    """An entry point that no file on disk can hold."""
    room: dict[str, Callable[[float], float]] = {}
    exec(f"def function(x):\n    return {body}", room)
    return entry_point(room["function"])


def test_a_first_compilation_is_told_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ANNOUNCEMENT, "said", False)
    assert of_no_file("2 * x")(1.5) == 3.0
    assert of_no_file("3 * x")(1.5) == 4.5
    [line] = caplog.messages
    assert "compiles its kernels" in line


def test_what_others_compile_is_not_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ANNOUNCEMENT, "said", False)
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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_waits_for_the_end_of_a_compilation(number: signal.Signals) -> None:
    came: list[int] = []

    def stop(number: int, _: object) -> None:
        came.append(number)
        raise KeyboardInterrupt

    before = signal.signal(number, stop)
    try:
        function, interrupting = of_no_file("4 * x"), Interrupting(number)
        with (
            event.install_listener("numba:compile", interrupting),
            pytest.raises(KeyboardInterrupt),
        ):
            function(1.5)
        assert came == [number]
        assert signal.getsignal(number) is stop
        assert function(1.5) == 6.0
    finally:
        signal.signal(number, before)


def test_others_are_interrupted_at_once() -> None:
    function = njit(lambda x: 5 * x)
    with (
        event.install_listener("numba:compile", Interrupting(signal.SIGINT)),
        pytest.raises(KeyboardInterrupt),
    ):
        function(1.5)
    assert function(1.5) == 7.5
