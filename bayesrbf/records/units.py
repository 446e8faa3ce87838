"""Units: rows that stay on one side of every split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.records.stored import Requirements, stored, within


@stored
class Units:
    """The unit of every row: copies of a row, or rows of one group, are one unit."""

    numbers: Int[np.ndarray, " obs"]
    """Rows of one number are one unit."""
    counts: Float[np.ndarray, " obs"]
    """How many units a row stands for: a part of one where a unit has several rows, several where
    equal rows of different units are one row."""

    @classmethod
    def of(cls, numbers: Int[np.ndarray, " obs"]) -> Units:
        """Units of rows that are not merged: every row is an equal part of its unit.

        >>> Units.of(np.array([0, 0, 1])).counts
        array([0.5, 0.5, 1. ])
        """
        codes, sizes = np.unique(numbers, return_inverse=True, return_counts=True)[1:]
        return cls(codes, 1.0 / sizes[codes])

    def take(self, rows: np.ndarray | slice) -> Units:
        """Units of some rows."""
        return Units(self.numbers[rows], self.counts[rows])

    @property
    def split(self) -> Bool[np.ndarray, " obs"]:
        """Rows that are a part of a unit only."""
        return self.counts < 1 - 1e-6  # parts that were added up are one but for rounding

    def together(self, rows: np.ndarray) -> Bool[np.ndarray, " obs"]:
        """Whether a row is of the same unit as some of the given rows."""
        return np.isin(self.numbers, self.numbers[rows])

    def __laws__(self) -> Requirements:
        yield self.numbers.shape == self.counts.shape, "a number and a count of every row"
        yield (
            within(self.numbers, 0) and within(self.counts, 0),
            "numbers and counts from 0 on",
        )


def joined_units(parts: Sequence[tuple[Units | None, int]]) -> Units | None:
    """Units of the rows of several parts of a table, given with their numbers of rows."""
    given = [units for units, _ in parts if units is not None]
    if not given:
        return None
    free = 1 + max(int(units.numbers.max(initial=-1)) for units in given)
    every = []
    for units, n in parts:
        every.append(Units(free + np.arange(n), np.ones(n)) if units is None else units)
        free += n
    return Units(
        np.concatenate([units.numbers for units in every]),
        np.concatenate([units.counts for units in every]),
    )


def copies_sentence(repeated: int) -> str:
    """How many rows are copies of an earlier one, and how they are held out.

    >>> copies_sentence(1)
    '1 row equals an earlier row in every cell, beyond chance: no split has copies on both sides.'
    """
    who = "1 row equals" if repeated == 1 else f"{repeated} rows equal"
    beyond = "beyond chance: no split has copies on both sides"
    return f"{who} an earlier row in every cell, {beyond}."
