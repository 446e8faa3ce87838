r"""The law of uniquenesses and loadings once the factors of all rows are known.

Every column is a regression on the factors under a normal-gamma prior. With the scatter S of the
column and the factors about their means, in units of the base scale b, and
:math:`A = S_{ff} + I`,

.. math::
   u \sim \mathrm{Gamma}\big(\tfrac{n + \nu_0}{2} + 1,\
       \tfrac12 (1 + S_{xx} - S_{xf} A^{-1} S_{fx})\big), \quad
   \lambda / b \mid u \sim N(A^{-1} S_{fx},\ (u A)^{-1}),

over the factors on and below the diagonal: the first columns load on fewer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.mixture.parts.conjugate_precisions import PrecisionDraws


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
    """What entries are multiplied by so that no entry on the diagonal is negative."""
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
