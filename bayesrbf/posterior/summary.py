"""What the draws say about every row, summed up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import xlogy


@dataclass(frozen=True)
class PredictiveSummary:
    r"""What the draws say about every row.

    The entropy of the mean probability is what one does not know in all; its
    mean over the draws is what more data like these would not take away:

    .. math:: H[\bar p] = \overline{H[p_s]} + I(c; \theta).

    Attributes
    ----------
    mean, sd, lower, upper : ndarray of shape (n_obs, n_classes)
        Mean, standard deviation and equal-tailed interval of the class
        probabilities.
    total, aleatoric : ndarray of shape (n_obs,)
        Entropy of the mean and mean of the entropies, in nats.
    log_density : ndarray of shape (n_obs,)
        Log of the posterior mean density of the observed cells.
    prob : float
        Probability inside the interval.
    """

    mean: Float[np.ndarray, "obs label"]
    sd: Float[np.ndarray, "obs label"]
    lower: Float[np.ndarray, "obs label"]
    upper: Float[np.ndarray, "obs label"]
    total: Float[np.ndarray, " obs"]
    aleatoric: Float[np.ndarray, " obs"]
    log_density: Float[np.ndarray, " obs"]
    prob: float

    @property
    def epistemic(self) -> Float[np.ndarray, " obs"]:
        """Mutual information of class and parameters, in nats: what more data would tell."""
        return self.total - self.aleatoric


def entropy(probabilities: Float[np.ndarray, "*rows label"]) -> Float[np.ndarray, "*rows"]:
    r"""Entropy :math:`-\sum_c p_c \log p_c` in nats.

    Parameters
    ----------
    probabilities : ndarray of shape (..., n_classes)
        Probabilities that sum to one over the last axis.

    Returns
    -------
    ndarray of shape (...)
        Entropies, from 0 to log n_classes.

    Examples
    --------
    >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4)
    array([0.6931, 0.    ])
    """
    values: np.ndarray = -xlogy(probabilities, probabilities).sum(axis=-1)
    return np.abs(values)


def summarised(
    p: Float[np.ndarray, "draw obs label"],
    weights: Float[np.ndarray, "draw obs"] | None,
    prob: float,
) -> dict[str, np.ndarray]:
    """Mean, spread, interval and entropies of class probabilities over draws.

    Parameters
    ----------
    p : ndarray of shape (n_draws, n_obs, n_classes)
        Class probabilities under every draw.
    weights : ndarray of shape (n_draws, n_obs), optional
        What every draw counts for a row, summing to one over the draws; None: all alike.
    prob : float
        Probability inside the intervals.

    Returns
    -------
    dict of str to ndarray
        Fields of :class:`PredictiveSummary`, but for the density.
    """
    n_draws = len(p)
    shares = np.full(p.shape[:2], 1 / n_draws) if weights is None else weights
    mean = np.einsum("sn,snc->nc", shares, p)
    variance = np.einsum("sn,snc->nc", shares, (p - mean) ** 2)
    unbiased = n_draws / (n_draws - 1) if n_draws > 1 else np.nan
    total = entropy(mean)
    aleatoric = np.einsum("sn,sn->n", shares, entropy(p))
    lower, upper = np.quantile(
        p,
        ((1 - prob) / 2, (1 + prob) / 2),
        axis=0,
        weights=None if weights is None else np.broadcast_to(weights[..., None], p.shape),
        method="linear" if weights is None else "inverted_cdf",  # the one that takes weights
    )
    return {
        "mean": mean,
        "sd": np.sqrt(unbiased * variance),
        "lower": lower,
        "upper": upper,
        "total": total,
        "aleatoric": np.minimum(aleatoric, total),
    }
