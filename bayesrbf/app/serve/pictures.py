"""Pictures of a case: a probability with its interval, effects, a curve along a column."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from markupsafe import Markup

from bayesrbf.app.report.drawing import NAMED, framed, profile, stacked, upright
from bayesrbf.app.serve.case import Along, Moved
from bayesrbf.app.serve.served import Field
from bayesrbf.app.svg import PlotArea, picture, rect, segment
from bayesrbf.app.words import ends, number, percent

WIDE: Final = 320.0
EFFECT: Final = 160.0


def probability(moved: Moved, place: int) -> Markup:
    """A probability as a bar, its interval as a line above it, and where it was before."""
    one = moved.answer
    marks = [
        rect(0, 4, WIDE, 14, "trough", rx=3),
        rect(0, 4, WIDE * one.probability, 14, f"fill c{place % 8}", rx=3),
    ]
    what = f"{one.label}: {percent(one.probability)}"
    if not math.isnan(one.lower):
        low, high = WIDE * one.lower, WIDE * one.upper
        marks.append(segment(low, 11, high, 11, "whisker"))
        marks += [segment(x, 6, x, 16, "whisker") for x in (low, high)]
        what += f", interval {ends(one.lower, one.upper, percent)}"
    if not math.isnan(moved.before):
        marks.append(segment(WIDE * moved.before, 0, WIDE * moved.before, 22, "before"))
    return picture(WIDE, 22.0, what, *marks)


def effect(adds: float, most: float, place: int) -> Markup:
    """Bar of a cell's contribution: to the right, in the colour of the class, if it is positive."""
    half = EFFECT / 2
    length = half * min(1.0, abs(adds) / most) if most > 0 else 0.0
    start, style = (half, f"c{place % 8}") if adds > 0 else (half - length, "muted")
    bar = rect(start, 2, length, 10, f"fill {style}", rx=2)
    return picture(EFFECT, 14.0, f"adds {number(adds)}", bar, segment(half, 0, half, 14, "axis"))


def spread(field: Field) -> Markup:
    """The distribution of the training cells behind a field."""
    bars = stacked(np.array([field.bars]), 100.0, 20.0, ["fill muted"])
    return picture(100.0, 20.0, f"Training cells: {field.extent}", *bars)


def along(curve: Along, place: int) -> Markup:
    """The probability of a class along a column, with its band; a line at the present cell."""
    field, levels = curve.field, [level for level, _ in curve.field.levels]
    span = (-0.5, len(levels) - 0.5) if levels else (curve.at[0], curve.at[-1])
    axes = PlotArea(span, (0.0, 1.0), (48.0, 10.0, 470.0, 190.0))
    at, p, lower, upper = map(np.array, (curve.at, curve.probability, curve.lower, curve.upper))
    marks = profile(
        axes,
        at,
        p,
        f"c{place % 8}",
        levels=bool(levels),
        ends=None if np.isnan(lower).any() else (lower, upper),
        radius=4 if levels else 0,
    )
    if not math.isnan(curve.here):
        marks.append(upright(axes, curve.here))
    texts = (field.written(curve.at[0]), field.written(curve.at[-1]))
    frame = framed(axes, field.name, levels, texts if field.kind.of_texts else ("", ""))
    title = (
        f"Probability of {curve.label} along {field.name}: "
        f"{ends(min(curve.probability), max(curve.probability), percent)}"
    )
    return picture(480.0, axes.box[3] + NAMED, title, frame, *marks)
