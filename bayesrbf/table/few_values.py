"""Which real columns have few values."""

from __future__ import annotations

from typing import Final

import numpy as np

from bayesrbf.records.few_values import FewValues
from bayesrbf.records.mixture import Observations

FEWEST: Final = 3
"""Least number of values: of two, a category says no more than a number."""
MOST: Final = 12
"""Greatest number of values."""
ROWS: Final = 10.0
"""Least number of rows for a value, in the mean of the column's values."""


def few_values(rows: Observations) -> FewValues:
    """Find the real columns of few values; a row counts as often as it weighs.

    >>> cells = np.column_stack([np.arange(60.0) % 4, np.arange(60.0), np.arange(60.0) % 2])
    >>> few_values(Observations(cells, np.zeros((60, 0), int), np.ones(60, int), np.ones(60)))
    FewValues(features=(0,), values=(array([0., 1., 2., 3.]),))
    """
    values_of = {}
    for feature, cells in enumerate(rows.real.T):
        present = ~np.isnan(cells)
        values = np.unique(cells[present] + 0.0)  # -0.0 is 0.0
        if FEWEST <= values.size <= min(MOST, rows.weights[present].sum() / ROWS):
            values_of[feature] = values
    return FewValues(tuple(values_of), tuple(values_of.values()))
