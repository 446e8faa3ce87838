"""The strictly lower entries of a matrix, row by row, as ``precision_lower`` has them."""

from __future__ import annotations

from functools import cache

import numpy as np
from jaxtyping import Int


@cache
def lower_entries(size: int) -> tuple[Int[np.ndarray, " entry"], Int[np.ndarray, " entry"]]:
    """Rows and columns of the entries."""
    rows, columns = np.tril_indices(size, -1)
    return rows, columns


@cache
def lower_places(size: int) -> Int[np.ndarray, " entry"]:
    """Places of the entries in the flattened matrix."""
    rows, columns = lower_entries(size)
    return rows * size + columns
