r"""Associations between two columns of any kind: their strength, and a test against chance.

========================  =====================================  =====================
kinds                     measure, from 0 to 1                   test of independence
========================  =====================================  =====================
real and real             :math:`\lvert\rho\rvert` of the ranks  t
categorical and real      correlation ratio of the ranks         Kruskal and Wallis
both categorical          Cramér's V, without its bias           chi-squared or Fisher
========================  =====================================  =====================

All look at ranks or counts, so that neither a far cell nor a unit changes them. The correlation
ratio and V are corrected for what they are on average where nothing is associated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import chi2, fisher_exact, rankdata
from scipy.stats import t as student

FEWEST: Final = 10
"""Rows with both cells that a pair of columns needs."""
EXPECTED: Final = 5.0
"""Rows that independence must expect in every cell of a table of two categorical columns; rarer
levels are pooled until it does, because chi-squared takes chance for more where it does not."""

Column = Float[np.ndarray, " obs"] | Int[np.ndarray, " obs"]
"""A real column, missing cells NaN, or level codes of a categorical one, missing ones -1."""


@dataclass(frozen=True)
class Association:
    """Two columns that hang together."""

    first: int  # Position of a column, as is the second.
    second: int
    strength: float  # From 0 to 1.
    sign: int  # Of a rank correlation; 0 for other measures.
    measure: str  # In words.
    rows: int  # With both cells.
    chance: float  # Probability of so much where nothing is associated.


def associations(
    columns: Sequence[Column],
    pairs: Iterable[tuple[int, int]],
    level: float = 0.01,
    least: float = 0.0,
) -> tuple[Association, ...]:
    """The pairs beyond chance and not below a strength, the strongest first.

    A pair counts if its probability times the number of pairs looked at is below ``level``
    (Bonferroni): at most this share of the tables without any association yields a pair.

    >>> up = np.arange(20.0)
    >>> [pair] = associations([up, up**3, np.tile([0, 1], 10)], [(0, 1), (0, 2), (1, 2)])
    >>> pair.first, pair.second, pair.strength, pair.sign, pair.rows
    (0, 1, 1.0, 1, 20)
    """
    looked = list(pairs)
    candidates = [association for pair in looked for association in _associated(columns, *pair)]
    significant = [
        association
        for association in candidates
        if association.chance * len(looked) < level and association.strength >= least
    ]
    return tuple(sorted(significant, key=lambda association: -association.strength))


def _associated(columns: Sequence[Column], i: int, j: int) -> Iterator[Association]:
    """A pair of columns, where enough rows have both cells and neither is constant."""
    a, b = columns[i], columns[j]
    both = _observed(a) & _observed(b)
    n = int(both.sum())
    if n < FEWEST:
        return
    real = [column.dtype.kind == "f" for column in (a, b)]
    a, b = a[both], b[both]
    if any(np.all(column == column[0]) for column in (a, b)):
        return
    if all(real):
        rho, chance = _rank_correlation(a, b)
        yield Association(i, j, abs(rho), int(np.sign(rho)), "rank correlation", n, chance)
    elif any(real):
        values, codes = (a, b) if real[0] else (b, a)
        strength, chance = _correlation_ratio(values, _pooled(codes, EXPECTED))
        yield Association(i, j, strength, 0, "correlation ratio of ranks", n, chance)
    else:
        strength, chance = _cramer(_counts(a, b))
        yield Association(i, j, strength, 0, "Cramér's V", n, chance)


def _observed(column: Column) -> np.ndarray:
    """Whether a cell is there."""
    return np.isfinite(column) if column.dtype.kind == "f" else column >= 0


def _rank_correlation(
    a: Float[np.ndarray, " obs"], b: Float[np.ndarray, " obs"]
) -> tuple[float, float]:
    """Spearman's correlation, and the probability of one at least as far from 0 by chance."""
    rho = float(np.clip(np.corrcoef(rankdata(a), rankdata(b))[0, 1], -1.0, 1.0))
    freedom = a.size - 2
    # At |rho| = 1 the statistic is infinite; the floor makes it a large number, whose tail is 0.
    t = rho * np.sqrt(freedom / max(1 - rho**2, 1e-300))
    return rho, float(2 * student.sf(abs(t), freedom))


def _correlation_ratio(
    values: Float[np.ndarray, " obs"], codes: Int[np.ndarray, " obs"]
) -> tuple[float, float]:
    """Root of the share of the ranks' variance between levels, less what chance puts there."""
    ranks, n = rankdata(values), values.size
    sizes = np.bincount(codes)
    means = np.bincount(codes, ranks)[sizes > 0] / sizes[sizes > 0]
    sizes = sizes[sizes > 0]
    if sizes.size < 2:
        return 0.0, 1.0
    share = float(np.sum(sizes * (means - ranks.mean()) ** 2) / np.sum((ranks - ranks.mean()) ** 2))
    # Without association the share is (levels - 1) / (n - 1) in the mean, as R² is; adjusting
    # for the degrees of freedom takes it off. (n - 1) times the share is Kruskal and Wallis' H.
    unbiased = 1 - (1 - share) * (n - 1) / max(n - sizes.size, 1)
    return float(np.sqrt(np.clip(unbiased, 0, 1))), float(chi2.sf(share * (n - 1), sizes.size - 1))


def _cramer(counts: Int[np.ndarray, "level other"]) -> tuple[float, float]:
    """Cramér's V less its bias (Bergsma 2013), and the probability of so much by chance."""
    if min(counts.shape) < 2:
        return 0.0, 1.0
    n, (rows, columns) = counts.sum(), counts.shape
    expected = np.outer(counts.sum(1), counts.sum(0)) / n
    squared = float(np.sum((counts - expected) ** 2 / expected))
    freedom = (rows - 1) * (columns - 1)
    phi = max(0.0, squared / n - freedom / (n - 1))
    width = min(rows - (rows - 1) ** 2 / (n - 1), columns - (columns - 1) ** 2 / (n - 1)) - 1
    strength = float(np.sqrt(min(1.0, phi / max(width, 1e-300))))
    # Pooling ends at two by two, however few rows are expected there: the test is exact.
    if counts.shape == (2, 2):
        return strength, float(fisher_exact(counts).pvalue)
    return strength, float(chi2.sf(squared, freedom))


def _pooled(codes: Int[np.ndarray, " obs"], fewest: float) -> Int[np.ndarray, " obs"]:
    """Level codes whose levels of fewer rows are one; with the next rarest where that is rare."""
    sizes = np.bincount(codes)
    order = np.argsort(sizes, kind="stable")
    order = order[sizes[order] > 0]
    below = int(np.searchsorted(np.cumsum(sizes[order]) >= fewest, True)) + 1
    pooled = order[: max(below, int((sizes[order] < fewest).sum()))]
    place = np.arange(sizes.size)
    place[pooled] = pooled[0]
    return np.asarray(place[codes])


def _counts(
    a: Int[np.ndarray, " obs"], b: Int[np.ndarray, " obs"]
) -> Int[np.ndarray, "level other"]:
    """Rows by pair of levels; rare levels pooled until every pair expects rows enough."""
    a, b = (np.unique(codes, return_inverse=True)[1] for codes in (a, b))
    counts = np.bincount(a * (b.max() + 1) + b, minlength=(a.max() + 1) * (b.max() + 1))
    table = counts.reshape(a.max() + 1, b.max() + 1)
    while max(table.shape) > 2 and _least_expected(table) < EXPECTED:
        # Levels are merged along the longer side, so that neither column is left with a single one.
        if table.shape[0] < table.shape[1]:
            table = table.T
        order = np.argsort(table.sum(1), kind="stable")
        table = np.vstack([table[order[:2]].sum(0), table[order[2:]]])
    return table


def _least_expected(table: Int[np.ndarray, "level other"]) -> float:
    """The fewest rows that independence expects in a cell."""
    return float(table.sum(1).min() * table.sum(0).min() / table.sum())
