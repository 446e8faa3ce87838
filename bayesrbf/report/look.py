"""A table looked at without a model: columns, holes, duplicates, associations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, combinations
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from bayesrbf.posterior.associations import Column as Cells
from bayesrbf.posterior.associations import associations
from bayesrbf.reading import ReadTable
from bayesrbf.reading.notes import TableError, listed
from bayesrbf.report.columns import BARS, MOST_LEVEL_BARS, read_columns
from bayesrbf.report.job import Job
from bayesrbf.report.records import Column, Reading
from bayesrbf.report.words import between, clipped, count, listing, number, percent, plural

LOOKED_AT_ROWS: Final = 20_000
"""Rows that are looked at; of a longer table, so many at random."""
PAIRED: Final = 60
"""Columns of which every pair is looked at; of a wider table, the first ones."""
STRONG: Final = 0.3
"""Strength from which an association is told; one with the target is told from less."""
WITH_TARGET: Final = 0.1
MOST_TOLD: Final = 40
MOST_PATTERNS: Final = 8
COLOURED_CLASSES: Final = 8
"""Classes that distributions are coloured by; codes of so many values are classes."""
PAIR_BY_CHANCE: Final = 0.01


@dataclass(frozen=True)
class Pair:
    """Two columns that hang together."""

    first: str
    second: str
    strength: float  # From 0 to 1.
    falling: bool  # Whether one falls where the other rises.
    measure: str
    rows: int  # With both cells.


@dataclass(frozen=True)
class Pattern:
    """Cells that are missing together."""

    columns: tuple[str, ...]  # Empty where no cell is missing.
    rows: int


@dataclass(frozen=True)
class Spread:
    """How the cells of a column are spread."""

    column: Column
    bars: Float[np.ndarray, "series bar"]  # Rows by class of the target, or one series.
    ends: tuple[str, str]  # Of a real column; empty texts otherwise.
    levels: tuple[str, ...]  # Under the bars of a categorical column.
    more: int  # Levels that are not drawn.
    facts: str  # Quartiles, or distinct values.


@dataclass(frozen=True)
class Look:
    """A first look at a table, before any model is fitted."""

    title: str
    target: str  # Empty where none was named.
    classes: tuple[str, ...]  # Of the target that distributions are coloured by; may be empty.
    reading: Reading
    spreads: tuple[Spread, ...]
    kinds: Mapping[str, int]  # Columns by kind.
    patterns: tuple[Pattern, ...]  # The most frequent first.
    repeated: int  # Rows that equal an earlier one.
    contradicting: int  # Rows that equal one of another class in all but the target.
    alike: tuple[tuple[str, str], ...]  # Columns that hold the same in every row.
    with_target: tuple[Pair, ...]  # The strongest first.
    pairs: tuple[Pair, ...]  # Of other columns.
    remarks: tuple[str, ...] = field(default=())  # What was sampled or left out.


def look(table: ReadTable, title: str, target: str | None = None, seed: int = 0) -> Look:
    """Look at a table that was read without a target; ``target`` is one of its columns.

    Raises TableError where the target is none of its columns.
    """
    if target is not None and target not in table.frame.columns:
        if target in table.options.ignore:
            why = next((f" {note}" for note in table.notes if repr(target) in note), "")
            raise TableError(f"{title}: column {target!r} was left out.{why}")
        some = listed([repr(str(name)) for name in table.frame.columns])
        raise TableError(f"{title} has no column {target!r} to look at; it has {some}.")
    frame, remarks = table.frame, []
    if len(frame) > LOOKED_AT_ROWS:
        rng = np.random.default_rng(seed)
        frame = frame.iloc[np.sort(rng.choice(len(frame), LOOKED_AT_ROWS, replace=False))]
        remarks.append(
            f"The table has {plural(len(table.frame), 'row')}; all that follows is about "
            f"{count(LOOKED_AT_ROWS)} of them, drawn at random."
        )
    job = Job(
        title=title,
        target=target or "",
        X=frame,
        y=_classes(frame, target),
        kinds=table.kinds,
        inference="map",
        seed=seed,
        notes=table.notes,
        reading=table.options,
    )
    alone = pd.Series(["row"] * len(frame), dtype=object)
    reading = read_columns(replace(job, y=alone))
    without = [name for name in frame.columns if name != target]
    if without and job.y.notna().any():  # what tells the target by itself is a note, too
        reading = replace(reading, notes=read_columns(replace(job, X=frame[without])).notes)
    if len(frame.columns) > PAIRED:
        remarks.append(
            f"Of {plural(len(frame.columns), 'column')}, pairs of the first {PAIRED} were looked "
            "at, and every column beside the target."
        )
    pairs = _pairs(frame, table.kinds, target)
    return Look(
        title=title,
        target=target or "",
        classes=tuple(map(str, sorted(job.y.dropna().unique()))),
        reading=reading,
        spreads=tuple(_spread(job, column) for column in reading.columns),
        kinds=Counter(table.kinds.values()),
        patterns=_patterns(frame),
        repeated=int(frame.duplicated().sum()),
        contradicting=_contradicting(frame, target),
        alike=tuple(_alike(frame)),
        with_target=tuple(pair for pair in pairs if target in (pair.first, pair.second)),
        pairs=tuple(pair for pair in pairs if target not in (pair.first, pair.second)),
        remarks=tuple(remarks),
    )


def _classes(frame: pd.DataFrame, target: str | None) -> pd.Series:
    """Classes by which distributions are coloured: missing throughout where there are none."""
    none = pd.Series([None] * len(frame), dtype=object)
    if target is None:
        return none
    values = frame[target].reset_index(drop=True)
    distinct = values.dropna().unique()
    if not 2 <= len(distinct) <= COLOURED_CLASSES:
        return none
    if values.dtype.kind == "f":
        return values.map(lambda value: f"{value:g}", na_action="ignore").astype(object)
    return values.astype(object).where(values.notna(), None)


def _pairs(frame: pd.DataFrame, kinds: Mapping[str, str], target: str | None) -> tuple[Pair, ...]:
    """Associations beyond chance, those of the target before others, the strongest first."""
    names = list(frame.columns)
    columns = [_cells(frame[name], kinds[name] == "real", name == target) for name in names]
    few = range(min(len(names), PAIRED))
    own = [] if target is None else [names.index(target)]
    beside = [(own[0], j) for j in range(len(names)) if j not in own] if own else []
    others = [(i, j) for i, j in combinations(few, 2) if i not in own and j not in own]
    links = chain(
        associations(columns, beside, PAIR_BY_CHANCE, WITH_TARGET),
        associations(columns, others, PAIR_BY_CHANCE, STRONG),
    )
    return tuple(
        Pair(names[a.first], names[a.second], a.strength, a.sign < 0, a.measure, a.rows)
        for a in links
    )


def _cells(values: pd.Series, real: bool, target: bool) -> Cells:
    """A column as associations take it; a target of few numbers is one of classes."""
    few = target and values.nunique() <= COLOURED_CLASSES
    if real and not few:
        return values.to_numpy(dtype=float)
    return np.asarray(pd.factorize(values)[0], dtype=np.int64)


def _patterns(frame: pd.DataFrame) -> tuple[Pattern, ...]:
    """Which cells are missing together, the most frequent patterns first."""
    missing = frame.isna().to_numpy()
    which, rows = np.unique(missing, axis=0, return_counts=True)
    order = np.argsort(-rows, kind="stable")[:MOST_PATTERNS]
    names = frame.columns.to_numpy()
    return tuple(Pattern(tuple(map(str, names[which[i]])), int(rows[i])) for i in order)


def _contradicting(frame: pd.DataFrame, target: str | None) -> int:
    """Number of rows that equal another row in all cells but the target."""
    if target is None or len(frame.columns) < 2:
        return 0
    rest = [name for name in frame.columns if name != target]
    labelled = frame[frame[target].notna()]
    same = labelled[labelled.duplicated(rest, keep=False)]
    if same.empty:
        return 0
    values = same.groupby(rest, dropna=False, sort=False)[target].transform("nunique")
    return int((values > 1).sum())


def _alike(frame: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Columns that hold the same as an earlier one, level for level."""
    first_names: dict[bytes, str] = {}
    for name in frame.columns:
        codes = pd.factorize(frame[name])[0]
        earlier = first_names.setdefault(codes.tobytes(), str(name))
        if earlier != name and codes.max(initial=-1) > 0:
            yield earlier, str(name)


def _spread(job: Job, column: Column) -> Spread:
    """The bars of a column, by class where there are some."""
    values = job.X[column.name].reset_index(drop=True)
    groups = [values[(job.y == label).to_numpy()] for label in sorted(job.y.dropna().unique())]
    groups = groups or [values]
    if column.kind == "categorical":
        frequent = values.value_counts().index[:MOST_LEVEL_BARS]
        bars = np.array([[float((part == level).sum()) for level in frequent] for part in groups])
        more = int(values.nunique()) - len(frequent)
        levels = tuple(map(str, frequent))
        most = values.value_counts(normalize=True)
        facts = plural(int(values.nunique()), "level")
        if len(most):
            facts += f"; {percent(float(most.iloc[0]))} {clipped(most.index[0], 20)}"
        return Spread(column, bars, ("", ""), levels, more, facts)
    numbers = values.dropna().to_numpy(dtype=float)
    if not numbers.size:
        return Spread(column, np.zeros((1, 0)), ("", ""), (), 0, "no value")
    low, high = float(numbers.min()), float(numbers.max())
    wide = (low, high) if high > low else (low - 0.5, high + 0.5)
    bars = np.array(
        [
            np.histogram(part.dropna().to_numpy(dtype=float), _bins(numbers), wide)[0].astype(float)
            for part in groups
        ]
    )
    quarter, middle, three = (
        job.cell(column.name, q) for q in np.quantile(numbers, [0.25, 0.5, 0.75])
    )
    facts = f"median {middle}, half of the cells {between(quarter, three)}"
    ends = job.cell(column.name, low), job.cell(column.name, high)
    return Spread(column, bars, ends, (), 0, facts)


def _bins(values: Float[np.ndarray, " value"]) -> int:
    """A bar for every whole number where there are few, else the report's number."""
    span = int(np.ptp(values)) + 1 if np.all(values == np.round(values)) else BARS + 1
    return span if span <= BARS else BARS


def opening(look: Look) -> str:
    """A sentence: rows, columns of every kind, and missing cells."""
    reading = look.reading
    kinds = [plural(n, f"{kind} column") for kind, n in sorted(look.kinds.items(), reverse=True)]
    holes = "no cell is missing"
    if reading.missing:
        holes = f"{percent(reading.missing)} of the cells are missing"
    return f"{plural(reading.rows, 'row')} with {listing(kinds)}; {holes}."


def of_holes(look: Look) -> str:
    """Where cells are missing, and how many rows are complete."""
    columns = [column for column in look.reading.columns if column.missing]
    if not columns:
        return "No cell is missing."
    worst = sorted(columns, key=lambda column: -column.missing)
    most = [f"“{clipped(column.name, 30)}” ({percent(column.missing)})" for column in worst[:3]]
    complete = next((pattern.rows for pattern in look.patterns if not pattern.columns), 0)
    verb = "has" if len(columns) == 1 else "have"
    rows = f"{plural(complete, 'row is', 'rows are')} complete, of {count(look.reading.rows)}"
    if not complete:
        rows = "complete rows are rare, or there are none"
    return (
        f"{plural(len(columns), 'column')} of {len(look.reading.columns)} {verb} missing cells, "
        f"most in {listing(most)}; {rows}."
    )


def of_duplicates(look: Look) -> str:
    """Rows and columns that are there twice."""
    parts = []
    if look.repeated:
        is_single = look.repeated == 1
        parts.append(
            f"{plural(look.repeated, 'row')} {'equals' if is_single else 'equal'} an earlier row "
            "in every cell: if a patient or an object is there twice, held-out rows are not new"
        )
    if look.contradicting:
        parts.append(
            f"{plural(look.contradicting, 'row')} are equal in all but “{clipped(look.target)}”, "
            "in which they differ"
        )
    parts += [
        f"“{clipped(second)}” tells the same as “{clipped(first)}”, row by row"
        for first, second in look.alike[:6]
    ]
    return f"{'; '.join(parts)}." if parts else "No row and no column is there twice."


def of_pairs(look: Look) -> str:
    """The strongest association, or that there is none."""
    pairs = look.with_target or look.pairs
    if not pairs:
        return "No two columns hang together strongly and beyond chance."
    pair = pairs[0]
    head = f"{plural(len(look.with_target) + len(look.pairs), 'pair')} of columns hang together"
    return (
        f"{head}, more than chance explains; first “{clipped(pair.first)}” and "
        f"“{clipped(pair.second)}” ({number(pair.strength)}, where 1 is the most)."
    )
