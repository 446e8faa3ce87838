"""What the draws say about every row, summed up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import expit, logit, xlogy

from bayesrbf.numerics.log_sums import reduced

LEAST = 1e-15
"""Probabilities are held this far from 0 and 1 before their log odds are taken."""


@dataclass(frozen=True)
class PredictiveSummary:
    r"""What the draws say about every row.

    Where the fitted point is given out, draws are moved in log odds, class by class, so that
    it is their median; where their mean is, they stay. The entropy of what is given out is
    what one does not know in all. What more data would tell is the information that the
    draws have on the class,

    .. math:: I(c; \theta) = H[\bar p] - \overline{H[p_s]}.

    Attributes
    ----------
    mean, sd, lower, upper : ndarray of shape (n_obs, n_classes)
        The class probability that is given out; standard deviation and equal-tailed
        interval of the draws around it. It lies within the interval.
    total, aleatoric : ndarray of shape (n_obs,)
        Entropy of that probability, and what more data would leave of it, in nats.
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
    return np.abs(reduced(np.add, xlogy(probabilities, probabilities), axis=-1))


def summarised(
    p: Float[np.ndarray, "draw obs label"],
    weights: Float[np.ndarray, "draw obs"] | None,
    prob: float,
    delivered: Float[np.ndarray, "obs label"] | None = None,
    centred: bool = True,
) -> dict[str, np.ndarray]:
    """Spread, interval and entropies of class probabilities over draws.

    Parameters
    ----------
    p : ndarray of shape (n_draws, n_obs, n_classes)
        Class probabilities under every draw.
    weights : ndarray of shape (n_draws, n_obs), optional
        What every draw counts for a row, summing to one over the draws; None: all alike.
    prob : float
        Probability inside the intervals.
    delivered : ndarray of shape (n_obs, n_classes), optional
        The probabilities that are given out; None: the mean of the draws.
    centred : bool
        Whether draws are moved to have these as their median.

    Returns
    -------
    dict of str to ndarray
        Fields of :class:`PredictiveSummary`, but for the density.
    """
    n_draws = len(p)
    shares = np.full(p.shape[:2], 1 / n_draws) if weights is None else weights
    mean = np.einsum("sn,snc->nc", shares, p)
    information = entropy(mean) - np.einsum("sn,sn->n", shares, entropy(p))
    moved = p
    if delivered is None:
        delivered = mean
    elif centred:
        moved = log_odds(p)
        moved += log_odds(delivered) - _quantiles(moved, weights, 0.5)
        moved = expit(moved)
    total = entropy(delivered)
    lower, upper = _quantiles(moved, weights, ((1 - prob) / 2, (1 + prob) / 2))
    away = moved - np.einsum("sn,snc->nc", shares, moved)
    unbiased = n_draws / (n_draws - 1) if n_draws > 1 else np.nan
    return {
        "mean": delivered,
        "sd": np.sqrt(unbiased * np.einsum("sn,snc->nc", shares, away**2)),
        # A median lies between them but for rounding; a mean may not where draws are skewed.
        "lower": np.minimum(lower, delivered),
        "upper": np.maximum(upper, delivered),
        "total": total,
        "aleatoric": np.clip(total - information, 0, total),
    }


def log_odds(p: Float[np.ndarray, "*rows label"]) -> Float[np.ndarray, "*rows label"]:
    """Log odds of every class against all others."""
    odds: np.ndarray = logit(np.clip(p, LEAST, 1 - LEAST))
    return odds


def _quantiles(
    values: Float[np.ndarray, "draw obs label"],
    weights: Float[np.ndarray, "draw obs"] | None,
    q: float | tuple[float, float],
) -> np.ndarray:
    """Quantiles over the draws."""
    if weights is None:
        return np.quantile(values, q, axis=0)
    counted = np.broadcast_to(weights[..., None], values.shape)
    return np.quantile(values, q, axis=0, weights=counted, method="inverted_cdf")
