"""Precision factors of covariances, and the floor of their eigenvalues.

A factor that exists is not yet a factor that can be trusted.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from jaxtyping import Float, Int


@cache
def lower_entries(size: int) -> tuple[Int[np.ndarray, " entry"], Int[np.ndarray, " entry"]]:
    """Rows and columns of the entries."""
    rows, columns = np.tril_indices(size, -1)
    return rows, columns


@cache
def lower_places(size: int) -> Int[np.ndarray, " entry"]:
    """Places of the entries in the flattened matrix."""
    rows, columns = lower_entries(size)
    return rows * size + columns


SMALLEST_EIGENVALUE = 1e-10
"""Floor of a covariance's eigenvalues relative to its largest: below, rounding rules."""

SMALL_HALF = 8
"""Half the size up to which a triangular matrix is inverted like any other."""


def precision_factor(
    covariances: Float[np.ndarray, "group feature feature"],
) -> Float[np.ndarray, "group feature feature"]:
    """Lower L with ``(L L')^-1`` equal to each covariance, its eigenvalues raised to the floor."""
    try:
        factors = _factor(covariances)
        # The product of the traces of Sigma and P = L L' bounds the condition number from above.
        traces = np.trace(covariances, axis1=1, axis2=2) * (factors**2).sum(axis=(1, 2))
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

    Sigma = U U' with U upper comes from the Cholesky factor of the reversed
    matrix, and then L = U'^-1 is lower: Sigma itself is never inverted.
    """
    upper = np.linalg.cholesky(covariances[:, ::-1, ::-1])[:, ::-1, ::-1]
    return np.tril(_inverse(upper).swapaxes(1, 2))


def _inverse(upper: np.ndarray) -> np.ndarray:
    """Inverses of upper triangular matrices, by halves.

    The inverse of [[A, B], [0, C]] is [[A^-1, -A^-1 B C^-1], [0, C^-1]].
    """
    half = upper.shape[1] // 2
    if half <= SMALL_HALF:
        return np.linalg.inv(upper)
    inverse = np.zeros_like(upper)
    inverse[:, :half, :half] = first = _inverse(upper[:, :half, :half])
    inverse[:, half:, half:] = last = _inverse(upper[:, half:, half:])
    inverse[:, :half, half:] = -first @ upper[:, :half, half:] @ last
    return inverse


def _floored(covariances: np.ndarray) -> np.ndarray:
    """Covariances with their small eigenvalues raised to the floor."""
    values, vectors = np.linalg.eigh(covariances)
    values = np.maximum(values, SMALLEST_EIGENVALUE * values[:, -1:])
    return (vectors * values[:, None, :]) @ vectors.swapaxes(1, 2)


def _norms(matrices: np.ndarray) -> np.ndarray:
    """Frobenius norms."""
    return np.sqrt(np.einsum("gij,gij->g", matrices, matrices))
