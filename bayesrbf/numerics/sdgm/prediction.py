r"""Class probabilities of points, at the mode and averaged over the posterior of the weights.

.. math:: \bar p(c | x) = \int p(c | x, w) \, N(w; \hat w, \Sigma) \, dw

The average is a mean over quasi-random draws of the weights along the principal axes
of their covariance, in replicates whose spread is its error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int
from scipy.special import log_softmax

from bayesrbf.numerics.log_sums import log_sum_exp
from bayesrbf.numerics.quasi_random import normals
from bayesrbf.numerics.sdgm.basis import features, standard_points
from bayesrbf.parameters import Standardisation
from bayesrbf.sdgm_parameters import Basis, SDGMParameters

REPLICATES = 8
DRAWS = 128
"""Quasi-random draws of the weights in a replicate."""
DRAWS_OF_COMPLETED = 16
"""The first of them, for each completion of a row with holes: completions differ more."""
BLOCK_NUMBERS = 4_000_000


def class_log_probabilities(
    logits: Float[np.ndarray, "*points component"],
    component_class: Int[np.ndarray, " component"],
) -> Float[np.ndarray, "*points label"]:
    """Log of the softmax, summed within classes.

    Parameters
    ----------
    logits : ndarray of shape (..., n_components)
        log pi + w . phi.
    component_class : ndarray of shape (n_components,)
        Class of every component, non-decreasing; every class has one.

    Returns
    -------
    ndarray of shape (..., n_classes)
        Log probabilities in nats.
    """
    log_all, _ = log_sum_exp(logits, axis=-1)
    starts = np.flatnonzero(np.diff(component_class, prepend=-1))
    return np.logaddexp.reduceat(logits, starts, axis=-1) - log_all[..., None]


Completion = Callable[[int], tuple[np.ndarray, np.ndarray]]
"""Number of a replicate -> points of all rows in the user's units, first point of every row."""


def predict(
    parameters: SDGMParameters,
    basis: Basis,
    units: Standardisation,
    completion: Completion,
    *,
    average: bool,
    temperature: float = 1.0,
) -> tuple[Float[np.ndarray, "obs label"], Float[np.ndarray, "obs label"]]:
    """Class probabilities of rows, and their numerical error.

    Parameters
    ----------
    parameters : SDGMParameters
        The fitted point and the spread around it.
    basis : QuadraticBasis or KernelBasis
        Features of a point.
    units : Standardisation
        Location and scale of the points' coordinates.
    completion : callable
        Completes the rows, independently in every replicate.
    average : bool
        Over the posterior of the weights; else at its mode.
    temperature : float
        Factor of the log probabilities under every draw and completion.

    Returns
    -------
    probabilities : ndarray of shape (n_obs, n_classes)
        Means over the replicates.
    error : ndarray of shape (n_obs, n_classes)
        Their standard errors: 0 for what was not drawn.
    """
    estimates = []
    for replicate in range(REPLICATES):
        points, starts = completion(replicate)
        phi = features(basis, standard_points(points, units))
        weights = parameters.coefficients[None]
        if average:
            weights = weight_draws(weights[0], parameters.covariance, replicate)
        sizes = np.diff(starts, append=len(points))
        whole = np.repeat(sizes == 1, sizes)
        by_point = np.empty((len(points), parameters.component_class[-1] + 1))
        by_point[whole] = mean_probabilities(phi[whole], weights, parameters, temperature)
        few = weights[:DRAWS_OF_COMPLETED]
        by_point[~whole] = mean_probabilities(phi[~whole], few, parameters, temperature)
        estimates.append(np.add.reduceat(by_point, starts, axis=0) / sizes[:, None])
        if not average and len(points) == len(starts):
            return estimates[0], np.zeros_like(estimates[0])
    found = np.stack(estimates)
    return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(REPLICATES)


def weight_draws(
    mean: Float[np.ndarray, " weight"],
    covariance: Float[np.ndarray, "weight weight"],
    replicate: int,
) -> Float[np.ndarray, "draw weight"]:
    """Quasi-random draws of a normal, its longest axis first.

    Parameters
    ----------
    mean : ndarray of shape (n_weights,)
        Mean.
    covariance : ndarray of shape (n_weights, n_weights)
        Covariance.
    replicate : int
        Which of the independent sets of draws.

    Returns
    -------
    ndarray of shape (n_draws, n_weights)
        The draws.
    """
    variances, axes = np.linalg.eigh(covariance)
    root = (axes * np.sqrt(np.maximum(variances, 0)))[:, ::-1]
    return mean + normals(DRAWS, mean.size, replicate) @ root.T


def component_probabilities(
    parameters: SDGMParameters,
    basis: Basis,
    units: Standardisation,
    completion: Completion,
) -> Float[np.ndarray, "obs component"]:
    """Probabilities of classes and their components together, at the mode.

    Parameters
    ----------
    parameters : SDGMParameters
        The fitted point.
    basis : QuadraticBasis or KernelBasis
        Features of a point.
    units : Standardisation
        Location and scale of the points' coordinates.
    completion : callable
        Completes the rows.

    Returns
    -------
    ndarray of shape (n_obs, n_components)
        ``p(c, m | x)``; rows sum to one.
    """
    points, starts = completion(0)
    phi = features(basis, standard_points(points, units))
    logits = phi @ parameters.dense(phi.shape[1]) + np.log(parameters.proportions)
    sizes = np.diff(starts, append=len(points))
    return np.add.reduceat(log_sum_exp(logits, axis=1)[1], starts, axis=0) / sizes[:, None]


def replicated_draws(parameters: SDGMParameters) -> Float[np.ndarray, "replicate draw weight"]:
    """Draws of the Laplace posterior of the weights, all replicates.

    Parameters
    ----------
    parameters : SDGMParameters
        The fitted point and the spread around it.

    Returns
    -------
    ndarray of shape (REPLICATES, DRAWS, n_weights)
        The draws that :func:`predict` averages over.
    """
    return np.stack(
        [
            weight_draws(parameters.coefficients, parameters.covariance, replicate)
            for replicate in range(REPLICATES)
        ]
    )


def mean_probabilities(
    phi: Float[np.ndarray, "point feature"],
    draws: Float[np.ndarray, "draw weight"],
    parameters: SDGMParameters,
    temperature: float = 1.0,
) -> Float[np.ndarray, "point label"]:
    """Class probabilities of points, averaged over draws of the weights.

    Parameters
    ----------
    phi : ndarray of shape (n_points, n_features)
        Features of the points.
    draws : ndarray of shape (n_draws, n_weights)
        Draws of the active weights.
    parameters : SDGMParameters
        Their places, and the component probabilities.
    temperature : float
        Factor of the log probabilities under every draw.

    Returns
    -------
    ndarray of shape (n_points, n_classes)
        Mean probabilities; rows sum to one.
    """
    k, classes = parameters.n_components, parameters.component_class
    dense = np.zeros((phi.shape[1], len(draws), k))
    dense[parameters.feature, :, parameters.component] = draws.T
    flat = dense.reshape(phi.shape[1], -1)
    rows = max(1, BLOCK_NUMBERS // flat.shape[1])
    result = np.empty((len(phi), classes[-1] + 1))
    for start in range(0, len(phi), rows):
        block = phi[start : start + rows]
        logits = (block @ flat).reshape(len(block), len(draws), k) + np.log(parameters.proportions)
        by_class = log_softmax(temperature * class_log_probabilities(logits, classes), axis=-1)
        result[start : start + rows] = np.exp(by_class).mean(axis=1)
    return result


def drawn_log_probabilities(
    parameters: SDGMParameters,
    basis: Basis,
    units: Standardisation,
    completion: Completion,
    *,
    average: bool,
) -> Float[np.ndarray, "obs draw label"]:
    """Class log probabilities of rows under draws of the weights and of their missing cells.

    Parameters
    ----------
    parameters : SDGMParameters
        The fitted point and the spread around it.
    basis : QuadraticBasis or KernelBasis
        Features of a point.
    units : Standardisation
        Location and scale of the points' coordinates.
    completion : callable
        Completes the rows.
    average : bool
        Draw weights from their posterior; else they stay at its mode.

    Returns
    -------
    ndarray of shape (n_obs, n_draws, n_classes)
        Every draw takes one of the weights and one of the completions of every row.
    """
    points, starts = completion(0)
    phi = features(basis, standard_points(points, units))
    sizes = np.diff(starts, append=len(points))
    weights = np.repeat(parameters.coefficients[None], sizes.max(initial=1), axis=0)
    if average:
        weights = weight_draws(parameters.coefficients, parameters.covariance, 0)
    # Quasi-random draws of the same number go together: a permutation parts them.
    order = np.random.default_rng(0).permutation(len(weights))
    drawn = []
    for s, coefficients in zip(order, weights, strict=True):
        dense = replace(parameters, coefficients=coefficients).dense(phi.shape[1])
        logits = phi[starts + s % sizes] @ dense + np.log(parameters.proportions)
        drawn.append(class_log_probabilities(logits, parameters.component_class))
    return np.stack(drawn, axis=1)
