"""Targets and costs that a report can be made of, and what decisions cost on held-out rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Shaped

from bayesrbf.app.report.options import ANYTHING, Focus
from bayesrbf.fit.decisions import constant, cost_curve, expected_costs, mistakes, paid

COST_STEPS: Final = 101
FURTHEST: Final = 2.0
"""Times the given cost of the dearest class up to which it is varied."""
SAME: Final = "the best answer that is the same for all rows"

if TYPE_CHECKING:
    from bayesrbf.app.report.held_out import HeldOutRows
    from bayesrbf.reading.read import Judge


@dataclass(frozen=True)
class Costs:
    """Held-out costs of the decisions of least expected cost, all in the unit that was given."""

    given: tuple[tuple[str, float], ...]  # Of a mistaken row, by class.
    rows: tuple[tuple[str, float], ...]  # Classifier and mean cost of a row; the model first.
    dearest: str  # The class whose cost varies along the curves.
    here: float  # Its cost as it was given.
    along: Float[np.ndarray, " step"]  # Its cost along the curves; the others stay as given.
    curves: tuple[tuple[str, Float[np.ndarray, " step"]], ...]
    """Mean cost of a row by classifier; ``SAME`` comes last."""
    by_class: tuple[float, ...]  # What the mistaken rows of each class cost together.


def costs_of(classes: Sequence[object], costs: Mapping[str, float]) -> Float[np.ndarray, " label"]:
    """Cost of a mistaken row of every class: 1 where none is given."""
    return np.array([costs.get(str(label), 1.0) for label in classes], dtype=np.float64)


def decisions(
    probabilities: Float[np.ndarray, "obs label"],
    classes: Sequence[object],
    costs: Mapping[str, float],
) -> Int[np.ndarray, " obs"]:
    """Answers of least expected cost; the most probable class where all cost the same."""
    return expected_costs(probabilities, mistakes(costs_of(classes, costs))).argmin(axis=1)


def decisions_in_words(
    probabilities: Float[np.ndarray, "obs label"], classes: Sequence[object], focus: Focus
) -> Shaped[np.ndarray, " obs"]:
    """What the decision of each row is called: its action, or its class where none was named."""
    words = np.array([focus.action(label) for label in classes], dtype=object)
    return words[decisions(probabilities, classes, focus.costs)]


def read_costs(
    held_out: HeldOutRows, costs: Mapping[str, float], classifiers: Sequence[str]
) -> Costs | None:
    """Judge decisions on the held-out rows; None where no cost was given.

    A class without a cost costs 1. The first of the classifiers is the model.
    """
    if not costs:
        return None
    each = costs_of(held_out.classes, costs)
    names = [str(label) for label in held_out.classes]
    rows = held_out.scored
    labels = held_out.labels[rows]
    probabilities = {name: held_out.probabilities[name][rows] for name in classifiers}
    dear = int(np.argmax(each))
    along = each[dear] * np.linspace(0, FURTHEST, COST_STEPS)
    is_dear = np.arange(each.size) == dear
    given, varied = mistakes(each), mistakes(np.where(is_dear, along[:, None], each))
    curves = [(name, cost_curve(p, labels, varied)) for name, p in probabilities.items()]
    best = np.array([constant(labels, step) for step in varied])
    own = paid(probabilities[classifiers[0]], labels, given)
    return Costs(
        given=tuple(zip(names, map(float, each), strict=True)),
        rows=(
            *((name, float(paid(p, labels, given).mean())) for name, p in probabilities.items()),
            (SAME, constant(labels, given)),
        ),
        dearest=names[dear],
        here=float(each[dear]),
        along=along,
        curves=(*curves, (SAME, best)),
        by_class=tuple(map(float, np.bincount(labels, own, minlength=each.size))),
    )


# Targets and costs that are refused before anything is fitted.

MOST_TARGET_CLASSES: Final = 50


def problems_of_target(target: str, focus: Focus = ANYTHING) -> Judge:
    """A judge of target columns: sentences on why a report is impossible."""

    def judge(y: pd.Series) -> Iterator[str]:
        yield from _of_classes(y, target)
        yield from problems_of_focus(focus, y.dropna().unique(), repr(target))

    return judge


def _of_classes(y: pd.Series, target: str) -> Iterator[str]:
    """Fewer than two classes of two rows, or a class for every other row."""
    counts = Counter(y.dropna().tolist())
    if not counts:
        yield f"Target {target!r} is empty: at least two classes need labelled rows."
    elif len(counts) == 1:
        only = next(iter(counts))
        yield f"Target {target!r} has one class, {str(only)!r}: a classifier needs at least two."
    elif len(counts) > max(2, min(MOST_TARGET_CLASSES, counts.total() / 2)):
        yield (
            f"Target {target!r} has {len(counts)} different values in {counts.total()} labelled "
            "rows: a classifier needs few classes with many rows; is it a number to predict?"
        )
    elif sum(rows >= 2 for rows in counts.values()) < 2:
        yield (
            f"Target {target!r} has no two classes with two labelled rows each, so nothing can be "
            "held out; label more rows."
        )


def problems_of_focus(focus: Focus, classes: Iterable[object], owner: str) -> Iterator[str]:
    """Names that are no class of the owner, and costs that are not above 0, as sentences.

    >>> list(problems_of_focus(Focus({"ill": 0.0}), ["sick", "well"], "the model"))
    ["'ill' has a cost and is no class of the model: sick, well.", "The cost of 'ill' must be above
    0 and finite; received 0."]
    """
    names = sorted(str(label) for label in classes)
    said = [(name, "has a cost") for name in focus.costs]
    said += [(name, "has an action") for name in focus.actions]
    said += [] if focus.event is None else [(focus.event, "is the event")]
    for name, what in said:
        if name not in names:
            yield f"{name!r} {what} and is no class of {owner}: {', '.join(names)}."
    for name, cost in focus.costs.items():
        if not (math.isfinite(cost) and cost > 0):
            yield f"The cost of {name!r} must be above 0 and finite; received {cost:g}."
    if focus.event is not None and len(names) > 2:
        yield (
            f"The event is one of two classes, and {owner} has {len(names)}; leave it out, and "
            "name costs in place of a threshold."
        )
