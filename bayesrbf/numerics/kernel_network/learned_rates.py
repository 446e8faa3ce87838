r"""Rates of a kernel that are learned from the labels, column by column.

The rates of one table are partly chance. So the mode is found by L-BFGS on several sub-samples of
the labelled rows, the first search from the fixed rates and each other from the mode before, and
the logarithms of the rates are averaged. For one network on eight tables, two sub-samples were
worse by .004 nats of held-out log loss than four, and eight no better. A stack has two.

A rate multiplies the distance of two rows in its column, expected where a cell is missing. With
difference d of the means and sum :math:`s^2` of the variances of two real cells, and probability o
that two levels agree,

.. math::
   E|x - x'| = s \sqrt{2 / \pi}\, e^{-d^2 / (2 s^2)} + d\, \mathrm{erf}(d / (s \sqrt 2)), \quad
   \tfrac12 E (x - x')^2 = \tfrac12 (d^2 + s^2), \quad
   P(\text{other level}) = 1 - o.

Each distance is a negative definite function of two rows, so :math:`\exp(-\sum_j a_j D_j)`, with
ones on its diagonal, is a kernel for any rates :math:`a_j \ge 0` (Schoenberg 1938).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize
from scipy.special import erf

from bayesrbf.numerics.categories import split_levels
from bayesrbf.numerics.kernel_network.product_kernels import (
    CellMoments,
    KernelName,
    ProductKernel,
)
from bayesrbf.numerics.kernel_network.rate_log_posterior import RateLogPosterior
from bayesrbf.numerics.log_sums import class_shares
from bayesrbf.numerics.threads import on_one_blas_thread
from bayesrbf.records.kernel_rates import RateCriterion, RateRows
from bayesrbf.records.mixture import Observations

SHARE, FEWEST_SAMPLE_ROWS, MOST_SAMPLE_ROWS = 0.75, 20, 300
"""Part of the labelled rows that a sub-sample has, and the bounds of their number."""
MOST_DISTANCES: Final = 2**23
"""Columns times pairs of rows of a sub-sample: 64 MiB, which 300 rows of 187 columns take."""
SLOPE: Final = 0.1
"""The search ends where no slope is larger, in nats per unit of a log rate, or after its steps."""
LOG_FACTOR, LOG_NOISE = (-6.0, 6.0), (-6.0, 3.0)
"""Bounds of the search."""


@dataclass(frozen=True)
class RateSearch:
    """How much is spent on learning rates."""

    subsamples: int = 4
    steps: int = 50
    """Most iterations of the search on each sub-sample."""


@on_one_blas_thread
def learn_rates(
    judges: Iterable[RateLogPosterior],
    steps: int,
    start: Float[np.ndarray, " coordinate"] | None = None,
) -> Float[np.ndarray, " coordinate"]:
    """Mean of the modes of the sub-samples; each search starts where the one before ended.

    The first starts at ``start``, or at the fixed rates.
    """
    modes: list[np.ndarray] = []
    for judge in judges:
        modes.append(_climb(judge, steps, modes[-1] if modes else start))
    mean: np.ndarray = np.mean(modes, axis=0)
    return mean


def rate_log_posteriors(
    kernel: ProductKernel,
    cells: CellMoments,
    rows: Observations,
    n_classes: int,
    criterion: RateCriterion,
    seed: int,
    search: RateSearch,
) -> Iterator[RateLogPosterior]:
    """Log posteriors of the rates given each sub-sample; those of the kernel are the fixed ones.

    ``cells`` are the rows as the kernel sees them, of two or more classes.
    """
    shares = class_shares(rows.labels, rows.weights, n_classes)
    left_out = rows.weights / np.maximum(rows.unit_counts, 1.0)
    for draw in range(search.subsamples):
        # Seeded by its number, a sub-sample is the same however many there are.
        rng = np.random.default_rng([seed, draw])
        labelled = _one_of_each_unit(rows, rng)
        size = _sample_size(labelled.size, kernel.rates.size)
        chosen = np.sort(rng.choice(labelled, size, replace=False))
        distances = expected_distances(cells.take(chosen), kernel.levels, kernel.name)
        labels, weights = rows.labels[chosen], rows.weights[chosen]
        sample = RateRows(distances, labels, weights, left_out[chosen], shares)
        yield RateLogPosterior(sample, kernel.rates, criterion)


def _one_of_each_unit(rows: Observations, rng: np.random.Generator) -> Int[np.ndarray, " row"]:
    """Labelled rows, one at random of a unit that has several: none is predicted by its own."""
    labelled = np.flatnonzero(rows.labels >= 0)
    if rows.units is None or not rows.units.split.any():
        return labelled
    shuffled = rng.permutation(labelled)
    return shuffled[np.unique(rows.units.numbers[shuffled], return_index=True)[1]]


def expected_distances(
    cells: CellMoments, levels: tuple[int, ...], name: KernelName
) -> Float[np.ndarray, "column pair"]:
    """Distances of all pairs of rows, reals then categorical columns, in the order of pdist."""
    i, j = np.triu_indices(cells.n_rows, 1)
    means, variances = (np.ascontiguousarray(one.T) for one in (cells.mean, cells.variance))
    gap = np.abs(means.take(i, 1) - means.take(j, 1))
    if variances.any():
        variance = variances.take(i, 1) + variances.take(j, 1)
        reals = _absolute(gap, variance) if name == "laplace" else 0.5 * (gap**2 + variance)
    else:
        reals = gap if name == "laplace" else 0.5 * gap**2
    parts = split_levels(cells.probabilities, levels)
    agree = [one[:, i, j] for one in ((part @ part.T)[None] for part in parts)]
    return np.concatenate([reals, *(1 - one for one in agree)])


def _absolute(
    gap: Float[np.ndarray, "feature pair"], variance: Float[np.ndarray, "feature pair"]
) -> Float[np.ndarray, "feature pair"]:
    """Mean of the absolute value of normal differences; the gap itself where both are known."""
    result, holes = gap.copy(), variance > 0
    d, s = gap[holes], np.sqrt(variance[holes])
    z = d / (s * math.sqrt(2))
    result[holes] = s * math.sqrt(2 / math.pi) * np.exp(-(z**2)) + d * erf(z)
    return result


def _sample_size(n_labelled: int, n_columns: int) -> int:
    """Rows of a sub-sample."""
    wanted = max(int(SHARE * n_labelled), FEWEST_SAMPLE_ROWS)
    # n rows have some n² / 2 pairs.
    fitting = int(np.sqrt(2 * MOST_DISTANCES / max(n_columns, 1)))
    return min(wanted, MOST_SAMPLE_ROWS, max(fitting, FEWEST_SAMPLE_ROWS), n_labelled)


def _climb(
    log_posterior: RateLogPosterior, steps: int, start: Float[np.ndarray, " coordinate"] | None
) -> Float[np.ndarray, " coordinate"]:
    """The mode, or where the steps end."""
    if start is None:
        start = np.array([prior.mean for prior in log_posterior.priors])

    def falling(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = log_posterior.value_and_gradient(theta)
        return -value, -gradient

    bounds = [*[LOG_FACTOR] * (start.size - 2), LOG_NOISE, LOG_FACTOR]
    theta: np.ndarray = minimize(
        falling,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": steps, "gtol": SLOPE, "ftol": 0.0},
    ).x
    return theta
