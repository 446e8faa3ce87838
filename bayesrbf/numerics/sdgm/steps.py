r"""Steps towards the mode of whitened weights, and the spread around a point.

With one curvature of all weights together, or, where they are too many for that, with
one a component. There conjugate gradients take the components' curvatures as their
preconditioner, and the spread is that of each component with the others held: good enough
to find the weights that the rows say nothing about, which are most of them at first.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotri
from scipy.sparse.linalg import LinearOperator, cg

from bayesrbf.numerics.sdgm.curvature import (
    complete_curvature,
    component_curvatures,
    curvature_product,
    hidden_information,
)
from bayesrbf.numerics.sdgm.likelihood import Designs, Expectation, Labels, places

BLENDS = (0.0, 0.25, 0.5, 1.0)
"""Shares of the hidden information that are tried in turn: the last is never indefinite."""
WIDE = 5e9
"""Products in one curvature of all weights beyond which every component has its own."""
MOST_COORDINATES = 12_000
"""Whitened weights beyond which one curvature would take more than 1 GiB."""
GRADIENTS = 20
"""Conjugate gradients of a step, at most; each leads upwards."""
RELATIVE = 0.1
"""Share of the gradient that conjugate gradients may leave."""


def is_wide(designs: Designs) -> bool:
    """Whether a curvature of all weights together would take long.

    Parameters
    ----------
    designs : tuple of ndarray of shape (n_points, n_coordinates of the component)
        Whitened features, component by component.

    Returns
    -------
    bool
        True beyond ``WIDE`` products; False where there is one component.
    """
    size = sum(design.shape[1] for design in designs)
    return len(designs) > 1 and (designs[0].shape[0] + size) * size**2 > WIDE


def check_size(designs: Designs) -> None:
    """Refuse one curvature of all weights where it would fill the memory.

    Parameters
    ----------
    designs : tuple of ndarray of shape (n_points, n_coordinates of the component)
        Whitened features, component by component.

    Raises
    ------
    ValueError
        Beyond ``MOST_COORDINATES`` coordinates.
    """
    size = sum(design.shape[1] for design in designs)
    if size > MOST_COORDINATES:
        raise ValueError(
            f"{size} weights are left, beyond the {MOST_COORDINATES} of which all can be judged "
            "together: use fewer components or columns, or a larger max_iter."
        )


def newton_step(
    designs: Designs,
    labels: Labels,
    expectation: Expectation,
    slope: np.ndarray,
    *,
    complete: bool,
) -> tuple[Float[np.ndarray, " coordinate"], bool]:
    """Newton's step on the least blended Hessian that is positive definite.

    Parameters
    ----------
    designs : tuple of ndarray of shape (n_points, n_coordinates of the component)
        Whitened features, component by component.
    labels : Labels
        What is known of the rows.
    expectation : Expectation
        At the point.
    slope : ndarray of shape (n_coordinates,)
        Gradient of the log posterior there.
    complete : bool
        Use the complete-data Hessian.

    Returns
    -------
    step : ndarray of shape (n_coordinates,)
        The step, which leads upwards.
    exact : bool
        Whether the Hessian was not blended.

    Raises
    ------
    FloatingPointError
        If the Hessian is not finite.
    """
    curvature = complete_curvature(designs, labels, expectation)
    curvature[np.diag_indices_from(curvature)] += 1.0
    if complete:
        return cho_solve(cho_factor(curvature, lower=True), slope), True
    hidden = hidden_information(designs, labels, expectation)
    for blend in BLENDS:
        try:
            factor = cho_factor(curvature - (1 - blend) * hidden, lower=True)
        except np.linalg.LinAlgError:
            continue  # indefinite: more of the complete-data curvature
        return cho_solve(factor, slope), blend == 0.0
    raise FloatingPointError(
        "The complete-data curvature of the weights is not finite; rescale the columns, "
        "or strengthen the prior with a larger alpha_init."
    )


def separate_step(
    designs: Designs, expectation: Expectation, slope: Float[np.ndarray, " coordinate"]
) -> Float[np.ndarray, " coordinate"]:
    """About Newton's step on the complete-data Hessian, which is never formed.

    Parameters
    ----------
    designs : tuple of ndarray of shape (n_points, n_coordinates of the component)
        Whitened features, component by component.
    expectation : Expectation
        At the point.
    slope : ndarray of shape (n_coordinates,)
        Gradient of the log posterior there.

    Returns
    -------
    ndarray of shape (n_coordinates,)
        The step, which leads upwards.
    """
    slots, shape = places(designs), (slope.size, slope.size)
    roots = [
        cho_factor(block + np.eye(len(block)), lower=True)
        for block in component_curvatures(designs, expectation)
    ]

    def alone(vector: np.ndarray) -> np.ndarray:
        parts = (cho_solve(root, vector[slot]) for root, slot in zip(roots, slots, strict=True))
        return np.concatenate(list(parts))

    curvature = LinearOperator(
        shape, matvec=lambda v: v + curvature_product(designs, expectation, v), dtype=float
    )
    preconditioner = LinearOperator(shape, matvec=alone, dtype=float)
    step, _ = cg(curvature, slope, M=preconditioner, rtol=RELATIVE, maxiter=GRADIENTS)
    return np.asarray(step)


def spread_of_components(
    designs: Designs, labels: Labels, expectation: Expectation, *, wide: bool
) -> tuple[list[Float[np.ndarray, "_ _"]], float]:
    """Complete-data covariance of every component's coordinates, and all of them's log volume.

    Parameters
    ----------
    designs : tuple of ndarray of shape (n_points, n_coordinates of the component)
        Whitened features, component by component.
    labels : Labels
        What is known of the rows.
    expectation : Expectation
        At the point.
    wide : bool
        With the other components held.

    Returns
    -------
    inverses : list of ndarray of shape (n_coordinates, n_coordinates) of the component
        Diagonal blocks of the inverse curvature.
    log_determinant : float
        Log determinant of the curvature.
    """
    if wide:
        blocks = component_curvatures(designs, expectation)
        pairs = [inverse_curvature(block + np.eye(len(block))) for block in blocks]
        return [inverse for inverse, _ in pairs], sum(log for _, log in pairs)
    curvature = complete_curvature(designs, labels, expectation)
    inverse, log_determinant = inverse_curvature(curvature + np.eye(len(curvature)))
    return [inverse[slot, slot] for slot in places(designs)], log_determinant


def inverse_curvature(
    curvature: Float[np.ndarray, "coordinate coordinate"],
) -> tuple[Float[np.ndarray, "coordinate coordinate"], float]:
    """Inverse and log determinant of a positive definite matrix.

    Parameters
    ----------
    curvature : ndarray of shape (n, n)
        Symmetric and positive definite.

    Returns
    -------
    inverse : ndarray of shape (n, n)
        Its inverse.
    log_determinant : float
        Log of its determinant.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix is not positive definite.
    """
    if not curvature.size:  # every weight is pruned; LAPACK complains on stderr
        return curvature.copy(), 0.0
    root, _ = cho_factor(curvature, lower=True)
    lower, _ = dpotri(root, lower=True)  # a third of the work of solving for every unit vector
    inverse = np.tril(lower) + np.tril(lower, -1).T
    return inverse, 2 * float(np.log(np.diagonal(root)).sum())
