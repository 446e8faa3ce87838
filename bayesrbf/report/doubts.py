"""Uncertain rows and what would help; rows, cells and labels that look wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from jaxtyping import Int

from bayesrbf.posterior.chance import beyond_chance, improbable_labels
from bayesrbf.posterior.uncertainty import LEAST_DOUBT, entropy
from bayesrbf.report.families import FAMILIES
from bayesrbf.report.job import Job
from bayesrbf.report.judged_cells import JudgedTable, novel_rows, odd_cells
from bayesrbf.report.learned import component_names
from bayesrbf.report.records import Doubt, Oddities, OddLabel, UnsureRow
from bayesrbf.report.validate import HeldOutRows
from bayesrbf.report.words import clipped, percent

if TYPE_CHECKING:
    import xarray as xr

LISTED_ROWS = 20
THRESHOLD = 0.9
"""A row counts as unsure where its most probable class has less than this probability."""
WORTH = 0.05
"""Share of the entropy that a measurement must remove to be suggested."""
LACK_OF_DATA = 0.5
"""Share of epistemic entropy from which more labelled rows are suggested: most of the doubt."""
OPEN_WIDTH = 0.8
"""Width of an interval of a probability beyond which it leaves every answer open."""
UNLIKELY_LABEL = 0.05
"""Held-out probability below which labels are counted beside what chance puts there."""
LABELS_BY_CHANCE = 0.1
"""Share of the listed labels that chance explains."""


def read_doubt(
    job: Job,
    model: Any,
    density: Any,
    judged: JudgedTable,
    held_out: HeldOutRows,
    uncertainty: xr.Dataset,
) -> Doubt:
    """Uncertain rows, why they are, and what would help.

    Entropies come from the fit to all rows; the number of unsure rows comes from fits that had not
    seen them. Nearest components and the worth of a measurement need a density.
    """
    total = uncertainty["total_entropy"].to_numpy()
    epistemic = np.nan_to_num(uncertainty["epistemic_entropy"].to_numpy())
    worst = np.argsort(-total, kind="stable")[:LISTED_ROWS]
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
        novel=novel_rows(job, judged),
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
    # Shares of the model's own doubt: the draws have another, of which a gain is no part.
    own = np.maximum(entropy(model.predict_proba(job.X.iloc[worst])), LEAST_DOUBT)
    worth = None
    if density is not None or FAMILIES[job.family].pools:
        worth = model.acquire(job.X.iloc[worst])["gain"].to_pandas() / own[:, None]
    result = []
    for place, row in enumerate(worst):
        here = uncertainty.isel(obs=row)
        best = int(here["probability"].to_numpy().argmax())
        total = max(float(here["total_entropy"]), LEAST_DOUBT)
        epistemic = float(here["epistemic_entropy"])
        given = job.y.iloc[row]
        result.append(
            UnsureRow(
                row=job.row(int(row)),
                given="" if pd.isna(given) else str(given),
                predicted=str(model.classes_[best]),
                probability=float(here["probability"][best]),
                lower=float(here["lower"][best]),
                upper=float(here["upper"][best]),
                aleatoric=float(here["aleatoric_entropy"]),
                epistemic=epistemic,
                component=nearest[place],
                help=what_would_help(
                    {} if worth is None else worth.iloc[place],
                    epistemic / total,
                    float(here["upper"][best] - here["lower"][best]),
                ),
            )
        )
    return tuple(result)


def _nearest(X: pd.DataFrame, density: Any) -> list[str]:
    """The component with the largest responsibility for each row; empty without a density."""
    if density is None:
        return [""] * len(X)
    components = component_names(density)
    shares = np.asarray(density.transform(X))
    return [components[component] for component in shares.argmax(axis=1)]


def what_would_help(
    worth: Mapping[str, float] | pd.Series, epistemic: float, width: float = np.nan
) -> str:
    """Advice for one row in words: refer it, or what would make its prediction surer.

    ``worth`` is the share of the doubt that a missing cell takes away, NaN where it is observed;
    ``epistemic`` is the share of the doubt that is about the model, and ``width`` that of the
    interval, both NaN without draws.
    """
    surer = _surer(worth, epistemic)
    return f"refer: the interval leaves every answer open; {surer}" if width > OPEN_WIDTH else surer


def _surer(worth: Mapping[str, float] | pd.Series, epistemic: float) -> str:
    """The cell, the rows or the kind of measurement that would take doubt away."""
    gains = {name: gain for name, gain in worth.items() if gain == gain}
    best = max(gains, key=gains.__getitem__, default=None)
    if best is not None and gains[best] > WORTH:
        share = percent(min(float(gains[best]), 1.0))
        return f"measure {clipped(best, 30)}: takes away about {share} of the doubt"
    if epistemic > LACK_OF_DATA:
        return "more labelled rows like it"
    if epistemic != epistemic:
        return "unknown: without draws the kinds of doubt cannot be told apart"
    return "another kind of measurement: the classes overlap here"


def read_oddities(job: Job, judged: JudgedTable, held_out: HeldOutRows) -> Oddities:
    """Cells and labels that look wrong, least probable first."""
    cells, n_odd = odd_cells(job, judged)
    rows = held_out.scored
    own = next(iter(held_out.probabilities.values()))[rows]
    labels = held_out.labels[rows]
    listed = tuple(
        OddLabel(
            row=job.row(int(rows[i])),
            given=str(held_out.classes[labels[i]]),
            suggested=str(held_out.classes[own[i].argmax()]),
            probability=float(own[i, labels[i]]),
        )
        for i in beyond_chance(own, labels, LABELS_BY_CHANCE)[:LISTED_ROWS]
        if own[i, labels[i]] < UNLIKELY_LABEL
    )
    improbable = improbable_labels(own, labels, UNLIKELY_LABEL)
    return Oddities(cells, n_odd, listed, improbable, UNLIKELY_LABEL, judged.sentence)
