"""Proper scores of class probabilities, row by row, and their means over folds."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

LEAST = 1e-15
"""Smallest probability that is scored: a zero would make every mean infinite."""

Probabilities = Float[np.ndarray, "obs label"]
Labels = Int[np.ndarray, " obs"]
Weights = Float[np.ndarray, " obs"]


def log_loss(probabilities: Probabilities, labels: Labels) -> Float[np.ndarray, " obs"]:
    """Log score of every row: ``-log p_n[y_n]``.

    Parameters
    ----------
    probabilities : ndarray of shape (n_obs, n_classes)
        Class probabilities; rows sum to one.
    labels : ndarray of shape (n_obs,)
        True class codes.

    Returns
    -------
    ndarray of shape (n_obs,)
        Losses in nats, at least 0; 0 is certainty of what is true.

    Examples
    --------
    >>> log_loss(np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([0, 1])).round(3)
    array([0.693, 0.105])
    """
    true = probabilities[np.arange(labels.size), labels]
    losses: Float[np.ndarray, " obs"] = -np.log(np.clip(true, LEAST, 1.0))
    return losses


def brier(probabilities: Probabilities, labels: Labels) -> Float[np.ndarray, " obs"]:
    """Brier score of every row: ``sum_c (p_nc - [y_n = c])^2``.

    Parameters
    ----------
    probabilities : ndarray of shape (n_obs, n_classes)
        Class probabilities; rows sum to one.
    labels : ndarray of shape (n_obs,)
        True class codes.

    Returns
    -------
    ndarray of shape (n_obs,)
        Losses between 0 and 2; for two classes twice the textbook's binary score.

    Examples
    --------
    >>> brier(np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([0, 1])).round(3)
    array([0.5 , 0.02])
    """
    losses: Float[np.ndarray, " obs"] = ((probabilities - one_hot(probabilities, labels)) ** 2).sum(
        1
    )
    return losses


def correct(probabilities: Probabilities, labels: Labels) -> Float[np.ndarray, " obs"]:
    """Whether the most probable class is the true one; ties share the credit.

    Parameters
    ----------
    probabilities : ndarray of shape (n_obs, n_classes)
        Class probabilities.
    labels : ndarray of shape (n_obs,)
        True class codes.

    Returns
    -------
    ndarray of shape (n_obs,)
        1 where right, 0 where wrong, 1/m where m classes tie at the top and the true
        one is among them; the mean is the accuracy.

    Examples
    --------
    >>> correct(np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([0, 1]))
    array([0.5, 1. ])
    """
    top = probabilities == probabilities.max(1, keepdims=True)
    share: Float[np.ndarray, " obs"] = top[np.arange(labels.size), labels] / top.sum(1)
    return share


def mean_over_folds(
    losses: Float[np.ndarray, " obs"],
    folds: Int[np.ndarray, " obs"],
    weights: Weights | None = None,
) -> tuple[float, float]:
    """Weighted mean of row losses and its standard error from the spread of the folds.

    ``m = sum_n v_n l_n / sum_n v_n`` and ``se^2 = F/(F-1) sum_f q_f^2 (m_f - m)^2``
    with ``q_f`` the share of fold f in the total weight: for folds of one size the
    standard deviation of the fold means over ``sqrt(F)``.

    Parameters
    ----------
    losses : ndarray of shape (n_obs,)
        One loss per row.
    folds : ndarray of shape (n_obs,)
        Fold in which each row was held out.
    weights : ndarray of shape (n_obs,), optional
        Row weights, at least 0; 1 by default.

    Returns
    -------
    mean : float
        Weighted mean loss.
    standard_error : float
        NaN for a single fold.

    References
    ----------
    .. [1] Cochran (1977), Sampling techniques, section 6.11 (ratio estimate), for the
       standard error of a mean over clusters of unequal size.

    Examples
    --------
    >>> mean, error = mean_over_folds(np.array([1.0, 3.0, 2.0, 4.0]), np.array([0, 0, 1, 1]))
    >>> mean, error
    (2.5, 0.5)
    """
    weights = np.ones_like(losses) if weights is None else weights
    _, fold = np.unique(folds, return_inverse=True)
    mass = np.bincount(fold, weights)
    mean = float(weights @ losses / weights.sum())
    if mass.size == 1:
        return mean, float("nan")
    deviations = (np.bincount(fold, weights * losses) - mass * mean) / weights.sum()
    return mean, float(np.sqrt(mass.size / (mass.size - 1) * (deviations**2).sum()))


def one_hot(probabilities: Probabilities, labels: Labels) -> Float[np.ndarray, "obs label"]:
    """Indicator of the true class, in the shape of the probabilities.

    Parameters
    ----------
    probabilities : ndarray of shape (n_obs, n_classes)
        Class probabilities, for their shape.
    labels : ndarray of shape (n_obs,)
        True class codes.

    Returns
    -------
    ndarray of shape (n_obs, n_classes)
        1 at the true class, 0 elsewhere.

    Examples
    --------
    >>> one_hot(np.zeros((2, 2)), np.array([1, 0]))
    array([[0., 1.],
           [1., 0.]])
    """
    indicator = np.zeros_like(probabilities)
    indicator[np.arange(labels.size), labels] = 1.0
    return indicator
