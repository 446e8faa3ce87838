"""Pictures of a case: a probability with its interval, effects, a curve along a column."""

from __future__ import annotations

import math
from typing import Final

from markupsafe import Markup

from bayesrbf.app.serve.case import Along, Moved
from bayesrbf.app.serve.served import Field
from bayesrbf.app.svg import PlotArea, element, picture, points
from bayesrbf.app.words import clipped, ends, number, percent

WIDE: Final = 320.0
EFFECT: Final = 160.0


def probability(moved: Moved, place: int) -> Markup:
    """A probability as a bar, its interval as a line above it, and where it was before."""
    of_class = moved.answer
    marks = [
        element("rect", class_="trough", x=0, y=4, width=WIDE, height=14, rx=3),
        element(
            "rect",
            class_=f"fill c{place % 8}",
            x=0,
            y=4,
            height=14,
            rx=3,
            width=WIDE * of_class.probability,
        ),
    ]
    if not math.isnan(of_class.lower):
        low, high = WIDE * of_class.lower, WIDE * of_class.upper
        marks += [
            element("line", class_="whisker", x1=low, x2=high, y1=11, y2=11),
            *(element("line", class_="whisker", x1=x, x2=x, y1=6, y2=16) for x in (low, high)),
        ]
    if not math.isnan(moved.before):
        x = WIDE * moved.before
        marks.append(element("line", class_="before", x1=x, x2=x, y1=0, y2=22))
    what = f"{of_class.label}: {percent(of_class.probability)}"
    if not math.isnan(of_class.lower):
        what += f", interval {ends(of_class.lower, of_class.upper, percent)}"
    return picture(WIDE, 22.0, what, *marks)


def effect(adds: float, most: float, place: int) -> Markup:
    """Bar of a cell's contribution: to the right, in the colour of the class, if it is positive."""
    half = EFFECT / 2
    length = half * min(1.0, abs(adds) / most) if most > 0 else 0.0
    bar = element(
        "rect",
        class_=f"fill c{place % 8}" if adds > 0 else "fill muted",
        x=half if adds > 0 else half - length,
        y=2,
        width=length,
        height=10,
        rx=2,
    )
    middle = element("line", class_="axis", x1=half, x2=half, y1=0, y2=14)
    return picture(EFFECT, 14.0, f"adds {number(adds)}", bar, middle)


def spread(field: Field) -> Markup:
    """The distribution of the training cells behind a field."""
    wide, high = 100.0 / max(len(field.bars), 1), 20.0
    bars = [
        element(
            "rect",
            class_="fill muted",
            x=i * wide,
            width=max(wide - 1, 0.5),
            y=high * (1 - bar),
            height=high * bar,
        )
        for i, bar in enumerate(field.bars)
        if bar > 0
    ]
    return picture(100.0, high, f"Training cells: {field.extent}", *bars)


def along(curve: Along, place: int) -> Markup:
    """The probability of a class along a column, with its band; a line at the present cell."""
    field, n_levels = curve.field, len(curve.field.levels)
    span = (-0.5, n_levels - 0.5) if n_levels else (curve.at[0], curve.at[-1])
    axes = PlotArea(span, (0.0, 1.0), (48.0, 10.0, 470.0, 190.0))
    style, xs = f"c{place % 8}", [axes.at_x(x) for x in curve.at]
    ys = [axes.at_y(p) for p in curve.probability]
    marks: list[Markup] = []
    has_band = not math.isnan(curve.lower[0])
    lows, highs = ([axes.at_y(p) for p in side] for side in (curve.lower, curve.upper))
    if n_levels:
        for x, y, low, high in zip(xs, ys, lows, highs, strict=True):
            if has_band:
                marks.append(element("line", class_="whisker", x1=x, x2=x, y1=low, y2=high))
            marks.append(element("circle", class_=f"fill {style}", cx=x, cy=y, r=4))
    else:
        if has_band:
            edge = points([*xs, *xs[::-1]], [*highs, *lows[::-1]])
            marks.append(element("polygon", class_="band", points=edge))
        marks.append(element("polyline", class_=f"line {style}", points=points(xs, ys)))
    if not math.isnan(curve.here):
        x = axes.at_x(curve.here)
        marks.append(element("line", class_="diagonal", x1=x, x2=x, y1=10, y2=190))
    frame = axes.frame(
        clipped(field.name, 50), "probability", x_ticks=0 if n_levels or field.kind.of_texts else 5
    )
    title = (
        f"Probability of {curve.label} along {field.name}: "
        f"{ends(min(curve.probability), max(curve.probability), percent)}"
    )
    return picture(480.0, 232.0, title, frame, *marks, *_under(curve, axes))


def _under(curve: Along, axes: PlotArea) -> list[Markup]:
    """Levels, or the first and the last of cells that are texts, below the picture."""
    if curve.field.kind.of_texts:
        first, last = curve.field.written(curve.at[0]), curve.field.written(curve.at[-1])
        return [
            element("text", first, class_="tick start", x=48, y=205),
            element("text", last, class_="tick end", x=470, y=205),
        ]
    letters = max(3, int(56 / max(len(curve.field.levels), 1)))
    return [
        element("text", clipped(level, letters), class_="tick", x=axes.at_x(float(i)), y=205)
        for i, (level, _) in enumerate(curve.field.levels)
    ]
