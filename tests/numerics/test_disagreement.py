"""Disagreement of a stack's members: the truth is one kind of model more."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import log_softmax, logit, softmax
from scipy.stats import kstest
from scipy.stats import t as student

from bayesrbf.numerics.stack.disagreement import disagreed, disagreement_factors


@pytest.mark.parametrize("n_members", [2, 3, 7])
def test_factors_times_deviations_are_the_predictive_distribution_of_one_member_more(
    n_members: int,
) -> None:
    rng = np.random.default_rng(0)
    deviations = rng.normal(size=n_members)
    deviations -= deviations.mean()
    moved = disagreement_factors(20_000, np.arange(n_members), rng) @ deviations
    variance = (deviations**2).sum() / (n_members - 1)
    scale = np.sqrt(variance * (1 + 1 / n_members))
    assert kstest(moved / scale, student(n_members - 1).cdf).pvalue > 1e-3


def held(half_width: float) -> float:
    """How often intervals of 90 % hold one member more, their width as it is or planted."""
    rng = np.random.default_rng(1)
    inside = []
    for _ in range(2000):
        members = rng.normal(1.0, 2.0, size=5)
        truth = rng.normal(1.0, 2.0)
        moved = disagreement_factors(400, np.arange(5), rng) @ (members - members.mean())
        low, high = half_width * np.quantile(moved, (0.05, 0.95))
        inside.append(low <= truth - members.mean() <= high)
    return float(np.mean(inside))


def test_intervals_hold_one_member_more_and_half_as_wide_ones_do_not() -> None:
    assert held(1.0) == pytest.approx(0.9, abs=0.02)
    assert held(0.5) < 0.75


def test_one_kind_disagrees_with_none() -> None:
    found = disagreement_factors(3, np.zeros(2, int), np.random.default_rng(0))
    np.testing.assert_array_equal(found, np.zeros((3, 2)))


def test_copies_of_a_member_count_once() -> None:
    """As many draws of three kinds with copies as without are the same draws."""
    kinds, deviations = np.array([0, 1, 0, 2, 0]), np.array([0.5, -1.0, 2.0])
    alone = disagreement_factors(50, np.arange(3), np.random.default_rng(4)) @ deviations
    copied = disagreement_factors(50, kinds, np.random.default_rng(4)) @ deviations[kinds]
    np.testing.assert_allclose(copied, alone, rtol=1e-12)


def test_without_factors_the_pool_stays_and_with_one_factor_the_member_is_said() -> None:
    rng = np.random.default_rng(2)
    members = log_softmax(rng.normal(size=(9, 3, 4)), axis=-1)
    pool = np.log(np.exp(members).mean(axis=1))
    np.testing.assert_allclose(disagreed(members, pool, np.zeros(3)), pool, atol=1e-12)
    np.testing.assert_allclose(
        disagreed(members, pool, np.array([0.0, 1.0, 0.0])), members[:, 1], atol=1e-12
    )


def test_of_two_classes_log_odds_are_moved() -> None:
    rng = np.random.default_rng(3)
    members = log_softmax(rng.normal(size=(6, 2, 2)), axis=-1)
    pool, factors = np.log(np.exp(members).mean(axis=1)), np.array([0.7, -1.2])
    odds = members[..., 1] - members[..., 0]
    centre = logit(np.exp(pool[:, 1]))
    expected = centre + (odds - centre[:, None]) @ factors
    found = softmax(disagreed(members, pool, factors), axis=1)[:, 1]
    np.testing.assert_allclose(logit(found), expected, atol=1e-10)
