r"""Gaussian components with full covariances over rows with missing cells.

Let m be the missing and o the observed cells of a row, P the precision, and d the deviation
:math:`x - \mu` with zeros at m. Then, exactly,

.. math::
   \operatorname{cov}(x_m | x_o) &= P_{mm}^{-1} =: C \\
   E[d_m | x_o] &= -C \, P_{mo} d_o = -C \, (P d)_m \\
   \log N(x_o) &= \log N(d \text{ completed by } E[d_m | x_o])
                  - \tfrac12 \log |P_{mm}| + \tfrac{|m|}{2} \log 2\pi .

The squared distance is taken of the completed row, a sum of squares in which nothing cancels.
The second moment is that of the completed rows plus :math:`\sum_n r_n C_n` in the block m.

All rows of a tile miss the same number of cells, but here not the same cells: with
:math:`P_{mm} = R R'` every row has an R of its own, and each step of its factorisation, of
the solutions with it and of its inverse runs over the rows of the tile side by side. Lower
triangles are kept line by line: entry (i, j), i >= j, is number i (i + 1) / 2 + j. The
diagonal of R is kept inverted. Neighbouring components of one covariance share R and C: the first
of them has R, and is given :math:`\sum_n (\sum_k r_{nk}) C_n` for all.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from bayesrbf.numerics.kernels.compilation import inlined, kernel
from bayesrbf.numerics.kernels.elementary import logarithm
from bayesrbf.numerics.kernels.gaussian_pattern import (
    HALF_LOG_2PI,
    GaussiansWithHoles,
    find_missing,
    multiply_line,
    zero_filled_deviation,
)
from bayesrbf.numerics.kernels.gaussian_products import (
    add_products,
    count_nonzero,
    find_nonzero,
    move_together,
    subtract_squares,
)

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
    places: np.ndarray  # (place,): rows with a responsibility
    found: np.ndarray  # (place,): their responsibilities
    totals: np.ndarray  # (1, place): responsibilities of the components of one covariance


@inlined
def add_log_density(
    cells: np.ndarray,
    n_missing: int,
    gaussians: GaussiansWithHoles,
    components: tuple[int, int],
    log_joint: np.ndarray,
    scratch: MixedScratch,
) -> None:
    """Complete a tile's rows under every component and subtract half their squared distances."""
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
def add_moments(
    n_missing: int,
    group: np.ndarray,
    components: tuple[int, int],
    responsibilities: np.ndarray,
    first: np.ndarray,
    second: np.ndarray,
    scratch: MixedScratch,
) -> None:
    """Add the moments of a tile that ``add_log_density`` has completed."""
    flat_second = second.reshape(len(second), -1)
    places, found, totals = scratch.places, scratch.found, scratch.totals
    for r in range(len(places)):
        totals[0, r] = 0.0
    for k in range(components[0], components[1]):
        n_rows = count_nonzero(responsibilities, k, second.shape[1])
        if n_rows > 0:
            find_nonzero(responsibilities, k, n_rows, places, found)
            if n_rows < len(places):
                n_rows += -n_rows % 8  # loops run in eights
                move_together(scratch.completed[k], places, n_rows)
            add_products(scratch.completed[k], found, n_rows, k, first, second, scratch.lines)
        for r in range(len(places)):
            totals[0, r] += responsibilities[k, r]
        if k + 1 == components[1] or group[k + 1] != group[k]:
            of = k  # the first of those with this covariance
            while of > components[0] and group[of - 1] == group[k]:
                of -= 1
            n_rows = count_nonzero(totals, 0, second.shape[1])
            if n_rows > 0:
                find_nonzero(totals, 0, n_rows, places, found)
                if n_rows < len(places):
                    n_rows += -n_rows % 8
                    move_together(scratch.root[of], places, n_rows)
                _invert(of, n_missing, n_rows, scratch)
                _add_covariances(of, n_missing, n_rows, flat_second, scratch)
            for r in range(len(places)):
                totals[0, r] = 0.0


@kernel
def _locate_block(n_features: int, n_missing: int, scratch: MixedScratch) -> None:
    """Write where each row's P_mm stands in a flat P: row and column of its upper triangle."""
    for i in range(n_missing):
        for j in range(i + 1):
            for r in range(scratch.missing.shape[1]):
                place = scratch.missing[j, r] * n_features + scratch.missing[i, r]
                scratch.block[i * (i + 1) // 2 + j, r] = place


@kernel
def _pull(cells: np.ndarray, precisions: np.ndarray, g: int, k: int, scratch: MixedScratch) -> None:
    """Write those lines of P d that a row of the tile needs."""
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
    """Cholesky factor R of every row's P_mm, and the constant."""
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
    """Write the product of n entries of ``left`` from i and of ``right`` from j."""
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
    places, found = scratch.places, scratch.found
    for i in range(n_missing):
        column = i * (2 * n_missing - i - 1) // 2
        for j in range(i, n_missing):
            other = j * (2 * n_missing - j - 1) // 2
            entry = j * (j + 1) // 2 + i
            _dot(inverse, column + j, inverse, other + j, n_missing - j, n_rows, lines)
            for r in range(n_rows):
                flat_second[k, block[entry, places[r]]] += found[r] * lines[0, r]
