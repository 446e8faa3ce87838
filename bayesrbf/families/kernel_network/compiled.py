"""Corrections of a Laplace kernel for missing cells: the logarithm of h, pair by pair."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import erfcx

from bayesrbf.base.compiled import entry_point, exponential, inlined, logarithm

CENTRE: Final = 3.75
DEGREE: Final = 20
"""Constant c and number of powers of the series of erfcx, for an error of 4e-15."""


def _terms() -> tuple[float, ...]:
    """Coefficients b, that of the highest power first, by interpolation at Chebyshev points."""
    t = chebyshev.chebpts1(2 * DEGREE + 1)
    x = CENTRE * (1 + t) / (1 - t)
    # Fitted to twice the degree and cut: higher terms do not disturb those that stay.
    series = chebyshev.chebfit(t, (1 + 2 * x) * erfcx(x), 2 * DEGREE)[: DEGREE + 1]
    return tuple(float(b) for b in chebyshev.cheb2poly(series)[::-1])


TERMS: Final = _terms()
EVEN, ODD = TERMS[::2], TERMS[1::2]
"""Terms of even and of odd powers: two short sums, which the compiler unrolls."""
ROOT_HALF: Final = math.sqrt(0.5)


@inlined
def scaled_complement(x: float) -> float:
    r"""Compute erfcx(x) of a number that is not negative, to 4e-15 of its value.

    .. math:: \mathrm{erfcx}(x) = e^{x^2} \mathrm{erfc}(x) = \frac1{1 + 2x} \sum_{i=0}^{20} b_i t^i,
        \quad t = (x - c) / (x + c), \; c = 3.75

    See Shepherd and Laframboise (1981), Chebyshev approximation of (1 + 2x) exp(x^2) erfc(x) in
    0 <= x < infinity, Mathematics of Computation 36, 249-253.
    """
    t = (x - CENTRE) / (x + CENTRE)
    square = t * t
    even, odd = 0.0, 0.0
    for term in EVEN:
        even = even * square + term
    for term in ODD:
        odd = odd * square + term
    return (even + t * odd) / (1.0 + 2.0 * x)


@inlined
def log_laplace_hole(d: float, variance: float, rate: float) -> float:
    r"""Compute log h of a pair of cells of which one or both are missing.

    With the rate a, the difference d of the means and the sum :math:`s^2` of the variances,

    .. math::
       h = \tfrac12 [\mathrm{erfc}(z) + e^{2ad} \mathrm{erfc}(z')], \quad
       z, z' = (as \mp d/s) / \sqrt 2 .

    The second term is :math:`e^{-z^2} \mathrm{erfcx}(z')`, which cannot overflow. Above 0,
    :math:`e^{-z^2}` is a factor of the first term, too, and its logarithm is taken apart; below,
    erfc(z) = 2 - erfc(-z).
    """
    s = math.sqrt(variance)
    near, far = rate * s, d / s
    z = (near - far) * ROOT_HALF
    square = z * z
    own, other = scaled_complement(abs(z)), scaled_complement((near + far) * ROOT_HALF)
    below = 1.0 + 0.5 * exponential(-square) * (other - own)
    above = 0.5 * (own + other)
    return logarithm(above if z > 0.0 else below) - (square if z > 0.0 else 0.0)


@entry_point
def add_laplace_holes(
    values: np.ndarray,
    left_means: np.ndarray,
    left_variances: np.ndarray,
    right_means: np.ndarray,
    right_variances: np.ndarray,
    rates: np.ndarray,
) -> None:
    """Add log h of all pairs with a missing cell, real column by column, to log kernel values.

    Means and variances are (column, row); a variance of 0 is that of an observed cell.
    """
    n_columns, n_right = right_means.shape
    every, missing = np.arange(n_right), np.empty(n_right, np.int64)
    d, variance = np.empty(n_right), np.empty(n_right)
    for column in range(n_columns):
        rate, means, variances = rates[column], right_means[column], right_variances[column]
        n_missing = 0
        for j in range(n_right):
            if variances[j] > 0.0:
                missing[n_missing] = j
                n_missing += 1
        for i in range(values.shape[0]):
            mean, own = left_means[column, i], left_variances[column, i]
            positions = every if own > 0.0 else missing[:n_missing]
            for k in range(positions.size):
                d[k], variance[k] = abs(mean - means[positions[k]]), own + variances[positions[k]]
            for k in range(positions.size):
                d[k] = log_laplace_hole(d[k], variance[k], rate)
            for k in range(positions.size):
                values[i, positions[k]] += d[k]
