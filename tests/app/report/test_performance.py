"""Figures of decisions are shares of counted rows, for the class that is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.answers.performance import event_performance
from bayesrbf.answers.scores import proportion
from bayesrbf.app.report.held_out import HeldOutRows
from bayesrbf.app.report.options import Focus
from bayesrbf.app.report.performance import Judged, compute


def performance(costs: dict[str, float], n_classes: int = 2) -> tuple[Judged, HeldOutRows]:
    """Figures of probabilities and labels that are drawn from them."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.r_[np.ones(n_classes - 1), 0.5], 300)
    labels = (p.cumsum(1) < rng.random((300, 1))).sum(1)
    classes = tuple("abcdef"[:n_classes])
    held_out = HeldOutRows(classes, labels, np.arange(300) % 5, {"own": p, "other": p})
    return compute(held_out, Focus(costs), "own", "other"), held_out


@pytest.mark.parametrize(
    ("costs", "name", "why", "threshold"),
    [
        ({}, "b", "the rarer class", 0.5),
        ({"a": 4.0}, "a", "the class whose mistakes cost most", 0.2),
        ({"b": 9.0}, "b", "the class whose mistakes cost most", 0.1),
    ],
)
def test_figures_are_counts_at_the_threshold(
    costs: dict[str, float], name: str, why: str, threshold: float
) -> None:
    found, held_out = performance(costs)
    assert found.event is not None
    assert (found.event.name, found.event.why) == (name, why)
    assert found.event.threshold == pytest.approx(threshold)
    column = held_out.classes.index(name)
    called = held_out.probabilities["own"][:, column] >= found.event.threshold
    event = held_out.labels == column
    ((_, figures, _),) = found.classes
    hits = int((called & event).sum())
    assert figures.sensitivity == proportion(hits / event.sum(), int(event.sum()))
    assert figures.ppv == proportion(hits / called.sum(), int(called.sum()))
    rest = int((~called & ~event).sum())
    assert figures.specificity == proportion(rest / (~event).sum(), int((~event).sum()))
    assert figures.npv == proportion(rest / (~called).sum(), int((~called).sum()))
    curve = found.model.reliability
    assert curve.mass.sum() == 300
    assert curve.observed @ curve.mass == pytest.approx(event.sum())


def test_of_many_classes_the_most_probable_one_is_judged() -> None:
    found, held_out = performance({}, 3)
    assert found.event is None
    assert len(found.classes) == 3
    right = held_out.probabilities["own"].argmax(1) == held_out.labels
    curve = found.model.reliability
    assert curve.observed @ curve.mass == pytest.approx(right.sum())


def test_no_row_called_so_has_no_predictive_value() -> None:
    positive = np.array([True, False])
    found = event_performance("event", np.array([0.2, 0.1]), positive)
    assert np.isnan(found.ppv.value)
    assert found.npv.value == 0.5
    assert found.sensitivity.value == 0.0
