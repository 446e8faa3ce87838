"""One table and what was asked about it: the input of every section of the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from bayesrbf.reading.notation import date_of
from bayesrbf.records.table_options import PLAIN, TableOptions
from bayesrbf.report.options import FamilyName, Inference
from bayesrbf.report.splits import Splits, splits_of
from bayesrbf.report.words import cell, clipped, count, decimals_of
from bayesrbf.table import encode_labels


@dataclass(frozen=True)
class Truth:
    """The complete table before cells and labels were hidden."""

    X: pd.DataFrame
    y: pd.Series


@dataclass(frozen=True)
class Job:
    """A table, its labels, and what was asked about it."""

    title: str
    target: str
    X: pd.DataFrame  # Without the label column; an index that does not count names the rows.
    y: pd.Series  # Missing where hidden; the index counts the rows from 0.
    kinds: Mapping[str, str]  # "real" or "categorical", by column.
    inference: Inference  # ``"auto"``: by what takes about a minute.
    seed: int
    notes: tuple[str, ...] = ()  # What was noticed when the table was read.
    facts: tuple[tuple[str, str], ...] = ()  # Command, versions, digest of the data.
    truth: Truth | None = None  # Where it is known.
    family: FamilyName = "stack"
    costs: Mapping[str, float] = field(default_factory=dict)
    """Of a mistaken row by class, 1 for a class not named; nothing is said where empty."""
    draws: int | None = None  # Per chain; by default what the family takes.
    folds: int = 5  # At most.
    jobs: int = 1  # Processes that share the fits; -1: all cores where that is quicker.
    quick: bool = False  # Whether time counts more than the last of the log loss.
    rehearse: bool = False  # Whether the intervals are tried, at the cost of more fits.
    reading: TableOptions = PLAIN  # By which new rows are read, too.
    groups: Int[np.ndarray, " obs"] | None = None
    """Rows of one number belong together: copies of a row, and rows of one group."""
    times: Float[np.ndarray, " obs"] | None = None  # By which rows are ordered.

    @property
    def categorical(self) -> list[str]:
        """Names of the categorical columns."""
        return [name for name in self.X.columns if self.kinds[name] == "categorical"]

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
        return splits_of(self.labels, self.folds, self.seed, self.groups, self.times)

    def splits_within(self, y: pd.Series) -> Splits:
        """How an estimator holds out some of the rows, whose labels are ``y``; never by time."""
        return splits_of(encode_labels(y)[1], self.folds, self.seed, self.groups_of(y))

    def groups_of(self, y: pd.Series) -> Int[np.ndarray, " some"] | None:
        """The groups of some of the rows, whose labels are ``y``."""
        return None if self.groups is None else self.groups[y.index.to_numpy()]

    @cached_property
    def decimals(self) -> Mapping[str, int | None]:
        """Decimals of the cells of every real column, as :func:`decimals_of` has them."""
        reals = [name for name in self.X.columns if self.kinds[name] == "real"]
        return {name: decimals_of(self.X[name].to_numpy(dtype=float)) for name in reals}

    def mean(self, name: str, value: float) -> str:
        """A mean of a real column as text: with more digits than cells that are whole numbers."""
        if name in self.reading.dates:
            return date_of(value)
        cells = self.X[name].to_numpy(dtype=float)
        return cell(value, decimals_of(cells, as_written=False))

    def cell(self, name: str, value: float) -> str:
        """A number of a real column as text."""
        return date_of(value) if name in self.reading.dates else cell(value, self.decimals[name])

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
