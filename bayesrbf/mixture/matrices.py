"""Square matrices, one for every component or group, held whole or by their diagonals.

Shapes of covariances (:mod:`bayesrbf.mixture.laws`) choose one of the two forms. What is done with
covariances and their precision factors is written in the algebra of this file, once for all shapes.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import lapack

Vectors = Float[np.ndarray, "matrix feature"]
Held = Float[np.ndarray, "matrix *entry"]
"""Matrices in one of the two forms."""


@cache
def lower_entries(size: int) -> tuple[Int[np.ndarray, " entry"], Int[np.ndarray, " entry"]]:
    """Row and column indices of the entries below the diagonal."""
    rows, columns = np.tril_indices(size, -1)
    return rows, columns


@cache
def lower_indices(size: int) -> Int[np.ndarray, " entry"]:
    """Indices of the entries below the diagonal in the flattened matrix."""
    rows, columns = lower_entries(size)
    return rows * size + columns


class Matrices:
    """Algebra of whole matrices. L is a lower precision factor: the covariance is (L L')^-1."""

    def __init__(self, size: int) -> None:
        self.size = size

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one matrix as an array."""
        return self.size, self.size

    def of_diagonal(self, diagonal: Float[np.ndarray, "*batch d"]) -> Float[np.ndarray, "*held"]:
        """Matrices with the given diagonals, in the stored form."""
        return diagonal[..., None] * np.eye(self.size)

    def diagonal(self, matrices: Held) -> Vectors:
        """Diagonals of the matrices, (matrix, d)."""
        return matrices.diagonal(0, 1, 2)

    def add_to_diagonal(self, matrices: Held, values: Vectors | float) -> None:
        """Add ``values`` to the diagonals, in place."""
        diagonal = np.einsum("gii->gi", matrices)  # a view
        diagonal += values

    def whole(self, matrices: Float[np.ndarray, "*held"]) -> Float[np.ndarray, "*batch d d"]:
        """The matrices with all their entries."""
        return matrices

    def outer(self, vectors: Vectors, factor: float | Float[np.ndarray, "matrix _"]) -> Held:
        """``factor v v'``."""
        return (factor * vectors)[:, :, None] * vectors[:, None, :]

    def product(self, left: Held, right: Held) -> Held:
        """``A B`` of every pair of matrices."""
        return left @ right

    def scaled(self, matrices: Held, scales: Vectors) -> Held:
        """``D M D``, where the scales are the diagonal of D."""
        return matrices * scales[:, :, None] * scales[:, None, :]

    def times(self, matrices: Held, vectors: Vectors, *, transposed: bool) -> Vectors:
        """``M v`` or ``M' v``."""
        return np.einsum("kji,kj->ki" if transposed else "kij,kj->ki", matrices, vectors)

    def precision_times(self, factors: Held, vectors: Vectors) -> Vectors:
        """``L L' v``."""
        return ((vectors[:, None, :] @ factors) @ factors.swapaxes(1, 2))[:, 0]

    def whiten(
        self, rows: Float[np.ndarray, "*batch matrix row d"], matrices: Held
    ) -> Float[np.ndarray, "*batch matrix row d"]:
        """``M' x`` of rows under every matrix: white ones, where M is L and x has mean 0."""
        return rows @ matrices

    def inverse(self, matrices: Held) -> Held:
        """``M^-1``."""
        return np.linalg.inv(matrices)

    def covariances(self, factors: Float[np.ndarray, "*held"]) -> Float[np.ndarray, "*held"]:
        """``(L L')^-1``."""
        inverse = np.linalg.inv(factors)
        return inverse.swapaxes(-1, -2) @ inverse

    def factors(self, covariances: Held) -> Held:
        """Lower L of positive diagonal; eigenvalues of covariances are raised to the floor."""
        return precision_factor(covariances)

    def reordered(self, factors: Held, features: Int[np.ndarray, " feature"]) -> Held:
        """Lower triangles L of positive diagonal with L L' = R R', R the factor's rows in order."""
        rows = factors.take(features, 1)
        lower = np.linalg.qr(rows.swapaxes(-1, -2), mode="r").swapaxes(-1, -2)
        return np.ascontiguousarray(lower * np.sign(np.einsum("gii->gi", lower))[:, None, :])

    def spread(
        self, noise: Float[np.ndarray, "matrix row d"], factors: Held
    ) -> Float[np.ndarray, "matrix row d"]:
        """``L'^-1 z``: white rows z made noise of every covariance."""
        return self.whiten(noise, self.inverse(factors))


class Diagonals(Matrices):
    """Algebra of diagonal matrices, stored by their diagonals."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one matrix as an array."""
        return (self.size,)

    def of_diagonal(self, diagonal: Float[np.ndarray, "*batch d"]) -> Float[np.ndarray, "*held"]:
        """Matrices with the given diagonals, in the stored form."""
        return diagonal

    def diagonal(self, matrices: Held) -> Vectors:
        """Diagonals of the matrices, (matrix, d)."""
        return matrices

    def add_to_diagonal(self, matrices: Held, values: Vectors | float) -> None:
        """Add ``values`` to the diagonals, in place."""
        matrices += values

    def whole(self, matrices: Float[np.ndarray, "*held"]) -> Float[np.ndarray, "*batch d d"]:
        """The matrices with all their entries."""
        return matrices[..., None] * np.eye(self.size)

    def outer(self, vectors: Vectors, factor: float | Float[np.ndarray, "matrix _"]) -> Held:
        """``factor v v'``, its diagonal."""
        return factor * vectors**2

    def product(self, left: Held, right: Held) -> Held:
        """``A B`` of every pair of matrices."""
        return left * right

    def scaled(self, matrices: Held, scales: Vectors) -> Held:
        """``D M D``, where the scales are the diagonal of D."""
        return matrices * scales**2

    def times(self, matrices: Held, vectors: Vectors, *, transposed: bool) -> Vectors:
        """``M v``, which is ``M' v``."""
        return matrices * vectors

    def precision_times(self, factors: Held, vectors: Vectors) -> Vectors:
        """``L L' v``."""
        return vectors * factors**2

    def whiten(
        self, rows: Float[np.ndarray, "*batch matrix row d"], matrices: Held
    ) -> Float[np.ndarray, "*batch matrix row d"]:
        """``M' x`` of rows under every matrix."""
        return rows * matrices[:, None, :]

    def inverse(self, matrices: Held) -> Held:
        """``M^-1``."""
        return 1 / matrices

    def covariances(self, factors: Float[np.ndarray, "*held"]) -> Float[np.ndarray, "*held"]:
        """``(L L')^-1``."""
        return factors**-2.0

    def factors(self, covariances: Held) -> Held:
        """Square roots of the precisions."""
        return covariances**-0.5

    def reordered(self, factors: Held, features: Int[np.ndarray, " feature"]) -> Held:
        """Precision factors of the columns in another order."""
        return factors.take(features, 1)


# Precision factors of covariances, and the floor of their eigenvalues.


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
        # The product of their Frobenius norms is a tighter bound.
        conditions = _norms(covariances) * _norms(factors @ factors.swapaxes(1, 2))
        weak = ~(conditions <= 1 / SMALLEST_EIGENVALUE)
    except np.linalg.LinAlgError:
        factors, weak = np.empty_like(covariances), np.ones(len(covariances), dtype=bool)
    if weak.any():
        factors[weak] = _factor(_floored(covariances[weak]))
    return factors


def at_floor(factors: Held) -> bool:
    """Whether a covariance is as badly conditioned as the floor allows; diagonals have no floor."""
    if factors.ndim == 2 or not factors.size:
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
    # The floor is relative: a covariance may be in any unit.
    values = np.maximum(values, SMALLEST_EIGENVALUE * values[:, -1:])
    return (vectors * values[:, None, :]) @ vectors.swapaxes(1, 2)


def _norms(matrices: np.ndarray) -> np.ndarray:
    """Frobenius norm of every matrix."""
    return np.sqrt(np.einsum("gij,gij->g", matrices, matrices))
