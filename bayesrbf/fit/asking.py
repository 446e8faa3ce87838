"""New rows of a question, and how their columns compare with those of training."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, wraps
from itertools import combinations
from typing import Any, Final, Literal, Protocol, cast, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.stats import binom, hypergeom, ks_2samp
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesrbf import table
from bayesrbf.base.rows import Observations
from bayesrbf.fit.model import FittedModel
from bayesrbf.fit.table import FittedTable, TrainingTable
from bayesrbf.fit.updates import row_digests
from bayesrbf.reading.notes import warn
from bayesrbf.table.containers import missing_cells, read_cells

type Fit = FittedTable[FittedModel, object]

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
"""Part of the distance that may be left when a change is undone."""
CHANCE: Final = 1.36
"""Distance that chance exceeds in one of twenty tries, times the root of 1/n + 1/m."""
ERROR_RATE: Final = 0.01
"""Probability, shared among the columns, with which chance alone changes one."""
FEWEST: Final = 5
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
    moved = [name for name, pair in cells.items() if differ(*pair, level)]
    changes, taken = [], set[str]()
    for first, second in combinations(moved, 2):
        before, now = zip(cells[first], cells[second], strict=True)
        if not taken & {first, second} and exchanged(before, now, level):
            taken |= {first, second}
            changes.append(ColumnChange((first, second), None))
    for name in moved:
        change = None if name in taken else change_of_unit(*cells[name], level)
        if change is not None:
            changes.append(ColumnChange((name,), change))
    return tuple(changes)


def distance(old: Float[np.ndarray, " n"], new: Float[np.ndarray, " m"]) -> float:
    """Largest distance between two distribution functions."""
    # Fifty times as fast as ks_2samp, which has a p-value, too: every prediction asks for this.
    cells = np.concatenate([old, new])
    shares = (np.searchsorted(np.sort(one), cells, side="right") / one.size for one in (old, new))
    return float(np.abs(np.subtract(*shares)).max())


def by_chance(old: Float[np.ndarray, " n"], new: Float[np.ndarray, " m"]) -> float:
    """Distance that one of twenty pairs of such samples exceeds by chance."""
    return CHANCE * float(np.sqrt(1 / old.size + 1 / new.size))


def differ(old: Float[np.ndarray, " n"], new: Float[np.ndarray, " m"], level: float) -> bool:
    """Whether two samples are of different distributions; never where there are few cells."""
    if min(old.size, new.size) < FEWEST:
        return False
    return bool(ks_2samp(old, new, method="auto").pvalue < level)


def change_of_unit(
    old: Float[np.ndarray, " n"], new: Float[np.ndarray, " m"], level: float
) -> Change | None:
    """The change of scale or offset that explains why a column is not what it was; None for none.

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
    best, least = (
        min(named, key=lambda change: change.after),
        min(change.after for change in candidates),
    )
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
    """The change with its distances; None unless cells differ by much, and hardly when undone."""
    undone = (new - change.offset) / change.scale
    if change.offset == 0:
        old, new, undone = (np.abs(cells[cells != 0]) for cells in (old, new, undone))
    if min(old.size, new.size) < FEWEST:
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
    """Whether two columns were exchanged: each matches the other's old cells, and not its own.

    >>> rng = np.random.default_rng(0)
    >>> age, weight = rng.normal(40, 10, 200), rng.normal(70, 10, 200)
    >>> exchanged((age, weight), (weight, age), 0.01), exchanged((age, weight), (age, weight), 0.01)
    (True, False)
    """
    own = list(zip(old, new, strict=True))
    cross = list(zip(old, reversed(new), strict=True))
    if not all(differ(*pair, level) for pair in own):
        return False
    near = [max(UNDONE * distance(*pair), by_chance(*pair)) for pair in own]
    return all(distance(*pair) >= APART for pair in own) and all(
        min(len(cells) for cells in pair) >= FEWEST and distance(*pair) <= bound
        for pair, bound in zip(cross, near, strict=True)
    )


def tail_of_count(count: int, of: int, count_before: int, of_before: int) -> float:
    """Probability of at least so many of the new cells, were old and new ones dealt at random.

    >>> round(tail_of_count(20, 100, 5, 100), 5), tail_of_count(0, 100, 5, 100)
    (0.0011, 1.0)
    """
    everything, marked = of + of_before, count + count_before
    return float(min(1.0, hypergeom.sf(count - 1, everything, marked, of)))


def tail_of_unseen(
    counts: Int[np.ndarray, " level"], n_lost: int, of: int, of_before: int
) -> float:
    """Probability of levels that only the new cells have, were old and new ones dealt at random.

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


# New cells that are surely not as in training: in other units, exchanged, missing.


ENOUGH: Final = 10
"""Number of new cells from which a change of unit, and missing cells, are told."""
CHANCE_OF_CHANGE: Final = 1e-6
"""Probability that a change of unit is reported by chance alone."""
MORE: Final = 0.1
"""Share of the rows, beyond that in training, from which missing cells are told."""
NAMED: Final = 3
"""Columns, at most, that a sentence on a pattern names."""
GLANCED: Final = 1000
"""Training rows, about, that a column is first compared with."""
GLANCE: Final = 0.8
"""Part of the distance of a change, to those, from which it is compared with all."""

Pair = tuple[np.ndarray, np.ndarray]
"""Cells of a column in training, and now."""


def warn_of_columns(fit: Fit, new: Observations, X: object) -> None:
    """Warn once of columns that are surely not as in training: missing, other units, exchanged.

    Who asks about missing cells has more of them, so that these are told of a table X to be
    predicted only, and X is None else.
    """
    columns, old = fit.columns, fit.table.rows
    if new.n_obs < FEWEST:
        return
    numbers = list(columns.number_features.values())
    reals = [table.real_cells(rows.real, rows.codes, columns) for rows in (old, new)]
    old_cells, new_cells = (columns.decoded(real)[:, numbers] for real in reals)
    names = tuple(columns.names[position] for position in columns.number_features)
    changed = list(_changed(names, old_cells, new_cells))
    if changed:
        changed.append("Give every column as it was in training.")
    enough = X is not None and new.n_obs >= ENOUGH
    if sentences := list(_missing(fit, new, X) if enough else ()) + changed:
        warn(" ".join(sentences))


def _changed(
    names: tuple[str, ...],
    old: Float[np.ndarray, "row feature"],
    new: Float[np.ndarray, "obs feature"],
) -> Iterator[str]:
    """Real columns that are exchanged, as ``check`` finds them, or surely in another unit."""
    if not _far_off(old, new):
        return
    pairs = zip(map(_observed, old.T), map(_observed, new.T), strict=True)
    cells = dict(zip(names, pairs, strict=True))
    for one in changed_columns(cells):
        if one.change is None:
            yield _of_exchange(one.columns, [cells[name] for name in one.columns])
        else:
            (name,) = one.columns
            if _is_apart(*cells[name]) and differ(*cells[name], CHANCE_OF_CHANGE):
                yield _of_change(name, one.change, *cells[name])


def _missing(fit: Fit, new: Observations, X: object) -> Iterator[str]:
    """Cells that are missing in other columns, or in other patterns, than in training."""
    columns = fit.columns
    absent, before = (~table.observed_cells(rows, columns) for rows in (new, fit.table.rows))
    evidence = fit.uses_indicators
    level = CHANCE_OF_CHANGE, MORE
    changes = missingness_changes(columns.names, before, absent, *level, together=evidence)
    cells = read_cells(X).columns if any(one.is_more for one in changes) else ()
    for change in changes:
        (name,) = change.columns if change.alone else ("",)
        if change.is_more and change.alone:
            now = missing_cells(cells[columns.names.index(name)])  # without levels that are new
            change = replace(change, n_now=int(now.sum()))
            if change.now <= change.before + MORE:
                continue
        elif not evidence:
            continue
        yield change.sentence
    if evidence and changes:
        yield (
            "Missing indicators are evidence in this model: if cells are missing, or measured, for "
            "other reasons than in training, call assume_missingness('ignorable')."
        )


@dataclass(frozen=True)
class MissingnessChange:
    """Cells that are missing in a larger or smaller share of new rows than of training rows."""

    columns: tuple[str, ...]
    """One column; or all whose cells are missing in the rows, and no others are."""
    alone: bool
    """Whether it is about one column, whatever the others."""
    n_now: int
    of_now: int
    n_before: int
    of_before: int

    @property
    def now(self) -> float:
        """Share of the new rows."""
        return self.n_now / self.of_now

    @property
    def before(self) -> float:
        """Share of the training rows."""
        return self.n_before / self.of_before

    @property
    def is_more(self) -> bool:
        """Whether the share of new rows is larger."""
        return self.now > self.before

    @property
    def what(self) -> str:
        """Which cells are missing, in words."""
        if self.alone:
            return f"Column {self.columns[0]!r} is missing"
        if not self.columns:
            return "No cell is missing"
        named = " and ".join(map(repr, self.columns[:NAMED]))
        more = f" and {len(self.columns) - NAMED} more" * (len(self.columns) > NAMED)
        return (
            f"Column {named} alone is missing"
            if len(self.columns) == 1
            else (f"Columns {named}{more}, and no others, are missing")
        )

    @property
    def sentence(self) -> str:
        """The change in a sentence."""
        now, before = f"{self.now:.0%} of {self.of_now} rows", f"{self.before:.0%}"
        return f"{self.what} in {now}, in training in {before}."


def missingness_changes(
    names: Sequence[str],
    before: Bool[np.ndarray, "row column"],
    now: Bool[np.ndarray, "obs column"],
    chance: float,
    margin: float = 0.0,
    *,
    together: bool = True,
) -> list[MissingnessChange]:
    """Columns, then sets of columns, that are missing more or less often than in training.

    ``chance`` is the probability that rows alike are told apart, shared among the columns and among
    the sets; shares differ by more than the ``margin``. Sets are of columns that do not differ
    alone, and are compared where cells missing ``together`` matter: all patterns are sorted for it.

    >>> before = np.array([[True, True], [False, False]] * 200)
    >>> now = np.array([[True, False], [False, True]] * 100)
    >>> [one.sentence for one in missingness_changes("gh", before, now, 1e-6)][0]
    'No cell is missing in 0% of 200 rows, in training in 50%.'
    """
    sizes = len(now), len(before)

    def differ(counts: np.ndarray, level: float) -> Iterator[tuple[int, tuple[int, ...]]]:
        shares = counts / np.array(sizes)[:, None]
        for index in np.flatnonzero(np.abs(shares[0] - shares[1]) > margin).tolist():
            n_now, n_before = (int(count) for count in counts[:, index])
            more = n_now, sizes[0], n_before, sizes[1]
            fewer = sizes[0] - n_now, sizes[0], sizes[1] - n_before, sizes[1]
            if min(tail_of_count(*more), tail_of_count(*fewer)) < level:
                yield index, more

    if not min(sizes):
        return []
    of_columns = np.stack([rows.sum(axis=0) for rows in (now, before)])
    found = [
        MissingnessChange((names[index],), True, *counts)
        for index, counts in differ(of_columns, chance / max(1, len(names)))
    ]
    if not together:
        return found
    same = [i for i, name in enumerate(names) if (name,) not in {one.columns for one in found}]
    patterns, codes = np.unique(np.concatenate([now, before])[:, same], axis=0, return_inverse=True)
    of_patterns = np.stack(
        [np.bincount(some, minlength=len(patterns)) for some in np.split(codes, [sizes[0]])]
    )
    for index, counts in differ(of_patterns, chance / len(patterns)):
        missing = tuple(names[same[place]] for place in np.flatnonzero(patterns[index]))
        found.append(MissingnessChange(missing, False, *counts))
    return found


def _observed(cells: Float[np.ndarray, " n"]) -> Float[np.ndarray, " m"]:
    """Cells that are not missing."""
    return cells[~np.isnan(cells)]


def _far_off(old: Float[np.ndarray, "row feature"], new: Float[np.ndarray, "obs feature"]) -> bool:
    """Whether some column may have changed: a glance at some old rows, before all are compared."""
    some = old[:: max(1, len(old) // GLANCED)]
    pairs = ((_observed(before), _observed(now)) for before, now in zip(some.T, new.T, strict=True))
    apart = [
        (distance(before, now), by_chance(before, now))
        for before, now in pairs
        if min(before.size, now.size) >= FEWEST
    ]
    # An exchange moves two columns, less far than a change of unit moves one.
    moved = sum(far >= max(GLANCE * APART, chance) for far, chance in apart)
    return moved > 1 or any(far >= GLANCE * FAR for far, _ in apart)


def _is_apart(before: Float[np.ndarray, " n"], now: Float[np.ndarray, " m"]) -> bool:
    """Whether no new cell lies among the old ones, and there are enough of both."""
    outside = now.min() > before.max() or now.max() < before.min()
    return bool(outside) and min(now.size, before.size) >= ENOUGH


def _of_exchange(names: tuple[str, ...], pairs: list[Pair]) -> str:
    """Two exchanged columns in words."""
    now, before = (" and ".join(f"{np.median(pair[i]):.4g}" for pair in pairs) for i in (1, 0))
    return (
        f"Columns {' and '.join(map(repr, names))} look exchanged: their middle cells are {now}, "
        f"in training {before}."
    )


def _of_change(name: str, change: Change, before: np.ndarray, now: np.ndarray) -> str:
    """A change of unit in words."""
    cause = f" ({change.name})" if change.name else ""
    what = f"{abs(change.offset):.3g} {'more' if change.offset > 0 else 'less'}"
    if change.scale != 1 and not change.offset:
        size = max(change.scale, 1 / change.scale)
        what = f"{size:.3g} times {'larger' if change.scale > 1 else 'smaller'}"
    elif change.scale != 1:
        what = "on another scale"
    return (
        f"Column {name!r} is {what}{cause} than in training: its {now.size} cells lie between "
        f"{now.min():.4g} and {now.max():.4g}, those of training between {before.min():.4g} "
        f"and {before.max():.4g}."
    )


# Reads the rows of a question as the fit takes them.


@dataclass(frozen=True)
class NewRows:
    """New rows of a table, labels hidden."""

    cells: Observations
    given: object
    """The table as it came."""

    @property
    def names(self) -> Shaped[np.ndarray, " obs"]:
        """Names of the rows."""
        return table.row_names(self.given, self.cells.n_obs)


def new_rows(fit: Fit, X: object, *, holes: bool = False) -> NewRows:
    """Rows in the user's units; a warning if they have many ``holes``.

    It is for predictions: who asks about missing cells knows of them.
    """
    shell = column_shell(fit.table, X)
    if fit.table.whole is not None:
        return NewRows(fit.table.whole.read(X, shell, reset=False), X)
    table.as_frame(X)  # our own error for what is no table
    if len(getattr(X, "shape", (0, 0))) == 2:  # encode has the words for other shapes
        validate_data(shell, X, reset=False, skip_check_array=True)
    cells = table.encode(X, fit.columns, handle_unknown=fit.table.handle_unknown)
    warn_of_columns(fit, cells, X if holes else None)
    if fit.table.missingness == "ignorable":
        cells = table.without_indicators(cells, fit.columns)
    return NewRows(cells, X)


def known_rows(fit: Fit, X: object) -> tuple[Bool[np.ndarray, " obs"], Bool[np.ndarray, " obs"]]:
    """Which new rows equal training rows in every cell, and which equal rows of an update."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a prediction of the same rows gives them
        new = row_digests(new_rows(fit, X).cells, fit.table.columns)
    of_updates = [update.row_digests for update in fit.updates]
    updated = np.concatenate([np.empty(0, np.int64), *of_updates])
    return np.isin(new, row_digests(fit.rows, fit.table.columns)), np.isin(new, updated)


def column_shell(training: TrainingTable, X: object = None) -> BaseEstimator:
    """An estimator of the same name that knows the columns: scikit-learn compares those of X.

    Names that were numbers at fit are text in a file.
    """
    shell = _shells(training.owner)()
    shell.n_features_in_ = training.n_columns
    columns = training.columns
    if training.names is not None:
        shell.feature_names_in_ = training.names
    elif columns and list(getattr(X, "columns", ())) == list(columns.names):
        shell.feature_names_in_ = np.array(columns.names, dtype=object)
    return shell


@cache
def _shells(owner: str) -> type[BaseEstimator]:
    """The class of such estimators, made once: scikit-learn's errors have its name."""
    return type(owner, (BaseEstimator,), {})


# What an answer requires, and its refusal.


type Need = Literal["probabilities", "margins", "likelihood", "density", "columns", "rows", "draws"]
NEEDS: Final[Mapping[Need, str]] = {
    "probabilities": "class probabilities",
    "margins": "margins",
    "likelihood": "a likelihood",
    "density": "a density of the rows",
    "columns": "columns whose cells can be hidden",
    "rows": "the training rows in memory",
    "draws": "draws of the posterior",
}
"""Requirements of answers, in words."""


@runtime_checkable
class Lacking(Protocol):
    """An estimator, or its fit, that says what it lacks."""

    def __lacks__(self, need: str) -> str:
        """Why it lacks something, and how to mend it; empty where it has it."""


def refuse(asked: Lacking, answer: str, *needs: Need, error: type[Exception] = ValueError) -> None:
    """Refuse an answer that needs what an estimator, or its fit, lacks."""
    for need in needs:
        if why := asked.__lacks__(need):
            raise error(f"{answer} needs {NEEDS[need]}, and {why}.")


def requires[F: Callable[..., object]](*needs: Need) -> Callable[[F], F]:
    """Let a method of an estimator say what it needs.

    What the arguments exclude is an AttributeError, whose cause says why, so that ``hasattr``
    tells; what the fit lacks is a ValueError where the method is called.
    """

    def answer(method: F) -> F:
        @wraps(method)
        def asked(estimator: Any, /, *args: object, **options: object) -> object:
            check_is_fitted(estimator)
            refuse(estimator.fitted_, f"{type(estimator).__name__}.{method.__name__}()", *needs)
            return method(estimator, *args, **options)

        def available(estimator: Any) -> bool:
            name = f"{type(estimator).__name__}.{method.__name__}"
            refuse(estimator, name, *needs, error=AttributeError)
            return True

        return cast(F, available_if(available)(asked))

    return answer
