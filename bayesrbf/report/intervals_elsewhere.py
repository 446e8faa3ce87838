"""How often intervals of the same kind held the truth on tables whose truth is known."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

FILE: Final = "intervals_elsewhere.json"
"""Written by ``python -m tests.measured`` from the tables of docs/measured/intervals.md."""
HOLES: Final = 0.1
"""Share of missing cells from which a table counts as one with holes."""
ALIKE: Final = 2.0
"""Times as many rows, or as few, up to which a table is of the same size."""


@dataclass(frozen=True)
class Elsewhere:
    """Coverage of intervals of 90 % in the mean of some tables."""

    family: str
    method: str
    rows: int
    holes: bool
    tables: int
    coverage: float
    lowest: float
    """Coverage that nine tables in ten exceed."""

    @property
    def sentence(self) -> str:
        """What was found, in words."""
        holes = " with 30 % of the cells hidden" if self.holes else ""
        return (
            f"On {self.tables} tables of at most {self.rows} rows{holes}, for which the true "
            f"probabilities are known, 90 % intervals made this way held them "
            f"{100 * self.coverage:.0f} times in 100, and {100 * self.lowest:.0f} times on the "
            "worst tenth of the tables."
        )


def elsewhere(family: str, method: str, n_rows: int, missing: float) -> Elsewhere | None:
    """What was found for the family and method, on tables of about that size; None if nothing."""
    entries = json.loads((files(__package__) / FILE).read_text(encoding="utf-8"))
    alike = [
        one
        for one in (Elsewhere(**entry) for entry in entries)
        if (one.family, one.method, one.holes) == (family, method, missing >= HOLES)
        and n_rows / ALIKE <= one.rows <= n_rows * ALIKE
    ]
    return min(alike, key=lambda one: abs(one.rows - n_rows), default=None)
