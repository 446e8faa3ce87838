r"""Exponential and logarithm as polynomials, for loops that run in vector registers.

The C library's functions take one number at a time, and cost more than all the rest of an
E-step over a table with few columns.

**Exponential.** With :math:`n = \lfloor x / \ln 2 + 1/2 \rfloor` and
:math:`r = x - n \ln 2`, :math:`|r| \le 0.347`,

.. math:: e^x = 2^n \sum_{i=0}^{13} r^i / i! ,

whose truncation error is below :math:`0.347^{14}/14! < 5 \cdot 10^{-18}`. The logarithm of 2
is split into a part short enough that n times it is exact and a remainder, so that r is
exact to rounding. In all: within 2 units in the last place. Below :data:`NEGLIGIBLE` the
result is exactly 0.

**Logarithm.** With :math:`x = 2^e m`, :math:`m \in [\sqrt{1/2}, \sqrt 2)` and
:math:`s = (m - 1)/(m + 1)`, :math:`|s| \le 0.172`,

.. math:: \ln x = e \ln 2 + 2 \sum_{i=0}^{10} s^{2i+1} / (2i + 1) ,

whose truncation error is below :math:`2 |s| \cdot s^{22}/23 < 4 \cdot 10^{-18} |\ln m|`: within
4 units in the last place for every positive normal number.

The kernels do not compile under free reassociation, which would fold the two parts of
:math:`\ln 2` into one.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from bayesrbf.numerics.kernels.compilation import exact_kernel

NEGLIGIBLE: Final = -72.0
"""Log of the smallest responsibility that is not zero, 5e-32, the square of the rounding error.

Nothing is lost beside a component of responsibility one, nor from the sums of a component that has
any weight beside its prior, and rows cost no second moments where they do not belong.
"""

INVERSE_LN_2: Final = 1 / math.log(2)
LN_2: Final = math.log(2)
LN_2_HIGH: Final = float.fromhex("0x1.62e42feep-1")
LN_2_LOW: Final = float.fromhex("0x1.a39ef35793c76p-33")

SHIFT: Final = 1.5 * 2.0**52 + 1023
"""Added to a small whole number n, it leaves n + 1023, a biased exponent, in the low bits."""

FRACTION_BITS: Final = np.int64(52)
SQRT_HALF_BITS: Final = np.int64(np.float64(math.sqrt(0.5)).view(np.int64))

EXPONENTIAL_TERMS: Final = tuple(1 / math.factorial(i) for i in range(13, -1, -1))
LOGARITHM_TERMS: Final = tuple(2.0 / (2 * i + 1) for i in range(10, 0, -1))


@exact_kernel
def exponential(x: float) -> float:
    """Compute e^x of a number that is not positive; 0 below :data:`NEGLIGIBLE`."""
    # Bounded before the exponent is built from bits, though the result is 0 there anyway.
    bounded = max(x, NEGLIGIBLE)
    n = np.floor(bounded * INVERSE_LN_2 + 0.5)
    r = (bounded - n * LN_2_HIGH) - n * LN_2_LOW
    series = 0.0
    for term in EXPONENTIAL_TERMS:
        series = series * r + term
    bits = np.float64(n + SHIFT).view(np.int64)
    power = np.int64(bits << FRACTION_BITS).view(np.float64)
    return series * power if x > NEGLIGIBLE else 0.0


@exact_kernel
def logarithm(x: float) -> float:
    """Compute the natural logarithm of a positive normal number."""
    bits = np.float64(x).view(np.int64)
    # The bits of positive doubles rise with their values: counted from sqrt(1/2) they give the
    # exponent that leaves m between sqrt(1/2) and sqrt(2).
    exponent = (bits - SQRT_HALF_BITS) >> FRACTION_BITS
    m = np.int64(bits - (exponent << FRACTION_BITS)).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    square = s * s
    series = 0.0
    for term in LOGARITHM_TERMS:
        series = series * square + term
    return exponent * LN_2 + (series * square * s + 2.0 * s)
