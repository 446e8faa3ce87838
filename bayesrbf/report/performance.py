"""Figures of single classes on held-out rows: how they are ranked, found and acted on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.posterior.calibration import ReliabilityCurve, calibration
from bayesrbf.posterior.held_out import (
    DecisionCurve,
    Interval,
    OneAgainstRest,
    Positive,
    Score,
    auroc,
    decision_curve,
    mean,
    one_against_rest,
    proportion,
)
from bayesrbf.posterior.scores import brier, correct, log_loss
from bayesrbf.report.costs import costs_of, decisions
from bayesrbf.report.validate import HeldOutRows

UNVALIDATED: Final = 2
"""Rows of a class up to which nothing that is said of it can be validated."""
THRESHOLDS: Final = np.linspace(0.01, 0.99, 99)
MOST_CURVES: Final = 6
"""Classes whose decision curves are drawn: the most frequent."""


@dataclass(frozen=True)
class Curves:
    """Decision curves of one class."""

    name: str
    own: DecisionCurve
    rival: DecisionCurve
    threshold: float | None  # At the costs that were given.


@dataclass(frozen=True)
class Event:
    """Which of two classes the figures are about, and from which probability a row is called so."""

    name: str
    why: str  # In words.
    threshold: float  # At the costs that were given; without any, one half.


@dataclass(frozen=True)
class Performance:
    """Held-out figures of the model with their intervals."""

    accuracy: Interval
    log_loss: Interval  # In nats.
    brier: Interval
    classes: tuple[tuple[str, OneAgainstRest, Interval], ...]
    """Name, the model's figures, AUROC of the best rival; of two classes only the one of
    interest."""
    curves: tuple[Curves, ...]
    event: Event | None  # None for more than two classes.
    reliability: ReliabilityCurve
    """Of the probability of the event; of more than two classes, that of the most probable one."""

    @property
    def hardest(self) -> tuple[str, OneAgainstRest, Interval]:
        """The class with the lowest AUROC; of two classes the one of interest."""
        judged = [
            of_class
            for of_class in self.classes
            if of_class[1].auroc.value == of_class[1].auroc.value
        ]
        return min(judged or self.classes, key=lambda of_class: of_class[1].auroc.value)


def class_of_interest(held_out: HeldOutRows, costs: Mapping[str, float]) -> int:
    """The dearest class where costs differ, else the rarest one; of ties the last."""
    each = costs_of(held_out.classes, costs)
    if np.ptp(each) > 0:
        return int(each.argmax())
    counts = np.bincount(held_out.labels[held_out.scored], minlength=each.size)
    return int(each.size - 1 - counts[::-1].argmin())


def unvalidated(counts: Mapping[str, int]) -> dict[str, int]:
    """Classes of one or two labelled rows, and how many."""
    return {name: rows for name, rows in counts.items() if rows <= UNVALIDATED}


def read_performance(
    held_out: HeldOutRows, costs: Mapping[str, float], model: str, rival: str
) -> Performance:
    """Judge every class against the rest on the held-out rows."""
    rows = held_out.scored
    labels = held_out.labels[rows]
    p, other = held_out.probabilities[model][rows], held_out.probabilities[rival][rows]
    decided = decisions(p, held_out.classes, costs)
    focus = class_of_interest(held_out, costs)
    counts = np.bincount(labels, minlength=len(held_out.classes))
    binary = len(held_out.classes) == 2
    shown = [focus] if binary else range(len(held_out.classes))
    frequent = [int(c) for c in np.argsort(-counts, kind="stable") if counts[c] > UNVALIDATED]
    each = costs_of(held_out.classes, costs)
    threshold = float(1 - each[focus] / each.sum())
    return Performance(
        accuracy=proportion(float(correct(p, labels).mean()), labels.size),
        log_loss=mean(log_loss(p, labels)),
        brier=mean(brier(p, labels)),
        classes=tuple(
            (
                str(held_out.classes[c]),
                one_against_rest(p[:, c], decided == c, labels == c),
                auroc(other[:, c], labels == c),
            )
            for c in shown
        ),
        curves=tuple(
            Curves(
                str(held_out.classes[c]),
                decision_curve(p[:, c], labels == c, THRESHOLDS),
                decision_curve(other[:, c], labels == c, THRESHOLDS),
                threshold if binary and costs else None,
            )
            for c in ([focus] if binary else frequent[:MOST_CURVES])
        ),
        event=Event(str(held_out.classes[focus]), _why(counts, each), threshold)
        if binary
        else None,
        reliability=_reliability(p[:, focus], labels == focus)
        if binary
        else _reliability(p.max(axis=1), labels == p.argmax(axis=1)),
    )


def _why(counts: Int[np.ndarray, " label"], costs: Float[np.ndarray, " label"]) -> str:
    """Why a class is the one of interest."""
    if np.ptp(costs) > 0:
        return "the class whose mistakes cost most"
    return "the rarer class" if np.ptp(counts) > 0 else "the last of two equally frequent classes"


def _reliability(p: Score, happened: Positive) -> ReliabilityCurve:
    """Observed frequency of an event by its predicted probability."""
    return calibration(np.column_stack([1 - p, p]), happened.astype(int)).curves[1]
