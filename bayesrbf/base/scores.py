"""Proper scores of class probabilities, row by row, and their means over folds."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

LEAST_SCORED = 1e-15  # Smallest probability that is scored: a zero makes every mean infinite.

Probabilities = Float[np.ndarray, "obs label"]
Labels = Int[np.ndarray, " obs"]
Weights = Float[np.ndarray, " obs"]


def log_scores(log_probabilities: Probabilities, labels: Labels) -> Float[np.ndarray, " obs"]:
    """Log score of every row, in nats: ``log p_n[y_n]``."""
    return np.asarray(log_probabilities[np.arange(labels.size), labels])


def log_loss(probabilities: Probabilities, labels: Labels) -> Float[np.ndarray, " obs"]:
    """Minus the log score of every row, in nats, of a probability of at least ``LEAST_SCORED``.

    >>> log_loss(np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([0, 1])).round(3)
    array([0.693, 0.105])
    """
    return -log_scores(np.log(np.clip(probabilities, LEAST_SCORED, 1.0)), labels)


def brier(probabilities: Probabilities, labels: Labels) -> Float[np.ndarray, " obs"]:
    """Brier score of every row: ``sum_c (p_nc - [y_n = c])^2``, between 0 and 2.

    For two classes it is twice the textbook's binary score.

    >>> brier(np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([0, 1])).round(3)
    array([0.5 , 0.02])
    """
    return np.asarray(((probabilities - _indicators(probabilities, labels)) ** 2).sum(1))


def correct(probabilities: Probabilities, labels: Labels) -> Float[np.ndarray, " obs"]:
    """Whether the most probable class is the true one, 1 or 0; the mean is the accuracy.

    It is 1/m where m classes tie at the top and the true one is among them.

    >>> correct(np.array([[0.5, 0.5], [0.1, 0.9]]), np.array([0, 1]))
    array([0.5, 1. ])
    """
    top = probabilities == probabilities.max(1, keepdims=True)
    return np.asarray(top[np.arange(labels.size), labels] / top.sum(1))


def mean_and_error(values: Float[np.ndarray, " obs"], weights: Weights) -> tuple[float, float]:
    r"""Weighted mean of rows and its standard error.

    .. math:: m = \frac{\sum_n v_n x_n}{\sum_n v_n}, \quad
       \mathrm{se} = \frac{\sqrt{\sum_n v_n (x_n - m)^2}}{\sum_n v_n}

    A row of weight 2 is the row twice.

    >>> mean_and_error(np.array([1.0, 3.0]), np.array([2.0, 2.0]))
    (2.0, 0.5)
    """
    total = weights.sum()
    mean = weights @ values / total
    return float(mean), float(np.sqrt(weights @ (values - mean) ** 2) / total)


def mean_over_folds(
    losses: Float[np.ndarray, " obs"],
    folds: Int[np.ndarray, " obs"],
    weights: Weights | None = None,
) -> tuple[float, float]:
    """Weighted mean of row losses and its standard error from the spread of the folds.

    ``m = sum_n v_n l_n / sum_n v_n`` and ``se^2 = F/(F-1) sum_f q_f^2 (m_f - m)^2``
    with ``q_f`` the share of fold f in the total weight: for folds of one size the
    standard deviation of the fold means over ``sqrt(F)``. It is NaN for a single fold.

    See Cochran (1977), Sampling techniques, section 6.11 (ratio estimate), for the standard
    error of a mean over clusters of unequal size.

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


def _indicators(probabilities: Probabilities, labels: Labels) -> Float[np.ndarray, "obs label"]:
    """Indicator of the true class, in the shape of the probabilities."""
    indicator = np.zeros_like(probabilities)
    indicator[np.arange(labels.size), labels] = 1.0
    return indicator
