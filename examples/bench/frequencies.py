"""Real rows of which P(class | row) is known: cells of cross-tables of many rows.

Columns of a table are cut until many rows are equal in all of them. The table is then the
population: rows to learn from are drawn from it with replacement, and the frequency of the class
among all rows of one cell is the probability that a model should find. With one column hidden the
truth is the frequency among the rows that are equal in the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from bench.tables import load

MIN_COUNTS: Final = {"adult": 200, "raetsch_titanic": 1, "house_votes84": 20, "mushroom": 40}
"""Rows that a cell has at least, by table; the others are learnt from, and not asked for."""
MUSHROOM: Final = ["cap_shape", "cap_surface", "cap_color"]
VOTES: Final = ["immigration", "synfuels_corporation_cutback", "handicapped_infants"]


@dataclass(frozen=True)
class Cells:
    """Cells of a cross-table, one column hidden or none, and the frequency of the last class."""

    X: pd.DataFrame
    frequency: np.ndarray
    size: np.ndarray
    """Rows of the table in every cell."""

    @property
    def share(self) -> np.ndarray:
        """Of the rows of the table, among those of all these cells."""
        return self.size / self.size.sum()


@dataclass(frozen=True)
class CrossTable:
    """All rows of a table that was cut to a few columns, and whether each is of the last class."""

    X: pd.DataFrame
    y: np.ndarray
    least: int

    @classmethod
    def of(cls, name: str) -> CrossTable:
        """A table by its name, without the rows that lack a cell."""
        data = load(name)
        X, y = _cut(name, data.X), np.asarray(data.y, dtype=str)
        for column in X.select_dtypes(exclude="number"):
            X[column] = X[column].astype(str).where(X[column].notna()).astype("category")
        whole = X.notna().all(axis=1).to_numpy()
        return cls(
            X[whole].reset_index(drop=True),
            (y[whole] == np.unique(y)[-1]).astype(int),
            MIN_COUNTS[name],
        )

    def drawn(self, n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
        """Rows and labels to learn from, of two classes."""
        rows = rng.integers(self.y.size, size=n)
        while np.unique(self.y[rows]).size < 2:
            rows = rng.integers(self.y.size, size=n)
        return self.X.iloc[rows].reset_index(drop=True), self.y[rows]

    def cells(self) -> Iterator[tuple[str | None, Cells]]:
        """Cells by the column that is hidden, None for none."""
        for hidden in (None, *self.X):
            known = [column for column in self.X if column != hidden]
            of_cell = self.X.assign(y=self.y).groupby(known, observed=True)["y"]
            found = of_cell.agg(["mean", "size"]).reset_index()
            found = found[found["size"] >= self.least].reset_index(drop=True)
            empty = self.X[:1].reindex([-1] * len(found)).reset_index(drop=True)
            X = empty.assign(**{column: found[column] for column in known})
            yield hidden, Cells(X, found["mean"].to_numpy(), found["size"].to_numpy())


def _cut(name: str, X: pd.DataFrame) -> pd.DataFrame:
    """The columns of a cross-table."""
    if name == "adult":
        tens = X["age"] // 10 * 10
        return X[["sex", "marital_status", "education"]].assign(age=tens.astype(float))
    if name == "raetsch_titanic":  # whose numbers stand for classes of passengers
        return X.round(2).astype(str)
    return X[VOTES if name == "house_votes84" else MUSHROOM].copy()
