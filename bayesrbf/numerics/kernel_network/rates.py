r"""How fast the kernel of a network falls along each column.

.. math:: a_j = b_j f_j / \sum_i s_i f_i, \quad f_j = (1 - w) + w \sqrt{I_j / \max_i I_i}

with the column's spread :math:`s_j`, so that a typical pair of rows is one length apart
in all, and the *relevance* :math:`I_j \ge 0`: what the column alone tells about the
class, in nats, under one Gaussian (or one table of level probabilities) a class,

.. math:: I_j = \max\{0, \overline{\log p(x_j | y) - \log p(x_j)} - \mathrm{df}_j / n_j\}.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from jaxtyping import Bool, Float

from bayesrbf.numerics.categories import one_hot, split_levels
from bayesrbf.numerics.kernel_network.cells import CellMoments
from bayesrbf.numerics.kernel_network.gram import KernelName, ProductKernel
from bayesrbf.parameters import Observations

CATEGORY_STEP = 2.0
"""Rate b of a categorical column beside a real one's 1, in the Laplace kernel."""
LEAST_RATE = 1e-9
LEAST_VARIANCE = 0.01
MEAN_ROWS, VARIANCE_ROWS = 0.1, 2.0
"""Rows of prior behind a class's mean (0) and variance (1), columns standardised."""


def product_kernel(
    name: KernelName,
    cells: CellMoments,
    weights: Float[np.ndarray, " row"],
    levels: tuple[int, ...],
    factors: Float[np.ndarray, " column"],
) -> ProductKernel:
    """Fix the rates of a kernel on its training rows.

    Parameters
    ----------
    name : {"laplace", "gaussian"}
        Which kernel.
    cells : CellMoments
        Training rows.
    weights : ndarray of shape (n_rows,)
        Row weights, at least 0.
    levels : tuple of int
        Number of levels of every categorical column.
    factors : ndarray of shape (n_features + n_categorical,)
        Factors f of the real, then of the categorical columns.

    Returns
    -------
    ProductKernel
        The kernel.
    """
    shares = weights / weights.sum()
    centred = cells.mean - shares @ cells.mean
    mean = shares @ cells.probabilities
    steps = np.ones(factors.size)
    d = cells.mean.shape[1]
    if name == "laplace":
        steps[d:] = CATEGORY_STEP
        reals = shares @ np.abs(centred)
        mixed = [2 * min(0.5, 1 - part.max()) for (part,) in split_levels(mean[None], levels)]
    else:
        reals = shares @ centred**2
        spread = shares @ (cells.probabilities - mean) ** 2
        mixed = [part.sum() for (part,) in split_levels(spread[None], levels)]
    total = np.concatenate([reals, mixed]) @ factors
    rates = steps * factors / max(total, LEAST_RATE)
    return ProductKernel(name, np.maximum(rates[:d], LEAST_RATE), rates[d:], levels)


def relevance_factors(
    observations: Observations, levels: tuple[int, ...], n_classes: int, strength: float
) -> Float[np.ndarray, " column"]:
    """Factors f of all columns: 1 for the most telling one, ``1 - strength`` for silent ones.

    Parameters
    ----------
    observations : Observations
        Training rows in standard units; only labelled ones are used.
    levels : tuple of int
        Number of levels of every categorical column.
    n_classes : int
        Number of classes.
    strength : float
        Weight w of relevance, from 0 (all factors 1) to 1.

    Returns
    -------
    ndarray of shape (n_features + n_categorical,)
        Factors of the real, then of the categorical columns.
    """
    rows = observations.take(observations.labels >= 0)
    if strength == 0 or n_classes < 2:
        return np.ones(rows.real.shape[1] + len(levels))
    counts = np.bincount(rows.labels, rows.weights, minlength=n_classes)
    log_shares = np.log(counts / counts.sum())
    gains = np.concatenate(
        [_real_gains(rows, log_shares), _category_gains(rows, levels, log_shares)]
    )
    relevance = np.sqrt(gains / max(gains.max(initial=0.0), LEAST_RATE))
    return (1 - strength) + strength * relevance


def _real_gains(
    rows: Observations, log_shares: Float[np.ndarray, " label"]
) -> Float[np.ndarray, " feature"]:
    """What each real column tells about the class under one Gaussian a class."""
    known = ~np.isnan(rows.real)
    x = np.where(known, rows.real, 0.0)

    def log_density(label: int) -> np.ndarray:
        weights = np.where(rows.labels == label, rows.weights, 0.0)
        counts, sums = weights @ known, weights @ x
        mean = sums / (counts + MEAN_ROWS)
        scatter = weights @ x**2 - 2 * mean * sums + mean**2 * (counts + MEAN_ROWS)
        variance = np.maximum((scatter + VARIANCE_ROWS) / (counts + VARIANCE_ROWS), LEAST_VARIANCE)
        return -0.5 * (np.log(variance) + (x - mean) ** 2 / variance)

    freedom = np.ones(x.shape[1])
    return _gains(log_density, rows, known, log_shares, freedom)


def _category_gains(
    rows: Observations, levels: tuple[int, ...], log_shares: Float[np.ndarray, " label"]
) -> Float[np.ndarray, " categorical"]:
    """What each categorical column tells about the class under one table a class."""
    indicators = one_hot(rows.codes, levels)
    marginals = split_levels((rows.weights @ indicators + 0.5)[None], levels)

    def log_density(label: int) -> np.ndarray:
        own = (np.where(rows.labels == label, rows.weights, 0.0) @ indicators)[None]
        columns = [np.zeros((rows.n_obs, 0))]
        for j, (count, marginal) in enumerate(
            zip(split_levels(own, levels), marginals, strict=True)
        ):
            smooth = (count + marginal / marginal.sum())[0]
            columns.append(np.log(smooth / smooth.sum())[rows.codes[:, j], None])
        return np.concatenate(columns, axis=1)

    freedom = 0.5 * (np.array(levels, dtype=float) - 1)
    return _gains(log_density, rows, rows.codes >= 0, log_shares, freedom)


def _gains(
    log_density: Callable[[int], np.ndarray],
    rows: Observations,
    known: Bool[np.ndarray, "obs column"],
    log_shares: Float[np.ndarray, " label"],
    freedom: Float[np.ndarray, " column"],
) -> Float[np.ndarray, " column"]:
    """Mean gain of the true class over the marginal, less what chance gives."""
    true = np.zeros(known.shape)
    marginal = np.full(known.shape, -np.inf)
    for label, log_share in enumerate(log_shares):
        density = log_density(label)
        true = np.where((rows.labels == label)[:, None], density, true)
        marginal = np.logaddexp(marginal, log_share + density)
    weights = known * rows.weights[:, None]
    totals = weights.sum(axis=0)
    gain = (weights * (true - marginal)).sum(axis=0) / (totals + 1)
    return np.maximum(gain - freedom * (log_shares.size - 1) / np.maximum(totals, 1), 0.0)
