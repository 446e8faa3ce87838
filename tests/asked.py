"""What was asked of the package, and what its files say: the table of docs/reproduction.md.

A goal names a figure by file, row and column; the cell and whether it is met come from there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import truediv
from typing import Final

from tests.measured import FIGURES, Cell, read

CONTESTANTS: Final = ("classifiers", "models")
"""Counts that say nothing of one contestant's figure."""
NUMBER: Final = re.compile(r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)")


@dataclass(frozen=True)
class Figure:
    """A number of a file; several where a row or a column is a pattern's."""

    file: str
    row: str  # First cells of the row, joined by "; "; a regular expression.
    column: str
    digits: int = 3
    place: int = 0  # Which number of the cell.

    def values(self) -> list[float]:
        """Every number of that name; none where there is no file yet."""
        if not (FIGURES / f"{self.file}.json").exists():
            return []
        figures = read(self.file)
        if self.column not in figures.columns:
            return []
        column = figures.columns.index(self.column)
        cells = [
            row[column]
            for row in figures.rows
            if re.match(self.row, "; ".join(str(cell) for cell in row))
        ]
        return [number(cell, self.place) for cell in cells if cell not in (None, "")]

    def value(self) -> float | None:
        """The number, or none."""
        found = self.values()
        return found[0] if found else None

    def part(self) -> str:
        """What was run of what was asked, where that was less."""
        if not (FIGURES / f"{self.file}.json").exists():
            return ""
        counts = read(self.file).counts
        less = [
            f"{ran} of {asked} {what}"
            for what, (ran, asked) in counts.items()
            if ran < asked and what not in CONTESTANTS
        ]
        return f" ({', '.join(less)})" if less else ""


@dataclass(frozen=True)
class Of:
    """A number made of several: how many, a mean, a difference."""

    figure: Figure
    make: Callable[[list[float]], float]
    digits: int = 3

    def value(self) -> float | None:
        """The number, or none."""
        found = self.figure.values()
        return self.make(found) if found else None

    def part(self) -> str:
        """What was run of what was asked, where that was less."""
        return self.figure.part()


@dataclass(frozen=True)
class Among:
    """One number of all those in a row, such as the least."""

    file: str
    row: str
    make: Callable[[list[float]], float]
    digits: int = 2

    def value(self) -> float | None:
        """The number, or none."""
        found = numbers(self.file, self.row)
        return self.make(found) if found else None

    def part(self) -> str:
        """What was run of what was asked, where that was less."""
        return Figure(self.file, self.row, "").part()


@dataclass(frozen=True)
class Best:
    """The best number of a row among the columns of other people's models."""

    file: str
    row: str
    own: tuple[str, ...]  # Columns that are no peer.
    make: Callable[[list[float]], float]
    digits: int = 3

    def value(self) -> float | None:
        """The number, or none."""
        if not (FIGURES / f"{self.file}.json").exists():
            return None
        peers = [name for name in read(self.file).columns[1:] if name not in self.own]
        cells = [cell for name in peers for cell in Figure(self.file, self.row, name).values()]
        return self.make(cells) if cells else None

    def part(self) -> str:
        """What was run of what was asked, where that was less."""
        return Figure(self.file, self.row, "").part()


@dataclass(frozen=True)
class Beyond:
    """By how much the numbers of a row are above those of another, at most."""

    row: str
    other: str
    file: str = "any_cells/losses"
    digits: int = 3

    def value(self) -> float | None:
        """The number, or none."""
        own, others = numbers(self.file, f"{self.row};"), numbers(self.file, f"{self.other};")
        return max((a - b for a, b in zip(own, others, strict=True)), default=None)

    def part(self) -> str:
        """What was run of what was asked, where that was less."""
        return Figure(self.file, "", "").part()


@dataclass(frozen=True)
class Sum:
    """The numbers of several tables together."""

    figures: tuple[Figure, ...]
    digits: int = 0

    def value(self) -> float | None:
        """The sum, or none."""
        found = [number for figure in self.figures for number in figure.values()]
        return sum(found) if found else None

    def part(self) -> str:
        """Which tables there are."""
        there = sum(bool(figure.values()) for figure in self.figures)
        return "" if there == len(self.figures) else f" ({there} of {len(self.figures)} sections)"


@dataclass(frozen=True)
class Over:
    """One number over another, or less another."""

    figure: Figure
    other: Figure
    digits: int = 2
    by: Callable[[float, float], float] = truediv

    def value(self) -> float | None:
        """The number, or none."""
        one, other = self.figure.value(), self.other.value()
        return None if one is None or not other else self.by(one, other)

    def part(self) -> str:
        """What was run of what was asked, where that was less."""
        return self.figure.part()


Source = Figure | Of | Over | Among | Best | Beyond | Sum


@dataclass(frozen=True)
class Goal:
    """A bound, and the figure that it is for."""

    at: str  # "most" or "least".
    bound: float | Source
    figure: Source | None  # None where no command prints it.

    def asked(self) -> str:
        """The bound; one that was measured itself is shown with the digits of the figure."""
        digits = self.figure.digits if self.figure else 1
        given = isinstance(self.bound, int | float)
        bound = self.bound if given else self.bound.value()
        if bound is None:
            return "–"
        short = not given or (digits <= 4 and bound == round(bound, digits))
        text = f"{bound:,.{digits}f}" if short else f"{bound:,}"
        return f"{'≤' if self.at == 'most' else '≥'} {text}"

    def measured(self) -> str:
        """The figure, or that there is none."""
        value = self.figure.value() if self.figure else None
        return "no figure yet" if value is None else f"{value:,.{self.figure.digits}f}"  # type: ignore[union-attr]

    def met(self) -> str:
        """Whether the figure keeps to the bound."""
        value = self.figure.value() if self.figure else None
        bound = self.bound if isinstance(self.bound, int | float) else self.bound.value()
        if value is None or bound is None:
            return "–"
        return "yes" if (value <= bound if self.at == "most" else value >= bound) else "no"


def numbers(file: str, row: str) -> list[float]:
    """The numbers of the first row of a file that a pattern fits; none where there is no file."""
    if not (FIGURES / f"{file}.json").exists():
        return []
    for cells in read(file).rows:
        if re.match(row, "; ".join(str(cell) for cell in cells)):
            return [float(cell) for cell in cells if isinstance(cell, int | float)]
    return []


def most(bound: float | Source, *figure: Source) -> Goal:
    """At most so much; without a figure, one that no command prints."""
    return Goal("most", bound, *(figure or (None,)))


def least(bound: float | Source, *figure: Source) -> Goal:
    """At least so much."""
    return Goal("least", bound, *(figure or (None,)))


def number(cell: Cell, place: int) -> float:
    """A number of a cell, by its place among those that stand there."""
    if isinstance(cell, int | float):
        return float(cell)
    return float(NUMBER.findall(str(cell))[place].replace(",", ""))


def table() -> str:
    """The table in Markdown."""
    from tests.goals import GOALS

    return (
        "\n".join(["| question | asked | measured | met |", "|:--|:--|:--|:--|", *rows(GOALS)])
        + "\n"
    )


def rows(goals: dict[str, dict[str, tuple[Goal, ...]]]) -> Iterator[str]:
    """A line a question, below the page that it belongs to."""
    for page, questions in goals.items():
        yield f"| **{page}** | | | |"
        for question, some in questions.items():
            parts = dict.fromkeys(
                goal.figure.part()
                for goal in some
                if goal.figure and goal.figure.value() is not None
            )
            cells = (
                "; ".join(dict.fromkeys(which(goal) for goal in some))
                if all_same(some, which)
                else "; ".join(which(goal) for goal in some)
                for which in (Goal.asked, Goal.measured, Goal.met)
            )
            asked, measured, met = cells
            yield f"| {question} | {asked} | {measured}{''.join(parts)} | {met} |"


def all_same(goals: tuple[Goal, ...], which: Callable[[Goal], str]) -> bool:
    """Whether one text does for all."""
    return len({which(goal) for goal in goals}) == 1
