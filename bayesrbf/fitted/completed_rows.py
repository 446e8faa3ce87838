"""Rows whose cells a mixture fills or takes away: for a person, for a likelihood, for a fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.numerics.mixture.sampling import conditional_draws
from bayesrbf.numerics.mixture.side_by_side import joined
from bayesrbf.numerics.sdgm.sdgm_features import complete
from bayesrbf.posterior.cell_laws import CellLaw
from bayesrbf.posterior.cells import ODD, judge_cells, without
from bayesrbf.posterior.conditional_law import ConditionalLaw
from bayesrbf.records.mixture import ColumnAtoms, MixtureParameters, Observations
from bayesrbf.records.sdgm import CompletedRows
from bayesrbf.table import Columns, distinct

TRAINING_DRAWS = 32  # Completions of a row with holes in the likelihood.
MOST_TRIMMED: Final = 0.05
"""Share of a column's cells that is taken away at most, by weight."""
FEWEST_KEPT: Final = 4
"""Distinct numbers that a real column keeps at least; else all of it stays."""

LabelSets = Bool[np.ndarray, "set label"]
"""Classes of every kind of label: a code per class, then the sets of several classes."""


def completions(
    companion: FittedMixture, rows: Observations, draws: int, replicate: int = 0
) -> tuple[Float[np.ndarray, "point coordinate"], Int[np.ndarray, " row"]]:
    """Points of rows, and the first of each row; the companion completes those with holes."""
    # The companion has one class for all: codes of labels mean nothing to it.
    unlabelled = replace(rows, labels=np.full_like(rows.labels, -1))
    return complete(
        unlabelled,
        companion.parameters,
        companion.specification,
        companion.units,
        draws=draws,
        replicate=replicate,
        order=companion.order,
    )


def labelled(companion: FittedMixture, rows: Observations, sets: LabelSets) -> CompletedRows:
    """Training rows as the likelihood takes them."""
    points, starts = completions(companion, rows, TRAINING_DRAWS)
    allowed = np.concatenate([sets, np.ones((1, sets.shape[1]), dtype=bool)])[rows.labels]
    return CompletedRows(points, starts, allowed, rows.weights)  # a hidden label, -1, allows all


def informative(rows: Observations, sets: LabelSets) -> Bool[np.ndarray, " obs"]:
    """Rows whose label says something. A label that allows every class says nothing."""
    return (rows.labels >= 0) | (sets.shape[1] == 1)


def set_shares(rows: Observations, sets: LabelSets) -> Float[np.ndarray, " label"]:
    """Weighted shares of the classes among the rows whose label says anything.

    A row that may have several classes is shared out among them as the rows of one class
    are, where half a row of each is added to those: no class has a share of 0. Of rows with one
    class each, nothing is added to the counts.
    """
    by_set = np.bincount(
        rows.labels[rows.labels >= 0], rows.weights[rows.labels >= 0], minlength=len(sets)
    )
    within = sets * (by_set[: sets.shape[1]] + 0.5)
    counts = by_set @ (within / within.sum(axis=1, keepdims=True))
    return counts / counts.sum()


Cells = tuple[Float[np.ndarray, "obs feature"], Int[np.ndarray, "obs categorical"]]
"""Real cells and codes."""


def column_atoms(mixture: FittedMixture, columns: Columns) -> tuple[ColumnAtoms, ...]:
    """The atoms of a mixture's real columns, in the user's units and in standard ones."""
    atoms = []
    for feature, category in columns.atomic.items():
        values = np.asarray(columns.atoms[feature])
        real = np.full((values.size, len(columns.atoms)), np.nan)
        real[:, feature] = values
        hidden = np.full((values.size, len(columns.n_levels)), -1)
        rows = Observations(real, hidden, np.full(values.size, -1), np.ones(values.size))
        standard = mixture.standardise(rows).real[:, feature]
        atoms.append(ColumnAtoms(feature, category, values, standard))
    return tuple(atoms)


def cell_law(mixture: FittedMixture, columns: Columns, prob: float | None = None) -> CellLaw:
    """The law by which a mixture judges cells, at its fitted point."""
    return CellLaw(
        mixture.parameters,
        mixture.specification,
        mixture.in_users_units,
        column_atoms(mixture, columns),
        prob,
    )


def conditional_law(
    mixture: FittedMixture,
    rows: Observations,
    columns: Columns,
    points: Sequence[MixtureParameters],
) -> ConditionalLaw:
    """The law of the missing cells of rows in the user's units, averaged over points."""
    parameters, specification = joined(points, mixture.specification)
    atoms = column_atoms(mixture, columns)
    law = CellLaw(parameters, specification, mixture.in_users_units, atoms)
    return ConditionalLaw(mixture.standardise(rows), law, len(points))


def levels_of(
    law: ConditionalLaw, columns: Columns, position: int
) -> tuple[tuple[object, ...], Float[np.ndarray, "obs level"]] | None:
    """Levels of a column, or its atoms, and their probabilities in every row; None without any."""
    if columns.kinds[position] == "categorical":
        category = columns.categorical_positions.index(position)
        return columns.levels[category], law.levels(category)
    atomic = {columns.real_positions[j]: category for j, category in columns.atomic.items()}
    if position in atomic:
        return columns.all_levels[atomic[position]], law.levels(atomic[position])
    return None


def most_likely(mixture: FittedMixture, rows: Observations, columns: Columns) -> Cells:
    """Rows in the user's units, missing cells at their conditional mean or most probable level."""
    real, codes = np.empty_like(rows.real), np.empty_like(rows.codes)
    for part, some in rows.in_blocks():
        real[part], codes[part] = _most_likely(mixture, some, columns)
    return real, codes


def _most_likely(mixture: FittedMixture, rows: Observations, columns: Columns) -> Cells:
    """One block of rows, missing cells at their conditional mean or most probable level."""
    law = conditional_law(mixture, rows, columns, [mixture.parameters])
    best = [law.levels(category).argmax(axis=1) for category in range(rows.codes.shape[1])]
    for one in law.law.atoms:
        best[one.category] = np.zeros(rows.n_obs, dtype=np.intp)  # a mean is at no atom
    return _fill(rows, law.mean(), np.column_stack([rows.codes[:, :0], *best]))


def drawn(
    mixture: FittedMixture,
    rows: Observations,
    points: Sequence[MixtureParameters],
    rng: np.random.Generator,
) -> Iterator[Cells]:
    """Rows in the user's units, missing cells drawn jointly under every point in standard units.

    What equal points next to each other say of the rows is found once.
    """
    standard = mixture.standardise(rows)
    for _, same in groupby(points, key=id):
        point, *more = same
        draws = 1 + len(more)
        for whole in conditional_draws(standard, point, mixture.specification, rng, draws):
            yield _fill(rows, mixture.in_users_units(whole.real), whole.codes)


def _fill(rows: Observations, real: np.ndarray, codes: np.ndarray) -> Cells:
    """Keep observed cells, and take the others from completed rows."""
    return (
        np.where(np.isnan(rows.real), real, rows.real),
        np.where(rows.codes < 0, codes, rows.codes),
    )


def hide_masked(
    real: Float[np.ndarray, "obs feature"],
    codes: Int[np.ndarray, "obs categorical"],
    columns: Columns,
) -> Cells:
    """Take away the cells of drawn rows whose mask was drawn as missing."""
    real, codes = real.copy(), codes.copy()
    first = len(columns.levels)
    masks = codes[:, first : first + len(columns.masked)] == 1
    for position, mask in zip(columns.masked, masks.T, strict=True):
        kind = columns.kinds[position]
        place = columns.positions(kind).index(position)
        # A drawn mask says that the cell would not have been observed.
        if kind == "categorical":
            codes[mask, place] = -1
            continue
        real[mask, place] = np.nan
        # The code of its atom would tell what the hidden cell is.
        if place in columns.atomic:
            codes[mask, columns.atomic[place]] = -1
    return real, codes


def trimmed(rows: Observations, mixture: FittedMixture, columns: Columns) -> Observations:
    """Weighted rows in the user's units, odd cells missing, as a mixture judges them.

    A mixture that is fitted to wrong cells spends components on them.
    """
    # Copies are judged once, and share the verdict.
    once, place = distinct(rows)
    law = cell_law(mixture, columns)
    verdict = judge_cells(mixture.standardise(once), law)
    reals = _oddest(verdict.log_tail, once.weights)
    levels = _oddest(verdict.level_log_tail, once.weights)
    for feature in range(once.real.shape[1]):
        kept = once.real[~reals[:, feature], feature]
        if np.unique(kept[~np.isnan(kept)]).size < FEWEST_KEPT:
            reals[:, feature] = False
    levels[:, len(columns.levels) :] = False  # masks of missing cells are no cells
    return without(rows, reals[place], levels[place], law.atoms)


def _oddest(
    log_tail: Float[np.ndarray, "obs column"], weights: Float[np.ndarray, " obs"]
) -> Bool[np.ndarray, "obs column"]:
    """The cells of least tail below ``ODD``; of every column at most ``MOST_TRIMMED``."""
    order = np.argsort(log_tail, axis=0, kind="stable")  # NaN comes last
    present = ~np.isnan(log_tail)
    total = weights @ present
    # Weight of the cells at least as odd, in every column.
    before = np.cumsum(np.take_along_axis(weights[:, None] * present, order, axis=0), axis=0)
    rank = np.empty_like(before)
    np.put_along_axis(rank, order, before, axis=0)
    return present & (log_tail < ODD) & (rank <= MOST_TRIMMED * total)
