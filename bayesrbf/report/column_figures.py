"""Pictures of columns: their missing cells, their distributions, their contributions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float
from markupsafe import Markup

from bayesrbf.report.effects import Contribution
from bayesrbf.report.figures import NARROW, SMALL_WIDTH
from bayesrbf.report.learned_records import ClassCells, ClassColumn
from bayesrbf.report.svg import PlotArea, element, linear, picture, points
from bayesrbf.report.words import (
    cell,
    clipped,
    count,
    decimals_of,
    listing,
    number,
    percent,
    plural,
)


def contributions(rows: Sequence[Contribution]) -> Markup:
    """Two bars a column, in nats: known alone, and beside all others."""
    step, left = 30.0, 150.0
    bottom = 6 + step * len(rows)
    most = max((row.most for row in rows), default=0.0) or 1.0
    axes = PlotArea((0.0, most * 1.02), (0.0, 1.0), (left, 6.0, NARROW - 62, bottom))
    decimals = decimals_of(np.array([0.0, most]), as_written=False)
    bars = []
    for i, row in enumerate(rows):
        y = 6 + step * i
        bars.append(element("text", clipped(row.name, 20), class_="tick end", x=left - 8, y=y + 19))
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
    return picture(NARROW, bottom + 40, title, axes.frame("nats per row", x_ticks=3), *bars)


def relevances(rows: Sequence[tuple[str, float]]) -> Markup:
    """A bar a column: what a difference in it counts, over the largest."""
    step, left = 20.0, 150.0
    bottom = 6 + step * len(rows)
    axes = PlotArea((0.0, 1.02), (0.0, 1.0), (left, 6.0, NARROW - 62, bottom))
    bars = []
    for i, (name, value) in enumerate(rows):
        y, end = 6 + step * i, axes.at_x(value)
        bars += [
            element("text", clipped(name, 20), class_="tick end", x=left - 8, y=y + 14),
            element("rect", class_="fill c0", x=left, y=y + 5, width=end - left, height=10),
            element("text", cell(value, 2), class_="tick start", x=end + 5, y=y + 14),
        ]
    first = ", ".join(f"{name} {number(value)}" for name, value in rows[:5])
    title = f"How much a difference in a column counts, over the largest of its kind: {first}"
    return picture(NARROW, bottom + 40, title, axes.frame("over the largest", x_ticks=3), *bars)


CLASS_LANE = 56.0
"""Height of a class's lane."""
ATOM = 3.0
"""Width of the bar of an atom."""


def by_class(column: ClassColumn, classes: Sequence[str], shown: Sequence[int]) -> Markup:
    """The labelled cells of a column in some classes: bars, atoms, and the class's own density."""
    named = listing([classes[c] for c in shown], len(shown))
    title = f"Distribution of {column.name} in the classes {named}"
    left, right, top = 12.0, 284.0, 18.0
    if column.kind == "categorical":
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
