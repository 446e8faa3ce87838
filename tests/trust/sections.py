"""A section of docs/trust.md: what was attacked, how often, and what got through.

The repetitions of a line are run in parts that are kept as they come (:mod:`tests.measured`), so
that a run that stopped goes on at the same commit.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tests.measured import ROOT, Cell, part, write

Row = dict[str, Cell]
"""What came out of a part: ``tried`` and ``through``, and numbers and words beside them."""

OWN: Final = ("line", "part", "times", "tried", "through")
"""Entries of a part that are no remark."""
HEADER: Final = ("attack", "run of asked", "tried", "held", "got through", "what came out")


@dataclass(frozen=True)
class Tried:
    """The outcome of a line."""

    tried: int
    through: int = 0
    remark: str = ""  # What came out beside the counts; of what got through, which.


def total(parts: Sequence[Row]) -> Tried:
    """Counts and whole numbers summed, the largest of other numbers, words joined."""
    names = dict.fromkeys(name for row in parts for name in row if name not in OWN)
    values = {name: [row[name] for row in parts if name in row] for name in names}
    remarks = []
    for name, cells in values.items():
        if all(isinstance(cell, int) for cell in cells):
            remarks.append(f"{sum(map(int, cells)):,} {name}")  # type: ignore[arg-type]
        elif all(isinstance(cell, int | float) for cell in cells):
            remarks.append(f"{name} {max(map(float, cells)):.3g}")  # type: ignore[arg-type]
        else:
            remarks += dict.fromkeys(str(cell) for cell in cells if cell)
    return Tried(count(parts, "tried"), count(parts, "through"), "; ".join(remarks))


def count(parts: Sequence[Row], name: str) -> int:
    """Sum of a whole number of all parts."""
    return sum(int(row[name]) for row in parts)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Line:
    """One kind of attack, or one law that was tried.

    ``work`` is told the number of a part, which seeds it, and how many repetitions it has.
    """

    what: str
    work: Callable[[int, int], Row]
    asked: int = 1  # Repetitions.
    unit: str = "run"
    size: int = 0  # Repetitions of a part; 0 where all are one part.
    judge: Callable[[Sequence[Row]], Tried] = total

    def parts(self, repetitions: int) -> Iterator[tuple[int, int]]:
        """Number and repetitions of every part."""
        size = self.size or self.asked
        for number, start in enumerate(range(0, repetitions, size)):
            yield number, min(size, repetitions - start)


@dataclass(frozen=True)
class Section:
    """A part of the page that runs by itself; ``lines`` is told whether to take the long form."""

    name: str  # In ``python -m tests.trust --only NAME``.
    lines: Callable[[bool], Sequence[Line]]

    @property
    def figures(self) -> str:
        """Name of its table."""
        return f"trust/{self.name}"

    def run(self, share: float) -> int:
        """Run a share of all repetitions, write the table, and say what got through."""
        cells, through = list[tuple[Cell, ...]](), 0
        for line in self.lines(True):
            parts = [
                part(
                    self.figures,
                    {"line": line.what, "part": number, "times": times},
                    partial(line.work, number, times),
                )
                for number, times in line.parts(max(1, round(share * line.asked)))
            ]
            found, ran = line.judge(parts), count(parts, "times")
            asked = f"{ran:,} of {line.asked:,} {line.unit}"
            held = found.tried - found.through
            cells.append((line.what, asked, found.tried, held, found.through, found.remark))
            through += found.through
        columns = dict(zip(HEADER, zip(*cells, strict=True), strict=True))
        write(self.figures, columns, f"make trust ARGS='--only {self.name}'")
        return through

    def tried(self) -> int:
        """Run the short form, keep nothing, print every line, and say what got through."""
        through = 0
        for line in self.lines(False):
            found = line.judge([line.work(*one) for one in line.parts(line.asked)])
            held = found.tried - found.through
            cells = (line.what, found.tried, held, found.through, found.remark)
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)
            through += found.through
        return through


def program(module: str, *words: object) -> Any:
    """What a module of the tests prints as JSON, run in a process of its own.

    What it says on the way is shown as it comes.
    """
    command = [sys.executable, "-m", module, *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{module} ended with {done.returncode}.")
    return json.loads(done.stdout)
