"""Degenerate tables through every family and method."""

from __future__ import annotations

from functools import partial

from tests.degenerate import FAMILIES, METHODS, NAMED, RIGHT, counted, grid
from tests.trust.sections import Line, Row, Section


def of_fits(long: bool) -> list[Line]:
    """Every family, fitted."""
    return [line(method, long) for method in FAMILIES]


def of_draws(long: bool) -> list[Line]:
    """Every family, refined by every method that it has."""
    return [line(method, long) for method in METHODS if method not in FAMILIES]


def line(method: str, long: bool) -> Line:
    """All tables through a method, in the long form under two seeds."""
    return Line(method, partial(outcomes, method), 2 if long else 1, "seeds", 1)


def outcomes(method: str, seed: int, times: int) -> Row:
    """What became of every table."""
    counts, through = counted(grid(times, [method], seed))
    return {
        "tried": counts.total(),
        "through": len(through),
        RIGHT: counts[RIGHT],
        NAMED: counts[NAMED],
        "": "; ".join(through),
    }


SECTIONS = (
    Section("degenerate", of_fits),
    Section("degenerate-draws", of_draws),
)
