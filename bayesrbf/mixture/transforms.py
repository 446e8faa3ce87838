"""Transforms of real columns towards normality, and their fits; a missing cell stays missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int
from scipy.special import ndtri

from bayesrbf.base.arrays import single_digits
from bayesrbf.base.priors import PowerTransforms, yeo_johnson
from bayesrbf.base.records import Requirements, ascending, stored, within
from bayesrbf.base.rows import Observations, Standardisation

FARTHEST = 4.0
"""Half ranks: cells are clipped to this many standard units."""
LAMBDAS = (-4.0, 6.0)
"""Yeo-Johnson: range of the powers; 1 is no change."""
GOLDEN = (np.sqrt(5) - 1) / 2  # Each section reuses one of the two probes of the last.
STEPS = 25
"""Golden sections of the search, which give powers within 1e-4."""
PRIOR_PRECISION = 4.0
"""Yeo-Johnson: precision of the normal prior of a power, with mean 1, no change."""
MIN_SPREAD = 1e-12
"""Standard deviations, variances and weights of a column below this are treated as zero."""


@stored
class HalfRankTransforms:
    r"""Half-rank transform of every real column: the mean of standardised cell and normal score.

    The cell is clipped to 4 standard units, and the score :math:`\Phi^{-1}(\text{mid-rank} / n)`
    restandardised: outliers come near, and yet far cells stay farther than near ones. Between the
    training cells the score is linear, outside them flat.
    """

    units: Standardisation
    knots: Float[np.ndarray, " knot"]
    """Distinct training cells of one column after the other, ascending, in standard units."""
    scores: Float[np.ndarray, " knot"]
    """Standardised normal scores of the knots."""
    n_knots: Int[np.ndarray, " feature"]
    """Number of knots of each column."""

    @property
    def columns(self) -> list[tuple[Float[np.ndarray, " _"], Float[np.ndarray, " _"]]]:
        """Knots and scores of every column."""
        knots, scores = (
            np.split(values, np.cumsum(self.n_knots)) for values in (self.knots, self.scores)
        )
        # np.split adds an empty array behind the last column.
        return list(zip(knots[:-1], scores[:-1], strict=True))

    @property
    def rounded(self) -> HalfRankTransforms:
        """A copy with single precision's digits, in which neighbouring knots may become one."""
        pairs = [(single_digits(knots), single_digits(scores)) for knots, scores in self.columns]
        firsts = [np.unique(knots, return_index=True)[1] for knots, _ in pairs]
        return _joined(
            self.units, [(a[at], b[at]) for (a, b), at in zip(pairs, firsts, strict=True)]
        )

    def forward(self, real: Float[np.ndarray, "row feature"]) -> Float[np.ndarray, "row feature"]:
        """Half the clipped standardised cell plus half its normal score."""
        standard = self.units.forward(real)
        # One far cell must not stretch the linear half of its column.
        result = 0.5 * np.clip(standard, -FARTHEST, FARTHEST)
        for column, (knots, scores) in enumerate(self.columns):
            result[:, column] += 0.5 * np.interp(standard[:, column], knots, scores)
        return result

    def applied(self, rows: Observations) -> Observations:
        """Rows with their real cells mapped."""
        return replace(rows, real=self.forward(rows.real))

    def __laws__(self) -> Requirements:
        n = self.n_knots
        yield n.size == self.units.scale.size and within(n, 1), "knots for every column"
        # Counts of a file may overflow when they are added: none can be above the number of knots.
        yield within(n, 1, self.knots.size + 1), "no more knots of a column than there are"
        yield n.sum() == self.knots.size, "as many knots as the columns have together"
        yield all(ascending(knots) for knots, _ in self.columns), "knots in rising order"
        yield within(self.scores, -1e6, 1e6), "scores in standard units"


def fit_half_rank(
    units: Standardisation,
    real: Float[np.ndarray, "row feature"],
    weights: Float[np.ndarray, " row"],
) -> HalfRankTransforms:
    """Half-rank transforms of all columns; the normal scores of a column without cells are 0."""
    return _joined(units, [_normal_scores(column, weights) for column in units.forward(real).T])


def _joined(
    units: Standardisation, columns: list[tuple[np.ndarray, np.ndarray]]
) -> HalfRankTransforms:
    """Half-rank transforms from (knots, scores) of every column.

    One array holds all: a file may have 10,000 arrays, and a table thousands of columns.
    """
    knots, scores = ([pair[of] for pair in columns] for of in (0, 1))
    sizes = np.array([values.size for values in knots], dtype=np.int64)
    return HalfRankTransforms(units, np.hstack([[], *knots]), np.hstack([[], *scores]), sizes)


def _normal_scores(column: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct cells of a column and their standardised normal scores, ties at their mid-rank."""
    known = ~np.isnan(column)
    if not known.any():
        return np.zeros(1), np.zeros(1)
    knots, positions = np.unique(column[known], return_inverse=True)
    mass = np.bincount(positions, weights[known])
    shares = mass / mass.sum()
    # Mid-ranks keep clear of 0 and 1, where the normal quantile is infinite.
    scores = ndtri(np.cumsum(shares) - 0.5 * shares)
    scores = scores - shares @ scores
    spread = np.sqrt(shares @ scores**2)
    return knots, scores / (spread if spread > MIN_SPREAD else 1.0)


def fit_power(
    units: Standardisation,
    real: Float[np.ndarray, "row feature"],
    weights: Float[np.ndarray, " row"],
) -> PowerTransforms:
    r"""Yeo-Johnson power of every column, at its posterior mode under a normal law of the column.

    With v the weight of a cell and t the cell in standard units,

    .. math:: \hat\lambda = \arg\max \; -\tfrac12 \Big(\sum v\Big) \log \mathrm{Var}\,\psi(t)
        + (\lambda - 1) \sum v \, \mathrm{sign}(t) \log(1 + |t|) - 2 (\lambda - 1)^2 .

    A column without two different cells has power 1.
    """
    standard = units.forward(real)
    known = ~np.isnan(standard) & (weights[:, None] > 0)
    # A missing cell stands at 0, which every power maps to itself, with a share of 0.
    x = np.where(known, standard, 0.0)
    mass = (known * weights[:, None]).sum(axis=0)
    # A column without a cell has no mass; its shares are 0.
    shares = known * weights[:, None] / np.maximum(mass, MIN_SPREAD)
    slope = (shares * np.sign(x) * np.log1p(np.abs(x))).sum(axis=0)

    def loss(powers: np.ndarray) -> np.ndarray:
        # A constant column has no variance: its logarithm stays finite, and its power is 1 below.
        variance = _variance(yeo_johnson(x, powers), shares)
        of_cells = 0.5 * np.log(np.maximum(variance, MIN_SPREAD)) - (powers - 1) * slope
        return mass * of_cells + 0.5 * PRIOR_PRECISION * (powers - 1) ** 2

    powers = _golden_section(loss, x.shape[1])
    # A constant column is left exactly as it is; the search would only come near to that.
    still = _variance(x, shares) <= MIN_SPREAD
    return PowerTransforms(
        units.location,
        units.scale,
        np.where(still, 1.0, powers),
        x.min(axis=0, initial=0.0),
        x.max(axis=0, initial=0.0),
    )


def _variance(values: np.ndarray, shares: np.ndarray) -> Float[np.ndarray, " feature"]:
    """Weighted variance of every column."""
    mean = (shares * values).sum(axis=0)
    return (shares * (values - mean) ** 2).sum(axis=0)


def _golden_section(
    loss: Callable[[np.ndarray], np.ndarray], n_columns: int
) -> Float[np.ndarray, " feature"]:
    """Powers that minimise ``loss`` in each column, by golden section; it maps powers to losses."""
    low, high = (np.full(n_columns, bound) for bound in LAMBDAS)
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = loss(left), loss(right)
    for _ in range(STEPS):
        lower = at_left < at_right
        low, high = np.where(lower, low, left), np.where(lower, right, high)
        # The golden ratio puts one of the old probes where a new one is due: one evaluation a step.
        old_probe, at_old_probe = np.where(lower, left, right), np.where(lower, at_left, at_right)
        probe = np.where(lower, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_probe = loss(probe)
        left, right = np.where(lower, probe, old_probe), np.where(lower, old_probe, probe)
        at_left, at_right = (
            np.where(lower, at_probe, at_old_probe),
            np.where(lower, at_old_probe, at_probe),
        )
    return 0.5 * (low + high)
