"""Intervals of scores hold the truth as often as they say."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.posterior.score_intervals import mean_interval, share_interval


def test_mean_intervals_hold_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    held = [
        low <= 1.0 <= high
        for low, high in (mean_interval(rng.normal(1, 2, 8), 0.9) for _ in range(2000))
    ]
    assert np.mean(held) == pytest.approx(0.9, abs=0.025)


@pytest.mark.parametrize("share", [0.03, 0.5, 0.9])
def test_share_intervals_hold_about_as_often_as_they_say(share: float) -> None:
    of = 60
    hits = np.random.default_rng(1).binomial(of, share, size=2000)
    between = [share_interval(int(n), of, 0.9) for n in hits]
    assert np.mean([low <= share <= high for low, high in between]) > 0.86


@pytest.mark.parametrize("of", [1, 2, 50])
def test_share_intervals_are_mirrored_and_never_empty(of: int) -> None:
    for hits in range(of + 1):
        low, high = share_interval(hits, of, 0.9)
        assert 0 <= low < high <= 1
        assert low - 1e-12 <= hits / of <= high + 1e-12
        assert share_interval(of - hits, of, 0.9) == pytest.approx((1 - high, 1 - low))
