"""Change of the class probabilities by each column, alone and given all other columns."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float
from markupsafe import Markup
from scipy.special import rel_entr

from bayesrbf import table
from bayesrbf.app.report.drawing import SMALL_WIDTH, bars, foot, framed, legend, profile
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.performance import Event
from bayesrbf.app.svg import PlotArea, picture, segment
from bayesrbf.app.words import clipped, decimals_of, listing, number, percent

MAX_EFFECT_ROWS: Final = 2_000
MAX_EFFECT_CELLS: Final = 6_000
MIN_EFFECT_ROWS: Final = 100
"""Limits on the rows that contributions are averaged over: each row costs a prediction a column."""
EFFECT_POINTS: Final = 13
"""Values of a real column at which its effect is drawn, equally many rows apart."""
MAX_EFFECT_LEVELS: Final = 12
MIN_PROBABILITY_WITHOUT: Final = 1e-300  # Keeps a divergence finite where a probability is 0.
MAX_LEFT_OUT: Final = 60
"""Columns that are left out, at most."""
MAX_LINES: Final = 6
"""Classes whose probabilities are drawn over a column: the most frequent."""
BARS, EFFECTS = 15, 6
"""Columns that are shown: their contributions, and their effects."""


@dataclass(frozen=True)
class Contribution:
    """Mean Kullback-Leibler divergence of the class probabilities by one column, in nats a row."""

    name: str
    alone: float
    """Mean Kullback-Leibler divergence of the probabilities that know this column alone from those
    that know none."""
    beside: float
    """Mean divergence of the probabilities that know every column from those that lack this one."""

    @property
    def most(self) -> float:
        """max(alone, beside): two redundant columns have little ``beside`` each."""
        return max(self.alone, self.beside)


@dataclass(frozen=True)
class Effect:
    """Class probabilities where only one column is known, over its values."""

    name: str
    levels: tuple[str, ...]  # Empty for a real column.
    grid: Float[np.ndarray, " point"]  # Values; level numbers for a categorical column.
    weights: Float[np.ndarray, " point"]  # Shares of the observed cells at the points.
    probabilities: Float[np.ndarray, "point label"]
    ends: tuple[str, str] = ("", "")  # Of a column of texts, such as dates.


@dataclass(frozen=True)
class ColumnEffects:
    """Effects of the columns of a table on the class probabilities."""

    contributions: tuple[Contribution, ...]  # Of every column with a value, the largest first.
    effects: tuple[Effect, ...]  # Of the same columns in the same order.
    base: Float[np.ndarray, " label"]  # Probabilities of a row without a cell.


def compute(job: Job, model: Any) -> ColumnEffects:
    """Contributions and effects of all columns."""
    effects, base = read_effects(job, model)
    added = contributions(job, model, effects, base)
    leading = [contribution.name for contribution in added]
    ordered = sorted(effects, key=lambda effect: leading.index(effect.name))
    return ColumnEffects(tuple(added), tuple(ordered), base)


def contributions(
    job: Job, model: Any, effects: tuple[Effect, ...], nothing: Float[np.ndarray, " label"]
) -> list[Contribution]:
    """Contribution of every column that has an effect, the largest first.

    A column is left out as if its cells were missing; in rows where they are it moves nothing. Of
    a wide table only the columns that say most alone are left out, each of which takes a
    prediction of all columns; the others add 0.
    ``nothing`` are the probabilities of a row without a cell.
    """
    n_rows = max(MIN_EFFECT_ROWS, MAX_EFFECT_CELLS // job.X.shape[1])
    X = job.X.iloc[:: -(-len(job.X) // min(MAX_EFFECT_ROWS, n_rows))]
    everything = model.predict_proba(X)
    alone = {}
    for effect in effects:
        divergence = rel_entr(
            effect.probabilities, np.maximum(nothing, MIN_PROBABILITY_WITHOUT)
        ).sum(axis=1)
        observed = float(job.X[effect.name].notna().mean())
        alone[effect.name] = max(float(effect.weights @ divergence) * observed, 0.0)
    leading = sorted(alone, key=lambda name: -alone[name])
    found = []
    for rank, name in enumerate(leading):
        there = X[name].notna().to_numpy()
        beside = 0.0
        if there.any() and rank < MAX_LEFT_OUT:
            hidden = np.zeros((int(there.sum()), X.shape[1]), dtype=bool)
            hidden[:, list(X.columns).index(name)] = True
            without = _predicted(model, X[there], hidden, with_pattern=True)
            without = np.maximum(without, MIN_PROBABILITY_WITHOUT)
            beside = max(float(rel_entr(everything[there], without).sum() / len(X)), 0.0)
        found.append(Contribution(name, alone[name], beside))
    return sorted(found, key=lambda move: -move.most)


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
    p = _predicted(model, grid, hidden, with_pattern=False)
    effects = []
    for (name, values, weights), start, stop in zip(grids, starts[:-1], starts[1:], strict=True):
        real = not job.kinds[name].has_levels
        effects.append(
            Effect(
                str(name),
                () if real else tuple(map(str, values)),
                values.astype(float) if real else np.arange(len(values)) + 0.0,
                weights,
                p[start:stop],
                job.ends(name, float(values[0]), float(values[-1])) if real else ("", ""),
            )
        )
    return tuple(effects), p[-1]


def _grid(job: Job, name: str) -> tuple[str, np.ndarray, Float[np.ndarray, " point"]]:
    """Grid of values of a column, and the share of the observed cells nearest to each value."""
    cells = job.X[name].dropna()
    if job.kinds[name].has_levels:
        counts = cells.value_counts(normalize=True)[:MAX_EFFECT_LEVELS]
        shares = counts.to_numpy(dtype=float)
        return name, counts.index.to_numpy(dtype=object), shares / shares.sum()
    values = cells.to_numpy(dtype=float)
    grid = np.unique(np.quantile(values, np.linspace(0, 1, EFFECT_POINTS), method="inverted_cdf"))
    nearest = np.searchsorted((grid[1:] + grid[:-1]) / 2, values)
    return name, grid, np.bincount(nearest, minlength=grid.size) / values.size


def _predicted(
    model: Any, X: pd.DataFrame, hidden: Bool[np.ndarray, "obs column"], *, with_pattern: bool
) -> Float[np.ndarray, "obs label"]:
    """Class probabilities with some cells masked, with or without the missing indicators.

    No column is given what the pattern contributes.
    """
    columns = model.columns_
    if model.model_.density is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of columns that are missing: they are hidden here
            probabilities: np.ndarray = model.predict_proba(X.mask(hidden))
        return probabilities
    rows = table.encode(X, columns)
    if not with_pattern:
        rows = table.without_indicators(rows, columns)
    rows = table.hide(rows, hidden, columns, indicators=False)
    return np.exp(model.fitted_.class_log_probabilities(rows))


def say(effects: ColumnEffects, *, helps: bool) -> dict[str, str]:
    """Message on the columns of the largest contribution, alone and given all others.

    ``helps`` says whether rows held out show that it is better than the class frequencies.
    """
    columns = effects.contributions[:BARS]
    alone = [
        column for column in sorted(columns, key=lambda column: -column.alone) if column.alone > 0
    ]
    beside = [
        column for column in sorted(columns, key=lambda column: -column.beside) if column.beside > 0
    ]
    if not (alone or beside):
        return {"learned": "No column changes the probabilities of the classes."}
    clauses = []
    if alone:
        clauses.append(f"Known alone, {_quoted(alone)} move the probabilities most")
    if beside:
        clauses.append(f"beside all others {_quoted(beside)} add most")
    text = f"{'; '.join(clauses)}."
    chance = "" if helps else " As rows held out do not show that this helps, it may be chance."
    return {"learned": f"{text}{chance}"}


def _quoted(columns: Sequence[Contribution]) -> str:
    """The first three columns by name."""
    return listing([f"“{clipped(column.name, 30)}”" for column in columns[:3]])


def show(
    effects: ColumnEffects, classes: Sequence[str], drawn: list[int], event: Event | None
) -> dict[str, Any]:
    """Contributions of the leading columns, and their effects on the event or on some classes."""
    rows = effects.contributions[:BARS]
    most = max((row.most for row in rows), default=0.0) or 1.0
    first = ", ".join(f"{o.name} {number(o.alone)} and {number(o.beside)}" for o in rows[:5])
    shown = drawn[:MAX_LINES] if event is None else [event.column]
    lines = {classes[c]: f"line c{c % 8}" for c in shown}
    return {
        "contributions": bars(
            [(o.name, [(o.alone, "fill c2"), (o.beside, "fill c0")]) for o in rows],
            most,
            decimals_of(np.array([0.0, most]), as_written=False),
            "nats per row",
            "How far columns move the probabilities, alone and beside all others, in nats: "
            f"{first}",
        ),
        "contribution_marks": legend({"known alone": "bar c2", "beside all others": "bar c0"}),
        "effects": [_effect(effect, shown, effects.base) for effect in effects.effects[:EFFECTS]],
        "effect_lines": legend(lines | {"where nothing is known": "line muted dash1"}),
    }


def _effect(column: Effect, shown: Sequence[int], base: Float[np.ndarray, " label"]) -> Markup:
    """Probability of some classes given this column alone; dashed: given no column."""
    n_levels = len(column.levels)
    ends = (-0.5, n_levels - 0.5) if n_levels else (float(column.grid[0]), float(column.grid[-1]))
    axes = PlotArea(ends, (0.0, 1.0), (48.0, 10.0, 284.0, 150.0))
    marks: list[Markup] = []
    for c in shown:
        p, y = column.probabilities[:, c], axes.at_y(float(base[c]))
        marks.append(segment(axes.box[0], y, axes.box[2], y, "diagonal"))
        marks += profile(axes, column.grid, p, f"c{c % 8}", levels=n_levels > 0, radius=3)
    frame = framed(axes, column.name, column.levels, column.ends, x_ticks=4)
    values = column.probabilities[:, shown[0]]
    title = (
        f"Where only {column.name} is known, the probability lies between "
        f"{percent(float(values.min()))} and {percent(float(values.max()))}"
    )
    return picture(SMALL_WIDTH, foot(axes, column.levels), title, frame, *marks)
