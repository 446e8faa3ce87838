"""A new table beside the training table: what has changed, in figures and sentences."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.stats import false_discovery_control, norm
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from bayesrbf import MixtureDensity, table
from bayesrbf.answers.probabilities import adapt_prior
from bayesrbf.app.changes import Change, changed_columns, tail_of_unseen
from bayesrbf.app.remarks import Remark, Topic, advice, lines_of_remarks
from bayesrbf.app.tails import tails_beside
from bayesrbf.app.words import (
    cell_text,
    clipped,
    count,
    ends,
    listing,
    number,
    percent,
    plural,
    row_name,
)
from bayesrbf.fit.asking import missingness_changes, tail_of_count
from bayesrbf.reading.notes import ColumnWarning
from bayesrbf.reading.noticing import KnownLevels
from bayesrbf.table.columns import Columns, as_levels, meant
from bayesrbf.table.containers import read_cells
from bayesrbf.table.encode import decode

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.families.classifier import Classifier
    from bayesrbf.families.estimator import Estimator


# The cells that an estimator was fitted to, new cells beside them, and how usual both are.


OPEN_WIDTH: Final = 0.8
"""Width of an interval of a probability beyond which it leaves every answer open."""
NOVEL_ROW: Final = 0.99
"""Novelty above which a row is called novel; of the model's own rows 1 in 100 has more."""
DRIFT_FOLDS: Final = 5
DRIFT_COMPONENTS: Final = 3


def loaded[E: Estimator](estimator: E | str | PathLike[str]) -> E:
    """The fitted estimator, or the one in the file that ``save`` wrote."""
    if isinstance(estimator, str | PathLike):
        from bayesrbf import load

        loaded_estimator: E = load(estimator)
        return loaded_estimator
    return estimator


def training_cells(estimator: Estimator) -> pd.DataFrame:
    """The cells of the training rows, from the estimator, as a frame."""
    columns, rows = estimator.columns_, estimator.rows_
    like = pd.DataFrame(columns=list(columns.names))
    like = like.astype(dict.fromkeys(columns.number_names, float))  # in numbers, not their texts
    cells: pd.DataFrame = decode(rows.real, rows.codes, columns, like)
    for name, levels in columns.levels_of.items():
        texts = cells[name].astype(object).where(cells[name].notna(), None)
        cells[name] = as_levels(texts.to_numpy(), levels)
    return cells


def named_cells(X: Any, columns: Columns) -> pd.DataFrame:
    """Cells of a table as floats or levels, None where missing, under the training names.

    Levels are called as in training, however the table writes them.
    """
    cells = read_cells(X)
    if not cells.has_names and len(cells.columns) != len(columns.names):
        raise ValueError(
            f"X has {len(cells.columns)} columns and no names, and the estimator was fitted to "
            f"{len(columns.names)} columns; give as many, or a frame with their names."
        )
    index = X.index if isinstance(X, pd.DataFrame) else None
    names = cells.names if cells.has_names else columns.names
    kinds = columns.kind_of
    cells = cells.in_numbers({i: kinds[name] for i, name in enumerate(names) if name in kinds})
    named = dict(zip(names, cells.columns, strict=True))
    for position, name in enumerate(names):
        if name in columns.levels_of:
            named[name] = as_levels(cells.of_levels(position), columns.levels_of[name])
    return pd.DataFrame(named, index)


def as_classes(labels: pd.Series, classes: Sequence[object]) -> pd.Series:
    """Labels spelled as the names of their classes; labels of other classes are unchanged.

    A file in which labels are missing often has 1.0 for 1.

    >>> as_classes(pd.Series(["1.0", "0", None, "x"]), [0, 1]).tolist()
    ['1', '0', None, 'x']
    """
    known = KnownLevels(tuple(classes))
    names = {label: known.name(label) for label in set(labels.dropna())}
    texts = [names.get(label) for label in labels]
    return pd.Series(texts, labels.index, dtype=object, name=labels.name)


def observed_reals(column: pd.Series) -> np.ndarray:
    """Observed cells of a real column."""
    cells: np.ndarray = column.dropna().to_numpy(dtype=float)
    return cells


@dataclass(frozen=True)
class UsualCells:
    """Judgements of a density: each cell given the rest of its row, and the novelty of rows."""

    cells: xr.Dataset
    novelty: Float[np.ndarray, " obs"]

    @property
    def surprise(self) -> Float[np.ndarray, "obs column"]:
        """How surprising each cell is given the rest of its row, in nats; NaN where missing."""
        surprise: Float[np.ndarray, "obs column"] = -self.cells["log_tail"].to_numpy()
        return surprise


def judge_both(
    old: pd.DataFrame, new: pd.DataFrame, columns: Columns
) -> tuple[UsualCells, UsualCells]:
    """Judge old rows out of fold, and new rows by the density of all old rows.

    Levels that only one fold has are missing there.
    """
    import xarray as xr

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X has categories")  # that a fold alone has
        warnings.simplefilter("ignore", ColumnWarning)  # the fit of the estimator said so
        fold = np.random.default_rng(0).permutation(len(old)) % min(DRIFT_FOLDS, len(old))
        judged = [
            _judged(_density(old[fold != number], columns), old[fold == number])
            for number in np.unique(fold)
        ]
        order = np.argsort(np.argsort(fold, kind="stable"))
        held_out = UsualCells(
            xr.concat([fold_cells.cells for fold_cells in judged], dim="obs").isel(obs=order),
            np.concatenate([fold_cells.novelty for fold_cells in judged])[order],
        )
        return held_out, _judged(_density(old, columns), new)


def _density(table: pd.DataFrame, columns: Columns) -> MixtureDensity:
    """Mixture density of the cells of a table, without labels."""
    empty = [columns.names[position] for position in columns.empty]
    return MixtureDensity(
        DRIFT_COMPONENTS,
        column_transforms="power",
        point_masses="auto",
        n_init=1,
        max_iter=200,
        tol=1e-4,
        column_kinds={n: kind for n, kind in columns.kind_of.items() if n not in empty},
        random_state=0,
    ).fit(table)


def _judged(density: MixtureDensity, rows: pd.DataFrame) -> UsualCells:
    """Surprise of the cells and novelty of the rows under a density."""
    return UsualCells(density.surprise(rows), density.novelty(rows))


# Sentences on what changed between the training table and a new one.


DRIFT_BY_CHANCE: Final = 0.01
"""Probability, shared among the columns, with which chance alone is a finding."""
SHIFT_BY_CHANCE: Final = 0.003
"""Probability with which chance alone is a finding about rows or class frequencies, which rest on
models as well."""
ODD_CELLS_BY_CHANCE: Final = 0.05
"""Expected share of false discoveries among the cells that are named as odd."""
FAMILIAR: Final = 0.5
"""Familiarity below which a row is answered mostly as if its missing cells told nothing."""
UNUSUAL_ROW: Final = 0.95
"""Share of the training rows held out above whose novelty a row is unlike the training table."""
BROKEN: Final = ("grows", "exchanged", "unit")
"""Topics of columns whose cells no density can judge."""
LISTED_REMARKS: Final = 8
SHIFT_DRAWS: Final = 50
"""Draws over which class frequencies are estimated: their variance is known to about 20 %."""
MIN_FREQUENCY: Final = 1e-12
"""Floor of probabilities before logarithms, and of standard errors, so that none is 0."""

Pair = tuple[np.ndarray, np.ndarray]
"""Cells of a column in training, and now."""


def drift_remarks(estimator: Estimator, columns: Columns, cells: pd.DataFrame) -> list[Remark]:
    """All remarks on the drift of new cells from the training cells."""
    absent = [name for name in columns.names if name not in cells]
    extra = [name for name in cells if name not in columns.names]
    if len(absent) == len(columns.names):
        raise ValueError(
            f"X has none of the columns that the estimator was fitted to: {listing(columns.names)}."
        )
    old = training_cells(estimator)
    new = cells.assign(**{name: _absent(name, columns, len(cells)) for name in absent})
    new = new[list(columns.names)]
    present = [name for name in columns.names if name not in absent]
    changed = column_remarks(estimator, new, present)
    remarks = [*_columns(absent, extra), *changed]
    # A broken column would spoil the verdict on everything else: its cells are left out.
    broken = sorted({name for item in changed if item.topic in BROKEN for name in item.columns})
    rest = new.assign(**{name: _absent(name, columns, len(new)) for name in broken})
    levels = columns.levels_of.items()
    usual = rest.assign(**{n: rest[n].where(rest[n].isin(ls), None) for n, ls in levels})
    without = f" (without {listing([clipped(name, 24) for name in broken])})" if broken else ""
    remarks += _patterns(estimator, columns, usual)
    if usual.notna().to_numpy().any():
        held_out, judged = judge_both(old, usual, columns)
        remarks += _cells(usual, held_out, judged, without)
        remarks += _rows(usual.index, held_out, judged, without)
        if is_classifier(estimator):
            remarks += _class_frequencies(estimator, columns, usual, broken or absent, without)
    return remarks


def column_remarks(estimator: Estimator, new: pd.DataFrame, present: Sequence[str]) -> list[Remark]:
    """Remarks on columns of new cells one by one, which need no density.

    Where missing indicators are evidence, how often cells are missing comes first.
    """
    old, columns = training_cells(estimator), estimator.columns_
    growing = [name for name in present if columns.kind_of[name].grows]
    return [
        *_missing(estimator, new, present),
        *_levels(old, new, columns, present),
        *_grown(old, new, columns, growing),
        *_units(old, new, columns, [name for name in present if name not in growing]),
    ]


NEW_LEVELS: Final = "X has categories that were not seen at fit"
"""Start of a warning of predictions, in place of which :func:`changed` tells of every new level."""


def changed(estimator: Estimator, table: pd.DataFrame, skip: tuple[Topic, ...] = ()) -> list[str]:
    """Sentences on columns that changed beyond chance and what to do, and on all new levels.

    There are none of an empty table. Topics to ``skip`` were said elsewhere.
    """
    if table.empty:
        return []
    columns = estimator.columns_
    every = column_remarks(estimator, named_cells(table, columns), columns.names)
    remarks = [remark for remark in every if remark.topic not in skip]
    found = [f"Changed: {remark.sentence}" for remark in remarks if remark.is_finding]
    by_chance = [r.sentence for r in remarks if r.topic == "levels" and not r.is_finding]
    return [*found, *by_chance, *([advice(remarks)] if found else [])]


def _absent(name: str, columns: Columns, n_rows: int) -> np.ndarray:
    """A column whose cells are all missing."""
    numbers = name in columns.number_names
    return np.full(n_rows, np.nan) if numbers else np.full(n_rows, None, dtype=object)


def _columns(absent: Sequence[str], extra: Sequence[str]) -> Iterator[Remark]:
    """Absent columns, with the unknown column of the nearest name."""
    for name in absent:
        message = f"{name!r} is absent; all of its cells count as missing{renamed(name, extra)}."
        yield Remark("columns", message, columns=(name,))
    if extra:
        names = listing([repr(clipped(name, 24)) for name in extra], LISTED_REMARKS)
        yield Remark("columns", f"{names}: not a column of the model, and not looked at.", False)


def renamed(name: str, extra: Iterable[str]) -> str:
    """Suffix that names a column which may be the absent one, renamed; empty for none.

    >>> renamed("ward", ["bed", "WARD"]), renamed("ward", ["bed"])
    ("; 'WARD' is here and was not in training", '')
    """
    folded = {other.casefold(): other for other in extra}
    near = difflib.get_close_matches(name.casefold(), folded, n=1)
    return f"; {folded[near[0]]!r} is here and was not in training" if near else ""


def _levels(
    old: pd.DataFrame, new: pd.DataFrame, columns: Columns, present: Sequence[str]
) -> Iterator[Remark]:
    """Levels that training did not have."""
    for name, levels in columns.levels_of.items():
        if name not in present:
            continue
        cells, before = new[name].dropna(), old[name].dropna()
        counts = cells[~cells.isin(levels)].value_counts()
        if counts.empty:
            continue
        lost = len(set(before) - set(cells))
        chance = tail_of_unseen(counts.to_numpy(), lost, len(cells), len(before))
        is_finding = chance < DRIFT_BY_CHANCE
        unknown_levels = [f"{clipped(a, 24)!r} ({n}{meant(a, levels)})" for a, n in counts.items()]
        names = listing(unknown_levels)
        many = plural(int(counts.sum()), "cell")
        tail = "" if is_finding else "; so few may be chance"
        yield Remark(
            "levels",
            f"{clipped(name, 30)}: {many} of {len(cells)} at levels that training did not have, "
            f"{names}; they count as missing{tail}.",
            is_finding,
            (name,),
        )


def _missing(estimator: Estimator, new: pd.DataFrame, present: Sequence[str]) -> Iterator[Remark]:
    """Columns with more missing cells than in training; with fewer, too, where that is evidence."""
    columns, evidence = estimator.columns_, estimator.fitted_.uses_indicators
    positions = [columns.names.index(name) for name in present]
    before = estimator.fitted_.table.absent[:, positions]
    now = new[list(present)].isna().to_numpy()
    for change in missingness_changes(present, before, now, DRIFT_BY_CHANCE, together=evidence):
        if not (evidence or (change.alone and change.is_more)):
            continue
        as_evidence = "; the model takes it for a sign of the label" * evidence
        message = (
            f"{change.what} in {percent(change.now)} of the rows "
            f"({percent(change.before)} in training{as_evidence})."
        )
        topic: Topic = "reasons" if evidence else "missing"
        yield Remark(topic, message, columns=change.columns)


def _units(
    old: pd.DataFrame, new: pd.DataFrame, columns: Columns, present: Sequence[str]
) -> Iterator[Remark]:
    """Columns that were exchanged, or whose unit changed by a factor or an offset."""
    cells: dict[str, Pair] = {
        name: (observed_reals(old[name]), observed_reals(new[name]))
        for name in (columns.names[position] for position in columns.number_features)
        if name in present
    }
    for column_change in changed_columns(cells):
        names = column_change.columns
        pairs = [cells[name] for name in names]
        if column_change.change is not None:
            message = _of_change(names[0], column_change.change, pairs[0])
            yield Remark("unit", message, columns=names)
            continue
        first, second = (clipped(name, 30) for name in names)
        middles = " and ".join(map(_middles, pairs))
        message = (
            f"{first} looks like what {second} was in training, and the other way round: "
            f"middle cells {middles}."
        )
        yield Remark("exchanged", message, columns=names)


def _grown(
    old: pd.DataFrame, new: pd.DataFrame, columns: Columns, growing: Sequence[str]
) -> Iterator[Remark]:
    """Columns such as dates beyond their training range; time passes, so this is no finding."""
    for name in growing:
        before, now = observed_reals(old[name]), observed_reals(new[name])
        if before.size and now.size and (now.max() > before.max() or now.min() < before.min()):
            write = columns.kind_of[name].written
            range_now, there = (f"{write(of.min())} to {write(of.max())}" for of in (now, before))
            message = (
                f"{clipped(name, 30)} is from {range_now}, in training from {there}: the model has "
                "not seen such cells."
            )
            yield Remark("grows", message, False, (name,))


def _middles(pair: Pair) -> str:
    """Medians of the training cells and of the new cells."""
    return f"{number(float(np.median(pair[1])))} (training {number(float(np.median(pair[0])))})"


def _of_change(name: str, change: Change, pair: Pair) -> str:
    """A change of unit in words."""
    unit = f" ({change.name})" if change.name else ""
    if change.scale == 1:
        difference = f"is {number(abs(change.offset))} {'higher' if change.offset > 0 else 'lower'}"
        difference = f"{difference} than it was{unit}"
    elif change.offset:
        difference = f"is in other units: {change.name}"
    else:
        larger = change.scale > 1
        factor = number(change.scale if larger else 1 / change.scale)
        difference = f"is about {factor} times too {'large' if larger else 'small'}{unit}"
    return (
        f"{clipped(name, 30)} {difference}: middle cell {_middles(pair)}. Undone, the distance "
        f"of the distributions is {number(change.after)}; it is {number(change.before)}."
    )


def _cells(
    new: pd.DataFrame, held_out: UsualCells, judged: UsualCells, without: str
) -> Iterator[Remark]:
    """Cells whose surprise stands out against the surprises of held-out training cells."""
    surprise, reference = judged.surprise, held_out.surprise
    observed = ~np.isnan(surprise)
    if not observed.any() or np.isnan(reference).all():
        return
    tails = np.ones(surprise.shape)
    tails[observed] = tails_beside(reference[~np.isnan(reference)], surprise[observed])
    odd = np.zeros(surprise.shape, dtype=bool)
    odd[observed] = false_discovery_control(tails[observed]) <= ODD_CELLS_BY_CHANCE
    if not odd.any():
        return
    expected = judged.cells["expected"].to_numpy()
    positions = np.argwhere(odd)
    positions = positions[np.argsort(-surprise[tuple(positions.T)], kind="stable")]
    names = listing(
        [
            f"row {row_name(new.index, row)} {clipped(new.columns[column], 24)} "
            f"{cell_text(new.iat[row, column])} (expected {cell_text(expected[row, column])})"
            for row, column in positions.tolist()
        ],
        LISTED_REMARKS,
    )
    verb = "stands" if len(positions) == 1 else "stand"
    yield Remark(
        "cells",
        f"{plural(len(positions), 'cell')} of {count(int(observed.sum()))} {verb} out at a false "
        f"discovery rate of {percent(ODD_CELLS_BY_CHANCE)}{without}: {names}.",
    )


def _rows(
    index: pd.Index, held_out: UsualCells, judged: UsualCells, without: str
) -> Iterator[Remark]:
    """Excess of novel rows over the share of novel rows among held-out training rows."""
    bound = float(np.quantile(held_out.novelty, UNUSUAL_ROW))
    novel, before = judged.novelty >= bound, held_out.novelty >= bound
    n_novel, n_before = int(novel.sum()), int(before.sum())
    if tail_of_count(n_novel, len(novel), n_before, len(before)) < SHIFT_BY_CHANCE:
        most = np.flatnonzero(novel)[np.argsort(-judged.novelty[novel], kind="stable")]
        names = listing([row_name(index, row) for row in most.tolist()], LISTED_REMARKS)
        yield Remark(
            "rows",
            f"{percent(n_novel / len(novel))} of the rows ({n_novel} of {len(novel)}) are as "
            f"unlike the training table as {percent(n_before / len(before))} of its own are, held "
            f"out{without}: rows {names}.",
        )


def _patterns(estimator: Estimator, columns: Columns, cells: pd.DataFrame) -> Iterator[Remark]:
    """Excess of rows with an unfamiliar missingness pattern over their share in training."""
    fit = estimator.fitted_
    if not fit.uses_indicators:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other remarks are about levels
        new = table.encode(cells, columns)
    strange, before = (fit.familiarity(rows) < FAMILIAR for rows in (new, fit.rows))
    if strange.any():
        n_strange, n_before = int(strange.sum()), int(before.sum())
        index = [row_name(cells.index, row) for row in np.flatnonzero(strange).tolist()]
        yield Remark(
            "patterns",
            f"{percent(n_strange / len(strange))} of the rows have missing cells in a pattern "
            f"unlike those of training ({percent(n_before / len(before))} there): rows "
            f"{listing(index, LISTED_REMARKS)}. They are answered mostly as if it told nothing.",
            tail_of_count(n_strange, len(strange), n_before, len(before)) < DRIFT_BY_CHANCE,
        )


def _class_frequencies(
    classifier: Classifier,
    columns: Columns,
    new: pd.DataFrame,
    left_out: Sequence[str],
    without: str,
) -> Iterator[Remark]:
    """Estimated class frequencies of the new rows, compared with the training frequencies."""
    if left_out and classifier.model_.density is None:
        why = "this model compares rows and does not sum out the columns that are left out"
        yield Remark("classes", f"Class frequencies were not judged: {why}.", is_finding=False)
        return
    # Names are left out where the estimator was fitted without.
    rows = new if columns.has_names else new.to_numpy(dtype=object)
    with warnings.catch_warnings():  # other remarks are about what is broken or left out
        warnings.filterwarnings("ignore", "Columns? '")
        estimate = classifier.estimate_prior(rows)
        now, before = estimate["probability"].to_numpy(), estimate["trained"].to_numpy()
        over_draws = _over_draws(classifier, rows, before)
    labelled = int((classifier.rows_.labels >= 0).sum())
    of_new = estimate["standard_error"].to_numpy() ** 2 + over_draws
    error = np.sqrt(of_new + before * (1 - before) / labelled)
    tests = 1 if len(now) == 2 else len(now)
    half = float(norm.isf(SHIFT_BY_CHANCE / (2 * tests))) * np.maximum(error, MIN_FREQUENCY)
    lower, upper = np.maximum(now - half, 0.0), np.minimum(now + half, 1.0)
    is_finding = bool(((before < lower) | (upper < before)).any())
    figures = [
        f"{clipped(label, 24)} {percent(q)} ({ends(low, high, percent)}; training {percent(p)})"
        for label, q, low, high, p in zip(
            classifier.classes_, now, lower, upper, before, strict=True
        )
    ]
    message = "No change of the class frequencies is seen beyond chance"
    if not is_finding and bool((upper - lower > OPEN_WIDTH).all()):
        unknown = "Class frequencies cannot be told from these rows without their labels"
        yield Remark("classes", f"{unknown}{without}.", is_finding)
        return
    if is_finding:
        message = "The estimated class frequencies differ from training"
    yield Remark(
        "classes",
        f"{message}{without}; estimates with intervals of {percent(1 - SHIFT_BY_CHANCE)}, which "
        f"count the chance in training: {listing(figures, LISTED_REMARKS)}.",
        is_finding,
    )


def _over_draws(classifier: Classifier, new: object, trained: np.ndarray) -> np.ndarray:
    """Variance of the estimated frequencies over draws of the model; 0 where there are none."""
    if classifier.draws_ is None:
        return np.zeros(trained.size)
    drawn = classifier.predict_posterior(new)["predictions"]["probability"].to_numpy()
    drawn = drawn.reshape(-1, *drawn.shape[-2:])
    draws = drawn[:: max(1, len(drawn) // SHIFT_DRAWS)]
    estimates = [adapt_prior(np.log(np.maximum(p, MIN_FREQUENCY)), trained).prior for p in draws]
    variance: np.ndarray = np.var(estimates, axis=0)
    return variance


# A new table held against the training table: the check, and what it returns.


@dataclass(frozen=True)
class DriftCheck:
    """Differences between new rows and the training table; the result of :func:`check`.

    ``print`` shows it as text.

    Attributes
    ----------
    rows : int
        Number of new rows.
    remarks : tuple of Remark
        What was noticed, as records with ``topic``, ``sentence``, the ``columns`` of the model that
        it is about, and ``is_finding``: whether chance does not explain it.
    """

    rows: int
    remarks: tuple[Remark, ...]

    @property
    def advice(self) -> str:
        """What to do about the findings; to use the model where there is none."""
        return advice(self.remarks)

    @property
    def findings(self) -> tuple[Remark, ...]:
        """The remarks that chance does not explain."""
        return tuple(remark for remark in self.remarks if remark.is_finding)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values."""
        return asdict(self) | {"advice": self.advice}

    def __str__(self) -> str:
        return "\n".join([plural(self.rows, "row"), *lines_of_remarks(self.remarks, self.advice)])


def check(estimator: Estimator | str | PathLike[str], X: object) -> DriftCheck:
    """Hold new rows against the training table: what differs, and what chance does not explain.

    Looks for absent columns, levels that training did not have, more missing cells, columns that
    were exchanged or are in other units, cells and rows that stand out, and, where the estimator
    is a classifier, class frequencies that changed. No labels are needed.

    Parameters
    ----------
    estimator : fitted estimator or path-like
        What was fitted, or a file that ``save`` wrote. It holds the training table.
    X : array-like or frame of shape (n_obs, n_columns)
        New rows. Columns are found by name: one that is absent counts as missing, and one that
        the estimator does not know is not looked at.

    Returns
    -------
    DriftCheck
        A frozen record: ``findings`` are beyond chance, ``advice`` says what to do about them,
        ``remarks`` has everything, ``print`` shows it, and ``to_dict`` has it as plain values.

    Raises
    ------
    ValueError
        If X cannot be read or has none of the columns, or if the estimator compares rows by a
        metric that knows no columns.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import bayesrbf
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = bayesrbf.HybridMixtureClassifier(1, cv=3, random_state=0).fit(X[::2], y[::2])
    >>> bayesrbf.check(model, X[1::2]).findings
    ()
    >>> inches = X[1::2].assign(**{"petal length (cm)": X["petal length (cm)"] / 2.54})
    >>> [one.topic for one in bayesrbf.check(model, inches).findings]
    ['unit']
    """
    fitted: Estimator = loaded(estimator)
    check_is_fitted(fitted)
    columns = _columns_of(fitted)
    cells = named_cells(X, columns)
    remarks = drift_remarks(fitted, columns, cells)
    return DriftCheck(len(cells), tuple(remarks))


def _columns_of(estimator: Estimator) -> Columns:
    """Columns of the training table; an error where rows are compared whole."""
    try:
        return estimator.columns_
    except AttributeError:
        raise ValueError(
            f"check compares columns, and this {type(estimator).__name__} compares whole rows by "
            "a metric that knows none; check the table by an estimator that has columns."
        ) from None
