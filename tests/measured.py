"""Figures of the pages: written by the command that measures them, rendered into the pages.

A benchmark hands its table to :func:`write`, which keeps it under docs/measured/figures/ with the
command, the commit, the date and the machine's load. A page has the table between two comments,

    <!-- figures: NAME -->
    <!-- end of figures -->

and ``python -m tests.measured`` puts it there; tests/test_measured.py refuses a page that says
something else. A long benchmark keeps its parts by :func:`part` as they come: a run that stopped
goes on, and a part runs again when the answers that it is about have changed.

A figure is about answers of estimators (:mod:`tests.same_answers`): its key is a digest of those
that are kept, so code can move. A figure of time or memory has the commit as its key
(:data:`COST`).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final

from tests import same_answers
from tests.moved import moved

ROOT: Final = Path(__file__).resolve().parent.parent
FIGURES: Final = ROOT / "docs" / "measured" / "figures"
PLACE: Final = re.compile(r"<!-- figures: (\S+) -->\n(.*?)<!-- end of figures -->", re.DOTALL)
COST: Final = ("commit",)
"""What figures of time and memory are about."""
SETTINGS: Final = re.compile(r"BAYESRBF_(?!DATA$|SHARE$|BEFORE$)")
"""Variables of the environment that choose a part of a benchmark, and so belong to its command."""

NOT_RUN: Final = "*Not run yet.*"

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Run:
    """Where a figure comes from."""

    command: str
    commit: str  # With a plus where code was not committed.
    date: str
    load: float  # Runnable processes in the mean of the last minute, before the run ends.
    cores: int
    key: str  # Digest of the answers that the figure is about, or the commit.


@dataclass(frozen=True)
class Figures:
    """A table with its origin. ``counts`` says what was run of what was asked: (run, asked)."""

    columns: tuple[str, ...]
    digits: tuple[int | None, ...]  # After the point; None where a cell is shown as it is.
    rows: tuple[tuple[Cell, ...], ...]
    run: Run
    about: tuple[str, ...] = ()  # Subjects of tests/same_answers.py, all where empty; or COST.
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    commits: tuple[str, ...] = ()  # Of the parts, where they were run at several.


def write(
    name: str,
    columns: Mapping[str, Sequence[Cell]] | Sequence[tuple[str, Sequence[Cell]]],
    command: str,
    digits: int | Mapping[str, int] = 3,
    about: tuple[str, ...] = (),
    counts: Mapping[str, tuple[int, int]] | None = None,
    commits: Sequence[str] = (),
) -> str:
    """Keep a table under its name, and return it as the pages show it.

    Where a column ``se`` has the standard errors of the column on its left, what moved since the
    table was kept last is printed.
    """
    figures = table(columns, command, digits, about, counts, commits)
    file = FIGURES / f"{name}.json"
    for line in moved(name, read(name), figures) if file.exists() else ():
        print(line, flush=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(figures), indent=1, ensure_ascii=False) + "\n")
    return markdown(figures)


def table(
    columns: Mapping[str, Sequence[Cell]] | Sequence[tuple[str, Sequence[Cell]]],
    command: str,
    digits: int | Mapping[str, int] = 3,
    about: tuple[str, ...] = (),
    counts: Mapping[str, tuple[int, int]] | None = None,
    commits: Sequence[str] = (),
) -> Figures:
    """A table that was measured now. Columns of one name are given as pairs."""
    pairs = list(columns.items() if isinstance(columns, Mapping) else columns)
    shown = tuple(
        (digits.get(column, 3) if isinstance(digits, Mapping) else digits)
        if any(isinstance(cell, float) for cell in cells)
        else None
        for column, cells in pairs
    )
    rows = zip(*(cells for _, cells in pairs), strict=True)
    return Figures(
        tuple(column for column, _ in pairs),
        shown,
        tuple(tuple(plain(cell) for cell in row) for row in rows),
        here(command, about),
        about,
        dict(counts or {}),
        tuple(dict.fromkeys(commits)),
    )


def read(name: str) -> Figures:
    """The table of a name."""
    kept = json.loads((FIGURES / f"{name}.json").read_text())
    return Figures(
        tuple(kept["columns"]),
        tuple(kept["digits"]),
        tuple(tuple(row) for row in kept["rows"]),
        Run(**kept["run"]),
        tuple(kept["about"]),
        {what: (ran, asked) for what, (ran, asked) in kept["counts"].items()},
        tuple(kept["commits"]),
    )


def part(
    name: str,
    key: Mapping[str, Cell],
    make: Callable[[], Mapping[str, Cell]],
    about: tuple[str, ...] = (),
) -> dict[str, Cell]:
    """A result of a long benchmark: one that was kept and whose key is as it was, or a new one.

    A new one is printed and kept at once. The commit stands with it, under ``commit``.
    """
    key = {what: plain(cell) for what, cell in key.items()}
    for before in kept(name, about):
        if all(before.get(what) == key[what] for what in key):
            return before
    made = {what: plain(cell) for what, cell in make().items()}
    row = {**key, **made, "commit": commit()}
    file = parts_of(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        line = json.dumps({**row, "key": key_of(about)}, ensure_ascii=False)
        lines.write(line + "\n")
    print("| " + " | ".join(text(cell, 3)[:80] for cell in row.values()) + " |", flush=True)
    return row


def kept(name: str, about: tuple[str, ...]) -> list[dict[str, Cell]]:
    """Stored parts of a benchmark whose key is that of today."""
    file, today = parts_of(name), key_of(about)
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [
        {what: cell for what, cell in row.items() if what != "key"}
        for row in rows
        if row["key"] == today
    ]


def parts_of(name: str) -> Path:
    """Where the parts of a long benchmark are kept."""
    return FIGURES / f"{name}.parts.jsonl"


def here(command: str, about: tuple[str, ...]) -> Run:
    """This commit and this machine, now."""
    chosen = [
        f"{name}={value}" for name, value in sorted(os.environ.items()) if SETTINGS.match(name)
    ]
    return Run(
        " ".join([*chosen, command]),
        commit(),
        datetime.now(UTC).date().isoformat(),
        round(os.getloadavg()[0], 1),
        os.cpu_count() or 1,
        key_of(about),
    )


def commit() -> str:
    """The commit that is checked out, with a plus where the package was changed since."""
    changed = git("status", "--porcelain", "--", "bayesrbf", "models")
    return git("rev-parse", "--short=7", "HEAD") + ("+" if changed else "")


def git(*words: str) -> str:
    """What git says."""
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


@cache
def key_of(about: tuple[str, ...]) -> str:
    """Digest of the kept answers that a figure is about; the commit for one of time or memory."""
    return commit() if about == COST else same_answers.key_of(about)


def older(figures: Figures) -> bool:
    """Whether answers have changed since a figure was printed; time and memory name a commit."""
    return figures.about != COST and figures.run.key != key_of(figures.about)


def plain(cell: object) -> Cell:
    """A cell as JSON has it; NumPy's scalars become Python's."""
    value = cell.item() if hasattr(cell, "item") else cell
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return None if value != value else value
    return str(value)


def text(cell: Cell, digits: int | None) -> str:
    """A cell as the pages show it; what was not measured is a dash."""
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return str(cell) if digits is None else f"{cell:.{digits}f}"
    return str(cell)


def markdown(figures: Figures) -> str:
    """The table, and below it where it comes from; of an empty table that it was not run."""
    if not figures.rows:
        return f"*Not run yet: `{figures.run.command}`.*\n"
    lines = [
        "| " + " | ".join(figures.columns) + " |",
        "|"
        + "|".join(":--" if left(figures, k) else "--:" for k in range(len(figures.columns)))
        + "|",
    ]
    for row in figures.rows:
        cells = (text(cell, digits) for cell, digits in zip(row, figures.digits, strict=True))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", origin(figures)]) + "\n"


def left(figures: Figures, column: int) -> bool:
    """Whether a column holds words."""
    cells = [str(row[column]) for row in figures.rows if isinstance(row[column], str)]
    return any(re.search("[A-Za-z]", cell.replace(" of ", "")) for cell in cells)


def origin(figures: Figures) -> str:
    """One line: command, commits, day, load, and what was run of what was asked."""
    run = figures.run
    commits = " and ".join(figures.commits or (run.commit,))
    machine = f"load {run.load:.1f} on {run.cores} cores"
    parts = [f"`{run.command}`", f"commit {commits}", run.date, machine]
    parts += [
        f"{ran:,} of {asked:,} {what}"
        for what, (ran, asked) in figures.counts.items()
        if ran < asked
    ]
    parts += ["older than today's answers"] if older(figures) else []
    return f"*{'; '.join(parts)}.*"


def pages() -> list[Path]:
    """Pages that may have figures."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def rendered(page: str) -> str:
    """A page with every table as its file has it."""
    return PLACE.sub(
        lambda place: f"<!-- figures: {place[1]} -->\n{told(place[1])}<!-- end of figures -->", page
    )


def told(name: str) -> str:
    """The table of a file; *summary* has a figure a question, from all files."""
    if name == "summary":
        from tests.summary import table as summary

        return summary()
    return markdown(read(name)) if (FIGURES / f"{name}.json").exists() else f"{NOT_RUN}\n"


def main() -> None:
    """Bring pages up to date; name tables older than the answers."""
    for page in pages():
        before = page.read_text()
        if (after := rendered(before)) != before:
            page.write_text(after)
            print(f"{page.relative_to(ROOT)} is brought up to date")
    for file in sorted(FIGURES.rglob("*.json")):
        name = str(file.relative_to(FIGURES).with_suffix(""))
        figures = read(name)
        if older(figures):
            print(f"{name}: answers have changed since {figures.run.commit}: {figures.run.command}")


if __name__ == "__main__":
    sys.exit(main())
