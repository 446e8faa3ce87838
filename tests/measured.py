"""Figures of the pages: written by the command that measures them, rendered into the pages.

A benchmark hands its table to :func:`write`, which keeps it under docs/measured/figures/ with the
command, the commit, the date and the machine's load. A page has the table between two comments,

    <!-- figures: NAME -->
    <!-- end of figures -->

and ``python -m tests.measured`` puts it there; tests/test_measured.py refuses a page that says
something else. A long benchmark keeps its parts by :func:`part` as they come: a run that stopped
goes on, and a part runs again when the code that it covers has changed.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Final

from tests.moved import moved

ROOT: Final = Path(__file__).resolve().parent.parent
FIGURES: Final = ROOT / "docs" / "measured" / "figures"
PLACE: Final = re.compile(r"<!-- figures: (\S+) -->\n(.*?)<!-- end of figures -->", re.DOTALL)
MODELS: Final = tuple(
    f"bayesrbf/{room}"
    for room in ("records", "table", "numerics", "posterior", "inference", "fitted", "estimators")
)
"""What every figure about fits and answers covers."""
SETTINGS: Final = re.compile(r"BAYESRBF_(?!DATA$|SHARE$|BEFORE$)")
"""Variables of the environment that choose a part of a benchmark, and so belong to its command."""

NOT_RUN: Final = "*Not run yet.*"

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Run:
    """Where a figure comes from."""

    command: str
    commit: str  # With a plus where code that it covers was not committed.
    date: str
    load: float  # Runnable processes in the mean of the last minute, before the run ends.
    cores: int
    covered: str  # Fingerprint of the code that the figure is about.


@dataclass(frozen=True)
class Figures:
    """A table with its origin. ``counts`` says what was run of what was asked: (run, asked)."""

    columns: tuple[str, ...]
    digits: tuple[int | None, ...]  # After the point; None where a cell is shown as it is.
    rows: tuple[tuple[Cell, ...], ...]
    run: Run
    covers: tuple[str, ...] = MODELS
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    commits: tuple[str, ...] = ()  # Of the parts, where they were run at several.


def write(
    name: str,
    columns: Mapping[str, Sequence[Cell]] | Sequence[tuple[str, Sequence[Cell]]],
    command: str,
    digits: int | Mapping[str, int] = 3,
    covers: tuple[str, ...] = MODELS,
    counts: Mapping[str, tuple[int, int]] | None = None,
    commits: Sequence[str] = (),
) -> str:
    """Keep a table under its name, and return it as the pages show it.

    Where a column ``se`` has the standard errors of the column on its left, what moved since the
    table was kept last is printed.
    """
    figures = table(columns, command, digits, covers, counts, commits)
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
    covers: tuple[str, ...] = MODELS,
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
        here(command, covers),
        covers,
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
        tuple(kept["covers"]),
        {what: (ran, asked) for what, (ran, asked) in kept["counts"].items()},
        tuple(kept["commits"]),
    )


def part(
    name: str,
    key: Mapping[str, Cell],
    make: Callable[[], Mapping[str, Cell]],
    covers: tuple[str, ...] = MODELS,
) -> dict[str, Cell]:
    """A result of a long benchmark: one that was kept and whose code is as it was, or a new one.

    A new one is printed and kept at once. The commit stands with it, under ``commit``.
    """
    key = {what: plain(cell) for what, cell in key.items()}
    for before in kept(name, covers):
        if all(before.get(what) == key[what] for what in key):
            return before
    made = {what: plain(cell) for what, cell in make().items()}
    row = {**key, **made, "commit": commit(covers)}
    file = parts_of(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        line = json.dumps({**row, "covered": fingerprint(covers)}, ensure_ascii=False)
        lines.write(line + "\n")
    print("| " + " | ".join(text(cell, 3)[:80] for cell in row.values()) + " |", flush=True)
    return row


def kept(name: str, covers: tuple[str, ...]) -> list[dict[str, Cell]]:
    """Stored parts of a benchmark whose code has not changed since."""
    file, covered = parts_of(name), fingerprint(covers)
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [
        {what: cell for what, cell in row.items() if what != "covered"}
        for row in rows
        if row["covered"] == covered
    ]


def parts_of(name: str) -> Path:
    """Where the parts of a long benchmark are kept."""
    return FIGURES / f"{name}.parts.jsonl"


def here(command: str, covers: tuple[str, ...]) -> Run:
    """This commit and this machine, now."""
    chosen = [
        f"{name}={value}" for name, value in sorted(os.environ.items()) if SETTINGS.match(name)
    ]
    return Run(
        " ".join([*chosen, command]),
        commit(covers),
        datetime.now(UTC).date().isoformat(),
        round(os.getloadavg()[0], 1),
        os.cpu_count() or 1,
        fingerprint(covers),
    )


def commit(covers: tuple[str, ...]) -> str:
    """The commit that is checked out, with a plus where what is covered was changed since."""
    changed = git("status", "--porcelain", "--", *covers)
    return git("rev-parse", "--short=7", "HEAD") + ("+" if changed else "")


def git(*words: str) -> str:
    """What git says."""
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


@cache
def fingerprint(covers: tuple[str, ...]) -> str:
    """Of code without comments and docstrings, for these change no figure."""
    digest = hashlib.sha256()
    for file in sorted(python for place in covers for python in sources(ROOT / place)):
        digest.update(str(file.relative_to(ROOT)).encode())
        digest.update(bare(file).encode())
    return digest.hexdigest()[:16]


def sources(place: Path) -> Iterator[Path]:
    """A file, or all Python below a folder."""
    return iter([place]) if place.is_file() else place.rglob("*.py")


def bare(file: Path) -> str:
    """The syntax tree of a file, without the strings that stand as statements."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [
                line
                for line in node.body
                if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))
            ]
    return ast.dump(tree)


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
    """Bring pages up to date; name tables older than the code they cover."""
    for page in pages():
        before = page.read_text()
        if (after := rendered(before)) != before:
            page.write_text(after)
            print(f"{page.relative_to(ROOT)} is brought up to date")
    for file in sorted(FIGURES.rglob("*.json")):
        name = str(file.relative_to(FIGURES).with_suffix(""))
        figures = read(name)
        if figures.run.covered != fingerprint(figures.covers):
            print(f"{name}: the code has changed since {figures.run.commit}: {figures.run.command}")


if __name__ == "__main__":
    sys.exit(main())
