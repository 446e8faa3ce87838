r"""Means and precisions of a declared mixture: their prior and the gradient.

Full precisions have factors :math:`L_{ii} = e^{\theta / 2} / s_i` and
:math:`L_{ij} = \theta / s_i`; with n rows and G means under a factor, S their scatter and M that
of the means, :math:`\partial / \partial L = (n + G) L^{-T} - (S + \kappa_0 M) L`. Diagonal ones
have roots :math:`e^{\theta / 2} / s_i`, with one :math:`\theta` for all columns where they are
spherical.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from bayesrbf.numerics.kernels.compilation import kernel
from bayesrbf.numerics.kernels.driver import Results
from bayesrbf.numerics.kernels.gaussian_complete import FullGaussians
from bayesrbf.numerics.kernels.gaussian_diagonal import DiagonalGaussians

HALF_LOG_2PI: Final = 0.5 * math.log(2 * math.pi)


class Reals(NamedTuple):
    """Places and prior of means and precisions."""

    means: int  # first coordinate of the means
    diagonal: int  # first coordinate of log precision_diagonal
    lower: int  # first coordinate of precision_lower
    location: np.ndarray  # (feature,): of the columns, in the user's units
    scale: np.ndarray  # (feature,)
    mean_precision: float  # kappa0; the prior mean is 0 in standard units
    group: np.ndarray  # (component,): which precision
    base: np.ndarray  # (group, feature): inverse diagonal of L0, in standard units
    rate: float  # of the gamma
    powers: np.ndarray  # (group,): of every d
    spherical: bool


class Point(NamedTuple):
    """Means and precisions at one point, in standard units."""

    means: np.ndarray  # (component, feature)
    factors: np.ndarray  # (group, feature, feature): L; or (group, feature): roots of precisions


@kernel
def write_means(theta: np.ndarray, reals: Reals, means: np.ndarray) -> None:
    """Write the means in standard units."""
    k, d = means.shape
    for c in range(k):
        for i in range(d):
            distance = theta[reals.means + c * d + i] - reals.location[i]
            means[c, i] = distance / reals.scale[i]


@kernel
def _write_factors(theta: np.ndarray, reals: Reals, factors: np.ndarray) -> float:
    """Write the precision factors L; log prior of their entries."""
    groups, d = factors.shape[:2]
    value, lower = 0.0, reals.lower
    for g in range(groups):
        for i in range(d):
            log_d = theta[reals.diagonal + g * d + i]
            value += reals.powers[g] * log_d - reals.rate * math.exp(log_d)
            for j in range(i):
                value -= 0.5 * theta[lower] ** 2
                factors[g, i, j] = theta[lower] / reals.base[g, i]
                factors[g, j, i] = 0.0
                lower += 1
            factors[g, i, i] = math.exp(0.5 * log_d) / reals.base[g, i]
    return value


@kernel
def _log_prior_of_means(reals: Reals, point: Point) -> float:
    """Minus half of kappa0 |L' mu|^2 over all components."""
    k, d = point.means.shape
    total = 0.0
    for c in range(k):
        g = reals.group[c]
        for j in range(d):
            whitened = 0.0
            for i in range(j, d):
                whitened += point.factors[g, i, j] * point.means[c, i]
            total += whitened**2
    return -0.5 * reals.mean_precision * total


@kernel
def full_point(
    theta: np.ndarray, reals: Reals, point: Point, full: FullGaussians, constants: np.ndarray
) -> float:
    """Write means and factors, add normalisers to ``constants``; log prior of the point."""
    write_means(theta, reals, full.means)
    value = _write_factors(theta, reals, point.factors)
    for g in range(len(point.factors)):
        for i in range(point.factors.shape[1]):
            for j in range(point.factors.shape[1]):
                full.factors[g, i, j] = point.factors[g, i, j] * math.sqrt(0.5)
    for k in range(len(constants)):
        for i in range(full.means.shape[1]):
            constants[k] += math.log(point.factors[reals.group[k], i, i]) - HALF_LOG_2PI
    return value + _log_prior_of_means(reals, point)


@kernel
def write_precisions(factors: np.ndarray, precisions: np.ndarray) -> None:
    """Write P = L L'."""
    for g in range(len(factors)):
        for i in range(factors.shape[1]):
            for j in range(i + 1):
                total = 0.0
                for m in range(j + 1):
                    total += factors[g, i, m] * factors[g, j, m]
                precisions[g, i, j] = precisions[g, j, i] = total


@kernel
def full_gradient(
    theta: np.ndarray, reals: Reals, point: Point, sums: Results, gradient: np.ndarray
) -> None:
    """Write the gradient in means and precisions under the statistics of the rows."""
    means, kappa = point.means, reals.mean_precision
    k, d = means.shape
    counts, scatter = np.zeros(len(point.factors)), np.zeros_like(point.factors)
    for c in range(k):
        g = reals.group[c]
        counts[g] += sums.counts[c]
        for i in range(d):
            for j in range(d):
                scatter[g, i, j] += sums.second[c, i, j] + kappa * means[c, i] * means[c, j]
    _mean_gradient(reals, point, sums.first, gradient)
    _factor_gradient(theta, reals, point.factors, counts, scatter, gradient)


@kernel
def _mean_gradient(reals: Reals, point: Point, first: np.ndarray, gradient: np.ndarray) -> None:
    """Write L L' (sum r (x - mu) - kappa0 mu), in the user's units."""
    means, factors, kappa = point.means, point.factors, reals.mean_precision
    k, d = means.shape
    line = np.empty(d)
    for c in range(k):
        g = reals.group[c]
        for j in range(d):
            line[j] = 0.0
            for i in range(j, d):
                line[j] += factors[g, i, j] * (first[c, i] - kappa * means[c, i])
        for i in range(d):
            total = 0.0
            for j in range(i + 1):
                total += factors[g, i, j] * line[j]
            gradient[reals.means + c * d + i] = total / reals.scale[i]


@kernel
def _factor_gradient(
    theta: np.ndarray,
    reals: Reals,
    factors: np.ndarray,
    counts: np.ndarray,
    scatter: np.ndarray,
    gradient: np.ndarray,
) -> None:
    """Write the gradient behind the factors: line i of scatter times L up to its diagonal."""
    n_groups, d = factors.shape[:2]
    line, lower = np.empty(d), reals.lower
    for g in range(n_groups):
        for i in range(d):
            for j in range(i + 1):
                line[j] = 0.0
            for m in range(d):
                for j in range(min(i, m) + 1):
                    line[j] += scatter[g, i, m] * factors[g, m, j]
            for j in range(i):
                gradient[lower] = -line[j] / reals.base[g, i] - theta[lower]
                lower += 1
            place = reals.diagonal + g * d + i
            free = reals.rate * (counts[g] - math.exp(theta[place])) + reals.powers[g]
            gradient[place] = free - 0.5 * line[i] * factors[g, i, i]


@kernel
def _write_roots(theta: np.ndarray, reals: Reals, factors: np.ndarray) -> float:
    """Write the roots of the precisions; log prior of the gamma variables behind them."""
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
def diagonal_gradient(
    theta: np.ndarray, reals: Reals, point: Point, sums: Results, gradient: np.ndarray
) -> None:
    """Write the gradient in means and precisions under the statistics of the rows."""
    means, factors = point.means, point.factors
    (k, d), kappa = means.shape, reals.mean_precision
    counts, scatter = np.zeros(len(factors)), np.zeros_like(factors)
    for c in range(k):
        g = reals.group[c]
        counts[g] += sums.counts[c]
        for i in range(d):
            force = sums.first[c, i] - kappa * means[c, i]
            gradient[reals.means + c * d + i] = force * factors[g, i] ** 2 / reals.scale[i]
            scatter[g, i] += sums.second[c, i] + kappa * means[c, i] ** 2
    for g in range(len(factors)):
        for i in range(d):
            place = reals.diagonal + (g if reals.spherical else g * d + i)
            if i == 0 or not reals.spherical:
                free = reals.rate * (counts[g] - math.exp(theta[place]))
                gradient[place] = free + reals.powers[g]
            gradient[place] -= 0.5 * scatter[g, i] * factors[g, i] ** 2
