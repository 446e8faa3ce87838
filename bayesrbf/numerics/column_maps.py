r"""Monotone maps of real columns towards a normal shape; a missing cell stays missing.

**Half rank.** The mean of a column in standard units (held within 4) and of its normal scores
:math:`\Phi^{-1}(\text{mid-rank} / n)`, restandardised: outliers come near, and yet far cells
stay farther than near ones. Between the training cells it is linear, outside them flat.

**Yeo-Johnson.** With :math:`p = \lambda` for :math:`x \ge 0` and :math:`p = 2 - \lambda` below,

.. math:: \psi(x) = \mathrm{sign}(x) \frac{(1 + |x|)^p - 1}{p}, \quad
   \hat\lambda = \arg\max -\tfrac12 \log \mathrm{Var}\,\psi
   + (\lambda - 1) \overline{\mathrm{sign}(x) \log(1 + |x|)} .
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri

FARTHEST = 4.0
"""Half ranks: bound of cells in standard units."""
LAMBDAS = (-4.0, 6.0)
"""Yeo-Johnson: range of the powers; 1 is no change."""
GOLDEN = (np.sqrt(5) - 1) / 2
STEPS = 25
"""Golden sections of the search, which give powers within 1e-4."""
FARTHEST_BEFORE, FARTHEST_AFTER = 30.0, 8.0
"""Yeo-Johnson: bounds of cells before and after the map."""
LEAST = 1e-12


@dataclass(frozen=True)
class HalfRankMap:
    """The half-rank map of every column."""

    knots: tuple[Float[np.ndarray, " _"], ...]  # Distinct training cells, ascending.
    scores: tuple[Float[np.ndarray, " _"], ...]  # Their standardised normal scores.

    def forward(
        self, standard: Float[np.ndarray, "row feature"]
    ) -> Float[np.ndarray, "row feature"]:
        """Map cells in standard units."""
        result = 0.5 * np.clip(standard, -FARTHEST, FARTHEST)
        for column, (knots, scores) in enumerate(zip(self.knots, self.scores, strict=True)):
            result[:, column] += 0.5 * np.interp(standard[:, column], knots, scores)
        return result


@dataclass(frozen=True)
class PowerMap:
    """The Yeo-Johnson map of every column, restandardised."""

    powers: Float[np.ndarray, " feature"]  # Called lambda above.
    location: Float[np.ndarray, " feature"]  # Means of mapped training cells.
    scale: Float[np.ndarray, " feature"]  # Their standard deviations.

    def forward(
        self, standard: Float[np.ndarray, "row feature"]
    ) -> Float[np.ndarray, "row feature"]:
        """Map cells in standard units."""
        held = np.clip(standard, -FARTHEST_BEFORE, FARTHEST_BEFORE)
        mapped = (yeo_johnson(held, self.powers) - self.location) / self.scale
        return np.clip(mapped, -FARTHEST_AFTER, FARTHEST_AFTER)


def fit_half_rank(
    standard: Float[np.ndarray, "row feature"], weights: Float[np.ndarray, " row"]
) -> HalfRankMap:
    """Learn the normal scores of every column; a column without a cell is mapped by value alone."""
    pairs = [_normal_scores(column, weights) for column in standard.T]
    return HalfRankMap(tuple(knots for knots, _ in pairs), tuple(scores for _, scores in pairs))


def _normal_scores(column: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct cells and their standardised normal scores; ties share a mid-rank."""
    known = ~np.isnan(column)
    if not known.any():
        return np.zeros(1), np.zeros(1)
    knots, place = np.unique(column[known], return_inverse=True)
    mass = np.bincount(place, weights[known])
    shares = mass / mass.sum()
    scores = ndtri(np.cumsum(shares) - 0.5 * shares)
    scores = scores - shares @ scores
    spread = np.sqrt(shares @ scores**2)
    return knots, scores / (spread if spread > LEAST else 1.0)


def fit_power(
    standard: Float[np.ndarray, "row feature"], weights: Float[np.ndarray, " row"]
) -> PowerMap:
    """Find the power of every column by maximum likelihood (Yeo and Johnson, 2000, section 3).

    A column without two different cells is left alone.
    """
    known = ~np.isnan(standard)
    x = np.where(known, np.clip(standard, -FARTHEST_BEFORE, FARTHEST_BEFORE), 0.0)
    shares = known * weights[:, None]
    shares = shares / np.maximum(shares.sum(axis=0), LEAST)
    slope = (shares * np.sign(x) * np.log1p(np.abs(x))).sum(axis=0)

    def loss(powers: np.ndarray) -> np.ndarray:
        _, variance = _moments(yeo_johnson(x, powers), shares)
        return 0.5 * np.log(np.maximum(variance, LEAST)) - (powers - 1) * slope

    powers = _golden_section(loss, x.shape[1])
    location, variance = _moments(yeo_johnson(x, powers), shares)
    still = variance <= LEAST
    return PowerMap(
        np.where(still, 1.0, powers),
        np.where(still, 0.0, location),
        np.where(still, 1.0, np.sqrt(np.maximum(variance, LEAST))),
    )


def yeo_johnson(
    x: Float[np.ndarray, "row feature"], powers: Float[np.ndarray, " feature"]
) -> Float[np.ndarray, "row feature"]:
    """Yeo-Johnson's power transformation psi of every column, see above.

    >>> yeo_johnson(np.array([[3.0], [-3.0]]), np.array([0.5])).ravel()
    array([ 2.        , -4.66666667])
    """
    exponent = np.where(x >= 0, powers, 2 - powers)
    logs = np.log1p(np.abs(x))
    none = np.abs(exponent) < LEAST
    grown = np.expm1(exponent * logs) / np.where(none, 1.0, exponent)
    return np.sign(x) * np.where(none, logs, grown)


def _moments(values: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and variance of every column."""
    mean = (shares * values).sum(axis=0)
    return mean, (shares * (values - mean) ** 2).sum(axis=0)


def _golden_section(
    loss: Callable[[np.ndarray], np.ndarray], n_columns: int
) -> Float[np.ndarray, " feature"]:
    """Minimise a function of each column's own power, all columns in step."""
    low, high = (np.full(n_columns, bound) for bound in LAMBDAS)
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = loss(left), loss(right)
    for _ in range(STEPS):
        lower = at_left < at_right
        low, high = np.where(lower, low, left), np.where(lower, right, high)
        kept, at_kept = np.where(lower, left, right), np.where(lower, at_left, at_right)
        probe = np.where(lower, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        at_probe = loss(probe)
        left, right = np.where(lower, probe, kept), np.where(lower, kept, probe)
        at_left, at_right = (
            np.where(lower, at_probe, at_kept),
            np.where(lower, at_kept, at_probe),
        )
    return 0.5 * (low + high)
