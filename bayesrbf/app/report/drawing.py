"""What pictures of several sections share: sizes, legends, curves.

Colours are classes of the page's style sheet, so that one picture serves light, dark and print.
Shapes differ wherever colours do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from markupsafe import Markup

from bayesrbf.app.svg import PlotArea, element, picture, points
from bayesrbf.app.words import cell, clipped

NARROW = 344.0
"""Width that fits a phone, in CSS pixels."""
SMALL_WIDTH = 296.0
"""Width at which three pictures fit side by side on a desk."""
WIDE_WIDTH: Final = 640.0
"""Width of a picture that is drawn as wide as the text."""
BOX: Final = (50.0, 12.0, NARROW, 232.0)
"""Plotting area of a picture that stands beside others."""
WIDE_BOX: Final = (64.0, 12.0, WIDE_WIDTH - 12, 252.0)
MOST_POINTS = 3000
"""Points drawn in a scatter plot; of more, a regular subset."""


def legend(entries: Mapping[str, str]) -> Markup:
    """Names beside the marks of a picture, such as ``dot c0``, ``cross c1``, ``line c3 dash1``."""
    items = []
    for name, mark in entries.items():
        shape, *classes = mark.split()
        style = " ".join(classes)
        drawn = {
            "dot": element("circle", class_=f"fill {style}", cx=8, cy=7, r=4),
            "ring": element("circle", class_=f"stroke {style}", cx=8, cy=7, r=4),
            "cross": element("path", class_=f"stroke {style} thick", d="M4,3l8,8m0,-8l-8,8"),
            "line": element("line", class_=f"line {style}", x1=0, x2=22, y1=7, y2=7),
            "bar": element("rect", class_=f"fill {style}", x=2, y=2, width=12, height=10),
            "band": element("rect", class_="band", x=2, y=1, width=12, height=12),
        }[shape]
        width = 24 if shape == "line" else 16
        svg = element("svg", drawn, width=width, height=14, aria_hidden="true")
        items.append(element("span", svg, " ", name, class_="key"))
    return element("p", *items, class_="legend")


def curve(axes: PlotArea, across: np.ndarray, up: np.ndarray, style: str) -> Markup:
    """A curve."""
    xs, ys = (map(float, values) for values in (across, up))
    return element("polyline", class_=style, points=points(map(axes.at_x, xs), map(axes.at_y, ys)))


def upright(axes: PlotArea, at: float) -> Markup:
    """A dashed line at a value across."""
    x = axes.at_x(at)
    return element("line", class_="diagonal", x1=x, x2=x, y1=axes.box[3], y2=axes.box[1])


def bars(
    rows: Sequence[tuple[str, Sequence[tuple[float, str]]]],
    most: float,
    decimals: int | None,
    unit: str,
    title: str,
) -> Markup:
    """Bars of one or two values, each with its style, beside every name, up to ``most``."""
    n, left = max((len(values) for _, values in rows), default=1), 290.0
    step = 10.0 + 10.0 * n
    bottom = 6 + step * len(rows)
    axes = PlotArea((0.0, most * 1.02), (0.0, 1.0), (left, 6.0, WIDE_WIDTH - 62, bottom))
    marks = []
    for i, (name, values) in enumerate(rows):
        y = 6 + step * i
        label = element("text", clipped(name, 32), class_="tick end", x=left - 8, y=y + 9 + 5 * n)
        marks.append(label)
        for place, (value, style) in enumerate(values):
            top, end = y + 6 - n + 11 * place, axes.at_x(value)
            marks += [
                element("rect", class_=style, x=left, y=top, width=end - left, height=10),
                element("text", cell(value, decimals), class_="tick start", x=end + 5, y=top + 9),
            ]
    return picture(WIDE_WIDTH, bottom + 40, title, axes.frame(unit, x_ticks=3), *marks)
