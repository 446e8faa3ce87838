"""Doubles with fewer digits, which a file stores in half the space."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

LEAST, MOST = 1e-30, 1e30
"""Single precision has all its digits in this range."""


def single_digits(values: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Doubles with the digits of single precision where it has them; a zero has no sign."""
    held = (np.abs(values) > LEAST) & (np.abs(values) < MOST)
    single = np.where(held, values, 0.0).astype(np.float32).astype(np.float64)
    rounded: Float[np.ndarray, "*shape"] = np.where(held, single, values + 0.0)
    return rounded
