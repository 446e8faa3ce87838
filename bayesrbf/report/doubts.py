"""Uncertain rows and what would help; rows, cells and labels that look wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayesrbf.posterior.cells import JudgedCells
from bayesrbf.posterior.uncertainty import entropy
from bayesrbf.report.density import component_names
from bayesrbf.report.job import Job
from bayesrbf.report.records import Doubt, OddCell, Oddities, OddLabel, UnsureRow
from bayesrbf.report.validate import HeldOut
from bayesrbf.report.words import clipped, number, percent

if TYPE_CHECKING:
    import xarray as xr

LISTED = 20
THRESHOLD = 0.9
"""A row counts as unsure where its most probable class has less than this probability."""
FILLINGS = 20
"""Draws of a missing cell in the estimate of what measuring it is worth."""
WORTH = 0.05
"""Share of the entropy that a measurement must remove to be suggested."""
LACK_OF_DATA = 0.25
"""Share of epistemic entropy from which more labelled rows are suggested."""
SIMULATED = 200_000
"""Rows simulated for novelty, in total."""
MOST_ROWS = 2_000
UNLIKELY_LABEL = 0.05


def read_doubt(
    job: Job, model: Any, density: Any, held_out: HeldOut, uncertainty: xr.Dataset
) -> Doubt:
    """Uncertain rows, why they are, and what would help.

    Entropies come from the fit to all rows; the number of unsure rows comes from fits that had not
    seen them. Novelty, nearest components and the worth of a measurement need a density.
    """
    total = uncertainty["total_entropy"].to_numpy()
    epistemic = np.nan_to_num(uncertainty["epistemic_entropy"].to_numpy())
    worst = np.argsort(-total, kind="stable")[:LISTED]
    outcome = np.full(len(total), -1)
    own = next(iter(held_out.probabilities.values()))
    scored = held_out.scored
    outcome[scored] = own[scored].argmax(1) == held_out.labels[scored]
    rows = _unsure(job, model, density, uncertainty, worst)
    return Doubt(
        aleatoric=total - epistemic,
        epistemic=epistemic,
        outcome=outcome,
        rows=rows,
        below=int((own[scored].max(1) < THRESHOLD).sum()),
        threshold=THRESHOLD,
        novel=() if density is None else _novel(job, density),
    )


def _unsure(
    job: Job,
    model: Any,
    density: Any,
    uncertainty: xr.Dataset,
    worst: Int[np.ndarray, " row"],
) -> tuple[UnsureRow, ...]:
    """The least sure rows in words."""
    nearest = _nearest(job.X.iloc[worst], density)
    worth = measurement_worth(job.X.iloc[worst], model, density)
    result = []
    for place, row in enumerate(worst):
        here = uncertainty.isel(obs=row)
        best = int(here["mean"].to_numpy().argmax())
        total, epistemic = float(here["total_entropy"]), float(here["epistemic_entropy"])
        given = job.y.iloc[row]
        result.append(
            UnsureRow(
                row=int(row) + 1,
                given="" if pd.isna(given) else str(given),
                predicted=str(model.classes_[best]),
                probability=float(here["mean"][best]),
                lower=float(here["lower"][best]),
                upper=float(here["upper"][best]),
                aleatoric=float(here["aleatoric_entropy"]),
                epistemic=epistemic,
                component=nearest[place],
                help=_help(worth.iloc[place], total, epistemic),
            )
        )
    return tuple(result)


def _nearest(X: pd.DataFrame, density: Any) -> list[str]:
    """The component with the largest responsibility for each row; empty without a density."""
    if density is None:
        return [""] * len(X)
    components = component_names(density)
    return [components[component] for component in density.predict_component(X)]


def measurement_worth(X: pd.DataFrame, model: Any, density: Any) -> pd.DataFrame:
    """Expected fall of every row's entropy in nats if one missing cell were measured.

    ``H[p(y | x_o)] - E[H[p(y | x_o, x_j)]]`` over draws of x_j given the observed cells. It is 0
    where the cell is observed, and everywhere without a density.
    """
    worth = np.zeros(X.shape)
    missing = X.isna().to_numpy()
    if density is None or not missing.any():
        return pd.DataFrame(worth, columns=X.columns)
    before = entropy(model.predict_proba(X))
    drawn = density.impute(X, draws=FILLINGS)
    for column in np.flatnonzero(missing.any(0)):
        if column in density.columns_.empty:
            continue  # no value was ever observed that could be drawn
        rows = np.flatnonzero(missing[:, column])
        filled = pd.concat([X.iloc[rows]] * FILLINGS, ignore_index=True)
        cells = pd.concat([table.iloc[rows, column] for table in drawn], ignore_index=True)
        filled.isetitem(column, cells)
        after = entropy(model.predict_proba(filled)).reshape(FILLINGS, rows.size).mean(0)
        worth[rows, column] = np.maximum(before[rows] - after, 0.0)
    return pd.DataFrame(worth, columns=X.columns)


def _help(worth: pd.Series, total: float, epistemic: float) -> str:
    """What would make the prediction of a row surer, in words."""
    best = str(worth.idxmax())
    if worth[best] > WORTH * total:
        share = percent(float(worth[best]) / total)
        return f"measure {clipped(best, 30)}: takes away about {share} of the doubt"
    if epistemic > LACK_OF_DATA * total:
        return "more labelled rows like it"
    return "another kind of measurement: the classes overlap here"


def _novel(job: Job, density: Any) -> tuple[tuple[int, float, float], ...]:
    """Rows of low density, compared with simulated rows that miss the same cells."""
    found = density.score_samples(job.X)
    observed = job.X.notna().to_numpy()
    per_cell = found / np.maximum(observed.sum(1), 1)
    rows = np.argsort(per_cell, kind="stable")[:MOST_ROWS]
    rounds = max(20, SIMULATED // (100 * len(rows)) if len(rows) > 100 else 200)
    # An informative missingness simulates its own missing cells; else those of the row are imposed.
    makes_holes = observed.any(0) & (density.missingness == "informative")
    keep = observed[rows] | makes_holes
    below = np.ones(len(rows))
    simulated, _ = density.sample(rounds * len(rows))
    held = simulated.where(np.tile(keep, (rounds, 1)))
    below += (density.score_samples(held).reshape(rounds, -1) <= found[rows]).sum(0)
    share = below / (rounds + 1)
    order = np.lexsort((per_cell[rows], share))[:10]
    return tuple(
        (int(rows[i]) + 1, float(found[rows[i]]), float(share[i]))
        for i in order
        if share[i] <= 0.02
    )


def read_oddities(job: Job, density: Any, cells: JudgedCells | None, held_out: HeldOut) -> Oddities:
    """Cells and labels that look wrong, least probable first; no cells without a density."""
    if cells is None:
        return Oddities((), 0.0, 0, 0.0, _odd_labels(held_out))
    n_categorical = len(density.columns_.levels)  # masks of missing cells are not cells
    tails = np.column_stack([cells.tail, cells.level_tail[:, :n_categorical]])
    n_cells = int((~np.isnan(tails)).sum())
    threshold = 1.0 / max(n_cells, 1)
    low = np.argwhere(tails < threshold)
    low = low[np.argsort(tails[tuple(low.T)], kind="stable")]
    return Oddities(
        cells=tuple(_odd_cell(job, density, cells, *place.tolist()) for place in low[:LISTED]),
        threshold=threshold,
        found=len(low),
        by_chance=n_cells * threshold,
        labels=_odd_labels(held_out),
    )


def _odd_cell(job: Job, density: Any, cells: JudgedCells, row: int, place: int) -> OddCell:
    """One cell in words."""
    columns = density.columns_
    n_real = len(columns.real_positions)
    if place < n_real:
        position = columns.real_positions[place]
        low, high = float(cells.lower[row, place]), float(cells.upper[row, place])
        value = number(float(job.X.iloc[row, position]))
        expected = f"{number(low)} to {number(high)}"
        tail = float(cells.tail[row, place])
    else:
        position = columns.categorical_positions[place - n_real]
        value = str(job.X.iloc[row, position])
        expected = str(columns.levels[place - n_real][cells.level_expected[row, place - n_real]])
        tail = float(cells.level_tail[row, place - n_real])
    return OddCell(int(row) + 1, columns.names[position], value, expected, tail)


def _odd_labels(held_out: HeldOut) -> tuple[OddLabel, ...]:
    """Labels that the held-out prediction finds improbable."""
    own: Float[np.ndarray, "obs label"] = next(iter(held_out.probabilities.values()))
    rows = held_out.scored
    given = own[rows, held_out.labels[rows]]
    order = np.argsort(given, kind="stable")[:10]
    return tuple(
        OddLabel(
            row=int(rows[i]) + 1,
            given=str(held_out.classes[held_out.labels[rows[i]]]),
            suggested=str(held_out.classes[own[rows[i]].argmax()]),
            probability=float(given[i]),
        )
        for i in order
        if given[i] < UNLIKELY_LABEL
    )
