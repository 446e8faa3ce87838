"""Pictures of a case: a probability with its interval, effects, a curve along a column."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from markupsafe import Markup

from bayesrbf.app.report.drawing import foot, framed, profile, stacked, upright
from bayesrbf.app.serve.case import Along, CaseClass
from bayesrbf.app.serve.served import Field
from bayesrbf.app.svg import PlotArea, picture, rect, segment
from bayesrbf.app.words import ends, number, percent

WIDE: Final = 320.0
EFFECT: Final = 160.0


def probability(of_class: CaseClass, series: int) -> Markup:
    """A probability as a bar, its interval as a line above it, and where it was before."""
    answer = of_class.answer
    marks = [
        rect(0, 4, WIDE, 14, "trough", rx=3),
        rect(0, 4, WIDE * answer.probability, 14, f"fill c{series % 8}", rx=3),
    ]
    title = f"{answer.label}: {percent(answer.probability)}"
    if not math.isnan(answer.lower):
        low, high = WIDE * answer.lower, WIDE * answer.upper
        marks.append(segment(low, 11, high, 11, "whisker"))
        marks += [segment(x, 6, x, 16, "whisker") for x in (low, high)]
        title += f", interval {ends(answer.lower, answer.upper, percent)}"
    if not math.isnan(of_class.before):
        marks.append(segment(WIDE * of_class.before, 0, WIDE * of_class.before, 22, "before"))
    return picture(WIDE, 22.0, title, *marks)


def effect(adds: float, most: float, series: int) -> Markup:
    """Bar of a cell's contribution: to the right, in the colour of the class, if it is positive."""
    half = EFFECT / 2
    length = half * min(1.0, abs(adds) / most) if most > 0 else 0.0
    start, style = (half, f"c{series % 8}") if adds > 0 else (half - length, "muted")
    bar = rect(start, 2, length, 10, f"fill {style}", rx=2)
    return picture(EFFECT, 14.0, f"adds {number(adds)}", bar, segment(half, 0, half, 14, "axis"))


def spread(field: Field) -> Markup:
    """The distribution of the training cells behind a field."""
    bars = stacked(np.array([field.bars]), 100.0, 20.0, ["fill muted"])
    return picture(100.0, 20.0, f"Training cells: {field.extent}", *bars)


def along(curve: Along, series: int) -> Markup:
    """The probability of a class along a column, with its band; a line at the present cell."""
    field, levels = curve.field, [level for level, _ in curve.field.levels]
    span = (-0.5, len(levels) - 0.5) if levels else (curve.at[0], curve.at[-1])
    axes = PlotArea(span, (0.0, 1.0), (48.0, 10.0, 470.0, 190.0))
    at, p, lower, upper = map(np.array, (curve.at, curve.probability, curve.lower, curve.upper))
    marks = profile(
        axes,
        at,
        p,
        f"c{series % 8}",
        levels=bool(levels),
        ends=None if np.isnan(lower).any() else (lower, upper),
        radius=4 if levels else 0,
    )
    if not math.isnan(curve.present):
        marks.append(upright(axes, curve.present))
    texts = (field.written(curve.at[0]), field.written(curve.at[-1]))
    frame = framed(axes, field.name, levels, texts if field.kind.of_texts else ("", ""))
    title = (
        f"Probability of {curve.label} along {field.name}: "
        f"{ends(min(curve.probability), max(curve.probability), percent)}"
    )
    return picture(480.0, foot(axes, levels), title, frame, *marks)
