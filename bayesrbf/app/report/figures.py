"""The pictures of the report, drawn as SVG from arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from markupsafe import Markup

import bayesrbf
from bayesrbf.answers.performance import EventPerformance
from bayesrbf.answers.scores import ReliabilityCurve
from bayesrbf.answers.stability import Stability
from bayesrbf.app.report.costs import Costs
from bayesrbf.app.report.learned import ClassCells, ClassColumn, Contribution, Effect, Member
from bayesrbf.app.svg import PlotArea, element, linear, picture, points
from bayesrbf.app.words import cell, clipped, count, decimals_of, listing, number, percent, plural

# The pictures of the report, drawn as SVG from arrays.
#
# Colours are classes of the page's style sheet, so that one picture serves light, dark and
# print. Shapes differ wherever colours do.


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


STRIP: Final = 46.0
"""Height of the bars of each outcome below a reliability diagram."""


def reliability(
    curve: ReliabilityCurve, name: str, series: int = 0, own: EventPerformance | None = None
) -> Markup:
    """Observed share against predicted probability of one class, with its band.

    With the performance of the class there are the smooth curve, with its band, in place of a line
    through the dots, and below it the rows with and without the event by their probability.
    """
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
    line, strip = points(across, [y(share) for share in curve.observed]), []
    if own is not None:
        strip = _outcomes(own, axes, series)
        if (smooth := own.curve) is not None:
            line = points(map(x, smooth.probability.tolist()), map(y, smooth.observed.tolist()))
            around = np.r_[smooth.probability, smooth.probability[::-1]].tolist()
            edges = np.r_[smooth.upper, smooth.lower[::-1]].tolist()
            veil = points(map(x, around), map(y, edges))
            bands.append(element("polygon", class_=f"veil fill c{series}", points=veil))
    return picture(
        SMALL_WIDTH,
        292.0 + (2 * STRIP if own is not None else 0.0),
        title,
        axes.frame(f"predicted probability of {clipped(name, 22)}", "observed share"),
        *bands,
        element("line", class_="diagonal", x1=x(0.0), y1=y(0.0), x2=x(1.0), y2=y(1.0)),
        element("polyline", class_=f"line c{series}", points=line),
        *dots,
        *strip,
    )


def _outcomes(own: EventPerformance, axes: PlotArea, series: int) -> list[Markup]:
    """Rows with the event as bars upwards, those without downwards, each over its own largest."""
    others, events = own.distribution
    middle, wide = axes.box[3] + 40 + STRIP, (axes.at_x(1.0) - axes.at_x(0.0)) / others.size
    marks = [element("line", class_="axis", x1=axes.box[0], x2=axes.box[2], y1=middle, y2=middle)]
    for counts, up, style in ((events, True, f"fill c{series}"), (others, False, "fill muted")):
        for place, rows in enumerate(counts.tolist()):
            high = (STRIP - 12) * rows / max(int(counts.max()), 1)
            y, x = middle - high if up else middle, axes.at_x(place / others.size)
            bar = element("rect", class_=style, x=x, y=y, width=wide - 1, height=high)
            marks += [bar] if rows else []
    for text, y in ((clipped(own.event, 36), middle - STRIP + 8), ("others", middle + STRIP - 2)):
        marks.append(element("text", text, class_="tick start", x=axes.box[0], y=y))
    return marks


def doubt(
    aleatoric: Float[np.ndarray, " obs"],
    epistemic: Float[np.ndarray, " obs"],
    outcome: Int[np.ndarray, " obs"],
) -> Markup:
    """Every row by both parts of its entropy; outcome is 1 if right, 0 if wrong, -1 if unknown."""
    axes = PlotArea(
        (0.0, max(float(aleatoric.max(initial=0)), 0.05) * 1.05),
        (0.0, max(float(epistemic.max(initial=0)), 0.005) * 1.08),
        WIDE_BOX,
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
    return picture(WIDE_WIDTH, 294.0, title, frame, *dots)


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
    step, top, width = 42.0, 8.0, WIDE_WIDTH
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


# Pictures of columns: their missing cells, their distributions, their contributions.


def contributions(rows: Sequence[Contribution]) -> Markup:
    """Two bars a column, in nats: known alone, and beside all others."""
    step, left = 30.0, 290.0
    bottom = 6 + step * len(rows)
    most = max((row.most for row in rows), default=0.0) or 1.0
    axes = PlotArea((0.0, most * 1.02), (0.0, 1.0), (left, 6.0, WIDE_WIDTH - 62, bottom))
    decimals = decimals_of(np.array([0.0, most]), as_written=False)
    bars = []
    for i, row in enumerate(rows):
        y = 6 + step * i
        bars.append(element("text", clipped(row.name, 32), class_="tick end", x=left - 8, y=y + 19))
        for value, style, down in ((row.alone, "fill c2", 4.0), (row.beside, "fill c0", 15.0)):
            end = axes.at_x(value)
            bars += [
                element("rect", class_=style, x=left, y=y + down, width=end - left, height=10),
                element(
                    "text", cell(value, decimals), class_="tick start", x=end + 5, y=y + down + 9
                ),
            ]
    first = ", ".join(f"{o.name} {number(o.alone)} and {number(o.beside)}" for o in rows[:5])
    title = f"How far columns move the probabilities, alone and beside all others, in nats: {first}"
    return picture(WIDE_WIDTH, bottom + 40, title, axes.frame("nats per row", x_ticks=3), *bars)


def relevances(rows: Sequence[tuple[str, float]]) -> Markup:
    """A bar a column: what a difference in it counts, over the largest."""
    step, left = 20.0, 290.0
    bottom = 6 + step * len(rows)
    axes = PlotArea((0.0, 1.02), (0.0, 1.0), (left, 6.0, WIDE_WIDTH - 62, bottom))
    bars = []
    for i, (name, value) in enumerate(rows):
        y, end = 6 + step * i, axes.at_x(value)
        bars += [
            element("text", clipped(name, 32), class_="tick end", x=left - 8, y=y + 14),
            element("rect", class_="fill c0", x=left, y=y + 5, width=end - left, height=10),
            element("text", cell(value, 2), class_="tick start", x=end + 5, y=y + 14),
        ]
    first = ", ".join(f"{name} {number(value)}" for name, value in rows[:5])
    title = f"How much a difference in a column counts, over the largest of its kind: {first}"
    return picture(WIDE_WIDTH, bottom + 40, title, axes.frame("over the largest", x_ticks=3), *bars)


CLASS_LANE = 56.0
"""Height of a class's lane."""
ATOM = 3.0
"""Width of the bar of an atom."""


def by_class(column: ClassColumn, classes: Sequence[str], shown: Sequence[int]) -> Markup:
    """The labelled cells of a column in some classes: bars, atoms, and the class's own density."""
    named = listing([classes[c] for c in shown], len(shown))
    title = f"Distribution of {column.name} in the classes {named}"
    left, right, top = 12.0, 284.0, 18.0
    if column.levels:
        box = (left, 10.0, right, 150.0)
        return picture(SMALL_WIDTH, 190.0, title, *_level_bars(column, box, shown))
    limits, marks, bottom = (float(column.edges[0]), float(column.edges[-1])), [], top
    for c in shown:
        own = column.classes[c]
        most = max(float(part.max(initial=0.0)) for part in (own.bars, own.masses, own.curve))
        axes = PlotArea(limits, (0.0, most or 1.0), (left, bottom, right, bottom + CLASS_LANE))
        marks += _lane(column, own, axes, c)
        label = f"{clipped(classes[c], 24)} ({plural(own.cells, 'cell')})"
        marks.append(element("text", label, class_="tick end", x=right, y=bottom - 4))
        bottom += CLASS_LANE + top
    ends = PlotArea(limits, (0.0, 1.0), (left, top, right, bottom - top))
    frame = ends.frame(clipped(column.name, 36), x_ticks=4)
    return picture(SMALL_WIDTH, bottom - top + 40, title, frame, *marks)


def _lane(column: ClassColumn, own: ClassCells, axes: PlotArea, c: int) -> list[Markup]:
    """Bars of a class's cells, atoms as narrow full ones, and its curve."""
    places = [
        *((low, high, share, "veil ") for low, high, share in _bins(column.edges, own.bars)),
        *((at, at, mass, "") for at, mass in zip(own.atoms, own.masses, strict=True)),
    ]
    base = axes.at_y(0.0)
    marks = []
    for low, high, share, look in places:
        wide = max(axes.at_x(float(high)) - axes.at_x(float(low)) - 0.5, ATOM if low == high else 1)
        start = axes.at_x(float(low)) - (wide / 2 if low == high else 0.0)
        y = axes.at_y(float(share))
        style = f"{look}fill c{c % 8}"
        bar = element("rect", class_=style, x=start, y=y, width=wide, height=base - y)
        marks += [bar] if share > 0 else []
    marks.append(element("line", class_="axis", x1=axes.box[0], x2=axes.box[2], y1=base, y2=base))
    if own.curve.size:
        line = points(map(axes.at_x, own.grid), map(axes.at_y, own.curve))
        marks.append(element("polyline", class_=f"line c{c % 8}", points=line))
    return marks


def _bins(
    edges: Float[np.ndarray, " edge"], bars: Float[np.ndarray, " bar"]
) -> Iterator[tuple[float, float, float]]:
    """Ends and share of every bin."""
    yield from zip(edges[:-1].tolist(), edges[1:].tolist(), bars.tolist(), strict=True)


def _level_bars(
    column: ClassColumn, box: tuple[float, float, float, float], shown: Sequence[int]
) -> list[Markup]:
    """Groups of bars, one group a level."""
    top = max(float(column.classes[c].bars.max(initial=0.0)) for c in shown) * 1.06 or 1.0
    axes = PlotArea((0.0, float(max(len(column.levels), 1))), (0.0, top), box)
    wide = 0.8 * (axes.at_x(1.0) - axes.at_x(0.0)) / len(shown)
    letters = max(3, int(34 / max(len(column.levels), 1)))
    marks = []
    for level, name in enumerate(column.levels):
        start = axes.at_x(level + 0.1)
        for place, c in enumerate(shown):
            height = axes.at_y(0.0) - axes.at_y(float(column.classes[c].bars[level]))
            marks.append(
                element(
                    "rect",
                    class_=f"fill c{c % 8}",
                    x=start + place * wide,
                    y=box[3] - height,
                    width=max(wide - 1, 1.0),
                    height=height,
                )
            )
        middle = axes.at_x(level + 0.5)
        text = clipped(name, letters)
        marks.append(element("text", text, class_="tick", x=middle, y=box[3] + 15))
    caption = element(
        "text", clipped(column.name, 36), class_="label", x=SMALL_WIDTH / 2, y=box[3] + 32
    )
    base = element("line", class_="axis", x1=box[0], x2=box[2], y1=box[3], y2=box[3])
    return [base, caption, *marks]


def missingness(
    holes: Float[np.ndarray, "band column"], names: Sequence[str], band: int, n_rows: int
) -> Markup:
    """Share of missing cells: bands of ``band`` rows down, columns across."""
    n_bands, n_columns = holes.shape
    cell, high, left, top = 18.0, max(4.0, min(14.0, 220 / n_bands)), 74.0, 128.0
    squares = [
        element(
            "rect",
            class_="fill c0",
            fill_opacity=float(share),
            x=left + cell * j,
            y=top + high * i,
            width=cell - 1,
            height=high - min(1.0, high / 6),
        )
        for (i, j), share in np.ndenumerate(holes)
        if share > 0
    ]
    labels = []
    for j, name in enumerate(names):
        x, y = left + cell * (j + 0.65), top - 6
        turned = f"rotate(-60 {x:.1f} {y:.1f})"
        text = clipped(name, 20)
        labels.append(element("text", text, class_="tick start", x=x, y=y, transform=turned))
    bottom = top + high * n_bands
    rows = [
        element("text", "row 1", class_="tick end", x=left - 8, y=top + 10),
        element("text", f"row {count(n_rows)}", class_="tick end", x=left - 8, y=bottom),
        element(
            "rect",
            class_="outline",
            x=left,
            y=top,
            width=cell * n_columns,
            height=high * n_bands,
        ),
    ]
    worst = names[int(holes.mean(0).argmax())] if n_columns else ""
    title = (
        f"Missing cells by column and by bands of {band} rows; most in {worst}, "
        f"{percent(float(holes.mean(0).max(initial=0)))}"
    )
    return picture(left + cell * n_columns + 80, bottom + 8, title, *squares, *labels, *rows)


def histogram(counts: Float[np.ndarray, " bar"], name: str) -> Markup:
    """A column's distribution as a picture of the size of a word."""
    width, height = 88.0, 22.0
    most = float(counts.max(initial=0)) or 1.0
    wide = width / max(len(counts), 1)
    bars = [
        element(
            "rect",
            class_="fill c0",
            x=i * wide,
            y=height - height * float(value) / most,
            width=max(wide - 1, 0.5),
            height=height * float(value) / most,
        )
        for i, value in enumerate(counts)
        if value > 0
    ]
    return picture(width, height, f"Distribution of {name}", *bars)


def share_bar(share: float, what: str) -> Markup:
    """A share as a bar of the size of a word; ``what`` is its text alternative."""
    width = linear((0.0, 1.0), (0.0, 60.0))(share)
    return picture(
        60.0,
        10.0,
        what,
        element("rect", class_="trough", x=0, y=1, width=60, height=8, rx=2),
        element("rect", class_="fill c0", x=0, y=1, width=width, height=8, rx=2),
    )


# Pictures of decisions: what mistakes cost, net benefit, the effect of a column.


def costs(judged: Costs) -> Markup:
    """Mean cost of a row against the cost of the dearest class; a line marks the cost given."""
    top = max(float(curve.max()) for _, curve in judged.curves[:1] + judged.curves[-1:])
    ends = float(judged.along[0]), float(judged.along[-1])
    axes = PlotArea(ends, (0.0, top * 1.06 or 1.0), WIDE_BOX)
    lines = [
        _line(axes, judged.along, np.minimum(curve, axes.y[1]), f"line {style}")
        for (_, curve), style in zip(judged.curves, line_styles(judged), strict=True)
    ]
    title = "Mean cost of a row at the costs given: " + "; ".join(
        f"{name} {number(cost)}" for name, cost in judged.rows
    )
    frame = axes.frame(f"cost of a mistaken {clipped(judged.dearest, 24)}", "mean cost of a row")
    return picture(WIDE_WIDTH, 294.0, title, frame, _upright(axes, judged.here), *lines)


def line_styles(judged: Costs) -> list[str]:
    """Style sheet classes for colour and dash of every curve; the last one, ``SAME``, is grey."""
    return [f"c{i} dash{i % 4}" for i in range(len(judged.curves) - 1)] + ["muted"]


def net_benefit(
    own: EventPerformance,
    others: Sequence[EventPerformance],
    threshold: float | None = None,
    wide: bool = True,
) -> Markup:
    """Net benefit of the model with its interval, of others, and of acting on every row."""
    box = WIDE_BOX if wide else BOX
    curve = own.decision_curve
    t = curve.thresholds
    high = max(float(curve.model.max()), float(curve.everybody.max()), 1e-3) * 1.15
    low = -0.25 * high
    axes = PlotArea((0.0, 1.0), (low, high), box)

    def inside(values: Float[np.ndarray, " threshold"]) -> Float[np.ndarray, " threshold"]:
        return np.clip(values, low, high)

    across = [axes.at_x(float(at)) for at in np.r_[t, t[::-1]]]
    edges = np.r_[inside(curve.upper), inside(curve.lower)[::-1]]
    band = points(across, [axes.at_y(float(edge)) for edge in edges])
    zero = axes.at_y(0.0)
    marks = [
        element("polygon", class_="band", points=band),
        element("line", class_="axis", x1=axes.box[0], x2=axes.box[2], y1=zero, y2=zero),
        _line(axes, t[curve.everybody > low], curve.everybody[curve.everybody > low], "line muted"),
        *(
            _line(axes, t, inside(other.decision_curve.model), f"line c{place} dash{place}")
            for place, other in enumerate(others, 1)
        ),
        _line(axes, t, inside(curve.model), "line c0"),
    ]
    if threshold is not None:
        marks.append(_upright(axes, threshold))
    title = (
        f"Net benefit of acting on {own.event}, at most {number(float(curve.model.max()))} of a "
        f"row; acting on every row {number(float(curve.everybody.max()))}"
    )
    name = f"probability of {clipped(own.event, 22)} from which one acts"
    return picture(
        box[2] + 12, box[3] + 42, title, axes.frame(name, "net benefit of a row"), *marks
    )


def stability(found: Stability) -> list[Markup]:
    """Instability interval of every row, and the share of the refits that decide it otherwise."""
    own = found.largest
    rows, unit = slice(None, None, -(-own.probability.size // MOST_POINTS)), np.array([0.0, 1.0])
    axes = PlotArea((0.0, 1.0), (0.0, 1.0), BOX)
    x, (low, high) = list(map(axes.at_x, own.probability[rows].tolist())), own.interval[:, rows]
    bars = [
        element("line", class_="stroke c0 faint", x1=at, x2=at, y1=axes.at_y(a), y2=axes.at_y(b))
        for at, a, b in zip(x, low.tolist(), high.tolist(), strict=True)
    ]
    dots = [
        element("circle", class_="fill c0 faint", cx=at, cy=axes.at_y(share), r=2)
        for at, share in zip(x, own.changes[rows].tolist(), strict=True)
    ]
    across, most = f"probability of {clipped(own.event, 22)}", number(own.width.max())
    intervals = axes.frame(across, "by the refits"), *bars, _line(axes, unit, unit, "diagonal")
    decided = axes.frame(across, "share of refits"), *dots, _upright(axes, own.threshold)
    return [
        picture(356.0, 274.0, f"Instability intervals, at most {most} wide", *intervals),
        picture(356.0, 274.0, "Share of refits that decide a row otherwise", *decided),
    ]


def learning(found: bayesrbf.LearningCurve) -> Markup:
    """Log loss above that of the truth by rows, and where the refits are."""
    sizes, (mean, low, high) = found.sizes.astype(float), found.figures["log loss above truth"].T
    top = max(high.max(), 0.001)  # of a truth that is certain there is none
    axes = PlotArea((0.0, sizes[-1]), (0.0, top), WIDE_BOX)
    x, y = axes.at_x, axes.at_y
    edges = points(map(x, np.r_[sizes, sizes[::-1]]), map(y, np.r_[high, low[::-1]]))
    return picture(
        WIDE_WIDTH,
        294.0,
        found.sentence,
        axes.frame("rows", "log loss above truth (nats)"),
        element("polygon", class_="band", points=edges),
        _line(axes, sizes, mean, "line c0"),
        *(
            element("circle", class_="fill c0", cx=x(n), cy=y(loss), r=3.5)
            for n, loss in zip(sizes, mean, strict=True)
        ),
        _upright(axes, float(found.n_obs)),
    )


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
