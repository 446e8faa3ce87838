"""Learns the columns of a table, and sums over its rows, block by block."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from jaxtyping import Float

from bayesrbf.base.rows import Observations, Standardisation
from bayesrbf.table.columns import Columns, Kind, sorted_levels
from bayesrbf.table.order import ColumnMoments, column_moments, unit_of

Content = tuple[Kind | None, tuple[object, ...]]
"""Kind of a column, None where it has no cell, and its levels."""


def joined_columns(one: Columns, other: Columns) -> Columns:
    """The columns of the rows of two blocks, without masks and atoms.

    A column that is empty in one block is what it is in the other. ValueError if the blocks have
    other columns, TypeError if a column holds another kind of cells.

    >>> from bayesrbf.table import learn_columns
    >>> joined_columns(learn_columns([[1.5, "b"]]), learn_columns([[None, "a"]])).levels
    (('a', 'b'),)
    """
    if one.names != other.names:
        raise ValueError(
            "All blocks of X must have the same columns in the same order; received "
            f"{', '.join(map(repr, one.names[:20]))} and {', '.join(map(repr, other.names[:20]))}."
        )
    contents = list(map(_joined, one.names, _contents(one), _contents(other)))
    return replace(
        one,
        kinds=tuple(kind or "empty" for kind, _ in contents),
        levels=tuple(levels for kind, levels in contents if kind == "categorical"),
        missing=tuple(map(sum, zip(one.missing, other.missing, strict=True))),
    )


def _contents(columns: Columns) -> list[Content]:
    """Kind and levels of every column."""
    levels = dict(zip(columns.categorical_positions, columns.levels, strict=True))
    kinds = enumerate(columns.kinds)
    return [(None if at in columns.empty else kind, levels.get(at, ())) for at, kind in kinds]


def _joined(name: str, one: Content, other: Content) -> Content:
    """Kind and levels of a column in both blocks."""
    if one[0] is None or other[0] is None or one == other:
        return other if one[0] is None else one
    together = one[1] + other[1]
    types = {type(level) if isinstance(level, str | bool) else float for level in together}
    if one[0] != other[0] or len(types) > 1:
        raise TypeError(
            f"Column {name!r} holds other kinds of cells in some blocks of X than in others "
            f"({one[0]} and {other[0]}); make every cell text to read the column as categories, or "
            "every cell a number (NaN where missing)."
        )
    return one[0], sorted_levels(together)


@dataclass(frozen=True)
class RowSums:
    """Sums over rows that units, priors and sampling ask for."""

    by_label: Float[np.ndarray, " label"]
    """Weight of the rows of every class, and last of those without a label."""
    reals: tuple[ColumnMoments, ...]
    levels: tuple[Float[np.ndarray, " _"], ...]
    """Weight of every level of every categorical column."""

    @classmethod
    def of(cls, rows: Observations, n_levels: tuple[int, ...], n_classes: int) -> Self:
        """Sums over some rows."""
        observed = [codes >= 0 for codes in rows.codes.T]
        return cls(
            _counts(rows.labels % (n_classes + 1), rows.weights, n_classes + 1),
            tuple(column_moments(column, rows.weights) for column in rows.real.T),
            tuple(
                _counts(codes[present], rows.weights[present], size)
                for codes, present, size in zip(rows.codes.T, observed, n_levels, strict=True)
            ),
        )

    def joined(self, other: Self) -> Self:
        """Sums over the rows of both."""
        return replace(
            self,
            by_label=self.by_label + other.by_label,
            reals=tuple(map(ColumnMoments.joined, self.reals, other.reals)),
            levels=tuple(map(np.add, self.levels, other.levels)),
        )

    @property
    def units(self) -> Standardisation:
        """Location and scale of the real columns, as of the whole table."""
        pairs = [unit_of(moments, place) for place, moments in enumerate(self.reals)]
        location, scale = np.array(pairs, dtype=np.float64).reshape(-1, 2).T.copy()
        return Standardisation(location, scale)

    @property
    def marginals(self) -> tuple[Float[np.ndarray, " _"], ...]:
        """Smoothed level frequencies, as of the whole table."""
        return tuple((counts + 0.5) / (counts + 0.5).sum() for counts in self.levels)


def _counts(codes: np.ndarray, weights: np.ndarray, size: int) -> Float[np.ndarray, " _"]:
    """Weight of every code; NumPy gives integers where there is no row."""
    return np.bincount(codes, weights, size).astype(np.float64)
