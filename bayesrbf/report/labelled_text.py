"""A model judged on labelled new rows, as text for a terminal."""

from __future__ import annotations

from typing import Final

import numpy as np

from bayesrbf.posterior.held_out import Interval
from bayesrbf.report.check import printed
from bayesrbf.report.labelled import Labelled
from bayesrbf.report.row import aligned
from bayesrbf.report.words import clipped, number, percent, plural

FIGURES: Final = {
    "AUROC": "auroc",
    "average precision": "average_precision",
    "sensitivity": "sensitivity",
    "specificity": "specificity",
}
"""Figures of a class against the rest, by their heading."""


def lines_of(told: Labelled) -> list[str]:
    """The judgement as text for a terminal."""
    interval = f"{percent(told.prob)} interval"
    scores = [["score", "", "here", interval, "expected", "frequencies"]]
    for one in told.scores:
        between = f"{number(one.lower)} to {number(one.upper)}"
        figures = [number(one.value), between, number(one.expected), number(one.frequencies)]
        scores.append([one.name, "", *figures])
    classes = [["class", "", "rows", "share", interval, "expected", "training"]]
    for each in told.classes:
        between = f"{percent(each.lower)} to {percent(each.upper)}"
        shares = [percent(each.share), between, percent(each.expected), percent(each.trained)]
        classes.append([clipped(each.label, 24), "", str(each.rows), *shares])
    rest = [
        [clipped(label, 24), "", *(_between(getattr(one, name)) for name in FIGURES.values())]
        for label, one in told.against_rest.items()
        if one.rows
    ]
    without = f"; {plural(told.unlabelled, 'row')} without a label" if told.unlabelled else ""
    return [
        f"{plural(told.rows, 'row')} labelled by {clipped(told.target)}{without}",
        *aligned(scores),
        "  expected: by the model, if its probabilities are right; frequencies: of the class "
        "frequencies of training.",
        *aligned(classes),
        *aligned([["against the rest", "", *FIGURES], *rest]),
        *printed(told.remarks),
    ]


def _between(found: Interval) -> str:
    """A figure and its interval; a dash where no row bears on it."""
    if np.isnan(found.value):
        return number(found.value)
    return f"{number(found.value)} ({number(found.lower)} to {number(found.upper)})"
