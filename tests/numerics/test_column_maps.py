"""Maps of real columns against SciPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm, rankdata, yeojohnson
from sklearn.preprocessing import PowerTransformer

from bayesrbf.numerics.column_maps import fit_half_rank, fit_power, yeo_johnson


def columns(n: int = 150) -> np.ndarray:
    """Skewed, tied, and with holes; nearly standardised."""
    rng = np.random.default_rng(0)
    x = np.column_stack(
        [rng.gamma(1.0, size=n) - 1, rng.integers(0, 4, n) - 1.5, rng.normal(size=n)]
    )
    x[rng.random(x.shape) < 0.2] = np.nan
    return x


def test_half_ranks_are_half_the_value_and_half_the_normal_score() -> None:
    x = columns()
    found = fit_half_rank(x, np.ones(150)).forward(x)
    for column in range(3):
        seen = ~np.isnan(x[:, column])
        values = x[seen, column]
        scores = norm.ppf((rankdata(values) - 0.5) / values.size)
        scores = (scores - scores.mean()) / scores.std()
        expected = 0.5 * np.clip(values, -4, 4) + 0.5 * scores
        np.testing.assert_allclose(found[seen, column], expected, atol=1e-12)
        assert np.isnan(found[~seen, column]).all()


def test_half_ranks_rise_and_far_cells_are_held() -> None:
    half = fit_half_rank(columns(), np.ones(150))
    line = np.tile(np.linspace(-9, 9, 400)[:, None], 3)
    mapped = half.forward(line)
    assert (np.diff(mapped, axis=0) >= 0).all()
    np.testing.assert_array_equal(mapped[0], half.forward(np.full((1, 3), -1e9))[0])


def test_yeo_johnson_is_that_of_scipy() -> None:
    x = np.random.default_rng(1).normal(size=30) * 3
    for power in (-1.3, 0.0, 0.7, 1.0, 2.0, 3.1):
        found = yeo_johnson(x[:, None], np.array([power]))[:, 0]
        np.testing.assert_allclose(found, yeojohnson(x, power), rtol=1e-10)


def test_powers_are_those_of_scikit_learn() -> None:
    x = columns()
    power = fit_power(x, np.ones(150))
    oracle = PowerTransformer().fit(x)
    np.testing.assert_allclose(power.powers, oracle.lambdas_, atol=2e-4)
    np.testing.assert_allclose(power.forward(x), oracle.transform(x), atol=2e-3)


@pytest.mark.parametrize("fit", [fit_half_rank, fit_power])
def test_weight_two_is_the_row_twice(fit: object) -> None:
    x = columns(20)
    weights = np.r_[2.0, np.ones(19)]
    twice = np.r_[x[:1], x]
    np.testing.assert_allclose(
        fit(x, weights).forward(x), fit(twice, np.ones(21)).forward(x), atol=1e-7
    )


@pytest.mark.parametrize("fit", [fit_half_rank, fit_power])
def test_columns_without_spread_or_cells_stay_finite(fit: object) -> None:
    x = np.column_stack([np.zeros(5), np.full(5, np.nan), [np.nan, 2.0, np.nan, np.nan, np.nan]])
    mapped = fit(x, np.ones(5)).forward(np.array([[0.0, 1.0, np.nan], [3.0, np.nan, 2.0]]))
    assert np.isfinite(mapped[0, :2]).all()
    assert np.isnan(mapped[0, 2])
    assert np.isnan(mapped[1, 1])
    assert np.isfinite(mapped[1, 2])
