"""What labelled new rows say against a model, or for it, as sentences.

A drift is a finding where it is beyond what chance brings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.stats import norm

from bayesrbf.posterior.calibration import calibration
from bayesrbf.posterior.decisions import constant, paid
from bayesrbf.posterior.held_out import LEVEL, mean
from bayesrbf.posterior.recalibration import calibration_slope
from bayesrbf.posterior.scores import Labels, Probabilities, correct, log_loss
from bayesrbf.posterior.two_tables import tail_of_count
from bayesrbf.report.check import Remark
from bayesrbf.report.words import clipped, listing, number, percent, plural

PROB: Final = LEVEL
"""Probability of the intervals."""
CHANCE: Final = 0.01
"""Probability with which chance alone is told as a drift."""
LISTED: Final = 6

Shares = Float[np.ndarray, " label"]
CostMatrix = Float[np.ndarray, "label decision"]


def strange_labels(others: pd.Series) -> Iterator[Remark]:
    """Labels that training did not have; such rows are not scored."""
    counts = others.dropna().value_counts()
    if counts.size:
        named = [f"{clipped(label, 24)!r} ({n})" for label, n in counts.items()]
        yield Remark(
            "labels",
            f"{plural(int(counts.sum()), 'row')} with a class that training did not have, "
            f"{listing(named, LISTED)}; they are not scored, and the model cannot name them.",
        )


def gain(p: Probabilities, labels: Labels, trained: Shares, classes: Sequence[str]) -> Remark:
    """Whether the probabilities say more than the class frequencies of training."""
    each = log_loss(np.tile(trained, (labels.size, 1)), labels) - log_loss(p, labels)
    found = mean(each, PROB)
    gain = found.value
    counts = np.bincount(labels, minlength=trained.size)
    most = int(counts.argmax())
    always = f"always answering {clipped(classes[most], 24)}"
    return Remark(
        "worth",
        f"The probabilities say {'more' if gain > 0 else 'no more'} than the class frequencies of "
        f"training do: {number(gain)} nats a row, {number(found.lower)} to "
        f"{number(found.upper)}. They are right in {percent(float(correct(p, labels).mean()))} of "
        f"the rows, {always} in {percent(counts[most] / labels.size)}.",
        found=gain <= 0,
    )


def saving(p: Probabilities, labels: Labels, costs: CostMatrix) -> Remark:
    """Whether deciding row by row costs less than the best answer that is the same for all."""
    own, same = float(paid(p, labels, costs).mean()), constant(labels, costs)
    return Remark(
        "cost",
        f"By the decision of least expected cost a row costs {number(own)}, by the best answer "
        f"that is the same for all rows {number(same)}.",
        found=own >= same,
    )


def calibration_remark(p: Probabilities, labels: Labels) -> Remark:
    """Whether probabilities come true as often as they say, and in which way they do not."""
    seen = calibration(p, labels, prob=1 - 2 * CHANCE)
    slope, half = slope_of_calibration(p, labels)
    way = "neither all too extreme nor all too timid"
    if slope + half < 1:
        way = "too extreme"
    elif slope - half > 1:
        way = "too timid"
    figures = f"slope {number(slope)}, {number(slope - half)} to {number(slope + half)}"
    said = f"They are {way} ({figures}; 1 is right)."
    if seen.within_noise:
        said = f"The slope is {figures.removeprefix('slope ')} (1 is right)."
    return Remark(
        "calibration",
        f"The probabilities {'come' if seen.within_noise else 'do not come'} true as often as they "
        f"say: their error is {number(seen.error)}, and chance alone brings more than "
        f"{number(seen.noise[1])} in {percent(CHANCE)} of such tables. {said}",
        found=not seen.within_noise,
    )


def slope_of_calibration(p: Probabilities, labels: Labels) -> tuple[float, float]:
    """The slope of recalibration and half of its interval."""
    slope, error = calibration_slope(p, labels)
    return slope, float(norm.ppf(0.5 + PROB / 2)) * error


def label_shift(p: Probabilities, labels: Labels, trained: Shares, before: int) -> Remark:
    """Whether the class frequencies differ from training, and what telling the model brings."""
    counts = np.bincount(labels, minlength=trained.size)
    tests = 1 if trained.size == 2 else trained.size
    tail = min(_two_sided(counts, trained, before)) * tests
    found = tail < CHANCE
    if not found:
        return Remark("classes", "The class frequencies are as in training.", found=False)
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
