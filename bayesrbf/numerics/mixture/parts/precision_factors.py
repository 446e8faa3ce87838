r"""Precision factors of covariances, the floor of their eigenvalues, and their conjugate laws.

The conjugate family of a shape is that of its prior, of the posterior of rows whose components are
known, and of the proposals of jumps between modes. With :math:`T = I + L_0' S L_0 = U U'`, U upper
triangular,

.. math::
   A = U'^{-1} B, \quad B_{ii}^2 \sim \mathrm{Gamma}((n + \nu_0)/2 + 1,\ 1/2), \quad
   B_{ij} \sim N(0, 1).

Diagonal and spherical covariances have the diagonal alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Self

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import lapack
from scipy.special import gammaln

from bayesrbf.numerics.mixture.gaussian import LOG_2PI


@cache
def lower_entries(size: int) -> tuple[Int[np.ndarray, " entry"], Int[np.ndarray, " entry"]]:
    """Rows and columns of the entries below the diagonal."""
    rows, columns = np.tril_indices(size, -1)
    return rows, columns


@cache
def lower_places(size: int) -> Int[np.ndarray, " entry"]:
    """Places of these entries in the flattened matrix."""
    rows, columns = lower_entries(size)
    return rows * size + columns


SMALLEST_EIGENVALUE = 1e-10
"""Floor of a covariance's eigenvalues, relative to its largest; smaller ones are rounding
errors."""


def precision_factor(
    covariances: Float[np.ndarray, "group feature feature"],
) -> Float[np.ndarray, "group feature feature"]:
    """Lower L with ``(L L')^-1`` equal to each covariance, its eigenvalues raised to the floor."""
    try:
        factors = _factor(covariances)
        # The product of the traces of Sigma and P = L L' bounds the condition number from above.
        traces = np.einsum("gii->g", covariances) * np.einsum("gij,gij->g", factors, factors)
        if (traces <= 1 / SMALLEST_EIGENVALUE).all():
            return factors
        # So does that of their Frobenius norms, more narrowly.
        conditions = _norms(covariances) * _norms(factors @ factors.swapaxes(1, 2))
        weak = ~(conditions <= 1 / SMALLEST_EIGENVALUE)
    except np.linalg.LinAlgError:
        factors, weak = np.empty_like(covariances), np.ones(len(covariances), dtype=bool)
    if weak.any():
        factors[weak] = _factor(_floored(covariances[weak]))
    return factors


def at_floor(factors: Float[np.ndarray, "group feature feature"]) -> bool:
    """Whether a covariance is as badly conditioned as the floor allows."""
    if not factors.size:
        return False
    # cond(Sigma) = cond(L)^2; the margin covers the rounding of the floored matrix.
    return bool((np.linalg.cond(factors) ** 2 > 0.5 / SMALLEST_EIGENVALUE).any())


def _factor(covariances: np.ndarray) -> np.ndarray:
    """Precision factors of well-conditioned covariances.

    Sigma = U U' with U upper comes from the Cholesky factor C of the reversed matrix, and
    L = U'^-1 is lower, C^-1 transposed and reversed: Sigma itself is never inverted.
    """
    factors = np.empty_like(covariances)
    # LAPACK itself: for matrices of a few columns, the way through NumPy takes ten times as long.
    for group, covariance in enumerate(covariances):
        lower, failed = lapack.dpotrf(covariance[::-1, ::-1], lower=1)
        if failed:
            raise np.linalg.LinAlgError("the covariance is not positive definite")
        factors[group] = lapack.dtrtri(lower, lower=1, overwrite_c=1)[0].T[::-1, ::-1]
    return factors


def _floored(covariances: np.ndarray) -> np.ndarray:
    """Covariances with their small eigenvalues raised to the floor."""
    values, vectors = np.linalg.eigh(covariances)
    values = np.maximum(values, SMALLEST_EIGENVALUE * values[:, -1:])
    return (vectors * values[:, None, :]) @ vectors.swapaxes(1, 2)


def _norms(matrices: np.ndarray) -> np.ndarray:
    """Frobenius norms."""
    return np.sqrt(np.einsum("gij,gij->g", matrices, matrices))


@dataclass(frozen=True)
class ConjugatePrecisions(ABC):
    """Density of the precision factors of all groups, the means integrated out.

    Where densities are stacked, their arrays have the axis of references in front.
    """

    scales: Float[np.ndarray, "group feature"]  # Inverse diagonals of L0.
    # Of the gamma variables; one a group for spherical covariances.
    shapes: Float[np.ndarray, "*reference group gamma"]
    # T; its diagonal for diagonal covariances, the sum of that for spherical ones.
    inner: Float[np.ndarray, "*reference group *gamma"]

    @classmethod
    def stacked(cls, densities: Sequence[Self]) -> Self:
        """Several densities of one structure side by side."""
        shapes = np.stack([one.shapes for one in densities])
        return cls(densities[0].scales, shapes, np.stack([one.inner for one in densities]))

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "group *feature"]:
        """Precision factors of every group, in the units of the rows."""

    @abstractmethod
    def log_densities(
        self, factors: Float[np.ndarray, "given *feature"]
    ) -> Float[np.ndarray, "reference given group"]:
        """Log densities, in the graph's variables, of each given factor as that of each group.

        All groups must have the same scales.
        """


class FullPrecisions(ConjugatePrecisions):
    """Density of the precision factors of full covariances."""

    @cached_property
    def upper(self) -> Float[np.ndarray, "*reference group feature feature"]:
        """U with T = U U'."""
        return np.linalg.cholesky(self.inner[..., ::-1, ::-1])[..., ::-1, ::-1]

    @cached_property
    def _lower(self) -> Float[np.ndarray, "group feature feature"]:
        """``U'^-1``, from B to A."""
        return np.linalg.inv(self.upper).swapaxes(1, 2)

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "group feature feature"]:
        """Precision factors of every group, in the units of the rows."""
        gammas = 2.0 * rng.standard_gamma(self.shapes)
        n_groups, d = gammas.shape
        unit = np.zeros((n_groups, d * d))
        # Bartlett's decomposition of a Wishart variable: roots of chi-squared on the diagonal.
        unit[:, :: d + 1] = np.sqrt(gammas)
        unit[:, lower_places(d)] = rng.standard_normal((n_groups, d * (d - 1) // 2))
        return (self._lower @ unit.reshape(self.inner.shape)) / self.scales[:, :, None]

    def log_densities(
        self, factors: Float[np.ndarray, "given feature feature"]
    ) -> Float[np.ndarray, "reference given group"]:
        """Log densities of each given factor as that of each group."""
        d = factors.shape[1]
        unit = factors * self.scales[0][:, None]
        b = self.upper.swapaxes(-1, -2)[:, None] @ unit[None, :, None]
        diagonal = np.einsum("mabii->mabi", b) ** 2
        total = _log_gamma(diagonal, self.shapes[:, None], 0.5).sum(axis=-1)
        squares = np.einsum("mabij,mabij->mab", b, b) - diagonal.sum(axis=-1)
        total -= 0.5 * squares + 0.25 * d * (d - 1) * LOG_2PI
        stretch = np.log(np.einsum("mbii->mbi", self.upper)) @ (2.0 + np.arange(d))
        return total + stretch[:, None, :]


class IndependentPrecisions(ConjugatePrecisions):
    """Density of the precision factors of diagonal and spherical covariances."""

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "group feature"]:
        """Square roots of the precisions of every group, in the units of the rows."""
        return np.sqrt(2.0 * rng.standard_gamma(self.shapes) / self.inner) / self.scales

    def log_densities(
        self, factors: Float[np.ndarray, "given feature"]
    ) -> Float[np.ndarray, "reference given group"]:
        """Log densities of each given factor as that of each group."""
        squares = (factors * self.scales[0])[:, : self.shapes.shape[-1]] ** 2
        rates = 0.5 * self.inner[:, None]
        return _log_gamma(squares[:, None, :], self.shapes[:, None], rates).sum(axis=-1)


def _log_gamma(values: np.ndarray, shape: np.ndarray, rate: np.ndarray | float) -> np.ndarray:
    """Log densities of gamma variables."""
    return shape * np.log(rate) - gammaln(shape) + (shape - 1) * np.log(values) - rate * values
