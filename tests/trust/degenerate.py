"""Degenerate tables through every family and method."""

from __future__ import annotations

from collections.abc import Iterator

from tests.degenerate import METHODS, NAMED, RIGHT, SAME, TABLES, counted, grid
from tests.trust.sections import Section, Tried, portion

SEEDS = {True: portion(20), False: 1}


def run(long: bool) -> Iterator[Tried | str]:
    """One line a method: all tables, all seeds."""
    seeds = SEEDS[long]
    for method in METHODS:
        counts, through = counted(grid(seeds, [method]))
        remark = f"{counts[RIGHT]} {RIGHT}, {counts[NAMED]} {NAMED}"
        yield Tried(method, counts.total(), len(through), "; ".join([remark, *through[:5]]))
    tables = ", ".join([*TABLES, *SAME])
    yield f"Every method meets {len(TABLES) + len(SAME)} tables under {seeds} seed(s): {tables}."


SECTION = Section("degenerate", "Degenerate tables", run)
