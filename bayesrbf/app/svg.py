"""Escaped SVG elements and a pair of axes, of which all figures are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup, escape

from bayesrbf.app.words import tick

Scale = Callable[[float], float]
Pixels = float | int


def element(tag: str, *children: object, **attributes: object) -> Markup:
    """One SVG element; every text and attribute is escaped unless it is Markup.

    In the name of an attribute ``_`` becomes ``-`` and one trailing ``_`` (``class_``) is dropped;
    floats are rounded to hundredths.

    >>> element("text", "a < b", class_="ink", x=1.23456)
    Markup('<text class="ink" x="1.23">a &lt; b</text>')
    """
    pairs = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_plain(value))}"'
        for name, value in attributes.items()
    )
    inside = Markup("").join(escape(child) for child in children)
    return Markup(f"<{tag}{pairs}>{inside}</{tag}>") if inside else Markup(f"<{tag}{pairs}/>")


def _plain(value: object) -> object:
    """A number rounded for a coordinate."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def picture(width: float, height: float, title: str, *children: object) -> Markup:
    """The ``svg`` element of a figure; ``title`` is its text alternative.

    The size is in CSS pixels; a narrow screen shrinks it.
    """
    return element(
        "svg",
        element("title", title),
        *children,
        width=round(width),
        height=round(height),
        viewBox=f"0 0 {round(width)} {round(height)}",
        role="img",
        aria_label=title,
    )


def rect(
    x: Pixels, y: Pixels, width: Pixels, height: Pixels, style: str, **attributes: object
) -> Markup:
    """A rectangle in the style of the page's classes."""
    return element("rect", class_=style, x=x, y=y, width=width, height=height, **attributes)


def segment(x1: Pixels, y1: Pixels, x2: Pixels, y2: Pixels, style: str) -> Markup:
    """A straight line from one point to another."""
    return element("line", class_=style, x1=x1, y1=y1, x2=x2, y2=y2)


def dot(x: Pixels, y: Pixels, radius: Pixels, style: str) -> Markup:
    """A circle around a point."""
    return element("circle", class_=style, cx=x, cy=y, r=radius)


def points(xs: Iterable[float], ys: Iterable[float]) -> str:
    """Coordinates as ``x,y`` pairs for polylines and polygons.

    >>> points([0.0, 1.0], [2.0, 3.456])
    '0,2 1,3.46'
    """
    return " ".join(f"{x:.4g},{y:.4g}" for x, y in zip(xs, ys, strict=True))


def linear(domain: tuple[float, float], target: tuple[float, float]) -> Scale:
    """Straight map of an interval of values to one of pixels; an empty interval is widened.

    >>> linear((0.0, 2.0), (10.0, 20.0))(1.0)
    15.0
    """
    low, high = domain
    span = (high - low) or 1.0
    return lambda value: target[0] + (value - low) / span * (target[1] - target[0])


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """About ``most`` multiples of 1, 2 or 5 times a power of ten inside an interval.

    >>> ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    span = high - low
    if not (np.isfinite(span) and span > 0):
        return [low]
    rough = span / most
    power = 10.0 ** np.floor(np.log10(rough))
    step = power * next(m for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    # An end that is a multiple but for rounding has its tick.
    first, last = np.ceil(low / step - 1e-9), np.floor(high / step + 1e-9)
    return [float(round(i * step, 12 - int(np.log10(step)))) for i in np.arange(first, last + 1)]


def _step(marks: list[float]) -> float:
    """Distance of the marks of an axis; 0 where there is one."""
    return marks[1] - marks[0] if len(marks) > 1 else 0.0


@dataclass(frozen=True)
class PlotArea:
    """A plotting area with labelled axes."""

    x: tuple[float, float]  # Values at both ends.
    y: tuple[float, float]  # Values at both ends.
    box: tuple[float, float, float, float]  # Left, top, right and bottom in pixels.

    @property
    def at_x(self) -> Scale:
        """Value to pixel, from left to right."""
        return linear(self.x, (self.box[0], self.box[2]))

    @property
    def at_y(self) -> Scale:
        """Value to pixel, upwards."""
        return linear(self.y, (self.box[3], self.box[1]))

    def frame(
        self,
        x_label: str,
        y_label: str = "",
        x_ticks: int = 5,
        x_ends: tuple[str, str] = ("", ""),
    ) -> Markup:
        """Grid lines, tick labels and axis labels; there is no y axis without a label.

        Texts for both ends of the x axis stand in place of its ticks.
        """
        left, top, right, bottom = self.box
        marks: list[Markup] = []
        across = ticks(*self.x, x_ticks) if x_ticks and not any(x_ends) else []
        up = ticks(*self.y)
        for value in across:
            x = self.at_x(value)
            marks += [
                element("line", class_="grid", x1=x, x2=x, y1=top, y2=bottom),
                element("text", tick(value, _step(across)), class_="tick", x=x, y=bottom + 15.0),
            ]
        for text, style, x in zip(x_ends, ("start", "end"), (left, right), strict=True):
            if text:
                marks.append(element("text", text, class_=f"tick {style}", x=x, y=bottom + 15.0))
        for value in up if y_label else ():
            y = self.at_y(value)
            marks += [
                element("line", class_="grid", x1=left, x2=right, y1=y, y2=y),
                element("text", tick(value, _step(up)), class_="tick end", x=left - 6.0, y=y + 4.0),
            ]
        middle, centre = (left + right) / 2, (top + bottom) / 2
        marks += [
            element("line", class_="axis", x1=left, x2=right, y1=bottom, y2=bottom),
            element("text", x_label, class_="label", x=middle, y=bottom + 32.0),
        ]
        if y_label:
            turned = f"rotate(-90 12 {centre:.1f})"
            marks.append(element("text", y_label, class_="label", x=12, y=centre, transform=turned))
        return Markup("").join(marks)
