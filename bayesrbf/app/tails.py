"""Tail probabilities of cells among others, with a Pareto tail beyond a quantile."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float

# Under the true density a surprise, ``-log_tail``, is exponential. Real columns have more far cells
# than normal components do. So the surprises s of a table say themselves how far its cells go:
# above their 90 % quantile u they have a generalised Pareto tail,
#
# .. math:: P(S > s) = 0.1 \, \big(1 + \xi \, (s - u) / \sigma\big)^{-1 / \xi},
#
# with a half-normal prior of scale 0.2 on :math:`\xi`, whose 99.9 % posterior quantile is taken
# with the likeliest :math:`\sigma`. Of the largest 2 % only the number counts, so that errors in up
# to one cell of a hundred do not make themselves look usual; with more, fewer of them stand out (an
# empirical null: Efron, 2004, Large-scale simultaneous hypothesis testing, JASA 99).


START: Final = 0.9
"""Quantile of the surprises above which the tail is learned."""
CENSORED: Final = 0.98
"""Quantile above which surprises are only counted."""
PRIOR_SCALE: Final = 0.2
"""Scale of the half-normal prior of the Pareto shape."""
UPPER: Final = 0.999
"""Posterior quantile of the shape in use: a cell stands out only beyond a heavy tail."""
POINTS: Final = 500
"""Most surprises at which the likelihood is summed; of more, as many quantiles."""
TAIL_SHAPES: Final = np.linspace(0.01, 2.0, 200)
SCALES: Final = np.exp(np.linspace(-2.0, 1.5, 71))
"""Over the mean excess."""


def tails_beside(
    reference: Float[np.ndarray, " other"], surprise: Float[np.ndarray, " cell"]
) -> Float[np.ndarray, " cell"]:
    """P(surprise >= s) for every cell: empirical below a quantile, Pareto above it.

    >>> usual = np.random.default_rng(0).exponential(size=5000)
    >>> tails_beside(usual, np.array([3.0, 60.0])) < [0.1, 1e-5]
    array([ True,  True])
    """
    if surprise.size == 0:
        return surprise.copy()
    ordered = np.sort(reference)
    at_least = ordered.size - np.searchsorted(ordered, surprise, side="left")
    # The cell itself counts as one of them, so that no tail is 0.
    result = (at_least + 1) / (ordered.size + 1)
    start, end = np.quantile(ordered, [START, CENSORED])
    excess = ordered[ordered > start] - start
    if excess.size == 0:
        return result
    shape, scale = _pareto(excess, float(end - start))
    far = surprise > start
    beyond = np.log1p(shape * (surprise[far] - start) / scale) / shape
    result[far] = excess.size / ordered.size * np.exp(-beyond)
    return result


def _pareto(excess: Float[np.ndarray, " cell"], end: float) -> tuple[float, float]:
    """Upper posterior quantile of the Pareto shape, and its best scale; censored at ``end``."""
    inside = excess[excess <= end]
    beyond, n = excess.size - inside.size, inside.size
    if n > POINTS:
        inside = np.quantile(inside, (np.arange(POINTS) + 0.5) / POINTS)
    # Each quantile stands for so many surprises, so that the prior weighs what it should.
    weight = n / max(inside.size, 1)
    scales = SCALES * (inside.mean() if n else 1.0)
    log_posterior = np.array(
        [
            -n * np.log(scales)
            - (1 + 1 / shape) * np.log1p(shape * inside[:, None] / scales).sum(0) * weight
            - beyond / shape * np.log1p(shape * end / scales)
            - 0.5 * (shape / PRIOR_SCALE) ** 2
            for shape in TAIL_SHAPES
        ]
    )
    # Summed over the scales: the posterior of the shape alone.
    share = np.exp(log_posterior - log_posterior.max()).sum(axis=1).cumsum()
    at = int(np.searchsorted(share, UPPER * share[-1]))
    return float(TAIL_SHAPES[at]), float(scales[log_posterior[at].argmax()])
