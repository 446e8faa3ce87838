r"""Columns of ordered levels: cumulative logits given the component.

Between the cut points :math:`a = \tau c_{l-1} - \eta` and :math:`b = \tau c_l - \eta` of a level

.. math:: \log p(l) = \log (\sigma(b) - \sigma(a))
    = \log \sigma(b) + \log \sigma(-a) + \log (1 - e^{a - b}),

without cancellation in the tails; the lowest level has no a and the highest no b. The logarithm is
concave in :math:`(\eta, \tau)`, and so are both log priors: the M-step is Newton's method, with one
maximum.

References
----------
Pratt (1981), Concavity of the log likelihood, JASA 76, 103-106.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.special import expit, gammaln, log_expit

from bayesrbf.numerics.mixture.gaussian import LOG_2PI
from bayesrbf.numerics.mixture.parts.column_law import Cells, ColumnLaw, Values
from bayesrbf.numerics.mixture.parts.newton import climb
from bayesrbf.records import names
from bayesrbf.records.column_laws import OrdinalColumns
from bayesrbf.records.specification import Variable

LOCATION_SD: Final = 3.0
SLOPE_SHAPE: Final = 2.0

PerColumn = Float[np.ndarray, "component column"]
PerLevel = Float[np.ndarray, "component column level"]


class _Derivatives(NamedTuple):
    """First and second derivatives of the levels' log probabilities."""

    location: PerLevel
    slope: PerLevel
    location_twice: PerLevel
    slope_twice: PerLevel
    both: PerLevel


class OrdinalLaw(ColumnLaw):
    """Independent ordered levels given the component; statistics are counts of the levels."""

    def __init__(self, record: OrdinalColumns, n_components: int) -> None:
        self._cuts = [np.asarray(cuts) for cuts in record.cuts]
        self._size = (n_components, len(record.columns))
        self._most = max(record.n_levels, default=0)
        # Cut points above and below every level, 0 where there is none, and which there are.
        shape = (len(record.columns), self._most)
        self._above, self._below = np.zeros(shape), np.zeros(shape)
        self._has_above, self._has_below = np.zeros(shape, bool), np.zeros(shape, bool)
        self._exists = np.arange(self._most) < np.reshape(record.n_levels, (-1, 1))
        for j, cuts in enumerate(self._cuts):
            self._above[j, : cuts.size] = self._below[j, 1 : cuts.size + 1] = cuts
            self._has_above[j, : cuts.size] = self._has_below[j, 1 : cuts.size + 1] = True
        self._between = self._has_above & self._has_below
        self._widths = np.where(self._between, self._above - self._below, 1.0)
        dims = (names.COMPONENT, names.ORDINAL_COLUMN)
        self.variables = (
            Variable(names.ORDINAL_LOCATIONS, dims, self._size, "identity"),
            Variable(names.ORDINAL_SLOPES, dims, self._size, "log"),
        )

    def log_density(self, cells: Cells, values: Values) -> Float[np.ndarray, "row component"]:
        """Log probability in nats of the observed levels of every row under every component."""
        by_level = self._log_probabilities(*_both(values))
        total = np.zeros((len(cells), len(by_level)))
        for j, column in enumerate(cells.T):
            known = np.flatnonzero(~np.isnan(column))
            total[known] += by_level[:, j, column[known].astype(np.intp)].T
        return total

    def statistics(
        self, cells: Cells, weights: Float[np.ndarray, "row component"]
    ) -> Float[np.ndarray, "component column level"]:
        """Weighted counts of every column's levels."""
        counts = np.zeros((weights.shape[1], cells.shape[1], self._most))
        for j, column in enumerate(cells.T):
            known = np.flatnonzero(~np.isnan(column))
            codes = column[known].astype(np.intp)
            for k, weight in enumerate(weights[known].T):
                counts[k, j] = np.bincount(codes, weight, minlength=self._most)
        return counts

    def log_prior(self, values: Values) -> float:
        """Log density of normal locations and gamma slopes in nats."""
        locations, slopes = _both(values)
        constant = 0.5 * LOG_2PI + np.log(LOCATION_SD) + gammaln(SLOPE_SHAPE)
        return float(_log_prior(locations, slopes).sum() - constant * locations.size)

    def gradient(
        self, values: Values, statistics: Float[np.ndarray, "component column level"]
    ) -> dict[str, np.ndarray]:
        """Gradient of expected log density plus log prior in the constrained values."""
        locations, slopes = _both(values)
        by_level = self._derivatives(locations, slopes)
        return {
            names.ORDINAL_LOCATIONS: (statistics * by_level.location).sum(axis=-1)
            - locations / LOCATION_SD**2,
            names.ORDINAL_SLOPES: (statistics * by_level.slope).sum(axis=-1)
            + (SLOPE_SHAPE - 1) / slopes
            - 1,
        }

    def mode(
        self, values: Values, statistics: Float[np.ndarray, "component column level"]
    ) -> dict[str, np.ndarray]:
        """Where expected log density plus log prior is largest."""

        def value(point: np.ndarray) -> PerColumn:
            likelihood = (statistics * self._log_probabilities(*point)).sum(axis=-1)
            return likelihood + _log_prior(*point)

        def step(point: np.ndarray) -> np.ndarray:
            locations, slopes = point
            by_level = self._derivatives(locations, slopes)
            sums = [(statistics * derivative).sum(axis=-1) for derivative in by_level]
            force, pull, force_twice, pull_twice, both = sums
            force -= locations / LOCATION_SD**2
            pull += (SLOPE_SHAPE - 1) / slopes - 1
            force_twice -= 1 / LOCATION_SD**2
            pull_twice -= (SLOPE_SHAPE - 1) / slopes**2
            determinant = force_twice * pull_twice - both**2  # of a negative definite matrix
            # Newton's step by Cramer's rule, for all columns and components at once.
            along = (both * pull - pull_twice * force) / determinant
            across = (both * force - force_twice * pull) / determinant
            return np.stack([along, across])

        locations, slopes = climb(value, step, np.stack(_both(values)))
        return {names.ORDINAL_LOCATIONS: locations, names.ORDINAL_SLOPES: slopes}

    def prior_mode(self) -> dict[str, np.ndarray]:
        """Location 0 and slope 1: the column itself in every component."""
        ones = np.ones(self._size)
        return {names.ORDINAL_LOCATIONS: 0 * ones, names.ORDINAL_SLOPES: ones}

    def moments(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance (component, column) of the code of a missing level."""
        by_level = self._log_probabilities(*_both(values))
        probabilities = np.where(self._exists, np.exp(by_level), 0.0)
        codes = np.arange(self._most)
        means = probabilities @ codes
        return means, (probabilities * (codes - means[..., None]) ** 2).sum(axis=-1)

    def sample(
        self, components: Int[np.ndarray, " row"], values: Values, rng: np.random.Generator
    ) -> Cells:
        """The level whose cut points a logistic variable lies between."""
        locations, slopes = (value[components] for value in _both(values))
        latent = (rng.logistic(size=locations.shape) + locations) / slopes
        columns = zip(self._cuts, latent.T, strict=True)
        codes = [np.searchsorted(cuts, column) for cuts, column in columns]
        return np.array(codes, dtype=float).reshape(len(codes), len(latent)).T.copy()

    def _log_probabilities(self, locations: PerColumn, slopes: PerColumn) -> PerLevel:
        """Log probability of every level; 0 for levels that a column does not have."""
        locations, slopes = locations[..., None], slopes[..., None]
        above = log_expit(slopes * self._above - locations)
        below = log_expit(locations - slopes * self._below)
        # F(a) - F(b) of a logistic law is F(a) (1 - F(b)) (1 - exp(b - a)): a product, where a
        # difference of functions that are nearly equal would lose its digits.
        between = np.log(-np.expm1(-slopes * self._widths))
        total = np.where(self._has_above, above, 0.0) + np.where(self._has_below, below, 0.0)
        return total + np.where(self._between, between, 0.0)

    def _derivatives(self, locations: PerColumn, slopes: PerColumn) -> _Derivatives:
        """Derivatives of the log probabilities of every level."""
        locations, slopes = locations[..., None], slopes[..., None]
        above = np.where(self._has_above, expit(locations - slopes * self._above), 0.0)
        below = np.where(self._has_below, expit(slopes * self._below - locations), 0.0)
        gaps = slopes * self._widths
        ratio = np.where(self._between, np.exp(-gaps) / -np.expm1(-gaps), 0.0)
        twice_above, twice_below = above * (1 - above), below * (1 - below)
        squares = twice_above * self._above**2 + twice_below * self._below**2
        return _Derivatives(
            below - above,
            above * self._above - below * self._below + ratio * self._widths,
            -twice_above - twice_below,
            -squares - ratio * (1 + ratio) * self._widths**2,
            twice_above * self._above + twice_below * self._below,
        )


def _both(values: Values) -> tuple[PerColumn, PerColumn]:
    """Locations and slopes."""
    return values[names.ORDINAL_LOCATIONS], values[names.ORDINAL_SLOPES]


def _log_prior(locations: PerColumn, slopes: PerColumn) -> PerColumn:
    """Log densities of the priors without their constants."""
    return -0.5 * (locations / LOCATION_SD) ** 2 + (SLOPE_SHAPE - 1) * np.log(slopes) - slopes
