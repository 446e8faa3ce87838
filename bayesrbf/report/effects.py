"""How far each column moves the class probabilities, alone and beside all others."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from scipy.special import rel_entr

from bayesrbf import table
from bayesrbf.report.job import Job

MOST_EFFECT_ROWS: Final = 2_000
MOST_EFFECT_CELLS: Final = 6_000
FEWEST_EFFECT_ROWS: Final = 100
"""Limits on the rows that contributions are averaged over: each row costs a prediction a column."""
EFFECT_POINTS: Final = 13
"""Values of a real column at which its effect is drawn, equally many rows apart."""
MOST_EFFECT_LEVELS: Final = 12
LEAST_WITHOUT: Final = 1e-300


@dataclass(frozen=True)
class Contribution:
    """Mean move of the class probabilities by one column, in nats a row."""

    name: str
    alone: float
    """Mean Kullback-Leibler divergence of the probabilities that know this column alone from those
    that know none."""
    beside: float
    """Mean divergence of the probabilities that know every column from those that lack this one."""

    @property
    def most(self) -> float:
        """The larger of both: of two columns that say the same, each has little ``beside``."""
        return max(self.alone, self.beside)


@dataclass(frozen=True)
class Effect:
    """Class probabilities where only one column is known, over its values."""

    name: str
    levels: tuple[str, ...]  # Empty for a real column.
    grid: Float[np.ndarray, " point"]  # Values; level numbers for a categorical column.
    weights: Float[np.ndarray, " point"]  # Shares of the observed cells at the points.
    probabilities: Float[np.ndarray, "point label"]


@dataclass(frozen=True)
class Moves:
    """How the columns of a table move the class probabilities."""

    contributions: tuple[Contribution, ...]  # Of every column with a value, the largest first.
    effects: tuple[Effect, ...]  # Of the same columns in the same order.
    base: Float[np.ndarray, " label"]  # Probabilities of a row without a cell.


def read_moves(job: Job, model: Any) -> Moves:
    """Contributions and effects of all columns."""
    effects, base = read_effects(job, model)
    added = contributions(job, model, effects, base)
    leading = [one.name for one in added]
    ordered = sorted(effects, key=lambda effect: leading.index(effect.name))
    return Moves(tuple(added), tuple(ordered), base)


def contributions(
    job: Job, model: Any, effects: tuple[Effect, ...], nothing: Float[np.ndarray, " label"]
) -> list[Contribution]:
    """Contribution of every column that has an effect, the largest first.

    A column is left out as if its cells were missing; in rows where they are it moves nothing.
    ``nothing`` are the probabilities of a row without a cell.
    """
    X = job.X.iloc[:: -(-len(job.X) // _most_rows(job.X.shape[1]))]
    everything = model.predict_proba(X)
    moves = []
    for effect in effects:
        there = X[effect.name].notna().to_numpy()
        beside = 0.0
        if there.any():
            hidden = np.zeros((int(there.sum()), X.shape[1]), dtype=bool)
            hidden[:, list(X.columns).index(effect.name)] = True
            without = np.maximum(_predicted(model, X[there], hidden), LEAST_WITHOUT)
            beside = float(rel_entr(everything[there], without).sum() / len(X))
        moved = rel_entr(effect.probabilities, np.maximum(nothing, LEAST_WITHOUT)).sum(axis=1)
        observed = float(job.X[effect.name].notna().mean())
        alone = float(effect.weights @ moved) * observed
        moves.append(Contribution(effect.name, max(alone, 0.0), max(beside, 0.0)))
    return sorted(moves, key=lambda move: -move.most)


def read_effects(job: Job, model: Any) -> tuple[tuple[Effect, ...], Float[np.ndarray, " label"]]:
    """Effects of all columns that have a value, and the probabilities of a row without a cell.

    All other cells are summed out given the one that is known, so that columns which go with it
    move as they do in the table: no row is asked about that does not exist.
    """
    grids = [_grid(job, name) for name in job.X.columns if job.X[name].notna().any()]
    names = [name for name, *_ in grids]
    rows = [pd.DataFrame({name: values}) for name, values, _ in grids]
    blank = job.X.iloc[:1].reset_index(drop=True)
    grid = pd.concat([*rows, blank], ignore_index=True).reindex(columns=job.X.columns)
    grid = grid.astype(job.X.dtypes)
    hidden = np.ones(grid.shape, dtype=bool)
    starts = np.cumsum([0, *(len(frame) for frame in rows)])
    for name, start, stop in zip(names, starts[:-1], starts[1:], strict=True):
        hidden[start:stop, list(job.X.columns).index(name)] = False
    p = _predicted(model, grid, hidden)
    effects = []
    for (name, values, weights), start, stop in zip(grids, starts[:-1], starts[1:], strict=True):
        real = job.kinds[name] == "real"
        effects.append(
            Effect(
                str(name),
                () if real else tuple(map(str, values)),
                values.astype(float) if real else np.arange(len(values)) + 0.0,
                weights,
                p[start:stop],
            )
        )
    return tuple(effects), p[-1]


def _grid(job: Job, name: str) -> tuple[str, np.ndarray, Float[np.ndarray, " point"]]:
    """Values of a column to ask about, and the shares of its cells that they stand for."""
    cells = job.X[name].dropna()
    if job.kinds[name] != "real":
        counts = cells.value_counts(normalize=True)[:MOST_EFFECT_LEVELS]
        shares = counts.to_numpy(dtype=float)
        return name, counts.index.to_numpy(dtype=object), shares / shares.sum()
    values = cells.to_numpy(dtype=float)
    grid = np.unique(np.quantile(values, np.linspace(0, 1, EFFECT_POINTS), method="inverted_cdf"))
    nearest = np.searchsorted((grid[1:] + grid[:-1]) / 2, values)
    return name, grid, np.bincount(nearest, minlength=grid.size) / values.size


def _most_rows(n_columns: int) -> int:
    """Rows over which contributions are averaged."""
    return min(MOST_EFFECT_ROWS, max(FEWEST_EFFECT_ROWS, MOST_EFFECT_CELLS // n_columns))


def _predicted(
    model: Any, X: pd.DataFrame, hidden: Bool[np.ndarray, "obs column"]
) -> Float[np.ndarray, "obs label"]:
    """Class probabilities where some cells are hidden."""
    columns = model.columns_
    if model.model_.density is None or not columns.masked:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of columns that are missing: they are hidden here
            probabilities: np.ndarray = model.predict_proba(X.mask(hidden))
        return probabilities
    # Hidden after the masks are made: these cells must not count as informatively missing.
    rows = table.hide(table.encode(X, columns), hidden, columns)
    return np.exp(model.fitted_.class_log_probabilities(rows))
