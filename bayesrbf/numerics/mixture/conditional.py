r"""What the observed cells of a row say about its missing ones.

Given component k the missing reals are normal with the conditional moments of
:mod:`bayesrbf.numerics.mixture.gaussian`, and the missing categories have the
component's own level probabilities; both are averaged over components by
:math:`p(k | x_o)`. Labels are used only where a caller hands them over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.log_sums import log_sum_exp
from bayesrbf.numerics.mixture.expectation import prepare
from bayesrbf.numerics.mixture.gaussian import FullComponents, MissingMoments
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.specification import MixtureSpecification

BLOCK_CELLS = 1_000_000
"""Numbers held at once per array of a block of rows."""


@dataclass(frozen=True)
class Conditional:
    """Conditional moments of a block of rows under every component.

    Attributes
    ----------
    rows : ndarray of shape (n_rows,)
        Row indices.
    means : ndarray of shape (n_rows, n_components, n_features)
        ``E[x | x_o, k]``; an observed cell is its own mean.
    variances : ndarray of shape (n_rows, n_components, n_features)
        ``Var[x | x_o, k]``; zero for an observed cell.
    roots : ndarray of shape (n_rows, n_components, m, m) or None
        Factors R of the conditional covariances ``R R'`` of the m missing
        cells; None for diagonal covariances.
    """

    rows: Int[np.ndarray, " row"]
    means: Float[np.ndarray, "row component feature"]
    variances: Float[np.ndarray, "row component feature"]
    roots: Float[np.ndarray, "row component m m"] | None


def responsibilities(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
) -> Float[np.ndarray, "obs component"]:
    """Posterior probability of every component, ``p(k | x_o)``.

    Parameters
    ----------
    observations : Observations
        Rows in standard units; labels are not used.
    parameters : MixtureParameters
        Point of the mixture, in standard units.
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    ndarray of shape (n_obs, n_components)
        Rows sum to one.
    """
    log_joint = prepare(observations, specification).component_log_joint(parameters)
    return log_sum_exp(log_joint, axis=1)[1]


def conditionals(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
) -> Iterator[Conditional]:
    """Conditional moments of the reals, block by block, under every component.

    Parameters
    ----------
    observations : Observations
        Rows in standard units.
    parameters : MixtureParameters
        Point of the mixture, in standard units.
    specification : MixtureSpecification
        Structure of the mixture.

    Yields
    ------
    Conditional
        Moments of some rows; together the blocks cover every row once.
    """
    observed = ~np.isnan(observations.real)
    factors = parameters.precisions_cholesky[specification.covariance_group]
    n_missing = (~observed).sum(axis=1) if factors.ndim == 3 else np.zeros(len(observed), int)
    k, d = parameters.means.shape
    for m in np.unique(n_missing):
        same = np.flatnonzero(n_missing == m)
        size = max(1, BLOCK_CELLS // (k * max(d, int(m) ** 2, 1)))
        for rows in np.split(same, range(size, same.size, size)):
            yield _block(rows, observations.real[rows], parameters.means, factors)


def _block(
    rows: np.ndarray, real: np.ndarray, means: np.ndarray, factors: np.ndarray
) -> Conditional:
    """Moments of rows that miss the same number of cells, or under diagonal covariances."""
    missing = np.isnan(real)
    shape = (len(rows), *means.shape)
    if factors.ndim == 2:
        hole = missing[:, None, :]
        expected = np.where(hole, means, np.nan_to_num(real)[:, None, :])
        return Conditional(rows, expected, np.where(hole, factors**-2.0, 0.0), None)
    places = np.nonzero(missing)[1].reshape(len(rows), -1)
    moments = MissingMoments.of(np.nan_to_num(real), places, FullComponents(means, factors))
    expected = np.where(
        missing[:, None, :], moments.deviations + means, np.nan_to_num(real)[:, None, :]
    )
    variances = np.zeros(shape)
    lane = np.arange(len(rows))[:, None]
    spread = np.einsum("nkii->nki", moments.covariances)
    variances[lane, :, places] = np.moveaxis(spread, 1, 2)
    return Conditional(rows, expected, variances, np.linalg.cholesky(moments.covariances))


def conditional_moments(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
) -> tuple[Float[np.ndarray, "obs feature"], Float[np.ndarray, "obs feature"]]:
    """Mean and variance of every real cell given the observed cells of its row.

    Parameters
    ----------
    observations : Observations
        Rows in standard units; labels are not used.
    parameters : MixtureParameters
        Point of the mixture, in standard units.
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    mean : ndarray of shape (n_obs, n_features)
        ``E[x | x_o]``; observed cells are returned as they are.
    variance : ndarray of shape (n_obs, n_features)
        ``Var[x | x_o]``; zero for observed cells.
    """
    shares = responsibilities(observations, parameters, specification)
    mean = np.empty_like(observations.real)
    variance = np.empty_like(observations.real)
    for block in conditionals(observations, parameters, specification):
        weights = shares[block.rows]
        centre = np.einsum("nk,nkd->nd", weights, block.means)
        between = (block.means - centre[:, None, :]) ** 2
        mean[block.rows] = centre
        variance[block.rows] = np.einsum("nk,nkd->nd", weights, block.variances + between)
    observed = ~np.isnan(observations.real)
    # The average of a cell with itself differs from it by rounding: hand back the cell.
    return np.where(observed, observations.real, mean), np.where(observed, 0.0, variance)


def conditional_probabilities(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
) -> tuple[Float[np.ndarray, "obs _"], ...]:
    """Level probabilities of every categorical cell given the observed cells of its row.

    Parameters
    ----------
    observations : Observations
        Rows in standard units; labels are not used.
    parameters : MixtureParameters
        Point of the mixture, in standard units.
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    tuple of ndarray of shape (n_obs, n_levels)
        ``p(level | x_o)`` per categorical column; an observed cell has
        probability one at its level.
    """
    shares = responsibilities(observations, parameters, specification)
    results = []
    for column, theta in enumerate(parameters.category_probabilities):
        codes = observations.codes[:, column]
        known = np.flatnonzero(codes >= 0)
        probabilities = shares @ theta
        probabilities[known] = 0.0
        probabilities[known, codes[known]] = 1.0
        results.append(probabilities)
    return tuple(results)
