r"""Rows with holes as several complete rows, drawn from a mixture.

.. math:: \int g(x) \, p(x_m | x_o) \, dx_m

for a g of complete rows is a mean over quasi-random draws, the same for every row: what a
row is told does not depend on the rows beside it.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.mixture.conditional import responsibilities
from bayesrbf.numerics.mixture.gaussian import Conditional
from bayesrbf.numerics.mixture.mixture_points import reordered
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.numerics.quasi_random import normals, uniforms
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.specification import MixtureSpecification, Order


def with_holes(observations: Observations) -> Bool[np.ndarray, " obs"]:
    """Whether a real or categorical cell of a row is missing."""
    return np.isnan(observations.real).any(axis=1) | (observations.codes < 0).any(axis=1)


def mostly_complete(observations: Observations) -> bool:
    """Whether at least half of the labelled rows, by weight, are complete, or none is labelled."""
    weights = np.where(observations.labels >= 0, observations.weights, 0.0)
    return bool(2 * weights @ with_holes(observations) <= weights.sum())


def complete(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    *,
    draws: int,
    replicate: int = 0,
    order: Order | None = None,
) -> tuple[Observations, Int[np.ndarray, " row"]]:
    """Every row as itself if it is whole, else as its completions, and the first one of each.

    Rows and point are in standard units; labels are not used but kept, as weights are. ``draws``
    is a power of two, ``replicate`` says which of the independent sets of draws, and ``order`` in
    which order of columns and components the cells are drawn.
    """
    holes = with_holes(observations)
    sizes = np.where(holes, draws, 1)
    starts = np.cumsum(sizes) - sizes
    result = observations.take(np.repeat(np.arange(observations.n_obs), sizes))
    if holes.any():
        rows = observations.take(holes).unlabelled()
        if order is not None:
            rows, parameters = rows.reordered(order), reordered(parameters, order, specification)
            specification = specification.reordered(order)
        real, codes = _drawn(rows, parameters, specification, draws, replicate)
        if order is not None:
            real, codes = real[:, order.inverse.features], codes[:, order.inverse.categories]
        places = np.repeat(holes, sizes)
        result.real[places], result.codes[places] = real, codes
    return result, starts


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
    weights = responsibilities(rows, parameters, specification)
    components = _invert(weights, uniform[:, 0])
    real = np.empty((rows.n_obs, draws, d))
    for block in laws_of(specification).reals.conditionals(rows.real, parameters):
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
    weights: Float[np.ndarray, "row component"], uniform: Float[np.ndarray, " draw"]
) -> Int[np.ndarray, "row draw"]:
    """The component that every uniform number falls on, row by row."""
    edges = weights.cumsum(axis=1)
    chosen = (edges[:, None, :] <= uniform[:, None]).sum(axis=-1)
    return np.minimum(chosen, weights.shape[1] - 1)


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
