r"""Uniquenesses and loadings: their packing, conjugate law, start and prior.

The declared prior is

.. math::
   u_i \sim \mathrm{Gamma}(\nu_0/2 + 1,\ 1/2), \quad \psi_i = b_i^2 / u_i, \quad
   B_{ij} \sim N(0, 1), \quad \mu_k \sim N(m_0, \Psi_{g(k)} / \kappa_0)

The gradient of the rows comes from the moments of (x - mu, f, 1) of every column, by Fisher's
identity: given the factors a cell is normal about :math:`\mu_i + \lambda_i'f`. With
:math:`\lambda_i = \sqrt{\psi_i} B_i`, a step of log u_i changes both.

Once the factors of all rows are known, every column is a regression on them. With the scatter S of
the column and the factors about their means, in units of the base scale b, and
:math:`A = S_{ff} + I`,

.. math::
   u \sim \mathrm{Gamma}\big(\tfrac{n + \nu_0}{2} + 1,\
       \tfrac12 (1 + S_{xx} - S_{xf} A^{-1} S_{fx})\big), \quad
   \lambda / b \mid u \sim N(A^{-1} S_{fx},\ (u A)^{-1}),

over the factors on and below the diagonal: the first columns load on fewer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.special import gammaln

from bayesrbf.numerics.mixture.gaussian import LOG_2PI
from bayesrbf.numerics.mixture.parts.precision_factors import PrecisionDraws
from bayesrbf.numerics.mixture.parts.real_columns import RealColumns
from bayesrbf.numerics.mixture.statistics import Statistics, sum_by_group
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification

LEAST_UNIQUE: Final = 0.1
"""Share of a column's variance that is unique to it, at least."""
LEAST_SHARED: Final = 0.01
"""Least variance along every axis: EM never changes a factor whose loadings are all zero."""


@cache
def lower_places(
    n_features: int, rank: int
) -> tuple[Int[np.ndarray, " entry"], Int[np.ndarray, " entry"]]:
    """Columns and factors of the entries on and below the diagonal, column by column."""
    columns, factors = np.tril_indices(n_features, 0, rank)
    return columns, factors


def uniquenesses_and_loadings(
    factors: Float[np.ndarray, "*shape d 1 column"],
) -> tuple[Float[np.ndarray, "*shape d"], Float[np.ndarray, "*shape d factor"]]:
    """``Psi`` and ``Lambda`` of precision factors."""
    unique = factors[..., 0, 0] ** -2.0
    return unique, factors[..., 0, 1:] * unique[..., None]


def side_by_side(
    unique: Float[np.ndarray, "group d"], loadings: Float[np.ndarray, "group d factor"]
) -> Float[np.ndarray, "group d 1 column"]:
    """Precision factors of ``Psi`` and ``Lambda``."""
    scaled = loadings / unique[..., None]
    return np.concatenate([unique[..., None] ** -0.5, scaled], axis=-1)[..., None, :]


def lower_triangular(
    loadings: Float[np.ndarray, "group d factor"],
) -> Float[np.ndarray, "group d factor"]:
    """The rotation of loadings that is lower triangular, its diagonal not negative."""
    rank = loadings.shape[-1]
    rotation, upper = np.linalg.qr(loadings[:, :rank].swapaxes(1, 2))
    signs = np.where(np.einsum("gii->gi", upper) < 0, -1.0, 1.0)
    return (loadings @ rotation) * signs[:, None, :]


def loading_signs(
    entries: Float[np.ndarray, "*shape entry"], n_features: int, rank: int
) -> Float[np.ndarray, "*shape entry"]:
    """Signs that make no entry on the diagonal negative, one for each entry."""
    columns, factors = lower_places(n_features, rank)
    diagonal = np.flatnonzero(columns == factors)
    return np.where(entries[..., diagonal] < 0, -1.0, 1.0)[..., factors]


@dataclass(frozen=True)
class FactorPrecisions(PrecisionDraws):
    """Law of the precision factors of all groups, the means integrated out."""

    scales: Float[np.ndarray, "group feature"]  # b.
    shapes: Float[np.ndarray, "group feature"]  # Of the gamma variables u.
    # Of (x, f) about their means, the rows of the means' prior among them.
    scatter: Float[np.ndarray, "group feature column column"]

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "group feature 1 column"]:
        """``Psi^-1/2`` and ``Psi^-1 Lambda`` of every group, in the units of the rows."""
        n_features, rank = self.scales.shape[1], self.scatter.shape[-1] - 1
        free = np.arange(rank) <= np.arange(n_features)[:, None]
        both = free[:, :, None] & free[:, None, :]
        # Entries above the diagonal stay 0: their equations are those of the identity.
        inner = np.where(both, self.scatter[..., 1:, 1:] + np.eye(rank), np.eye(rank))
        cross = self.scatter[..., 1:, 0] * free / self.scales[..., None]
        centres = np.linalg.solve(inner, cross[..., None])[..., 0]
        rest = 1 + self.scatter[..., 0, 0] / self.scales**2 - (cross * centres).sum(axis=-1)
        roots = np.sqrt(2 * rng.standard_gamma(self.shapes) / rest)
        noise = rng.standard_normal(centres.shape) * free
        back = np.linalg.cholesky(inner).swapaxes(-1, -2)
        steps = np.linalg.solve(back, noise[..., None])[..., 0]
        loadings = centres * roots[..., None] + steps
        unit = np.concatenate([np.ones((*roots.shape, 1)), loadings], axis=-1)
        return (unit * (roots / self.scales)[..., None])[..., None, :]


def leading_axes(
    real: Float[np.ndarray, "row feature"],
    memberships: Float[np.ndarray, "row component"],
    means: Float[np.ndarray, "component feature"],
    variance: float,
    specification: MixtureSpecification,
) -> Float[np.ndarray, "group feature 1 column"]:
    """Precision factors of every group, one row of the given variance added to its cells."""
    known, cells = (~np.isnan(real)).astype(float), np.nan_to_num(real)
    (k, d), rank = means.shape, specification.rank
    sums, pairs = np.zeros((2, k, d, d))
    for j in range(k):
        weights, deviations = memberships[:, j, None], (cells - means[j]) * known
        sums[j] = (deviations * weights).T @ deviations
        pairs[j] = (known * weights).T @ known
    own = variance * np.eye(d)
    sums, pairs = (sum_by_group(total, specification) for total in (sums, pairs))
    covariances = (sums + own) / (pairs + 1)
    values, axes = np.linalg.eigh(covariances)
    # As in probabilistic principal components: the mean of the trailing eigenvalues is noise,
    # and the leading axes carry what exceeds it.
    rest = np.maximum(values[:, : d - rank], 0.0).sum(axis=1) / max(1, d - rank)
    excess = np.maximum(values[:, d - rank :] - rest[:, None], LEAST_SHARED)
    loadings = axes[..., d - rank :] * np.sqrt(excess)[:, None, :]
    variances = covariances.diagonal(0, 1, 2)
    unique = np.maximum(variances - (loadings**2).sum(axis=2), LEAST_UNIQUE * variances)
    return side_by_side(unique, loadings)


class FactorPrior:
    """Prior of means, uniquenesses and loadings.

    ``gamma_powers`` are the powers of ``precision_diagonal``, without and with Jacobian, and
    ``rate`` is that of its gamma distribution.
    """

    rate = 0.5

    def __init__(self, law: RealColumns, hyperparameters: MixtureHyperparameters) -> None:
        self._law, self._specification = law, law.specification
        sizes, d = law.specification.group_sizes, law.n_features
        self._location, self._kappa = hyperparameters.location, hyperparameters.mean_precision
        freedom = hyperparameters.degrees_of_freedom
        powers = (0.5 * (freedom + sizes))[:, None]
        self.gamma_powers = [powers, powers + 1]
        self._scales = law.base_scales(hyperparameters)
        self._places = lower_places(d, law.specification.rank)
        shape = 0.5 * freedom + 1
        self.constant = sizes.size * d * float(shape * np.log(self.rate) - gammaln(shape))
        self.constant += 0.5 * law.n_components * d * float(np.log(self._kappa) - LOG_2PI)
        self.constant -= float(sizes @ np.log(self._scales).sum(axis=1))
        entries = sizes.size * self._places[0].size
        self.constant -= 0.5 * entries * LOG_2PI

    def log_density(self, parameters: MixtureParameters, jacobian: bool) -> float:
        """Log density at one point in nats, but for the constant; the same in every rotation."""
        factors = parameters.precisions_cholesky[:, :, 0]
        squares = (factors[:, :, 0] * self._scales) ** 2
        total = float((self.gamma_powers[jacobian] * np.log(squares)).sum())
        total -= self.rate * float(squares.sum())
        loadings = factors[:, :, 1:] / factors[:, :, :1]
        total -= 0.5 * float(np.vdot(loadings, loadings))
        pull = (parameters.means - self._location) * self._law.by_component(factors)[:, :, 0]
        return total - 0.5 * self._kappa * float(np.vdot(pull, pull))

    def gradient(
        self,
        values: Mapping[str, np.ndarray],
        parameters: MixtureParameters,
        statistics: Statistics,
        jacobian: bool,
    ) -> dict[str, np.ndarray]:
        """Gradient of log likelihood plus log prior in the coordinates of every variable."""
        factors = parameters.precisions_cholesky[:, :, 0]
        roots = factors[:, :, 0]
        loadings = factors[:, :, 1:] / roots[:, :, None]
        own, own_roots = self._law.by_component(loadings), self._law.by_component(roots)
        pull = parameters.means - self._location
        # Moments of ((x - mu) / sqrt(psi), f, 1): residuals are their first less B times the rest.
        second, totals = statistics.second, statistics.second[..., 1:-1, -1]
        residuals = statistics.first * own_roots - (totals * own).sum(axis=-1)
        forces = own_roots * (residuals - self._kappa * pull * own_roots)
        sums = sum_by_group(second, self._specification)
        cross = sums[..., 1:-1, 0] * roots[..., None]
        told = (sums[..., 1:-1, 1:-1] @ loadings[..., None])[..., 0]
        squares = sums[..., 0, 0] * roots**2 - (cross * loadings).sum(axis=-1)
        squares += sum_by_group(self._kappa * (pull * own_roots) ** 2, self._specification)
        by_log = 0.5 * (sums[..., -1, -1] - squares) - self.rate * (roots * self._scales) ** 2
        columns, places = self._places
        by_loading = cross - told - loadings
        return {
            names.MEANS: forces,
            names.PRECISION_DIAGONAL: by_log + self.gamma_powers[jacobian],
            names.LOADINGS: by_loading[:, columns, places],
        }
