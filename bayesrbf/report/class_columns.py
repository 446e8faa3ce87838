"""The labelled cells of a column class by class, and the density that each class has by itself."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayesrbf.estimators.mixture.density import MixtureDensity
from bayesrbf.report.job import Job
from bayesrbf.report.learned_records import ClassCells, ClassColumn

BINS: Final = 30
CURVE_POINTS: Final = 121
MOST_VALUES: Final = 30
"""Different cells up to which a column is drawn value by value, without curves."""
FEWEST_FOR_CURVE: Final = 20
"""Cells beside atoms from which a class has a curve."""
DRAWN_QUANTILES: Final = (0.005, 0.995)
"""Quantiles of the labelled cells between which a column is drawn."""
FINE_STEPS: Final = 8
"""Steps of the column's cells a bin from which bins need not end between them."""


def read_class_column(job: Job, name: str, classes: list[str]) -> ClassColumn:
    """The labelled cells of one column."""
    labels = job.y.astype(object).map(str, na_action="ignore").to_numpy()
    cells = [job.X[name].to_numpy()[labels == label] for label in classes]
    cells = [column[~pd.isna(column)] for column in cells]
    if job.kinds[name] == "categorical":
        levels = sorted({str(cell) for column in cells for cell in column})
        texts = [np.array([str(cell) for cell in column]) for column in cells]
        shares = [np.array([_share(text == level) for level in levels]) for text in texts]
        own = tuple(ClassCells(len(t), share) for t, share in zip(texts, shares, strict=True))
        return ClassColumn(name, "categorical", np.arange(len(levels) + 1.0), tuple(levels), own)
    reals = [column.astype(float) for column in cells]
    edges, few = _edges(np.concatenate(reals))
    return ClassColumn(
        name,
        "real",
        edges,
        (),
        tuple(_class_cells(column, edges, few, job.seed) for column in reals),
    )


def _share(marked: np.ndarray) -> float:
    """Share of what is marked; 0 of nothing."""
    return float(marked.mean()) if marked.size else 0.0


def _edges(cells: Float[np.ndarray, " cell"]) -> tuple[Float[np.ndarray, " edge"], bool]:
    """Ends of equal bins, and whether each value of the column has bars of its own.

    Where cells lie on a coarse grid, every bin has as many of its points as the others.
    """
    if cells.size == 0:
        return np.array([0.0, 1.0]), True
    values = np.unique(cells)
    few = values.size <= MOST_VALUES
    low, high = values[[0, -1]] if few else np.quantile(cells, DRAWN_QUANTILES)
    if values.size == 1:
        return np.array([low - 0.5, low + 0.5]), True
    step = float(np.diff(values).min())
    points = (high - low) / step
    if points > BINS * FINE_STEPS:
        return np.linspace(low, high, BINS + 1), few
    width = step * max(1.0, np.ceil(points / BINS))
    return low - step / 2 + width * np.arange(np.floor((points + 0.5) * step / width) + 2), few


def _class_cells(
    cells: Float[np.ndarray, " cell"], edges: Float[np.ndarray, " edge"], few: bool, seed: int
) -> ClassCells:
    """Bars of a class's cells; where there are enough, atoms and a density of its own."""
    if few or np.unique(cells).size <= 1 or cells.size < FEWEST_FOR_CURVE:
        return ClassCells(cells.size, _bars(cells, cells.size, edges))
    density = MixtureDensity(
        "cv", column_maps="power", atoms="auto", n_init=1, random_state=seed
    ).fit(cells[:, None])
    (atoms,) = density.atoms_.values() or ({},)
    free = cells[~np.isin(cells, list(atoms))]
    bars = _bars(free, cells.size, edges)
    at, mass = np.array([*atoms]), np.array([*atoms.values()])
    if free.size < FEWEST_FOR_CURVE:
        return ClassCells(cells.size, bars, at, mass)
    grid = np.linspace(edges[0], edges[-1], CURVE_POINTS)
    # An atom has a probability where other cells have a density: the curve passes beside it.
    grid = np.where(np.isin(grid, at), np.nextafter(grid, np.inf), grid)
    curve = np.exp(density.score_samples(grid[:, None])) * (edges[1] - edges[0])
    return ClassCells(cells.size, bars, at, mass, grid, curve)


def _bars(
    cells: Float[np.ndarray, " cell"], of: int, edges: Float[np.ndarray, " edge"]
) -> Float[np.ndarray, " bar"]:
    """Share of a class's cells in every bin."""
    return np.histogram(cells, edges)[0] / max(of, 1)
