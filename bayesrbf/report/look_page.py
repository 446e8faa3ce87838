"""What was seen of a table, as a page and as lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from markupsafe import Markup

from bayesrbf.report import column_figures, figures, look, words
from bayesrbf.report.look import Look, Pair, Spread
from bayesrbf.report.render import MOST_COLUMNS, environment
from bayesrbf.report.svg import element, picture
from bayesrbf.report.words import clipped, count, listing, number, percent, plural
from bayesrbf.version import __version__

LINES: Final = 30
"""Columns, and pairs of them, that have a line in the terminal."""
WIDTH, HEIGHT = 232.0, 96.0


def render_look(seen: Look) -> str:
    """The page as HTML without scripts, control characters or anything from outside."""
    template = environment().get_template("look.html")
    page = template.render(
        look=seen,
        sentence={
            "opening": look.opening(seen),
            "holes": look.of_holes(seen),
            "duplicates": look.of_duplicates(seen),
            "pairs": look.of_pairs(seen),
        },
        pictures=[spread(one) for one in seen.spreads],
        missingness=_missingness(seen),
        classes=figures.legend({name: f"bar c{c % 8}" for c, name in enumerate(seen.classes)}),
        share=column_figures.share_bar,
        most=look.MOST_TOLD,
        version=__version__,
    )
    return words.harmless(page)


def spread(one: Spread) -> Markup:
    """A column as a picture: stacked bars, with the ends or the levels below."""
    series, n_bars = one.bars.shape
    low = one.bars.sum(0)
    most = float(low.max(initial=0)) or 1.0
    wide = WIDTH / max(n_bars, 1)
    bars, bottoms = [], np.full(n_bars, HEIGHT)
    for c in range(series):
        highs = HEIGHT * one.bars[c] / most
        for i in np.flatnonzero(highs).tolist():
            bottoms[i] -= highs[i]
            style = f"fill c{c % 8}"
            x, gap = i * wide, min(1.0, wide / 8)
            bars.append(
                element(
                    "rect",
                    class_=style,
                    x=float(x),
                    y=float(bottoms[i]),
                    width=float(wide - gap),
                    height=float(highs[i]),
                )
            )
    axis = element("line", class_="axis", x1=0, x2=WIDTH, y1=HEIGHT, y2=HEIGHT)
    title = f"Distribution of {one.column.name}: {one.facts}"
    return picture(WIDTH, HEIGHT + 20, title, *bars, axis, *_under(one, wide))


def _under(one: Spread, wide: float) -> Iterator[Markup]:
    """Ends of a real column, or levels as far as they fit."""
    y = HEIGHT + 15
    if not one.levels:
        yield element("text", one.ends[0], class_="tick start", x=0, y=y)
        yield element("text", one.ends[1], class_="tick end", x=WIDTH, y=y)
        return
    letters = int(wide / 8.5)
    for i, level in enumerate(one.levels):
        if letters >= 3:
            middle = (i + 0.5) * wide
            yield element("text", clipped(level, letters), class_="tick", x=middle, y=y)
    if letters < 3:
        yield element("text", clipped(one.levels[0], 14), class_="tick start", x=0, y=y)
        last = clipped(one.levels[-1], 14)
        yield element("text", last, class_="tick end", x=WIDTH, y=y)


def _missingness(seen: Look) -> Markup | None:
    """Picture of the missing cells; none where nothing is missing."""
    reading = seen.reading
    if reading.missing == 0:
        return None
    worst = sorted(range(len(reading.columns)), key=lambda j: -reading.columns[j].missing)
    shown = sorted(worst[:MOST_COLUMNS])
    names = [reading.columns[j].name for j in shown]
    return column_figures.missingness(reading.holes[:, shown], names, reading.band, reading.rows)


def lines_of_look(seen: Look) -> Iterator[str]:
    """What the page says of a table, as lines for the terminal."""
    yield f"{seen.title}: {look.opening(seen)}"
    yield from seen.remarks
    shown = seen.reading.columns[:LINES]
    wide = max(len(clipped(one.name, 24)) for one in shown)
    yield f"  {'column':<{wide}}  {'kind':<11}  {'missing':>8}  range or levels"
    for one in shown:
        name = f"{clipped(one.name, 24):<{wide}}"
        yield f"  {name}  {one.kind:<11}  {percent(one.missing):>8}  {clipped(one.content, 80)}"
    if len(seen.reading.columns) > LINES:
        yield f"  and {plural(len(seen.reading.columns) - LINES, 'column')} more"
    for note in seen.reading.notes:
        yield f"  note: {note}"
    yield f"Missing: {look.of_holes(seen)}"
    for pattern in seen.patterns if seen.reading.missing else ():
        names = listing([clipped(name, 24) for name in pattern.columns], 5)
        yield f"  {count(pattern.rows):>8} {f'without {names}' if names else 'complete'}"
    yield f"Twice: {look.of_duplicates(seen)}"
    yield f"Associations: {look.of_pairs(seen)}"
    yield from _of_pairs((*seen.with_target, *seen.pairs))


def _of_pairs(pairs: Sequence[Pair]) -> Iterator[str]:
    """A line for each of the strongest pairs."""
    for one in pairs[:LINES]:
        names = f"{clipped(one.first, 24)} – {clipped(one.second, 24)}"
        measure = f"{one.measure}{', falling' if one.falling else ''}"
        yield f"  {number(one.strength):>6}  {names}  ({measure}, {count(one.rows)} rows)"
    if len(pairs) > LINES:
        yield f"  and {plural(len(pairs) - LINES, 'pair')} more"
