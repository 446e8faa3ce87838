r"""Unconstrained coordinates of declared variables, as PyMC's value variables have them.

- identity: :math:`\theta = v`;
- log: :math:`\theta = \log v`, log Jacobian :math:`\theta`;
- simplex: :math:`\theta = (\log p - \overline{\log p})` without its last entry,
  log Jacobian :math:`\sum \log p + \log K`.

All simplices go through one pass, however many variables they make up.
"""

from __future__ import annotations

from bayesrbf.numerics.coordinates.places import slices
from bayesrbf.numerics.coordinates.simplices import (
    SMALLEST_PROBABILITY,
    Simplices,
    safe_log,
    simplex_gradient,
)
from bayesrbf.numerics.coordinates.transforms import (
    log_jacobian,
    to_constrained,
    to_unconstrained,
)

__all__ = [
    "SMALLEST_PROBABILITY",
    "Simplices",
    "log_jacobian",
    "safe_log",
    "simplex_gradient",
    "slices",
    "to_constrained",
    "to_unconstrained",
]
