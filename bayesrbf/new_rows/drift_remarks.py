"""Sentences on what changed between the training table and a new one."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control, norm
from sklearn.base import is_classifier

from bayesrbf.new_rows.remarks import Remark
from bayesrbf.new_rows.training_cells import (
    UsualCells,
    as_trained,
    judge_both,
    observed_reals,
    training_cells,
)
from bayesrbf.posterior import two_tables
from bayesrbf.posterior.label_shift import adapt_prior
from bayesrbf.posterior.two_tables import Change, tail_of_count
from bayesrbf.reading.notation import date_of
from bayesrbf.report.words import (
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
from bayesrbf.table import Columns

if TYPE_CHECKING:
    from bayesrbf.estimators.classifier import Classifier
    from bayesrbf.estimators.estimator import Estimator

DRIFT_BY_CHANCE: Final = 0.01
"""Probability, shared among the columns, with which chance alone is a finding."""
SHIFT_BY_CHANCE: Final = 0.003
"""Probability with which chance alone is a finding about rows or class frequencies, which rest on
models as well."""
ODD_CELLS_BY_CHANCE: Final = 0.05
"""Of the cells that are named as odd, the share that may be wrong."""
UNUSUAL_ROW: Final = 0.95
"""Share of the training rows held out above whose novelty a row is unlike the training table."""
LISTED_REMARKS: Final = 8
SHIFT_DRAWS: Final = 50
"""Draws over which class frequencies are estimated."""
LEAST_FREQUENCY: Final = 1e-12

Pair = tuple[np.ndarray, np.ndarray]
"""Cells of a column in training, and now."""


def drift_remarks(
    estimator: Estimator, columns: Columns, cells: pd.DataFrame, dates: Sequence[str]
) -> list[Remark]:
    """Everything that is to be said of new cells beside those of training."""
    absent = [name for name in columns.names if name not in cells]
    extra = [name for name in cells if name not in columns.names]
    if len(absent) == len(columns.names):
        raise ValueError(
            f"X has none of the columns that the estimator was fitted to: {listing(columns.names)}."
        )
    old = training_cells(estimator)
    new = cells.assign(**{name: _absent(name, columns, len(cells)) for name in absent})
    new = new[list(columns.names)]
    here = [name for name in columns.names if name not in absent]
    remarks = [
        *_columns(absent, extra),
        *_levels(old, new, columns, here),
        *_missing(old, new, here),
    ]
    changes = [
        *_dates(old, new, [name for name in dates if name in here]),
        *_units(old, new, columns, [name for name in here if name not in dates]),
    ]
    remarks += [remark for _, remark in changes]
    broken = sorted({name for names, _ in changes for name in names})
    # A broken column would spoil the verdict on everything else: its cells are left out.
    rest = new.assign(**{name: _absent(name, columns, len(new)) for name in broken})
    levels = columns.levels_of.items()
    usual = rest.assign(**{n: rest[n].where(rest[n].isin(ls), None) for n, ls in levels})
    without = f" (without {listing([clipped(name, 24) for name in broken])})" if broken else ""
    if usual.notna().to_numpy().any():
        held_out, judged = judge_both(old, usual, columns)
        remarks += _cells(usual, held_out, judged, without)
        remarks += _rows(usual.index, held_out, judged, without)
        if is_classifier(estimator):
            remarks += _class_frequencies(estimator, columns, usual, broken or absent, without)
    return remarks


def _absent(name: str, columns: Columns, n_rows: int) -> np.ndarray:
    """A column without a cell."""
    numbers = columns.kinds[columns.names.index(name)] == "real"
    return np.full(n_rows, np.nan) if numbers else np.full(n_rows, None, dtype=object)


def _columns(absent: Sequence[str], extra: Sequence[str]) -> Iterator[Remark]:
    """Columns that lack, with the nearest name among those that the model does not know."""
    for name in absent:
        near = difflib.get_close_matches(name, extra, n=1)
        hint = f"; {near[0]!r} is here and was not in training" if near else ""
        yield Remark("columns", f"{name!r} is absent; all of its cells count as missing{hint}.")
    if extra:
        names = listing([repr(clipped(name, 24)) for name in extra], LISTED_REMARKS)
        yield Remark("columns", f"{names}: not a column of the model, and not looked at.", False)


def _levels(
    old: pd.DataFrame, new: pd.DataFrame, columns: Columns, here: Sequence[str]
) -> Iterator[Remark]:
    """Levels that training did not have."""
    for name, levels in columns.levels_of.items():
        if name not in here:
            continue
        cells, before = new[name].dropna(), old[name].dropna()
        counts = cells[~cells.isin(levels)].value_counts()
        if counts.empty:
            continue
        lost = len(set(before) - set(cells))
        chance = two_tables.tail_of_unseen(counts.to_numpy(), lost, len(cells), len(before))
        is_finding = chance < DRIFT_BY_CHANCE
        names = listing([f"{clipped(level, 24)!r} ({n})" for level, n in counts.items()])
        many = plural(int(counts.sum()), "cell")
        tail = "" if is_finding else "; so few may be chance"
        yield Remark(
            "levels",
            f"{clipped(name, 30)}: {many} of {len(cells)} at levels that training did not have, "
            f"{names}; they count as missing{tail}.",
            is_finding,
        )


def _missing(old: pd.DataFrame, new: pd.DataFrame, here: Sequence[str]) -> Iterator[Remark]:
    """Columns with more missing cells than in training."""
    for name in here:
        holes, before = int(new[name].isna().sum()), int(old[name].isna().sum())
        if tail_of_count(holes, len(new), before, len(old)) < DRIFT_BY_CHANCE / len(here):
            yield Remark(
                "missing",
                f"{clipped(name, 30)} is missing in {percent(holes / len(new))} of the rows "
                f"({percent(before / len(old))} in training).",
            )


def _units(
    old: pd.DataFrame, new: pd.DataFrame, columns: Columns, here: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], Remark]]:
    """Columns that were exchanged, or are off by a factor or a shift."""
    cells: dict[str, Pair] = {
        name: (observed_reals(old[name]), observed_reals(new[name]))
        for name in columns.real_names
        if name in here
    }
    for column_change in two_tables.changed_columns(cells):
        pairs = [cells[name] for name in column_change.columns]
        if column_change.change is not None:
            yield (
                column_change.columns,
                Remark(
                    "unit", _of_change(column_change.columns[0], column_change.change, pairs[0])
                ),
            )
            continue
        first, second = (clipped(name, 30) for name in column_change.columns)
        middles = " and ".join(map(_middles, pairs))
        sentence = (
            f"{first} looks like what {second} was in training, and the other way round: "
            f"middle cells {middles}."
        )
        yield column_change.columns, Remark("exchanged", sentence)


def _dates(
    old: pd.DataFrame, new: pd.DataFrame, dates: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], Remark]]:
    """Columns of dates that training did not reach: time passes, which is no finding."""
    for name in dates:
        before, now = observed_reals(old[name]), observed_reals(new[name])
        if before.size and now.size and (now.max() > before.max() or now.min() < before.min()):
            here, there = (f"{date_of(of.min())} to {date_of(of.max())}" for of in (now, before))
            sentence = (
                f"{clipped(name, 30)} is from {here}, in training from {there}: the model has not "
                "seen such dates."
            )
            yield (name,), Remark("dates", sentence, is_finding=False)


def _middles(pair: Pair) -> str:
    """Medians in training and now."""
    return f"{number(float(np.median(pair[1])))} (training {number(float(np.median(pair[0])))})"


def _of_change(name: str, change: Change, pair: Pair) -> str:
    """A change of unit in words."""
    unit = f" ({change.name})" if change.name else ""
    if change.scale == 1:
        what = f"is {number(abs(change.offset))} {'higher' if change.offset > 0 else 'lower'}"
        what = f"{what} than it was{unit}"
    elif change.offset:
        what = f"is in other units: {change.name}"
    else:
        larger = change.scale > 1
        factor = number(change.scale if larger else 1 / change.scale)
        what = f"is about {factor} times too {'large' if larger else 'small'}{unit}"
    return (
        f"{clipped(name, 30)} {what}: middle cell {_middles(pair)}. Undone, the distance "
        f"of the distributions is {number(change.after)}; it is {number(change.before)}."
    )


def _cells(
    new: pd.DataFrame, held_out: UsualCells, judged: UsualCells, without: str
) -> Iterator[Remark]:
    """Cells that stand out, beside how training cells did that were held out."""
    surprise, reference = judged.surprise, held_out.surprise
    observed = ~np.isnan(surprise)
    if not observed.any() or np.isnan(reference).all():
        return
    tails = np.ones(surprise.shape)
    tails[observed] = two_tables.tails_beside(reference[~np.isnan(reference)], surprise[observed])
    odd = np.zeros(surprise.shape, dtype=bool)
    odd[observed] = false_discovery_control(tails[observed]) <= ODD_CELLS_BY_CHANCE
    if not odd.any():
        return
    expected = judged.cells["expected"].to_numpy()
    places = np.argwhere(odd)
    places = places[np.argsort(-surprise[tuple(places.T)], kind="stable")]
    names = listing(
        [
            f"row {row_name(new.index, row)} {clipped(new.columns[column], 24)} "
            f"{cell_text(new.iat[row, column])} (expected {cell_text(expected[row, column])})"
            for row, column in places.tolist()
        ],
        LISTED_REMARKS,
    )
    verb = "stands" if len(places) == 1 else "stand"
    yield Remark(
        "cells",
        f"{plural(len(places), 'cell')} of {count(int(observed.sum()))} {verb} out at a false "
        f"discovery rate of {percent(ODD_CELLS_BY_CHANCE)}{without}: {names}.",
    )


def _rows(
    index: pd.Index, held_out: UsualCells, judged: UsualCells, without: str
) -> Iterator[Remark]:
    """Rows unlike the training table, beside how many of its own are, each held out."""
    bound = float(np.quantile(held_out.novelty, UNUSUAL_ROW))
    novel, before = judged.novelty >= bound, held_out.novelty >= bound
    counts = int(novel.sum()), len(novel), int(before.sum()), len(before)
    if tail_of_count(*counts) < SHIFT_BY_CHANCE:
        most = np.flatnonzero(novel)[np.argsort(-judged.novelty[novel], kind="stable")]
        names = listing([row_name(index, row) for row in most.tolist()], LISTED_REMARKS)
        yield Remark(
            "rows",
            f"{percent(counts[0] / counts[1])} of the rows ({counts[0]} of {counts[1]}) are as "
            f"unlike the training table as {percent(counts[2] / counts[3])} of its own are, held "
            f"out{without}: rows {names}.",
        )


def _class_frequencies(
    classifier: Classifier,
    columns: Columns,
    new: pd.DataFrame,
    left_out: Sequence[str],
    without: str,
) -> Iterator[Remark]:
    """Class frequencies of the new rows beside those of training."""
    if left_out and classifier.model_.density is None:
        why = "this model compares rows and does not sum out the columns that are left out"
        yield Remark("classes", f"Class frequencies were not judged: {why}.", is_finding=False)
        return
    rows = as_trained(new, columns)
    with warnings.catch_warnings():  # other remarks are about what is broken or left out
        warnings.filterwarnings("ignore", "Columns? '")
        estimate = copy(classifier).adapt_prior(rows)
        now, before = estimate["probability"].to_numpy(), estimate["trained"].to_numpy()
        over_draws = _over_draws(classifier, rows, before)
    labelled = int((classifier.rows_.labels >= 0).sum())
    of_new = estimate["standard_error"].to_numpy() ** 2 + over_draws
    error = np.sqrt(of_new + before * (1 - before) / labelled)
    tests = 1 if len(now) == 2 else len(now)
    half = float(norm.isf(SHIFT_BY_CHANCE / (2 * tests))) * np.maximum(error, LEAST_FREQUENCY)
    lower, upper = np.maximum(now - half, 0.0), np.minimum(now + half, 1.0)
    is_finding = bool(((before < lower) | (upper < before)).any())
    figures = [
        f"{clipped(label, 24)} {percent(q)} ({ends(low, high, percent)}; training {percent(p)})"
        for label, q, low, high, p in zip(
            classifier.classes_, now, lower, upper, before, strict=True
        )
    ]
    sentence = "No change of the class frequencies is seen beyond chance"
    if is_finding:
        sentence = "The estimated class frequencies differ from training"
    yield Remark(
        "classes",
        f"{sentence}{without}; estimates with intervals of {percent(1 - SHIFT_BY_CHANCE)}, which "
        f"count the chance in training: {listing(figures, LISTED_REMARKS)}.",
        is_finding,
    )


def _over_draws(classifier: Classifier, new: object, trained: np.ndarray) -> np.ndarray:
    """Variance of the estimated frequencies over draws of the model; 0 where there are none."""
    if classifier.draws_ is None:
        return np.zeros(trained.size)
    drawn = classifier.predict_posterior(new)["predictions"]["probability"].to_numpy()
    drawn = drawn.reshape(-1, *drawn.shape[-2:])
    some = drawn[:: max(1, len(drawn) // SHIFT_DRAWS)]
    estimates = [adapt_prior(np.log(np.maximum(p, LEAST_FREQUENCY)), trained).prior for p in some]
    variance: np.ndarray = np.var(estimates, axis=0)
    return variance
