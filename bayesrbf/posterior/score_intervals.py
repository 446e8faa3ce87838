"""Intervals of scores over rows that were drawn one by one."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from scipy.stats import norm, t

Interval = tuple[float, float]


def mean_interval(values: Float[np.ndarray, " obs"], prob: float) -> Interval:
    """Interval of a mean by Student's t: ``m -+ t s / sqrt(N)``; NaN for a single value.

    >>> low, high = mean_interval(np.array([1.0, 2.0, 3.0]), 0.9)
    >>> round(low, 2), round(high, 2)
    (0.31, 3.69)
    """
    if values.size < 2:
        return float("nan"), float("nan")
    half = t.ppf(0.5 + prob / 2, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
    return float(values.mean() - half), float(values.mean() + half)


def share_interval(hits: int | float, of: int, prob: float) -> Interval:
    """Wilson's interval of a share, which is not empty where all rows, or none, are hits.

    See Wilson (1927), Probable inference, the law of succession, and statistical inference,
    Journal of the American Statistical Association 22, 209-212.

    >>> low, high = share_interval(10, 10, 0.9)
    >>> round(low, 2), high
    (0.79, 1.0)
    """
    z = norm.ppf(0.5 + prob / 2)
    share = hits / of
    middle = (share + z**2 / (2 * of)) / (1 + z**2 / of)
    half = z / (1 + z**2 / of) * np.sqrt(share * (1 - share) / of + z**2 / (4 * of**2))
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))
