"""Samplers call a log posterior ten thousand times: shapes are checked a few times, not always."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from jaxtyping import config


@pytest.fixture(scope="module")
def unchecked() -> Iterator[None]:
    """Shape checks off; the other tests of these functions run with them."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)
