"""A registry of mixed columns, holes and hidden labels, and ways to cut it into blocks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd

ROWS = 260


def registry(rows: int = ROWS, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Two classes of two components each, a tenth of the cells and a fifth of the labels hidden."""
    rng = np.random.default_rng(seed)
    own = rng.integers(0, 4, rows)
    table = pd.DataFrame(
        {
            "age": 50 + 9 * own + 4 * rng.normal(size=rows),
            "dose": 1e-3 * (rng.normal(size=rows) + (own % 2)),
            "site": np.array(["north", "south", "west"])[(own + rng.integers(0, 2, rows)) % 3],
            "smokes": np.where(rng.random(rows) < 0.2 + 0.2 * own, "yes", "no"),
            "visits": rng.poisson(1 + 2 * own).astype(float),
            "grade": np.clip(own + rng.integers(-1, 2, rows), 0, 3).astype(float),
        }
    )
    for column in table:
        table.loc[rng.random(rows) < 0.1, column] = None
    labels = pd.Series(np.where(own > 1, "ill", "well"), dtype=object)
    labels[rng.random(rows) < 0.2] = None
    return table, labels


def in_partitions(table: Any, ends: Sequence[int]) -> Any:
    """A frame or series of Dask with partitions that end at these rows."""
    parts = [table.iloc[a:b] for a, b in pairwise([0, *ends, len(table)])]
    return dd.from_map(_same, parts, meta=table.iloc[:0], enforce_metadata=False)


def _same(part: Any) -> Any:
    """A partition as it is."""
    return part


def chunkings() -> list[list[int]]:
    """Where partitions end: every kind of odd block among them."""
    rng = np.random.default_rng(7)
    some = [np.sort(rng.integers(0, ROWS, rng.integers(1, 9))).tolist() for _ in range(13)]
    alone = [[0], [ROWS], [1], [ROWS - 1], [0, 0, 1, 1, 2, 130], list(range(0, ROWS, 20))]
    return [*some, *alone, [5, 5, 9, 200]]


def odd_order() -> np.ndarray:
    """Rows so that some blocks have one class only, no label, or no observed cell of a column."""
    table, labels = registry()
    return np.lexsort([table["age"].isna(), labels.fillna("")])
