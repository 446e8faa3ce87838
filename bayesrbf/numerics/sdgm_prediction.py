r"""Class probabilities of points, at the mode and averaged over the posterior of the weights.

.. math:: \bar p(c | x) = \int p(c | x, w) \, N(w; \hat w, \Sigma) \, dw

The average is a mean over quasi-random draws of the weights along the principal axes
of their covariance, in replicates whose spread is its error.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.array_expectation import log_sum_exp
from bayesrbf.numerics.quasi_random import normals

REPLICATES = 8
DRAWS = 128
"""Quasi-random draws of a replicate."""
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


def mean_probabilities(
    features: Float[np.ndarray, "point feature"],
    draws: Float[np.ndarray, "draw weight"],
    component: Int[np.ndarray, " weight"],
    feature: Int[np.ndarray, " weight"],
    proportions: Float[np.ndarray, " component"],
    component_class: Int[np.ndarray, " component"],
) -> Float[np.ndarray, "point label"]:
    """Class probabilities of points, averaged over draws of the weights.

    Parameters
    ----------
    features : ndarray of shape (n_points, n_features)
        Features of the points.
    draws : ndarray of shape (n_draws, n_weights)
        Draws of the active weights.
    component, feature : ndarray of shape (n_weights,)
        Place of every weight.
    proportions : ndarray of shape (n_components,)
        pi.
    component_class : ndarray of shape (n_components,)
        Class of every component.

    Returns
    -------
    ndarray of shape (n_points, n_classes)
        Mean probabilities; rows sum to one.
    """
    dense = np.zeros((features.shape[1], proportions.size, len(draws)))
    dense[feature, component] = draws.T
    flat = dense.reshape(features.shape[1], -1)
    rows = max(1, BLOCK_NUMBERS // flat.shape[1])
    parts = []
    for start in range(0, len(features), rows):
        block = features[start : start + rows]
        logits = (block @ flat).reshape(len(block), proportions.size, len(draws))
        logits = logits.swapaxes(1, 2) + np.log(proportions)
        parts.append(np.exp(class_log_probabilities(logits, component_class)).mean(axis=1))
    return np.concatenate(parts) if parts else np.empty((0, component_class[-1] + 1))
