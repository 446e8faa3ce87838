"""Disagreement of a stack's members: the truth is one kind of model more."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, log_softmax, logit, softmax
from scipy.stats import beta, kstest
from scipy.stats import t as student

from bayesrbf.families.stack.intervals import (
    NOTHING_KNOWN,
    bounded_spread,
    disagreed,
    disagreement_draws,
    squared_scale,
    stretch_of_median,
    variance_of_kinds,
)

STAY = np.zeros(4)


def of_two_classes(odds: np.ndarray) -> np.ndarray:
    """Log probabilities of two classes from the log odds of the second."""
    return log_softmax(np.stack([np.zeros(odds.shape), odds], axis=-1), axis=-1)


def moves(n_kinds: int, table_variance: float, n_draws: int = 20_000) -> tuple:
    """Factors of kinds and shifts of two classes."""
    rng = np.random.default_rng(0)
    return disagreement_draws(n_draws, np.arange(n_kinds), 2, table_variance, rng)


@pytest.mark.parametrize("n_kinds", [2, 3, 7])
@pytest.mark.parametrize("table_variance", [0.0, 1.7])
def test_draws_of_log_odds_are_students_t_of_the_scale_of_row_and_table(
    n_kinds: int, table_variance: float
) -> None:
    deviations = np.random.default_rng(1).normal(size=n_kinds)
    factors, shifts = moves(n_kinds, table_variance)
    moved = factors @ deviations + shifts[:, 1] - shifts[:, 0]
    row = (deviations**2).sum() / (n_kinds - 1)
    scale = np.sqrt((n_kinds + 1) / n_kinds * (row + table_variance) / 2)
    assert kstest(moved / scale, student(2 * (n_kinds - 1)).cdf).pvalue > 1e-3


def test_ends_of_200_draws_vary_less_than_those_of_independent_draws() -> None:
    deviations, even, independent = np.array([0.5, -1.0, 2.0]), [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        factors, shifts = disagreement_draws(200, np.arange(3), 2, 1.0, rng)
        moved = factors @ deviations + shifts[:, 1] - shifts[:, 0]
        even.append(np.quantile(moved, 0.95))
        scale = np.sqrt(4 / 3 * ((deviations**2).sum() / 2 + 1) / 2)
        independent.append(np.quantile(scale * rng.standard_t(4, 200), 0.95))
    assert np.mean(even) == pytest.approx(student(4).ppf(0.95) * scale, rel=0.1)
    assert np.std(even) < 0.8 * np.std(independent)


def held(half_width: float) -> float:
    """How often intervals of 90 % hold one kind more, their width as it is or planted.

    All rows of a table are of one variance, of which the rows held out tell as much as the row.
    """
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(1500):
        kinds, truth = rng.normal(1.0, 2.0, size=5), rng.normal(1.0, 2.0)
        deviations = kinds - kinds.mean()
        of_table = rng.normal(0.0, 2.0, size=5).var(ddof=1)
        factors, shifts = disagreement_draws(400, np.arange(5), 2, of_table, rng)
        moved = factors @ deviations + shifts[:, 1] - shifts[:, 0]
        low, high = half_width * np.quantile(moved, (0.05, 0.95))
        inside.append(low <= truth - kinds.mean() <= high)
    return float(np.mean(inside))


@pytest.mark.slow
def test_intervals_hold_one_kind_more_and_half_as_wide_ones_do_not() -> None:
    assert held(1.0) == pytest.approx(0.9, abs=0.025)
    assert held(0.5) < 0.75


def test_the_scale_lies_between_that_of_the_row_and_that_of_the_table() -> None:
    """In units of the squared scale: a row's own variance is drawn towards the table's."""
    quiet, loud, table = np.array([[0.0]]), np.array([[9.0]]), 4.0
    alike = squared_scale(np.array([[table]]), table, 3)
    assert squared_scale(np.zeros((1, 1)), 0.0, 3) < squared_scale(quiet, table, 3) < alike
    assert alike < squared_scale(loud, table, 3) < squared_scale(loud, 9.0, 3)


def test_members_that_converge_leave_no_spread() -> None:
    """Deviations and their variance over the table shrink alike, and so do all draws."""
    deviations = np.array([0.5, -1.0, 2.0])
    spreads = []
    for size in (1.0, 0.1, 0.0):
        factors, shifts = moves(3, size**2, n_draws=200)
        spreads.append((factors @ (size * deviations) + shifts[:, 1] - shifts[:, 0]).std())
    assert spreads[1] == pytest.approx(0.1 * spreads[0])
    assert spreads[2] == 0


@pytest.mark.parametrize("mean", [0.01, 0.3, 0.5, 0.9, 0.995])
@pytest.mark.parametrize("variance", [0.1, 1.0, 4.0])
def test_draws_around_the_stretched_median_have_the_pool_as_their_mean(
    mean: float, variance: float
) -> None:
    """The scale of three kinds is 2/3 of the sum of both variances; to two percent of MacKay."""
    stretch = stretch_of_median(squared_scale(np.array([[variance * 3 / 4]]), variance * 3 / 4, 3))
    z = np.random.default_rng(0).standard_normal(200_000)
    spread = np.sqrt(variance) * z
    moved, unmoved = (expit(s * logit(mean) + spread).mean() for s in (stretch.item(), 1.0))
    assert moved == pytest.approx(mean, abs=0.02)
    assert abs(moved - mean) <= abs(unmoved - mean) + 2e-3


def test_one_who_knows_nothing_spreads_as_jeffreys_prior() -> None:
    odds = logit(beta(0.5, 0.5).ppf((np.arange(200_000) + 0.5) / 200_000))
    assert odds.std() == pytest.approx(NOTHING_KNOWN, rel=1e-3)


def test_no_row_spreads_further_from_its_median_than_one_who_knows_nothing() -> None:
    """However many rows were held out; a row that is less known than that stays as it is."""
    rng = np.random.default_rng(0)
    spread = np.maximum(1, 10 ** rng.uniform(-2, 4, size=500))
    scale, median = 10 ** rng.uniform(-4, 1, size=(500, 3)), rng.normal(0, 3, size=(500, 3))
    found = bounded_spread(spread, scale, median)
    nothing = logit(beta(0.5, 0.5).ppf((np.arange(2000) + 0.5) / 2000))
    distance = np.array([np.mean((nothing - m) ** 2) for m in median.flat]).reshape(median.shape)
    scales, distances = scale.sum(axis=1), distance.sum(axis=1)
    assert (found**2 * scales <= np.maximum(scales, distances) * 1.01).all()
    assert ((found >= 1) & (found <= spread)).all()
    free = spread**2 * scales <= 0.99 * distances
    assert 50 < free.sum() < 450
    np.testing.assert_array_equal(found[free], spread[free])
    np.testing.assert_array_equal(bounded_spread(spread, np.zeros((500, 3)), median), spread)


def test_one_kind_disagrees_with_none() -> None:
    kinds, rng = np.zeros(2, int), np.random.default_rng(0)
    factors, shifts = disagreement_draws(3, kinds, 4, 0.0, rng)
    np.testing.assert_array_equal(factors, np.zeros((3, 2)))
    np.testing.assert_array_equal(shifts, np.zeros((3, 4)))
    members = log_softmax(rng.normal(size=(5, 2, 4)), axis=-1)
    np.testing.assert_array_equal(variance_of_kinds(members, members[:, 0], kinds), 0)


def test_copies_of_a_member_count_once() -> None:
    """Copies of members change no draw of three kinds."""
    kinds, deviations = np.array([0, 1, 0, 2, 0]), np.array([0.5, -1.0, 2.0])
    alone = disagreement_draws(50, np.arange(3), 2, 1.0, np.random.default_rng(4))
    copied = disagreement_draws(50, kinds, 2, 1.0, np.random.default_rng(4))
    np.testing.assert_allclose(copied[0] @ deviations[kinds], alone[0] @ deviations, rtol=1e-12)
    np.testing.assert_array_equal(copied[1], alone[1])
    members = of_two_classes(np.random.default_rng(5).normal(size=(6, 3)))
    pool = members.mean(axis=1)
    np.testing.assert_allclose(
        variance_of_kinds(members[:, kinds], pool, kinds),
        variance_of_kinds(members, pool, np.arange(3)),
    )


def test_the_variance_is_that_of_the_log_odds() -> None:
    rng = np.random.default_rng(6)
    odds = rng.normal(size=(8, 4))
    members, pool = of_two_classes(odds), of_two_classes(odds.mean(axis=1))
    found = variance_of_kinds(members, pool, np.arange(4))
    np.testing.assert_allclose(found, np.tile(odds.var(axis=1, ddof=1)[:, None], 2))


def test_without_factors_the_pool_stays_and_with_one_factor_the_member_is_said() -> None:
    rng = np.random.default_rng(2)
    members = log_softmax(rng.normal(size=(9, 3, 4)), axis=-1)
    pool = np.log(np.exp(members).mean(axis=1))
    np.testing.assert_allclose(disagreed(members, pool, np.zeros(3), STAY), pool, atol=1e-12)
    np.testing.assert_allclose(
        disagreed(members, pool, np.array([0.0, 1.0, 0.0]), STAY), members[:, 1], atol=1e-12
    )


def test_rows_that_spread_twice_as_far_move_twice_as_far() -> None:
    members, pool = np.log(np.full((2, 3, 2), 0.5)), np.log(np.full((2, 2), 0.5))
    shift = np.array([0.4, -0.1])
    moved = disagreed(members, pool, np.zeros(3), shift, np.array([1.0, 2.0]))
    np.testing.assert_allclose(moved[:, 0] - moved[:, 1], [0.5, 1.0])


def test_of_two_classes_log_odds_are_moved() -> None:
    rng = np.random.default_rng(3)
    odds = rng.normal(size=(6, 2))
    members = of_two_classes(odds)
    pool, factors = np.log(np.exp(members).mean(axis=1)), np.array([0.7, -1.2])
    centre = logit(np.exp(pool[:, 1]))
    expected = centre + (odds - centre[:, None]) @ factors + 0.8
    found = softmax(disagreed(members, pool, factors, np.array([-0.5, 0.3])), axis=1)[:, 1]
    np.testing.assert_allclose(logit(found), expected, atol=1e-10)
