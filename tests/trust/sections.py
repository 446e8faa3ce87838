"""A section of docs/trust.md: what was attacked, how often, and what got through.

The repetitions of a line are run in parts that are kept as they come (:mod:`tests.measured`), so
that a run that stopped goes on, and a share of the repetitions stands until more are asked for.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tests.measured import FIGURES, ROOT, Cell, kept, older, part, read, write

Row = dict[str, Cell]
"""What came out of a part: ``tried`` and ``through``, and numbers and words beside them."""

OWN: Final = ("line", "part", "times", "commit", "tried", "through")
"""Entries of a part that are no remark."""


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

    def best(self) -> dict[str, dict[int, Row]]:
        """Parts that were kept, by line and number; of the same part that of most repetitions."""
        most: dict[str, dict[int, Row]] = {}
        for row in kept(self.figures, ()):
            own = most.setdefault(str(row["line"]), {})
            number = int(row["part"])  # type: ignore[arg-type]
            if number not in own or own[number]["times"] < row["times"]:  # type: ignore[operator]
                own[number] = row
        return most

    def run(self, share: float) -> int:
        """Run what is not kept of a share of all repetitions, keep it, and say what got through."""
        for line in self.lines(True):
            for number, times in line.parts(max(1, round(share * line.asked))):
                own = self.best().get(line.what, {}).get(number)
                if own is None or int(own["times"]) < times:  # type: ignore[arg-type]
                    key: Row = {"line": line.what, "part": number, "times": times}
                    part(self.figures, key, partial(line.work, number, times))
                    self.write()
        return self.write()

    def write(self) -> int:
        """Write the table of what is kept, where it has changed; say what got through.

        Where nothing is kept the table is empty.
        """
        lines, most = self.lines(True), self.best()
        table: dict[str, list[Cell]] = {
            name: []
            for name in ("attack", "run of asked", "tried", "held", "got through", "what came out")
        }
        through, commits, run = 0, [], 0
        for line in lines if most else ():
            parts = [row for _, row in sorted(most.get(line.what, {}).items())]
            ran = count(parts, "times")
            found = line.judge(parts) if parts else Tried(0, remark="not run yet")
            cells = (
                line.what,
                f"{ran:,} of {line.asked:,} {line.unit}",
                found.tried,
                found.tried - found.through if parts else None,
                found.through if parts else None,
                found.remark,
            )
            for column, cell in zip(table.values(), cells, strict=True):
                column.append(cell)
            through, run = through + found.through, run + bool(parts)
            commits += [str(row["commit"]) for row in parts]
        if self.changed(tuple(zip(*table.values(), strict=True))):
            write(
                self.figures, table, f"make trust ARGS='--only {self.name}'",
                counts={"lines": (run, len(lines))}, commits=commits,
            )  # fmt: skip
        return through

    def changed(self, rows: tuple[tuple[Cell, ...], ...]) -> bool:
        """Whether the written table has other rows or is of other answers, or there is none."""
        if not (FIGURES / f"{self.figures}.json").exists():
            return True
        written = read(self.figures)
        return written.rows != rows or older(written)

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


def suite(what: str, *files: str, long: bool = True) -> Line:
    """The tests of some files, counted."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += [] if long else ["-m", "not slow"]

    def work(_: int, times: int) -> Row:
        done = subprocess.run(
            [*command, *files], cwd=ROOT, capture_output=True, text=True, check=False
        )
        last = (done.stdout.splitlines() or [""])[-1]
        counts = {
            word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|error|skipped)", last)
        }
        skipped = counts.pop("skipped", 0)
        tried = sum(counts.values())
        if not tried:
            raise RuntimeError(f"no test of {', '.join(files)} was run: {done.stdout}{done.stderr}")
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, flags=re.MULTILINE)
        row: Row = {"tried": tried, "through": tried - counts.get("passed", 0)}
        return row | ({"skipped": skipped} if skipped else {}) | {"": ", ".join(failed)}

    return Line(what, work)


def program(module: str, *words: object) -> Any:
    """What a module of the tests prints as JSON, run in a process of its own.

    What it says on the way is shown as it comes.
    """
    command = [sys.executable, "-m", module, *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{module} ended with {done.returncode}.")
    return json.loads(done.stdout)
