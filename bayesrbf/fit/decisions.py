r"""Decisions of least expected cost, and their cost on labelled rows.

With C the costs, of class c (row) under decision d (column), the expected cost of d is
:math:`\sum_c p(c | x) \, C_{cd}`, and the decision is the d where it is least.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

ROUNDING_OF_COSTS = 1e-12  # Decisions whose costs differ by less than this share are equally good.


def mistakes(costs: Float[np.ndarray, "*many label"]) -> Float[np.ndarray, "*many label label"]:
    """Costs of answers where a mistaken row of a class has one cost, whatever the answer.

    >>> mistakes(np.array([1.0, 5.0]))
    array([[0., 1.],
           [5., 0.]])
    """
    return costs[..., :, None] * (1 - np.eye(costs.shape[-1]))


def expected_costs(
    probabilities: Float[np.ndarray, "*rows label"], costs: Float[np.ndarray, "label decision"]
) -> Float[np.ndarray, "*rows decision"]:
    """Expected cost of every decision in every row."""
    return probabilities @ costs


def is_best(
    expected: Float[np.ndarray, "*draws obs decision"], decisions: Int[np.ndarray, " obs"]
) -> Float[np.ndarray, "*draws obs"]:
    """1 where the decision of a row is as good as any other, else 0.

    >>> is_best(np.array([[[1.0, 2.0], [1.0, 2.0]], [[3.0, 2.0], [2.0, 2.0]]]), np.array([0, 1]))
    array([[1., 0.],
           [0., 1.]])
    """
    cost = np.take_along_axis(
        expected, np.broadcast_to(decisions[:, None], (*expected.shape[:-1], 1)), axis=-1
    )[..., 0]
    least = expected.min(axis=-1)
    return (cost <= least + ROUNDING_OF_COSTS * np.abs(expected).max(axis=-1)).astype(np.float64)


def paid(
    probabilities: Float[np.ndarray, "obs label"],
    labels: Int[np.ndarray, " obs"],
    costs: Float[np.ndarray, "label decision"],
) -> Float[np.ndarray, " obs"]:
    """Cost of each row whose class is known, where the decision has the least expected cost.

    >>> p = np.array([[0.7, 0.3], [0.9, 0.1]])
    >>> paid(p, np.array([0, 0]), mistakes(np.array([1.0, 5.0])))
    array([1., 0.])
    """
    return costs[labels, expected_costs(probabilities, costs).argmin(axis=1)]


def best_measurement(
    gain: Float[np.ndarray, "obs column"], price: Float[np.ndarray, "obs column"], per_price: bool
) -> np.ndarray:
    """Column position of the cell to measure next in every row; -1 where none is worth it.

    The cell has the largest ``gain / price`` if ``per_price``, else the largest ``gain - price``.
    Gain and price have the same unit in the second case. A cell is worth it if the gain and that
    ratio or difference are positive. A cell of gain NaN is not chosen. If no price is positive,
    ``per_price`` takes the cell of the largest gain.

    >>> gain, price = np.array([[0.2, 0.3], [-0.1, np.nan]]), np.array([[1.0, 2.0], [0.0, np.nan]])
    >>> best_measurement(gain, price, per_price=True)
    array([ 0, -1])
    """
    worth = gain > 0
    if per_price and np.nansum(price) > 0:
        # A free cell with any gain comes before all others: its gain per price is infinite.
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.where(worth, gain / price, -np.inf)
    else:
        score = np.where(worth, gain - (0.0 if per_price else price), -np.inf)
    best = score.argmax(axis=1)
    return np.where(score.max(axis=1) > 0, best, -1)
