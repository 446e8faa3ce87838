"""The picture of a stack: its members and their weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from bayesrbf.report.figures import NARROW
from bayesrbf.report.model_records import Member
from bayesrbf.report.svg import Axes, element, picture
from bayesrbf.report.words import clipped, number


def weights(members: Sequence[Member]) -> Markup:
    """Weights of the members of a stack, each with its 90 % interval.

    Parameters
    ----------
    members : sequence of Member
        Members; a ring is the fitted weight, a dot the posterior mean.

    Returns
    -------
    Markup
        A picture.
    """
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
