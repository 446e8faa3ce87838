"""Importance ratios of an approximation: their Pareto tail, smoothed weights, a resample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from arviz_stats.base.array import array_stats
from jaxtyping import Float, Int

SMALLEST: Final = 25  # Draws below which no five of them make a tail.
PARETO_K: Final = 0.7
"""Tail shape above which importance ratios represent nothing; Vehtari et al. (2024)."""
NEARLY_EQUAL: Final = 0.95
"""Share of the draws that importance weights are worth, above which they hardly differ."""
_EXACT: Final = 1e-6
"""Log ratios this close are equal but for rounding: their tail shape would be noise."""


def pareto_smooth(
    log_ratios: Float[np.ndarray, " draw"],
) -> tuple[Float[np.ndarray, " draw"], float]:
    r"""Normalised Pareto-smoothed importance weights and the shape k of their tail.

    The largest ratios :math:`p(\theta_s) / q(\theta_s)` of independent draws from q, known up to a
    constant, are replaced by quantiles of a generalised Pareto distribution fitted to them.
    Where k is above 0.7 the draws do not represent p. It is minus infinity when
    all ratios are equal, and NaN with fewer than 25 draws, which have no tail.

    See Vehtari, Simpson, Gelman, Yao, Gabry (2024), Pareto smoothed importance sampling, JMLR 25,
    section 2.

    >>> weights, pareto_k = pareto_smooth(np.zeros(100))
    >>> float(weights.sum().round(12))
    1.0
    """
    finite = np.isfinite(log_ratios)
    if not finite.any():
        raise ValueError(
            "Importance ratios must have a finite one among them; all "
            f"{log_ratios.size} were infinite or NaN: the approximation misses the posterior."
        )
    # exp(-1000) is zero: a draw without density gets no weight, and infinity no warning
    ratios = np.where(finite, log_ratios, log_ratios[finite].min() - 1000)
    pareto_k = np.nan
    if np.ptp(ratios) < _EXACT:
        pareto_k = -np.inf
    elif ratios.size >= SMALLEST:
        # arviz_stats takes log likelihoods, the negatives of leave-one-out ratios
        ratios, pareto_k = array_stats.psislw(-ratios)
    weights = np.exp(ratios - ratios.max())
    return weights / weights.sum(), float(pareto_k)


def covers(attributes: Mapping[str, float | int | str]) -> bool:
    """Whether draws with these attributes cover the posterior; those of a sampler do.

    An approximation does where its importance ratios have a light tail or hardly differ.
    """
    pareto_k = float(attributes.get("pareto_k", -np.inf))
    share = float(attributes.get("importance_share", 0.0))
    return pareto_k <= PARETO_K or (pareto_k > PARETO_K and share >= NEARLY_EQUAL)


def resample(
    weights: Float[np.ndarray, " draw"], rng: np.random.Generator
) -> Int[np.ndarray, " draw"]:
    """Indices of a systematic resample, in random order.

    Index ``s`` appears ``n_draws * weights[s]`` times, rounded up or down; weights sum to one.

    >>> sorted(resample(np.array([0.5, 0.5, 0.0, 0.0]), np.random.default_rng(0)).tolist())
    [0, 0, 1, 1]
    """
    n = weights.size
    positions = (np.arange(n) + rng.random()) / n
    indices = np.searchsorted(np.cumsum(weights), positions)
    return rng.permutation(np.minimum(indices, n - 1))
