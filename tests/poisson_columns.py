r"""Counts as a law of their own: what the numerics need of it, in one file.

.. math:: x_{nj} \mid k \sim \mathrm{Poisson}(\lambda_{kj}), \qquad
    \lambda_{kj} \sim \mathrm{Gamma}(a, b)

The graph's half is one function, in ``tests/models/test_column_law.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from bayesrbf.numerics.mixture.parts.column_law import ColumnLaw, column_law
from bayesrbf.records import names
from bayesrbf.records.specification import FurtherColumns, Variable

RATES = "rates"
COUNT = "count"
"""Dim of the columns of counts."""


@dataclass(frozen=True)
class PoissonColumns(FurtherColumns):
    """Columns of counts, and the gamma prior of their rates."""

    shape: float = 2.0
    rate: float = 0.5


class PoissonLaw(ColumnLaw):
    """Independent counts given the component; statistics are sums of counts and of known cells."""

    def __init__(self, record: PoissonColumns, n_components: int) -> None:
        self._shape, self._rate = record.shape, record.rate
        self._size = (n_components, len(record.columns))
        self.variables = (Variable(RATES, (names.COMPONENT, COUNT), self._size, "log"),)

    def log_density(self, cells, values):
        known, counts = ~np.isnan(cells), np.nan_to_num(cells)
        rates = values[RATES]
        return counts @ np.log(rates).T - known @ rates.T - gammaln(counts + 1).sum(1)[:, None]

    def statistics(self, cells, weights):
        return np.stack([weights.T @ np.nan_to_num(cells), weights.T @ ~np.isnan(cells)], axis=1)

    def log_prior(self, values):
        rates, a, b = values[RATES], self._shape, self._rate
        constant = rates.size * (a * np.log(b) - gammaln(a))
        return float(constant + ((a - 1) * np.log(rates) - b * rates).sum())

    def gradient(self, values, statistics):
        sums, cells = statistics[:, 0], statistics[:, 1]
        return {RATES: (sums + self._shape - 1) / values[RATES] - cells - self._rate}

    def mode(self, values, statistics):
        sums, cells = statistics[:, 0], statistics[:, 1]
        return {RATES: (sums + self._shape - 1) / (cells + self._rate)}

    def prior_mode(self):
        return {RATES: np.full(self._size, (self._shape - 1) / self._rate)}

    def draw(self, statistics, rng):
        sums, cells = statistics[:, 0], statistics[:, 1]
        return {RATES: rng.gamma(sums + self._shape) / (cells + self._rate)}

    def moments(self, values):
        return values[RATES], values[RATES]

    def sample(self, components, values, rng):
        return rng.poisson(values[RATES][components]).astype(float)


column_law.register(PoissonColumns, PoissonLaw)
