"""Numbers that stand for draws: scrambled Sobol points, and the nodes of a quadrature."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from jaxtyping import Float
from scipy.special import ndtri, roots_hermitenorm
from scipy.stats import qmc

_PLACES, _MASSES = roots_hermitenorm(16)
QUADRATURE = _PLACES, _MASSES / _MASSES.sum()
"""Gauss-Hermite places and their probabilities: ``E[f(u)]`` of a standard normal number u."""


@lru_cache(maxsize=32)
def uniforms(
    n_points: int, dimension: int, replicate: int = 0
) -> Float[np.ndarray, "point dimension"]:
    """Points that fill the unit cube evenly, strictly between 0 and 1; read-only.

    ``n_points`` is a power of two. ``replicate`` numbers the scrambling: the spread of estimates
    over replicates is their error.

    >>> points = uniforms(64, 2)
    >>> bool(abs(points.mean() - 0.5) < 0.01)
    True
    """
    if dimension == 0:
        return np.empty((n_points, 0))
    points = qmc.Sobol(dimension, rng=np.random.default_rng(replicate)).random(n_points)
    # A scrambled point can be 0, whose normal number is infinite.
    points = np.clip(points, 2.0**-40, 1 - 2.0**-40)
    points.setflags(write=False)
    return points


def normals(
    n_points: int, dimension: int, replicate: int = 0
) -> Float[np.ndarray, "point dimension"]:
    """Points of :func:`uniforms` as standard normal numbers, ``Phi^-1(u)``."""
    return np.asarray(ndtri(uniforms(n_points, dimension, replicate)))
