"""Hybrid mixtures against their likelihood and support vector machines, after Roth (2016).

See Roth (2016), Hybrid generative-discriminative training of Gaussian mixture models, master's
thesis; tables 4.1 and 4.2, B.1 to B.3, B.5 and B.7. Roth, Peharz, Tschiatschek, Pernkopf (2018),
Pattern Recognition Letters 112, 131-137.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from rich.console import Console
from sklearn.base import clone

from reproduce import published
from reproduce.cells import Cell, Figures, print_table, run_cells
from reproduce.roth_methods import (
    CHOSEN,
    DIAGONAL_50,
    HEAVY,
    IMPUTERS,
    METHODS,
    MIXTURE,
    ONLY,
    SVMS,
    WITH_HOLES,
    Mechanism,
    few,
    fitted,
    n_parameters,
    weighted,
)

MISSING: Final = tuple(tenths / 10 for tenths in range(10))
NOT_BY_CHANCE: Final = (0.1, 0.3, 0.5, 0.7, 0.9)
LABELLED: Final = (500, 1000)
HINGE_WEIGHTS: Final = (0.0, 0.1, 1.0, 10.0, 100.0, 1e3, 1e4)
QUICK_ROWS: Final = 2_000
ROWS: Final = 60_000


def run(
    folder: Path, *, quick: bool = False, images: int = ROWS, console: Console | None = None
) -> None:
    """Compute the cells that are not stored in ``folder`` and print every table.

    A stopped run goes on where it was. A quick run has small tables and 2,000 rows of images and
    takes minutes; otherwise fits learn from at most ``images`` images.
    """
    pictured = ("usps",) if quick else ("mnist50", DIAGONAL_50, "usps", "mnist")
    tables = ("iris", "breast_cancer", "segment", *pictured)
    n_train = QUICK_ROWS if quick else images
    file = folder / ("roth_quick.jsonl" if quick else "roth.jsonl")
    shares = (0.0, 0.5) if quick else MISSING
    labels = LABELLED[:1] if quick else LABELLED
    shown = (
        ("Error in % (table 4.1)", _errors(tables, n_train), published.ROTH_4_1),
        (
            "Error in % with hidden test cells (tables B.1 to B.3)",
            _holes(pictured, n_train, shares),
            published.ROTH_B,
        ),
        (
            "Error in % of the hinge by its weight and hidden cells (table B.5)",
            _dial("usps", n_train, shares),
            published.ROTH_B_5,
        ),
        (
            f"Error in % with few labels of {n_train}, by the weight of the other rows (table B.7)",
            _few_labels("mnist50", n_train, labels),
            published.ROTH_B_7,
        ),
    )
    groups = [group for _, group, _ in shown]
    cells = [cell for group in groups for row in group.values() for cell in row.values()]
    figures = run_cells(cells, file, console)
    for title, group, paper in shown:
        header = list(dict.fromkeys(name for row in group.values() for name in row))
        lines = [[row, *(_figure(group[row].get(c), figures) for c in header)] for row in group]
        print_table(title, ["", *header], lines, console, paper)


Group = dict[str, dict[str, Cell]]  # Cells of a table by row and column.


def _figure(cell: Cell | None, figures: Mapping[str, Figures]) -> str:
    """One cell of a printed table; a dash where it was not computed."""
    found = None if cell is None else figures.get(cell.name)
    return "-" if found is None else f"{found['error']:.2f}"


def _errors(tables: tuple[str, ...], n_train: int) -> Group:
    """Table 4.1: all methods on all tables, complete."""
    names = [*METHODS, *SVMS]
    return {
        table: {
            name: Cell(f"{table}/{n_train}/{name}", partial(_error, table, name, n_train))
            for name in ONLY.get(table, names)
        }
        for table in tables
    }


def _holes(tables: tuple[str, ...], n_train: int, shares: tuple[float, ...]) -> Group:
    """Tables B.1 to B.3: cells of test rows hidden, by three mechanisms."""
    names = ["ML", "blend", "hinge", WITH_HOLES, *(f"RBF SVM, {imputer}" for imputer in IMPUTERS)]
    mechanisms: tuple[Mechanism, ...] = ("MCAR", "MAR", "NMAR")
    return {
        f"{table}, {mechanism} {share:.0%}": {
            name: Cell(
                f"{table}/{n_train}/{name}/{mechanism}/{share:g}",
                partial(_error, table, name, n_train, share, mechanism),
            )
            for name in ONLY.get(table, names)
            if (table, name) not in HEAVY and (name != WITH_HOLES or (table, name) in CHOSEN)
        }
        for table in tables
        for mechanism in mechanisms
        for share in shares
        if mechanism == "MCAR" or share in NOT_BY_CHANCE
    }


def _dial(table: str, n_train: int, shares: tuple[float, ...]) -> Group:
    """Table B.5: the weight of the hinge against the share of hidden cells."""
    return {
        f"hidden {share:.0%}": {
            f"λ = {weight:g}": Cell(
                f"{table}/{n_train}/λ = {weight:g}/{share:g}",
                partial(_error_of_weight, table, weight, n_train, share),
            )
            for weight in HINGE_WEIGHTS
        }
        for share in shares
    }


def _few_labels(table: str, n_train: int, numbers: tuple[int, ...]) -> Group:
    """Table B.7: rows without a label dropped, or used."""
    return {
        f"{number} labels": {
            f"{name} {how}": Cell(
                f"{table}/{n_train}/{name}/{number} labels/{how}",
                partial(_error_few, table, name, n_train, number, weight),
            )
            for name in ("ML", "hinge")
            for how, weight in (("0", 0.0), ("1", 1.0), ("cv", "cv"))
        }
        for number in numbers
    }


def _error(
    table: str, name: str, n_train: int, share: float = 0.0, mechanism: Mechanism = "MCAR"
) -> Figures:
    """Mean error of a method over the splits of a table, and its size."""
    errors, sizes = [], []
    for index, split in enumerate(few(table, n_train)):
        model = fitted(table, name, n_train, index)
        shown = split.hidden(share, mechanism, seed=1) if share else split
        errors.append(100 * np.mean(model.predict(shown.X_new) != split.y_new))
        sizes.append(n_parameters(model))
    return {"error": float(np.mean(errors)), "parameters": float(np.mean(sizes))}


def _error_of_weight(table: str, weight: float, n_train: int, share: float) -> Figures:
    """Error of one weight of the hinge."""
    [split] = few(table, n_train)
    model = weighted(table, weight, n_train)
    shown = split.hidden(share, "MCAR", seed=1) if share else split
    return {"error": float(100 * np.mean(model.predict(shown.X_new) != split.y_new))}


def _error_few(table: str, name: str, n_train: int, number: int, weight: float | str) -> Figures:
    """Error where only the first rows of a table have labels."""
    [split] = few(table, n_train)
    y = np.where(np.arange(split.y.size) < number, split.y, np.nan)
    model = clone(MIXTURE).set_params(objective=METHODS[name], unlabelled_weight=weight)
    model.fit(split.X, y)
    error = float(100 * np.mean(model.predict(split.X_new) != split.y_new))
    return {"error": error, "unlabelled_weight": model.unlabelled_weight_}
