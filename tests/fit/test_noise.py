"""Scale and tails of residuals: laws of a scale family, and what is known of its answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student

from bayesrbf.fit.calibration import fit_noise


def half_width(residuals: np.ndarray, prob: float = 0.9) -> float:
    scale, df = fit_noise(residuals, np.ones(residuals.size))
    return float(scale * student(df).ppf((1 + prob) / 2))


@pytest.mark.parametrize("unit", [1e-3, 100.0])
@pytest.mark.parametrize("size", [4, 60])
def test_the_unit_of_the_residuals_does_not_matter(unit: float, size: int) -> None:
    z = np.random.default_rng(size).standard_t(4, size=size)
    scale, df = fit_noise(z, np.ones(size))
    found, same = fit_noise(unit * z, np.ones(size))
    assert found == pytest.approx(unit * scale, rel=1e-3)
    assert same == pytest.approx(df, rel=1e-2)


def test_weight_two_is_the_residual_twice() -> None:
    z, weights = np.random.default_rng(0).normal(size=40), np.arange(40) % 3
    once = fit_noise(z, weights.astype(float))
    twice = fit_noise(np.repeat(z, weights), np.ones(weights.sum()))
    np.testing.assert_allclose(once, twice, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("size", [20, 50, 500])
def test_intervals_of_normal_residuals_have_their_width(size: int) -> None:
    rng = np.random.default_rng(1)
    widths = [half_width(7.0 * rng.normal(size=size)) for _ in range(40)]
    assert np.mean(widths) == pytest.approx(7.0 * 1.645, rel=0.1)


def test_a_gross_error_makes_tails_and_not_width() -> None:
    z = np.random.default_rng(2).normal(size=200)
    assert half_width(np.append(z, 100.0)) < 1.4 * half_width(z)


def test_no_residual_at_all_is_a_number() -> None:
    scale, df = fit_noise(np.zeros(5), np.ones(5))
    assert 0 < scale < 1e-3
    assert df > 2
