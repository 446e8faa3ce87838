"""Pictures of decisions: what mistakes cost, net benefit, the effect of a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float
from markupsafe import Markup

from bayesrbf.report.costs import Costs
from bayesrbf.report.effects import Effect
from bayesrbf.report.figures import SMALL_WIDTH
from bayesrbf.report.performance import Curves
from bayesrbf.report.svg import PlotArea, element, picture, points
from bayesrbf.report.words import clipped, number, percent

WIDE_WIDTH: Final = 480.0


def costs(judged: Costs) -> Markup:
    """Mean cost of a row against the cost of the dearest class; a line marks the cost given."""
    bottom = 260.0
    top = max(float(curve.max()) for _, curve in judged.curves[:1] + judged.curves[-1:])
    ends = float(judged.along[0]), float(judged.along[-1])
    axes = PlotArea(ends, (0.0, top * 1.06 or 1.0), (54.0, 12.0, WIDE_WIDTH - 12, bottom))
    lines = [
        _line(axes, judged.along, np.minimum(curve, axes.y[1]), f"line {style}")
        for (_, curve), style in zip(judged.curves, line_styles(judged), strict=True)
    ]
    title = "Mean cost of a row at the costs given: " + "; ".join(
        f"{name} {number(cost)}" for name, cost in judged.rows
    )
    frame = axes.frame(f"cost of a mistaken {clipped(judged.dearest, 24)}", "mean cost of a row")
    return picture(WIDE_WIDTH, bottom + 42, title, frame, _upright(axes, judged.here), *lines)


def line_styles(judged: Costs) -> list[str]:
    """Style sheet classes for colour and dash of every curve; the last one, ``SAME``, is grey."""
    return [f"c{i} dash{i % 4}" for i in range(len(judged.curves) - 1)] + ["muted"]


def net_benefit(curves: Curves) -> Markup:
    """Net benefit of the model with its interval, of the best rival, and of acting on all."""
    t, own = curves.own.thresholds, curves.own
    high = max(float(own.model.max()), float(own.everybody.max()), 1e-3) * 1.15
    low = -0.25 * high
    axes = PlotArea((0.0, 1.0), (low, high), (50.0, 12.0, 344.0, 232.0))

    def inside(curve: Float[np.ndarray, " threshold"]) -> Float[np.ndarray, " threshold"]:
        return np.clip(curve, low, high)

    across = [axes.at_x(float(threshold)) for threshold in np.r_[t, t[::-1]]]
    edges = np.r_[inside(own.upper), inside(own.lower)[::-1]]
    band = points(across, [axes.at_y(float(edge)) for edge in edges])
    zero = axes.at_y(0.0)
    marks = [
        element("polygon", class_="band", points=band),
        element("line", class_="axis", x1=axes.box[0], x2=axes.box[2], y1=zero, y2=zero),
        _line(axes, t, inside(own.everybody), "line muted"),
        _line(axes, t, inside(curves.rival.model), "line c1 dash1"),
        _line(axes, t, inside(own.model), "line c0"),
    ]
    if curves.threshold is not None:
        marks.append(_upright(axes, curves.threshold))
    title = (
        f"Net benefit of acting on {curves.name}, at most {number(float(own.model.max()))} of a "
        f"row; acting on every row {number(float(own.everybody.max()))}"
    )
    name = f"probability of {clipped(curves.name, 22)} from which one acts"
    return picture(356.0, 274.0, title, axes.frame(name, "net benefit of a row"), *marks)


def effect(column: Effect, shown: Sequence[int], base: Float[np.ndarray, " label"]) -> Markup:
    """Probability of some classes where only this column is known; dashes: where nothing is."""
    box = (48.0, 10.0, 284.0, 150.0)
    n_levels = len(column.levels)
    ends = (-0.5, n_levels - 0.5) if n_levels else (float(column.grid[0]), float(column.grid[-1]))
    axes = PlotArea(ends, (0.0, 1.0), box)
    marks: list[Markup] = []
    for c in shown:
        y = axes.at_y(float(base[c]))
        marks.append(element("line", class_="diagonal", x1=box[0], x2=box[2], y1=y, y2=y))
        if not n_levels:
            marks.append(_line(axes, column.grid, column.probabilities[:, c], f"line c{c % 8}"))
        marks += [
            element("circle", class_=f"fill c{c % 8}", cx=axes.at_x(float(x)), cy=axes.at_y(p), r=3)
            for x, p in zip(column.grid, map(float, column.probabilities[:, c]), strict=True)
        ]
    name = clipped(column.name, 36)
    frame = axes.frame(name, "probability", x_ticks=4) if not n_levels else _levels(column, axes)
    values = column.probabilities[:, shown[0]]
    title = (
        f"Where only {column.name} is known, the probability lies between "
        f"{percent(float(values.min()))} and {percent(float(values.max()))}"
    )
    return picture(SMALL_WIDTH, 190.0, title, frame, *marks)


def _levels(effect: Effect, axes: PlotArea) -> Markup:
    """A frame whose marks across are levels."""
    letters, y = max(3, int(34 / len(effect.levels))), axes.box[3] + 15.0
    upright = axes.frame(clipped(effect.name, 36), "probability", x_ticks=0)
    return upright + Markup("").join(
        element("text", clipped(level, letters), class_="tick", x=axes.at_x(float(i)), y=y)
        for i, level in enumerate(effect.levels)
    )


def _line(axes: PlotArea, across: np.ndarray, up: np.ndarray, style: str) -> Markup:
    """A curve."""
    xs, ys = (map(float, values) for values in (across, up))
    return element("polyline", class_=style, points=points(map(axes.at_x, xs), map(axes.at_y, ys)))


def _upright(axes: PlotArea, at: float) -> Markup:
    """A dashed line at a value across."""
    x = axes.at_x(at)
    return element("line", class_="diagonal", x1=x, x2=x, y1=axes.box[3], y2=axes.box[1])
