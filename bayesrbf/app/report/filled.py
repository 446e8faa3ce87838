"""Missing cells as the density fills them in, and how well it fills cells that are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from markupsafe import Markup
from sklearn.base import clone

from bayesrbf import MixtureDensity, MixturePrior
from bayesrbf.app.report.density import JudgedTable
from bayesrbf.app.report.drawing import SMALL_WIDTH
from bayesrbf.app.report.job import Job
from bayesrbf.app.svg import PlotArea, dot, element, picture, points, segment
from bayesrbf.app.words import between, count, number, percent, plural
from bayesrbf.base.tasks import run_tasks
from bayesrbf.fit.held_out import grouped_folds, stratified_folds
from bayesrbf.mixture.cells import JudgedCells, cell_law, leave_one_cell_out
from bayesrbf.table.encode import encode
from bayesrbf.table.order import standardisation

MAX_FILLED_ROWS = 2_000
NOMINAL = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
COMPLETED_TABLES = 100
"""Completed tables behind the intervals of missing cells."""
EXAMPLES = 12


@dataclass(frozen=True)
class Filled:
    """A missing cell and its imputation."""

    row: str  # What it is called.
    column: str
    value: str  # Conditional mean, of an angle the mean direction; or most probable level.
    interval: str
    """Equal-tailed interval of a real cell; deviation of an angle; probability of a level."""
    truth: str  # Empty where unknown.


@dataclass(frozen=True)
class Imputations:
    """Imputed cells, and coverage and error of imputations of known cells."""

    missing: int  # Number of cells.
    examples: tuple[Filled, ...]
    nominal: Float[np.ndarray, " level"]  # Probability inside the intervals.
    covered: Float[np.ndarray, " level"]  # Share of known cells inside.
    n_checked: int  # Number of real cells behind ``covered`` and ``error``.
    hidden_truth: bool  # Whether those are the missing cells; else observed ones of rows held out.
    truth: Float[np.ndarray, " known"]
    """Hidden cells in column standard deviations, as ``filled``; empty unless cells were hidden."""
    filled: Float[np.ndarray, " known"]
    error: tuple[tuple[str, float], ...]
    """Root mean squared error in column standard deviations, by method."""


@dataclass(frozen=True)
class HeldOutCells:
    """Observed real cells, filled in by fits that had not seen their rows."""

    tail: Float[np.ndarray, " cell"]
    """Probability, given the rest of the row, of a cell at least as extreme."""
    miss: Float[np.ndarray, " cell"]  # Cell less its expectation, in column standard deviations.
    from_mean: Float[np.ndarray, " cell"]
    """Cell less its column's mean in the rows of the fit, in the same unit."""


def fill_held_out(job: Job, judged: JudgedTable) -> HeldOutCells:
    """Out-of-fold imputation: every observed cell given the rest of its row.

    The folds hold rows without a label out, too. Settings are the best of the whole table, of all
    fits of the pool: choosing them anew takes many times as long as the fits. Cells of a column
    without a value in the rows of a fit are left out.
    """
    table, density = judged.table, judged.density
    hidden = job.labels.max() + 1
    assigned = np.where(job.labels < 0, hidden, job.labels)
    folds = stratified_folds(assigned, job.folds, job.seed)
    if job.groups is not None:
        folds = grouped_folds(assigned, job.groups, job.folds, job.seed)
    reals = job.lines
    tail, expected, mean = (np.full((len(job.X), len(reals)), np.nan) for _ in range(3))
    best = density.candidates_[0]
    prior = MixturePrior().weakened(best.prior_strength, density.fitted_.model.specification)
    fresh = clone(density).set_params(
        n_components=best.n_components, covariance_type=best.covariance_type, prior=prior
    )

    def filled_in(fold: int) -> tuple[np.ndarray, np.ndarray]:
        fitted = clone(fresh).fit(table[folds != fold])
        fills = left_out(fitted, table[folds == fold])
        tail, expected = np.full((2, len(fills.tail), len(reals)), np.nan)
        columns = fitted.columns_
        feature_of = {columns.names[i]: at for i, at in columns.number_features.items()}
        there = [position for position, name in enumerate(reals) if name in feature_of]
        features = [feature_of[reals[position]] for position in there]
        tail[:, there], expected[:, there] = fills.tail[:, features], fills.expected[:, features]
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
    """Tail probability and expectation of every observed cell given the rest of its row."""
    mixture = density.fitted_.model
    rows = mixture.standardise(encode(table, density.columns_))
    return leave_one_cell_out(rows, cell_law(mixture, density.columns_))


def compute(job: Job, judged: JudgedTable, cells: HeldOutCells | None) -> Imputations:
    """Imputations of missing cells with intervals, and the coverage of the intervals.

    Coverage is that of the missing cells where they are known; else that of observed cells of rows
    held out of the fit.
    """
    missing = (job.X.isna() & job.X.notna().any()).to_numpy()  # an empty column stays empty
    holes = np.flatnonzero(missing.any(1))
    if holes.size:
        holes = holes[np.unique(np.linspace(0, len(holes) - 1, MAX_FILLED_ROWS).astype(int))]
    drawn = _Completed(holes, judged, job) if holes.size or cells is None else None
    if cells is None:
        assert drawn is not None
        depth, truth, filled = _against_truth(job, drawn, holes)
        inside, error = [depth <= p for p in NOMINAL], _errors(truth - filled, truth)
    else:
        inside, truth, filled = [cells.tail >= 1 - p for p in NOMINAL], np.zeros(0), np.zeros(0)
        error = _errors(cells.miss, cells.from_mean)
    return Imputations(
        missing=int(missing.sum()),
        examples=() if drawn is None else _examples(job, drawn, holes),
        nominal=NOMINAL,
        covered=np.array([covers.mean() if covers.size else np.nan for covers in inside]),
        n_checked=inside[0].size,
        hidden_truth=cells is None,
        truth=truth,
        filled=filled,
        error=error,
    )


class _Completed:
    """Completions of some rows; real columns also as one array."""

    def __init__(self, rows: Int[np.ndarray, " row"], judged: JudgedTable, job: Job) -> None:
        self.X, self.reals = job.X.iloc[rows], job.lines
        self.tables = judged.density.impute(judged.table.iloc[rows], draws=COMPLETED_TABLES)
        self.values = np.stack([table[self.reals].to_numpy(dtype=float) for table in self.tables])
        self.missing = self.X[self.reals].isna().to_numpy()


def _errors(misses: np.ndarray, from_mean: np.ndarray) -> tuple[tuple[str, float], ...]:
    """Root mean squared errors of the model and of column means."""
    if misses.size == 0:
        return ()
    return (
        ("this density, from the rest of the row", float(np.sqrt(np.mean(misses**2)))),
        ("the column's mean", float(np.sqrt(np.mean(from_mean**2)))),
    )


def _against_truth(
    job: Job, drawn: _Completed, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """|2 rank - 1| of known cells among the draws, the cells, and their means over draws."""
    assert job.truth is not None
    truth = job.truth.X[drawn.reals].iloc[rows].to_numpy(dtype=float)
    observed = job.X[drawn.reals]
    centre, scale = observed.mean().to_numpy(), observed.std().to_numpy()
    rank = ((drawn.values < truth).sum(0) + 0.5) / (len(drawn.values) + 1)
    filled = (drawn.values.mean(0) - centre) / scale
    every = np.abs(2 * rank - 1), (truth - centre) / scale, filled
    depth, true, filled = (cells[drawn.missing] for cells in every)
    return depth, true, filled


def _examples(job: Job, drawn: _Completed, rows: np.ndarray) -> tuple[Filled, ...]:
    """A few missing cells, chosen at random."""
    positions = np.argwhere((drawn.X.isna() & job.X.notna().any()).to_numpy())
    chosen = np.random.default_rng(job.seed).permutation(len(positions))[:EXAMPLES]
    return tuple(_filled(job, drawn, rows, *positions[i].tolist()) for i in np.sort(chosen))


def _filled(job: Job, drawn: _Completed, rows: np.ndarray, position: int, column: int) -> Filled:
    """Description of one missing cell."""
    name = drawn.X.columns[column]
    true: Any = "" if job.truth is None else job.truth.X[name].iloc[rows[position]]
    if name in drawn.reals:
        values = drawn.values[:, position, drawn.reals.index(name)]
        low, high = np.quantile(values, [0.05, 0.95])
        value = job.mean(name, float(values.mean()))
        interval = between(job.cell(name, float(low)), job.cell(name, float(high)))
        truth = "" if job.truth is None else job.cell(name, float(true))
    elif not job.kinds[name].has_levels:  # on a circle
        kind = job.kinds[name]
        cells = np.array([table[name].iloc[position] for table in drawn.tables], dtype=float)
        mean = kind.encode(cells).mean(axis=0, keepdims=True)
        value = job.mean(name, float(kind.decode(mean)[0]))
        interval = f"± {job.mean(name, float(kind.deviation(mean)[0]))}"
        truth = "" if job.truth is None else job.cell(name, float(true))
    else:
        levels = pd.Series([table[name].iloc[position] for table in drawn.tables]).value_counts()
        value, interval = str(levels.index[0]), percent(levels.iloc[0] / levels.sum())
        truth = str(true)
    return Filled(job.row(int(rows[position])), str(name), value, interval, truth)


def say(imputations: Imputations, missing: float) -> dict[str, str]:
    """Message on number and coverage of the imputations; ``missing`` is the missing fraction."""
    head = f"{plural(imputations.missing, 'missing cell')} can be filled in"
    if imputations.missing == 0:
        empty = missing > 0
        head = (
            "No missing cell can be filled in: its column is empty"
            if empty
            else "No cell is missing"
        )
    if not imputations.n_checked:
        return {"filled": f"{head}."}
    at = int(abs(imputations.nominal - 0.9).argmin())
    hold = percent(float(imputations.covered[at]))
    which = "true values" if imputations.hidden_truth else "cells of rows held out of the fit"
    cells = f"{count(imputations.n_checked)} {which}"
    return {"filled": f"{head}; intervals of {percent(0.9)} hold {hold} of {cells}."}


def show(imputations: Imputations) -> dict[str, Any]:
    """Coverage of intervals, and filled cells against hidden ones, where there are any."""
    return {
        "coverage": _coverage(imputations) if imputations.n_checked else None,
        "filled": _against_hidden(imputations) if imputations.hidden_truth else None,
    }


def _coverage(imputations: Imputations) -> Markup:
    """Share of known cells inside intervals of growing probability."""
    nominal, covered = imputations.nominal, imputations.covered
    axes = PlotArea((0.0, 1.0), (0.0, 1.0), (44.0, 12.0, 284.0, 252.0))
    x, y = axes.at_x, axes.at_y
    line = points(map(x, nominal), map(y, covered))
    dots = [
        element("circle", class_="fill c0", cx=x(float(p)), cy=y(float(q)), r=3.5)
        for p, q in zip(nominal, covered, strict=True)
    ]
    at = int(np.abs(nominal - 0.9).argmin())
    title = f"Intervals of {percent(float(nominal[at]))} hold {percent(float(covered[at]))}"
    return picture(
        SMALL_WIDTH,
        292.0,
        title,
        axes.frame("probability promised", "share of cells inside"),
        element("line", class_="diagonal", x1=x(0.0), y1=y(0.0), x2=x(1.0), y2=y(1.0)),
        element("polyline", class_="line c0", points=line),
        *dots,
    )


def _against_hidden(imputations: Imputations) -> Markup:
    """Filled cells against hidden ones, in standard deviations from the column's mean."""
    truth, filled, ends = imputations.truth, imputations.filled, (-3.0, 5.0)
    axes = PlotArea(ends, ends, (44.0, 12.0, 284.0, 252.0))
    sample = np.unique(np.linspace(0, len(truth) - 1, 1200).astype(int))
    inside = [i for i in sample if ends[0] < truth[i] < ends[1] and ends[0] < filled[i] < ends[1]]
    dots = [
        dot(axes.at_x(float(filled[i])), axes.at_y(float(truth[i])), 2, "fill c0 veil")
        for i in inside
    ]
    r = float(np.corrcoef(truth, filled)[0, 1])
    start, end = axes.at_x(ends[0]), axes.at_x(ends[1])
    line = segment(start, axes.at_y(ends[0]), end, axes.at_y(ends[1]), "diagonal")
    title = f"True against filled cells, correlation {number(r)}"
    frame = axes.frame("filled in (column sd)", "true value (column sd)")
    return picture(SMALL_WIDTH, 292.0, title, frame, line, *dots)
