"""A new table held against the training table: what changed, in sentences."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.stats import false_discovery_control, norm

from bayesrbf.posterior.label_shift import adapt_prior
from bayesrbf.posterior.two_tables import (
    Change,
    changed_columns,
    tail_of_count,
    tail_of_unseen,
    tails_beside,
)
from bayesrbf.reading.notation import date_of
from bayesrbf.report.density import columns_of
from bayesrbf.report.new_rows import NewRows
from bayesrbf.report.reference import Judged, judge_both, training_table
from bayesrbf.report.row import cell_text, row_name
from bayesrbf.report.words import clipped, count, listing, number, percent, plural
from bayesrbf.table import Columns

CHANCE: Final = 0.01
"""Probability, shared among the columns, with which chance alone is told as a finding."""
RARELY: Final = 0.003
"""The same of rows and class frequencies, which rest on models as well."""
FALSE_DISCOVERIES: Final = 0.05
"""Of the cells that are told, the share that may be wrong."""
NOVEL: Final = 0.95
"""Share of the training rows held out above whose novelty a row counts as novel."""
LISTED: Final = 8
DRAWS: Final = 50
"""Draws over which class frequencies are estimated."""
SMALL: Final = 1e-12

Pair = tuple[np.ndarray, np.ndarray]
"""Cells of a column in training, and now."""


@dataclass(frozen=True)
class Remark:
    """A sentence on a new table."""

    topic: str
    sentence: str
    found: bool = True
    """Whether it is a finding; else it is told and chance, or nothing, depends on it."""


def check_rows(model: Any, read: NewRows, dates: Sequence[str] = ()) -> list[Remark]:
    """Everything that is to be said of new rows beside those of training.

    Columns of ``dates`` are in days, and may have moved on.
    """
    new, absent, extra = read.rows, read.absent, read.extra
    columns, old = columns_of(model), training_table(model)
    here = [name for name in columns.names if name not in absent]
    said = [*_columns(absent, extra), *_levels(old, new, columns, here), *_missing(old, new, here)]
    changed = [
        *_dates(old, new, [name for name in dates if name in here]),
        *_units(old, new, columns, [name for name in here if name not in dates]),
    ]
    said += [remark for _, remark in changed]
    broken = sorted({name for names, _ in changed for name in names})
    # A broken column would spoil the verdict on everything else: its cells are left out.
    rest = new.assign(**{name: _nothing(new[name]) for name in broken})
    seen = _levels_of_training(columns).items()
    known = rest.assign(
        **{name: rest[name].where(rest[name].isin(levels)) for name, levels in seen}
    )
    without = f" (without {listing([clipped(name, 24) for name in broken])})" if broken else ""
    if known.notna().to_numpy().any():
        held_out, judged = judge_both(old, known, columns)
        said += _cells(known, held_out, judged, without)
        said += _rows(known.index, held_out, judged, without)
        if hasattr(model, "surprise") or not (broken or absent):
            with warnings.catch_warnings():  # what is broken or left out was said above
                warnings.filterwarnings("ignore", "Columns? '")
                said += _labels(model, known, without)
        else:
            why = "this model compares rows and does not sum out the columns that are left out"
            said.append(Remark("classes", f"Class frequencies were not judged: {why}.", False))
    return said


def _levels_of_training(columns: Columns) -> dict[str, tuple[object, ...]]:
    """Levels of every categorical column by its name."""
    names = [columns.names[place] for place in columns.categorical_positions]
    return dict(zip(names, columns.levels, strict=True))


def _nothing(column: pd.Series) -> pd.Series:
    """The column without its cells."""
    return column.where(np.zeros(len(column), dtype=bool))


def _columns(absent: Sequence[str], extra: Sequence[str]) -> Iterator[Remark]:
    """Columns that lack, with the nearest name among those that the model does not know."""
    for name in absent:
        near = difflib.get_close_matches(name, extra, n=1)
        hint = f"; {near[0]!r} is here and was not in training" if near else ""
        yield Remark("columns", f"{name!r} is absent; all of its cells count as missing{hint}.")
    if extra:
        named = listing([repr(clipped(name, 24)) for name in extra], LISTED)
        yield Remark("columns", f"{named}: not a column of the model, and not looked at.", False)


def _levels(
    old: pd.DataFrame, new: pd.DataFrame, columns: Columns, here: Sequence[str]
) -> Iterator[Remark]:
    """Levels that training did not have."""
    for name, levels in _levels_of_training(columns).items():
        if name not in here:
            continue
        cells, before = new[name].dropna(), old[name].dropna()
        counts = cells[~cells.isin(levels)].value_counts()
        if counts.empty:
            continue
        lost = len(set(before) - set(cells))
        chance = tail_of_unseen(counts.to_numpy(), lost, len(cells), len(before))
        found = chance < CHANCE
        named = listing([f"{clipped(level, 24)!r} ({n})" for level, n in counts.items()])
        many = plural(int(counts.sum()), "cell")
        tail = "" if found else "; so few may be chance"
        yield Remark(
            "levels",
            f"{clipped(name, 30)}: {many} of {len(cells)} at levels that training did not have, "
            f"{named}; they count as missing{tail}.",
            found,
        )


def _missing(old: pd.DataFrame, new: pd.DataFrame, here: Sequence[str]) -> Iterator[Remark]:
    """Columns with more missing cells than in training."""
    for name in here:
        holes, before = int(new[name].isna().sum()), int(old[name].isna().sum())
        if tail_of_count(holes, len(new), before, len(old)) < CHANCE / len(here):
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
        name: (_reals(old[name]), _reals(new[name])) for name in columns.real_names if name in here
    }
    for one in changed_columns(cells):
        pairs = [cells[name] for name in one.columns]
        if one.change is not None:
            yield one.columns, Remark("unit", _of_change(one.columns[0], one.change, pairs[0]))
            continue
        first, second = (clipped(name, 30) for name in one.columns)
        middles = " and ".join(map(_middles, pairs))
        yield (
            one.columns,
            Remark(
                "exchanged",
                f"{first} looks like what {second} was in training, and the other way round: "
                f"middle cells {middles}.",
            ),
        )


def _dates(
    old: pd.DataFrame, new: pd.DataFrame, dates: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], Remark]]:
    """Columns of dates that training did not reach: time passes, which is no finding."""
    for name in dates:
        before, now = _reals(old[name]), _reals(new[name])
        if before.size and now.size and (now.max() > before.max() or now.min() < before.min()):
            here, there = (f"{date_of(of.min())} to {date_of(of.max())}" for of in (now, before))
            said = f"{clipped(name, 30)} is from {here}, in training from {there}: the model has "
            yield (name,), Remark("dates", f"{said}not seen such dates.", found=False)


def _reals(column: pd.Series) -> np.ndarray:
    """Observed cells of a real column."""
    found: np.ndarray = column.dropna().to_numpy(dtype=float)
    return found


def _middles(pair: Pair) -> str:
    """Medians in training and now."""
    return f"{number(float(np.median(pair[1])))} (training {number(float(np.median(pair[0])))})"


def _of_change(name: str, change: Change, pair: Pair) -> str:
    """A change of unit in words."""
    known = f" ({change.name})" if change.name else ""
    if change.scale == 1:
        what = f"is {number(abs(change.offset))} {'higher' if change.offset > 0 else 'lower'}"
        what = f"{what} than it was{known}"
    elif change.offset:
        what = f"is in other units: {change.name}"
    else:
        larger = change.scale > 1
        factor = number(change.scale if larger else 1 / change.scale)
        what = f"is about {factor} times too {'large' if larger else 'small'}{known}"
    return (
        f"{clipped(name, 30)} {what}: middle cell {_middles(pair)}. Undone, the distance "
        f"of the distributions is {number(change.after)}; it is {number(change.before)}."
    )


def _cells(new: pd.DataFrame, held_out: Judged, judged: Judged, without: str) -> Iterator[Remark]:
    """Cells that stand out, beside how training cells did that were held out."""
    surprise, reference = judged.surprise, held_out.surprise
    known = ~np.isnan(surprise)
    if not known.any() or np.isnan(reference).all():
        return
    tails = np.ones(surprise.shape)
    tails[known] = tails_beside(reference[~np.isnan(reference)], surprise[known])
    odd = np.zeros(surprise.shape, dtype=bool)
    odd[known] = false_discovery_control(tails[known]) <= FALSE_DISCOVERIES
    if not odd.any():
        return
    expected = judged.cells["expected"].to_numpy()
    places = np.argwhere(odd)
    places = places[np.argsort(-surprise[tuple(places.T)], kind="stable")]
    named = listing(
        [
            f"row {row_name(new.index, row)} {clipped(new.columns[column], 24)} "
            f"{cell_text(new.iat[row, column])} (expected {cell_text(expected[row, column])})"
            for row, column in places.tolist()
        ],
        LISTED,
    )
    verb = "stands" if len(places) == 1 else "stand"
    yield Remark(
        "cells",
        f"{plural(len(places), 'cell')} of {count(int(known.sum()))} {verb} out at a false "
        f"discovery rate of {percent(FALSE_DISCOVERIES)}{without}: {named}.",
    )


def _rows(index: pd.Index, held_out: Judged, judged: Judged, without: str) -> Iterator[Remark]:
    """Rows unlike the training table, beside how many of its own are, each held out."""
    bound = float(np.quantile(held_out.novelty, NOVEL))
    novel, before = judged.novelty >= bound, held_out.novelty >= bound
    counts = int(novel.sum()), len(novel), int(before.sum()), len(before)
    if tail_of_count(*counts) < RARELY:
        most = np.flatnonzero(novel)[np.argsort(-judged.novelty[novel], kind="stable")]
        named = listing([row_name(index, row) for row in most.tolist()], LISTED)
        yield Remark(
            "rows",
            f"{percent(counts[0] / counts[1])} of the rows ({counts[0]} of {counts[1]}) are as "
            f"unlike the training table as {percent(counts[2] / counts[3])} of its own are, held "
            f"out{without}: rows {named}.",
        )


def _labels(model: Any, new: pd.DataFrame, without: str) -> Iterator[Remark]:
    """Class frequencies of the new rows beside those of training."""
    told = copy(model).adapt_prior(new)
    now, before = told["probability"].to_numpy(), told["trained"].to_numpy()
    labelled = int((model.rows_.labels >= 0).sum())
    of_new = np.sqrt(told["standard_error"].to_numpy() ** 2 + _over_draws(model, new, before))
    error = np.sqrt(of_new**2 + before * (1 - before) / labelled)
    away = np.abs(now - before) / np.maximum(error, SMALL)
    tests = 1 if len(now) == 2 else len(now)
    found = tests * 2 * float(norm.sf(away.max())) < RARELY
    figures = [
        f"{clipped(label, 24)} {percent(q)} ± {percent(e)} (training {percent(p)})"
        for label, q, e, p in zip(model.classes_, now, of_new, before, strict=True)
    ]
    said = (
        "The estimated class frequencies differ from training"
        if found
        else "No change of the class frequencies is seen beyond chance"
    )
    yield Remark(
        "classes",
        f"{said}{without}; estimates with standard errors: {listing(figures, LISTED)}.",
        found,
    )


def _over_draws(model: Any, new: pd.DataFrame, trained: np.ndarray) -> np.ndarray:
    """Variance of the estimated frequencies over draws of the model; 0 where there are none."""
    if model.draws_ is None:
        return np.zeros(trained.size)
    drawn = model.predict_posterior(new)["predictions"]["probability"].to_numpy()
    drawn = drawn.reshape(-1, *drawn.shape[-2:])
    some = drawn[:: max(1, len(drawn) // DRAWS)]
    estimates = [adapt_prior(np.log(np.maximum(p, SMALL)), trained).prior for p in some]
    found: np.ndarray = np.var(estimates, axis=0)
    return found


def printed(remarks: Sequence[Remark]) -> list[str]:
    """Findings first, then what is told beside them."""
    width = max((len(one.topic) for one in remarks), default=0)
    lines = []
    for found, title in ((True, "Found"), (False, "Beside that")):
        some = [one for one in remarks if one.found is found]
        if some:
            lines += [title, *(f"  {one.topic:<{width}}  {one.sentence}" for one in some)]
    return lines if any(one.found for one in remarks) else ["Nothing was found.", *lines]
