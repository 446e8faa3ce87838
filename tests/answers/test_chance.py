"""Laws of counts equal enumeration, and alarms are no more frequent than promised."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from bayesrbf.answers.scores import (
    beyond_chance,
    counted,
    holm,
    improbable_labels,
    poisson_binomial,
    two_sided,
)


def labels_of(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Labels drawn from probabilities."""
    return np.asarray((p.cumsum(axis=1)[:, :-1] < rng.random((len(p), 1))).sum(axis=1))


@given(st.lists(st.floats(0, 1), max_size=7))
@settings(deadline=None, max_examples=50)
def test_law_of_a_count_is_that_of_all_outcomes(shares: list[float]) -> None:
    p = np.array(shares, dtype=float)
    slow = np.zeros(p.size + 1)
    for outcome in product([0, 1], repeat=p.size):
        one = np.array(outcome, dtype=bool)
        slow[one.sum()] += np.prod(np.where(one, p, 1 - p))
    np.testing.assert_allclose(poisson_binomial(p), slow, atol=1e-12)


def test_equal_trials_are_binomial() -> None:
    law = poisson_binomial(np.full(1000, 0.03))
    np.testing.assert_allclose(law, binom.pmf(np.arange(1001), 1000, 0.03), atol=1e-12)


def test_tails_of_a_count_are_no_smaller_than_they_say() -> None:
    p = np.random.default_rng(0).random(40)
    law = poisson_binomial(p)
    tails = np.array([two_sided(p, k) for k in range(41)])
    for level in (0.01, 0.05, 0.2):
        assert law[tails <= level].sum() <= level
    found = counted(p, 3)
    assert law[found.lower : found.upper + 1].sum() >= 0.9
    assert found.lower <= found.expected <= found.upper


def test_expected_number_of_improbable_labels_is_that_of_drawn_ones() -> None:
    rng = np.random.default_rng(1)
    p = rng.dirichlet([0.3, 0.3, 0.3], 200)
    numbers = [improbable_labels(p, labels_of(p, rng), 0.05) for _ in range(400)]
    found = np.array([one.number for one in numbers])
    said = numbers[0]
    assert found.mean() == pytest.approx(said.expected, abs=3 * found.std() / 20)
    inside = ((found >= said.lower) & (found <= said.upper)).mean()
    assert inside > 0.86


def test_labels_of_a_calibrated_model_are_seldom_listed() -> None:
    rng = np.random.default_rng(2)
    p = rng.dirichlet([0.2, 0.2], 150)
    listed = [beyond_chance(p, labels_of(p, rng), 0.1).size > 0 for _ in range(300)]
    assert np.mean(listed) < 0.1 + 3 * np.sqrt(0.09 / 300)


def test_labels_that_were_changed_are_listed_and_few_others() -> None:
    rng = np.random.default_rng(3)
    p = rng.dirichlet([0.02, 0.02], 400)
    labels = labels_of(p, rng)
    sure = np.flatnonzero(p.max(axis=1) > 0.9999)[:15]
    labels[sure] = 1 - p[sure].argmax(axis=1)
    listed = beyond_chance(p, labels, 0.1)
    assert set(sure) <= set(listed.tolist())
    assert listed.size <= 15 / 0.9 + 2
    given_p = p[listed, labels[listed]]
    assert (np.diff(given_p) >= 0).all()


def test_holm_keeps_its_promise_over_all_tests() -> None:
    rng = np.random.default_rng(4)
    wrong = [holm(rng.random(30), 0.05).any() for _ in range(2000)]
    assert np.mean(wrong) == pytest.approx(0.05, abs=0.015)
    assert holm(np.array([1e-9, 0.5, 1e-8]), 0.05).tolist() == [True, False, True]
    assert holm(np.zeros(0), 0.05).size == 0
