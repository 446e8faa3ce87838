r"""How much further models may be wrong at a row that is unlike the rows they were fitted to.

With t the typicality of a row (:mod:`bayesrbf.posterior.novelty`) and a the share of its cells that
are observed, the row is compared with rows that were held out of the density:

.. math:: \pi(x) = \frac{1 + \sum_i w_i \, [u_i \le u(x)]}{1 + \sum_i w_i}, \quad
    u = t - b \sqrt{a}, \quad s(x) = \max\left(1, \frac{q}{\pi(x)}\right),

with q = 0.15: draws spread s times as far in the least usual rows, 15 in 100, unless the models
know nothing there anyway (:mod:`bayesrbf.numerics.stack.disagreement`). t is a sum over cells over
the square root of their number, so where the density is wrong by the same in every cell its mean
grows as the square root of a; b is that slope, by least squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from bayesrbf.posterior.cell_laws import CellLaw
from bayesrbf.posterior.novelty import typicality
from bayesrbf.records.mixture import Observations

UNUSUAL: Final = 0.15
"""Share of rows at which draws spread further."""

Rows = Float[np.ndarray, " obs"]


@dataclass(frozen=True)
class UsualRows:
    """Typicalities of rows that were held out of a density, which others are compared with."""

    excess: Float[np.ndarray, " row"]
    """``u`` above."""
    weights: Float[np.ndarray, " row"]
    slope: float

    def spread(self, rows: Observations, law: CellLaw) -> Rows:
        """How many times as far draws spread at rows, which are in the units of the law."""
        own = typicality(rows, law) - self.slope * root_share(rows)
        order = np.argsort(self.excess)
        below = np.concatenate([[0.0], np.cumsum(self.weights[order])])
        rank = below[np.searchsorted(self.excess[order], own, side="right")]
        spread: Rows = np.maximum(1, UNUSUAL * (1 + below[-1]) / (1 + rank))
        return spread


def usual_rows(typical: Rows, shares: Rows, weights: Rows) -> UsualRows:
    """Learn the slope from held-out rows: typicalities, roots of shares observed, weights."""
    squares = weights @ shares**2
    slope = float(weights @ (typical * shares) / squares) if squares > 0 else 0.0
    return UsualRows(typical - slope * shares, weights, slope)


def root_share(rows: Observations) -> Rows:
    """Square root of the share of cells that are observed."""
    seen = np.hstack([~np.isnan(rows.real), rows.codes >= 0])
    root: Rows = np.sqrt(seen.mean(axis=1))
    return root
