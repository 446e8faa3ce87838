"""Targets and costs that a report can be made of, and what decisions cost on held-out rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int, Shaped
from markupsafe import Markup

from bayesrbf.app.report.drawing import WIDE_BOX, WIDE_WIDTH, curve, legend, upright
from bayesrbf.app.report.options import ANYTHING, Focus
from bayesrbf.app.svg import PlotArea, picture
from bayesrbf.app.words import clipped, listing, number
from bayesrbf.fit.decisions import expected_costs, mistakes, paid

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

    class_costs: tuple[tuple[str, float], ...]  # Of a mistaken row, by class.
    rows: tuple[tuple[str, float], ...]  # Classifier and mean cost of a row; the model first.
    dearest: str  # The class whose cost varies along the curves.
    dearest_cost: float  # Its cost as it was given.
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
    """Classes of least expected cost; the most probable class where all costs are equal."""
    return expected_costs(probabilities, mistakes(costs_of(classes, costs))).argmin(axis=1)


def decisions_in_words(
    probabilities: Float[np.ndarray, "obs label"], classes: Sequence[object], focus: Focus
) -> Shaped[np.ndarray, " obs"]:
    """What the decision of each row is called: its action, or its class where none was named."""
    words = np.array([focus.action(label) for label in classes], dtype=object)
    return words[decisions(probabilities, classes, focus.costs)]


def compute(
    held_out: HeldOutRows, costs: Mapping[str, float], classifiers: Sequence[str]
) -> Costs | None:
    """Judge decisions on the held-out rows; None where no cost was given.

    A class without a cost costs 1. The first of the classifiers is the model.
    """
    if not costs:
        return None
    class_costs = costs_of(held_out.classes, costs)
    names = [str(label) for label in held_out.classes]
    rows = held_out.scored
    labels = held_out.labels[rows]
    probabilities = {name: held_out.probabilities[name][rows] for name in classifiers}
    dear = int(np.argmax(class_costs))
    along = class_costs[dear] * np.linspace(0, FURTHEST, COST_STEPS)
    is_dear = np.arange(class_costs.size) == dear
    matrix = mistakes(class_costs)
    varied = mistakes(np.where(is_dear, along[:, None], class_costs))
    curves = [
        (name, np.array([paid(p, labels, step).mean() for step in varied]))
        for name, p in probabilities.items()
    ]
    best = varied[:, labels].mean(axis=1).min(axis=1)
    row_costs = paid(probabilities[classifiers[0]], labels, matrix)
    return Costs(
        class_costs=tuple(zip(names, map(float, class_costs), strict=True)),
        rows=(
            *((name, float(paid(p, labels, matrix).mean())) for name, p in probabilities.items()),
            (SAME, float(matrix[labels].mean(axis=0).min())),
        ),
        dearest=names[dear],
        dearest_cost=float(class_costs[dear]),
        along=along,
        curves=(*curves, (SAME, best)),
        by_class=tuple(map(float, np.bincount(labels, row_costs, minlength=class_costs.size))),
    )


def say(costs: Costs | None, threshold: float | None, where: str) -> dict[str, str]:
    """Message on the mean cost of a row by the decisions of the model and by simpler rules."""
    if costs is None:
        return {"costs": ""}
    rows = [f"{number(cost)} by {name}" for name, cost in costs.rows]
    text = f"By the decision of least expected cost, a row {where} costs {listing(rows, 9)}, " + (
        "in the unit in which costs were given."
        if threshold is None
        else "where a row that is called an event in vain costs 1."
    )
    return {"costs": text}


def show(costs: Costs | None) -> dict[str, Any]:
    """Curves of the mean cost of a row and their names; the last one, ``SAME``, is grey."""
    if costs is None:
        return {"costs": None, "cost_lines": None}
    styles = [f"c{i} dash{i % 4}" for i in range(len(costs.curves) - 1)] + ["muted"]
    names = [name for name, _ in costs.curves]
    marks = {name: f"line {style}" for name, style in zip(names, styles, strict=True)}
    return {"costs": _curves(costs, styles), "cost_lines": legend(marks)}


def _curves(judged: Costs, styles: Sequence[str]) -> Markup:
    """Mean cost of a row against the cost of the dearest class; a line marks the cost given."""
    top = max(float(up.max()) for _, up in judged.curves[:1] + judged.curves[-1:])
    ends = float(judged.along[0]), float(judged.along[-1])
    axes = PlotArea(ends, (0.0, top * 1.06 or 1.0), WIDE_BOX)
    lines = [
        curve(axes, judged.along, np.minimum(up, axes.y[1]), f"line {style}")
        for (_, up), style in zip(judged.curves, styles, strict=True)
    ]
    title = "Mean cost of a row at the costs given: " + "; ".join(
        f"{name} {number(cost)}" for name, cost in judged.rows
    )
    frame = axes.frame(f"cost of a mistaken {clipped(judged.dearest, 24)}", "mean cost of a row")
    return picture(WIDE_WIDTH, 294.0, title, frame, upright(axes, judged.dearest_cost), *lines)


# Targets and costs that are refused before anything is fitted.

MAX_TARGET_CLASSES: Final = 50


def problems_of_target(target: str, focus: Focus = ANYTHING) -> Judge:
    """Function of a target column: messages on why no report of it is possible."""

    def judge(y: pd.Series) -> Iterator[str]:
        yield from _of_classes(y, target)
        yield from problems_of_focus(focus, y.dropna().unique(), repr(target))

    return judge


def _of_classes(y: pd.Series, target: str) -> Iterator[str]:
    """Messages for fewer than two classes of two rows, and for nearly as many classes as rows."""
    counts = Counter(y.dropna().tolist())
    if not counts:
        yield f"Target {target!r} is empty: at least two classes need labelled rows."
    elif len(counts) == 1:
        only = next(iter(counts))
        yield f"Target {target!r} has one class, {str(only)!r}: a classifier needs at least two."
    elif len(counts) > max(2, min(MAX_TARGET_CLASSES, counts.total() / 2)):
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
    named = [(name, "has a cost") for name in focus.costs]
    named += [(name, "has an action") for name in focus.actions]
    named += [] if focus.event is None else [(focus.event, "is the event")]
    for name, role in named:
        if name not in names:
            yield f"{name!r} {role} and is no class of {owner}: {', '.join(names)}."
    for name, cost in focus.costs.items():
        if not (math.isfinite(cost) and cost > 0):
            yield f"The cost of {name!r} must be above 0 and finite; received {cost:g}."
    if focus.event is not None and len(names) > 2:
        yield (
            f"The event is one of two classes, and {owner} has {len(names)}; leave it out, and "
            "name costs in place of a threshold."
        )
