r"""Means and diagonal or spherical precisions of a declared mixture: prior and gradient.

Roots of the precisions are :math:`e^{\theta / 2} / s_i`, one :math:`\theta` for all columns where
they are spherical.
"""

from __future__ import annotations

import math

import numpy as np

from bayesrbf.numerics.kernels.compilation import kernel
from bayesrbf.numerics.kernels.declared_full import HALF_LOG_2PI, Point, Reals, write_means
from bayesrbf.numerics.kernels.driver import Results
from bayesrbf.numerics.kernels.gaussian_diagonal import DiagonalGaussians


@kernel
def _write_roots(theta: np.ndarray, reals: Reals, factors: np.ndarray) -> float:
    """Write the roots of the precisions; log prior of what is behind them."""
    groups, d = factors.shape
    value = 0.0
    for g in range(groups):
        for i in range(d):
            place = reals.diagonal + (g if reals.spherical else g * d + i)
            factors[g, i] = math.exp(0.5 * theta[place]) / reals.base[g, i]
            if i == 0 or not reals.spherical:
                value += reals.powers[g] * theta[place] - reals.rate * math.exp(theta[place])
    return value


@kernel
def diagonal_point(
    theta: np.ndarray,
    reals: Reals,
    point: Point,
    diagonal: DiagonalGaussians,
    constants: np.ndarray,
) -> float:
    """Write means and roots, add normalisers to ``constants``; log prior of the point."""
    write_means(theta, reals, diagonal.means)
    value = _write_roots(theta, reals, point.factors)
    kappa = reals.mean_precision
    for k in range(len(constants)):
        for i in range(diagonal.means.shape[1]):
            root = point.factors[reals.group[k], i]
            value -= 0.5 * kappa * (root * diagonal.means[k, i]) ** 2
            diagonal.scales[k, i] = root * math.sqrt(0.5)
            diagonal.constants[k, i] = math.log(root) - HALF_LOG_2PI
            constants[k] += diagonal.constants[k, i]
    return value


@kernel
def diagonal_slopes(
    theta: np.ndarray, reals: Reals, point: Point, sums: Results, slope: np.ndarray
) -> None:
    """Write the slopes of means and precisions under the statistics of the rows."""
    means, factors = point.means, point.factors
    (k, d), kappa = means.shape, reals.mean_precision
    counts, scatter = np.zeros(len(factors)), np.zeros_like(factors)
    for c in range(k):
        g = reals.group[c]
        counts[g] += sums.counts[c]
        for i in range(d):
            force = sums.first[c, i] - kappa * means[c, i]
            slope[reals.means + c * d + i] = force * factors[g, i] ** 2 / reals.scale[i]
            scatter[g, i] += sums.second[c, i] + kappa * means[c, i] ** 2
    for g in range(len(factors)):
        for i in range(d):
            place = reals.diagonal + (g if reals.spherical else g * d + i)
            if i == 0 or not reals.spherical:
                free = reals.rate * (counts[g] - math.exp(theta[place]))
                slope[place] = free + reals.powers[g]
            slope[place] -= 0.5 * scatter[g, i] * factors[g, i] ** 2
