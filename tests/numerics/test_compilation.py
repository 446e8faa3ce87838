"""A first compilation is told, once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

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
