"""Decisions at given costs: never dearer than they must be."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.posterior.decisions import constant, mistakes
from bayesrbf.report.costs import read_costs
from bayesrbf.report.validate import HeldOut

CLASSES, BOTH = ("a", "b", "c"), ("this model", "flat")


def held_out(probabilities: np.ndarray, labels: np.ndarray) -> HeldOut:
    """A classifier and one that knows nothing; the last row is never scored."""
    folds = np.r_[np.zeros(labels.size - 1, dtype=int), -1]
    flat = np.full(probabilities.shape, 1 / 3)
    return HeldOut(CLASSES, labels, folds, {"this model": probabilities, "flat": flat})


@pytest.fixture(scope="module")
def calibrated() -> HeldOut:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3) / 2, 6000)
    return held_out(p, (p.cumsum(axis=1) < rng.random((6000, 1))).sum(axis=1))


def test_costs_are_worth_minding_where_probabilities_are_honest(calibrated: HeldOut) -> None:
    found = read_costs(calibrated, {"b": 10.0}, BOTH)
    assert found is not None
    model, flat, ignoring, constant = (cost for _, cost in found.rows)
    assert model < min(ignoring, constant)
    assert flat == pytest.approx(constant)
    assert found.given == (("a", 1.0), ("b", 10.0), ("c", 1.0))
    assert (found.dearest, found.here) == ("b", pytest.approx(10 / 11))


def test_curves_pass_through_what_was_given(calibrated: HeldOut) -> None:
    found = read_costs(calibrated, {"b": 3.0}, BOTH)
    assert found is not None
    at = int(np.argmin(np.abs(found.shares - found.here)))
    assert found.shares[at] == pytest.approx(0.75)
    for (_, curve), (_, cost) in zip(found.curves[:2], found.rows, strict=False):
        assert curve[at] == pytest.approx(cost / 4)
    (_, best) = found.curves[-1]
    assert (found.curves[0][1] <= best + 0.01).all()
    assert best[0] == pytest.approx(
        constant(calibrated.labels[:-1], mistakes(np.array([1.0, 0.0, 1.0])))
    )
    assert best[-1] == 0


def test_sure_and_right_costs_nothing() -> None:
    labels = np.array([0, 1, 2, 1, 0])
    found = read_costs(held_out(np.eye(3)[labels], labels), {"a": 2.0}, BOTH)
    assert found is not None
    assert found.rows[0][1] == 0
    assert not found.curves[0][1][1:-1].any()


def test_no_cost_no_curve(calibrated: HeldOut) -> None:
    assert read_costs(calibrated, {}, BOTH) is None
