"""A density of the table's cells and labels, by which sections judge cells and rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayesrbf import MixtureDensity
from bayesrbf.app.report.job import Job
from bayesrbf.app.words import between, clipped, exact, listing, percent, plural

if TYPE_CHECKING:
    import xarray as xr


FITS_IN_POOL: Final = 8
"""Fits side by side."""
SHAPE_WORDS: Final = {"tied": "shared", "diag": "diagonal"}
"""Covariances whose name is no word."""
NAMED_POINT_MASSES: Final = 6
"""Columns whose point masses are named."""


@dataclass(frozen=True)
class JudgedTable:
    """Surprise of the cells and novelty of the rows under a density of cells and labels."""

    density: MixtureDensity
    table: pd.DataFrame
    """The cells it was fitted to, and the labels as one more column."""
    cells: xr.Dataset
    """Answer of ``surprise``; it conditions on the label and does not judge it."""
    novelty: Float[np.ndarray, " obs"]
    """Novelty of the rows without their labels."""
    message: str
    """Sentence on the density."""


@dataclass(frozen=True)
class OddCell:
    """A cell that the rest of its row makes improbable."""

    row: str  # What it is called.
    column: str
    value: str  # What stands there.
    expected: str  # What the rest of the row suggests.
    tail: float  # Share of the table's cells that would be at least as extreme.


def judge_table(job: Job) -> JudgedTable:
    """Fit a trimmed density to the cells and the labels, and judge all of them."""
    observed = job.y.astype(object).where(job.y.notna(), None)
    labels = [None if label is None else str(label) for label in observed]
    table = job.X.assign(**{job.target: labels})
    density = MixtureDensity(
        "cv",
        covariance_type="cv",
        prior="cv",
        column_transforms="power",
        point_masses="auto",
        trim=True,
        pool=FITS_IN_POOL,
        categorical_features=[*job.categorical, job.target],
        column_kinds=job.said_kinds,
        random_state=job.seed,
    ).fit(table)
    cells = density.surprise(table).sel(column=list(job.X.columns))
    unlabelled = density.novelty(table.assign(**{job.target: None}))
    return JudgedTable(density, table, cells, unlabelled, _described(density))


def _described(density: MixtureDensity) -> str:
    """Message on the chosen density, and on the columns with point masses."""
    best, n = density.candidates_[0], len(density.candidates_)
    shape = SHAPE_WORDS.get(best.covariance_type, best.covariance_type)
    n_members = sum(candidate.share > 0 for candidate in density.candidates_)
    chosen = f" with {n_members} of {n} settings that were tried on rows held out" if n > 1 else ""
    message = (
        f"The density is an average of fits{chosen}; the best one has "
        f"{plural(best.n_components, 'component')} and {shape} covariances."
    )
    point_masses = [
        f"{percent(share)} of {clipped(name, 30)} are exactly {exact(value)}"
        for name, values in density.point_masses_.items()
        for value, share in values.items()
    ]
    if all(candidate.n_components == 1 for candidate in density.candidates_ if candidate.share > 0):
        message += " One component knows no classes: a label says nothing of the cells of its row."
    values = listing(point_masses, NAMED_POINT_MASSES)
    repeated = f" Values that repeat have a share of their own: {values}."
    return f"{message}{repeated if point_masses else ''}"


def odd_cell(job: Job, cells: xr.Dataset, row: int, column: int, tail: float) -> OddCell:
    """Description of one cell, with its tail probability."""
    name = job.X.columns[column]
    cell = cells.isel(obs=row, column=column)
    value = job.X.iloc[row, column]
    expected = str(cell["expected"].item())
    if not job.kinds[name].has_levels:
        value = job.cell(name, float(value))
        expected = job.cell(name, float(cell["expected"]))
        if not np.isnan(cell["lower"]):
            expected = between(*(job.cell(name, float(cell[end])) for end in ("lower", "upper")))
    return OddCell(job.row(row), str(name), str(value), expected, tail)
