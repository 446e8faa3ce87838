"""Draws from a mixture: whole rows, and the missing cells of given ones."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.mixture.conditional import conditionals, responsibilities
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.specification import MixtureSpecification


def conditional_draws(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    rng: np.random.Generator,
) -> tuple[Float[np.ndarray, "obs feature"], Int[np.ndarray, "obs categorical"]]:
    """Draw the missing cells of every row jointly, given its observed cells.

    Parameters
    ----------
    observations : Observations
        Rows in standard units; labels are not used.
    parameters : MixtureParameters
        Point of the mixture, in standard units.
    specification : MixtureSpecification
        Structure of the mixture.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    real : ndarray of shape (n_obs, n_features)
        Rows with their missing reals drawn.
    codes : ndarray of shape (n_obs, n_categorical)
        Rows with their missing categories drawn.
    """
    shares = responsibilities(observations, parameters, specification)
    components = draw_categories(shares, rng)
    noise = rng.standard_normal(observations.real.shape)
    real = observations.real.copy()
    for block in conditionals(observations, parameters, specification):
        lane = np.arange(block.rows.size)
        mine = components[block.rows]
        means = block.means[lane, mine]
        if block.roots is None:
            steps = noise[block.rows] * np.sqrt(block.variances[lane, mine])
        else:
            steps = np.zeros_like(means)
            hole = np.isnan(observations.real[block.rows])
            m = block.roots.shape[-1]
            steps[hole] = np.einsum(
                "nij,nj->ni", block.roots[lane, mine], noise[block.rows, :m]
            ).reshape(-1)
        real[block.rows] = np.where(np.isnan(real[block.rows]), means + steps, real[block.rows])
    codes = observations.codes.copy()
    for column, theta in enumerate(parameters.category_probabilities):
        hole = codes[:, column] < 0
        codes[hole, column] = draw_categories(theta[components[hole]], rng)
    return real, codes


def draw_categories(
    probabilities: Float[np.ndarray, "row category"], rng: np.random.Generator
) -> Int[np.ndarray, " row"]:
    """Draw one category per row.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_categories)
        Rows sum to one.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (n_rows,)
        Drawn indices.
    """
    cumulative = probabilities.cumsum(axis=1)
    uniform = rng.random(len(probabilities)) * cumulative[:, -1]
    drawn = (cumulative <= uniform[:, None]).sum(axis=1)
    return np.minimum(drawn, probabilities.shape[1] - 1)


def sample(
    parameters: MixtureParameters,
    specification: MixtureSpecification,
    n_rows: int,
    rng: np.random.Generator,
    labels: Int[np.ndarray, " row"] | None = None,
) -> tuple[
    Float[np.ndarray, "row feature"],
    Int[np.ndarray, "row categorical"],
    Int[np.ndarray, " row"],
    Int[np.ndarray, " row"],
]:
    """Draw complete rows from the mixture.

    Parameters
    ----------
    parameters : MixtureParameters
        Point of the mixture.
    specification : MixtureSpecification
        Structure of the mixture.
    n_rows : int
        Number of rows.
    rng : numpy.random.Generator
        Source of randomness.
    labels : ndarray of shape (n_rows,), optional
        Classes to draw from; drawn from the class probabilities if absent.

    Returns
    -------
    real : ndarray of shape (n_rows, n_features)
        Reals, in the units of ``parameters``.
    codes : ndarray of shape (n_rows, n_categorical)
        Level codes.
    labels : ndarray of shape (n_rows,)
        Class codes.
    components : ndarray of shape (n_rows,)
        Component indices.
    """
    classes = np.asarray(specification.component_class)
    if labels is None:
        shares = np.broadcast_to(parameters.class_probabilities, (n_rows, specification.n_classes))
        labels = draw_categories(shares, rng)
    within = np.where(classes == labels[:, None], parameters.weights, 0.0)
    components = draw_categories(within, rng)
    noise = rng.standard_normal((n_rows, specification.n_features))
    real = parameters.means[components].copy()
    for k in range(specification.n_components):
        mine = components == k
        factor = parameters.precisions_cholesky[specification.covariance_group[k]]
        if factor.ndim == 1:
            real[mine] += noise[mine] / factor
        else:
            real[mine] += np.linalg.solve(factor.T, noise[mine].T).T
    codes = np.empty((n_rows, len(specification.levels)), dtype=np.intp)
    for column, theta in enumerate(parameters.category_probabilities):
        codes[:, column] = draw_categories(theta[components], rng)
    return real, codes, labels, components
