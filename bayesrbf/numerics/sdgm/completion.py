r"""Rows with holes as several complete points, drawn from a companion mixture.

The components of this family are no densities of x: adding one quadratic function to
all of them changes every "marginal" and no :math:`p(c | x)`. So missing cells cannot
be integrated out of the components. What is sound is

.. math:: p(c | x_o) = \int p(c | x) \, p(x_m | x_o) \, dx_m

with a density of x of its own: a mixture that never sees the labels. The integral
is a mean over quasi-random draws, the same for every row: what a row is told does
not depend on the rows beside it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.categories import one_hot
from bayesrbf.numerics.conditional import Conditional, conditionals, responsibilities
from bayesrbf.numerics.quasi_random import normals, uniforms
from bayesrbf.parameters import MixtureParameters, Observations, Standardisation
from bayesrbf.specification import MixtureSpecification


def complete(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    units: Standardisation,
    *,
    draws: int,
    replicate: int = 0,
) -> tuple[Float[np.ndarray, "point coordinate"], Int[np.ndarray, " row"]]:
    """Points of every row: itself if it is whole, else its completions.

    Parameters
    ----------
    observations : Observations
        Rows in the user's units; labels are not used.
    parameters : MixtureParameters
        Point of the companion, in standard units.
    specification : MixtureSpecification
        Structure of the companion.
    units : Standardisation
        Location and scale of the real columns.
    draws : int
        Completions of a row with holes, a power of two.
    replicate : int
        Which of the independent sets of draws.

    Returns
    -------
    points : ndarray of shape (n_points, n_coordinates)
        Reals in the user's units, then indicators of all levels.
    starts : ndarray of shape (n_rows,)
        First point of every row.
    """
    holes = np.isnan(observations.real).any(axis=1) | (observations.codes < 0).any(axis=1)
    sizes = np.where(holes, draws, 1)
    starts = np.cumsum(sizes) - sizes
    real = np.repeat(observations.real, sizes, axis=0)
    codes = np.repeat(observations.codes, sizes, axis=0)
    if holes.any():
        rows = observations.take(holes)
        standard = Observations(units.forward(rows.real), rows.codes, rows.labels, rows.weights)
        filled, drawn = _drawn(standard, parameters, specification, draws, replicate)
        places = np.repeat(holes, sizes)
        real[places] = np.where(np.isnan(real[places]), units.backward(filled), real[places])
        codes[places] = drawn
    return np.column_stack([real, one_hot(codes, specification.levels)]), starts


def _drawn(
    rows: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    draws: int,
    replicate: int,
) -> tuple[Float[np.ndarray, "point feature"], Int[np.ndarray, "point categorical"]]:
    """Completions of rows in standard units, those of one row side by side."""
    d, n_categorical = specification.n_features, len(specification.levels)
    uniform = uniforms(draws, 1 + n_categorical + d, replicate)
    noise = normals(draws, 1 + n_categorical + d, replicate)[:, 1 + n_categorical :]
    shares = responsibilities(rows, parameters, specification)
    components = _invert(shares, uniform[:, 0])
    real = np.empty((rows.n_obs, draws, d))
    for block in conditionals(rows, parameters, specification):
        hole = np.isnan(rows.real[block.rows])
        real[block.rows] = _fill(block, hole, components[block.rows], noise)
    codes = np.repeat(rows.codes[:, None, :], draws, axis=1)
    for column, theta in enumerate(parameters.category_probabilities):
        levels = (theta.cumsum(axis=1)[components] <= uniform[:, 1 + column, None]).sum(axis=-1)
        missing = rows.codes[:, column] < 0
        codes[missing, :, column] = np.minimum(levels, theta.shape[1] - 1)[missing]
    n_points = rows.n_obs * draws
    return real.reshape(n_points, d), codes.reshape(n_points, n_categorical)


def _invert(
    shares: Float[np.ndarray, "row component"], uniform: Float[np.ndarray, " draw"]
) -> Int[np.ndarray, "row draw"]:
    """The component that every uniform number falls on, row by row."""
    edges = shares.cumsum(axis=1)
    chosen = (edges[:, None, :] <= uniform[:, None]).sum(axis=-1)
    return np.minimum(chosen, shares.shape[1] - 1)


def _fill(
    block: Conditional,
    hole: np.ndarray,
    components: Int[np.ndarray, "row draw"],
    noise: Float[np.ndarray, "draw feature"],
) -> Float[np.ndarray, "row draw feature"]:
    """Rows of one block with their missing reals drawn."""
    lane = np.arange(block.rows.size)[:, None]
    values = block.means[lane, components]
    if block.roots is None:
        return values + noise * np.sqrt(block.variances[lane, components])
    m = block.roots.shape[-1]
    steps = np.einsum("njab,jb->nja", block.roots[lane, components], noise[:, :m])
    result: np.ndarray = values.copy()
    result[np.broadcast_to(hole[:, None, :], result.shape)] += steps.reshape(-1)
    return result
