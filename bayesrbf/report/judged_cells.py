"""Judges a table by a density of its cells: odd cells, and rows unlike all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float
from scipy.stats import false_discovery_control

from bayesrbf.estimators.mixture.density import MixtureDensity
from bayesrbf.posterior.cell_tails import tails_among
from bayesrbf.report.job import Job
from bayesrbf.report.records import NovelRow, OddCell
from bayesrbf.report.words import between, clipped, exact, listing, percent, plural

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

LISTED_CELLS: Final = 20
CELLS_BY_CHANCE: Final = 0.1
"""Share of the cells that look wrong that chance explains."""
MOST_NOVEL: Final = 10
LISTED_NOVELTY: Final = 0.98
"""Novelty from which a row is listed."""
FITS_IN_POOL: Final = 8
"""Fits side by side."""
SHAPE_WORDS: Final = {
    "full": "full",
    "tied": "shared",
    "diag": "diagonal",
    "spherical": "spherical",
}
"""Covariances in words."""
NAMED_ATOMS: Final = 6
"""Columns whose atoms are named."""


@dataclass(frozen=True)
class JudgedTable:
    """Cells and rows of a table beside what a density of them and of the labels expects."""

    density: MixtureDensity
    table: pd.DataFrame
    """The cells it was fitted to, and the labels as one more column."""
    cells: xr.Dataset
    """What ``surprise`` says; the label has its say, and is not judged here."""
    novelty: Float[np.ndarray, " obs"]
    """Of the rows without their labels."""
    sentence: str
    """What the density is."""


def judge_table(job: Job) -> JudgedTable:
    """Fit a density to the cells and the labels, less what looks wrong, and judge all of them."""
    table = with_labels(job)
    density = MixtureDensity(
        "cv",
        covariance_type="cv",
        prior="cv",
        column_maps="power",
        atoms="auto",
        trim=True,
        pool=FITS_IN_POOL,
        categorical_features=[*job.categorical, job.target],
        random_state=job.seed,
    ).fit(table)
    cells = density.surprise(table).sel(column=list(job.X.columns))
    unlabelled = density.novelty(table.assign(**{job.target: None}))
    return JudgedTable(density, table, cells, unlabelled, _described(density))


def with_labels(job: Job) -> pd.DataFrame:
    """The cells of a table, and its labels as one more column."""
    given = job.y.astype(object).where(job.y.notna(), None)
    return job.X.assign(**{job.target: [None if label is None else str(label) for label in given]})


def _described(density: MixtureDensity) -> str:
    """The chosen density in words, and the columns with atoms."""
    best, n = density.candidates_[0], len(density.candidates_)
    parts = sum(candidate.share > 0 for candidate in density.candidates_)
    chosen = f" with {parts} of {n} settings that were tried on rows held out" if n > 1 else ""
    sentence = (
        f"The density is an average of fits{chosen}; the best one has "
        f"{plural(best.n_components, 'component')} and {SHAPE_WORDS[best.covariance_type]} "
        "covariances."
    )
    atoms = [
        f"{percent(share)} of {clipped(name, 30)} are exactly {exact(value)}"
        for name, values in density.atoms_.items()
        for value, share in values.items()
    ]
    if all(candidate.n_components == 1 for candidate in density.candidates_ if candidate.share > 0):
        sentence += " One component knows no classes: a label says nothing of the cells of its row."
    repeated = f" Values that repeat have a share of their own: {listing(atoms, NAMED_ATOMS)}."
    return f"{sentence}{repeated if atoms else ''}"


def odd_cells(job: Job, judged: JudgedTable) -> tuple[tuple[OddCell, ...], int]:
    """Cells that look wrong, the least probable first, and how many there are.

    A tail is that of the cell among all cells of the table. Of the cells that are found at most one
    in ten is there by chance (Benjamini and Hochberg).
    """
    surprise = -judged.cells["log_tail"].to_numpy()
    observed = ~np.isnan(surprise)
    tails = np.full(surprise.shape, np.nan)
    tails[observed] = tails_among(surprise[observed])
    odd = np.zeros(surprise.shape, dtype=bool)
    if observed.any():
        odd[observed] = false_discovery_control(tails[observed]) <= CELLS_BY_CHANCE
    places = np.argwhere(odd)
    places = places[np.argsort(tails[odd], kind="stable")]
    listed = tuple(
        _odd_cell(job, judged.cells, row, column, float(tails[row, column]))
        for row, column in places[:LISTED_CELLS].tolist()
    )
    return listed, len(places)


def _odd_cell(job: Job, cells: xr.Dataset, row: int, column: int, tail: float) -> OddCell:
    """One cell in words, with the probability of cells that are no more likely."""
    name, here = job.X.columns[column], cells.isel(obs=row, column=column)
    value, expected = job.X.iloc[row, column], str(here["expected"].item())
    if job.kinds[name] == "real":
        value = job.cell(name, float(value))
        expected = between(*(job.cell(name, float(here[end])) for end in ("lower", "upper")))
    return OddCell(job.row(row), str(name), str(value), expected, tail)


def novel_rows(job: Job, judged: JudgedTable) -> tuple[NovelRow, ...]:
    """Rows unlike all others, the least probable cells first among equals.

    Of each, its least probable cell is hidden and the row judged anew.
    """
    log_tail = judged.cells["log_tail"].to_numpy()
    order = np.lexsort((np.nansum(log_tail, axis=1), -judged.novelty))[:MOST_NOVEL]
    rows = order[judged.novelty[order] >= LISTED_NOVELTY]
    rows = rows[~np.isnan(log_tail[rows]).all(axis=1)]
    if not rows.size:
        return ()
    least = np.nanargmin(log_tail[rows], axis=1)
    table = judged.table.iloc[rows].assign(**{job.target: None})
    hidden = table.mask(least[:, None] == np.arange(table.shape[1]))
    novel = []
    for row, column, without in zip(rows, least, judged.density.novelty(hidden), strict=True):
        tail = float(np.exp(log_tail[row, column]))
        cell = _odd_cell(job, judged.cells, int(row), int(column), tail)
        novel.append(
            NovelRow(
                row=cell.row,
                novelty=float(judged.novelty[row]),
                column=cell.column,
                value=cell.value,
                expected=cell.expected,
                without=float(without),
                alone=bool(without < LISTED_NOVELTY),
            )
        )
    return tuple(novel)
