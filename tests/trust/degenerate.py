"""Degenerate tables through every family and method."""

from __future__ import annotations

from collections.abc import Iterator

from tests.degenerate import FAMILIES, METHODS, NAMED, RIGHT, SAME, TABLES, counted, grid
from tests.trust.sections import Section, Tried, portion

SEEDS = {True: portion(20), False: 1}


def of_fits(long: bool) -> Iterator[Tried | str]:
    """Every family, fitted."""
    return outcomes(list(FAMILIES), SEEDS[long])


def of_draws(long: bool) -> Iterator[Tried | str]:
    """Every family, refined by every method that it has."""
    return outcomes([name for name in METHODS if name not in FAMILIES], SEEDS[long])


def outcomes(methods: list[str], seeds: int) -> Iterator[Tried | str]:
    """One line a method: all tables, all seeds."""
    for method in methods:
        counts, through = counted(grid(seeds, [method]))
        remark = f"{counts[RIGHT]} {RIGHT}, {counts[NAMED]} {NAMED}"
        yield Tried(method, counts.total(), len(through), "; ".join([remark, *through[:5]]))
    tables = ", ".join([*TABLES, *SAME])
    yield f"Every method meets {len(TABLES) + len(SAME)} tables under {seeds} seed(s): {tables}."


SECTIONS = (
    Section("degenerate", "Degenerate tables: fits", of_fits),
    Section("degenerate-draws", "Degenerate tables: posteriors", of_draws),
)
