"""Much of it: fits in a loop, and rows."""

from __future__ import annotations

from functools import cache, partial
from typing import Any, Final

from tests.trust.sections import Line, Row, Section, program

LEAK: Final = 30
"""MiB by which a loop may grow."""
GROWTH: Final = 1.6
"""By which the memory of ten times as many rows may be more."""
ROWS: Final = 100_000


def lines(long: bool) -> list[Line]:
    """A long loop, or a short one."""
    return [Line("fits and draws in a loop", looped, 200 if long else 50, "fits")]


def looped(_: int, times: int) -> Row:
    """Fits one after the other in a process."""
    found = program("tests.looping", times)
    return {
        "tried": found["times"],
        "through": int(found["files"] + found["threads"] > 0 or found["grown"] > LEAK),
        "MiB by which memory grew:": found["grown"],
    }


def large(model: str, _: bool) -> list[Line]:
    """Ten times as many rows, in nearly the same memory."""
    return [
        Line(
            f"rows through `bayesrbf predict` from {suffix}, model with {model}",
            partial(predicted, model, suffix),
            ROWS,
            "rows",
        )
        for suffix in (".csv", ".parquet")
    ]


@cache
def runs(model: str, rows: int) -> list[dict[str, Any]]:
    """Both kinds of files, and a tenth of the rows beside each."""
    found: list[dict[str, Any]] = program("tests.large", rows, rows // 10, model)
    return found


def predicted(model: str, suffix: str, _: int, rows: int) -> Row:
    """Most memory of all rows and of a tenth of them."""
    of = {one["rows"]: one for one in runs(model, rows) if one["file"] == suffix}
    all_rows, few = of[rows], of[rows // 10]
    bounded = all_rows["memory"] < GROWTH * few["memory"] and all_rows["answered"] == rows
    return {
        "tried": rows,
        "through": 0 if bounded else rows,
        "MiB at most": all_rows["memory"],
        "for a tenth of them": few["memory"],
        "s": all_rows["seconds"],
    }


SECTIONS = (
    Section("load", lines),
    Section("large", partial(large, "no draws")),
    Section("large-draws", partial(large, "draws")),
)
