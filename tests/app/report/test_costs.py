"""Decisions at given costs: never dearer than they must be."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.app.report.costs import compute, costs_of, decisions
from bayesrbf.app.report.held_out import HeldOutRows
from bayesrbf.fit.decisions import mistakes

CLASSES, BOTH = ("a", "b", "c"), ("this model", "flat")


def held_out(probabilities: np.ndarray, labels: np.ndarray) -> HeldOutRows:
    """A classifier and one that knows nothing; the last row is never scored."""
    folds = np.r_[np.zeros(labels.size - 1, dtype=int), -1]
    flat = np.full(probabilities.shape, 1 / 3)
    return HeldOutRows(CLASSES, labels, folds, {"this model": probabilities, "flat": flat})


@pytest.fixture(scope="module")
def calibrated() -> HeldOutRows:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3) / 2, 6000)
    return held_out(p, (p.cumsum(axis=1) < rng.random((6000, 1))).sum(axis=1))


def test_costs_are_worth_minding_where_probabilities_are_honest(calibrated: HeldOutRows) -> None:
    found = compute(calibrated, {"b": 10.0}, BOTH)
    assert found is not None
    model, flat, constant = (cost for _, cost in found.rows)
    rows = calibrated.scored
    wrong = calibrated.probabilities["this model"][rows].argmax(1) != calibrated.labels[rows]
    ignoring = np.where(calibrated.labels[rows] == 1, 10.0, 1.0)[wrong].sum() / rows.size
    assert model < min(ignoring, constant)
    assert flat == pytest.approx(constant)
    assert found.class_costs == (("a", 1.0), ("b", 10.0), ("c", 1.0))
    assert (found.dearest, found.dearest_cost) == ("b", 10.0)


def test_curves_pass_through_what_was_given(calibrated: HeldOutRows) -> None:
    found = compute(calibrated, {"b": 3.0}, BOTH)
    assert found is not None
    at = int(np.argmin(np.abs(found.along - found.dearest_cost)))
    assert found.along[at] == pytest.approx(3.0)
    for (_, curve), (_, cost) in zip(found.curves, found.rows, strict=True):
        assert curve[at] == pytest.approx(cost)
    (_, best) = found.curves[-1]
    assert (found.curves[0][1] <= best + 0.01).all()
    each = mistakes(np.array([1.0, 0.0, 1.0]))[calibrated.labels[:-1]].mean(axis=0)
    assert best[0] == pytest.approx(min(each))


def test_sentence_curve_and_confusion_are_of_one_rule_in_one_unit(calibrated: HeldOutRows) -> None:
    """Rows off the diagonal times their costs are the sum that the sentence divides by rows."""
    costs = {"a": 2.0, "c": 7.0}
    found = compute(calibrated, costs, BOTH)
    assert found is not None
    rows = calibrated.scored
    decided = decisions(calibrated.probabilities["this model"][rows], CLASSES, costs)
    each = costs_of(CLASSES, costs)
    by_class = [each[c] * ((calibrated.labels[rows] == c) & (decided != c)).sum() for c in range(3)]
    assert found.by_class == pytest.approx(by_class)
    assert sum(found.by_class) / rows.size == pytest.approx(found.rows[0][1])


def test_sure_and_right_costs_nothing() -> None:
    labels = np.array([0, 1, 2, 1, 0])
    found = compute(held_out(np.eye(3)[labels], labels), {"a": 2.0}, BOTH)
    assert found is not None
    assert found.rows[0][1] == 0
    assert not found.curves[0][1][1:-1].any()


def test_no_cost_no_curve(calibrated: HeldOutRows) -> None:
    assert compute(calibrated, {}, BOTH) is None
