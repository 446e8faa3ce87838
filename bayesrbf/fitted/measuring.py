r"""Expected gain of measuring a missing cell.

With R the doubt about the class of a row, its entropy or the cost of the best decision, a cell j
is worth

.. math:: R[p(c | x_o)] - \sum_v p(x_j = v | x_o) \, R[p(c | x_o, x_j = v)],

summed over levels, and over the nodes of every component's quadrature where j is real. Where one
density gives the cell and the class it is never below 0, but for the quadrature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from bayesrbf import table
from bayesrbf.fitted.completed_rows import conditional_law
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.posterior.conditional_law import ConditionalLaw
from bayesrbf.records.mixture import Observations, in_blocks
from bayesrbf.table import Columns

NUMBERS_OF_OUTCOME: Final = 64
"""Numbers that predicting a row under one outcome of a measurement takes."""
OUTCOMES: Final = 128
"""Outcomes of a cell that are expected, about."""

Outcomes = tuple[Float[np.ndarray, "obs point"], Float[np.ndarray, "obs point"]]
"""Values of a cell in every row, as numbers or as codes of levels, and their probabilities."""


def outcomes(law: ConditionalLaw, columns: Columns, position: int) -> Outcomes:
    """Possible values of a column and their probabilities, as if all its cells were missing."""
    if columns.kinds[position] == "real":
        feature = columns.real_positions.index(position)
        n_obs = law.rows.n_obs
        blocks = [(rows, *laws.points(feature)) for rows, laws in law.reals()]
        values, weights = np.empty((2, n_obs, blocks[0][1].shape[1]))
        for rows, places, masses in blocks:
            values[rows], weights[rows] = places, masses
        return values, weights
    probabilities = law.levels(columns.categorical_positions.index(position))
    codes = np.arange(probabilities.shape[1], dtype=np.float64)
    return np.broadcast_to(codes, probabilities.shape), probabilities


def measurement_gains(
    rows: Observations,
    measured: Bool[np.ndarray, "obs column"],
    mixture: FittedMixture,
    columns: Columns,
    doubt: Callable[[Observations], Float[np.ndarray, " row"]],
) -> Float[np.ndarray, "obs column"]:
    """Expected fall of the doubt about every row if a missing cell were measured; NaN elsewhere.

    Rows are in the user's units; the mixture says what may be found in a cell.
    """
    gains = np.full(measured.shape, np.nan)
    for part in in_blocks(rows.n_obs, NUMBERS_OF_OUTCOME * OUTCOMES):
        block = np.arange(part.start, part.stop)
        before = doubt(rows.take(block))
        for position in np.flatnonzero(measured[block].any(axis=0)).tolist():
            mine = block[measured[block, position]]
            some = rows.take(mine)
            law = conditional_law(mixture, some, columns, [mixture.parameters])
            values, shares = outcomes(law, columns, position)
            after = np.zeros(mine.size)
            at, point = np.nonzero(shares)
            for some_outcomes in in_blocks(at.size, NUMBERS_OF_OUTCOME):
                here, which = at[some_outcomes], point[some_outcomes]
                rows_measured = table.with_column(
                    some.take(here), position, values[here, which], columns
                )
                after += np.bincount(here, shares[here, which] * doubt(rows_measured), mine.size)
            gains[mine, position] = before[mine - part.start] - after
    return gains
