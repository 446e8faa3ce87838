"""Doubles with fewer digits, and numbers that only rounding tells apart."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float, Int

LEAST_SINGLE, MOST_SINGLE = 1e-30, 1e30
"""Single precision has all its digits in this range."""
LEAST_DISPUTED_PROBABILITY: Final = 1e-4
"""Probabilities are held this far from 0 and 1: beyond, models disagree about nothing."""


def single_digits(values: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Doubles with the digits of single precision where it has them; a zero has no sign."""
    held = (np.abs(values) > LEAST_SINGLE) & (np.abs(values) < MOST_SINGLE)
    single = np.where(held, values, 0.0).astype(np.float32).astype(np.float64)
    # Adding 0.0 takes the sign off -0.0.
    rounded: Float[np.ndarray, "*shape"] = np.where(held, single, values + 0.0)
    return rounded


ROUNDING_OF_RANKS: Final = 1e-10
"""Relative difference that rounding may explain; a number below one counts as one."""


def ranked(
    values: Float[np.ndarray, " item"], rounding: float = ROUNDING_OF_RANKS
) -> Int[np.ndarray, " item"]:
    """Places of the numbers from the highest down; what only rounding tells apart keeps its order.

    >>> ranked(np.array([1.0, 3.0, 3.0 + 1e-14, 7.0])).tolist()
    [3, 1, 2, 0]
    """
    order = np.argsort(-values, kind="stable")
    falling = values[order]
    least = falling[:-1] - rounding * np.maximum(1.0, np.abs(falling[:-1]))
    lower = ~(falling[1:] >= least)  # so that NaN is lowest
    group = np.cumsum(np.append(False, lower)[: values.size])
    return order[np.lexsort([order, group])]
