"""Values that differ by rounding keep their order; all others are ranked."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.base.arrays import ROUNDING_OF_RANKS, ranked


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e6])
def test_rounding_does_not_decide(scale: float) -> None:
    rng = np.random.default_rng(0)
    values = scale * rng.normal(size=5)[rng.integers(5, size=20)]
    rank = ranked(values, 1e-10 * min(1.0, scale))
    for _ in range(10):
        noise = 1 + 1e-14 * rng.normal(size=values.size)
        np.testing.assert_array_equal(ranked(values * noise, 1e-10 * min(1.0, scale)), rank)
    np.testing.assert_array_equal(rank, np.argsort(-values, kind="stable"))


def test_what_is_no_number_comes_last() -> None:
    values = np.array([np.nan, -np.inf, 1.0, -np.inf, 1.0 + ROUNDING_OF_RANKS / 2])
    assert ranked(values).tolist() == [2, 4, 1, 3, 0]
    assert ranked(np.full(2, -np.inf)).tolist() == [0, 1]
    assert ranked(np.zeros(0)).size == 0
