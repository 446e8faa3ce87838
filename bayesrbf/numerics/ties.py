"""Choices among numbers that rounding must not decide: such a tie goes to the first."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Float, Int

ROUNDING: Final = 1e-10
"""Relative difference that rounding may explain; a number below one counts as one."""


def ranked(
    values: Float[np.ndarray, " item"], rounding: float = ROUNDING
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
