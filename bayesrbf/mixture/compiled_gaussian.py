"""Compiled Gaussian components: full or diagonal covariances, with and without missing cells."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from bayesrbf.base.compiled import inlined, kernel, logarithm

# Gaussian components with diagonal or spherical covariances, with or without missing cells.
#
# With s the square roots of the precisions and O the observed cells of a row,
#
# .. math:: \log N(x_o; \mu, s) = \sum_{i \in O}
#         \bigl[ c_i - \tfrac12 s_i^2 (x_i - \mu_i)^2 \bigr] ,
#         \qquad c_i = \log s_i - \tfrac12 \log 2\pi .
#
# The caller adds the sum of all :math:`c_i`; the kernel subtracts those of missing cells, which are
# NaN. A missing cell adds nothing to the first moments and its variance :math:`s_i^{-2}` to the
# second. Scales come as :math:`s / \sqrt 2`.


class DiagonalGaussians(NamedTuple):
    """Parameters of all components with diagonal covariances."""

    means: np.ndarray  # (component, feature)
    scales: np.ndarray  # (component, feature): s / sqrt(2)
    constants: np.ndarray  # (component, feature): log s - log(2 pi) / 2


@inlined
def add_diagonal_log_density(
    cells: np.ndarray,
    gaussians: DiagonalGaussians,
    components: tuple[int, int],
    log_joint: np.ndarray,
) -> None:
    """Subtract half of each cell's squared standardised deviation from ``log_joint``.

    For a missing cell the log normaliser is subtracted, which the constants of the components have.
    """
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
def add_diagonal_moments(
    cells: np.ndarray,
    gaussians: DiagonalGaussians,
    components: tuple[int, int],
    responsibilities: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
) -> None:
    """Add a tile's weighted first and second moments about the means: (component, feature).

    A missing cell adds its variance to the second moment.
    """
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


# Squares and products of the rows of a tile, which all kernels with full covariances use.
#
# A tile holds its rows side by side, one feature a line (D, R), and every inner loop runs over the
# rows. Squared distances take four lines of the result at a time from four lines of the input:
# sixteen multiply-adds per twelve reads and writes. Products take two lines with four, and fill the
# upper triangle only. ``lines`` is scratch (4, place).


MIN_COLUMNS: Final = 16
"""Below this number of columns, products cost no more than a search for rows that need none."""

MOVE: Final = 20  # Cost of moving a cell, in multiply-adds in vector registers.


@kernel
def count_nonzero(responsibilities: np.ndarray, k: int, n_features: int) -> int:
    """Count the rows of a tile with a responsibility in a component.

    All count where moving those rows together would cost more than it saves.
    """
    width, n_rows = responsibilities.shape[1], 0
    if n_features < MIN_COLUMNS:
        return width if responsibilities[k].any() else 0
    for r in range(width):
        n_rows += responsibilities[k, r] != 0.0
    return n_rows if n_rows * (n_features + MOVE) <= width * n_features else width


@kernel
def find_nonzero(
    responsibilities: np.ndarray, k: int, n_rows: int, positions: np.ndarray, found: np.ndarray
) -> None:
    """Write the places of the rows that :func:`count_nonzero` counted, and their responsibilities.

    They are written to ``positions`` and ``found``. Behind them ``positions`` repeats the first
    place, and ``found`` is 0.
    """
    width, n = responsibilities.shape[1], 0
    for r in range(width):
        if n_rows == width or responsibilities[k, r] != 0.0:
            positions[n] = r
            found[n] = responsibilities[k, r]
            n += 1
    for r in range(n, width):
        positions[r] = positions[0]
        found[r] = 0.0


@kernel
def move_together(values: np.ndarray, positions: np.ndarray, n_rows: int) -> None:
    """Move the rows at ``positions`` to the front of a tile's values (line, place)."""
    for i in range(len(values)):
        for r in range(n_rows):
            values[i, r] = values[i, positions[r]]


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

    Lines of F'd are gathered four at a time in ``lines``; line e reads d from e on. The lines that
    four do not divide come first, one by one, so that fours end evenly.
    """
    n_features, n_rows = deviation.shape
    single = n_features % 4
    for e in range(single):
        for r in range(n_rows):
            lines[0, r] = factors[g, e, e] * deviation[e, r]
        for i in range(e + 1, single):
            for r in range(n_rows):
                lines[0, r] += factors[g, i, e] * deviation[i, r]
        for i in range(single, n_features, 4):
            a0, a1 = factors[g, i, e], factors[g, i + 1, e]
            a2, a3 = factors[g, i + 2, e], factors[g, i + 3, e]
            for r in range(n_rows):
                d0, d1 = deviation[i, r], deviation[i + 1, r]
                d2, d3 = deviation[i + 2, r], deviation[i + 3, r]
                lines[0, r] += a0 * d0 + a1 * d1 + a2 * d2 + a3 * d3
        for r in range(n_rows):
            log_joint[k, r] -= lines[0, r] * lines[0, r]
    for e in range(single, n_features, 4):
        a0, a1, b1 = factors[g, e, e], factors[g, e + 1, e], factors[g, e + 1, e + 1]
        a2, b2, c2 = factors[g, e + 2, e], factors[g, e + 2, e + 1], factors[g, e + 2, e + 2]
        a3, b3 = factors[g, e + 3, e], factors[g, e + 3, e + 1]
        c3, f3 = factors[g, e + 3, e + 2], factors[g, e + 3, e + 3]
        for r in range(n_rows):
            d0, d1 = deviation[e, r], deviation[e + 1, r]
            d2, d3 = deviation[e + 2, r], deviation[e + 3, r]
            lines[0, r] = a0 * d0 + a1 * d1 + a2 * d2 + a3 * d3
            lines[1, r] = b1 * d1 + b2 * d2 + b3 * d3
            lines[2, r] = c2 * d2 + c3 * d3
            lines[3, r] = f3 * d3
        for i in range(e + 4, n_features, 4):
            a0, a1 = factors[g, i, e], factors[g, i + 1, e]
            a2, a3 = factors[g, i + 2, e], factors[g, i + 3, e]
            b0, b1 = factors[g, i, e + 1], factors[g, i + 1, e + 1]
            b2, b3 = factors[g, i + 2, e + 1], factors[g, i + 3, e + 1]
            c0, c1 = factors[g, i, e + 2], factors[g, i + 1, e + 2]
            c2, c3 = factors[g, i + 2, e + 2], factors[g, i + 3, e + 2]
            f0, f1 = factors[g, i, e + 3], factors[g, i + 1, e + 3]
            f2, f3 = factors[g, i + 2, e + 3], factors[g, i + 3, e + 3]
            for r in range(n_rows):
                d0, d1 = deviation[i, r], deviation[i + 1, r]
                d2, d3 = deviation[i + 2, r], deviation[i + 3, r]
                lines[0, r] += a0 * d0 + a1 * d1 + a2 * d2 + a3 * d3
                lines[1, r] += b0 * d0 + b1 * d1 + b2 * d2 + b3 * d3
                lines[2, r] += c0 * d0 + c1 * d1 + c2 * d2 + c3 * d3
                lines[3, r] += f0 * d0 + f1 * d1 + f2 * d2 + f3 * d3
        for r in range(n_rows):
            upper = lines[0, r] * lines[0, r] + lines[1, r] * lines[1, r]
            log_joint[k, r] -= upper + lines[2, r] * lines[2, r] + lines[3, r] * lines[3, r]


@kernel
def add_products(
    deviation: np.ndarray,
    responsibilities: np.ndarray,
    n_rows: int,
    k: int,
    first: np.ndarray,
    second: np.ndarray,
    lines: np.ndarray,
) -> None:
    """Add sum r d to ``first[k]`` and sum r d d' to the upper triangle of ``second[k]``.

    ``responsibilities`` (place,) are r; places from ``n_rows`` on do not count.
    """
    n_features = len(deviation)
    for i in range(0, n_features - 1, 2):
        s0 = s1 = m00 = m01 = m11 = 0.0
        for r in range(n_rows):
            d0, d1 = deviation[i, r], deviation[i + 1, r]
            w0, w1 = responsibilities[r] * d0, responsibilities[r] * d1
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
        _add_two_lines(deviation, n_rows, i, k, second, lines)
    if n_features % 2:
        last = n_features - 1
        s0 = m00 = 0.0
        for r in range(n_rows):
            w0 = responsibilities[r] * deviation[last, r]
            s0 += w0
            m00 += w0 * deviation[last, r]
        first[k, last] += s0
        second[k, last, last] += m00


@kernel
def _add_two_lines(
    deviation: np.ndarray, n_rows: int, i: int, k: int, second: np.ndarray, lines: np.ndarray
) -> None:
    """Add the products of weighted features i, i + 1 with all later features to ``second[k]``.

    ``lines`` has both features times the responsibilities.
    """
    n_features = len(deviation)
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


# Gaussian components with full covariances over rows without missing cells.
#
# With precision :math:`P = L L'`, L lower triangular, and :math:`d = x - \mu`,
#
# .. math:: \log N(x; \mu, P^{-1}) = \sum_i \log L_{ii} - \tfrac D2 \log 2\pi - \tfrac12 |L'd|^2 ,
#
# and the centred moments are :math:`\sum_n r_n d_n` and :math:`\sum_n r_n d_n d_n'`. The
# constant is added by the caller; factors come as :math:`L / \sqrt 2`, so that a kernel
# subtracts plain squares. Second moments fill the upper triangle only.


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
    positions: np.ndarray  # (place,): rows of a tile with a responsibility
    found: np.ndarray  # (place,): their responsibilities


@inlined
def add_complete_log_density(
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
def add_complete_moments(
    cells: np.ndarray,
    gaussians: FullGaussians,
    components: tuple[int, int],
    responsibilities: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    scratch: CompleteScratch,
) -> None:
    """Add a tile's weighted moments about the means, or let its rows wait for others.

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
            find_nonzero(responsibilities, k, n_rows, scratch.positions, scratch.found)
            _let_wait(cells, gaussians.means, k, n_rows, scratch)


@kernel
def add_all_waiting(first: np.ndarray, second: np.ndarray, scratch: CompleteScratch) -> None:
    """Add the moments of the rows that are still waiting after the last tile."""
    for k in range(len(scratch.sizes)):
        if scratch.sizes[k] > 0:
            _add_waiting(k, first, second, scratch)


@kernel
def _add_waiting(k: int, first: np.ndarray, second: np.ndarray, scratch: CompleteScratch) -> None:
    """Add the moments of the rows that wait for component k; none waits after that."""
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
    """Append the rows at ``scratch.positions`` to the rows that wait for component k."""
    start = scratch.sizes[k]
    for r in range(n_rows):
        scratch.responsibilities[k, start + r] = scratch.found[r]
    for i in range(cells.shape[0]):
        mean = means[k, i]
        for r in range(n_rows):
            scratch.waiting[k, i, start + r] = cells[i, scratch.positions[r]] - mean
    scratch.sizes[k] = start + n_rows


@kernel
def deviate(cells: np.ndarray, means: np.ndarray, k: int, deviation: np.ndarray) -> None:
    """Write x - mu_k of a tile."""
    for i in range(cells.shape[0]):
        mean = means[k, i]
        for r in range(cells.shape[1]):
            deviation[i, r] = cells[i, r] - mean


# Gaussian components with full covariances over rows that all miss the same cells.
#
# The mathematics is that of rows with missing cells, below. As the rows of a tile share one
# pattern of missing cells m, they share
#
# .. math:: C = P_{mm}^{-1}, \qquad B = -C P_{mo}, \qquad E[d_m | x_o] = B d_o ,
#
# computed once and kept until a tile with another pattern comes; a row costs little more than
# a complete one. B is stored with zeros in the columns of missing cells. What both kernels for
# missing cells share comes first.


HALF_LOG_2PI: Final = 0.5 * math.log(2 * math.pi)


class GaussiansWithHoles(NamedTuple):
    """Parameters of all components with full covariances, for rows with missing cells."""

    means: np.ndarray  # (component, feature)
    factors: np.ndarray  # (group, feature, feature): L / sqrt(2)
    precisions: np.ndarray  # (group, feature, feature): P
    group: np.ndarray  # (component,): which factor and precision


@kernel
def find_missing(cells: np.ndarray, n_rows: int, missing: np.ndarray) -> None:
    """Write the indices of the NaN features of each of the first ``n_rows`` rows of a tile.

    ``cells`` has shape (feature, row), and ``missing`` has shape (missing cell, row).
    ``missing[i, r]`` becomes the index of the i-th NaN feature of row r, in ascending order.
    Entries of ``missing`` beyond the last NaN feature of a row stay as they are.
    """
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
    positions: np.ndarray  # (place,): rows with a responsibility
    found: np.ndarray  # (place,): their responsibilities


@inlined
def add_pattern_log_density(
    cells: np.ndarray,
    n_missing: int,
    pattern: int,
    gaussians: GaussiansWithHoles,
    components: tuple[int, int],
    log_joint: np.ndarray,
    scratch: PatternScratch,
) -> None:
    """Add log densities of a tile's observed cells to ``log_joint``; its rows miss the same cells.

    The constants of the components have the normaliser of complete rows. Deviations with missing
    cells at their conditional means stay in ``scratch.completed``. Tiles with the same missing
    cells and components have the same ``pattern`` number.
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
def add_pattern_moments(
    n_missing: int,
    components: tuple[int, int],
    responsibilities: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    scratch: PatternScratch,
) -> None:
    """Add the moments of a tile that :func:`add_pattern_log_density` has completed."""
    missing, positions, found = scratch.missing, scratch.positions, scratch.found
    for k in range(components[0], components[1]):
        n_rows = count_nonzero(responsibilities, k, second.shape[1])
        if n_rows > 0:
            find_nonzero(responsibilities, k, n_rows, positions, found)
            if n_rows < len(positions):
                n_rows += -n_rows % 8  # loops run in eights
                move_together(scratch.completed[k], positions, n_rows)
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
    """Write C, B and the constant of every component, for the pattern of the tile's first row."""
    find_missing(cells, 1, scratch.missing)
    for k in range(components[0], components[1]):
        g = gaussians.group[k]
        if k > components[0] and g == gaussians.group[k - 1]:
            _take_over(scratch.covariance, k)
            _take_over(scratch.regression, k)
            scratch.constant[k] = scratch.constant[k - 1]
        else:
            _condition(gaussians.precisions, g, k, n_missing, scratch)
            _regress(cells, gaussians.precisions, g, k, n_missing, scratch)


@kernel
def _take_over(matrices: np.ndarray, k: int) -> None:
    """Copy the matrix of the component before."""
    # In loops: an assignment of arrays would compile a message about shapes for four seconds.
    for i in range(matrices.shape[1]):
        for j in range(matrices.shape[2]):
            matrices[k, i, j] = matrices[k - 1, i, j]


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


# Gaussian components with full covariances over rows with missing cells.
#
# Let m be the missing and o the observed cells of a row, P the precision, and d the deviation
# :math:`x - \mu` with zeros at m. Then, exactly,
#
# .. math::
#    \operatorname{cov}(x_m | x_o) &= P_{mm}^{-1} =: C \\
#    E[d_m | x_o] &= -C \, P_{mo} d_o = -C \, (P d)_m \\
#    \log N(x_o) &= \log N(d \text{ completed by } E[d_m | x_o])
#                   - \tfrac12 \log |P_{mm}| + \tfrac{|m|}{2} \log 2\pi .
#
# The squared distance is taken of the completed row, a sum of squares in which nothing cancels.
# The second moment is that of the completed rows plus :math:`\sum_n r_n C_n` in the block m.
#
# All rows of a tile miss the same number of cells, but here not the same cells: with
# :math:`P_{mm} = R R'` every row has an R of its own, and each step of its factorisation, of
# the solutions with it and of its inverse runs over the rows of the tile side by side. Lower
# triangles are kept line by line: entry (i, j), i >= j, is number i (i + 1) / 2 + j. The
# diagonal of R is kept inverted. Neighbouring components of one covariance share R and C: the first
# of them has R, and is given :math:`\sum_n (\sum_k r_{nk}) C_n` for all.


PIVOTS: Final = 8  # Pivots multiplied before a logarithm is taken: few enough not to overflow.


class MixedScratch(NamedTuple):
    """Space for one tile whose rows miss different cells."""

    completed: np.ndarray  # (component, feature, place): E[x - mu | x_o]
    root: np.ndarray  # (component, entry, place): R, at the first component of a covariance
    constant: np.ndarray  # (place,): -log|P_mm| / 2 + m log(2 pi) / 2
    inverse: np.ndarray  # (entry, place): R^-1 of one component
    pulls: np.ndarray  # (feature, place): P d
    solution: np.ndarray  # (missing cell, place)
    missing: np.ndarray  # (missing cell, place): which feature
    block: np.ndarray  # (entry, place): where the entries of P_mm stand in a flat (D, D)
    lines: np.ndarray  # (4, place)
    positions: np.ndarray  # (place,): rows with a responsibility
    found: np.ndarray  # (place,): their responsibilities
    totals: np.ndarray  # (1, place): responsibilities of the components of one covariance


@inlined
def add_missing_log_density(
    cells: np.ndarray,
    n_missing: int,
    gaussians: GaussiansWithHoles,
    components: tuple[int, int],
    log_joint: np.ndarray,
    scratch: MixedScratch,
) -> None:
    """Add log densities of a tile's observed cells to ``log_joint``; rows miss different cells.

    Every row misses ``n_missing`` cells. The constants of the components have the normaliser of
    complete rows. Deviations with missing cells at their conditional means stay in
    ``scratch.completed``.
    """
    find_missing(cells, cells.shape[1], scratch.missing)
    _locate_block(cells.shape[0], n_missing, scratch)
    precisions = gaussians.precisions
    flat_precisions = precisions.reshape(len(precisions), -1)
    first = components[0]  # of those with one covariance
    for k in range(components[0], components[1]):
        g = gaussians.group[k]
        zero_filled_deviation(cells, gaussians.means, k, scratch.completed)
        _pull(cells, precisions, g, k, scratch)
        if k == components[0] or g != gaussians.group[first]:
            first = k
            _factorise(flat_precisions, g, k, n_missing, scratch)
        _complete(k, first, n_missing, scratch)
        for r in range(cells.shape[1]):
            log_joint[k, r] += scratch.constant[r]
        subtract_squares(gaussians.factors, g, scratch.completed[k], log_joint, k, scratch.lines)


@inlined
def add_missing_moments(
    n_missing: int,
    group: np.ndarray,
    components: tuple[int, int],
    responsibilities: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    scratch: MixedScratch,
) -> None:
    """Add the moments of a tile that :func:`add_missing_log_density` has completed."""
    flat_second = second.reshape(len(second), -1)
    positions, found, totals = scratch.positions, scratch.found, scratch.totals
    for r in range(len(positions)):
        totals[0, r] = 0.0
    for k in range(components[0], components[1]):
        n_rows = count_nonzero(responsibilities, k, second.shape[1])
        if n_rows > 0:
            find_nonzero(responsibilities, k, n_rows, positions, found)
            if n_rows < len(positions):
                n_rows += -n_rows % 8  # loops run in eights
                move_together(scratch.completed[k], positions, n_rows)
            add_products(scratch.completed[k], found, n_rows, k, first, second, scratch.lines)
        for r in range(len(positions)):
            totals[0, r] += responsibilities[k, r]
        if k + 1 == components[1] or group[k + 1] != group[k]:
            of = k  # the first of those with this covariance
            while of > components[0] and group[of - 1] == group[k]:
                of -= 1
            n_rows = count_nonzero(totals, 0, second.shape[1])
            if n_rows > 0:
                find_nonzero(totals, 0, n_rows, positions, found)
                if n_rows < len(positions):
                    n_rows += -n_rows % 8
                    move_together(scratch.root[of], positions, n_rows)
                _invert(of, n_missing, n_rows, scratch)
                _add_covariances(of, n_missing, n_rows, flat_second, scratch)
            for r in range(len(positions)):
                totals[0, r] = 0.0


@kernel
def _locate_block(n_features: int, n_missing: int, scratch: MixedScratch) -> None:
    """Write where each row's P_mm stands in a flat P: row and column of its upper triangle."""
    for i in range(n_missing):
        for j in range(i + 1):
            for r in range(scratch.missing.shape[1]):
                position = scratch.missing[j, r] * n_features + scratch.missing[i, r]
                scratch.block[i * (i + 1) // 2 + j, r] = position


@kernel
def _pull(cells: np.ndarray, precisions: np.ndarray, g: int, k: int, scratch: MixedScratch) -> None:
    """Write line i of P d to ``scratch.pulls`` for each feature i that a row of the tile misses."""
    for i in range(cells.shape[0]):
        needed = False
        for r in range(cells.shape[1]):
            needed |= np.isnan(cells[i, r])
        if needed:
            multiply_line(precisions, g, i, scratch.completed, k, scratch.pulls, i)


@kernel
def _factorise(
    flat_precisions: np.ndarray,
    g: int,
    k: int,
    n_missing: int,
    scratch: MixedScratch,
) -> None:
    """Write the Cholesky factor R of every row's P_mm, diagonal inverted, and the constant."""
    root, block, lines = scratch.root[k], scratch.block, scratch.lines
    constant = scratch.constant
    n_rows = lines.shape[1]
    for r in range(n_rows):
        lines[1, r] = 1.0
        constant[r] = n_missing * HALF_LOG_2PI
    for i in range(n_missing):
        line = i * (i + 1) // 2
        for j in range(i + 1):
            other = j * (j + 1) // 2
            _dot(root, line, root, other, j, n_rows, lines)
            for r in range(n_rows):
                rest = flat_precisions[g, block[line + j, r]] - lines[0, r]
                root[line + j, r] = rest * root[other + j, r] if j < i else rest
        for r in range(n_rows):
            pivot = root[line + i, r]
            lines[1, r] *= pivot
            root[line + i, r] = 1.0 / math.sqrt(pivot)
        if i % PIVOTS == PIVOTS - 1 or i == n_missing - 1:
            for r in range(n_rows):
                constant[r] -= 0.5 * logarithm(lines[1, r])
                lines[1, r] = 1.0


@kernel
def _dot(
    left: np.ndarray, i: int, right: np.ndarray, j: int, n: int, n_rows: int, lines: np.ndarray
) -> None:
    """Write ``sum_h left[i + h] right[j + h]`` over n entries to ``lines[0]``, row by row."""
    for r in range(n_rows):
        lines[0, r] = 0.0
    h = 0
    while h + 4 <= n:
        for r in range(n_rows):
            lines[0, r] += (
                left[i + h, r] * right[j + h, r] + left[i + h + 1, r] * right[j + h + 1, r]
            ) + (
                left[i + h + 2, r] * right[j + h + 2, r] + left[i + h + 3, r] * right[j + h + 3, r]
            )
        h += 4
    while h < n:
        for r in range(n_rows):
            lines[0, r] += left[i + h, r] * right[j + h, r]
        h += 1


@kernel
def _complete(k: int, first: int, n_missing: int, scratch: MixedScratch) -> None:
    """Write -C (P d)_m into the missing cells: forward through R of ``first``, back through R'."""
    root, solution, missing = scratch.root, scratch.solution, scratch.missing
    n_rows = missing.shape[1]
    for i in range(n_missing):
        line = i * (i + 1) // 2
        for r in range(n_rows):
            solution[i, r] = -scratch.pulls[missing[i, r], r]
        for j in range(i):
            for r in range(n_rows):
                solution[i, r] -= root[first, line + j, r] * solution[j, r]
        for r in range(n_rows):
            solution[i, r] *= root[first, line + i, r]
    for i in range(n_missing - 1, -1, -1):
        line = i * (i + 1) // 2
        for r in range(n_rows):
            solution[i, r] *= root[first, line + i, r]
        for j in range(i):
            for r in range(n_rows):
                solution[j, r] -= root[first, line + j, r] * solution[i, r]
        for r in range(n_rows):
            scratch.completed[k, missing[i, r], r] = solution[i, r]


@kernel
def _invert(k: int, n_missing: int, n_rows: int, scratch: MixedScratch) -> None:
    """Write R^-1 of every row, column by column: entry (i, j) is number j (2 m - j - 1) / 2 + i."""
    root, inverse, lines = scratch.root[k], scratch.inverse, scratch.lines
    for j in range(n_missing):
        column = j * (2 * n_missing - j - 1) // 2
        for i in range(j, n_missing):
            line = i * (i + 1) // 2
            _dot(root, line + j, inverse, column + j, i - j, n_rows, lines)
            for r in range(n_rows):
                pivot = root[line + i, r]
                inverse[column + i, r] = -lines[0, r] * pivot if j < i else pivot


@kernel
def _add_covariances(
    k: int, n_missing: int, n_rows: int, flat_second: np.ndarray, scratch: MixedScratch
) -> None:
    """Add every row's responsibility times C = R^-T R^-1 to the upper triangle of component k."""
    inverse, block, lines = scratch.inverse, scratch.block, scratch.lines
    positions, found = scratch.positions, scratch.found
    for i in range(n_missing):
        column = i * (2 * n_missing - i - 1) // 2
        for j in range(i, n_missing):
            other = j * (2 * n_missing - j - 1) // 2
            entry = j * (j + 1) // 2 + i
            _dot(inverse, column + j, inverse, other + j, n_missing - j, n_rows, lines)
            for r in range(n_rows):
                flat_second[k, block[entry, positions[r]]] += found[r] * lines[0, r]
