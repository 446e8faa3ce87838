"""Figures of the pages: written by the command that measures them, rendered into the pages.

A benchmark hands its table to :func:`write`, which keeps it under docs/measured/figures/ with the
command, the commit and the date. A page has the table between two comments,

    <!-- figures: NAME -->
    <!-- end of figures -->

and ``python -m tests.measured`` puts it there; tests/test_measured.py refuses a page that says
something else. A long benchmark keeps its parts by :func:`part` as they come: a run that stopped
goes on at the same commit.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
FIGURES: Final = ROOT / "docs" / "measured" / "figures"
PLACE: Final = re.compile(r"<!-- figures: (\S+) -->\n(.*?)<!-- end of figures -->", re.DOTALL)
NOT_RUN: Final = "*Not run yet.*"

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Run:
    """Where a figure comes from."""

    command: str
    commit: str  # With a plus where code was not committed.
    date: str


@dataclass(frozen=True)
class Figures:
    """A table with its origin."""

    columns: tuple[str, ...]
    digits: tuple[int | None, ...]  # After the point; None where a cell is shown as it is.
    rows: tuple[tuple[Cell, ...], ...]
    run: Run


def write(
    name: str,
    columns: Mapping[str, Sequence[Cell]] | Sequence[tuple[str, Sequence[Cell]]],
    command: str,
    digits: int | Mapping[str, int] = 3,
) -> str:
    """Keep a table under its name, and return it as the pages show it.

    Columns of one name are given as pairs.
    """
    pairs = list(columns.items() if isinstance(columns, Mapping) else columns)
    shown = tuple(
        (digits.get(column, 3) if isinstance(digits, Mapping) else digits)
        if any(isinstance(cell, float) for cell in cells)
        else None
        for column, cells in pairs
    )
    rows = zip(*(cells for _, cells in pairs), strict=True)
    figures = Figures(
        tuple(column for column, _ in pairs),
        shown,
        tuple(tuple(plain(cell) for cell in row) for row in rows),
        Run(command, commit(), datetime.now(UTC).date().isoformat()),
    )
    file = FIGURES / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(asdict(figures), indent=1, ensure_ascii=False) + "\n")
    return markdown(figures)


def read(name: str) -> Figures:
    """The table of a name."""
    kept = json.loads((FIGURES / f"{name}.json").read_text())
    return Figures(
        tuple(kept["columns"]),
        tuple(kept["digits"]),
        tuple(tuple(row) for row in kept["rows"]),
        Run(**kept["run"]),
    )


def part(
    name: str, key: Mapping[str, Cell], make: Callable[[], Mapping[str, Cell]]
) -> dict[str, Cell]:
    """A result of a long benchmark: one that was kept at this commit, or a new one.

    A new one is printed and kept at once.
    """
    key = {what: plain(cell) for what, cell in key.items()}
    for before in kept(name):
        if all(before.get(what) == key[what] for what in key):
            return before
    made = {what: plain(cell) for what, cell in make().items()}
    row = {**key, **made}
    file = parts_of(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(json.dumps({**row, "commit": commit()}, ensure_ascii=False) + "\n")
    print("| " + " | ".join(text(cell, 3)[:80] for cell in row.values()) + " |", flush=True)
    return row


def kept(name: str) -> list[dict[str, Cell]]:
    """Stored parts of a benchmark that were run at this commit."""
    file, now = parts_of(name), commit()
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [row for row in rows if row.pop("commit") == now]


def parts_of(name: str) -> Path:
    """Where the parts of a long benchmark are kept."""
    return FIGURES / f"{name}.parts.jsonl"


def commit() -> str:
    """The commit that is checked out, with a plus where the package was changed since."""
    changed = git("status", "--porcelain", "--", "bayesrbf", "models")
    return git("rev-parse", "--short=7", "HEAD") + ("+" if changed else "")


def git(*words: str) -> str:
    """What git says."""
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def strays() -> list[str]:
    """Figures whose commit is no ancestor of the one that is checked out."""
    ancestors = git("rev-list", "HEAD").split()
    runs = {name: read(name).run.commit.rstrip("+") for name in names()}
    return [name for name, own in runs.items() if not any(c.startswith(own) for c in ancestors)]


def names() -> list[str]:
    """Names of all files."""
    return sorted(
        str(file.relative_to(FIGURES).with_suffix("")) for file in FIGURES.rglob("*.json")
    )


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
    run = figures.run
    return "\n".join([*lines, "", f"*`{run.command}`; commit {run.commit}; {run.date}.*"]) + "\n"


def left(figures: Figures, column: int) -> bool:
    """Whether a column holds words."""
    cells = [str(row[column]) for row in figures.rows if isinstance(row[column], str)]
    return any(re.search("[A-Za-z]", cell.replace(" of ", "")) for cell in cells)


def pages() -> list[Path]:
    """Pages that may have figures."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def rendered(page: str) -> str:
    """A page with every table as its file has it."""
    return PLACE.sub(
        lambda place: f"<!-- figures: {place[1]} -->\n{told(place[1])}<!-- end of figures -->", page
    )


def told(name: str) -> str:
    """The table of a file."""
    return markdown(read(name)) if (FIGURES / f"{name}.json").exists() else f"{NOT_RUN}\n"


def main() -> None:
    """Bring pages up to date; name tables of commits that are no part of this one's history."""
    for page in pages():
        before = page.read_text()
        if (after := rendered(before)) != before:
            page.write_text(after)
            print(f"{page.relative_to(ROOT)} is brought up to date")
    for name in strays():
        run = read(name).run
        print(f"{name}: commit {run.commit} is no ancestor of this one: {run.command}")


if __name__ == "__main__":
    sys.exit(main())
