"""Training rows less the cells that look wrong: components would explain errors that they saw."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from bayesrbf.fitted.completed_rows import cell_law
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.posterior.cells import ODD, judge_cells, without
from bayesrbf.records.mixture import Observations
from bayesrbf.table import Columns, distinct

MOST: Final = 0.05
"""Share of a column's cells that is taken away at most, by weight."""
FEWEST: Final = 4
"""Distinct numbers that a real column keeps at least; else all of it stays."""


def trimmed(rows: Observations, mixture: FittedMixture, columns: Columns) -> Observations:
    """Weighted rows in the user's units, odd cells missing, as a mixture judges them."""
    once, place = distinct(rows)
    law = cell_law(mixture, columns)
    found = judge_cells(mixture.standardise(once), law)
    reals = _oddest(found.log_tail, once.weights)
    levels = _oddest(found.level_log_tail, once.weights)
    for feature in range(once.real.shape[1]):
        kept = once.real[~reals[:, feature], feature]
        if np.unique(kept[~np.isnan(kept)]).size < FEWEST:
            reals[:, feature] = False
    levels[:, len(columns.levels) :] = False  # masks of missing cells are no cells
    return without(rows, reals[place], levels[place], law.atoms)


def _oddest(
    log_tail: Float[np.ndarray, "obs column"], weights: Float[np.ndarray, " obs"]
) -> Bool[np.ndarray, "obs column"]:
    """The cells of least tail below ``ODD``; of every column at most ``MOST``."""
    order = np.argsort(log_tail, axis=0, kind="stable")  # NaN comes last
    known = ~np.isnan(log_tail)
    total = weights @ known
    before = np.cumsum(np.take_along_axis(weights[:, None] * known, order, axis=0), axis=0)
    rank = np.empty_like(before)
    np.put_along_axis(rank, order, before, axis=0)
    return known & (log_tail < ODD) & (rank <= MOST * total)
