"""Hypothesis strategies of tables, in every container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import strategies as st

from bayesrbf.base.rows import Observations

SHARED = {"allow_nan": False, "allow_infinity": False}
reals = st.floats(-1e6, 1e6, **SHARED)
words = st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=1, max_size=4)


@dataclass(frozen=True)
class Sheet:
    """A table as plain Python columns, None where missing."""

    columns: dict[str, list[Any]]

    def kinds(self) -> tuple[str, ...]:
        """What each column must be taken for."""

        def kind(column: list[Any]) -> str:
            if all(cell is None for cell in column):
                return "empty"
            if any(isinstance(cell, str) for cell in column):
                return "categorical"
            return "yes or no" if any(isinstance(cell, bool) for cell in column) else "real"

        return tuple(map(kind, self.columns.values()))

    def numpy(self) -> np.ndarray:
        """The table as an array of objects."""
        rows = list(zip(*self.columns.values(), strict=True))
        array = np.empty((len(rows), len(self.columns)), dtype=object)
        array[:] = rows
        return array

    def pandas(self) -> pd.DataFrame:
        """The table as a pandas frame with the dtypes that pandas infers."""
        return pd.DataFrame(self.columns)

    def polars(self) -> pl.DataFrame:
        """The table as a polars frame with the dtypes that polars infers."""
        return pl.DataFrame(self.columns, strict=False)

    def take(self, rows: list[int]) -> Sheet:
        """Select rows."""
        return Sheet({name: [column[i] for i in rows] for name, column in self.columns.items()})


@st.composite
def sheets(draw: st.DrawFn, min_rows: int = 1, max_rows: int = 8) -> Sheet:
    """Tables of real, string and boolean columns with holes."""
    n_rows = draw(st.integers(min_rows, max_rows))
    cells = draw(st.lists(st.sampled_from([reals, words, st.booleans()]), min_size=1, max_size=4))
    return Sheet(
        {
            f"column {i}": draw(st.lists(st.none() | cell, min_size=n_rows, max_size=n_rows))
            for i, cell in enumerate(cells)
        }
    )


@st.composite
def observations(draw: st.DrawFn, max_rows: int = 10) -> Observations:
    """Rows with many ties, holes, hidden labels and weights, zero among them."""
    n, d, j = draw(st.tuples(st.integers(1, max_rows), st.integers(0, 2), st.integers(0, 2)))

    def table(values: list[Any], width: int, dtype: type) -> np.ndarray:
        size = n * width
        cells = draw(st.lists(st.sampled_from(values), min_size=size, max_size=size))
        return np.array(cells, dtype=dtype).reshape(n, width)

    return Observations(
        table([0.0, -0.0, 1.5, np.nan], d, np.float64),
        table([-1, 0, 1], j, np.intp),
        table([-1, 0], 1, np.intp)[:, 0],
        table([0.0, 0.1, 0.2, 0.3, 1.0], 1, np.float64)[:, 0],
    )
