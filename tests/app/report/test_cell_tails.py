"""Cells are listed at the rate that is told, also where tails are heavier than the density's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from bayesrbf.app.tails import tails_beside
from tests.cases import some_quick

RATE = 0.1


def listed(surprise: np.ndarray) -> np.ndarray:
    """Places of the cells that look wrong."""
    return np.flatnonzero(false_discovery_control(tails_beside(surprise, surprise)) <= RATE)


def heavy(rng: np.random.Generator, n: int, shape: float) -> np.ndarray:
    """Surprises with a generalised Pareto law; exponential where the shape is 0."""
    exponential = rng.exponential(size=n)
    return exponential if shape == 0 else np.expm1(shape * exponential) / shape


@pytest.mark.parametrize("n", some_quick([200, 2000, 10_000], 2000))
@pytest.mark.parametrize("shape", [0.0, 0.25])
def test_a_table_without_errors_has_a_cell_listed_once_in_ten_at_most(n: int, shape: float) -> None:
    rng = np.random.default_rng(n)
    tables = 60
    wrong = sum(listed(heavy(rng, n, shape)).size > 0 for _ in range(tables))
    assert wrong <= RATE * tables


@pytest.mark.parametrize("shape", some_quick([0.0, 0.25], 0.25))
@pytest.mark.parametrize("share", [0.001, 0.01])
def test_errors_are_found_and_one_in_ten_of_the_list_is_none(shape: float, share: float) -> None:
    rng = np.random.default_rng(0)
    n = 10_000
    k = round(share * n)
    wrong, found = [], []
    for _ in range(20):
        surprise = np.append(heavy(rng, n - k, shape), rng.uniform(80, 700, k))
        places = listed(surprise)
        found.append((places >= n - k).sum() / k)
        wrong.append((places < n - k).sum() / max(places.size, 1))
    assert np.mean(found) > 0.8
    assert np.mean(wrong) <= RATE


def test_tails_are_shares_in_the_body_and_fall_with_the_surprise() -> None:
    surprise = np.random.default_rng(1).exponential(size=4000)
    tails, order = tails_beside(surprise, surprise), np.argsort(surprise)
    assert (np.diff(tails[order]) <= 0).all()
    body = surprise < np.quantile(surprise, 0.9)
    shares = 1 - np.argsort(order) / surprise.size
    np.testing.assert_allclose(tails[body], shares[body], atol=1 / surprise.size)
    assert ((tails > 0) & (tails <= 1)).all()


@pytest.mark.parametrize("surprise", [[], [1.0], [2.0, 2.0, 2.0], [0.0] * 99 + [1.0]])
def test_few_or_equal_cells_have_tails(surprise: list[float]) -> None:
    tails = tails_beside(np.array(surprise), np.array(surprise))
    assert tails.shape == (len(surprise),)
    assert ((tails > 0) & (tails <= 1)).all()


@pytest.mark.parametrize("shape", [0.0, 0.25])
def test_new_cells_are_compared_with_others(shape: float) -> None:
    """Of new tables as the old one few have a cell listed; errors in the old one hide none."""
    rng = np.random.default_rng(5)
    reference = np.append(heavy(rng, 2000, shape), rng.uniform(80, 700, 20))
    wrong = [
        (false_discovery_control(tails_beside(reference, heavy(rng, 500, shape))) <= RATE).any()
        for _ in range(60)
    ]
    assert sum(wrong) <= RATE * 60
    new = np.append(heavy(rng, 500, shape), [300.0] * 3)
    assert (false_discovery_control(tails_beside(reference, new))[-3:] <= RATE).all()
