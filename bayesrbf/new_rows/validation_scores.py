"""Scores on labelled new rows, and what these say of a model, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayesrbf.new_rows.remarks import Remark
from bayesrbf.posterior.calibration import calibration
from bayesrbf.posterior.decisions import expected_costs, paid
from bayesrbf.posterior.held_out import Interval, change, mean, proportion, slope
from bayesrbf.posterior.scores import LEAST_SCORED, Labels, Probabilities, brier, correct, log_loss
from bayesrbf.report.words import clipped, ends, listing, number, percent, plural

VALIDATION_BY_CHANCE: Final = 0.01
"""Probability with which chance alone is a finding."""
SURE: Final = 1 - VALIDATION_BY_CHANCE
"""Probability inside all intervals: what one of them leaves out is a finding."""
LISTED_CLASSES: Final = 6
MOSTLY_TRAINED: Final = 0.5
"""Share of rows of training beyond which they are no new rows; some equal others by chance."""

Shares = Float[np.ndarray, " label"]
CostMatrix = Float[np.ndarray, "label decision"]


@dataclass(frozen=True)
class ValidationScore:
    """One score on the new rows; NaN where there is no such thing."""

    name: str
    value: float
    lower: float
    upper: float
    expected: float  # By the model itself, were its probabilities right.
    frequencies: float  # Of the class frequencies of training as the answer to every row.


@dataclass(frozen=True)
class ClassFrequency:
    """The share of a class among the labelled new rows, with its interval.

    The interval counts the chance in the share of training, too, and is one for all classes at
    once: a class has another frequency than in training where it leaves ``trained`` out.
    """

    label: str
    rows: int
    share: float
    lower: float
    upper: float
    expected: float  # Mean probability of the class by the model.
    trained: float

    @property
    def changed(self) -> bool:
        """Whether the frequency is surely another than in training."""
        return not self.lower <= self.trained <= self.upper


def class_frequencies(
    p: Probabilities, labels: Labels, trained: Shares, trained_rows: int, classes: Sequence[str]
) -> tuple[ClassFrequency, ...]:
    """The share of every class, with its interval."""
    n, counts = labels.size, np.bincount(labels, minlength=trained.size)
    level = 1 - VALIDATION_BY_CHANCE / (1 if trained.size == 2 else trained.size)
    frequencies = []
    for label, rows, before, expected in zip(
        classes, counts.tolist(), trained.tolist(), p.mean(0).tolist(), strict=True
    ):
        away = change(before, trained_rows, rows / n, n, level)
        lower, upper = max(0.0, before + away.lower), min(1.0, before + away.upper)
        frequencies.append(ClassFrequency(label, rows, rows / n, lower, upper, expected, before))
    return tuple(frequencies)


def scores_of(p: Probabilities, labels: Labels, trained: Shares) -> Iterator[ValidationScore]:
    """Every score with its interval, beside what is expected and the class frequencies."""
    same = np.tile(trained, (labels.size, 1))
    entropy = -(p * np.log(np.clip(p, LEAST_SCORED, 1))).sum(1)
    for name, score, expected in (
        ("log loss", log_loss, entropy),
        ("Brier score", brier, 1 - (p**2).sum(1)),
    ):
        here, base = mean(score(p, labels), SURE), float(score(same, labels).mean())
        low = max(0.0, here.lower)
        yield ValidationScore(name, here.value, low, here.upper, float(expected.mean()), base)
    right = proportion(float(correct(p, labels).mean()), labels.size, SURE)
    base = float(correct(same, labels).mean())
    expected_right = float(p.max(1).mean())
    yield ValidationScore(
        "share right", right.value, right.lower, right.upper, expected_right, base
    )
    tilt = slope(p, labels, SURE)
    yield ValidationScore("calibration slope", tilt.value, tilt.lower, tilt.upper, 1.0, np.nan)


def cost_score(
    p: Probabilities, labels: Labels, trained: Shares, costs: CostMatrix
) -> ValidationScore:
    """Mean cost of a row when every decision has the least expected cost."""
    own = mean(paid(p, labels, costs), SURE)
    same = paid(np.tile(trained, (labels.size, 1)), labels, costs)
    expected = float(expected_costs(p, costs).min(axis=1).mean())
    low = max(0.0, own.lower)
    return ValidationScore("cost of a row", own.value, low, own.upper, expected, float(same.mean()))


def of_training_rows(old: pd.DataFrame, new: pd.DataFrame) -> Iterator[Remark]:
    """That most rows are those that the model was fitted to, if they are."""
    trained = set(_comparable(old))
    again = sum(row in trained for row in _comparable(new))
    if again > MOSTLY_TRAINED * len(new):
        yield Remark(
            "not new",
            f"{again} of {plural(len(new), 'row')} equal rows that the model was fitted to in "
            "every cell: these figures are too good. Give rows that it has not seen, or take those "
            "of its report.",
        )


def _comparable(frame: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    """Rows that can be compared: a missing cell equals another."""
    return frame.astype(object).where(frame.notna(), None).itertuples(index=False, name=None)


def of_other_classes(labels: pd.Series) -> Iterator[Remark]:
    """Labels that training did not have; such rows are not scored."""
    counts = labels.dropna().value_counts()
    if counts.size:
        names = [f"{clipped(label, 24)!r} ({n})" for label, n in counts.items()]
        yield Remark(
            "labels",
            f"{plural(int(counts.sum()), 'row')} with a class that training did not have, "
            f"{listing(names, LISTED_CLASSES)}; they are not scored, and the model cannot name "
            "them.",
        )


def of_worth(p: Probabilities, labels: Labels, trained: Shares, classes: Sequence[str]) -> Remark:
    """Whether the probabilities say more than the class frequencies of training."""
    each = log_loss(np.tile(trained, (labels.size, 1)), labels) - log_loss(p, labels)
    gain = mean(each, SURE)
    counts = np.bincount(labels, minlength=trained.size)
    most = int(counts.argmax())
    always = f"always answering {clipped(classes[most], 24)}"
    return Remark(
        "worth",
        f"The probabilities say {'more' if gain.value > 0 else 'no more'} than the class "
        f"frequencies of training do{_by_chance(gain)}: {number(gain.value)} nats a row, "
        f"{ends(gain.lower, gain.upper)}. The most probable class is right in "
        f"{percent(float(correct(p, labels).mean()))} of the rows, {always} in "
        f"{percent(counts[most] / labels.size)}.",
        is_finding=gain.value <= 0,
    )


def _by_chance(gain: Interval) -> str:
    """That a gain may be chance, where its interval holds 0."""
    return ", which may be chance" if gain.lower <= 0 < gain.value else ""


def of_cost(p: Probabilities, labels: Labels, costs: CostMatrix) -> Remark:
    """Whether deciding row by row costs less than the best answer that is the same for all."""
    own, same = paid(p, labels, costs), costs[labels, costs[labels].mean(axis=0).argmin()]
    gain = mean(same - own, SURE)
    return Remark(
        "cost",
        f"By the decision of least expected cost a row costs {number(float(own.mean()))}, by the "
        f"best answer that is the same for all rows {number(float(same.mean()))}: "
        f"{'less' if gain.value > 0 else 'no less'} by {number(gain.value)}, "
        f"{ends(gain.lower, gain.upper)}{_by_chance(gain)}.",
        is_finding=gain.value <= 0,
    )


def of_calibration(p: Probabilities, labels: Labels) -> Remark:
    """Whether probabilities come true as often as they say, and in which way they do not."""
    errors = calibration(p, labels, prob=1 - 2 * VALIDATION_BY_CHANCE)
    tilt = slope(p, labels, SURE)
    way = "neither all too extreme nor all too timid"
    if tilt.upper < 1:
        way = "too extreme"
    elif tilt.lower > 1:
        way = "too timid"
    right = errors.within_noise and tilt.lower <= 1 <= tilt.upper
    verdict = "come true as often as they say, as far as these rows can tell"
    if not right:
        verdict = f"do not come true as often as they say, they are {way}"
    return Remark(
        "calibration",
        f"The probabilities {verdict}: their error is {number(errors.error)}, and chance alone "
        f"brings more than {number(errors.noise[1])} in {percent(VALIDATION_BY_CHANCE)} of such "
        f"tables; the slope is {number(tilt.value)}, {ends(tilt.lower, tilt.upper)}, and 1 is "
        "right.",
        is_finding=not right,
    )


def of_class_frequencies(
    p: Probabilities, labels: Labels, frequencies: Sequence[ClassFrequency]
) -> Remark:
    """Whether the class frequencies differ from training, and what the new ones would bring."""
    if not any(of_class.changed for of_class in frequencies):
        unseen = "No change of the class frequencies is seen beyond chance."
        return Remark("classes", unseen, is_finding=False)
    trained = np.array([of_class.trained for of_class in frequencies])
    now = (np.bincount(labels, minlength=trained.size) + trained) / (labels.size + 1)
    adapted = p * now / trained
    loss = float(log_loss(adapted / adapted.sum(1, keepdims=True), labels).mean())
    return Remark(
        "classes",
        f"The class frequencies differ from training, beyond what chance brings in "
        f"{percent(VALIDATION_BY_CHANCE)} of such tables. If the model were told the new ones "
        f"(class_prior), its log loss would be {number(loss)} in place of "
        f"{number(float(log_loss(p, labels).mean()))}.",
    )
