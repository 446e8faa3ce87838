r"""Densities of the precision factors that are of the declared prior's family.

The family of a shape is that of its prior, of the posterior of rows whose components are known,
and of the proposals of jumps between modes. With :math:`T = I + L_0' S L_0 = U U'`, U upper
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
from functools import cached_property
from typing import Self

import numpy as np
from jaxtyping import Float
from scipy.special import gammaln

from bayesrbf.numerics.mixture.gaussian import LOG_2PI
from bayesrbf.numerics.mixture.parts.precision_factors import lower_places


class PrecisionDraws(ABC):
    """Law of the precision factors of all groups, the means integrated out."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "group *feature"]:
        """Precision factors of every group, in the units of the rows."""


@dataclass(frozen=True)
class ConjugatePrecisions(PrecisionDraws):
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

    @property
    @abstractmethod
    def log_normaliser(self) -> float:
        """Log integral of the density without its constants, in nats."""

    @abstractmethod
    def log_densities(
        self, factors: Float[np.ndarray, "given *feature"]
    ) -> Float[np.ndarray, "reference given group"]:
        """Log densities, in the graph's variables, of each given factor as that of each group.

        All groups must have the same scales.
        """


class FullPrecisions(ConjugatePrecisions):
    """Of full covariances."""

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
        unit[:, :: d + 1] = np.sqrt(gammas)
        unit[:, lower_places(d)] = rng.standard_normal((n_groups, d * (d - 1) // 2))
        return (self._lower @ unit.reshape(self.inner.shape)) / self.scales[:, :, None]

    @property
    def log_normaliser(self) -> float:
        """Log integral of the density without its constants, in nats."""
        # U'^-1 stretches column j of B on and below the diagonal: one more log U_ii a column.
        log_upper = np.log(self.upper.diagonal(0, 1, 2))
        powers = 2 * self.shapes + np.arange(self.inner.shape[1])
        stretch = self.shapes * np.log(2) - powers * log_upper
        return float(gammaln(self.shapes).sum() + stretch.sum())

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
    """Of diagonal and spherical covariances."""

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, "group feature"]:
        """Square roots of the precisions of every group, in the units of the rows."""
        return np.sqrt(2.0 * rng.standard_gamma(self.shapes) / self.inner) / self.scales

    @property
    def log_normaliser(self) -> float:
        """Log integral of the density without its constants, in nats."""
        return float((gammaln(self.shapes) - self.shapes * np.log(0.5 * self.inner)).sum())

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
