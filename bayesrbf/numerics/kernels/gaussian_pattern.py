r"""Gaussian components with full covariances over rows that all miss the same cells.

The mathematics is that of :mod:`bayesrbf.numerics.kernels.gaussian_missing`. As the rows of
a tile share one pattern of missing cells m, they share

.. math:: C = P_{mm}^{-1}, \qquad B = -C P_{mo}, \qquad E[d_m | x_o] = B d_o ,

computed once and kept until a tile with another pattern comes; a row costs little more than
a complete one. B is stored with zeros in the columns of missing cells. What both kernels for
missing cells share comes first.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from bayesrbf.numerics.kernels.compilation import inlined, kernel
from bayesrbf.numerics.kernels.gaussian_products import (
    add_products,
    count_nonzero,
    find_nonzero,
    move_together,
    subtract_squares,
)

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
    # Four columns at a time: the line of the result is read and written a quarter as often.
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


class PatternScratch(NamedTuple):
    """Scratch space for a tile of one pattern, and quantities that depend on the pattern alone."""

    known: np.ndarray  # (1,): number of the pattern that the next four belong to
    covariance: np.ndarray  # (component, missing cell, missing cell): C
    regression: np.ndarray  # (component, missing cell, feature): B
    constant: np.ndarray  # (component,): -log|P_mm| / 2 + m log(2 pi) / 2
    missing: np.ndarray  # (missing cell, 1): which feature
    root: np.ndarray  # (missing cell, missing cell): R, P_mm = R R', then R^-1
    completed: np.ndarray  # (component, feature, place): E[x - mu | x_o]
    imputed: np.ndarray  # (missing cell, place): E[d_m | x_o]
    lines: np.ndarray  # (4, place)
    places: np.ndarray  # (place,): rows with a responsibility
    found: np.ndarray  # (place,): their responsibilities


@inlined
def add_log_density(
    cells: np.ndarray,
    n_missing: int,
    pattern: int,
    gaussians: GaussiansWithHoles,
    components: tuple[int, int],
    log_joint: np.ndarray,
    scratch: PatternScratch,
) -> None:
    """Complete a tile's rows under every component and subtract half their squared distances.

    Tiles with the same missing cells and components have the same ``pattern`` number.
    """
    if scratch.known[0] != pattern:
        _learn(cells, n_missing, gaussians, components, scratch)
        scratch.known[0] = pattern
    completed, imputed = scratch.completed, scratch.imputed
    for k in range(components[0], components[1]):
        zero_filled_deviation(cells, gaussians.means, k, completed)
        for i in range(n_missing):
            multiply_line(scratch.regression, k, i, completed, k, imputed, i)
        for i in range(n_missing):
            for r in range(cells.shape[1]):
                completed[k, scratch.missing[i, 0], r] = imputed[i, r]
        for r in range(cells.shape[1]):
            log_joint[k, r] += scratch.constant[k]
        subtract_squares(
            gaussians.factors, gaussians.group[k], completed[k], log_joint, k, scratch.lines
        )


@inlined
def add_moments(
    n_missing: int,
    components: tuple[int, int],
    responsibilities: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    scratch: PatternScratch,
) -> None:
    """Add the moments of a tile that ``add_log_density`` has completed."""
    missing, places, found = scratch.missing, scratch.places, scratch.found
    for k in range(components[0], components[1]):
        n_rows = count_nonzero(responsibilities, k, second.shape[1])
        if n_rows > 0:
            find_nonzero(responsibilities, k, n_rows, places, found)
            if n_rows < len(places):
                n_rows += -n_rows % 8  # loops run in eights
                move_together(scratch.completed[k], places, n_rows)
            add_products(scratch.completed[k], found, n_rows, k, first, second, scratch.lines)
            # Rows of one pattern share their conditional covariance: it is added once for all.
            total = found.sum()
            for i in range(n_missing):
                for j in range(i, n_missing):
                    spread = total * scratch.covariance[k, i, j]
                    second[k, missing[i, 0], missing[j, 0]] += spread


@kernel
def _learn(
    cells: np.ndarray,
    n_missing: int,
    gaussians: GaussiansWithHoles,
    components: tuple[int, int],
    scratch: PatternScratch,
) -> None:
    """Compute what all rows with the same missing cells share."""
    find_missing(cells, 1, scratch.missing)
    for k in range(components[0], components[1]):
        g = gaussians.group[k]
        if k > components[0] and g == gaussians.group[k - 1]:
            scratch.covariance[k] = scratch.covariance[k - 1]
            scratch.regression[k] = scratch.regression[k - 1]
            scratch.constant[k] = scratch.constant[k - 1]
        else:
            _condition(gaussians.precisions, g, k, n_missing, scratch)
            _regress(cells, gaussians.precisions, g, k, n_missing, scratch)


@kernel
def _condition(
    precisions: np.ndarray, g: int, k: int, n_missing: int, scratch: PatternScratch
) -> None:
    """Compute C = (R R')^-1 and the constant of one component."""
    root, missing = scratch.root, scratch.missing
    log_determinant = 0.0
    for i in range(n_missing):
        for j in range(i + 1):
            rest = precisions[g, missing[i, 0], missing[j, 0]]
            for h in range(j):
                rest -= root[i, h] * root[j, h]
            # The diagonal is kept inverted, because it is only divided by. Its logs make up half
            # the log determinant of P_mm.
            root[i, j] = rest * root[j, j] if j < i else 1.0 / math.sqrt(rest)
        log_determinant -= math.log(root[i, i])
    scratch.constant[k] = n_missing * HALF_LOG_2PI - log_determinant
    for j in range(n_missing):  # R^-1 in place: column j reads R's columns from j on only
        for i in range(j + 1, n_missing):
            entry = root[i, j] * root[j, j]
            for h in range(j + 1, i):
                entry += root[i, h] * root[h, j]
            root[i, j] = -entry * root[i, i]
    for i in range(n_missing):
        for j in range(i, n_missing):
            entry = 0.0
            for h in range(j, n_missing):
                entry += root[h, i] * root[h, j]
            scratch.covariance[k, i, j] = entry
            scratch.covariance[k, j, i] = entry


@kernel
def _regress(
    cells: np.ndarray,
    precisions: np.ndarray,
    g: int,
    k: int,
    n_missing: int,
    scratch: PatternScratch,
) -> None:
    """Compute B = -C P_mo of one component, with zeros where a column is missing."""
    for i in range(n_missing):
        for j in range(cells.shape[0]):
            entry = 0.0
            if not np.isnan(cells[j, 0]):
                for h in range(n_missing):
                    entry -= scratch.covariance[k, i, h] * precisions[g, scratch.missing[h, 0], j]
            scratch.regression[k, i, j] = entry
