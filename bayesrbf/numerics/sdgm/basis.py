r"""Features of a point: monomials of degree two, or kernels with training rows.

The one-half of a quadratic form is not in the features but in the weights: a
normal component with mean mu and precision P has, up to a constant,
:math:`w_i = (P \mu)_i,\; w_{ii} = -P_{ii}/2,\; w_{ij} = -P_{ij}`.

References
----------
Hayashi and Uchida (2021), A discriminative Gaussian mixture model with
sparsity, ICLR, section 2.1 (primal) and 2.4 (kernel).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.parameters import Standardisation
from bayesrbf.sdgm_parameters import Basis, KernelBasis, QuadraticBasis

KERNELS = ("polynomial", "gaussian")
MOST_FEATURES = 2000
"""Features beyond which categorical columns enter without products."""
FARTHEST = 1e6
"""Points are held within this many standard units, so that no square overflows."""


def quadratic_basis(n_reals: int, levels: tuple[int, ...]) -> QuadraticBasis:
    """All monomials of degree at most two that are not sums of others.

    Parameters
    ----------
    n_reals : int
        Number of real columns, the first coordinates of a point.
    levels : tuple of int
        Number of levels of every categorical column; their indicators follow.

    Returns
    -------
    QuadraticBasis
        The intercept, every coordinate, every product; products within one
        categorical column are left out, for an indicator is its own square and
        two of a column are never 1 together. If all these were more than
        ``MOST_FEATURES``, products of indicators are left out too.

    Examples
    --------
    >>> quadratic_basis(2, ()).factors.tolist()
    [[-1, -1], [-1, 0], [-1, 1], [0, 0], [0, 1], [1, 1]]
    """
    categorical = n_reals + np.repeat(np.arange(len(levels)), levels)
    column = np.concatenate([np.arange(n_reals), categorical]).astype(np.intp)
    multiplied = column.size if has_all_products(n_reals, levels) else n_reals
    first, second = np.triu_indices(multiplied)
    kept = (column[first] != column[second]) | ((first == second) & (first < n_reals))
    linear = np.column_stack([np.full(column.size, -1), np.arange(column.size)])
    products = np.column_stack([first[kept], second[kept]])
    return QuadraticBasis(np.concatenate([[[-1, -1]], linear, products]).astype(np.intp))


def has_all_products(n_reals: int, levels: tuple[int, ...]) -> bool:
    """Whether categorical columns enter the basis with their products.

    Parameters
    ----------
    n_reals : int
        Number of real columns.
    levels : tuple of int
        Number of levels of every categorical column.

    Returns
    -------
    bool
        False where there would be too many.

    Examples
    --------
    >>> has_all_products(5, (3, 4)), has_all_products(5, (40, 40))
    (True, False)
    """
    size = n_reals + sum(levels)
    return not levels or size * (size + 3) // 2 < MOST_FEATURES


def standard_points(
    points: Float[np.ndarray, "point coordinate"], units: Standardisation
) -> Float[np.ndarray, "point coordinate"]:
    """Points in standard units, held within ``FARTHEST`` of the centre.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_coordinates)
        In the user's units.
    units : Standardisation
        Location and scale of the coordinates.

    Returns
    -------
    ndarray of shape (n_points, n_coordinates)
        Without units.
    """
    with np.errstate(over="ignore"):
        return np.clip(units.forward(points), -FARTHEST, FARTHEST)


def features(
    basis: Basis, points: Float[np.ndarray, "point coordinate"]
) -> Float[np.ndarray, "point feature"]:
    """Evaluate every feature at every point.

    Parameters
    ----------
    basis : QuadraticBasis or KernelBasis
        The features.
    points : ndarray of shape (n_points, n_coordinates)
        Complete points.

    Returns
    -------
    ndarray of shape (n_points, n_features)
        Values; column 0 is the intercept of a full basis.
    """
    if isinstance(basis, QuadraticBasis):
        extended = np.column_stack([points, np.ones(len(points))])  # factor -1 is the last column
        return extended[:, basis.factors[:, 0]] * extended[:, basis.factors[:, 1]]
    values = _kernel(basis.kernel, points, basis.exemplars)
    return np.column_stack([np.ones(len(points)), values])


def sparse_basis(basis: Basis, used: Int[np.ndarray, " used"]) -> Basis:
    """The features that are in use.

    Parameters
    ----------
    basis : QuadraticBasis or KernelBasis
        All features.
    used : ndarray of shape (n_used,)
        Their numbers, sorted, the intercept 0 among them.

    Returns
    -------
    QuadraticBasis or KernelBasis
        Those features alone.
    """
    if isinstance(basis, QuadraticBasis):
        return QuadraticBasis(basis.factors[used])
    return KernelBasis(basis.kernel, basis.exemplars[used[1:] - 1])


def numbers_of(some: QuadraticBasis, basis: QuadraticBasis) -> Int[np.ndarray, " feature"]:
    """Find features among others.

    Parameters
    ----------
    some : QuadraticBasis
        Features to find.
    basis : QuadraticBasis
        A basis that has them.

    Returns
    -------
    ndarray of shape (n_features of some,)
        Their numbers in the basis.

    Examples
    --------
    >>> numbers_of(QuadraticBasis(np.array([[-1, 1], [0, 1]])), quadratic_basis(2, ())).tolist()
    [2, 4]
    """
    place = {tuple(pair): number for number, pair in enumerate(basis.factors.tolist())}
    return np.array([place[tuple(pair)] for pair in some.factors.tolist()], dtype=np.intp)


def _kernel(kernel: object, left: np.ndarray, right: np.ndarray) -> Float[np.ndarray, "n m"]:
    """Kernel values, checked where they are a user's."""
    if kernel == "polynomial":
        return (left @ right.T + 1) ** 2
    if kernel == "gaussian":
        squares = (left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2 * left @ right.T
        return np.exp(-0.5 * np.maximum(squares, 0))
    if not callable(kernel):
        raise ValueError(f"kernel must be one of {KERNELS} or a function; received {kernel!r}.")
    values = np.asarray(kernel(left, right), dtype=np.float64)
    if values.shape != (len(left), len(right)) or not np.isfinite(values).all():
        raise ValueError(
            f"kernel(left, right) must return finite values of shape {(len(left), len(right))} "
            f"for points of shapes {left.shape} and {right.shape}; received shape {values.shape} "
            f"with {int((~np.isfinite(values)).sum())} values that are not finite."
        )
    return values
