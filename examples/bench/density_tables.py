"""Tasks of the density's benchmark: splits, hidden cells, planted errors and classes left out.

Everything is arrays: reals with NaN, and codes of categories with -1, where a cell is missing. The
label is a category like the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bench.tables import load

MIXED = (
    "heart_cleveland",
    "credit_approval",
    "pima_uci_missing",
    "hepatitis",
    "horse_colic",
    "adult",
    "glass",
    "vehicle",
)
"""Tables for all tasks but the complete reals."""
REALS = ("glass", "vehicle", "segment", "breast_cancer", "wine")
"""Tables of real columns without a hole."""

MAX_ROWS = 1000
HIDDEN = 0.2
PLANTED = 0.01
KINDS = ("factor 10", "swapped columns", "shifted decimal", "sign", "random level")

Array = np.ndarray


@dataclass(frozen=True)
class Cells:
    """Rows of a table; NaN and -1 are missing."""

    real: Array
    codes: Array

    def take(self, rows: Array) -> Cells:
        """Some of the rows."""
        return Cells(self.real[rows], self.codes[rows])

    def hidden(self, real: Array, codes: Array) -> Cells:
        """The same rows with the marked cells missing."""
        return Cells(np.where(real, np.nan, self.real), np.where(codes, -1, self.codes))

    @property
    def n_cells(self) -> int:
        """Number of observed cells."""
        return int((~np.isnan(self.real)).sum() + (self.codes >= 0).sum())


@dataclass(frozen=True)
class Table:
    """A table of at most so many rows and a random half of its rows to learn from."""

    cells: Cells
    levels: Array
    """Number of levels of every category."""
    resolution: Array
    """Smallest distance of two different cells of every real column."""
    jitter: Array
    """Uniform within half a resolution of 0, a number for every real cell."""
    train: Array
    test: Array


@dataclass(frozen=True)
class Task:
    """What a contestant is given. Densities are those of ``test``."""

    kind: str
    train: Cells
    test: Cells
    train_jitter: Array
    test_jitter: Array
    resolution: Array
    levels: Array
    truth: Cells
    """The test rows before anything was hidden; which rows or cells are wrong, as 0 and 1."""

    @property
    def holes(self) -> tuple[Array, Array]:
        """Rows and columns of the hidden cells whose truth is known, reals and categories."""
        real = np.argwhere(np.isnan(self.test.real) & ~np.isnan(self.truth.real))
        return real, np.argwhere((self.test.codes < 0) & (self.truth.codes >= 0))


def table(name: str, seed: int, *, reals_only: bool = False) -> Table:
    """Arrays of a table; what the training half cannot teach is not in it.

    Real columns of two values are categories. Levels that the training half lacks are missing.
    """
    data = load(name)
    rng = np.random.default_rng([seed, 0])
    rows = np.sort(rng.permutation(len(data.y))[:MAX_ROWS])
    order = rng.permutation(rows.size)
    train, test = np.sort(order[: rows.size // 2]), np.sort(order[rows.size // 2 :])
    frame = data.X.iloc[rows].reset_index(drop=True)
    reals, categories = [], []
    for column in frame:
        known = frame[column].iloc[train].nunique()
        if known > 2 and pd.api.types.is_numeric_dtype(frame[column]):
            reals.append(frame[column].to_numpy(float))
        elif known > 1 and not reals_only:
            categories.append(_codes(frame[column], train))
    if not reals_only:
        categories.append(_codes(pd.Series(data.y[rows]), train))
    real = np.column_stack([np.empty((rows.size, 0)), *reals])
    codes = np.column_stack([np.empty((rows.size, 0), int), *categories])
    resolution = np.array([_resolution(column) for column in real.T])
    jitter = rng.uniform(-0.5, 0.5, real.shape) * resolution
    levels = codes.max(axis=0, initial=-1) + 1
    return Table(Cells(real, codes), levels, resolution, jitter, train, test)


def _codes(column: pd.Series, train: Array) -> Array:
    """Codes of the levels that the training rows have."""
    levels = np.unique(column.iloc[train].dropna())
    return pd.Index(levels).get_indexer(column)


def _taught(codes: Array, train: Array) -> Array:
    """Whether the training rows have the level of a cell; a hidden level is asked for anyway."""
    return np.column_stack([np.isin(column, column[train]) for column in codes.T])


def _resolution(column: Array) -> float:
    """Smallest distance of two different cells."""
    steps = np.diff(np.unique(column[~np.isnan(column)]))
    return float(steps[steps > 1e-9 * max(1.0, np.nanmax(np.abs(column)))].min(initial=np.inf))


def _task(kind: str, whole: Table, train: Array, test: Array, cells: Cells, truth: Cells) -> Task:
    """The rows of a task, cut out of the cells that its contestants see."""
    return Task(
        kind,
        cells.take(train),
        cells.take(test),
        whole.jitter[train],
        whole.jitter[test],
        whole.resolution,
        whole.levels,
        truth.take(test),
    )


def masked_cells(whole: Table, seed: int) -> Task:
    """A fifth of the cells of both halves is missing, and to be told for the new rows."""
    rng = np.random.default_rng([seed, 1])
    real, codes = whole.cells.real, whole.cells.codes
    masks = rng.random(real.shape) < HIDDEN, rng.random(codes.shape) < HIDDEN
    seen = whole.cells.hidden(*masks)
    taught = _taught(seen.codes, whole.train)
    none = np.zeros(real.shape, bool)
    seen, truth = seen.hidden(none, ~taught), whole.cells.hidden(none, ~taught)
    return _task("hidden", whole, whole.train, whole.test, seen, truth)


def complete_reals(whole: Table) -> Task:
    """Nothing is missing."""
    return _task("reals", whole, whole.train, whole.test, whole.cells, whole.cells)


def planted_errors(whole: Table, seed: int) -> Task:
    """One cell in a hundred of the whole table is wrong; it is judged by its own table."""
    spoilt, marks = plant(whole.cells, whole.levels, np.random.default_rng([seed, 2]))
    every = np.arange(len(spoilt.real))
    return _task("errors", whole, every, every, spoilt, marks)


def plant(cells: Cells, levels: Array, rng: np.random.Generator) -> tuple[Cells, Cells]:
    """Cells with errors in one of a hundred, and the kind of every error from 1, 0 for none."""
    real, codes = cells.real.copy(), cells.codes.copy()
    kind_real, kind_code = np.zeros(real.shape, int), np.zeros(codes.shape, int)
    (n, d), wanted, planted = real.shape, round(PLANTED * cells.n_cells), 0
    while planted < wanted:
        i, j = rng.integers(n), rng.integers(d + codes.shape[1])
        if j >= d:
            level = rng.integers(levels[j - d])
            if codes[i, j - d] < 0 or kind_code[i, j - d] or level == codes[i, j - d]:
                continue
            codes[i, j - d], kind_code[i, j - d] = level, 5
            planted += 1
            continue
        kind, other = int(rng.integers(1, 5)), rng.integers(d)
        if np.isnan(real[i, j]) or kind_real[i, j] or real[i, j] == 0:
            continue
        if kind == 2:
            same = real[i, other] == real[i, j] or np.isnan(real[i, other])
            if same or kind_real[i, other] or planted + 2 > wanted:
                continue
            real[i, j], real[i, other] = real[i, other], real[i, j]
            kind_real[i, other] = kind
            planted += 1
        else:
            real[i, j] *= {1: 10.0, 3: 0.1, 4: -1.0}[kind]
        kind_real[i, j] = kind
        planted += 1
    return Cells(real, codes), Cells(kind_real, kind_code)


def class_left_out(whole: Table, seed: int) -> Task:
    """Rows of a class that no training row has, among new rows of the others; no label is seen.

    The class is the second most frequent one. ``truth.codes`` is 1 for its rows.
    """
    label = whole.cells.codes[:, -1]
    counts = np.bincount(label[label >= 0])
    left = np.argsort(-counts, kind="stable")[1]
    rest = np.random.default_rng([seed, 3]).permutation(np.flatnonzero(label != left))
    train, test = np.sort(rest[: rest.size // 2]), np.sort(rest[rest.size // 2 :])
    test = np.concatenate([test, np.flatnonzero(label == left)])
    taught = [j for j, c in enumerate(whole.cells.real[train].T) if len(np.unique(c[c == c])) > 2]
    seen = Cells(whole.cells.real[:, taught], whole.cells.codes[:, :-1])
    novel = Cells(seen.real, (label == left).astype(int)[:, None])
    less = Table(
        seen,
        whole.levels[:-1],
        whole.resolution[taught],
        whole.jitter[:, taught],
        train,
        test,
    )
    return _task("novelty", less, train, test, seen, novel)


def tasks(name: str, seed: int) -> list[Task]:
    """Everything that is asked of one table."""
    found = []
    if name in MIXED:
        whole = table(name, seed)
        found += [
            masked_cells(whole, seed),
            planted_errors(whole, seed),
            class_left_out(whole, seed),
        ]
    if name in REALS:
        found.append(complete_reals(table(name, seed, reals_only=True)))
    return found
