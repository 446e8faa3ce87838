"""Scores on labelled new rows, and what these say of a model, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.stats import norm

from bayesrbf.new_rows.remarks import Remark
from bayesrbf.posterior.calibration import calibration
from bayesrbf.posterior.decisions import constant, expected_costs, paid
from bayesrbf.posterior.held_out import LEVEL, mean, proportion
from bayesrbf.posterior.recalibration import calibration_slope
from bayesrbf.posterior.scores import LEAST_SCORED, Labels, Probabilities, brier, correct, log_loss
from bayesrbf.posterior.two_tables import tail_of_count
from bayesrbf.report.words import clipped, listing, number, percent, plural

VALIDATION_BY_CHANCE: Final = 0.01
"""Probability with which chance alone is a finding."""
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
    """The share of a class among the labelled new rows, with its interval."""

    label: str
    rows: int
    share: float
    lower: float
    upper: float
    expected: float  # Mean probability of the class by the model.
    trained: float


def class_frequency(
    label: str, rows: int, of: int, expected: float, trained: float
) -> ClassFrequency:
    """The share of a class, with its interval."""
    share = proportion(rows / of, of, LEVEL)
    return ClassFrequency(label, rows, share.value, share.lower, share.upper, expected, trained)


def scores_of(p: Probabilities, labels: Labels, trained: Shares) -> Iterator[ValidationScore]:
    """Every score with its interval, beside what is expected and the class frequencies."""
    same = np.tile(trained, (labels.size, 1))
    entropy = -(p * np.log(np.clip(p, LEAST_SCORED, 1))).sum(1)
    for name, score, expected in (
        ("log loss", log_loss, entropy),
        ("Brier score", brier, 1 - (p**2).sum(1)),
    ):
        here, base = mean(score(p, labels), LEVEL), float(score(same, labels).mean())
        low = max(0.0, here.lower)
        yield ValidationScore(name, here.value, low, here.upper, float(expected.mean()), base)
    right = proportion(float(correct(p, labels).mean()), labels.size, LEVEL)
    base = float(correct(same, labels).mean())
    expected_right = float(p.max(1).mean())
    yield ValidationScore(
        "share right", right.value, right.lower, right.upper, expected_right, base
    )
    slope, half = slope_interval(p, labels)
    yield ValidationScore("calibration slope", slope, slope - half, slope + half, 1.0, np.nan)


def cost_score(
    p: Probabilities, labels: Labels, trained: Shares, costs: CostMatrix
) -> ValidationScore:
    """Mean cost of a row when every decision has the least expected cost."""
    own = mean(paid(p, labels, costs), LEVEL)
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
    gain = mean(each, LEVEL)
    counts = np.bincount(labels, minlength=trained.size)
    most = int(counts.argmax())
    always = f"always answering {clipped(classes[most], 24)}"
    chance = ", which may be chance" if gain.lower <= 0 < gain.value else ""
    return Remark(
        "worth",
        f"The probabilities say {'more' if gain.value > 0 else 'no more'} than the class "
        f"frequencies of training do{chance}: {number(gain.value)} nats a row, "
        f"{number(gain.lower)} to {number(gain.upper)}. They are right in "
        f"{percent(float(correct(p, labels).mean()))} of the rows, {always} in "
        f"{percent(counts[most] / labels.size)}.",
        is_finding=gain.value <= 0,
    )


def of_cost(p: Probabilities, labels: Labels, costs: CostMatrix) -> Remark:
    """Whether deciding row by row costs less than the best answer that is the same for all."""
    own, same = float(paid(p, labels, costs).mean()), constant(labels, costs)
    return Remark(
        "cost",
        f"By the decision of least expected cost a row costs {number(own)}, by the best answer "
        f"that is the same for all rows {number(same)}.",
        is_finding=own >= same,
    )


def slope_interval(p: Probabilities, labels: Labels) -> tuple[float, float]:
    """The slope of recalibration and half of its interval."""
    slope, error = calibration_slope(p, labels)
    return slope, float(norm.ppf(0.5 + LEVEL / 2)) * error


def of_calibration(p: Probabilities, labels: Labels) -> Remark:
    """Whether probabilities come true as often as they say, and in which way they do not."""
    errors = calibration(p, labels, prob=1 - 2 * VALIDATION_BY_CHANCE)
    slope, half = slope_interval(p, labels)
    way = "neither all too extreme nor all too timid"
    if slope + half < 1:
        way = "too extreme"
    elif slope - half > 1:
        way = "too timid"
    figures = f"{number(slope)}, {number(slope - half)} to {number(slope + half)}"
    verdict = "do not come true as often as they say"
    ending = f"They are {way} (slope {figures}; 1 is right)."
    if errors.within_noise:
        verdict = "come true as often as they say, as far as these rows can tell"
        ending = f"The slope is {figures} (1 is right)."
    return Remark(
        "calibration",
        f"The probabilities {verdict}: their error is {number(errors.error)}, and chance alone "
        f"brings more than {number(errors.noise[1])} in {percent(VALIDATION_BY_CHANCE)} of such "
        f"tables. {ending}",
        is_finding=not errors.within_noise,
    )


def of_class_frequencies(
    p: Probabilities, labels: Labels, trained: Shares, trained_rows: int
) -> Remark:
    """Whether the class frequencies differ from training, and what the new ones would bring."""
    counts = np.bincount(labels, minlength=trained.size)
    tests = 1 if trained.size == 2 else trained.size
    tail = min(_two_sided(counts, trained, trained_rows)) * tests
    if tail >= VALIDATION_BY_CHANCE:
        unseen = "No change of the class frequencies is seen beyond chance."
        return Remark("classes", unseen, is_finding=False)
    now = (counts + trained) / (labels.size + 1)
    adapted = p * now / trained
    loss = float(log_loss(adapted / adapted.sum(1, keepdims=True), labels).mean())
    return Remark(
        "classes",
        f"The class frequencies differ from training, beyond what chance brings in "
        f"{percent(VALIDATION_BY_CHANCE)} of such tables. If the model were told the new ones "
        f"(class_prior), its log loss would be {number(loss)} in place of "
        f"{number(float(log_loss(p, labels).mean()))}.",
    )


def _two_sided(
    counts: Int[np.ndarray, " label"], trained: Shares, trained_rows: int
) -> Iterator[float]:
    """Probability of every class that chance moves its frequency so far, either way."""
    n = int(counts.sum())
    for now, share in zip(counts.tolist(), trained.tolist(), strict=True):
        then = round(share * trained_rows)
        more = tail_of_count(now, n, then, trained_rows)
        fewer = tail_of_count(n - now, n, trained_rows - then, trained_rows)
        yield 2 * min(more, fewer)
