"""A job: a table with its options and splits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from bayesrbf.app.report.options import (
    ANYTHING,
    AS_TRAINED,
    FamilyName,
    Focus,
    Inference,
    Missingness,
)
from bayesrbf.app.words import cell, clipped, count, decimals_of, plural
from bayesrbf.base.table_options import PLAIN, TableOptions
from bayesrbf.fit.held_out import grouped_folds, later_folds, stratified_folds
from bayesrbf.table.encode import encode_labels
from bayesrbf.table.kinds import Kind

# Which rows are held out together, and which rows may then teach.


@dataclass(frozen=True)
class Splits:
    """Folds, with times, groups or centres that keep rows out of their training rows."""

    folds: Int[np.ndarray, " obs"]  # That holds a row out; -1 where none does.
    groups: Int[np.ndarray, " obs"] | None = None  # Rows of one number are on one side.
    times: Float[np.ndarray, " obs"] | None = None  # Only earlier rows teach; NaN always does.
    centres: tuple[str, ...] = ()  # Names of the folds, where each is a centre.

    @property
    def numbers(self) -> Int[np.ndarray, " fold"]:
        """Numbers of the folds."""
        numbers: Int[np.ndarray, " fold"] = np.unique(self.folds[self.folds >= 0])
        return numbers

    def training(self, fold: int) -> Bool[np.ndarray, " obs"]:
        """Mask of the training rows of a fold."""
        out = self.folds == fold
        teaches = ~out
        if self.times is not None:
            teaches &= ~(self.times >= np.min(self.times[out]))
        if self.groups is not None:
            teaches &= ~np.isin(self.groups, self.groups[out])
        return teaches

    def pairs(self) -> list[tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]]:
        """Positions of training and held-out rows of every fold."""
        return [
            (np.flatnonzero(self.training(fold)), np.flatnonzero(self.folds == fold))
            for fold in self.numbers.tolist()
        ]

    @property
    def message(self) -> str:
        """Sentences on hold-out by time or by group; empty where rows are held out by chance."""
        texts = []
        if self.centres:
            texts.append(
                f"Each of {plural(len(self.centres), 'centre')} was held out in turn, and "
                "predicted from the rows of all others."
            )
            if (rest := int((self.folds < 0).sum())) > 0:
                rows = plural(rest, "row")
                texts.append(f"{rows} without a centre or a label taught all, and were not judged.")
        if self.times is not None:
            n_rows, folds = int((self.folds >= 0).sum()), self.numbers.size
            texts.append(
                f"The latest {plural(n_rows, 'labelled row')} were held out in "
                f"{plural(folds, 'part')}, each predicted from the rows before it; weights and "
                "temperatures were fitted to some of those held out by chance, so that a drift is "
                "judged and not made up for."
            )
        if self.groups is not None:
            groups = plural(np.unique(self.groups).size, "group")
            texts.append(f"Rows of one group ({groups}) were never on both sides of a split.")
        return " ".join(texts)


def fold_count(labels: Int[np.ndarray, " obs"], most: int) -> int:
    """Number of folds: the rows of the second most frequent class, at least 2, at most ``most``.

    >>> fold_count(np.array([0, 0, 0, 0, 0, 1, 1, 1, 2, -1]), most=5)
    3
    """
    frequencies = np.sort(np.bincount(labels[labels >= 0]))
    return int(np.clip(frequencies[-2] if frequencies.size > 1 else 0, 2, most))


def splits_of(
    labels: Int[np.ndarray, " obs"],
    n_folds: int,
    seed: int,
    groups: Int[np.ndarray, " obs"] | None = None,
    times: Float[np.ndarray, " obs"] | None = None,
    centres: pd.Series | None = None,
) -> Splits:
    """Folds by centre where they are given, else by time, else by groups, else by class.

    There are at most ``n_folds``, and no more than the second most frequent class has rows.
    """
    if centres is not None:
        folds, names = pd.factorize(centres.where(labels >= 0), sort=True)
        return Splits(folds, groups, centres=tuple(map(str, names)))
    n_folds = fold_count(labels, n_folds)
    if times is not None:
        return Splits(later_folds(labels, times, n_folds), groups, times)
    if groups is not None:
        return Splits(grouped_folds(labels, groups, n_folds, seed), groups)
    return Splits(stratified_folds(labels, n_folds, seed))


# One table and what was asked about it: the input of every section of the report.


@dataclass(frozen=True)
class Truth:
    """The complete table before cells and labels were hidden."""

    X: pd.DataFrame
    y: pd.Series


@dataclass(frozen=True)
class Job:
    """A table, its labels, and the options of its report."""

    title: str
    target: str
    X: pd.DataFrame  # Without the label column; an index that does not count names the rows.
    y: pd.Series  # Missing where hidden; the index counts the rows from 0.
    kinds: Mapping[str, Kind]  # By column.
    inference: Inference  # ``"auto"``: by what takes about a minute.
    seed: int
    notes: tuple[str, ...] = ()  # What was noticed when the table was read.
    too_good: str = ""  # Why figures of held-out rows may be too good.
    facts: tuple[tuple[str, str], ...] = ()  # Command, versions, digest of the data.
    truth: Truth | None = None  # Where it is known.
    family: FamilyName = "stack"
    missingness: Missingness = AS_TRAINED
    focus: Focus = ANYTHING  # What figures and decisions are about.
    draws: int | None = None  # Per chain; by default what the family takes.
    folds: int = 5  # At most.
    jobs: int = 1  # Processes that share the fits; -1: all cores where that is quicker.
    quick: bool = False  # Whether time counts more than the last of the log loss.
    rehearse: bool = False  # Whether the intervals are tried, at the cost of more fits.
    stability: int = 0  # Refits on bootstrap samples of the rows.
    reading: TableOptions = PLAIN  # By which new rows are read, too.
    groups: Int[np.ndarray, " obs"] | None = None
    """Rows of one number belong together: copies of a row, and rows of one group."""
    times: Float[np.ndarray, " obs"] | None = None  # By which rows are ordered.
    centres: pd.Series | None = None  # Each of which is held out in turn.
    by: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Columns by whose parts figures are told apart."""
    score: pd.Series | None = None  # An existing score.

    @property
    def subjects(self) -> Int[np.ndarray, " obs"] | None:
        """Groups that were asked for; copies of a row alone are no reason to resample."""
        return None if self.reading.group is None else self.groups

    @property
    def curve_tables(self) -> int:
        """Number of tables drawn for each size of the learning curve, by the number of refits."""
        return min(5, max(2, self.stability // 40)) if self.stability else 0

    @property
    def judged_apart(self) -> bool:
        """Whether rows are held out in another way than an estimator does for itself."""
        return self.times is not None or self.centres is not None

    @property
    def categorical(self) -> list[str]:
        """Names of the columns that have levels."""
        return [name for name in self.X.columns if self.kinds[name].has_levels]

    @property
    def numbers(self) -> list[str]:
        """Names of the columns of numbers."""
        return [name for name in self.X.columns if not self.kinds[name].has_levels]

    @property
    def lines(self) -> list[str]:
        """Names of the columns of numbers on a line, and not on a circle."""
        return [name for name in self.numbers if self.kinds[name].is_ordered]

    @property
    def said_kinds(self) -> dict[str, Kind]:
        """Kinds of columns that an estimator does not find by itself."""
        return {name: kind for name, kind in self.kinds.items() if not kind.recognises(kind.levels)}

    @property
    def knows_holes(self) -> bool:
        """Whether cells are missing and their truth is known."""
        return self.truth is not None and bool(self.X.isna().to_numpy().any())

    @property
    def labels(self) -> Int[np.ndarray, " obs"]:
        """Class codes, -1 where hidden."""
        return encode_labels(self.y)[1]

    @property
    def splits(self) -> Splits:
        """The folds in which rows are held out."""
        return splits_of(self.labels, self.folds, self.seed, self.groups, self.times, self.centres)

    def splits_within(self, y: pd.Series) -> Splits:
        """Splits of some of the rows, with labels ``y``, within an estimator; never by time."""
        return splits_of(encode_labels(y)[1], self.folds, self.seed, self.groups_of(y))

    def groups_of(self, y: pd.Series) -> Int[np.ndarray, " some"] | None:
        """The groups of some of the rows, whose labels are ``y``."""
        return None if self.groups is None else self.groups[y.index.to_numpy()]

    @cached_property
    def decimals(self) -> Mapping[str, int | None]:
        """Decimals of the cells of the columns of numbers."""
        return {name: decimals_of(self.X[name].to_numpy(dtype=float)) for name in self.numbers}

    def mean(self, name: str, value: float) -> str:
        """A mean of a column as text: with more digits than cells that are whole numbers."""
        cells = self.X[name].to_numpy(dtype=float)
        plain = cell(value, decimals_of(cells, as_written=False))
        return self.kinds[name].written(value) or plain

    def cell(self, name: str, value: float) -> str:
        """A number of a column as text."""
        return self.kinds[name].written(value) or cell(value, self.decimals[name])

    def ends(self, name: str, low: float, high: float) -> tuple[str, str]:
        """Ends of an axis along a column of texts, such as dates; empty of numbers."""
        kind = self.kinds[name]
        return (kind.written(low), kind.written(high)) if kind.of_texts else ("", "")

    @property
    def names_rows(self) -> bool:
        """Whether the index names the rows and does not just count them."""
        return not isinstance(self.X.index, pd.RangeIndex)

    @property
    def ids(self) -> pd.Index | None:
        """The index where it names the rows; None where it only counts them."""
        return self.X.index if self.names_rows else None

    @property
    def row_title(self) -> str:
        """Title of the column of row names."""
        named = self.names_rows and self.X.index.name is not None
        return clipped(self.X.index.name, 24) if named else "row"

    def row(self, position: int) -> str:
        """Name of a row: its entry in the index, or its number from 1."""
        return clipped(self.X.index[position], 30) if self.names_rows else count(position + 1)
