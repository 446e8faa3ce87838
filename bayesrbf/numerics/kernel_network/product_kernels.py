r"""Kernel values between rows with missing cells, integrated out in closed form.

A kernel sees every cell as a distribution; a missing one has that of a companion mixture given
the observed cells of its row. A product kernel is a product over columns of a factor for two
cells. Where a cell is missing, its factor is the expectation under the conditional distributions
of the two cells (a mean embedding, taken on the diagonal too).

**Reals.** With difference d of the means, sum :math:`s^2` of the variances, rate a:

.. math::
   E\, e^{-a|x - x'|} &= e^{-ad + a^2 s^2 / 2}\, h, \quad
   h = \tfrac12 [\mathrm{erfc}(z) + e^{2ad} \mathrm{erfc}(z')], \quad
   z, z' = (as \mp d/s) / \sqrt 2, \\
   E\, e^{-a (x - x')^2 / 2} &= (1 + a s^2)^{-1/2} \exp\{-d^2 / (2 / a + 2 s^2)\}

for :math:`d = |\bar x - \bar x'|`. Because :math:`z'^2 - z^2 = 2ad`, the second term of h is
:math:`e^{-z^2} \mathrm{erfcx}(z')`, which cannot overflow. Known cells are the limit
:math:`s \to 0`, :math:`h = 1`. That of the Laplace kernel is compiled: it takes most of the time.

**Categories.** With probability o that the levels agree: :math:`e^{-a} + (1 - e^{-a})\, o`.

So a Gram matrix costs one distance matrix and one product of matrices, as if
every cell were known, and then a correction of the pairs with a missing cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float
from scipy.spatial.distance import cdist

from bayesrbf.numerics.categories import one_hot
from bayesrbf.numerics.kernels.laplace_holes import add_laplace_holes
from bayesrbf.numerics.mixture.conditional import conditional_moments, conditional_probabilities
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.specification import MixtureSpecification
from bayesrbf.records.stored import MOST_PARTS, TOLERANCE, Requirements, stored, within

FARTHEST = 4.0  # Expected cells are clipped to this many standard deviations.
KernelName = Literal["laplace", "gaussian"]
TILE = 256
"""Rows of a Gram matrix that are made at once; the arrays needed for them stay in the cache."""


@stored
class CellMoments:
    """The distribution of every cell of some rows: a value, or a conditional law."""

    mean: Float[np.ndarray, "row feature"]
    """Real cells or their conditional means, in standard units."""
    variance: Float[np.ndarray, "row feature"]  # Conditional variances; 0 for an observed cell.
    probabilities: Float[np.ndarray, "row level"]
    """Level probabilities of all categorical columns, side by side; 0 and 1 for an observed
    cell."""
    unknown: Bool[np.ndarray, "row categorical"]  # Which categorical cells are missing.

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.mean.shape[0]

    @property
    def empty(self) -> Bool[np.ndarray, " row"]:
        """Which rows have no observed cell."""
        return (self.variance > 0).all(axis=1) & self.unknown.all(axis=1)

    def take(self, rows: np.ndarray | slice) -> CellMoments:
        """Select rows."""
        return CellMoments(
            self.mean[rows], self.variance[rows], self.probabilities[rows], self.unknown[rows]
        )

    def __laws__(self) -> Requirements:
        yield within(self.variance, 0, 1e12), "variances of 0 and above"
        yield within(abs(self.mean), 0, 1e6), "means in standard units"
        yield within(self.probabilities, 0, 1 + TOLERANCE), "probabilities"


def cell_moments(
    observations: Observations, parameters: MixtureParameters, specification: MixtureSpecification
) -> CellMoments:
    """Give every missing cell its distribution given the observed cells of its row.

    Rows and companion mixture are in standard units. The moments are averaged over *all*
    components by p(component | row). Labels are not used, not even those of training rows: a
    row must look the same to the kernel whether its label is known or not. Expected cells are
    clipped to ``FARTHEST``.
    """
    mean, variance = observations.real.copy(), np.zeros_like(observations.real)
    probabilities = one_hot(observations.codes, specification.levels)
    unknown = observations.codes < 0
    holes = np.flatnonzero(np.isnan(mean).any(axis=1) | unknown.any(axis=1))
    if holes.size:
        rows = observations.take(holes)
        mean[holes], variance[holes] = conditional_moments(rows, parameters, specification)
        levels = conditional_probabilities(rows, parameters, specification)
        # The empty first part is for tables without categorical columns.
        probabilities[holes] = np.concatenate([probabilities[holes][:, :0], *levels], axis=1)
    return CellMoments(np.clip(mean, -FARTHEST, FARTHEST), variance, probabilities, unknown)


def averaged(several: Sequence[CellMoments]) -> CellMoments:
    r"""Rows under an equal mixture of several distributions of their missing cells.

    .. math:: \bar m = \tfrac1M \sum_i m_i, \quad
        \bar v = \tfrac1M \sum_i \{v_i + (m_i - \bar m)^2\}, \quad
        \bar p = \tfrac1M \sum_i p_i
    """
    first = several[0]
    mean = np.mean([cells.mean for cells in several], axis=0)
    spread = np.mean([cells.variance + (cells.mean - mean) ** 2 for cells in several], axis=0)
    missing = first.variance > 0  # The average of a cell with itself differs from it by rounding.
    return CellMoments(
        np.where(missing, mean, first.mean),
        np.where(missing, spread, 0.0),
        np.mean([cells.probabilities for cells in several], axis=0),
        first.unknown,
    )


@stored
class ProductKernel:
    """A product kernel over real and categorical columns."""

    name: KernelName  # ``exp(-a |d|)`` or ``exp(-a d^2 / 2)`` of real cells.
    real_rates: Float[np.ndarray, " feature"]
    """Rates a of the real columns, positive, per standard unit."""
    category_rates: Float[np.ndarray, " categorical"]
    """Rates a of the categorical columns, at least 0: levels that differ have the factor
    ``exp(-a)``."""
    levels: tuple[int, ...]  # Number of levels of every categorical column.

    @property
    def rates(self) -> Float[np.ndarray, " column"]:
        """Rates of the real, then of the categorical columns."""
        return np.concatenate([self.real_rates, self.category_rates])

    def with_rates(self, rates: Float[np.ndarray, " column"]) -> ProductKernel:
        """The kernel with other rates."""
        d = self.real_rates.size
        return replace(self, real_rates=rates[:d], category_rates=rates[d:])

    def __call__(
        self, left: CellMoments, right: CellMoments
    ) -> Float[np.ndarray, "left_row right_row"]:
        """Kernel values of all pairs, in (0, 1]."""
        result = np.empty((left.n_rows, right.n_rows))
        for start in range(0, left.n_rows, TILE):
            rows = slice(start, start + TILE)
            result[rows] = self._tile(left.take(rows), right)
        return result

    def gram(self, rows: CellMoments) -> Float[np.ndarray, "row row"]:
        """Kernel values of all pairs of the same rows; only half of them are computed."""
        result = np.empty((rows.n_rows, rows.n_rows))
        for start in range(0, rows.n_rows, TILE):
            tile = self._tile(rows.take(slice(start, start + TILE)), rows.take(slice(start, None)))
            result[start : start + TILE, start:] = tile
            result[start:, start : start + TILE] = tile.T
        return result

    def _tile(self, left: CellMoments, right: CellMoments) -> np.ndarray:
        """All columns' factors as if cells were known, then what missing cells change."""
        log_values = self._log_known_reals(left, right)
        if self.levels:
            log_values += self._log_known_categories(left, right)
        # In logarithms: at large rates one factor is 0 where the other is infinite.
        if left.variance.any() or right.variance.any():
            self._add_real_holes(log_values, left, right)
        values = np.exp(log_values)
        self._multiply_unknown_categories(values, left, right)
        return values

    def _add_real_holes(
        self, log_values: np.ndarray, left: CellMoments, right: CellMoments
    ) -> None:
        """Add what missing real cells change."""
        if self.name == "laplace":
            by_column = (left.mean, left.variance, right.mean, right.variance)
            # Copies: compiled code is another where an array cannot be written to.
            columns = [np.array(one.T, order="C") for one in by_column]
            add_laplace_holes(log_values, *columns, self.real_rates.copy())
            return
        for column, rate in enumerate(self.real_rates):
            first, second = left.variance[:, column], right.variance[:, column]
            for i, j in _blocks(first > 0, second > 0):
                d = np.abs(left.mean[i, column, None] - right.mean[j, column])
                log_values[_place(i, j)] += _log_gaussian_holes(d, first[i, None] + second[j], rate)

    def _log_known_reals(self, left: CellMoments, right: CellMoments) -> np.ndarray:
        """Log of all real columns' factors, at the conditional means or without h."""
        rates = self.real_rates
        if self.name == "gaussian":
            root = np.sqrt(rates)
            return -0.5 * cdist(left.mean * root, right.mean * root, "sqeuclidean")
        # The exponent a² s² / 2 is a sum over the two rows, because their variances add up.
        spread = [0.5 * (rows.variance @ rates**2) for rows in (left, right)]
        log_values = -cdist(left.mean * rates, right.mean * rates, "cityblock")
        return log_values + spread[0][:, None] + spread[1]

    def _log_known_categories(self, left: CellMoments, right: CellMoments) -> np.ndarray:
        """Log of the categorical columns' factors, where the right cell is known."""
        far = np.repeat(np.exp(-self.category_rates), self.levels)
        known = np.repeat(~right.unknown, self.levels, axis=1)
        logs: np.ndarray = np.log(far + (1 - far) * left.probabilities)
        return logs @ (right.probabilities * known).T

    def _multiply_unknown_categories(
        self, values: np.ndarray, left: CellMoments, right: CellMoments
    ) -> None:
        """Multiply by the categorical columns' factors where the right cell is missing."""
        edges = np.cumsum([0, *self.levels])
        for column, far in enumerate(np.exp(-self.category_rates)):
            missing = np.flatnonzero(right.unknown[:, column])
            if missing.size:
                part = slice(edges[column], edges[column + 1])
                agree = left.probabilities[:, part] @ right.probabilities[missing, part].T
                values[:, missing] *= far + (1 - far) * agree

    def __laws__(self) -> Requirements:
        yield within(self.real_rates, 0, 1e12) and within(self.category_rates, 0, 1e12), "rates"
        yield len(self.levels) == self.category_rates.size, "levels for every categorical column"
        yield within(self.levels, 1, MOST_PARTS), "levels in every categorical column"


def _blocks(left: np.ndarray, right: np.ndarray) -> list[tuple[np.ndarray, np.ndarray | slice]]:
    """Pairs of rows in which the left or the right cell is missing, each pair once."""
    everything = slice(None)
    blocks: list[tuple[np.ndarray, np.ndarray | slice]] = []
    if left.any():
        blocks.append((np.flatnonzero(left), everything))
    if right.any() and not left.all():
        blocks.append((np.flatnonzero(~left), np.flatnonzero(right)))
    return blocks


def _place(i: np.ndarray, j: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray | slice]:
    """Index of a block of pairs."""
    return (i, j) if isinstance(j, slice) else (i[:, None], j)


def _log_gaussian_holes(d: np.ndarray, variance: np.ndarray, rate: float) -> np.ndarray:
    """Compute the log factor of the Gaussian kernel over that at the conditional means."""
    blur = rate * variance
    # The difference of the two exponents in closed form: subtracted, they would lose digits.
    return 0.5 * rate * d**2 * blur / (1 + blur) - 0.5 * np.log1p(blur)
