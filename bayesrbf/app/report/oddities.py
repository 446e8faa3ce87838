"""Cells and labels that look wrong: improbable given the rest of their row, or held out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import false_discovery_control

from bayesrbf.answers.scores import Counted, beyond_chance, improbable_labels
from bayesrbf.app.report.density import JudgedTable, OddCell, odd_cell
from bayesrbf.app.report.held_out import HeldOutRows
from bayesrbf.app.report.job import Job
from bayesrbf.app.tails import tails_beside
from bayesrbf.app.words import between, number, percent, plural

LISTED_CELLS: Final = 20
CELLS_BY_CHANCE: Final = 0.1
"""Share of the cells that look wrong that chance explains."""
LISTED_LABELS: Final = 20
UNLIKELY_LABEL = 0.05
"""Held-out probability below which labels are counted beside what chance puts there."""
LABELS_BY_CHANCE = 0.1
"""Share of the listed labels that chance explains."""


@dataclass(frozen=True)
class OddLabel:
    """A label that the held-out prediction finds improbable."""

    row: str  # What it is called.
    label: str
    suggested: str  # The most probable class.
    probability: float  # Held out, of the given label.


@dataclass(frozen=True)
class Oddities:
    """Cells and labels that look wrong, the least probable first."""

    cells: tuple[OddCell, ...]
    n_cells: int  # Cells that look wrong, of which at most one in ten is there by chance.
    labels: tuple[OddLabel, ...]  # Beyond what chance explains.
    improbable: Counted  # Labels below a held-out probability of ``bound``.
    bound: float
    density: str  # What cells are judged by, in a sentence or two.


def compute(job: Job, judged: JudgedTable, held_out: HeldOutRows) -> Oddities:
    """Cells and labels that look wrong, least probable first."""
    cells, n_odd = odd_cells(job, judged)
    rows = held_out.scored
    probabilities = next(iter(held_out.probabilities.values()))[rows]
    labels = held_out.labels[rows]
    listed = tuple(
        OddLabel(
            row=job.row(int(rows[i])),
            label=str(held_out.classes[labels[i]]),
            suggested=str(held_out.classes[probabilities[i].argmax()]),
            probability=float(probabilities[i, labels[i]]),
        )
        for i in beyond_chance(probabilities, labels, LABELS_BY_CHANCE)[:LISTED_LABELS]
        if probabilities[i, labels[i]] < UNLIKELY_LABEL
    )
    improbable = improbable_labels(probabilities, labels, UNLIKELY_LABEL)
    return Oddities(cells, n_odd, listed, improbable, UNLIKELY_LABEL, judged.message)


def odd_cells(job: Job, judged: JudgedTable) -> tuple[tuple[OddCell, ...], int]:
    """Cells that look wrong, the least probable first, and how many there are.

    A tail is that of the cell among all cells of the table. Of the cells that are found at most one
    in ten is there by chance (Benjamini and Hochberg).
    """
    surprise = -judged.cells["log_tail"].to_numpy()
    observed = ~np.isnan(surprise)
    tails = np.full(surprise.shape, np.nan)
    tails[observed] = tails_beside(surprise[observed], surprise[observed])
    odd = np.zeros(surprise.shape, dtype=bool)
    if observed.any():
        odd[observed] = false_discovery_control(tails[observed]) <= CELLS_BY_CHANCE
    positions = np.argwhere(odd)
    positions = positions[np.argsort(tails[odd], kind="stable")]
    listed = tuple(
        odd_cell(job, judged.cells, row, column, float(tails[row, column]))
        for row, column in positions[:LISTED_CELLS].tolist()
    )
    return listed, len(positions)


def tell(oddities: Oddities) -> Iterator[tuple[str, str]]:
    """Number of suspicious cells, as a line."""
    yield "look wrong", f"{plural(oddities.n_cells, 'cell')}, by a density of all rows"


def say(oddities: Oddities) -> dict[str, str]:
    """Message on the number of suspicious cells and labels, and on the number by chance."""
    verb = "is" if oddities.n_cells == 1 else "are"
    cells = (
        f"{plural(oddities.n_cells, 'cell')} {verb} further from what the rest of the row suggests "
        "than chance explains, which puts at most one in ten of them there; a cell may be right "
        "and rare."
    )
    if not oddities.cells:
        cells = "No cell is further from what the rest of its row suggests than chance explains."
    improbable = oddities.improbable
    verb = "has" if improbable.number == 1 else "have"
    usual = between(str(improbable.lower), str(improbable.upper))
    listed = "Of no single one can it be told that chance does not explain it, and none is listed."
    if oddities.labels:
        listed = "Listed are those beyond chance, of which it explains at most one in ten."
    labels = (
        f"{plural(improbable.number, 'row')} held out {verb} a label that was given a probability "
        f"below {percent(oddities.bound)}; a calibrated model has about "
        f"{number(improbable.expected)} ({usual}, 9 times in 10). {listed}"
    )
    return {"odd": cells, "odd_labels": labels}
