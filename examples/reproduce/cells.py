"""A table of figures that is computed cell by cell; stored cells are not computed again.

A cell is stored as soon as it is computed, as one line of JSON. A stopped run therefore goes on
where it was, and a table can be printed from the cells that exist.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.measure import Measurement
from rich.progress import Progress
from rich.table import Table

from reproduce.published import NONE, Published, beside

Figures = Mapping[str, float | int | str]  # Figures of a cell by name.
Found = dict[tuple[str, str], list[float]]  # Values of a figure by row and column.
MAX_WIDE: Final = 1000  # Most characters of a printed line.


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    name: str  # In the file; no two cells have the same.
    compute: Callable[[], Figures]  # Makes its figures: finite numbers and strings.


def run_cells(
    cells: Sequence[Cell], file: Path, console: Console | None = None
) -> dict[str, Figures]:
    """Compute the cells that a file does not hold, store each at once, and return all by name.

    Ctrl-C ends the run and returns what there is: the next run goes on there. Progress is shown on
    stderr by default. ValueError if two cells have one name, or the file holds something else.
    """
    names = [cell.name for cell in cells]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"Every cell needs a name of its own; received {twice!r} twice.")
    file.parent.mkdir(parents=True, exist_ok=True)
    known = read_cells(file)
    absent = [cell for cell in cells if cell.name not in known]
    with Progress(console=console or Console(stderr=True), transient=True) as bar:
        task = bar.add_task(file.stem, total=len(cells), completed=len(cells) - len(absent))
        try:
            for cell in absent:
                bar.update(task, description=cell.name)
                known[cell.name] = cell.compute()
                _append(file, {"cell": cell.name, **known[cell.name]})
                bar.advance(task)
        except KeyboardInterrupt:
            there = sum(name in known for name in names)
            bar.console.print(f"Interrupted: {there} of {len(names)} cells are there.")
    return {name: known[name] for name in names if name in known}


def read_cells(file: Path) -> dict[str, Figures]:
    """Figures of the cells that a file holds, by name; none if it does not exist.

    A last line that was cut short is removed from the file: its cell was not stored. ValueError if
    a line is no cell.
    """
    if not file.exists():
        return {}
    text = file.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        os.truncate(file, len(whole.encode("utf-8")))
    cells = {}
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            figures = json.loads(line)
            name = figures.pop("cell")
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise ValueError(
                f"{file}, line {number} is no cell of a table; remove it or use another file."
            ) from error
        cells[name] = figures
    return cells


def _append(file: Path, figures: Figures) -> None:
    """Append one line and sync it to the disk before the next cell begins."""
    line = json.dumps(figures, allow_nan=False)
    with open(file, "a", encoding="utf-8") as stream:
        stream.write(line + "\n")
        stream.flush()
        os.fsync(stream.fileno())


def side_by_side(
    found: Found, shown: Callable[[Sequence[float]], str]
) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table; a dash stands where there is no value."""
    columns = list(dict.fromkeys(column for _, column in found))
    rows = [
        [row, *(shown(found[row, one]) if (row, one) in found else "-" for one in columns)]
        for row in dict.fromkeys(row for row, _ in found)
    ]
    return ["", *columns], rows


def print_table(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    console: Console | None = None,
    published: Published = NONE,
) -> None:
    """Print a table, with the paper's figures beside ours.

    The first column is text, the others are numbers.
    """
    header, rows = beside(header, rows, published)
    table = Table(title=title, title_justify="left", box=None)
    for position, name in enumerate(header):
        table.add_column(name, justify="right" if position else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = console or Console()
    wanted = Measurement.get(console, console.options.update(max_width=MAX_WIDE), table).maximum
    if wanted > console.width:  # a long line is better than a cut figure
        console = Console(file=console.file, width=wanted, quiet=console.quiet)
    console.print(table)
