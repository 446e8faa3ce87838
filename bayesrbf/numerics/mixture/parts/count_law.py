r"""Columns of counts: negative binomial given the component.

With size :math:`r = 1 / \alpha`, a count has

.. math:: \log p(x) = \log \Gamma(x + r) - \log \Gamma(r) - \log x!
    + x \log \frac{\mu}{\mu + r} + r \log \frac{r}{\mu + r}.

What rows say of both variables is in how often each count occurs, weighted. The M-step takes the
best mean given the dispersion, the positive root of a quadratic equation, and then climbs in
:math:`\log \alpha`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.special import digamma, gammaln, polygamma

from bayesrbf.numerics.mixture.parts.column_law import Cells, ColumnLaw, Values
from bayesrbf.numerics.mixture.parts.newton import climb
from bayesrbf.records import names
from bayesrbf.records.column_laws import CountColumns
from bayesrbf.records.specification import Variable

MEAN_ROWS: Final = 0.1
"""Rows that the prior of a mean counts as."""
DISPERSION_SHAPE: Final = 2.0

PerColumn = Float[np.ndarray, "component column"]


class CountLaw(ColumnLaw):
    """Independent counts given the component; statistics are histograms from 0 on."""

    def __init__(self, record: CountColumns, n_components: int) -> None:
        self._means, dispersions = np.asarray(record.means), np.asarray(record.dispersions)
        self._dispersions = dispersions / (DISPERSION_SHAPE - 1)  # scales of the gamma prior
        self._size = (n_components, len(record.columns))
        dims = (names.COMPONENT, names.COUNT_COLUMN)
        self.variables = (
            Variable(names.COUNT_MEANS, dims, self._size, "log"),
            Variable(names.COUNT_DISPERSIONS, dims, self._size, "log"),
        )

    def log_density(self, cells: Cells, values: Values) -> Float[np.ndarray, "row component"]:
        """Log density in nats of the observed counts of every row under every component."""
        means, dispersions = _both(values)
        total = np.zeros((len(cells), len(means)))
        for column, mean, dispersion in zip(cells.T, means.T, dispersions.T, strict=True):
            known = np.flatnonzero(~np.isnan(column))
            # Counts repeat: the density is evaluated once for each distinct one.
            counts, places = np.unique(column[known], return_inverse=True)
            by_count = _log_density(counts[:, None], mean, dispersion)
            total[known] += (by_count - gammaln(counts + 1)[:, None])[places]
        return total

    def statistics(
        self, cells: Cells, weights: Float[np.ndarray, "row component"]
    ) -> Float[np.ndarray, "component column count"]:
        """Weighted histograms of every column, from 0 to the largest count of all."""
        largest = int(np.nanmax(cells, initial=0.0))
        histograms = np.zeros((weights.shape[1], cells.shape[1], largest + 1))
        for j, column in enumerate(cells.T):
            known = np.flatnonzero(~np.isnan(column))
            counts = column[known].astype(np.intp)
            for k, weight in enumerate(weights[known].T):
                histograms[k, j] = np.bincount(counts, weight, minlength=largest + 1)
        return histograms

    def log_prior(self, values: Values) -> float:
        """Log density of both gamma priors in nats."""
        means, dispersions = _both(values)
        of_means = _log_gamma(means, 1 + MEAN_ROWS * self._means, 1 / MEAN_ROWS)
        return float(
            of_means.sum() + _log_gamma(dispersions, DISPERSION_SHAPE, self._dispersions).sum()
        )

    def gradient(
        self, values: Values, statistics: Float[np.ndarray, "component column count"]
    ) -> dict[str, np.ndarray]:
        """Gradient of expected log density plus log prior in the constrained values."""
        means, dispersions = _both(values)
        rows = _Histograms(statistics)
        sizes = 1 / dispersions
        by_mean = rows.sums / means - (rows.sums + rows.totals * sizes) / (sizes + means)
        by_mean += MEAN_ROWS * (self._means / means - 1)
        slope, _ = rows.by_log_dispersion(means, dispersions)
        slope += self._prior_slope(dispersions)
        return {names.COUNT_MEANS: by_mean, names.COUNT_DISPERSIONS: slope / dispersions}

    def mode(
        self, values: Values, statistics: Float[np.ndarray, "component column count"]
    ) -> dict[str, np.ndarray]:
        """The best means given the dispersions, then dispersions that are better than these."""
        rows = _Histograms(statistics)
        means = self._best_means(rows, 1 / values[names.COUNT_DISPERSIONS])

        def value(t: PerColumn) -> PerColumn:
            dispersions = np.exp(t)
            prior = (DISPERSION_SHAPE - 1) * t - dispersions / self._dispersions
            return rows.log_likelihood(means, dispersions) + prior

        def step(t: PerColumn) -> PerColumn:
            slope, curvature = rows.by_log_dispersion(means, np.exp(t))
            slope += self._prior_slope(np.exp(t))
            curvature -= np.exp(t) / self._dispersions
            concave = curvature < 0  # elsewhere, a step uphill
            newton = slope / np.where(concave, -curvature, 1.0)
            # From afar Newton's step overshoots: at most two units of a log dispersion are taken.
            return np.where(concave, np.clip(newton, -2.0, 2.0), np.sign(slope))

        t = climb(value, step, np.log(values[names.COUNT_DISPERSIONS]))
        return {names.COUNT_MEANS: means, names.COUNT_DISPERSIONS: np.exp(t)}

    def _best_means(self, rows: _Histograms, sizes: PerColumn) -> PerColumn:
        r"""Root of :math:`c \mu^2 + (n r + c r - c m) \mu - (s + c m) r = 0`, divided by r."""
        prior = MEAN_ROWS * self._means
        linear = rows.totals + MEAN_ROWS - prior / sizes
        constant, square = rows.sums + prior, MEAN_ROWS / sizes
        root = np.sqrt(linear**2 + 4 * square * constant)
        # Of the two forms of the positive root that one is taken in which nothing cancels.
        falling = 2 * constant / np.where(linear >= 0, linear + root, 1.0)
        return np.where(linear >= 0, falling, (root - linear) / (2 * square))

    def _prior_slope(self, dispersions: PerColumn) -> PerColumn:
        """Derivative of the dispersions' log prior by their logarithms."""
        return DISPERSION_SHAPE - 1 - dispersions / self._dispersions

    def prior_mode(self) -> dict[str, np.ndarray]:
        """Mean and dispersion of the column in every component."""
        dispersions = self._dispersions * (DISPERSION_SHAPE - 1)
        return {
            names.COUNT_MEANS: np.broadcast_to(self._means, self._size).copy(),
            names.COUNT_DISPERSIONS: np.broadcast_to(dispersions, self._size).copy(),
        }

    def moments(self, values: Values) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance (component, column) of a missing count."""
        means, dispersions = _both(values)
        return means, means + dispersions * means**2

    def sample(
        self, components: Int[np.ndarray, " row"], values: Values, rng: np.random.Generator
    ) -> Cells:
        """Poisson counts whose rates are gamma variables."""
        means, dispersions = (value[components] for value in _both(values))
        return rng.poisson(rng.gamma(1 / dispersions, means * dispersions)).astype(float)

    def embedding(
        self, cells: Cells, weights: Float[np.ndarray, " row"]
    ) -> Float[np.ndarray, "row coordinate"]:
        """Standardised logarithms of the counts plus one: a tail makes no cluster of its own."""
        return super().embedding(np.log1p(cells), weights)


class _Histograms:
    """Weighted histograms, the counts that occur in none of them left out."""

    def __init__(self, histograms: Float[np.ndarray, "component column count"]) -> None:
        self._counts = np.flatnonzero(histograms.any(axis=(0, 1))).astype(float)
        self._weights = histograms[..., self._counts.astype(np.intp)]
        self.totals = self._weights.sum(axis=-1)
        self.sums = self._weights @ self._counts

    def log_likelihood(self, means: PerColumn, dispersions: PerColumn) -> PerColumn:
        """Expected log density of the counts less what does not depend on the values."""
        by_count = _log_density(self._counts, means[..., None], dispersions[..., None])
        return (self._weights * by_count).sum(axis=-1)

    def by_log_dispersion(
        self, means: PerColumn, dispersions: PerColumn
    ) -> tuple[PerColumn, PerColumn]:
        """First and second derivative of the log likelihood by the log dispersions."""
        sizes = 1 / dispersions
        places = self._counts + sizes[..., None]
        first = digamma(places) - digamma(sizes)[..., None]
        second = polygamma(1, places) - polygamma(1, sizes)[..., None]
        excess = (self.totals * means - self.sums) / (sizes + means)
        slope = (self._weights * first).sum(axis=-1) + excess
        slope -= self.totals * np.log1p(means * dispersions)
        curvature = (self._weights * second).sum(axis=-1) - excess / (sizes + means)
        curvature += self.totals * means * dispersions / (sizes + means)
        return -sizes * slope, sizes * (slope + sizes * curvature)


def _both(values: Values) -> tuple[PerColumn, PerColumn]:
    """Means and dispersions."""
    return values[names.COUNT_MEANS], values[names.COUNT_DISPERSIONS]


def _log_density(
    counts: np.ndarray, means: np.ndarray, dispersions: np.ndarray
) -> Float[np.ndarray, "*shape"]:
    """Log density of counts in nats, without their log factorials; shapes broadcast."""
    sizes, ratios = 1 / dispersions, means * dispersions
    drawn = gammaln(counts + sizes) - gammaln(sizes) + counts * np.log(ratios)
    # Near the Poisson limit 1 + m a would round to 1; log1p keeps its digits.
    return drawn - (counts + sizes) * np.log1p(ratios)


def _log_gamma(
    values: np.ndarray, shapes: np.ndarray | float, scales: np.ndarray | float
) -> np.ndarray:
    """Log densities of gamma variables."""
    constant = gammaln(shapes) + shapes * np.log(scales)
    return (shapes - 1) * np.log(values) - values / scales - constant
