r"""Factor-analytic components over rows with missing cells: log densities and moments.

With uniquenesses :math:`\Psi`, loadings :math:`\Lambda = \Psi^{1/2} B` and o the observed cells of
a row, :math:`w = \Psi_o^{-1/2} (x_o - \mu_o)` and :math:`M = I + B_o' B_o`,

.. math::
   \log |\Sigma_{oo}| = \log |\Psi_o| + \log |M|, \qquad
   (x_o - \mu_o)' \Sigma_{oo}^{-1} (x_o - \mu_o) = w'w - (B_o'w)' M^{-1} B_o'w,

by the matrix determinant lemma and Woodbury's identity: D q^2 a row and component. The factors
given the row are normal, :math:`f \mid x_o \sim N(M^{-1} B_o'w, M^{-1})`. Missing cells drop out of
all sums. So everything is linear in a row's cells, their squares and their mask, and a block of
rows is a few matrix products. A uniqueness is at least 1 / (n + 3) of its column's variance, so
that little cancels in squares that are summed before the mean is taken away.

Where loadings are large it does: digits are lost as the trace of B'B grows. From the QR
decomposition of the observed rows of B above I, :math:`R'R = M`, nothing cancels in

.. math::
   \log |M| = 2 \sum_i \log |R_{ii}|, \qquad f = R^{-1} Q_o' w, \qquad
   w'w - (B_o'w)' M^{-1} B_o'w = |w - B_o f|^2 + |f|^2,

which takes several times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.mixture.gaussian import LOG_2PI, upper_entries

MOST_SIZE: Final = 1e5
"""Of the trace of B'B up to which matrix products are exact to some ten digits."""


@dataclass(frozen=True)
class FactorComponents:
    """Components with factor-analytic covariances."""

    means: Float[np.ndarray, "component feature"]
    # Psi^-1/2 and Psi^-1 Lambda, side by side.
    factors: Float[np.ndarray, "component feature 1 column"]

    @cached_property
    def roots(self) -> Float[np.ndarray, "component feature"]:
        """``Psi^-1/2``."""
        return self.factors[:, :, 0, 0]

    @cached_property
    def loadings(self) -> Float[np.ndarray, "component feature factor"]:
        """B: the loadings in units of the roots of the uniquenesses."""
        return self.factors[:, :, 0, 1:] / self.roots[:, :, None]

    @cached_property
    def of_squares(self) -> Float[np.ndarray, "component feature"]:
        """Coefficients of the squares of cells in minus twice a log density."""
        return self.roots**2

    @cached_property
    def of_cells(self) -> Float[np.ndarray, "row feature"]:
        """Coefficients of the cells in minus twice a log density and in the factors' pulls."""
        precisions = self.roots**2
        pulls = self.factors[:, :, 0, 1:]
        return np.concatenate([-2 * precisions * self.means, _factors_first(pulls)])

    @cached_property
    def of_masks(self) -> Float[np.ndarray, "row feature"]:
        """Coefficients of the masks, in the same order and then in ``B_o' B_o``, upper triangle."""
        constants = (self.roots * self.means) ** 2 - 2 * np.log(self.roots) + LOG_2PI
        pulls = -self.factors[:, :, 0, 1:] * self.means[:, :, None]
        rows, columns = upper_entries(self.loadings.shape[2])
        products = self.loadings[:, :, rows] * self.loadings[:, :, columns]
        return np.concatenate([constants, _factors_first(pulls), _factors_first(products)])

    @cached_property
    def are_large(self) -> bool:
        """Whether the loadings ask for QR decompositions."""
        return bool(((self.loadings**2).sum(axis=(1, 2)) > MOST_SIZE).any())

    def moments(
        self,
        bordered: Float[np.ndarray, "obs bordered"],
        observed: Bool[np.ndarray, "obs feature"],
        missing: Int[np.ndarray, "obs m"],
    ) -> FactorMoments:
        """Evaluate rows, with a trailing 1, of any missing cells, which are 0."""
        return FactorMoments.of(bordered[:, :-1], observed, self)


Law = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class FactorMoments:
    """Rows with any missing cells, and the law of their factors."""

    log_density: Float[np.ndarray, "component obs"]  # Of the observed cells.
    expected: Float[np.ndarray, "factor component obs"]  # E[f | x_o, k].
    # M^-1 of every row; of one row for all where the rows are complete.
    covariances: Float[np.ndarray, "factor factor component some"]
    real: Float[np.ndarray, "obs feature"]  # 0 where missing.
    known: Float[np.ndarray, "obs feature"]  # 1 where observed.
    components: FactorComponents

    @classmethod
    def of(
        cls,
        real: Float[np.ndarray, "obs feature"],
        observed: Bool[np.ndarray, "obs feature"],
        components: FactorComponents,
    ) -> Self:
        """Evaluate rows; their missing cells are 0."""
        known = observed.astype(float)
        evaluate = cls._by_roots if components.are_large else cls._by_products
        return cls(*evaluate(real, known, components), real, known, components)

    @staticmethod
    def _by_roots(real: np.ndarray, known: np.ndarray, components: FactorComponents) -> Law:
        """By a QR decomposition of every row's loadings: log densities, means, covariances."""
        loadings, roots = components.loadings, components.roots
        q = loadings.shape[2]
        mask = known[:, None, :]
        told = (real[:, None, :] - components.means) * roots * mask
        own = loadings * mask[..., None]
        unit = np.broadcast_to(np.eye(q), (*own.shape[:2], q, q))
        rotation, upper = np.linalg.qr(np.concatenate([own, unit], axis=2))
        back = np.linalg.inv(upper)
        expected = np.einsum("nkij,nkdj,nkd->nki", back, rotation[:, :, :-q], told, optimize=True)
        rest = told - (own @ expected[..., None])[..., 0]
        log_density = -0.5 * ((rest**2).sum(axis=2) + (expected**2).sum(axis=2))
        log_density += ((np.log(roots) - 0.5 * LOG_2PI) @ known.T).T
        log_density -= np.log(np.abs(np.einsum("nkii->nki", upper))).sum(axis=2)
        covariances = back @ back.swapaxes(2, 3)
        return log_density.T, expected.transpose(2, 1, 0), covariances.transpose(2, 3, 1, 0)

    @staticmethod
    def _by_products(real: np.ndarray, known: np.ndarray, components: FactorComponents) -> Law:
        """By products of all rows at once: log densities, means, covariances."""
        k, _, q = components.loadings.shape
        by_cells = components.of_cells @ real.T
        n_linear = len(components.of_cells)
        linear = by_cells + components.of_masks[:n_linear] @ known.T
        # Complete rows share one M, which is inverted once.
        patterns = known[:1] if known.all() else known
        upper = components.of_masks[n_linear:] @ patterns.T
        upper = upper.reshape(q * (q + 1) // 2, k, len(patterns))
        covariances, log_determinants = inverse_and_log_determinant(upper, q)
        pulls = linear[k:].reshape(q, k, len(real))
        expected = np.einsum("ijkn,jkn->ikn", covariances, pulls)
        log_density = (pulls * expected).sum(axis=0)
        log_density -= linear[:k] + components.of_squares @ (real**2).T
        log_density -= log_determinants
        log_density *= 0.5
        return log_density, expected, covariances

    def add_to(self, first: np.ndarray, second: np.ndarray, weights: np.ndarray) -> None:
        """Add moments of rows of weights (component, obs), in place.

        ``second`` has those of (x - mu, f, 1), of the rows in which a column is observed.
        """
        q, k, n = self.expected.shape
        means = self.components.means
        d = means.shape[1]
        rows, columns = upper_entries(q)
        every = np.empty((1 + q + rows.size, k, n))
        every[0] = weights
        np.multiply(self.expected, weights, out=every[1 : 1 + q])
        place = 1 + q
        for i in range(q):
            squares = every[place : place + q - i]
            np.multiply(every[1 + i], self.expected[i:], out=squares)
            squares += self.covariances[i, i:] * weights
            place += q - i
        lines = every.reshape(len(every) * k, n)
        of_masks = (lines @ self.known).reshape(len(every), k, d)
        of_cells = (lines[: (1 + q) * k] @ self.real).reshape(1 + q, k, d)
        counts, totals, sums = of_masks[0], of_masks[1 : 1 + q], of_cells[0] - means * of_masks[0]
        moments = np.empty((q + 2, q + 2, k, d))
        moments[0, 0] = weights @ self.real**2 - means * (of_cells[0] + sums)
        moments[0, 1:-1] = moments[1:-1, 0] = of_cells[1:] - means * totals
        moments[0, -1] = moments[-1, 0] = sums
        moments[1 + rows, 1 + columns] = moments[1 + columns, 1 + rows] = of_masks[1 + q :]
        moments[1:-1, -1] = moments[-1, 1:-1] = totals
        moments[-1, -1] = counts
        first += sums
        second += moments.transpose(2, 3, 0, 1)

    def leave_one_out(
        self,
    ) -> tuple[
        Float[np.ndarray, "obs component feature"], Float[np.ndarray, "obs component feature"]
    ]:
        r"""``(x_j - E[x_j | rest, k]) / Var[x_j | rest, k]`` and ``1 / Var[x_j | rest, k]``.

        They are :math:`\Sigma_{oo}^{-1} (x_o - \mu_o)`, 0 where missing, and the diagonal of that
        inverse.
        """
        roots, loadings = self.components.roots, self.components.loadings
        told = np.einsum("kdq,qkn->nkd", loadings, self.expected)
        pull = (self.real[:, None, :] - self.components.means) * roots - told
        of_factors = np.einsum(
            "kdp,kdq,pqkn->nkd", loadings, loadings, self.covariances, optimize=True
        )
        # Woodbury's identity: the diagonal of the inverse, less what the factors explain.
        precisions = np.broadcast_to((1 - of_factors) * roots**2, pull.shape)
        return pull * roots * self.known[:, None, :], precisions


def _factors_first(by_feature: Float[np.ndarray, "component feature entry"]) -> np.ndarray:
    """Lines of (entry, component), one entry a feature."""
    return np.moveaxis(by_feature, -1, 0).reshape(-1, by_feature.shape[1])


def inverse_and_log_determinant(
    upper: Float[np.ndarray, "entry component row"], size: int
) -> tuple[Float[np.ndarray, "factor factor component row"], Float[np.ndarray, "component row"]]:
    """Inverses of I + M for many small positive matrices M, and their log determinants.

    M is given by its upper triangle. One pivot after the other is swept, through all matrices at
    once, for LAPACK takes small matrices one by one. All pivots are at least 1.
    """
    rows, columns = upper_entries(size)
    swept = np.empty((size, size, *upper.shape[1:]))
    swept[rows, columns] = upper
    places = np.arange(size)
    swept[places, places] += 1.0
    log_determinants = np.zeros(upper.shape[1:])
    for i in range(size):
        pivot = swept[i, i].copy()
        log_determinants += np.log(pivot)
        line = np.concatenate([swept[:i, i], swept[i, i:]])
        scaled = line / pivot
        for j in range(size):
            swept[j, j:] -= scaled[j] * line[j:]
        swept[:i, i], swept[i, i:] = scaled[:i], scaled[i:]
        swept[i, i] = -1 / pivot
    inverse = np.empty_like(swept)
    inverse[rows, columns] = inverse[columns, rows] = -swept[rows, columns]
    return inverse, log_determinants
