"""Missing cells as the density fills them in, and how well it fills cells that are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.base import clone

from bayesrbf.estimators.mixture.density import MixtureDensity
from bayesrbf.fitted.completed_rows import cell_law
from bayesrbf.fitted.folds import grouped_folds, stratified_folds
from bayesrbf.fitted.tasks import run_tasks
from bayesrbf.posterior.cells import JudgedCells, leave_one_cell_out
from bayesrbf.records.priors import MixturePrior
from bayesrbf.report.job import Job
from bayesrbf.report.judged_cells import JudgedTable
from bayesrbf.report.records import Filled, Imputations
from bayesrbf.report.words import between, percent
from bayesrbf.table import encode, standardisation

MOST_FILLED_ROWS = 2_000
NOMINAL = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
COMPLETED_TABLES = 100
"""Completed tables behind the intervals of missing cells."""
EXAMPLES = 12


@dataclass(frozen=True)
class HeldOutCells:
    """Observed real cells, filled in by fits that had not seen their rows."""

    tail: Float[np.ndarray, " cell"]
    """Probability, given the rest of the row, of a cell at least as extreme."""
    miss: Float[np.ndarray, " cell"]  # Cell less its expectation, in column standard deviations.
    from_mean: Float[np.ndarray, " cell"]
    """Cell less its column's mean in the rows of the fit, in the same unit."""


def fill_held_out(job: Job, judged: JudgedTable) -> HeldOutCells:
    """Fit without each fold and fill in its cells one at a time, as ``impute`` would.

    The folds hold rows without a label out, too. Settings are the best of the whole table, of all
    fits of the pool: choosing them anew takes many times as long as the fits. Cells of a column
    without a value in the rows of a fit are left out.
    """
    table, density = judged.table, judged.density
    hidden = job.labels.max() + 1
    dealt = np.where(job.labels < 0, hidden, job.labels)
    folds = stratified_folds(dealt, job.folds, job.seed)
    if job.groups is not None:
        folds = grouped_folds(dealt, job.groups, job.folds, job.seed)
    reals = [name for name in job.X.columns if job.kinds[name] == "real"]
    tail, expected, mean = (np.full((len(job.X), len(reals)), np.nan) for _ in range(3))
    best = density.candidates_[0]
    prior = MixturePrior().weakened(best.strength, density.fitted_.model.specification)
    fresh = clone(density).set_params(
        n_components=best.n_components, covariance_type=best.covariance_type, prior=prior
    )

    def filled_in(fold: int) -> tuple[np.ndarray, np.ndarray]:
        fitted = clone(fresh).fit(table[folds != fold])
        fills = left_out(fitted, table[folds == fold])
        tail, expected = np.full((2, len(fills.tail), len(reals)), np.nan)
        there = [place for place, name in enumerate(reals) if name in fitted.columns_.real_names]
        places = [fitted.columns_.real_names.index(reals[place]) for place in there]
        tail[:, there], expected[:, there] = fills.tail[:, places], fills.expected[:, places]
        return tail, expected

    numbers = np.unique(folds[folds >= 0]).tolist()
    for fold, fills in zip(numbers, run_tasks(filled_in, numbers, "Filling in"), strict=True):
        out = folds == fold
        tail[out], expected[out] = fills
        mean[out] = job.X.loc[~out, reals].mean()
    cells = job.X[reals].to_numpy(dtype=float)
    scale = standardisation(cells, np.ones(len(cells))).scale
    filled = ~np.isnan(tail)
    return HeldOutCells(
        tail[filled], ((cells - expected) / scale)[filled], ((cells - mean) / scale)[filled]
    )


def left_out(density: MixtureDensity, table: pd.DataFrame) -> JudgedCells:
    """Every observed cell given the rest of its row."""
    mixture = density.fitted_.model
    rows = mixture.standardise(encode(table, density.columns_))
    return leave_one_cell_out(rows, cell_law(mixture, density.columns_))


def read_imputations(job: Job, judged: JudgedTable, cells: HeldOutCells | None) -> Imputations:
    """Missing cells with intervals, and the coverage of such intervals.

    Coverage is that of the missing cells where they are known; else that of observed cells of rows
    held out of the fit.
    """
    missing = job.X.isna().to_numpy()
    holes = np.flatnonzero(missing.any(1))
    holes = (
        holes[np.unique(np.linspace(0, max(len(holes) - 1, 0), MOST_FILLED_ROWS).astype(int))]
        if holes.size
        else holes
    )
    if cells is None:
        return _against_truth(job, int(missing.sum()), _Completed.of(holes, judged, job), holes)
    tables = _Completed.of(holes, judged, job) if holes.size else None
    tail = cells.tail
    covered = np.array([(tail >= 1 - p).mean() if tail.size else np.nan for p in NOMINAL])
    return Imputations(
        missing=int(missing.sum()),
        examples=() if tables is None else _examples(job, tables, holes),
        nominal=NOMINAL,
        covered=covered,
        n_checked=int(tail.size),
        hidden_truth=False,
        truth=np.zeros(0),
        filled=np.zeros(0),
        error=_errors(cells.miss, cells.from_mean),
    )


class _Completed:
    """Completed tables; real columns also as one array."""

    def __init__(self, tables: list[pd.DataFrame], reals: list[str], X: pd.DataFrame) -> None:
        self.X, self.reals, self.tables = X, reals, tables
        self.values = np.stack([table[reals].to_numpy(dtype=float) for table in tables])
        self.missing = X[reals].isna().to_numpy()

    @classmethod
    def of(cls, rows: Int[np.ndarray, " row"], judged: JudgedTable, job: Job) -> _Completed:
        """Draw completions of some rows."""
        reals = [name for name in job.X.columns if job.kinds[name] == "real"]
        tables = judged.density.impute(judged.table.iloc[rows], draws=COMPLETED_TABLES)
        return cls(tables, reals, job.X.iloc[rows])


def _errors(misses: np.ndarray, from_mean: np.ndarray) -> tuple[tuple[str, float], ...]:
    """Root mean squared errors of the model and of column means."""
    if misses.size == 0:
        return ()
    return (
        ("this density, from the rest of the row", float(np.sqrt(np.mean(misses**2)))),
        ("the column's mean", float(np.sqrt(np.mean(from_mean**2)))),
    )


def _against_truth(job: Job, missing: int, drawn: _Completed, rows: np.ndarray) -> Imputations:
    """Coverage and error where the hidden cells are known."""
    truth = _truth(job, drawn, rows)
    observed = job.X[drawn.reals]
    centre, scale = observed.mean().to_numpy(), observed.std().to_numpy()
    rank = ((drawn.values < truth).sum(0) + 0.5) / (len(drawn.values) + 1)
    depth = np.abs(2 * rank - 1)[drawn.missing]
    true = ((truth - centre) / scale)[drawn.missing]
    filled = ((drawn.values.mean(0) - centre) / scale)[drawn.missing]
    return Imputations(
        missing=missing,
        examples=_examples(job, drawn, rows),
        nominal=NOMINAL,
        covered=np.array([(depth <= p).mean() for p in NOMINAL]),
        n_checked=int(depth.size),
        hidden_truth=True,
        truth=true,
        filled=filled,
        error=_errors(true - filled, true),
    )


def _truth(job: Job, drawn: _Completed, rows: np.ndarray) -> Float[np.ndarray, "obs feature"]:
    """True real cells of some rows; NaN where there is no truth."""
    if job.truth is None:
        return np.full((len(rows), len(drawn.reals)), np.nan)
    return job.truth.X[drawn.reals].iloc[rows].to_numpy(dtype=float)


def _examples(job: Job, drawn: _Completed, rows: np.ndarray) -> tuple[Filled, ...]:
    """A few missing cells, chosen at random."""
    places = np.argwhere(drawn.X.isna().to_numpy())
    chosen = np.random.default_rng(job.seed).permutation(len(places))[:EXAMPLES]
    return tuple(_filled(job, drawn, rows, *places[i].tolist()) for i in np.sort(chosen))


def _filled(job: Job, drawn: _Completed, rows: np.ndarray, place: int, column: int) -> Filled:
    """One missing cell in words."""
    name = drawn.X.columns[column]
    true: Any = "" if job.truth is None else job.truth.X[name].iloc[rows[place]]
    if name in drawn.reals:
        values = drawn.values[:, place, drawn.reals.index(name)]
        low, high = np.quantile(values, [0.05, 0.95])
        value = job.mean(name, float(values.mean()))
        interval = between(job.cell(name, float(low)), job.cell(name, float(high)))
        truth = "" if job.truth is None else job.cell(name, float(true))
    else:
        levels = pd.Series([table[name].iloc[place] for table in drawn.tables]).value_counts()
        value, interval = str(levels.index[0]), percent(levels.iloc[0] / levels.sum())
        truth = str(true)
    return Filled(job.row(int(rows[place])), str(name), value, interval, truth)
