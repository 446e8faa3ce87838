"""Sizes, legends and curves that several sections draw.

Colours are classes of the page's style sheet, so that one picture serves light, dark and print.
Shapes differ wherever colours do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final

import numpy as np
from jaxtyping import Float
from markupsafe import Markup

from bayesrbf.app.svg import PlotArea, dot, element, picture, points, rect, segment
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
MAX_POINTS = 3000
"""Points drawn in a scatter plot; of more, a regular subset."""


def legend(entries: Mapping[str, str]) -> Markup:
    """Names beside the marks of a picture, such as ``dot c0``, ``cross c1``, ``line c3 dash1``."""
    items = []
    for name, mark in entries.items():
        shape, *classes = mark.split()
        style = " ".join(classes)
        drawn = {
            "dot": dot(8, 7, 4, f"fill {style}"),
            "ring": dot(8, 7, 4, f"stroke {style}"),
            "cross": element("path", class_=f"stroke {style} thick", d="M4,3l8,8m0,-8l-8,8"),
            "line": segment(0, 7, 22, 7, f"line {style}"),
            "bar": rect(2, 2, 12, 10, f"fill {style}"),
            "band": rect(2, 1, 12, 12, "band"),
        }[shape]
        width = 24 if shape == "line" else 16
        svg = element("svg", drawn, width=width, height=14, aria_hidden="true")
        items.append(element("span", svg, " ", name, class_="key"))
    return element("p", *items, class_="legend")


def curve(axes: PlotArea, across: np.ndarray, up: np.ndarray, style: str) -> Markup:
    """A polyline through points of a plotting area."""
    xs, ys = (map(float, values) for values in (across, up))
    return element("polyline", class_=style, points=points(map(axes.at_x, xs), map(axes.at_y, ys)))


def profile(
    axes: PlotArea,
    across: np.ndarray,
    up: np.ndarray,
    style: str,
    *,
    levels: bool,
    ends: tuple[np.ndarray, np.ndarray] | None = None,
    radius: int = 0,
) -> list[Markup]:
    """A quantity along a column, with its interval: a curve and its band; of levels dots and lines.

    A ``radius`` above 0 draws a dot at every value.
    """
    marks: list[Markup] = []
    if ends is not None and levels:
        lows, highs = (map(axes.at_y, side.tolist()) for side in ends)
        for x, low, high in zip(map(axes.at_x, across.tolist()), lows, highs, strict=True):
            marks.append(segment(x, low, x, high, "whisker"))
    elif ends is not None:
        around, edges = np.r_[across, across[::-1]], np.r_[ends[1], ends[0][::-1]]
        xs, ys = map(axes.at_x, around.tolist()), map(axes.at_y, edges.tolist())
        marks.append(element("polygon", class_="band", points=points(xs, ys)))
    if not levels:
        marks.append(curve(axes, across, up, f"line {style}"))
    if radius:
        positions = zip(across.tolist(), up.tolist(), strict=True)
        marks += [dot(axes.at_x(x), axes.at_y(y), radius, f"fill {style}") for x, y in positions]
    return marks


def framed(
    axes: PlotArea, name: str, levels: Sequence[str], ends: tuple[str, str], x_ticks: int = 5
) -> Markup:
    """The frame of a probability along a column, whose levels are named below it if they fit.

    ``ends`` are texts for both ends of a column of texts, such as dates.
    """
    if not levels:
        return axes.frame(clipped(name, 40), "probability", x_ticks=x_ticks, x_ends=ends)
    return axes.frame("", "probability", x_ticks=0) + level_names(axes, name, levels)


LETTER: Final = 6.5
"""Width of a letter of the names of levels."""
NAME_LINES: Final = 4
"""Lines of the names of levels, of which all others are cut to fit."""


def _lines_of(axes: PlotArea, levels: Sequence[str]) -> tuple[int, int]:
    """Lines on which names of levels fit beside each other, and letters that fit on one of them."""
    slot = (axes.box[2] - axes.box[0]) / LETTER / max(len(levels), 1)
    lines = min(NAME_LINES, ceil((max(map(len, levels), default=0) + 1) / slot))
    return lines, max(3, int(lines * slot) - 1)


def foot(axes: PlotArea, levels: Sequence[str]) -> float:
    """The end of the names of levels, or of ticks, and of their column below a plotting area."""
    return axes.box[3] + 26 + 13 * max(2, _lines_of(axes, levels)[0])


def level_names(axes: PlotArea, name: str, levels: Sequence[str]) -> Markup:
    """Names of levels, which lie at whole numbers, and of their column, below a plotting area.

    Neighbours stand on other lines where they do not fit beside each other.
    """
    left, _, right, bottom = axes.box
    lines, letters = _lines_of(axes, levels)
    texts = []
    for i, level in enumerate(levels):
        text, y = clipped(level, letters), bottom + 15 + 13 * (i % lines)
        half = LETTER * len(text) / 2
        x = max(half, min(axes.at_x(i), right + 12 - half))
        texts.append(element("text", text, class_="tick", x=x, y=y))
    below = bottom + 19 + 13 * lines
    label = element("text", clipped(name, 40), class_="label", x=(left + right) / 2, y=below)
    return Markup("").join([*texts, label])


def stacked(
    bars: Float[np.ndarray, "series bar"], width: float, height: float, styles: Sequence[str]
) -> list[Markup]:
    """Stacked bars, one stack a bin; later series are above earlier ones."""
    wide = width / max(bars.shape[1], 1)
    scale = height / (float(bars.sum(0).max(initial=0.0)) or 1.0)
    tops = height - scale * bars.cumsum(axis=0)
    return [
        rect(
            i * wide,
            float(tops[c, i]),
            wide - min(1.0, wide / 8),
            float(scale * bars[c, i]),
            styles[c],
        )
        for c, i in np.argwhere(bars > 0).tolist()
    ]


def share_bar(share: float, title: str) -> Markup:
    """A share as a bar of the size of a word; ``what`` is its text alternative."""
    trough, bar = (
        rect(0, 1, width, 8, style, rx=2)
        for width, style in ((60, "trough"), (60 * share, "fill c0"))
    )
    return picture(60.0, 10.0, title, trough, bar)


def upright(axes: PlotArea, at: float) -> Markup:
    """A dashed line at a value across."""
    return segment(axes.at_x(at), axes.box[3], axes.at_x(at), axes.box[1], "diagonal")


BAR: Final = 13.0
"""Height of a bar and of the figure beside it, which a phone shows larger."""
WIDEST_LETTER: Final = 8.5
"""Width of a letter of the names beside bars, on a phone."""


def bars(
    rows: Sequence[tuple[str, Sequence[tuple[float, str]]]],
    most: float,
    decimals: int | None,
    unit: str,
    title: str,
) -> Markup:
    """Bars of one or two values, each with its style, beside every name, up to ``most``."""
    n = max((len(values) for _, values in rows), default=1)
    names = [clipped(name, 32) for name, _ in rows]
    left = 20.0 + WIDEST_LETTER * max(map(len, names), default=0)
    step = 10.0 + BAR * n
    bottom = 6 + step * len(rows)
    axes = PlotArea((0.0, most * 1.02), (0.0, 1.0), (left, 6.0, WIDE_WIDTH - 62, bottom))
    marks = []
    for i, (name, (_, values)) in enumerate(zip(names, rows, strict=True)):
        y = 6 + step * i
        marks.append(element("text", name, class_="tick end", x=left - 8, y=y + 9 + BAR / 2 * n))
        for lane, (value, style) in enumerate(values):
            top, end = y + 5 + BAR * lane, axes.at_x(value)
            marks += [
                rect(left, top, end - left, BAR - 1, style),
                element("text", cell(value, decimals), class_="tick start", x=end + 5, y=top + 10),
            ]
    return picture(WIDE_WIDTH, bottom + 40, title, axes.frame(unit, x_ticks=3), *marks)
