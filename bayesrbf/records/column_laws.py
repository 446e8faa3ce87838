"""Columns of counts and of ordered levels, and the numbers of their priors on one table."""

from __future__ import annotations

from typing import Final, Self

import numpy as np
from jaxtyping import Float
from scipy.special import logit

from bayesrbf.records.specification import FurtherColumns
from bayesrbf.records.stored import Requirements, ascending, scales, stored

LEAST_DISPERSION: Final = 0.1
MOST_DISPERSION: Final = 10.0
"""Bounds of the dispersions at which a prior is centred; those of components are free."""

Cells = Float[np.ndarray, "row column"]
"""Cells of the columns of one law, NaN where missing."""
Weights = Float[np.ndarray, " row"]


@stored
class CountColumns(FurtherColumns):
    r"""Counts, negative binomial given the component, of mean mu and variance mu + alpha mu^2.

    .. math:: \mu_{kj} \sim \mathrm{Gamma}(1 + c\, m_j,\ c), \quad
        \alpha_{kj} \sim \mathrm{Gamma}(2,\ 1 / a_j), \quad c = 1/10

    with modes at the mean m and the dispersion a of the column. That of the means counts as
    a tenth of a row.
    """

    means: tuple[float, ...]
    """m of every column."""
    dispersions: tuple[float, ...]
    """a of every column."""

    @classmethod
    def of(cls, columns: tuple[str, ...], cells: Cells, weights: Weights) -> Self:
        """Priors at the smoothed mean and at the dispersion that gives the column's variance.

        >>> record = CountColumns.of(("visits",), np.array([[0.0], [8.0], [np.nan]]), np.ones(3))
        >>> np.round(record.means, 2), np.round(record.dispersions, 2)
        (array([2.83]), array([1.81]))
        """
        known = weights[:, None] * ~np.isnan(cells)
        rows, counts = known.sum(axis=0), np.nan_to_num(cells)
        means = ((known * counts).sum(axis=0) + 0.5) / (rows + 1)
        variances = (known * (counts - means) ** 2).sum(axis=0) / np.maximum(rows, 1e-300)
        dispersions = (variances - means) / means**2
        dispersions = np.clip(dispersions, LEAST_DISPERSION, MOST_DISPERSION)
        return cls(columns, tuple(means.tolist()), tuple(dispersions.tolist()))

    def centred(self, cells: Cells, weights: Weights) -> Self:
        """The law with its prior centred on other rows."""
        return self.of(self.columns, cells, weights)

    def __laws__(self) -> Requirements:
        n = len(self.columns)
        both = n == len(self.means) == len(self.dispersions)
        yield both, "a mean and a dispersion for every column"
        yield scales(self.means) and scales(self.dispersions), "positive means and dispersions"


@stored
class OrdinalColumns(FurtherColumns):
    r"""Ordered levels as codes from 0, cumulative logits given the component.

    .. math:: P(x_j \le l \mid k) = \sigma(\tau_{kj} c_{jl} - \eta_{kj}), \quad
        \eta_{kj} \sim N(0, 3^2), \quad \tau_{kj} \sim \mathrm{Gamma}(2, 1)

    The cut points c are the logits of the column's own cumulative shares: location 0 and
    slope 1, the mode of the prior, are the column itself.
    """

    cuts: tuple[tuple[float, ...], ...]
    """Increasing cut points of every column, one fewer than it has levels."""

    @property
    def n_levels(self) -> tuple[int, ...]:
        """Number of levels of every column."""
        return tuple(len(cuts) + 1 for cuts in self.cuts)

    @classmethod
    def of(
        cls, columns: tuple[str, ...], n_levels: tuple[int, ...], cells: Cells, weights: Weights
    ) -> Self:
        """Cut points from the shares of the levels, half a row added to each.

        >>> cells = np.array([[0.0], [0.0], [1.0], [2.0], [np.nan]])
        >>> np.round(OrdinalColumns.of(("stage",), (3,), cells, np.ones(5)).cuts, 2)
        array([[-0.18,  0.98]])
        """
        cuts = []
        for column, size in zip(cells.T, n_levels, strict=True):
            seen = ~np.isnan(column)
            codes = column[seen].astype(np.intp)
            counts = np.bincount(codes, weights[seen], minlength=size) + 0.5
            below = np.cumsum(counts)[:-1]
            cuts.append(tuple(logit(below / counts.sum()).tolist()))
        return cls(columns, tuple(cuts))

    def centred(self, cells: Cells, weights: Weights) -> Self:
        """The law with cut points from the shares of its levels among other rows."""
        return self.of(self.columns, self.n_levels, cells, weights)

    def __laws__(self) -> Requirements:
        yield len(self.columns) == len(self.cuts), "cut points for every column"
        yield all(map(ascending, self.cuts)), "cut points in rising order"
