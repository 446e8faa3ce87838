r"""Class probabilities of points, at the mode and averaged over the posterior of the weights.

.. math:: \bar p(c | x) = \sum_j q_j \int p(c | x, w) \, N(w; \hat w_j, \Sigma_j) \, dw

with q the probabilities of the modes. The average is a mean over quasi-random draws of
the weights along the principal axes of their covariance, shared out among the modes, in
replicates whose spread is its error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int
from scipy.special import softmax

from bayesrbf.numerics.log_sums import log_sum_exp
from bayesrbf.numerics.prevalence import at_prevalence
from bayesrbf.numerics.sdgm.basis import features, standard_points
from bayesrbf.numerics.sdgm.drawing import (
    DRAWS,
    DRAWS_OF_COMPLETED,
    REPLICATES,
    Drawn,
    weight_draws,
)
from bayesrbf.parameters import Standardisation
from bayesrbf.sdgm_parameters import Basis, SDGMModes, SDGMParameters

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
    modes: SDGMModes,
    basis: Basis,
    units: Standardisation,
    completion: Completion,
    *,
    average: bool,
    temperature: float = 1.0,
    log_ratio: Float[np.ndarray, " label"] | float = 0.0,
) -> tuple[Float[np.ndarray, "obs label"], Float[np.ndarray, "obs label"]]:
    """Class probabilities of rows, and their numerical error.

    Parameters
    ----------
    modes : SDGMModes
        Fitted points and the spread around them.
    basis : QuadraticBasis or KernelBasis
        Features of a point.
    units : Standardisation
        Location and scale of the points' coordinates.
    completion : callable
        Completes the rows, independently in every replicate.
    average : bool
        Over the posterior of the weights; else at its most probable mode.
    temperature : float
        Factor of the log probabilities under every draw and completion.
    log_ratio : ndarray of shape (n_classes,), or 0
        Log ratio of the prevalences of use to those of training: Bayes' rule, which is
        applied to the means.

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
        sizes = np.diff(starts, append=len(points))
        whole = np.repeat(sizes == 1, sizes)
        by_point = np.empty((len(points), modes.best.component_class[-1] + 1))
        for chosen, n_draws in ((whole, DRAWS), (~whole, DRAWS_OF_COMPLETED)):
            if chosen.any():
                drawn = weight_draws(modes, n_draws, replicate, average=average)
                by_point[chosen] = _mean_over_modes(phi[chosen], drawn, temperature)
        estimates.append(np.add.reduceat(by_point, starts, axis=0) / sizes[:, None])
        if not average and len(points) == len(starts):
            return _moved(estimates[0], log_ratio), np.zeros_like(estimates[0])
    found = np.stack(estimates)
    error = _moved(found, log_ratio).std(axis=0, ddof=1) / np.sqrt(REPLICATES)
    return _moved(found.mean(axis=0), log_ratio), error


def _moved(
    probabilities: Float[np.ndarray, "*rows label"], log_ratio: Float[np.ndarray, " label"] | float
) -> Float[np.ndarray, "*rows label"]:
    """Class probabilities at the prevalences of use."""
    with np.errstate(divide="ignore"):
        return np.exp(at_prevalence(np.log(probabilities), log_ratio))


def _mean_over_modes(
    phi: Float[np.ndarray, "point feature"],
    drawn: Drawn,
    temperature: float,
) -> Float[np.ndarray, "point label"]:
    """Class probabilities of points, averaged over draws of all modes."""
    parts = [
        len(weights) * mean_probabilities(phi, weights, mode, temperature)
        for mode, weights in zip(drawn.modes, drawn.weights, strict=True)
        if len(weights)
    ]
    return np.sum(parts, axis=0) / drawn.number.size


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


def mean_probabilities(
    phi: Float[np.ndarray, "point feature"],
    draws: Float[np.ndarray, "draw weight"],
    parameters: SDGMParameters,
    temperature: float,
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
        by_class = temperature * class_log_probabilities(logits, classes)
        result[start : start + rows] = softmax(by_class, axis=-1).mean(axis=1)
    return result


def drawn_log_probabilities(
    modes: SDGMModes,
    basis: Basis,
    units: Standardisation,
    completion: Completion,
    *,
    average: bool,
) -> Float[np.ndarray, "obs draw label"]:
    """Class log probabilities of rows under draws of the weights and of their missing cells.

    Parameters
    ----------
    modes : SDGMModes
        Fitted points and the spread around them.
    basis : QuadraticBasis or KernelBasis
        Features of a point.
    units : Standardisation
        Location and scale of the points' coordinates.
    completion : callable
        Completes the rows.
    average : bool
        Draw weights from their posterior; else they stay at its most probable mode.

    Returns
    -------
    ndarray of shape (n_obs, n_draws, n_classes)
        Every draw takes one of the weights and one of the completions of every row.
    """
    points, starts = completion(0)
    phi = features(basis, standard_points(points, units))
    sizes = np.diff(starts, append=len(points))
    drawn = weight_draws(modes, DRAWS, 0, average=average)
    points_of_modes = [
        replace(mode, coefficients=coefficients)
        for mode, weights in zip(drawn.modes, drawn.weights, strict=True)
        for coefficients in weights
    ]
    if not average:
        points_of_modes *= sizes.max(initial=1)
    # Quasi-random draws of the same number go together: a permutation parts them.
    order = np.random.default_rng(0).permutation(len(points_of_modes))
    result = []
    for s, mode in zip(order, points_of_modes, strict=True):
        logits = phi[starts + s % sizes] @ mode.dense(phi.shape[1]) + np.log(mode.proportions)
        result.append(class_log_probabilities(logits, mode.component_class))
    return np.stack(result, axis=1)
