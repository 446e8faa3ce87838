r"""Gaussian components with full covariances over rows without missing cells.

With precision :math:`P = L L'`, L lower triangular, and :math:`d = x - \mu`,

.. math:: \log N(x; \mu, P^{-1}) = \sum_i \log L_{ii} - \tfrac D2 \log 2\pi - \tfrac12 |L'd|^2 ,

and the centred moments are :math:`\sum_n r_n d_n` and :math:`\sum_n r_n d_n d_n'`. The
constant is added by the caller; factors come as :math:`L / \sqrt 2`, so that a kernel
subtracts plain squares.

A tile holds its rows side by side, one feature a line (D, R): every inner loop runs over the
rows of a tile, two features of the result at a time from four features of the input, which
keeps eight multiply-adds per six reads in vector registers. Second moments fill the upper
triangle only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesrbf.numerics.kernels.compilation import inlined, kernel


class FullGaussians(NamedTuple):
    """Parameters of all components with full covariances."""

    means: np.ndarray  # (component, feature)
    factors: np.ndarray  # (group, feature, feature): L / sqrt(2)
    group: np.ndarray  # (component,): which factor


@inlined
def add_log_density(
    cells: np.ndarray,
    gaussians: FullGaussians,
    components: tuple[int, int],
    log_joint: np.ndarray,
    deviation: np.ndarray,
    lines: np.ndarray,
) -> None:
    """Subtract half the squared Mahalanobis distance of a tile's rows from ``log_joint``.

    Parameters
    ----------
    cells : ndarray of shape (n_features, width)
        Cells of the tile, NaN where missing.
    gaussians : FullGaussians
        Parameters of the components.
    components : tuple of int
        First component of the tile and the one after its last.
    log_joint : ndarray of shape (n_components, width)
        Log joint densities, changed in place.
    deviation : ndarray of shape (n_features, width)
        Deviations x - mu.
    lines : ndarray of shape (2, width)
        Scratch.
    """
    for k in range(components[0], components[1]):
        deviate(cells, gaussians.means, k, deviation)
        subtract_squares(gaussians.factors, gaussians.group[k], deviation, log_joint, k, lines)


@inlined
def add_moments(
    cells: np.ndarray,
    gaussians: FullGaussians,
    components: tuple[int, int],
    shares: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    deviation: np.ndarray,
    lines: np.ndarray,
) -> None:
    """Add a tile's centred first and second moments.

    Parameters
    ----------
    cells : ndarray of shape (n_features, width)
        Cells of the tile, NaN where missing.
    gaussians : FullGaussians
        Parameters of the components.
    components : tuple of int
        First component of the tile and the one after its last.
    shares : ndarray of shape (n_components, width)
        Weighted responsibilities of the rows.
    first : ndarray of shape (n_components, n_features)
        First moments, added to in place.
    second : ndarray of shape (n_components, n_features, n_features)
        Second moments, added to in place.
    deviation : ndarray of shape (n_features, width)
        Deviations x - mu.
    lines : ndarray of shape (2, width)
        Scratch.
    """
    for k in range(components[0], components[1]):
        if shares[k].any():
            deviate(cells, gaussians.means, k, deviation)
            add_products(deviation, shares, k, first, second, lines)


@kernel
def deviate(cells: np.ndarray, means: np.ndarray, k: int, deviation: np.ndarray) -> None:
    """Write x - mu_k of a tile.

    Parameters
    ----------
    cells : ndarray of shape (n_features, width)
        Cells of the tile, NaN where missing.
    means : ndarray of shape (n_components, n_features)
        Component means.
    k : int
        Component.
    deviation : ndarray of shape (n_features, width)
        Deviations x - mu.
    """
    for i in range(cells.shape[0]):
        mean = means[k, i]
        for r in range(cells.shape[1]):
            deviation[i, r] = cells[i, r] - mean


@kernel
def subtract_squares(
    factors: np.ndarray,
    g: int,
    deviation: np.ndarray,
    log_joint: np.ndarray,
    k: int,
    lines: np.ndarray,
) -> None:
    """Subtract |F'd|^2 of each row from component k, F being lower triangle g of factors.

    Lines e and e + 1 of F'd are gathered together in ``lines``; both read d from e on.


    Parameters
    ----------
    factors : ndarray of shape (n_groups, n_features, n_features)
        Lower triangular factors.
    g : int
        Covariance group.
    deviation : ndarray of shape (n_features, width)
        Deviations x - mu.
    log_joint : ndarray of shape (n_components, width)
        Log joint densities, changed in place.
    k : int
        Component.
    lines : ndarray of shape (2, width)
        Scratch.
    """
    n_features, n_rows = deviation.shape
    for e in range(0, n_features - 1, 2):
        a, b, c = factors[g, e, e], factors[g, e + 1, e], factors[g, e + 1, e + 1]
        for r in range(n_rows):
            lines[0, r] = a * deviation[e, r] + b * deviation[e + 1, r]
            lines[1, r] = c * deviation[e + 1, r]
        i = e + 2
        while i + 4 <= n_features:
            a0, b0 = factors[g, i, e], factors[g, i, e + 1]
            a1, b1 = factors[g, i + 1, e], factors[g, i + 1, e + 1]
            a2, b2 = factors[g, i + 2, e], factors[g, i + 2, e + 1]
            a3, b3 = factors[g, i + 3, e], factors[g, i + 3, e + 1]
            for r in range(n_rows):
                d0, d1 = deviation[i, r], deviation[i + 1, r]
                d2, d3 = deviation[i + 2, r], deviation[i + 3, r]
                lines[0, r] += a0 * d0 + a1 * d1 + a2 * d2 + a3 * d3
                lines[1, r] += b0 * d0 + b1 * d1 + b2 * d2 + b3 * d3
            i += 4
        while i < n_features:
            a, b = factors[g, i, e], factors[g, i, e + 1]
            for r in range(n_rows):
                lines[0, r] += a * deviation[i, r]
                lines[1, r] += b * deviation[i, r]
            i += 1
        for r in range(n_rows):
            log_joint[k, r] -= lines[0, r] * lines[0, r] + lines[1, r] * lines[1, r]
    if n_features % 2:
        last = n_features - 1
        a = factors[g, last, last]
        for r in range(n_rows):
            line = a * deviation[last, r]
            log_joint[k, r] -= line * line


@kernel
def add_products(
    deviation: np.ndarray,
    shares: np.ndarray,
    k: int,
    first: np.ndarray,
    second: np.ndarray,
    lines: np.ndarray,
) -> None:
    """Add sum r d to ``first[k]`` and sum r d d' to the upper triangle of ``second[k]``.

    Parameters
    ----------
    deviation : ndarray of shape (n_features, width)
        Deviations x - mu.
    shares : ndarray of shape (n_components, width)
        Weighted responsibilities of the rows.
    k : int
        Component.
    first : ndarray of shape (n_components, n_features)
        First moments, added to in place.
    second : ndarray of shape (n_components, n_features, n_features)
        Second moments, added to in place.
    lines : ndarray of shape (2, width)
        Scratch.
    """
    n_features, n_rows = deviation.shape
    for i in range(0, n_features - 1, 2):
        s0 = s1 = m00 = m01 = m11 = 0.0
        for r in range(n_rows):
            d0, d1 = deviation[i, r], deviation[i + 1, r]
            w0, w1 = shares[k, r] * d0, shares[k, r] * d1
            lines[0, r] = w0
            lines[1, r] = w1
            s0 += w0
            s1 += w1
            m00 += w0 * d0
            m01 += w0 * d1
            m11 += w1 * d1
        first[k, i] += s0
        first[k, i + 1] += s1
        second[k, i, i] += m00
        second[k, i, i + 1] += m01
        second[k, i + 1, i + 1] += m11
        _add_two_lines(deviation, i, k, second, lines)
    if n_features % 2:
        last = n_features - 1
        s0 = m00 = 0.0
        for r in range(n_rows):
            w0 = shares[k, r] * deviation[last, r]
            s0 += w0
            m00 += w0 * deviation[last, r]
        first[k, last] += s0
        second[k, last, last] += m00


@kernel
def _add_two_lines(
    deviation: np.ndarray, i: int, k: int, second: np.ndarray, lines: np.ndarray
) -> None:
    """Add the products of weighted lines i, i + 1 with all lines after them."""
    n_features, n_rows = deviation.shape
    j = i + 2
    while j + 4 <= n_features:
        a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
        for r in range(n_rows):
            a, b = lines[0, r], lines[1, r]
            d0, d1 = deviation[j, r], deviation[j + 1, r]
            d2, d3 = deviation[j + 2, r], deviation[j + 3, r]
            a0 += a * d0
            a1 += a * d1
            a2 += a * d2
            a3 += a * d3
            b0 += b * d0
            b1 += b * d1
            b2 += b * d2
            b3 += b * d3
        second[k, i, j] += a0
        second[k, i, j + 1] += a1
        second[k, i, j + 2] += a2
        second[k, i, j + 3] += a3
        second[k, i + 1, j] += b0
        second[k, i + 1, j + 1] += b1
        second[k, i + 1, j + 2] += b2
        second[k, i + 1, j + 3] += b3
        j += 4
    while j < n_features:
        a0 = b0 = 0.0
        for r in range(n_rows):
            a0 += lines[0, r] * deviation[j, r]
            b0 += lines[1, r] * deviation[j, r]
        second[k, i, j] += a0
        second[k, i + 1, j] += b0
        j += 1
