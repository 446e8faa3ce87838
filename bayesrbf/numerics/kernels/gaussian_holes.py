"""The parts that the two kernels for missing cells under full covariances share.

Their mathematics is in :mod:`bayesrbf.numerics.kernels.gaussian_missing`.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from bayesrbf.numerics.kernels.compilation import kernel

HALF_LOG_2PI: Final = 0.5 * math.log(2 * math.pi)


class GaussiansWithHoles(NamedTuple):
    """Parameters of all components with full covariances, for rows with missing cells."""

    means: np.ndarray  # (component, feature)
    factors: np.ndarray  # (group, feature, feature): L / sqrt(2)
    precisions: np.ndarray  # (group, feature, feature): P
    group: np.ndarray  # (component,): which factor and precision


@kernel
def find_missing(cells: np.ndarray, n_rows: int, missing: np.ndarray) -> None:
    """List the missing features (missing cell, place) of a tile's first rows, ascending."""
    for r in range(n_rows):
        found = 0
        for feature in range(cells.shape[0]):
            if np.isnan(cells[feature, r]):
                missing[found, r] = feature
                found += 1


@kernel
def zero_filled_deviation(
    cells: np.ndarray, means: np.ndarray, k: int, completed: np.ndarray
) -> None:
    """Write x - mu_k of a tile, zero where missing, to ``completed[k]`` (feature, place)."""
    for i in range(cells.shape[0]):
        mean = means[k, i]
        for r in range(cells.shape[1]):
            cell = cells[i, r]
            completed[k, i, r] = 0.0 if np.isnan(cell) else cell - mean


@kernel
def multiply_line(
    matrices: np.ndarray, g: int, i: int, deviation: np.ndarray, k: int, out: np.ndarray, o: int
) -> None:
    """Write line i of matrix g times ``deviation[k]`` (feature, place) to line o of ``out``."""
    n_features, n_rows = deviation.shape[1:]
    for r in range(n_rows):
        out[o, r] = 0.0
    j = 0
    while j + 4 <= n_features:
        a0, a1 = matrices[g, i, j], matrices[g, i, j + 1]
        a2, a3 = matrices[g, i, j + 2], matrices[g, i, j + 3]
        for r in range(n_rows):
            out[o, r] += (a0 * deviation[k, j, r] + a1 * deviation[k, j + 1, r]) + (
                a2 * deviation[k, j + 2, r] + a3 * deviation[k, j + 3, r]
            )
        j += 4
    while j < n_features:
        a0 = matrices[g, i, j]
        for r in range(n_rows):
            out[o, r] += a0 * deviation[k, j, r]
        j += 1
