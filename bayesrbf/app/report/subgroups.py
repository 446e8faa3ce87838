"""Parts of the table: figures by columns that were asked for, and where probabilities are off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayesrbf.answers.comparisons import Parts, RowsOf, performance_by
from bayesrbf.answers.scores import Interval, holm, proportion, two_sided
from bayesrbf.app.report.held_out import HeldOutRows
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.performance import event_among, forecasts_of_event
from bayesrbf.app.words import between, cell, clipped, decimals_of, ends, percent, plural, with_ends
from bayesrbf.table.kinds import Kind

QUARTERS: Final = (0.25, 0.5, 0.75)
MAX_PARTS: Final = 50
"""Levels of a column that was asked for that are told apart."""
MAX_LEVEL_GROUPS: Final = 12
"""Levels of a column that are groups; all others are one together."""
MIN_IN_GROUP: Final = 5
"""Rows of a group below which it is not looked at."""
WRONGLY: Final = 0.05
"""Probability with which any group is told as off although the model is calibrated."""
LISTED_GROUPS: Final = 12


@dataclass(frozen=True)
class Subgroup:
    """One class in one part of the held-out rows."""

    name: str
    label: str
    rows: int
    predicted: float  # Mean probability of the class.
    came: Interval  # Share of the class.
    chance: float  # Probability of such a share, or a rarer one, for a calibrated model.


@dataclass(frozen=True)
class Subgroups:
    """Groups of rows that are significantly miscalibrated."""

    looked_at: int  # Pairs of a part and a class.
    off: tuple[Subgroup, ...]  # The least probable first.


def compute(job: Job, held_out: HeldOutRows, model: str) -> Subgroups:
    """Compare expected with observed frequencies in every group, by class (the event of two).

    For a calibrated model the number of rows of a class in a group has a Poisson-binomial law.
    Holm's method counts how many groups were looked at.
    """
    rows = held_out.scored
    p, labels = held_out.probabilities[model][rows], held_out.labels[rows]
    frequent = np.bincount(labels, minlength=len(held_out.classes)) >= MIN_IN_GROUP
    binary = len(held_out.classes) == 2
    classes = [event_among(held_out, job.focus).column] if binary else np.flatnonzero(frequent)
    groups = []
    for name, inside in groups_of(job, rows):
        size = int(inside.sum())
        for c in classes if MIN_IN_GROUP <= size < len(rows) else ():
            came = int((labels[inside] == c).sum())
            probabilities = p[inside, c]
            groups.append(
                Subgroup(
                    name,
                    str(held_out.classes[c]),
                    size,
                    float(probabilities.mean()),
                    proportion(came / size, size, job.focus.level),
                    two_sided(probabilities, came),
                )
            )
    off = holm(np.array([group.chance for group in groups]), WRONGLY)
    found = [group for group, bad in zip(groups, off, strict=True) if bad]
    found.sort(key=lambda group: group.chance)
    return Subgroups(len(groups), tuple(found[:LISTED_GROUPS]))


def groups_of(job: Job, rows: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Names of groups and masks of their rows: levels, quarters, missing cells."""
    for name in job.X.columns:
        column = job.X[name].iloc[rows].reset_index(drop=True)
        shown = clipped(name, 30)
        if not job.kinds[name].has_levels:
            yield from _quarters(partial(job.cell, name), column.to_numpy(dtype=float), shown)
        else:
            yield from _levels(column, shown)
        missing = column.isna().to_numpy()
        if missing.any():
            yield f"{shown} missing", missing


def _levels(column: pd.Series, shown: str) -> Iterator[tuple[str, np.ndarray]]:
    """The most frequent levels, and all others together."""
    frequent = column.dropna().value_counts().index[:MAX_LEVEL_GROUPS]
    for level in frequent:
        inside = column.eq(level).to_numpy(dtype=bool, na_value=False)
        yield f"{shown} = {clipped(level, 24)}", inside
    rest = (column.notna() & ~column.isin(frequent)).to_numpy()
    if rest.any():
        yield f"{shown}: other levels", rest


def read_parts(
    job: Job,
    held_out: HeldOutRows,
    model: str,
    known: Int[np.ndarray, " row"],
    widths: Float[np.ndarray, "row label"],
) -> tuple[Parts, ...]:
    """Performance of the event by the columns that were asked for; none of more than two classes.

    ``widths`` are those of the intervals of the rows at the positions ``known``.
    """
    if len(held_out.classes) > 2:
        return ()
    of_row = np.full(held_out.labels.size, np.nan)
    of_row[known] = widths[:, event_among(held_out, job.focus).column]
    forecasts, rows = forecasts_of_event(job, held_out, model), held_out.scored
    return tuple(
        performance_by(by, groups, forecasts, of_row[rows]) for by, groups in parts_asked(job, rows)
    )


def parts_asked(job: Job, rows: np.ndarray) -> Iterator[tuple[str, Iterator[RowsOf]]]:
    """Columns that define subgroups, and the subgroups of some rows."""
    columns = [] if job.centres is None else [job.centres]
    for column in (*columns, *(job.by[name] for name in job.by)):
        kind = job.kinds.get(str(column.name))
        yield str(column.name), parts_by(column.iloc[rows].reset_index(drop=True), kind)


def parts_by(column: pd.Series, kind: Kind | None = None) -> Iterator[RowsOf]:
    """Levels of a column, or quarters of a column of numbers, and rows where it is not known."""
    if pd.api.types.is_numeric_dtype(column):
        values = column.to_numpy(dtype=float)
        decimals = decimals_of(values)

        def text(value: float) -> str:
            return (kind is not None and kind.written(value)) or cell(value, decimals)

        for name, inside in _quarters(text, values, ""):
            yield RowsOf(name, inside, exchangeable=False)
    else:
        texts = column.astype(object).where(column.notna(), None)
        frequent = texts.dropna().astype(str).value_counts().index[:MAX_PARTS]
        cells = np.array(["" if text is None else str(text) for text in texts], dtype=object)
        for level in frequent:
            yield RowsOf(str(level), cells == level)
        rest = column.notna().to_numpy() & ~np.isin(cells.astype(str), frequent.to_numpy(str))
        if rest.any():
            yield RowsOf("all other levels", rest, exchangeable=False)
    missing = column.isna().to_numpy()
    if missing.any():
        yield RowsOf("not known", missing, exchangeable=False)


def _quarters(
    text: Callable[[float], str], values: np.ndarray, shown: str
) -> Iterator[tuple[str, np.ndarray]]:
    """Four ranges with about as many rows each; fewer where values repeat."""
    observed = values[~np.isnan(values)]
    if not observed.size:
        return
    cuts = np.unique(np.quantile(observed, QUARTERS, method="inverted_cdf"))
    quarter = np.where(np.isnan(values), -1, np.searchsorted(cuts, values))
    for value in np.unique(quarter[quarter >= 0]):
        inside = quarter == value
        low, high = (text(float(f(values[inside]))) for f in (np.min, np.max))
        yield f"{shown} {between(low, high)}".strip(), inside


def tell(every: Sequence[Parts]) -> Iterator[tuple[str, str]]:
    """Figures by subgroup, and their prediction interval for a new subgroup."""
    for by_column in every:
        by = f"by {clipped(by_column.by, 24)}"
        for group in by_column.parts:
            performance = group.performance
            named = performance.auroc, performance.observed_to_expected, performance.slope
            written = zip(("AUROC", "O:E", "slope"), map(with_ends, named), strict=True)
            few = " (too few)" if group.few else ""
            rows = f"{plural(performance.rows, 'row')}, {plural(performance.events, 'event')}{few}"
            yield by, f"{clipped(group.name, 30)}: {rows}, {', '.join(map(' '.join, written))}"
        for figure, spread in by_column.spread.items():
            new = ends(spread.new.lower, spread.new.upper)
            mean = f"{with_ends(spread.mean)} in the mean of {plural(spread.parts, 'part')}"
            yield by, f"{figure}: {mean}, a new one {new} ({percent(0.9)})"


def say(subgroups: Subgroups, classes: int) -> dict[str, str]:
    """Message on the calibration of the subgroups."""
    if not subgroups.looked_at:
        return {"subgroups": "No part of the table has rows enough to be looked at by itself."}
    looked = (
        f"Looked at by themselves: {plural(subgroups.looked_at, 'part')} of the table (levels and "
        "quarters of columns, rows with a missing cell"
        f"{', class by class' if classes > 2 else ''})"
    )
    chance = f"by more than chance does to so many parts once in {round(1 / WRONGLY)} tables"
    missed = plural(len(subgroups.off), "part") if subgroups.off else "none of them do"
    message = f"{looked}. In {missed} probabilities miss what came true {chance}."
    return {"subgroups": message}
