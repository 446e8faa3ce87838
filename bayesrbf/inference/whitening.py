"""Coordinates in which a posterior is nearly round, and starts of chains in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from bayesrbf.inference.approximation import evaluate
from bayesrbf.inference.laplace import GaussianApproximation
from bayesrbf.inference.protocol import LogPosterior

_DISPERSION: Final = 2.0
"""Chains start this many Laplace standard deviations wide: R-hat sees what they forget."""

Density = Callable[[np.ndarray], tuple[float, np.ndarray]]


@dataclass(frozen=True)
class Whitened:
    r"""The log density over z, with :math:`\theta = \hat\theta + C z`.

    Attributes
    ----------
    log_posterior : LogPosterior
        The density over theta, with Jacobian.
    gaussian : GaussianApproximation
        Its mode and C.
    """

    log_posterior: LogPosterior
    gaussian: GaussianApproximation

    def __call__(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """Log density and gradient at a point.

        Parameters
        ----------
        z : ndarray of shape (dimension,)
            Whitened coordinates.

        Returns
        -------
        value : float
            Log density in nats.
        gradient : ndarray of shape (dimension,)
            Its gradient; the value is NaN where either is not finite or the
            model has no value, which nutpie takes as a divergence.
        """
        value, gradient = evaluate(self.log_posterior, self.theta(z))
        if not (np.isfinite(value) and np.isfinite(gradient.sum())):
            return np.nan, np.zeros(z.size)
        return float(value), gradient @ self.gaussian.factor

    def theta(self, z: np.ndarray) -> np.ndarray:
        """Coordinates of points.

        Parameters
        ----------
        z : ndarray of shape (..., dimension)
            Whitened coordinates.

        Returns
        -------
        ndarray of shape (..., dimension)
            Coordinates of the log posterior.
        """
        return self.gaussian.mode + z @ self.gaussian.factor.T


def dispersed(density: Density, dimension: int, seed: int) -> Float[np.ndarray, " coordinate"]:
    """Start of a chain: a draw wider than the posterior, where there is a density.

    Parameters
    ----------
    density : callable
        Log density and gradient at a point, such as a :class:`Whitened`.
    dimension : int
        Number of coordinates.
    seed : int
        Seed of the chain.

    Returns
    -------
    ndarray of shape (dimension,)
        Twice a standard normal draw, halved until its density is finite: it is
        finite at the mode.
    """
    z = _DISPERSION * np.random.default_rng(seed).standard_normal(dimension)
    while not np.isfinite(density(z)[0]):
        z = z / 2
    return z
