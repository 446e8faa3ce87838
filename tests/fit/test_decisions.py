"""Decisions at given costs, against the definition."""

from __future__ import annotations

import numpy as np

from bayesrbf.fit.decisions import mistakes, paid


def test_answer_has_the_least_expected_cost() -> None:
    rng = np.random.default_rng(1)
    p, costs = rng.dirichlet(np.ones(3), 50), np.array([1.0, 7.0, 2.5])
    expected = np.array([[(costs * row).sum() - costs[a] * row[a] for a in range(3)] for row in p])
    for true in range(3):
        cost = paid(p, np.full(50, true), mistakes(costs))
        np.testing.assert_array_equal(cost, costs[true] * (expected.argmin(axis=1) != true))


def test_honest_probabilities_cost_no_more_than_any_constant_decision() -> None:
    """Labels come in the very shares that the probabilities say, so it holds without noise."""
    p = np.repeat([[0.9, 0.1], [0.4, 0.6]], 10, axis=0)
    labels = np.concatenate([[0] * 9 + [1], [0] * 4 + [1] * 6])
    shares = np.linspace(0, 1, 21)
    along = mistakes(np.column_stack([1 - shares, shares]))
    curve = np.array([paid(p, labels, costs).mean() for costs in along])
    assert (curve <= along[:, labels].mean(axis=1).min(axis=1) + 1e-12).all()
    assert curve[0] == curve[-1] == 0
    assert curve.max() < 0.5
