"""The pictures of the report, drawn as SVG from arrays.

Colours are classes of the page's style sheet, so that one picture serves light, dark and
print. Shapes differ wherever colours do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int
from markupsafe import Markup

from bayesrbf.posterior.calibration import ReliabilityCurve
from bayesrbf.report.learned_records import Member
from bayesrbf.report.svg import PlotArea, element, picture, points
from bayesrbf.report.words import clipped, number, percent

NARROW = 344.0
"""Width that fits a phone, in CSS pixels."""
SMALL_WIDTH = 296.0
"""Width at which three pictures fit side by side on a desk."""
MOST_POINTS = 3000
"""Points drawn in a scatter plot; of more, a regular subset."""


def comparison(names: Sequence[str], values: Sequence[tuple[float, float]], unit: str) -> Markup:
    """Scores of several classifiers with two standard errors on either side; smaller is better."""
    spread = [2 * np.nan_to_num(error) for _, error in values]
    ends = [value + step for (value, _), step in zip(values, spread, strict=True)]
    top, row = 8.0, 42.0
    bottom = top + row * len(names)
    axes = PlotArea((0.0, max(ends) * 1.06), (0.0, 1.0), (10.0, top, NARROW - 14, bottom))
    marks: list[Markup] = []
    for i, (name, (value, _), step) in enumerate(zip(names, values, spread, strict=True)):
        y, own = top + row * (i + 0.68), "c0" if i == 0 else "muted"
        low, high = axes.at_x(max(value - step, 0.0)), axes.at_x(value + step)
        label = f"{name}: {number(value)}"
        marks += [
            element("text", label, class_="name", x=axes.box[0] + 3, y=y - 11),
            element("line", class_=f"stroke {own} thick", x1=low, x2=high, y1=y, y2=y),
            element("circle", class_=f"fill {own}", cx=axes.at_x(value), cy=y, r=5),
        ]
    title = f"{unit}: " + "; ".join(
        f"{name} {number(value)} ± {number(error)}"
        for name, (value, error) in zip(names, values, strict=True)
    )
    return picture(NARROW, bottom + 40, title, axes.frame(unit), *marks)


def reliability(curve: ReliabilityCurve, name: str, series: int = 0) -> Markup:
    """Observed share against predicted probability of one class, with its band."""
    axes = PlotArea((0.0, 1.0), (0.0, 1.0), (44.0, 12.0, 284.0, 252.0))
    x, y = axes.at_x, axes.at_y
    outside = int(((curve.observed < curve.lower) | (curve.observed > curve.upper)).sum())
    across = [x(p) for p in curve.predicted]
    widths = 5.0
    bands = [
        element(
            "rect",
            class_="band",
            x=centre - widths,
            y=y(high),
            width=2 * widths,
            height=max(y(low) - y(high), 1.5),
            rx=2,
        )
        for centre, low, high in zip(across, curve.lower, curve.upper, strict=True)
    ]
    biggest = curve.mass.max()
    dots = [
        element(
            "circle",
            element("title", f"{number(mass)} rows: said {number(p)}, came true {number(share)}"),
            class_=f"fill c{series}",
            cx=centre,
            cy=y(share),
            r=2.5 + 2.5 * float(np.sqrt(mass / biggest)),
        )
        for centre, share, p, mass in zip(
            across, curve.observed, curve.predicted, curve.mass, strict=True
        )
    ]
    title = (
        f"Reliability of {name}: {outside} of {curve.mass.size} groups of rows lie outside "
        "what chance allows"
    )
    line = points(across, [y(share) for share in curve.observed])
    return picture(
        SMALL_WIDTH,
        292.0,
        title,
        axes.frame(f"predicted probability of {clipped(name, 22)}", "observed share"),
        *bands,
        element("line", class_="diagonal", x1=x(0.0), y1=y(0.0), x2=x(1.0), y2=y(1.0)),
        element("polyline", class_=f"line c{series}", points=line),
        *dots,
    )


def doubt(
    aleatoric: Float[np.ndarray, " obs"],
    epistemic: Float[np.ndarray, " obs"],
    outcome: Int[np.ndarray, " obs"],
) -> Markup:
    """Every row by both parts of its entropy; outcome is 1 if right, 0 if wrong, -1 if unknown."""
    width, bottom = 480.0, 300.0
    axes = PlotArea(
        (0.0, max(float(aleatoric.max(initial=0)), 0.05) * 1.05),
        (0.0, max(float(epistemic.max(initial=0)), 0.005) * 1.08),
        (54.0, 12.0, width - 12, bottom),
    )
    places = np.unique(np.linspace(0, len(outcome) - 1, MOST_POINTS).astype(int))
    places = places[np.argsort(-outcome[places], kind="stable")]
    places = np.concatenate([places[outcome[places] != 0], places[outcome[places] == 0]])
    dots = [
        _outcome_mark(
            axes.at_x(float(aleatoric[i])), axes.at_y(float(epistemic[i])), int(outcome[i])
        )
        for i in places
    ]
    title = (
        f"Doubt by overlap (aleatoric) against doubt about the model (epistemic) of "
        f"{len(outcome)} rows; "
        f"{int((outcome == 0).sum())} held-out predictions were wrong"
    )
    frame = axes.frame("doubt because classes overlap (nats)", "doubt about the model (nats)")
    return picture(width, bottom + 42, title, frame, *dots)


def _outcome_mark(x: float, y: float, outcome: int) -> Markup:
    """A dot where right, a cross where wrong, a ring where unknown."""
    if outcome == 0:
        arms = f"M{x - 4:.1f},{y - 4:.1f}l8,8m0,-8l-8,8"
        return element("path", class_="stroke c1 thick", d=arms)
    if outcome == 1:
        return element("circle", class_="fill c0 faint", cx=x, cy=y, r=3)
    return element("circle", class_="stroke c2 faint", cx=x, cy=y, r=3)


def coverage(nominal: Float[np.ndarray, " level"], covered: Float[np.ndarray, " level"]) -> Markup:
    """Share of known cells inside intervals of growing probability."""
    axes = PlotArea((0.0, 1.0), (0.0, 1.0), (44.0, 12.0, 284.0, 252.0))
    x, y = axes.at_x, axes.at_y
    line = points(map(x, nominal), map(y, covered))
    dots = [
        element("circle", class_="fill c0", cx=x(float(p)), cy=y(float(q)), r=3.5)
        for p, q in zip(nominal, covered, strict=True)
    ]
    at = int(np.abs(nominal - 0.9).argmin())
    title = f"Intervals of {percent(float(nominal[at]))} hold {percent(float(covered[at]))}"
    return picture(
        SMALL_WIDTH,
        292.0,
        title,
        axes.frame("probability promised", "share of cells inside"),
        element("line", class_="diagonal", x1=x(0.0), y1=y(0.0), x2=x(1.0), y2=y(1.0)),
        element("polyline", class_="line c0", points=line),
        *dots,
    )


def filled_against_truth(
    truth: Float[np.ndarray, " known"], filled: Float[np.ndarray, " known"]
) -> Markup:
    """Filled cells against hidden ones, in standard deviations from the column's mean."""
    ends = (-3.0, 5.0)
    axes = PlotArea(ends, ends, (44.0, 12.0, 284.0, 252.0))
    places = np.unique(np.linspace(0, len(truth) - 1, 1200).astype(int))
    inside = [i for i in places if ends[0] < truth[i] < ends[1] and ends[0] < filled[i] < ends[1]]
    dots = [
        element(
            "circle",
            class_="fill c0 veil",
            cx=axes.at_x(float(filled[i])),
            cy=axes.at_y(float(truth[i])),
            r=2,
        )
        for i in inside
    ]
    r = float(np.corrcoef(truth, filled)[0, 1])
    start, end = axes.at_x(ends[0]), axes.at_x(ends[1])
    line = element(
        "line", class_="diagonal", x1=start, x2=end, y1=axes.at_y(ends[0]), y2=axes.at_y(ends[1])
    )
    title = f"True against filled cells, correlation {number(r)}"
    frame = axes.frame("filled in (column sd)", "true value (column sd)")
    return picture(SMALL_WIDTH, 292.0, title, frame, line, *dots)


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


def weights(members: Sequence[Member]) -> Markup:
    """Weights of the members: the fitted one a ring, the mean a dot with its 90 % interval."""
    step, top, width = 42.0, 8.0, 640.0
    bottom = top + step * len(members)
    axes = PlotArea((0.0, 1.0), (0.0, 1.0), (10.0, top, width - 14, bottom))
    marks: list[Markup] = []
    for i, member in enumerate(members):
        y = top + step * (i + 0.68)
        marks.append(element("text", clipped(member.name, 100), class_="name", x=13.0, y=y - 11))
        if np.isfinite(member.mean):
            low, high = axes.at_x(member.lower), axes.at_x(member.upper)
            marks += [
                element("line", class_="stroke c0 thick", x1=low, x2=high, y1=y, y2=y),
                element("circle", class_="fill c0", cx=axes.at_x(member.mean), cy=y, r=5),
            ]
        marks.append(element("circle", class_="stroke c1", cx=axes.at_x(member.fitted), cy=y, r=5))
    text = "; ".join(
        f"{member.name} {number(member.fitted)}"
        + (f", {number(member.lower)} to {number(member.upper)}" if member.mean >= 0 else "")
        for member in members
    )
    frame = axes.frame("weight in the pool")
    return picture(width, bottom + 40, f"Weights of the members: {text}", frame, *marks)
