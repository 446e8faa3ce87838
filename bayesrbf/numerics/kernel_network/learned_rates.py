r"""Rates of a kernel that are learned from the labels, column by column.

The rates of one table are partly chance. So the mode is found, by L-BFGS from the fixed rates, on
several sub-samples of the labelled rows, and the logarithms of the rates are averaged. On eight
tables two sub-samples were worse by .004 nats of held-out log loss, and eight no better.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import minimize

from bayesrbf.numerics.kernel_network.expected_distances import expected_distances
from bayesrbf.numerics.kernel_network.product_kernels import CellMoments, ProductKernel
from bayesrbf.numerics.kernel_network.rate_log_posterior import RateLogPosterior
from bayesrbf.records.kernel_rates import RateCriterion, RateRows

SUBSAMPLES: Final = 4
SHARE, FEWEST_ROWS, MOST_ROWS = 0.75, 20, 300
"""Part of the labelled rows that a sub-sample has, and the bounds of their number."""
MOST_DISTANCES: Final = 2**24
"""Columns times pairs of rows of a sub-sample: 128 MiB."""
STEPS, SLOPE = 50, 0.1
"""The search ends where no slope is larger, in nats per unit of a log rate, or after the steps."""
LOG_FACTOR, LOG_NOISE = (-6.0, 6.0), (-6.0, 3.0)
"""Bounds of the search."""


def learn_rates(
    kernel: ProductKernel,
    cells: CellMoments,
    labels: Int[np.ndarray, " row"],
    weights: Float[np.ndarray, " row"],
    shares: Float[np.ndarray, " label"],
    criterion: RateCriterion,
    seed: int,
) -> ProductKernel:
    """The kernel at learned rates; its own are where the search starts.

    ``shares`` are those of the classes among the labelled rows. Of one class nothing is learned.
    """
    if shares.size < 2:
        return kernel
    labelled, found = np.flatnonzero(labels >= 0), []
    for draw in range(SUBSAMPLES):
        rng = np.random.default_rng([seed, draw])
        size = _sample_size(labelled.size, kernel.rates.size)
        rows = np.sort(rng.choice(labelled, size, replace=False))
        distances = expected_distances(cells.take(rows), kernel.levels, kernel.name)
        sample = RateRows(distances, labels[rows], weights[rows], shares)
        found.append(_climb(RateLogPosterior(sample, kernel.rates, criterion)))
    return kernel.with_rates(kernel.rates * np.exp(np.mean(found, axis=0)))


def _sample_size(n_labelled: int, n_columns: int) -> int:
    """Rows of a sub-sample."""
    wanted = max(int(SHARE * n_labelled), FEWEST_ROWS)
    fitting = int(np.sqrt(2 * MOST_DISTANCES / max(n_columns, 1)))
    return min(wanted, MOST_ROWS, max(fitting, FEWEST_ROWS), n_labelled)


def _climb(log_posterior: RateLogPosterior) -> Float[np.ndarray, " column"]:
    """Logarithms of the rates over the fixed ones, at the mode."""
    start = np.array([prior.mean for prior in log_posterior.priors])

    def falling(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = log_posterior.value_and_gradient(theta)
        return -value, -gradient

    bounds = [*[LOG_FACTOR] * (start.size - 2), LOG_NOISE, LOG_FACTOR]
    theta = minimize(
        falling,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": STEPS, "gtol": SLOPE, "ftol": 0.0},
    ).x
    return log_posterior.log_factors(theta)
