"""Performance on held-out rows: class by class, part by part, beside a score that was given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayesrbf.answers.comparisons import GivenScore, Parts, RowsOf, given_score, performance_by
from bayesrbf.answers.performance import EventPerformance, Performance, performance_of
from bayesrbf.answers.scores import (
    Interval,
    ReliabilityCurve,
    holm,
    proportion,
    two_sided,
)
from bayesrbf.app.report.costs import costs_of, decisions
from bayesrbf.app.report.held_out import HeldOutRows
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.options import Focus
from bayesrbf.app.words import between, cell, clipped, decimals_of, number, plural
from bayesrbf.table.kinds import Kind

# Figures of single classes on held-out rows: how they are ranked, found and acted on.


UNVALIDATED: Final = 2
"""Rows of a class up to which nothing that is said of it can be validated."""
MOST_CURVES: Final = 6
"""Classes whose decision curves are drawn: the most frequent."""
THRESHOLDS: Final = (0.05, 0.1, 0.2, 0.3, 0.5)
"""Thresholds of the table of decisions, beside the one in use."""


@dataclass(frozen=True)
class Event:
    """Which of two classes the figures are about, and from which probability a row is called so."""

    name: str
    why: str  # In words.
    threshold: float  # At the costs that were given; without any, one half.
    column: int  # Among the classes.


@dataclass(frozen=True)
class Judged:
    """Held-out figures of the model and of the best rival, with their intervals."""

    model: Performance  # Of two classes only the one of interest is an event.
    rival: Performance
    threshold: float | None  # At the costs that were given to two classes.
    event: Event | None  # None for more than two classes.
    reliability: ReliabilityCurve
    """Curve of the probability of the event, or of the most probable of more than two classes."""

    @property
    def classes(self) -> list[tuple[str, EventPerformance, EventPerformance]]:
        """Name, the model's figures and those of the rival, class by class."""
        both = zip(self.model.events, self.rival.events, strict=True)
        return [(own.event, own, other) for own, other in both]

    @property
    def hardest(self) -> tuple[str, EventPerformance, EventPerformance]:
        """The class with the lowest AUROC; of two classes the one of interest."""
        every = self.classes
        told = [one for one in every if one[1].auroc.value == one[1].auroc.value]
        return min(told or every, key=lambda one: one[1].auroc.value)

    @property
    def drawn(self) -> list[tuple[str, EventPerformance, EventPerformance]]:
        """The most frequent classes, which have pictures."""
        frequent = sorted(self.classes, key=lambda one: -one[1].events)
        if self.event is not None:
            return frequent
        return [one for one in frequent if one[1].events > UNVALIDATED][:MOST_CURVES]


def unvalidated(counts: Mapping[str, int]) -> dict[str, int]:
    """Classes of one or two labelled rows, and how many."""
    return {name: rows for name, rows in counts.items() if rows <= UNVALIDATED}


def thresholds_at(threshold: float) -> tuple[float, ...]:
    """The threshold in use, then those that are always told."""
    return (threshold, *(one for one in THRESHOLDS if abs(one - threshold) > 1e-9))


def read_performance(
    held_out: HeldOutRows,
    focus: Focus,
    model: str,
    rival: str,
    groups: Int[np.ndarray, " obs"] | None = None,
) -> Judged:
    """Judge every class against the rest on the held-out rows."""
    rows = held_out.scored
    labels, classes = held_out.labels[rows], list(map(str, held_out.classes))
    event = event_among(held_out, focus) if len(classes) == 2 else None
    threshold = 0.5 if event is None else event.threshold

    def judged(name: str) -> Performance:
        own = held_out.probabilities[name][rows]
        return performance_of(
            own,
            labels,
            classes,
            shown=None if event is None else [event.column],
            decided=decisions(own, held_out.classes, focus.costs),
            thresholds=thresholds_at(threshold),
            units=None if groups is None else groups[rows],
            level=focus.level,
        )

    own = judged(model)
    return Judged(
        model=own,
        rival=judged(rival),
        threshold=threshold if event is not None and focus.costs else None,
        event=event,
        reliability=own.reliability,
    )


def event_of(counts: Float[np.ndarray, " label"], classes: Sequence[str], focus: Focus) -> Event:
    """The class that was asked for, else the dearest, else the rarest one; of ties the last."""
    each = costs_of(classes, focus.costs)
    if focus.event is not None:
        column, why = list(classes).index(focus.event), "as was asked for"
    elif np.ptp(each) > 0:
        column, why = int(each.argmax()), "the class whose mistakes cost most"
    else:
        column, why = counts.size - 1 - int(counts[::-1].argmin()), "the rarer class"
        if np.ptp(counts) == 0:
            why = "the last of two equally frequent classes"
    return Event(classes[column], why, round(float(1 - each[column] / each.sum()), 12), column)


def event_among(held_out: HeldOutRows, focus: Focus) -> Event:
    """The event of the rows held out."""
    labels = held_out.labels[held_out.scored]
    counts = np.bincount(labels, minlength=len(held_out.classes)).astype(float)
    return event_of(counts, list(map(str, held_out.classes)), focus)


def read_parts(
    job: Job, held_out: HeldOutRows, model: str, widths: Float[np.ndarray, "obs label"]
) -> tuple[Parts, ...]:
    """Performance of the event by the columns that were asked for; none of more than two classes.

    ``widths`` are those of the intervals of the rows that were held out, NaN of others.
    """
    if len(held_out.classes) > 2:
        return ()
    rows, event = held_out.scored, event_among(held_out, job.focus)
    return tuple(
        performance_by(
            by,
            parts,
            event.name,
            held_out.probabilities[model][rows, event.column],
            held_out.labels[rows] == event.column,
            threshold=event.threshold,
            units=None if job.units is None else job.units[rows],
            level=job.focus.level,
            widths=widths[rows, event.column],
        )
        for by, parts in parts_asked(job, rows)
    )


def parts_asked(job: Job, rows: np.ndarray) -> Iterator[tuple[str, Iterator[RowsOf]]]:
    """Columns by whose parts figures are told apart, and the parts of some rows."""
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
        frequent = texts.dropna().astype(str).value_counts().index[:MOST_PARTS]
        cells = np.array(["" if one is None else str(one) for one in texts], dtype=object)
        for level in frequent:
            yield RowsOf(str(level), cells == level)
        others = column.notna().to_numpy() & ~np.isin(cells.astype(str), frequent.to_numpy(str))
        if others.any():
            yield RowsOf("all other levels", others, exchangeable=False)
    missing = column.isna().to_numpy()
    if missing.any():
        yield RowsOf("not known", missing, exchangeable=False)


def read_score(job: Job, held_out: HeldOutRows, model: str) -> GivenScore | None:
    """The existing score beside the model, for two classes; None where none was given."""
    if job.score is None or len(held_out.classes) > 2:
        return None
    rows, event = held_out.scored, event_among(held_out, job.focus)
    return given_score(
        job.score.name,
        job.score.to_numpy(dtype=float)[rows],
        held_out.probabilities[model][rows, event.column],
        held_out.labels[rows] == event.column,
        event.name,
        held_out.folds[rows],
        thresholds_at(event.threshold),
        None if job.units is None else job.units[rows],
        job.focus.level,
    )


LEAST_LEAD: Final = 0.05
"""Share of the log loss of the class frequencies, or of the cost of the answer that is the same for
all rows: a lead over them that may be 0 and may be so large is not known."""


def is_open(lead: Interval, base: float) -> bool:
    """Whether a lead over what pays ``base`` for a row may be none, and may be worth having."""
    return lead.lower <= 0 and lead.upper >= LEAST_LEAD * base


SEPARATED: Final = 0.99
"""AUROC from which it is asked how so good a ranking came about."""


def of_separation(auroc: Interval) -> str:
    """A question about a ranking that is nearly without error; empty of any other.

    >>> of_separation(Interval(0.8, 0.7, 0.9))
    ''
    """
    if not auroc.value >= SEPARATED:
        return ""
    return (
        f"An AUROC of {number(auroc.value)} is rarely true of new rows: was every column known "
        "before the label, and are rows without the event those that one would ask about, not "
        "controls who are plainly well?"
    )


def few_for_calibration(counts: Sequence[int]) -> str:
    """Why calibration cannot be judged by so many rows of each class; empty where it can.

    >>> few_for_calibration([8, 92])
    'cannot be judged with 8 rows of the rarer class (about 100 are needed)'
    """
    smallest = sorted(counts)[-2]
    which = "rarer" if len(counts) == 2 else "second most frequent"
    few = f"{plural(smallest, 'row')} of the {which} class"
    needed = f"cannot be judged with {few} (about {Parts.ENOUGH} are needed)"
    return needed if smallest < Parts.ENOUGH else ""


# Whether probabilities come true in every part of the table: levels and ranges of its columns.


QUARTERS: Final = (0.25, 0.5, 0.75)
MOST_PARTS: Final = 50
"""Levels of a column that was asked for that are told apart."""
MOST_LEVEL_GROUPS: Final = 12
"""Levels of a column that are groups; all others are one together."""
FEWEST_IN_GROUP: Final = 5
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
    """Parts of the table in which probabilities do not come true beyond chance."""

    looked_at: int  # Pairs of a part and a class.
    off: tuple[Subgroup, ...]  # The least probable first.


def read_subgroups(job: Job, held_out: HeldOutRows, model: str) -> Subgroups:
    """Hold said against come true in every group, for every class; for one where there are two.

    For a calibrated model the number of rows of a class in a group has a Poisson-binomial law.
    Holm's method counts how many groups were looked at.
    """
    rows = held_out.scored
    p, labels = held_out.probabilities[model][rows], held_out.labels[rows]
    frequent = np.bincount(labels, minlength=len(held_out.classes)) >= FEWEST_IN_GROUP
    binary = len(held_out.classes) == 2
    classes = [event_among(held_out, job.focus).column] if binary else np.flatnonzero(frequent)
    parts = []
    for name, inside in groups_of(job, rows):
        size = int(inside.sum())
        for c in classes if FEWEST_IN_GROUP <= size < len(rows) else ():
            came = int((labels[inside] == c).sum())
            own = p[inside, c]
            parts.append(
                Subgroup(
                    name,
                    str(held_out.classes[c]),
                    size,
                    float(own.mean()),
                    proportion(came / size, size, job.focus.level),
                    two_sided(own, came),
                )
            )
    off = holm(np.array([group.chance for group in parts]), WRONGLY)
    found = [group for group, bad in zip(parts, off, strict=True) if bad]
    found.sort(key=lambda group: group.chance)
    return Subgroups(len(parts), tuple(found[:LISTED_GROUPS]))


def groups_of(job: Job, rows: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Names of groups and which of some rows are in them: levels, quarters, missing cells."""
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


def _quarters(
    text: Callable[[float], str], values: np.ndarray, shown: str
) -> Iterator[tuple[str, np.ndarray]]:
    """Four ranges with about as many rows each; fewer where values repeat."""
    observed = values[~np.isnan(values)]
    if not observed.size:
        return
    cuts = np.unique(np.quantile(observed, QUARTERS, method="inverted_cdf"))
    part = np.where(np.isnan(values), -1, np.searchsorted(cuts, values))
    for value in np.unique(part[part >= 0]):
        inside = part == value
        low, high = (text(float(f(values[inside]))) for f in (np.min, np.max))
        yield f"{shown} {between(low, high)}".strip(), inside


def _levels(column: pd.Series, shown: str) -> Iterator[tuple[str, np.ndarray]]:
    """The most frequent levels, and all others together."""
    frequent = column.dropna().value_counts().index[:MOST_LEVEL_GROUPS]
    for level in frequent:
        inside = column.eq(level).to_numpy(dtype=bool, na_value=False)
        yield f"{shown} = {clipped(level, 24)}", inside
    others = (column.notna() & ~column.isin(frequent)).to_numpy()
    if others.any():
        yield f"{shown}: other levels", others
