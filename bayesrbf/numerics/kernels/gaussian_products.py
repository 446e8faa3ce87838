"""Squares and products of the rows of a tile, which all kernels with full covariances use.

A tile holds its rows side by side, one feature a line (D, R), and every inner loop runs over the
rows. Squared distances take four lines of the result at a time from four lines of the input:
sixteen multiply-adds per twelve reads and writes. Products take two lines with four, and fill the
upper triangle only. ``lines`` is scratch (4, place).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bayesrbf.numerics.kernels.compilation import kernel

FEWEST_COLUMNS: Final = 16
"""Below this number of columns, products cost no more than a search for rows that need none."""

MOVE: Final = 20  # Cost of moving a cell, in multiply-adds in vector registers.


@kernel
def count_nonzero(responsibilities: np.ndarray, k: int, n_features: int) -> int:
    """Count the rows of a tile with a responsibility in a component.

    All count where moving those rows together would cost more than it saves.
    """
    width, n_rows = responsibilities.shape[1], 0
    if n_features < FEWEST_COLUMNS:
        return width if responsibilities[k].any() else 0
    for r in range(width):
        n_rows += responsibilities[k, r] != 0.0
    return n_rows if n_rows * (n_features + MOVE) <= width * n_features else width


@kernel
def find_nonzero(
    responsibilities: np.ndarray, k: int, n_rows: int, places: np.ndarray, found: np.ndarray
) -> None:
    """Write the places of the rows that :func:`count_nonzero` counted, and their responsibilities.

    After these, ``places`` repeats the first one and ``found`` is 0.
    """
    width, n = responsibilities.shape[1], 0
    for r in range(width):
        if n_rows == width or responsibilities[k, r] != 0.0:
            places[n] = r
            found[n] = responsibilities[k, r]
            n += 1
    for r in range(n, width):
        places[r] = places[0]
        found[r] = 0.0


@kernel
def move_together(values: np.ndarray, places: np.ndarray, n_rows: int) -> None:
    """Move the rows at ``places`` to the front of a tile's values (line, place)."""
    for i in range(len(values)):
        for r in range(n_rows):
            values[i, r] = values[i, places[r]]


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
    """Add the products of weighted lines i, i + 1 with all lines after them."""
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
