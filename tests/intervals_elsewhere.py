"""Writes what the report says of intervals elsewhere, from the printed tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bayesrbf import report
from bayesrbf.report.intervals_elsewhere import FILE, Elsewhere
from tests.measured import FIGURES, read

PRINTED: Final = {
    "stack": ("stack", "bootstrap"),
    "mixture, likelihood": ("mixture", "laplace"),
    "mixture+pool, likelihood": ("mixture", "laplace, pool"),
    "network+pool": ("rbf", "laplace, pool"),
    "sdgm+pool": ("sdgm", "laplace, pool"),
}
"""Models of the printed tables that the report fits: family and method there."""
PATH: Final = Path(report.__path__[0]) / FILE


def entries() -> Iterator[Elsewhere]:
    """What is kept of every printed table."""
    for rows in (200, 400):
        for holes in (False, True):
            name = f"intervals/{rows}_rows_{'with_holes' if holes else 'complete'}"
            if not (FIGURES / f"{name}.json").exists():
                continue
            figures = read(name)
            for row in figures.rows:
                found = dict(zip(figures.columns, row, strict=True))
                if (model := str(found["model"])) not in PRINTED:
                    continue
                coverage, lowest = (float(str(found[c])) for c in ("90%", "90%, lowest tenth"))
                tables = int(str(found["tables"]))
                yield Elsewhere(
                    *PRINTED[model], rows, holes, tables, round(coverage, 3), round(lowest, 3)
                )


def text() -> str:
    """The file, a line an entry."""
    lines = (json.dumps(vars(entry)) for entry in entries())
    return "[\n" + ",\n".join(lines) + "\n]\n"
