"""Figures of one class against the rest: their definitions, and what their intervals hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayesrbf.answers.performance import event_performance
from bayesrbf.answers.scores import (
    LEVEL,
    auroc,
    average_precision,
    decision_curve,
    mean,
    proportion,
)
from bayesrbf.fit.decisions import mistakes, paid

SEEDS = st.integers(0, 10_000)


def rows_of(seed: int, n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    """Scores with ties, and a class of two rows at least."""
    rng = np.random.default_rng(seed)
    positive = rng.random(n) < 0.4
    positive[:2], positive[-2:] = True, False
    return np.round(rng.random(n) + 0.4 * positive, 1), positive


@given(SEEDS)
@settings(deadline=None, max_examples=40)
def test_auroc_is_the_share_of_pairs_in_the_right_order(seed: int) -> None:
    score, positive = rows_of(seed)
    pairs = score[positive][:, None] - score[~positive]
    found = auroc(score, positive)
    assert found.value == pytest.approx((pairs > 0).mean() + (pairs == 0).mean() / 2)
    assert 0 <= found.lower < found.value + 1e-12
    assert found.value - 1e-12 < found.upper <= 1
    other = auroc(-score, positive)
    assert (1 - other.upper, 1 - other.lower) == pytest.approx((found.lower, found.upper))


@given(SEEDS)
@settings(deadline=None, max_examples=40)
def test_average_precision_is_that_of_its_rows(seed: int) -> None:
    score, positive = rows_of(seed)
    each = [positive[score >= one].mean() for one in score[positive]]
    found = average_precision(score, positive)
    assert found.value == pytest.approx(np.mean(each))
    assert 0 <= found.lower <= found.value <= found.upper <= 1
    same = average_precision(np.zeros(positive.size), positive)
    assert same.value == pytest.approx(positive.mean())


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_no_interval_of_a_share_is_empty(share: float) -> None:
    found = proportion(share, 10)
    assert 0 <= found.lower <= share <= found.upper <= 1
    assert found.upper - found.lower > 0.1
    wider = proportion(share, 10, 0.99)
    assert wider.upper - wider.lower > found.upper - found.lower


def test_told_apart_without_error_is_not_certain() -> None:
    positive = np.arange(20) < 8
    found = event_performance("event", positive.astype(float), positive)
    assert found.events == 8
    for one in (found.auroc, found.average_precision, found.sensitivity, found.specificity):
        assert one.value == one.upper == 1
        assert one.lower < 0.95


def test_without_a_row_of_the_class_nothing_is_said() -> None:
    none = np.zeros(5, dtype=bool)
    found = event_performance("event", np.linspace(0, 1, 5), none, decided=none)
    assert np.isnan(
        [found.auroc.value, found.average_precision.value, found.sensitivity.lower]
    ).all()
    assert found.specificity.value == 1


@pytest.mark.parametrize(("rows", "share", "distance"), [(60, 0.5, 1.0), (150, 0.2, 2.0)])
def test_intervals_hold_the_truth_as_often_as_they_promise(
    rows: int, share: float, distance: float
) -> None:
    rng = np.random.default_rng(0)

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
        positive = rng.random(n) < share
        return rng.normal(size=n) + distance * positive, positive

    large = drawn(200_000)
    truth = auroc(*large).value, average_precision(*large).value
    held = np.zeros(2)
    repeats = 300
    for _ in range(repeats):
        table = drawn(rows)
        for i, one in enumerate((auroc(*table), average_precision(*table))):
            held[i] += one.lower <= truth[i] <= one.upper
    slack = 3 * np.sqrt(LEVEL * (1 - LEVEL) / repeats)
    assert (held / repeats > LEVEL - slack).all()


@given(SEEDS, st.floats(0.2, 9.0))
@settings(deadline=None, max_examples=40)
def test_net_benefit_is_cost_in_another_unit(seed: int, dear: float) -> None:
    """A missed row costs ``dear``, one acted on in vain 1: cost = dear (share - net benefit)."""
    rng = np.random.default_rng(seed)
    p, positive = rng.random(40), rng.random(40) < 0.5
    curve = decision_curve(p, positive, np.array([1 / (1 + dear)]))
    cost = paid(np.column_stack([1 - p, p]), positive.astype(int), mistakes(np.array([1.0, dear])))
    assert cost.mean() == pytest.approx(dear * (positive.mean() - curve.model[0]))
    assert (curve.lower <= curve.model).all()
    assert (curve.model <= curve.upper).all()
    assert curve.everybody[0] == pytest.approx(positive.mean() - (1 - positive.mean()) / dear)


def test_mean_of_one_row_has_no_interval() -> None:
    found = mean(np.array([2.0]))
    assert found.value == 2
    assert np.isnan([found.lower, found.upper]).all()


def test_mean_intervals_hold_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    intervals = [mean(rng.normal(1, 2, 8), 0.9) for _ in range(2000)]
    held = [one.lower <= 1.0 <= one.upper for one in intervals]
    assert np.mean(held) == pytest.approx(0.9, abs=0.025)


@pytest.mark.parametrize("of", [1, 2, 50])
def test_intervals_of_shares_are_mirrored_and_never_empty(of: int) -> None:
    for hits in range(of + 1):
        found, other = proportion(hits / of, of), proportion((of - hits) / of, of)
        assert 0 <= found.lower < found.upper <= 1
        assert found.lower <= hits / of <= found.upper
        assert (other.lower, other.upper) == pytest.approx((1 - found.upper, 1 - found.lower))
