"""Every pair of two sets of rows by a compiled function of two rows.

It is compiled again for each function and not kept on disk: Numba cannot check whether a function
that it was given is still the same.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit


@njit(nogil=True)
def every_pair(
    rows: np.ndarray, others: np.ndarray, metric: Callable[[np.ndarray, np.ndarray], float]
) -> np.ndarray:
    """``metric(rows[n], others[m])`` for every pair; Numba compiled the metric."""
    values = np.empty((len(rows), len(others)))
    for n in range(len(rows)):
        for m in range(len(others)):
            values[n, m] = metric(rows[n], others[m])
    return values
