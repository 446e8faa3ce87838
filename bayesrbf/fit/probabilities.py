"""Summaries of class probabilities over draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float
from scipy.special import expit, xlogy

from bayesrbf.base.arrays import MIN_DISPUTED_PROBABILITY, log_odds, reduced

# Uncertainty of a classifier about every row, as a labelled dataset.


ROUNDING_OF_ENTROPY: Final = 1e-13  # Entropies in nats below this are rounding: they are not split.
MIN_DISTANCE_TO_CERTAINTY = (
    1e-15  # Probabilities are clipped this far from 0 and 1 before log odds.
)


@dataclass(frozen=True)
class PredictiveSummary:
    r"""Class probabilities of every row, summarised over the draws.

    Where the fitted point is reported, draws are shifted in log odds, class by class, to a median
    at the point, or beyond it by the median correction, so that the point is about their mean; and
    mixed with label noise. Where the mean of the draws is reported, they are unchanged. Spread,
    interval and entropies are of these draws :math:`p_s`. The entropy of the reported probability
    :math:`p` is the total uncertainty. Its aleatoric share is the mean entropy of the draws over
    the entropy of their mean,

    .. math:: H_\text{aleatoric} = H[p] \, \frac{\overline{H[p_s]}}{H[\bar p]}, \quad
        H_\text{epistemic} = H[p] - H_\text{aleatoric}
        = H[p] \, \frac{I(c; \theta)}{H[\bar p]}, \quad
        I(c; \theta) = H[\bar p] - \overline{H[p_s]}.

    Entropy is concave, so both are between 0 and the total. Where the mean is reported, the
    epistemic entropy is the information :math:`I` of the draws on the class itself.
    """

    mean: Float[np.ndarray, "obs label"]
    """Reported class probability; it lies within the interval."""
    sd: Float[np.ndarray, "obs label"]  # Standard deviation of the draws around it.
    lower: Float[np.ndarray, "obs label"]  # Lower end of the equal-tailed interval of the draws.
    upper: Float[np.ndarray, "obs label"]  # Upper end of that interval.
    total: Float[np.ndarray, " obs"]  # Entropy of ``mean``, in nats.
    aleatoric: Float[np.ndarray, " obs"]  # Entropy if the draw were known, in nats.
    log_density: Float[np.ndarray, " obs"]
    """Log of the posterior mean density of the observed cells."""
    prob: float  # Probability inside the interval.

    @property
    def epistemic(self) -> Float[np.ndarray, " obs"]:
        """Epistemic entropy: total less aleatoric, in nats."""
        return self.total - self.aleatoric


def entropy(probabilities: Float[np.ndarray, "*rows label"]) -> Float[np.ndarray, "*rows"]:
    r"""Entropy :math:`-\sum_c p_c \log p_c` in nats.

    >>> entropy(np.array([[0.5, 0.5], [1.0, 0.0]])).round(4)
    array([0.6931, 0.    ])
    """
    return np.abs(reduced(np.add, xlogy(probabilities, probabilities), axis=-1))


def label_information(
    p: Float[np.ndarray, "draw obs label"], shares: Float[np.ndarray, "draw obs"]
) -> Float[np.ndarray, " obs"]:
    """Mutual information of a row's label and the draw, ``H[mean p] - mean H[p]``, in nats.

    >>> p = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])
    >>> label_information(p, np.full((2, 2), 0.5)).round(4)
    array([0.6931, 0.    ])
    """
    mean = np.einsum("sn,snc->nc", shares, p)
    return entropy(mean) - np.einsum("sn,sn->n", shares, entropy(p))


def summarised(
    p: Float[np.ndarray, "draw obs label"],
    weights: Float[np.ndarray, "draw obs"] | None,
    prob: float,
    reported: Float[np.ndarray, "obs label"] | None = None,
) -> dict[str, np.ndarray]:
    """Fields of :class:`PredictiveSummary` but ``log_density`` and ``prob``, from the draws.

    The weights of the draws sum to one for every row; None: equal weights. ``reported`` are class
    probabilities, by default the mean of the draws; the field ``mean`` has them, and intervals
    include them.
    """
    n_draws = len(p)
    shares = np.full(p.shape[:2], 1 / n_draws) if weights is None else weights
    mean = np.einsum("sn,snc->nc", shares, p)
    reported = mean if reported is None else reported
    lower, upper = _quantiles(p, weights, ((1 - prob) / 2, (1 + prob) / 2))
    unbiased = n_draws / (n_draws - 1) if n_draws > 1 else np.nan
    variance = unbiased * np.einsum("sn,snc->nc", shares, (p - mean) ** 2)
    total = entropy(reported)
    return {
        "mean": reported,
        "sd": np.sqrt(variance),
        # A median lies between them but for rounding; a mean may not where draws are skewed.
        "lower": np.minimum(lower, reported),
        "upper": np.maximum(upper, reported),
        "total": total,
        "aleatoric": total * shared_entropy(p / p.sum(axis=2, keepdims=True), shares),
    }


def shared_entropy(
    p: Float[np.ndarray, "draw obs label"], shares: Float[np.ndarray, "draw obs"]
) -> Float[np.ndarray, " obs"]:
    """Mean entropy of the draws over the entropy of their mean; 1 where the latter is 0.

    >>> p = np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]])
    >>> shared_entropy(p, np.full((2, 2), 0.5)).round(4)
    array([0.6163, 1.    ])
    """
    of_mean = entropy(np.einsum("sn,snc->nc", shares, p))
    of_draws = np.einsum("sn,sn->n", shares, entropy(p))
    share = np.divide(
        of_draws, of_mean, out=np.ones_like(of_mean), where=of_mean > ROUNDING_OF_ENTROPY
    )
    return np.minimum(share, 1)  # The entropy is concave: more is rounding.


def centred_draws(
    p: Float[np.ndarray, "draw obs label"],
    weights: Float[np.ndarray, "draw obs"] | None,
    reported: Float[np.ndarray, "obs label"],
    median_correction: Float[np.ndarray, "obs label"] | None = None,
    label_noise: Float[np.ndarray, " draw"] | None = None,
) -> Float[np.ndarray, "draw obs label"]:
    """Draws of class probabilities, shifted in log odds so that their median is the centre.

    The centre has the log odds of ``reported`` times the median correction: rule 6 of the intervals
    of a stack. Under label noise, the share ``label_noise`` of every draw is then uniform over the
    classes. Each class is shifted alone: a draw need not sum to one over the classes.
    """
    shifted = log_odds(p, MIN_DISTANCE_TO_CERTAINTY)
    centre = log_odds(reported, MIN_DISTANCE_TO_CERTAINTY)
    if median_correction is not None:
        centre = centre * median_correction
    shifted += centre - _quantiles(shifted, weights, 0.5)
    p = expit(shifted)
    return p if label_noise is None else p + label_noise[:, None, None] * (1 / p.shape[-1] - p)


def outer_ends(
    lower: Float[np.ndarray, "obs label"], upper: Float[np.ndarray, "obs label"]
) -> dict[str, np.ndarray]:
    """Ends of intervals; 0 or 1 where they are nearer to it than the least disputed probability.

    Rule 8 of the intervals of a stack.

    >>> outer_ends(np.array([[1e-7, 0.2]]), np.array([[2e-5, 0.99999]]))
    {'lower': array([[0. , 0.2]]), 'upper': array([[2.e-05, 1.e+00]])}
    """
    least = MIN_DISPUTED_PROBABILITY
    return {
        "lower": np.where(lower < least, 0.0, lower),
        "upper": np.where(upper > 1 - least, 1.0, upper),
    }


def _quantiles(
    values: Float[np.ndarray, "draw obs label"],
    weights: Float[np.ndarray, "draw obs"] | None,
    q: float | tuple[float, float],
) -> np.ndarray:
    """Quantiles over the draws."""
    if weights is None:
        return np.quantile(values, q, axis=0)
    counted = np.broadcast_to(weights[..., None], values.shape)
    # The only method of NumPy's that takes weights.
    return np.quantile(values, q, axis=0, weights=counted, method="inverted_cdf")
