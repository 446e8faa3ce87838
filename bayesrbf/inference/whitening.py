"""Coordinates in which a posterior is nearly round, and starts of chains in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from bayesrbf.inference.approximation import evaluate
from bayesrbf.inference.draws import one_after_another
from bayesrbf.inference.gaussian_at_mode import GaussianApproximation
from bayesrbf.inference.protocol import LogPosterior

_DISPERSION: Final = 2.0
"""Chains start this many Laplace standard deviations wide: R-hat sees what they forget."""

_COUPLED: Final = 0.03
"""Correlation in the precision from which two coordinates are whitened together."""

_DENSE: Final = 100
"""Coordinates up to which a dense product is as quick as a sparse one."""

Density = Callable[[np.ndarray], tuple[float, np.ndarray]]


@dataclass(frozen=True)
class Whitened:
    r"""The log density over z, with :math:`\theta = m + C z`.

    Attributes
    ----------
    log_posterior : LogPosterior
        The density over theta, with Jacobian.
    centre : ndarray of shape (dimension,)
        m.
    factor : ndarray or sparse array of shape (dimension, dimension)
        C.
    """

    log_posterior: LogPosterior
    centre: Float[np.ndarray, " coordinate"]
    factor: np.ndarray | csr_array

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
        value, gradient = evaluate(self.log_posterior, self.centre + self.factor @ z)
        if not (np.isfinite(value) and np.isfinite(gradient).all()):
            return np.nan, np.zeros(z.size)
        return float(value), self._transposed @ gradient

    @cached_property
    def _transposed(self) -> np.ndarray | csr_array:
        """C', in the form in which it multiplies quickly."""
        return self.factor.T if isinstance(self.factor, np.ndarray) else csr_array(self.factor.T)

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
        rows = one_after_another(z)
        return self.centre + (self.factor @ rows.T).T.reshape(z.shape)


def whitened(log_posterior: LogPosterior, gaussian: GaussianApproximation) -> Whitened:
    r"""Coordinates in which a posterior is nearly round, at the price of few products.

    Coordinates whose correlation in the precision P is below 3 % are whitened apart: of
    the blocks b that remain, with S the root of the diagonal of P,

    .. math:: C_{bb} = S_b^{-1} \left( S_b^{-1} P_{bb} S_b^{-1} \right)^{-1/2}.

    The symmetric root moves the coordinates least, so that what a sampler learns about
    one z is about one coordinate. What is neglected leaves condition numbers near 1: it
    costs no steps, and a mixture's precision falls into blocks of the size of its columns.

    Parameters
    ----------
    log_posterior : LogPosterior
        The density over theta.
    gaussian : GaussianApproximation
        Its mode and curvature.

    Returns
    -------
    Whitened
        The density over z.
    """
    roots = np.sqrt(np.diag(gaussian.precision))
    correlation = gaussian.precision / np.outer(roots, roots)
    _, block = connected_components(csr_array(np.abs(correlation) > _COUPLED), directed=False)
    order = np.argsort(block, kind="stable")
    rows, columns, entries = [], [], []
    for members in np.split(order, np.flatnonzero(np.diff(block[order])) + 1):
        curvatures, axes = np.linalg.eigh(correlation[np.ix_(members, members)])
        root = (axes / np.sqrt(curvatures)) @ axes.T / roots[members, None]
        rows.append(np.repeat(members, members.size))
        columns.append(np.tile(members, members.size))
        entries.append(root.reshape(-1))
    places = (np.concatenate(rows), np.concatenate(columns))
    factor = csr_array((np.concatenate(entries), places), shape=correlation.shape)
    small = roots.size <= _DENSE
    return Whitened(log_posterior, gaussian.mode, factor.toarray() if small else factor)


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
