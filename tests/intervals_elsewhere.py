"""Writes what the report says of intervals elsewhere, from the printed tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Final

from bayesrbf import report
from bayesrbf.report.intervals_elsewhere import FILE, Elsewhere
from tests.measured import FIGURES, read

PRINTED: Final = {
    "intervals": {"stack": ("stack", "bootstrap")},
    "intervals/one_kind": {"pool+network": ("rbf", "laplace, pool")},
}
"""Models of printed tables that the report fits with the same settings: family and method there."""
PATH: Final = Path(report.__path__[0]) / FILE


def entries() -> Iterator[Elsewhere]:
    """What is kept of every printed table."""
    for (place, models), rows, holes in product(PRINTED.items(), (200, 400), (False, True)):
        name = f"{place}/{rows}_rows_{'with_holes' if holes else 'complete'}"
        if not (FIGURES / f"{name}.json").exists():
            continue
        figures = read(name)
        for row in figures.rows:
            found = dict(zip(figures.columns, row, strict=True))
            if (model := str(found["model"])) not in models:
                continue
            coverage, lowest = (round(float(str(found[c])), 3) for c in COLUMNS)
            yield Elsewhere(
                *models[model], rows, holes, int(str(found["tables"])), coverage, lowest
            )


COLUMNS: Final = ("90%", "90%, lowest tenth")


def text() -> str:
    """The file, a line an entry."""
    lines = (json.dumps(vars(entry)) for entry in entries())
    return "[\n" + ",\n".join(lines) + "\n]\n"
