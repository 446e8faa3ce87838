r"""The hidden layer of a kernel network: leading eigenfunctions of the kernel at exemplars.

With the Gram matrix :math:`K = U \Lambda U'` of the exemplars Z, the features of a row are

.. math:: f(x) = \Lambda^{-1/2} U' k(Z, x),

so that :math:`f(x)' f(x')` is the kernel, up to the eigenvalues left out, and Gaussian output
weights are a Gaussian process with that covariance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.kernel_network.cells import CellMoments
from bayesrbf.numerics.kernel_network.gram import ProductKernel

LEAST_SHARE = 1e-6
"""Eigenvalues below this share of the largest are left out."""
BLOCK_ROWS = 4096
"""Rows whose kernel values are held at once."""


@dataclass(frozen=True)
class EigenBasis:
    """Exemplars and the eigenfunctions that they carry.

    Attributes
    ----------
    kernel : ProductKernel
        The kernel.
    exemplars : CellMoments
        Rows Z at which the basis functions are centred.
    projection : ndarray of shape (n_exemplars, n_basis)
        ``U Lambda^(-1/2)``.
    """

    kernel: ProductKernel
    exemplars: CellMoments
    projection: Float[np.ndarray, "exemplar basis"]

    @property
    def n_basis(self) -> int:
        """Number of features."""
        return self.projection.shape[1]

    def features(self, rows: CellMoments) -> Float[np.ndarray, "row basis"]:
        """Hidden layer of rows.

        Parameters
        ----------
        rows : CellMoments
            Rows.

        Returns
        -------
        ndarray of shape (n_rows, n_basis)
            Features; those of the largest eigenvalue come first.
        """
        result = np.empty((rows.n_rows, self.n_basis))
        for start in range(0, rows.n_rows, BLOCK_ROWS):
            part = slice(start, start + BLOCK_ROWS)
            result[part] = self.kernel(rows.take(part), self.exemplars) @ self.projection
        return result


def eigen_basis(
    kernel: ProductKernel, exemplars: CellMoments, n_basis: int
) -> tuple[EigenBasis, Float[np.ndarray, "exemplar basis"]]:
    """Find the leading eigenfunctions of a kernel at exemplars.

    Parameters
    ----------
    kernel : ProductKernel
        The kernel.
    exemplars : CellMoments
        Rows Z, distinct.
    n_basis : int
        Most eigenfunctions to keep.

    Returns
    -------
    basis : EigenBasis
        The hidden layer.
    features : ndarray of shape (n_exemplars, n_basis)
        That of the exemplars themselves, ``U Lambda^(1/2)``.
    """
    eigenvalues, vectors = np.linalg.eigh(kernel.gram(exemplars))
    first = max(eigenvalues.size - n_basis, 0)
    kept = np.arange(eigenvalues.size - 1, first - 1, -1)
    kept = kept[eigenvalues[kept] > LEAST_SHARE * eigenvalues[-1]]
    roots, vectors = np.sqrt(eigenvalues[kept]), vectors[:, kept]
    projection = np.ascontiguousarray(vectors / roots)  # as a file gives it back: the same bits
    return EigenBasis(kernel, exemplars, projection), vectors * roots
