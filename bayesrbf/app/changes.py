"""How the columns of a new table differ from those of an old one, beyond chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import binom, ks_2samp

from bayesrbf.fit.asking import tail_of_count

# Whether the cells of a new table look like those of an old one, column by column.
#
# Distributions are compared by the largest distance D between their functions (Kolmogorov and
# Smirnov). A change of the shares of the classes from p to q moves a column by at most
# :math:`D \le \frac12 \sum_c |q_c - p_c|`, so that only a D above one half is taken for a change of
# unit, and only where undoing the change makes it small.


FAR: Final = 0.5
"""Distance from which a column may have changed its unit."""
APART: Final = 0.25
"""Distance from which two columns may have been exchanged."""
UNDONE: Final = 1 / 3
"""Fraction of the distance that may remain when a change is undone."""
CHANCE: Final = 1.36
"""95 % quantile of Kolmogorov's distribution; times the root of 1/n + 1/m, of the distance."""
ERROR_RATE: Final = 0.01
"""Probability, shared among the columns, with which chance alone changes one."""
MIN_VALUES: Final = 5
"""Cells that a column needs before its distribution is judged."""
PLAIN: Final = 1.5
"""Factors nearer to 1 are none, unless they are known; a shift may be."""
AS_GOOD: Final = 0.05
"""Distance by which a known change may be worse than a free one."""

_RATIOS = (
    *(("a power of ten", 10.0**power) for power in (1, 2, 3, 4, 5, 6)),
    ("centimetres in an inch", 2.54),
    ("millimetres in an inch", 25.4),
    ("centimetres in a foot", 30.48),
    ("feet in a metre", 3.2808),
    ("pounds in a kilogram", 2.2046),
    ("grams in an ounce", 28.35),
    ("kilometres in a mile", 1.6093),
    ("days in a week", 7.0),
    ("months in a year", 12.0),
    ("hours in a day", 24.0),
    ("seconds in a minute", 60.0),
    ("days in a year", 365.25),
    ("seconds in an hour", 3600.0),
    ("joules in a calorie", 4.184),
    ("mg/dl in mmol/l of glucose", 18.016),
    ("mg/dl in mmol/l of cholesterol", 38.67),
    ("µmol/l in mg/dl of creatinine", 88.42),
    ("µmol/l in mg/dl of bilirubin", 17.1),
)


@dataclass(frozen=True)
class Change:
    """A column that is ``scale`` times what it was, plus ``offset``."""

    scale: float
    offset: float
    name: str = ""
    """Name of a known change of units; empty where the amount was estimated."""
    before: float = np.nan
    """Distance of the distributions as they are."""
    after: float = np.nan
    """Distance when the change is undone."""


KNOWN: Final = (
    *(Change(ratio, 0.0, name) for name, ratio in _RATIOS),
    *(Change(1 / ratio, 0.0, name) for name, ratio in _RATIOS),
    Change(1.8, 32.0, "degrees Fahrenheit in place of Celsius"),
    Change(1 / 1.8, -32 / 1.8, "degrees Celsius in place of Fahrenheit"),
    Change(1.0, 273.15, "kelvins in place of degrees Celsius"),
    Change(1.0, -273.15, "degrees Celsius in place of kelvins"),
)


@dataclass(frozen=True)
class ColumnChange:
    """A change of one column's unit, or an exchange of two columns."""

    columns: tuple[str, ...]
    change: Change | None
    """Change of the unit of the only column; None where two columns were exchanged."""


def changed_columns(
    cells: Mapping[str, tuple[Float[np.ndarray, " n"], Float[np.ndarray, " m"]]],
) -> tuple[ColumnChange, ...]:
    """Columns that were exchanged, then those whose unit changed, from their old and new cells.

    A column that was exchanged is in no other unit, so that all pairs are looked at first.

    >>> rng = np.random.default_rng(0)
    >>> age, weight = rng.normal(40, 3, 200), rng.normal(102, 8, 200)
    >>> changed_columns({"age": (age, weight), "weight": (weight, age)})
    (ColumnChange(columns=('age', 'weight'), change=None),)
    >>> [one] = changed_columns({"age": (age, 2.54 * age), "weight": (weight, weight)})
    >>> one.columns, one.change.name
    (('age',), 'centimetres in an inch')
    """
    level = ERROR_RATE / max(len(cells), 1)
    differing = [name for name, pair in cells.items() if differ(*pair, level)]
    changes, taken = [], set[str]()
    for first, second in combinations(differing, 2):
        before, now = zip(cells[first], cells[second], strict=True)
        if not taken & {first, second} and exchanged(before, now, level):
            taken |= {first, second}
            changes.append(ColumnChange((first, second), None))
    for name in differing:
        change = None if name in taken else change_of_unit(*cells[name], level)
        if change is not None:
            changes.append(ColumnChange((name,), change))
    return tuple(changes)


def distance(old: Float[np.ndarray, " n"], new: Float[np.ndarray, " m"]) -> float:
    """Largest distance between two distribution functions."""
    # Fifty times as fast as ks_2samp, which has a p-value, too: every prediction asks for this.
    cells = np.concatenate([old, new])
    shares = (np.searchsorted(np.sort(x), cells, side="right") / x.size for x in (old, new))
    return float(np.abs(np.subtract(*shares)).max())


def by_chance(old: Float[np.ndarray, " n"], new: Float[np.ndarray, " m"]) -> float:
    """95 % quantile of the distance of two samples of these sizes from one distribution."""
    return CHANCE * float(np.sqrt(1 / old.size + 1 / new.size))


def differ(old: Float[np.ndarray, " n"], new: Float[np.ndarray, " m"], level: float) -> bool:
    """Whether two samples differ in distribution (Kolmogorov-Smirnov); False for few cells."""
    if min(old.size, new.size) < MIN_VALUES:
        return False
    return bool(ks_2samp(old, new, method="auto").pvalue < level)


def change_of_unit(
    old: Float[np.ndarray, " n"], new: Float[np.ndarray, " m"], level: float
) -> Change | None:
    """The change of scale or offset that maps the old cells to the new ones; None for none.

    A factor leaves zeros alone, so it is judged by the sizes of the other cells.

    >>> rng = np.random.default_rng(0)
    >>> old, new = rng.normal(70, 10, 200), rng.normal(70, 10, 150)
    >>> change_of_unit(old, new, 0.01) is None
    True
    >>> change_of_unit(old, 1000 * new, 0.01).scale
    1000.0
    """
    measured = (_measured(change, old, new, level) for change in _explanations(old, new))
    candidates = [change for change in measured if change is not None]
    named = [change for change in candidates if change.name]
    if not named:
        return min(candidates, key=lambda change: (change.offset != 0, change.after), default=None)
    best = min(named, key=lambda change: change.after)
    least = min(change.after for change in candidates)
    return (
        best if best.after <= least + AS_GOOD else min(candidates, key=lambda change: change.after)
    )


def _explanations(old: np.ndarray, new: np.ndarray) -> Iterator[Change]:
    """Known changes, and the factor and the shift that match the medians."""
    yield from KNOWN
    sizes = [np.log(np.abs(cells[cells != 0])) for cells in (old, new)]
    if all(size.size for size in sizes):
        ratio = float(np.exp(np.median(sizes[1]) - np.median(sizes[0])))
        if abs(np.log(ratio)) > np.log(PLAIN):
            yield Change(ratio, 0.0)
    if old.size and new.size:
        yield Change(1.0, float(np.median(new) - np.median(old)))


def _measured(change: Change, old: np.ndarray, new: np.ndarray, level: float) -> Change | None:
    """The change with its distances; None unless undoing it removes a large distance."""
    undone = (new - change.offset) / change.scale
    if change.offset == 0:
        old, new, undone = (np.abs(cells[cells != 0]) for cells in (old, new, undone))
    if min(old.size, new.size) < MIN_VALUES:
        return None
    before, after = distance(old, new), distance(old, undone)
    if before < FAR or after > max(UNDONE * before, by_chance(old, new)):
        return None
    return replace(change, before=before, after=after) if differ(old, new, level) else None


def exchanged(
    old: tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n2"]],
    new: tuple[Float[np.ndarray, " m"], Float[np.ndarray, " m2"]],
    level: float,
) -> bool:
    """Whether two columns were exchanged: each matches the old cells of the other alone.

    >>> rng = np.random.default_rng(0)
    >>> age, weight = rng.normal(40, 10, 200), rng.normal(70, 10, 200)
    >>> exchanged((age, weight), (weight, age), 0.01), exchanged((age, weight), (age, weight), 0.01)
    (True, False)
    """
    same_column = list(zip(old, new, strict=True))
    cross = list(zip(old, reversed(new), strict=True))
    if not all(differ(*pair, level) for pair in same_column):
        return False
    near = [max(UNDONE * distance(*pair), by_chance(*pair)) for pair in same_column]
    return all(distance(*pair) >= APART for pair in same_column) and all(
        min(len(cells) for cells in pair) >= MIN_VALUES and distance(*pair) <= bound
        for pair, bound in zip(cross, near, strict=True)
    )


def tail_of_unseen(
    counts: Int[np.ndarray, " level"], n_lost: int, of: int, of_before: int
) -> float:
    """P-value of the unseen levels, if old and new cells were assigned at random.

    Either a level is too frequent to have been missed, or there are too many levels beside those
    that only the old cells have (``n_lost``). It is not shared among columns: only rare levels can
    be missed by chance, and few levels are rare.

    >>> tail_of_unseen(np.array([1]), 0, 100, 100)
    0.5
    >>> tail_of_unseen(np.array([12]), 0, 100, 100) < 0.001
    True
    """
    most = int(counts.max())
    frequent = tail_of_count(most, of, 0, of_before)
    all_of_them = binom.sf(counts.size - 1, counts.size + n_lost, of / (of + of_before))
    return float(min(frequent, all_of_them))
