"""The fit of a stack: folds of its members, their pools, and messages on held-out gains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf import table
from bayesrbf.base.priors import Status
from bayesrbf.base.rows import Observations, default_shape, joined_rows
from bayesrbf.families.stack.fitted import FittedStack, StackSettings, stack_of
from bayesrbf.families.stack.members import SharedTraining
from bayesrbf.families.stack.missingness import (
    Missingness,
    MissingPatterns,
    evident_columns,
    fit_missingness,
    fit_patterns,
    message_on_columns,
)
from bayesrbf.families.stack.posterior import Pool, equal_pool, fit_pools, mean_pools
from bayesrbf.fit.calibration import unlabelled_gain
from bayesrbf.fit.held_out import (
    Fold,
    HeldOut,
    NumberedFold,
    numbered_folds,
    split_rows,
    usual_folds,
    warn_nothing_held_out,
)
from bayesrbf.fit.table import TrainingTable

MAX_ROWS_SPLIT_TWICE: Final = 200.0
"""Weight of the labelled rows up to which they are assigned to folds twice. On 11 tables of 100
rows another seed then changes a probability by a quarter less, and log loss is .005 better."""
MAX_HELD_OUT: Final = 5000
"""Number of distinct held-out rows beyond which weights and temperatures hardly improve."""
TIME_SHARE: Final = 0.15
"""Share of the time of a fit for the gain of unlabelled rows, unless a single fold takes more."""
FIXED_COST: Final = 100
"""Fixed cost of a fit, expressed in rows."""


def fit_stack(
    training: TrainingTable, settings: StackSettings, cv: object, n_jobs: int | None
) -> tuple[TrainingTable, FittedStack, str]:
    """The table with the indices of its held-out rows, the fitted stack, and a message.

    Members are held out, tempered, pooled, and fitted to all rows.
    """
    rows, row_indices, seed = training.rows, training.row_indices, training.seed
    folds = numbered_folds(pool_splits(cv, rows, row_indices, seed), training.class_labels)
    distinct = table.distinct(rows)[0]
    settings, held_out, trial = settings.hold_out_in_turn(folds, n_jobs)
    shared = settings.training(distinct, 0)
    members = settings.fit(shared)
    gain = gain_of_unlabelled(settings, folds, held_out, n_jobs)
    held_out, pools = pools_of(held_out, settings, training.owner, cv)
    if cv is None and rows.n_labelled <= MAX_ROWS_SPLIT_TWICE:
        again = numbered_folds(pool_splits(cv, rows, row_indices, seed + 1), training.class_labels)
        later = [(len(folds) + number, train, test) for number, train, test in again]
        if (second := settings.hold_out_folds(later, n_jobs)) is not None:
            pools = mean_pools(pools, fit_pools(second))
    copies = held_out_positions(rows, row_indices, [test for _, _, test in folds])
    column_of = training.read_columns.column_of
    model = stack_of(members, distinct, settings, pools, held_out, column_of)
    model = with_missingness(model, settings, folds, training)
    messages = Status.CONVERGED.sentence, gain, partly_seen(shared, held_out), trial, model.message
    return replace(training, copies=copies), model, " ".join(filter(None, messages))


def with_missingness(
    model: FittedStack,
    settings: StackSettings,
    folds: Sequence[NumberedFold],
    training: TrainingTable,
) -> FittedStack:
    """The stack with the evidence of missing indicators, by patterns fitted to every fold.

    Unchanged where missing cells are declared ignorable, are few, or no row was held out.
    """
    columns, held = training.read_columns, model.held
    rows = training.rows
    positions, evident = evident_columns(rows, columns)
    if settings.missingness == "ignorable" or not evident.size or not held.labels.size:
        return model
    # Rows of a fold may leave columns alike that all rows tell apart.
    codes = table.missing_indicators(rows, columns)[:, positions[evident]]
    alone = Observations(np.zeros((rows.n_obs, 0)), codes, rows.labels, rows.weights)
    evident = evident[table.canonical_order(table.distinct(alone)[0]).categories]

    def patterns_of(rows: Observations) -> MissingPatterns:
        return fit_patterns(
            rows, columns, evident, settings.n_classes, settings.prior, settings.solver
        )

    evidence, familiarity = [], []
    for _, train, test in folds:
        patterns = patterns_of(train)
        indicators = patterns.indicators(test)
        evidence.append(patterns.log_evidence(indicators))
        familiarity.append(patterns.familiarity(indicators))
    unfitted = Missingness(
        patterns_of(training.rows),
        1.0,
        np.zeros(settings.n_classes),
        0.0,
        np.concatenate(evidence),
        np.concatenate(familiarity),
    )
    log_q = model.pooled(held.values, held.missing_fraction)
    always = settings.missingness == "informative"
    missingness, gain, error = fit_missingness(unfitted, held, log_q, always=always)
    found = f"{gain:+.3f} ± {error:.3f} nats a row held out"
    message = f"Which cells are missing tells too little of the label ({found})."
    if missingness.exponent > 0:
        named = message_on_columns(training.rows, columns, training.class_labels.tolist())
        message = f"Which cells are missing tells of the label ({found}): {named}."
    return replace(model, missingness=missingness, message=message)


def pool_splits(
    cv: object, rows: Observations, row_indices: Int[np.ndarray, " obs"], seed: int
) -> Iterator[Fold]:
    """The user's folds, else the first default folds that hold out enough rows."""
    if cv is not None:
        return split_rows(cv, rows, row_indices, seed)
    n_rows = int((table.distinct(rows)[0].labels >= 0).sum())
    n_folds = max(usual_folds(rows.n_labelled), n_rows // MAX_HELD_OUT)
    enough = -(-n_folds * MAX_HELD_OUT // n_rows)
    return islice(split_rows(n_folds, rows, row_indices, seed), enough)


def pools_of(
    held_out: HeldOut | None, settings: StackSettings, owner: str, cv: object
) -> tuple[HeldOut, tuple[Pool, ...]]:
    """Held-out predictions and pools; equal weights, with a warning, where no row is held out."""
    if held_out is not None:
        return held_out, fit_pools(held_out)
    warn_nothing_held_out(owner, cv, "all members weigh the same and no temperature is fitted")
    n_members = len(settings.names)
    values = np.zeros((0, n_members, settings.n_classes))
    return HeldOut(values, np.zeros(0, np.intp), np.zeros(0)), (equal_pool(n_members),)


def partly_seen(training: SharedTraining, held_out: HeldOut) -> str:
    """Message on members fitted to a sample or with diagonal covariances; empty without any."""
    sentences, n_rows = [], training.rows.n_obs
    judged = held_out.labels.size
    n_labelled = int((training.rows.labels >= 0).sum())
    for kind, seen in training.seen_by.items():
        if seen < n_rows:
            sentences.append(f"{kind} were fitted to {seen} of {n_rows} different rows.")
    if n_labelled > MAX_HELD_OUT and judged < 0.9 * n_labelled:
        sentences.append(f"{judged} different rows held out gave weights and temperatures.")
    n_reals = training.rows.real.shape[1]
    if default_shape(n_reals) != "full":
        sentences.append(f"Covariances of {n_reals} columns of numbers are diagonal.")
    return " ".join(sentences)


def gain_of_unlabelled(
    settings: StackSettings,
    folds: Sequence[NumberedFold],
    held_out: HeldOut | None,
    n_jobs: int | None,
) -> str:
    """Sentence on the gain of rows without a label, by labelled rows held out; empty without any.

    The first folds are fitted again without them, as many as the share allows, and one at least.
    Either kind of members has a pool of its own, fitted to the same rows held out.
    """
    if held_out is None or not (folds[0][1].labels < 0).any():
        return ""
    bare = [(number, train.take(train.labels >= 0), test) for number, train, test in folds]
    time = np.mean([FIXED_COST + train.n_obs for _, train, _ in folds]) * (len(folds) + 1)
    more = np.cumsum([FIXED_COST + train.n_obs for _, train, _ in bare])
    count = max(1, int((more <= TIME_SHARE * time).sum()))
    again = replace(settings, masking=None).hold_out_folds(bare[:count], n_jobs)
    assert again is not None  # each of these folds holds a row out
    n = again.labels.size
    with_them = HeldOut(held_out.values[:n], held_out.labels[:n], held_out.weights[:n])
    gains = fit_pools(again)[0].losses(again) - fit_pools(with_them)[0].losses(with_them)
    return unlabelled_gain("as given", gains, with_them.weights)


def held_out_positions(
    rows: Observations, row_indices: Int[np.ndarray, " obs"], tests: Sequence[Observations]
) -> Int[np.ndarray, "two given"]:
    """Row indices of the labelled rows, and the index of each among the held-out rows of all folds.

    ``tests`` are the held-out rows of every fold. Duplicates of a row are assigned to the folds
    that hold them out by their weights there.

    >>> cells, none = np.array([[1.0], [2.0], [1.0]]), np.zeros((3, 0), int)
    >>> rows = Observations(cells, none, np.array([0, 1, 0]), np.ones(3))
    >>> held_out_positions(
    ...     rows,
    ...     np.array([4, 5, 7]),
    ...     [rows.take(slice(2, 3)), rows.take(slice(2))],
    ... )
    array([[4, 5, 7],
           [0, 2, 1]])
    """
    everything = joined_rows([rows, *tests])
    _, distinct_index = table.distinct(everything)
    codes, labelled = distinct_index[: rows.n_obs], np.flatnonzero(rows.labels >= 0)
    of_tests, weights = distinct_index[rows.n_obs :], everything.weights[rows.n_obs :]
    if not of_tests.size:
        return np.zeros((2, 0), dtype=np.intp)
    order, ends = _ends(of_tests, weights)
    row_order, row_ends = _ends(codes[labelled], rows.weights[labelled])
    halves = (
        rows.weights[labelled]
        / np.bincount(codes[labelled], rows.weights[labelled])[codes[labelled]]
    )
    end_index = np.searchsorted(ends, row_ends - halves[row_order] / 2)
    entry = order[np.minimum(end_index, order.size - 1)]
    same_label = of_tests[entry] == codes[labelled[row_order]]  # others were never held out
    result = np.stack([labelled[row_order], entry])[:, same_label]
    result = result[:, np.argsort(result[0])]
    return np.stack([row_indices[result[0]], result[1]])


def _ends(
    codes: Int[np.ndarray, " row"], weights: Float[np.ndarray, " row"]
) -> tuple[Int[np.ndarray, " row"], Float[np.ndarray, " row"]]:
    """Order of the rows by code, and for each its code plus the cumulative share of its weight."""
    order = np.argsort(codes, kind="stable")
    totals = np.bincount(codes, weights)
    sorted_codes = codes[order]
    before = (np.cumsum(totals) - totals)[sorted_codes]
    return order, sorted_codes + (np.cumsum(weights[order]) - before) / totals[sorted_codes]
