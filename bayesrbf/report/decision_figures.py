"""Pictures of a stack's members and of what mistakes cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from bayesrbf.report.costs import Costs
from bayesrbf.report.figures import NARROW
from bayesrbf.report.model_records import Member
from bayesrbf.report.svg import Axes, element, picture, points
from bayesrbf.report.words import clipped, number


def weights(members: Sequence[Member]) -> Markup:
    """Weights of the members: the fitted one a ring, the mean a dot with its 90 % interval."""
    step, left, top = 26.0, 40.0, 4.0
    bottom = top + step * len(members)
    axes = Axes((0.0, 1.0), (0.0, 1.0), (left, top, NARROW - 14, bottom))
    marks: list[Markup] = []
    for i, member in enumerate(members):
        y = top + step * (i + 0.5)
        marks.append(
            element("text", clipped(member.name, 6), class_="name end", x=left - 8, y=y + 4)
        )
        if np.isfinite(member.mean):
            low, high = axes.at_x(member.lower), axes.at_x(member.upper)
            marks += [
                element("line", class_="stroke c0 thick", x1=low, x2=high, y1=y, y2=y),
                element("circle", class_="fill c0", cx=axes.at_x(member.mean), cy=y, r=5),
            ]
        marks.append(element("circle", class_="stroke c1", cx=axes.at_x(member.fitted), cy=y, r=5))
    told = "; ".join(
        f"{member.name} {number(member.fitted)}"
        + (f", {number(member.lower)} to {number(member.upper)}" if member.mean >= 0 else "")
        for member in members
    )
    frame = axes.frame("weight in the pool")
    return picture(NARROW, bottom + 40, f"Weights of the members: {told}", frame, *marks)


def costs(found: Costs) -> Markup:
    """Mean cost of a row against the share of the dearest class; a line marks the costs given."""
    width, bottom = 480.0, 260.0
    top = max(float(curve.max()) for _, curve in found.curves[:1] + found.curves[-1:])
    axes = Axes((0.0, 1.0), (0.0, top * 1.06 or 1.0), (54.0, 12.0, width - 12, bottom))
    x, y = axes.at_x, axes.at_y
    lines = [
        element(
            "polyline",
            class_=f"line {style}",
            points=points(map(x, found.shares), map(y, np.minimum(curve, top * 1.06))),
        )
        for (_, curve), style in zip(found.curves, line_styles(found), strict=True)
    ]
    here = x(found.here)
    mark = element("line", class_="diagonal", x1=here, x2=here, y1=y(0.0), y2=12.0)
    title = "Mean cost of a row at the costs given: " + "; ".join(
        f"{name} {number(cost)}" for name, cost in found.rows
    )
    frame = axes.frame(f"share of {clipped(found.dearest, 24)} in the costs", "cost of a row")
    return picture(width, bottom + 42, title, frame, mark, *lines)


def line_styles(found: Costs) -> list[str]:
    """Style sheet classes for colour and dash of every curve; the last one, ``SAME``, is grey."""
    return [f"c{i} dash{i % 4}" for i in range(len(found.curves) - 1)] + ["muted"]
