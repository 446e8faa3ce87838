"""Much of it at once: threads, processes, pickles, weights of any size."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from tests.trust.sections import Section, Tried, portion, program, suite

LEAK: Final = 30
"""MiB by which a loop may grow."""
GROWTH: Final = 1.6
"""By which the memory of ten times as many rows may be more."""


def run(long: bool) -> Iterator[Tried | str]:
    """Each suite is an attack."""
    yield suite("threads, processes and pickles", "tests/test_sharing.py", long=long)
    said = program("tests.looping", portion(1000) if long else 50)
    grown = f"memory grew by {said['grown']:.0f} MiB"
    yield Tried(
        "fits and draws in a loop",
        said["times"],
        int(said["files"] + said["threads"] > 0 or said["grown"] > LEAK),
        grown,
    )
    yield suite(
        "row weights of any size, wrapped interrupts",
        "tests/estimators/test_extreme_weights.py",
        long=long,
    )


def large(model: str, long: bool) -> Iterator[Tried | str]:
    """Ten times as many rows, in nearly the same memory."""
    rows = portion(1_000_000) if long else 100_000
    said = program("tests.large", rows, rows // 10, model)
    for one in (one for one in said if one["rows"] == rows):
        few = next(
            two
            for two in said
            if two is not one and two["rows"] < rows and two["file"] == one["file"]
        )
        bounded = one["memory"] < GROWTH * few["memory"] and one["answered"] == rows
        yield Tried(
            f"rows through `bayesrbf predict` from {one['file']}, model with {one['model']}",
            rows,
            0 if bounded else rows,
            f"{one['memory']} MiB at most, {few['memory']} for a tenth of them, {one['seconds']} s",
        )


SECTIONS = (
    Section("load", "Load", run),
    Section("large", "Load: a million rows", partial(large, "no draws")),
    Section("large-draws", "Load: a million rows, with draws", partial(large, "draws")),
)
