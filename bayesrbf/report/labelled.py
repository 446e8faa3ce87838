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
from jaxtyping import Float, Int
from scipy.stats import norm

from bayesrbf.posterior.calibration import calibration
from bayesrbf.posterior.decisions import constant, expected_costs, mistakes, paid
from bayesrbf.posterior.held_out import (
    LEVEL,
    OneAgainstRest,
    mean,
    one_against_rest,
    proportion,
)
from bayesrbf.posterior.recalibration import calibration_slope
from bayesrbf.posterior.scores import LEAST, Labels, Probabilities, brier, correct, log_loss
from bayesrbf.posterior.two_tables import tail_of_count
from bayesrbf.reading import TableError
from bayesrbf.report.check import Remark
from bayesrbf.report.costs import costs_of, decisions
from bayesrbf.report.reference import training_table
from bayesrbf.report.words import clipped, listing, number, percent, plural

PROB: Final = LEVEL
"""Probability of the intervals."""
CHANCE: Final = 0.01
"""Probability with which chance alone is told as a drift."""
LEAST_ROWS: Final = 2
"""Labelled rows that an interval needs."""
LISTED: Final = 6
MOSTLY: Final = 0.5
"""Share of rows of training beyond which they are no new rows; some equal others by chance."""

Shares = Float[np.ndarray, " label"]
CostMatrix = Float[np.ndarray, "label decision"]


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
            *_strange(y[~known]),
            _gain(p, labels, trained, classes),
            *([_saving(p, labels, given)] if costs else []),
            _calibration(p, labels),
            _shift(p, labels, trained, _labelled_before(model)),
        ],
    )


def rows_of_training(model: Any, X: pd.DataFrame) -> Iterator[Remark]:
    """That most rows are those that the model was fitted to, if they are."""
    fitted = set(_cells(training_table(model)))
    again = sum(row in fitted for row in _cells(X))
    if again > MOSTLY * len(X):
        yield Remark(
            "not new",
            f"{again} of {plural(len(X), 'row')} equal rows that the model was fitted to in every "
            "cell: these figures are too good. Give rows that it has not seen, or take those of "
            "its report.",
        )


def _cells(frame: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    """Rows that can be compared: a missing cell equals another."""
    return frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None)


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
    slope, half = _slope(p, labels)
    yield ScoredBy("calibration slope", slope, slope - half, slope + half, 1.0, np.nan)


def _cost(p: Probabilities, labels: Labels, trained: Shares, costs: CostMatrix) -> ScoredBy:
    """What a row costs, where the decision has the least expected cost."""
    found = mean(paid(p, labels, costs), PROB)
    same = paid(np.tile(trained, (labels.size, 1)), labels, costs)
    expected = float(expected_costs(p, costs).min(axis=1).mean())
    low = max(0.0, found.lower)
    return ScoredBy("cost of a row", found.value, low, found.upper, expected, float(same.mean()))


def _saving(p: Probabilities, labels: Labels, costs: CostMatrix) -> Remark:
    """Whether deciding row by row costs less than the best answer that is the same for all."""
    own, same = float(paid(p, labels, costs).mean()), constant(labels, costs)
    return Remark(
        "cost",
        f"By the decision of least expected cost a row costs {number(own)}, by the best answer "
        f"that is the same for all rows {number(same)}.",
        found=own >= same,
    )


def _slope(p: Probabilities, labels: Labels) -> tuple[float, float]:
    """The slope of recalibration and half of its interval."""
    slope, error = calibration_slope(p, labels)
    return slope, float(norm.ppf(0.5 + PROB / 2)) * error


def _strange(others: pd.Series) -> Iterator[Remark]:
    """Labels that training did not have; such rows are not scored."""
    counts = others.dropna().value_counts()
    if counts.size:
        named = [f"{clipped(label, 24)!r} ({n})" for label, n in counts.items()]
        yield Remark(
            "labels",
            f"{plural(int(counts.sum()), 'row')} with a class that training did not have, "
            f"{listing(named, LISTED)}; they are not scored, and the model cannot name them.",
        )


def _gain(p: Probabilities, labels: Labels, trained: Shares, classes: Sequence[str]) -> Remark:
    """Whether the probabilities say more than the class frequencies of training."""
    each = log_loss(np.tile(trained, (labels.size, 1)), labels) - log_loss(p, labels)
    found = mean(each, PROB)
    gain = found.value
    counts = np.bincount(labels, minlength=trained.size)
    most = int(counts.argmax())
    always = f"always answering {clipped(classes[most], 24)}"
    chance = ", which may be chance" if found.lower <= 0 < gain else ""
    return Remark(
        "worth",
        f"The probabilities say {'more' if gain > 0 else 'no more'} than the class frequencies of "
        f"training do{chance}: {number(gain)} nats a row, {number(found.lower)} to "
        f"{number(found.upper)}. They are right in {percent(float(correct(p, labels).mean()))} of "
        f"the rows, {always} in {percent(counts[most] / labels.size)}.",
        found=gain <= 0,
    )


def _calibration(p: Probabilities, labels: Labels) -> Remark:
    """Whether probabilities come true as often as they say, and in which way they do not."""
    seen = calibration(p, labels, prob=1 - 2 * CHANCE)
    slope, half = _slope(p, labels)
    way = "neither all too extreme nor all too timid"
    if slope + half < 1:
        way = "too extreme"
    elif slope - half > 1:
        way = "too timid"
    figures = f"slope {number(slope)}, {number(slope - half)} to {number(slope + half)}"
    said = f"They are {way} ({figures}; 1 is right)."
    told = "do not come true as often as they say"
    if seen.within_noise:
        told = "come true as often as they say, as far as these rows can tell"
        said = f"The slope is {figures.removeprefix('slope ')} (1 is right)."
    return Remark(
        "calibration",
        f"The probabilities {told}: their error is {number(seen.error)}, and chance alone brings "
        f"more than {number(seen.noise[1])} in {percent(CHANCE)} of such tables. {said}",
        found=not seen.within_noise,
    )


def _shift(p: Probabilities, labels: Labels, trained: Shares, before: int) -> Remark:
    """Whether the class frequencies differ from training, and what telling the model brings."""
    counts = np.bincount(labels, minlength=trained.size)
    tests = 1 if trained.size == 2 else trained.size
    tail = min(_two_sided(counts, trained, before)) * tests
    found = tail < CHANCE
    if not found:
        unseen = "No change of the class frequencies is seen beyond chance."
        return Remark("classes", unseen, found=False)
    now = (counts + trained) / (labels.size + 1)
    told = p * now / trained
    loss = float(log_loss(told / told.sum(1, keepdims=True), labels).mean())
    return Remark(
        "classes",
        f"The class frequencies differ from training, beyond what chance brings in "
        f"{percent(CHANCE)} of such tables. If the model were told the new ones (class_prior), its "
        f"log loss would be {number(loss)} in place of "
        f"{number(float(log_loss(p, labels).mean()))}.",
    )


def _two_sided(counts: Int[np.ndarray, " label"], trained: Shares, before: int) -> Iterator[float]:
    """Probability of every class that chance moves its frequency so far, either way."""
    of = int(counts.sum())
    for now, share in zip(counts.tolist(), trained.tolist(), strict=True):
        then = round(share * before)
        more = tail_of_count(now, of, then, before)
        fewer = tail_of_count(of - now, of, before - then, before)
        yield 2 * min(more, fewer)
