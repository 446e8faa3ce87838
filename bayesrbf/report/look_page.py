"""Renders the first look at a table, as a page and as lines for the terminal."""

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


def render_look(first_look: Look) -> str:
    """The page as HTML without scripts, control characters or anything from outside."""
    template = environment().get_template("look.html")
    page = template.render(
        look=first_look,
        sentence={
            "opening": look.opening(first_look),
            "holes": look.of_holes(first_look),
            "duplicates": look.of_duplicates(first_look),
            "pairs": look.of_pairs(first_look),
        },
        pictures=[spread(bars) for bars in first_look.spreads],
        missingness=_missingness(first_look),
        classes=figures.legend(
            {name: f"bar c{c % 8}" for c, name in enumerate(first_look.classes)}
        ),
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


def _under(bars: Spread, wide: float) -> Iterator[Markup]:
    """Ends of a real column, or levels as far as they fit."""
    y = HEIGHT + 15
    if not bars.levels:
        yield element("text", bars.ends[0], class_="tick start", x=0, y=y)
        yield element("text", bars.ends[1], class_="tick end", x=WIDTH, y=y)
        return
    letters = int(wide / 8.5)
    for i, level in enumerate(bars.levels):
        if letters >= 3:
            middle = (i + 0.5) * wide
            yield element("text", clipped(level, letters), class_="tick", x=middle, y=y)
    if letters < 3:
        yield element("text", clipped(bars.levels[0], 14), class_="tick start", x=0, y=y)
        last = clipped(bars.levels[-1], 14)
        yield element("text", last, class_="tick end", x=WIDTH, y=y)


def _missingness(first_look: Look) -> Markup | None:
    """Picture of the missing cells; none where nothing is missing."""
    reading = first_look.reading
    if reading.missing == 0:
        return None
    worst = sorted(range(len(reading.columns)), key=lambda j: -reading.columns[j].missing)
    shown = sorted(worst[:MOST_COLUMNS])
    names = [reading.columns[j].name for j in shown]
    return column_figures.missingness(reading.holes[:, shown], names, reading.band, reading.rows)


def lines_of_look(first_look: Look) -> Iterator[str]:
    """The content of the page as lines for the terminal."""
    yield f"{first_look.title}: {look.opening(first_look)}"
    yield from first_look.remarks
    shown = first_look.reading.columns[:LINES]
    wide = max(len(clipped(column.name, 24)) for column in shown)
    yield f"  {'column':<{wide}}  {'kind':<11}  {'missing':>8}  range or levels"
    for column in shown:
        name = f"{clipped(column.name, 24):<{wide}}"
        missing, content = percent(column.missing), clipped(column.content, 80)
        yield f"  {name}  {column.kind:<11}  {missing:>8}  {content}"
    if len(first_look.reading.columns) > LINES:
        yield f"  and {plural(len(first_look.reading.columns) - LINES, 'column')} more"
    for note in first_look.reading.notes:
        yield f"  note: {note}"
    yield f"Missing: {look.of_holes(first_look)}"
    for pattern in first_look.patterns if first_look.reading.missing else ():
        names = listing([clipped(name, 24) for name in pattern.columns], 5)
        yield f"  {count(pattern.rows):>8} {f'without {names}' if names else 'complete'}"
    yield f"Twice: {look.of_duplicates(first_look)}"
    yield f"Associations: {look.of_pairs(first_look)}"
    yield from _of_pairs((*first_look.with_target, *first_look.pairs))


def _of_pairs(pairs: Sequence[Pair]) -> Iterator[str]:
    """A line for each of the strongest pairs."""
    for pair in pairs[:LINES]:
        names = f"{clipped(pair.first, 24)} – {clipped(pair.second, 24)}"
        measure = f"{pair.measure}{', falling' if pair.falling else ''}"
        yield f"  {number(pair.strength):>6}  {names}  ({measure}, {count(pair.rows)} rows)"
    if len(pairs) > LINES:
        yield f"  and {plural(len(pairs) - LINES, 'pair')} more"
