r"""Gaussian components with diagonal or spherical covariances, with or without missing cells.

With s the square roots of the precisions and O the observed cells of a row,

.. math:: \log N(x_o; \mu, s) = \sum_{i \in O}
        \bigl[ c_i - \tfrac12 s_i^2 (x_i - \mu_i)^2 \bigr] ,
        \qquad c_i = \log s_i - \tfrac12 \log 2\pi .

The caller adds the sum of all :math:`c_i`; the kernel subtracts those of missing cells, which are
NaN. A missing cell adds nothing to the first moments and its variance :math:`s_i^{-2}` to the
second. Scales come as :math:`s / \sqrt 2`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesrbf.numerics.kernels.compilation import inlined, kernel


class DiagonalGaussians(NamedTuple):
    """Parameters of all components with diagonal covariances."""

    means: np.ndarray  # (component, feature)
    scales: np.ndarray  # (component, feature): s / sqrt(2)
    constants: np.ndarray  # (component, feature): log s - log(2 pi) / 2


@inlined
def add_log_density(
    cells: np.ndarray,
    gaussians: DiagonalGaussians,
    components: tuple[int, int],
    log_joint: np.ndarray,
) -> None:
    """Subtract the cost of each cell of a tile from ``log_joint``, two features at a time."""
    n_features, n_rows = cells.shape
    means, scales, constants = gaussians.means, gaussians.scales, gaussians.constants
    for k in range(components[0], components[1]):
        for i in range(0, n_features - 1, 2):
            m0, s0, c0 = means[k, i], scales[k, i], constants[k, i]
            m1, s1, c1 = means[k, i + 1], scales[k, i + 1], constants[k, i + 1]
            for r in range(n_rows):
                cost = _cost(cells[i, r], m0, s0, c0) + _cost(cells[i + 1, r], m1, s1, c1)
                log_joint[k, r] -= cost
        if n_features % 2:
            i = n_features - 1
            m0, s0, c0 = means[k, i], scales[k, i], constants[k, i]
            for r in range(n_rows):
                log_joint[k, r] -= _cost(cells[i, r], m0, s0, c0)


@kernel
def _cost(cell: float, mean: float, scale: float, constant: float) -> float:
    """Half the squared distance of an observed cell, the constant of a missing one."""
    distance = (cell - mean) * scale
    return constant if np.isnan(cell) else distance * distance


@inlined
def add_moments(
    cells: np.ndarray,
    gaussians: DiagonalGaussians,
    components: tuple[int, int],
    responsibilities: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
) -> None:
    """Add a tile's centred first and second moments."""
    n_features, n_rows = cells.shape
    for k in range(components[0], components[1]):
        for i in range(n_features):
            mean, scale = gaussians.means[k, i], gaussians.scales[k, i]
            sum_first = sum_second = sum_missing = 0.0
            for r in range(n_rows):
                missing = np.isnan(cells[i, r])
                deviation = 0.0 if missing else cells[i, r] - mean
                weighted = responsibilities[k, r] * deviation
                sum_first += weighted
                sum_second += weighted * deviation
                sum_missing += responsibilities[k, r] if missing else 0.0
            first[k, i] += sum_first
            # The scale is s / sqrt(2): a missing cell adds its variance, 1 / s².
            second[k, i] += sum_second + 0.5 * sum_missing / (scale * scale)
