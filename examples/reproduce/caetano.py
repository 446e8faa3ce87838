"""RBF networks after Caetano (2018): few labels, the link, annihilation, and regression.

The paper weights the values of a missing cell by the mixture weights (equations 12 and 13); here a
missing cell is integrated out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from rich.console import Console

from reproduce import caetano_pictures as pictures
from reproduce import caetano_regression as regression
from reproduce import caetano_tables as tables
from reproduce import published
from reproduce.cells import Cell, Figures, Found, print_table, run_cells, side_by_side


@dataclass(frozen=True)
class Plan:
    """How much is computed."""

    seeds: int  # Splits of every table.
    real: tuple[str, ...]  # Names of tables.
    categorical: tuple[str, ...]  # Names of tables.
    numbers: tuple[str, ...]  # Names of tables of regression.
    shares: tuple[int, ...] = tables.REAL_SHARES  # Of the rows of ``real`` that are labelled, in %.
    gammas: tuple[float, ...] = pictures.GAMMAS  # Strengths of the link.
    penalties: tuple[float, ...] = pictures.PENALTIES
    """Values of ``l1``, under which components leave."""
    effort: tables.Effort = tables.FULL

    def cells(self) -> list[Cell]:
        """Every cell, quick ones first."""
        return [
            *pictures.cells(self.seeds, self.gammas, self.penalties),
            *regression.cells(self.numbers, self.seeds),
            *tables.real_cells(self.real, self.shares, self.seeds, self.effort),
            *tables.mixed_cells(self.categorical, self.seeds, self.effort),
        ]


QUICK: Final = Plan(1, ("iris",), (), ("diabetes",), (50,), (1e4,), (1.0,), tables.Effort(20, 1, 5))
MAX_LABELS: Final = ", 85 %"
"""Ends names of rows that stand beside the paper's table 1, where all training rows have labels."""


@dataclass(frozen=True)
class Shown:
    """A printed table whose rows are data and whose columns are methods."""

    experiment: str
    figure: str
    title: str
    digits: int  # Behind the point.
    paper: published.Published = published.NONE  # By row and column.


SHOWN: Final = (
    Shown(
        "table 2",
        "error",
        "Error in %, share of the rows that is labelled (table 2)",
        1,
        published.CAETANO_2,
    ),
    Shown("table 2", "log_loss", "Log loss in nats (table 2)", 3),
    Shown(
        "table 3",
        "error",
        "Error in %, share of the learned rows that is labelled (table 3)",
        1,
        published.CAETANO_3,
    ),
    Shown("table 3", "log_loss", "Log loss in nats (table 3)", 3),
    Shown("regression", "error", "Root mean squared error over the spread of the responses", 3),
    Shown("regression", "surprise", "Negative log density per response, in units of the spread", 3),
    Shown("regression", "coverage", "Intervals of 90 % that cover, in %", 0),
)


def run(
    folder: Path, *, quick: bool = False, seeds: int = 10, console: Console | None = None
) -> None:
    """Compute the cells that are not stored in ``folder`` and print every table.

    A stopped run goes on where it was. A quick run has one split of two small tables.
    """
    full = Plan(seeds, tables.REAL, tables.CATEGORICAL, tuple(regression.TABLES))
    plan = QUICK if quick else full
    file = folder / ("caetano-quick.jsonl" if quick else "caetano.jsonl")
    figures = run_cells(plan.cells(), file, console)
    header, rows = compared(figures, "table 2", "error", 1)
    most = [
        [row[0].removesuffix(MAX_LABELS), *row[1:]] for row in rows if row[0].endswith(MAX_LABELS)
    ]
    if most:
        title = "Error in %, 85 % of the rows learned from (table 1)"
        print_table(title, header, most, console, published.CAETANO_1)
    for shown in SHOWN:
        header, rows = compared(figures, shown.experiment, shown.figure, shown.digits)
        if rows:
            print_table(shown.title, header, rows, console, shown.paper)
    print_pictures(figures, console)


def collected(figures: Mapping[str, Figures], experiment: str, figure: str) -> Found:
    """Values of one figure of one experiment over the seeds.

    Figures are named ``experiment/row/column/seed``.

    >>> collected({"a/iris/SVM/0": {"error": 4}, "a/iris/SVM/1": {"error": 5}}, "a", "error")
    {('iris', 'SVM'): [4.0, 5.0]}
    """
    found: Found = {}
    for cell, values in figures.items():
        name, row, column, _ = cell.split("/")
        if name == experiment and figure in values:
            found.setdefault((row, column), []).append(float(values[figure]))
    return found


def compared(
    figures: Mapping[str, Figures], experiment: str, figure: str, digits: int
) -> tuple[list[str], list[list[str]]]:
    """Header and rows of mean and standard deviation over the seeds, a column a method."""
    return side_by_side(collected(figures, experiment, figure), partial(_mean, digits=digits))


def print_pictures(figures: Mapping[str, Figures], console: Console | None = None) -> None:
    """Print the numbers behind the pictures."""
    error, distance = (collected(figures, "link", name) for name in ("error", "distance"))
    rows = []
    for gamma in dict.fromkeys(gamma for _, gamma in error):
        at = [(table, gamma) for table in ("three Gaussians", "iris")]
        shown = [
            text
            for key in at
            for text in (_mean(error.get(key, []), 1), _mean(distance.get(key, []), 3))
        ]
        rows.append([gamma, *shown])
    header = ["gamma", "three Gaussians", "distance", "iris", "distance"]
    title = "The link: error in %, distance of weights from shares"
    print_table(title, header, rows, console, published.CAETANO_LINK)
    error, left = (collected(figures, "annihilation", name) for name in ("error", "components"))
    rows = [[l1, _mean(error[key], 1), _mean(left[key], 1)] for key in error for l1 in [key[1]]]
    title = f"Annihilation on iris: components left of {pictures.MANY}"
    print_table(title, ["l1", "error %", "components"], rows, console)


def _mean(values: Sequence[float], digits: int) -> str:
    """Mean and, over several seeds, standard deviation."""
    if not values:
        return "-"
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ({np.std(values, ddof=1):.{digits}f})"
