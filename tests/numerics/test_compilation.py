"""A first compilation is told, once."""

from __future__ import annotations

from collections.abc import Callable

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
