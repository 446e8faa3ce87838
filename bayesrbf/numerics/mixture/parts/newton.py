"""Newton's method on many small problems at once; no step lowers a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import Float

STEPS: Final = 10
HALVINGS: Final = 30
SMALLEST_STEP: Final = 1e-6
"""Newton's method ends at a step this small; the error that is left is about its square."""
ROUNDING_OF_NEWTON_STEP: Final = 1e-13
"""Relative fall of a value that rounding may explain."""

Problems = Float[np.ndarray, "*problem"]
Points = Float[np.ndarray, "*any_shape"]
"""Numbers, or vectors along the first axis, of every problem."""


def climb(
    value: Callable[[Points], Problems], step: Callable[[Points], Points], start: Points
) -> Points:
    """Follow steps from a start, each halved until its problem's value does not fall.

    A value that is no number counts as a fall: a step may leave the domain. At most ``STEPS``
    are made.
    """
    here, height = start, value(start)
    for _ in range(STEPS):
        move, least = step(here), height - ROUNDING_OF_NEWTON_STEP * np.abs(height)
        for _ in range(HALVINGS):
            with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
                found = value(here + move)
            rises = found >= least
            if rises.all():
                break
            move = np.where(rises, move, 0.5 * move)
        move = np.where(rises, move, 0.0)
        here, height = here + move, np.where(rises, found, height)
        if (np.abs(move) <= SMALLEST_STEP).all():
            break
    return here
