"""New rows whose labels are known: how good a model is on them, and what has drifted.

Scores stand beside what the model expects of them if its probabilities are right, and beside the
class frequencies of training as the answer to every row. A drift is a finding where it is beyond
what chance brings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from bayesrbf.posterior.decisions import expected_costs, mistakes, paid
from bayesrbf.posterior.held_out import (
    Interval,
    OneAgainstRest,
    mean,
    one_against_rest,
    proportion,
)
from bayesrbf.posterior.scores import LEAST, Labels, Probabilities, brier, correct, log_loss
from bayesrbf.reading import TableError
from bayesrbf.report.check import Remark, printed
from bayesrbf.report.costs import costs_of, decisions
from bayesrbf.report.drift import (
    LISTED,
    PROB,
    CostMatrix,
    Shares,
    calibration_remark,
    gain,
    label_shift,
    saving,
    slope_of_calibration,
    strange_labels,
)
from bayesrbf.report.row import aligned
from bayesrbf.report.words import clipped, listing, number, percent, plural

LEAST_ROWS: Final = 2
"""Labelled rows that an interval needs."""

FIGURES: Final = {
    "AUROC": "auroc",
    "average precision": "average_precision",
    "sensitivity": "sensitivity",
    "specificity": "specificity",
}
"""Figures of a class against the rest, by their heading."""


@dataclass(frozen=True)
class ScoredBy:
    """One score on the new rows; NaN where there is no such thing."""

    name: str
    value: float
    lower: float
    upper: float
    expected: float  # By the model itself, were its probabilities right.
    frequencies: float  # Of the class frequencies of training as the answer to every row.


@dataclass(frozen=True)
class Frequency:
    """The share of a class among the labelled new rows, with its interval."""

    label: str
    rows: int
    share: float
    lower: float
    upper: float
    expected: float  # Mean probability of the class by the model.
    trained: float


@dataclass(frozen=True)
class Labelled:
    """A model judged on labelled new rows."""

    target: str
    rows: int  # With a label that training had.
    unlabelled: int
    prob: float  # Of every interval.
    costs: Mapping[str, float]  # Of a mistaken row by class; empty where none was given.
    scores: Sequence[ScoredBy]
    classes: Sequence[Frequency]
    against_rest: Mapping[str, OneAgainstRest]
    """Every class against the rest; a row counts as of the class that is decided."""
    remarks: Sequence[Remark]

    @property
    def found(self) -> bool:
        """Whether anything is a finding."""
        return any(remark.found for remark in self.remarks)


def judge_labelled(
    model: Any, X: pd.DataFrame, y: pd.Series, costs: Mapping[str, float] | None = None
) -> Labelled:
    """Score a model on labelled new rows and say what has drifted.

    With costs of mistaken rows by class, rows are decided at least expected cost; without them
    a row counts as of its most probable class.
    """
    costs = costs or {}
    classes = [str(label) for label in model.classes_]
    known = y.isin(classes).to_numpy()
    if known.sum() < LEAST_ROWS:
        raise TableError(
            f"Column {str(y.name)!r} labels {plural(int(known.sum()), 'row')} with a class of the "
            f"model ({listing(classes, LISTED)}); an interval needs at least {LEAST_ROWS}."
        )
    labels = np.array([classes.index(label) for label in y[known]])
    p = np.asarray(model.predict_proba(X[known]))
    trained = copy(model).adapt_prior(X)["trained"].to_numpy()
    counts = np.bincount(labels, minlength=len(classes))
    decided = decisions(p, classes, costs)
    given = mistakes(costs_of(classes, costs))
    return Labelled(
        target=str(y.name),
        rows=labels.size,
        unlabelled=int(y.isna().sum()),
        prob=PROB,
        costs=dict(costs),
        scores=[
            *_scores(p, labels, trained),
            *([_cost(p, labels, trained, given)] if costs else []),
        ],
        classes=[
            _frequency(label, n, labels.size, expected, before)
            for label, n, expected, before in zip(
                classes, counts.tolist(), p.mean(0).tolist(), trained.tolist(), strict=True
            )
        ],
        against_rest={
            label: one_against_rest(p[:, c], decided == c, labels == c)
            for c, label in enumerate(classes)
        },
        remarks=[
            *strange_labels(y[~known]),
            gain(p, labels, trained, classes),
            *([saving(p, labels, given)] if costs else []),
            calibration_remark(p, labels),
            label_shift(p, labels, trained, _labelled_before(model)),
        ],
    )


def _frequency(label: str, rows: int, of: int, expected: float, trained: float) -> Frequency:
    """The share of a class, with its interval."""
    found = proportion(rows / of, of, PROB)
    return Frequency(label, rows, found.value, found.lower, found.upper, expected, trained)


def _labelled_before(model: Any) -> int:
    """Training rows with a label."""
    rows = model.rows_
    return round(float(rows.weights[rows.labels >= 0].sum()))


def _scores(p: Probabilities, labels: Labels, trained: Shares) -> Iterator[ScoredBy]:
    """Every score with its interval, beside what is expected and the class frequencies."""
    same = np.tile(trained, (labels.size, 1))
    entropy = -(p * np.log(np.clip(p, LEAST, 1))).sum(1)
    for name, score, expected in (
        ("log loss", log_loss, entropy),
        ("Brier score", brier, 1 - (p**2).sum(1)),
    ):
        found = mean(score(p, labels), PROB)
        low, base = max(0.0, found.lower), float(score(same, labels).mean())
        yield ScoredBy(name, found.value, low, found.upper, float(expected.mean()), base)
    right = proportion(float(correct(p, labels).mean()), labels.size, PROB)
    between = right.value, right.lower, right.upper
    base = float(correct(same, labels).mean())
    yield ScoredBy("share right", *between, float(p.max(1).mean()), base)
    slope, half = slope_of_calibration(p, labels)
    yield ScoredBy("calibration slope", slope, slope - half, slope + half, 1.0, np.nan)


def _cost(p: Probabilities, labels: Labels, trained: Shares, costs: CostMatrix) -> ScoredBy:
    """What a row costs, where the decision has the least expected cost."""
    found = mean(paid(p, labels, costs), PROB)
    same = paid(np.tile(trained, (labels.size, 1)), labels, costs)
    expected = float(expected_costs(p, costs).min(axis=1).mean())
    low = max(0.0, found.lower)
    return ScoredBy("cost of a row", found.value, low, found.upper, expected, float(same.mean()))


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
