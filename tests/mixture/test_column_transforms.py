"""Transforms of real columns against SciPy and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import norm, rankdata, yeojohnson, yeojohnson_llf
from sklearn.preprocessing import PowerTransformer

from bayesrbf.base.priors import PowerTransforms, yeo_johnson
from bayesrbf.base.rows import Observations, Standardisation
from bayesrbf.mixture.transforms import fit_half_rank, fit_power


def columns(n: int = 150) -> np.ndarray:
    """Skewed, tied, and with holes; nearly standardised."""
    rng = np.random.default_rng(0)
    x = np.column_stack(
        [rng.gamma(1.0, size=n) - 1, rng.integers(0, 4, n) - 1.5, rng.normal(size=n)]
    )
    x[rng.random(x.shape) < 0.2] = np.nan
    return x


AS_IS = Standardisation(np.zeros(3), np.ones(3))


def test_half_ranks_are_half_the_value_and_half_the_normal_score() -> None:
    x = columns()
    found = fit_half_rank(AS_IS, x, np.ones(150)).forward(x)
    for column in range(3):
        seen = ~np.isnan(x[:, column])
        values = x[seen, column]
        scores = norm.ppf((rankdata(values) - 0.5) / values.size)
        scores = (scores - scores.mean()) / scores.std()
        expected = 0.5 * np.clip(values, -4, 4) + 0.5 * scores
        np.testing.assert_allclose(found[seen, column], expected, atol=1e-12)
        assert np.isnan(found[~seen, column]).all()


def test_half_ranks_rise_and_far_cells_are_held() -> None:
    half = fit_half_rank(AS_IS, columns(), np.ones(150))
    line = np.tile(np.linspace(-9, 9, 400)[:, None], 3)
    mapped = half.forward(line)
    assert (np.diff(mapped, axis=0) >= 0).all()
    np.testing.assert_array_equal(mapped[0], half.forward(np.full((1, 3), -1e9))[0])


def test_yeo_johnson_is_that_of_scipy() -> None:
    x = np.random.default_rng(1).normal(size=30) * 3
    for power in (-1.3, 0.0, 0.7, 1.0, 2.0, 3.1):
        found = yeo_johnson(x[:, None], np.array([power]))[:, 0]
        np.testing.assert_allclose(found, yeojohnson(x, power), rtol=1e-10)


def test_powers_are_those_of_scikit_learn_where_cells_are_so_many_that_no_prior_counts() -> None:
    x = columns()
    power = fit_power(AS_IS, x, np.full(150, 1e6))
    np.testing.assert_allclose(power.powers, PowerTransformer().fit(x).lambdas_, atol=2e-4)


def test_powers_are_the_mode_under_their_prior() -> None:
    x = columns(40)

    def lost(power: float, cells: np.ndarray) -> float:
        return float(-yeojohnson_llf(power, cells) - norm.logpdf(power, 1, 0.5))

    oracle = [
        minimize_scalar(lost, (-1, 2), args=(column[~np.isnan(column)],), tol=1e-10).x
        for column in x.T
    ]
    np.testing.assert_allclose(fit_power(AS_IS, x, np.ones(40)).powers, oracle, atol=2e-4)


def some_transforms() -> PowerTransforms:
    """Maps that bend either way, one a logarithm, one that changes nothing."""
    n = 4
    return PowerTransforms(
        np.array([1.0, -2.0, 0.0, 3.0]),
        np.array([2.0, 0.5, 1.0, 4.0]),
        np.array([-0.7, 2.0, 0.0, 1.0]),
        np.full(n, -2.5),
        np.full(n, 3.0),
    )


def test_maps_are_undone_rise_and_have_the_derivative_that_they_say() -> None:
    transforms = some_transforms()
    t = np.linspace(-9, 9, 4001)[:, None]
    x = transforms.location + transforms.scale * t
    mapped = transforms.forward(x)
    assert (np.diff(mapped, axis=0) > 0).all()
    np.testing.assert_allclose(transforms.backward(mapped), x, rtol=1e-9, atol=1e-9)
    step = 1e-6
    slope = (transforms.forward(x + step) - transforms.forward(x - step)) / (2 * step)
    inside = (np.abs(t - 3.0) > 1e-4) & (np.abs(t + 2.5) > 1e-4)
    np.testing.assert_allclose(
        np.log(slope)[inside[:, 0]], transforms.with_log_slope(x)[1][inside[:, 0]], atol=1e-6
    )


def test_a_power_of_one_changes_nothing_and_far_cells_stay_finite() -> None:
    transforms = some_transforms()
    x = np.array([[1e200, -1e200, 1e300, 1e300], [np.nan, 1.0, 2.0, -5.0]])
    mapped = transforms.forward(x)
    assert np.isfinite(mapped[0]).all()
    assert np.isnan(mapped[1, 0])
    np.testing.assert_allclose(mapped[:, 3], x[:, 3], rtol=1e-12)
    held = transforms.within_range(x)
    low, high = (
        transforms.location - 5.25 * transforms.scale,
        transforms.location + 5.75 * transforms.scale,
    )
    assert ((held >= low) & (held <= high) | np.isnan(held)).all()


def test_made_cells_have_the_sign_of_the_column() -> None:
    rng = np.random.default_rng(0)
    positive = np.exp(rng.normal(size=80))
    cells = np.c_[positive, -positive, np.floor(positive), rng.normal(size=80)]
    units = Standardisation(cells.mean(axis=0), cells.std(axis=0))
    transforms = fit_power(units, cells, np.ones(80))
    low, high = transforms.within_range(np.array([[-1e9], [1e9]]) * np.ones(4))
    np.testing.assert_allclose(low[[0, 2]], [positive.min() / 2, 0], atol=1e-12)
    assert high[1] == pytest.approx(-positive.min() / 2)
    spread = np.ptp(cells, axis=0) / 2
    np.testing.assert_allclose(high[[0, 2, 3]], (cells.max(axis=0) + spread)[[0, 2, 3]])
    np.testing.assert_allclose(low[[1, 3]], (cells.min(axis=0) - spread)[[1, 3]])
    np.testing.assert_allclose(transforms.within_range(cells), cells)


def test_turning_a_column_round_turns_its_map_round() -> None:
    x = columns()
    transforms, turned = (fit_power(AS_IS, sign * x, np.ones(150)) for sign in (1, -1))
    np.testing.assert_allclose(turned.powers, 2 - transforms.powers, atol=1e-4)
    np.testing.assert_allclose(turned.forward(-x), -transforms.forward(x), atol=1e-3)


def test_rows_keep_what_their_maps_did_to_their_density() -> None:
    transforms = some_transforms()
    real = np.array([[0.0, np.nan, 2.0, 5.0], [np.nan] * 4])
    rows = Observations(real, np.zeros((2, 0), int), np.zeros(2, int), np.ones(2))
    mapped = transforms.applied(rows)
    change = transforms.with_log_slope(real)[1][0]
    np.testing.assert_allclose(mapped.log_jacobian, [np.nansum(change), 0.0])
    np.testing.assert_array_equal(
        mapped.take(np.array([1, 0])).log_jacobian[::-1], mapped.log_jacobian
    )


@pytest.mark.parametrize("fit", [fit_half_rank, fit_power])
def test_weight_two_is_the_row_twice(fit: object) -> None:
    x = columns(20)
    weights = np.r_[2.0, np.ones(19)]
    twice = np.r_[x[:1], x]
    np.testing.assert_allclose(
        fit(AS_IS, x, weights).forward(x), fit(AS_IS, twice, np.ones(21)).forward(x), atol=1e-7
    )


@pytest.mark.parametrize("fit", [fit_half_rank, fit_power])
def test_columns_without_spread_or_cells_stay_finite(fit: object) -> None:
    x = np.column_stack([np.zeros(5), np.full(5, np.nan), [np.nan, 2.0, np.nan, np.nan, np.nan]])
    mapped = fit(AS_IS, x, np.ones(5)).forward(np.array([[0.0, 1.0, np.nan], [3.0, np.nan, 2.0]]))
    assert np.isfinite(mapped[0, :2]).all()
    assert np.isnan(mapped[0, 2])
    assert np.isnan(mapped[1, 1])
    assert np.isfinite(mapped[1, 2])


@pytest.mark.parametrize("fit", [fit_half_rank, fit_power])
def test_rows_without_reals_are_mapped_to_themselves(fit: object) -> None:
    none = np.zeros((4, 0))
    units = Standardisation(np.zeros(0), np.ones(0))
    assert fit(units, none, np.ones(4)).forward(none).shape == (4, 0)
