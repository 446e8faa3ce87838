r"""Gaussian components with full covariances over rows without missing cells.

With precision :math:`P = L L'`, L lower triangular, and :math:`d = x - \mu`,

.. math:: \log N(x; \mu, P^{-1}) = \sum_i \log L_{ii} - \tfrac D2 \log 2\pi - \tfrac12 |L'd|^2 ,

and the centred moments are :math:`\sum_n r_n d_n` and :math:`\sum_n r_n d_n d_n'`. The
constant is added by the caller; factors come as :math:`L / \sqrt 2`, so that a kernel
subtracts plain squares. Second moments fill the upper triangle only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bayesrbf.numerics.kernels.compilation import inlined, kernel
from bayesrbf.numerics.kernels.gaussian_products import (
    add_products,
    count_nonzero,
    find_nonzero,
    subtract_squares,
)


class FullGaussians(NamedTuple):
    """Parameters of all components with full covariances."""

    means: np.ndarray  # (component, feature)
    factors: np.ndarray  # (group, feature, feature): L / sqrt(2)
    group: np.ndarray  # (component,): which factor


class CompleteScratch(NamedTuple):
    """Space for one tile of rows without missing cells, and rows that wait to be added."""

    deviation: np.ndarray  # (feature, place): x - mu
    lines: np.ndarray  # (4, place)
    waiting: np.ndarray  # (component, feature, place): x - mu of rows that wait
    responsibilities: np.ndarray  # (component, place)
    sizes: np.ndarray  # (component,): how many wait
    places: np.ndarray  # (place,): rows of a tile with a responsibility
    found: np.ndarray  # (place,): their responsibilities


@inlined
def add_log_density(
    cells: np.ndarray,
    gaussians: FullGaussians,
    components: tuple[int, int],
    log_joint: np.ndarray,
    scratch: CompleteScratch,
) -> None:
    """Subtract half the squared Mahalanobis distance of a tile's rows from ``log_joint``."""
    deviation = scratch.deviation
    for k in range(components[0], components[1]):
        deviate(cells, gaussians.means, k, deviation)
        g = gaussians.group[k]
        subtract_squares(gaussians.factors, g, deviation, log_joint, k, scratch.lines)


@inlined
def add_moments(
    cells: np.ndarray,
    gaussians: FullGaussians,
    components: tuple[int, int],
    responsibilities: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    scratch: CompleteScratch,
) -> None:
    """Add a tile's centred first and second moments, or let its rows wait for others.

    Rows of many columns mostly belong to one component. Where few rows of a tile have a
    responsibility in a component, these wait until they are enough for long loops:
    :func:`add_all_waiting` adds the rest.
    """
    deviation, width = scratch.deviation, responsibilities.shape[1]
    for k in range(components[0], components[1]):
        n_rows = count_nonzero(responsibilities, k, len(cells))
        if n_rows == width:
            deviate(cells, gaussians.means, k, deviation)
            add_products(deviation, responsibilities[k], width, k, first, second, scratch.lines)
        elif n_rows > 0:
            if scratch.sizes[k] + n_rows > width:
                _add_waiting(k, first, second, scratch)
            find_nonzero(responsibilities, k, n_rows, scratch.places, scratch.found)
            _let_wait(cells, gaussians.means, k, n_rows, scratch)


@kernel
def add_all_waiting(first: np.ndarray, second: np.ndarray, scratch: CompleteScratch) -> None:
    """Add the moments of the rows that are still waiting after the last tile."""
    for k in range(len(scratch.sizes)):
        if scratch.sizes[k] > 0:
            _add_waiting(k, first, second, scratch)


@kernel
def _add_waiting(k: int, first: np.ndarray, second: np.ndarray, scratch: CompleteScratch) -> None:
    """Add the moments of the rows that wait for one component."""
    waiting, responsibilities, n_rows = (
        scratch.waiting[k],
        scratch.responsibilities[k],
        scratch.sizes[k],
    )
    add_products(waiting, responsibilities, n_rows, k, first, second, scratch.lines)
    scratch.sizes[k] = 0


@kernel
def _let_wait(
    cells: np.ndarray, means: np.ndarray, k: int, n_rows: int, scratch: CompleteScratch
) -> None:
    """Append the selected rows of a tile to those that wait."""
    start = scratch.sizes[k]
    for r in range(n_rows):
        scratch.responsibilities[k, start + r] = scratch.found[r]
    for i in range(cells.shape[0]):
        mean = means[k, i]
        for r in range(n_rows):
            scratch.waiting[k, i, start + r] = cells[i, scratch.places[r]] - mean
    scratch.sizes[k] = start + n_rows


@kernel
def deviate(cells: np.ndarray, means: np.ndarray, k: int, deviation: np.ndarray) -> None:
    """Write x - mu_k of a tile."""
    for i in range(cells.shape[0]):
        mean = means[k, i]
        for r in range(cells.shape[1]):
            deviation[i, r] = cells[i, r] - mean
