"""New rows of a question, and how their columns compare with those of training."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, wraps
from typing import Any, Final, Literal, Protocol, cast, runtime_checkable

import numpy as np
from jaxtyping import Bool, Shaped
from scipy.stats import hypergeom
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from bayesrbf import table
from bayesrbf.base.rows import Observations
from bayesrbf.fit.model import FittedModel
from bayesrbf.fit.table import FittedTable, TrainingTable
from bayesrbf.fit.updates import row_digests
from bayesrbf.reading.notes import listed, warn
from bayesrbf.table.containers import missing_cells, read_cells

type Fit = FittedTable[FittedModel, object]

# New cells that are surely not as in training: far outside of it, or missing.


MIN_ROWS: Final = 10
"""Minimum number of new rows for a warning about missing cells."""
CHANCE_OF_CHANGE: Final = 1e-6
"""Probability that more missing cells are reported by chance alone."""
MORE: Final = 0.1
"""Difference of the missing fraction from training above which there is a warning."""
NAMED: Final = 3
"""Maximum number of columns that a message on a pattern names."""


def warn_of_columns(fit: Fit, new: Observations, X: object) -> None:
    """Warn once of cells that are surely not as in training: far outside of it, or missing.

    X is None where the question is about missing cells: more of them are expected then.
    """
    enough = X is not None and new.n_obs >= MIN_ROWS
    if sentences := [*(_missing(fit, new, X) if enough else ()), *_far(fit, new)]:
        warn(" ".join(sentences))


def _far(fit: Fit, new: Observations) -> Iterator[str]:
    """One message for each column with new cells far outside of the training range."""
    columns, far = fit.columns, fit.extrapolation
    outside = far.outside(new) > 0
    for position, feature in columns.number_features.items():
        if not outside[:, feature].any():
            continue
        kind = columns.kinds[position]
        cells, bounds = (
            columns.decoded(reals)[:, feature]
            for reals in (new.real[outside[:, feature]], np.stack([far.low, far.high]))
        )
        low, high, nearest, furthest = (
            kind.written(float(number)) or f"{number:.4g}"
            for number in (*np.sort(bounds), *(cells.min(), cells.max()))
        )
        there = nearest if nearest == furthest else f"{nearest} to {furthest}"
        many = f"{cells.size} cell{'s' * (cells.size != 1)}"
        yield (
            f"Column {columns.names[position]!r} has {many} far outside of training, where it is "
            f"{low} to {high}: {there}."
        )


def _missing(fit: Fit, new: Observations, X: object) -> Iterator[str]:
    """Messages on columns, and sets of columns, missing more or less often than in training.

    Without missing indicators as evidence, only columns that are missing more often have a message.
    """
    columns = fit.columns
    absent, before = ~table.observed_cells(new, columns), fit.table.absent
    evidence = fit.uses_indicators
    changes = missingness_changes(
        columns.names, before, absent, chance=CHANCE_OF_CHANGE, margin=MORE, together=evidence
    )
    cells = read_cells(X).columns if any(change.is_more for change in changes) else ()
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


def tail_of_count(count: int, of: int, count_before: int, of_before: int) -> float:
    """Hypergeometric probability of ``count`` or more of the marked cells among the new ones.

    >>> round(tail_of_count(20, 100, 5, 100), 5), tail_of_count(0, 100, 5, 100)
    (0.0011, 1.0)
    """
    everything, marked = of + of_before, count + count_before
    return float(min(1.0, hypergeom.sf(count - 1, everything, marked, of)))


@dataclass(frozen=True)
class MissingnessChange:
    """Cells that are missing in a larger or smaller share of new rows than of training rows."""

    columns: tuple[str, ...]
    """A single column, or the whole set of columns that are missing in a pattern."""
    alone: bool
    """Whether the change is of one column, whatever the pattern of the others."""
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

    The shares of missing rows differ by more than ``margin``, and by more than chance: a change is
    found in rows of one distribution with about the probability ``chance``, among the columns, and
    again among the sets. In a row of a set all of its columns are missing, and no others among
    those that do not differ alone. Sets are compared only with ``together``: all patterns are
    sorted for it.

    >>> before = np.array([[True, True], [False, False]] * 200)
    >>> now = np.array([[True, False], [False, True]] * 100)
    >>> [one.sentence for one in missingness_changes("gh", before, now, 1e-6)][0]
    'No cell is missing in 0% of 200 rows, in training in 50%.'
    """
    sizes = len(now), len(before)

    def differ(counts: np.ndarray, level: float) -> Iterator[tuple[int, int, int]]:
        """Index, new count and training count where shares differ, by tests at ``level``."""
        shares = counts / np.array(sizes)[:, None]
        for index in np.flatnonzero(np.abs(shares[0] - shares[1]) > margin).tolist():
            n_now, n_before = (int(count) for count in counts[:, index])
            more = tail_of_count(n_now, sizes[0], n_before, sizes[1])
            fewer = tail_of_count(sizes[0] - n_now, sizes[0], sizes[1] - n_before, sizes[1])
            if min(more, fewer) < level:
                yield index, n_now, n_before

    if not min(sizes):
        return []
    of_columns = np.stack([rows.sum(axis=0) for rows in (now, before)])
    found = [
        MissingnessChange((names[index],), True, n_now, sizes[0], n_before, sizes[1])
        for index, n_now, n_before in differ(of_columns, chance / max(1, len(names)))
    ]
    if not together:
        return found
    changed = {change.columns for change in found}
    same = [i for i, name in enumerate(names) if (name,) not in changed]
    patterns, codes = np.unique(np.concatenate([now, before])[:, same], axis=0, return_inverse=True)
    by_table = np.split(codes, [sizes[0]])
    of_patterns = np.stack([np.bincount(group, minlength=len(patterns)) for group in by_table])
    for index, n_now, n_before in differ(of_patterns, chance / len(patterns)):
        missing = tuple(names[same[column]] for column in np.flatnonzero(patterns[index]))
        change = MissingnessChange(missing, False, n_now, sizes[0], n_before, sizes[1])
        found.append(change)
    return found


# Reads the rows of a question as the fit takes them.


@dataclass(frozen=True)
class NewRows:
    """New rows of a table, labels hidden."""

    cells: Observations
    X: object
    """The table as the user gave it."""

    @property
    def names(self) -> Shaped[np.ndarray, " obs"]:
        """Names of the rows."""
        return table.row_names(self.X, self.cells.n_obs)


def new_rows(fit: Fit, X: object, *, holes: bool = False) -> NewRows:
    """New rows, encoded in the user's units; a warning if cells are far outside of training.

    With ``holes`` there is a warning, too, if many cells are missing, as for predictions: who asks
    about missing cells knows of them.
    """
    shell = column_shell(fit.table, X)
    X = _known_columns(X, vars(shell).get("feature_names_in_"))
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


def _known_columns(X: object, known: Shaped[np.ndarray, " column"] | None) -> object:
    """The frame without columns that the fit does not have; a warning names these.

    It is unchanged where a column of the fit is missing: another may be a misspelling of it, and
    scikit-learn's error names both.
    """
    if known is None or (frame := table.as_frame(X)) is None:
        return X
    extra = [name for name in frame.columns if name not in known]
    if not extra or not set(known) <= set(frame.columns):
        return X
    warn(ignored_columns("X", extra))
    return frame.drop(extra).to_native()


def ignored_columns(owner: str, names: Sequence[str]) -> str:
    """Message on columns of new rows that the fit does not have."""
    quoted = listed([repr(name) for name in names], 8)
    return f"{owner} has columns that were not there at fit ({quoted}); they are not looked at."


def known_rows(fit: Fit, X: object) -> tuple[Bool[np.ndarray, " obs"], Bool[np.ndarray, " obs"]]:
    """Which new rows equal training rows in every cell, and which equal rows of an update."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a prediction of the same rows gives them
        new = row_digests(new_rows(fit, X).cells, fit.table.columns)
    of_updates = [update.row_digests for update in fit.updates]
    updated = np.concatenate([np.empty(0, np.int64), *of_updates])
    return np.isin(new, row_digests(fit.rows, fit.table.columns)), np.isin(new, updated)


def column_shell(training: TrainingTable, X: object = None) -> BaseEstimator:
    """Unfitted estimator with the names and number of the training columns, to check those of X.

    Its class has the name of the fitted estimator, which is in scikit-learn's errors. Names that
    were numbers at fit are text in a file: they are set only if the columns of X are equal to them.
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


type Need = Literal[
    "probabilities", "margins", "likelihood", "density", "columns", "rows", "draws", "prior"
]
NEEDS: Final[Mapping[Need, str]] = {
    "probabilities": "class probabilities",
    "margins": "margins",
    "likelihood": "a likelihood",
    "density": "a density of the rows",
    "columns": "columns whose cells can be hidden",
    "rows": "the training rows in memory",
    "draws": "draws of the posterior",
    "prior": "draws under a prior that can be raised to a power",
}
"""Requirements of answers, in words."""


@runtime_checkable
class Lacking(Protocol):
    """An estimator, or its fit, that says what it lacks."""

    def __lacks__(self, need: str) -> str:
        """Why it lacks something, and how to mend it; empty where it has it."""


def refuse(model: Lacking, answer: str, *needs: Need, error: type[Exception] = ValueError) -> None:
    """Refuse an answer that needs what an estimator, or its fit, lacks."""
    for need in needs:
        if why := model.__lacks__(need):
            raise error(f"{answer} needs {NEEDS[need]}, and {why}.")


def requires[F: Callable[..., object]](*needs: Need) -> Callable[[F], F]:
    """Decorator of an estimator's method that raises an error where a need is not met.

    What the arguments exclude is an AttributeError, whose cause says why, so that ``hasattr``
    tells; what the fit lacks is a ValueError where the method is called.
    """

    def answer(method: F) -> F:
        """The method with both checks: when ``hasattr`` looks for it, and at each call."""

        @wraps(method)
        def checked(estimator: Any, /, *args: object, **options: object) -> object:
            check_is_fitted(estimator)
            refuse(estimator.fitted_, f"{type(estimator).__name__}.{method.__name__}()", *needs)
            return method(estimator, *args, **options)

        def available(estimator: Any) -> bool:
            name = f"{type(estimator).__name__}.{method.__name__}"
            refuse(estimator, name, *needs, error=AttributeError)
            return True

        return cast(F, available_if(available)(checked))

    return answer
