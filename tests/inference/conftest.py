"""Samplers call a log posterior ten thousand times: shapes are checked a few times, not always."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from jaxtyping import config


@pytest.fixture(scope="module")
def unchecked() -> Iterator[None]:
    """Shape checks off; the other tests of these functions run with them."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


@pytest.fixture(autouse=True)
def heard_interrupts() -> Iterator[None]:
    """Ctrl-C raises, even in a run that was started in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
