"""Exact moves within the posterior of exemplars and width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
from jaxtyping import Float
from scipy.special import softmax

from bayesrbf.exemplars import Dissimilarities, Prototypes, Sigma, SigmaPrior
from bayesrbf.numerics.median_lvq.likelihood import ConditionalLikelihood
from bayesrbf.numerics.sampling import draw_categories

FLATTENED: Final = 0.25
"""Power of the likelihood in the first sweeps, which take chains far from each other."""


@dataclass(frozen=True)
class ExemplarSweep:
    """Gibbs sweeps: every exemplar from its full conditional, log sigma along a slice.

    The posterior is left invariant, exactly: under the uniform prior the score of a swap
    is the log full conditional of the exemplar.

    Attributes
    ----------
    rows : Dissimilarities
        Training rows.
    prototypes : Prototypes
        Class of every prototype.
    sigma : SigmaPrior or float
        The width: its prior where it is free, or its value.
    following : ExemplarSweep, optional
        What takes over once there are draws to learn from; this one by default.
    """

    rows: Dissimilarities
    prototypes: Prototypes
    sigma: Sigma
    following: ExemplarSweep | None = None

    def flattened(self) -> ExemplarSweep:
        """Sweeps of a flatter posterior, followed by these.

        Returns
        -------
        ExemplarSweep
            With the likelihood to the power ``FLATTENED``.
        """
        rows = replace(self.rows, weights=FLATTENED * self.rows.weights)
        return replace(self, rows=rows, following=self)

    def sweep(
        self, theta: Float[np.ndarray, " coordinate"], rng: np.random.Generator
    ) -> Float[np.ndarray, " coordinate"]:
        """Draw every exemplar, then the width.

        Parameters
        ----------
        theta : ndarray of shape (dimension,)
            Coordinates: rows of the exemplars, log sigma where it is free.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        ndarray of shape (dimension,)
            Coordinates of the next point.
        """
        moved = theta.copy()
        exemplars = np.rint(theta[: self.prototypes.number]).astype(np.intp)
        likelihood = self._likelihood(theta[-1])
        for prototype, label in enumerate(self.prototypes.classes):
            shares = softmax(likelihood.scores(exemplars, prototype))
            drawn = draw_categories(shares[None], rng)[0]
            exemplars[prototype] = self.rows.candidates[label][drawn]
        moved[: exemplars.size] = exemplars
        if isinstance(self.sigma, SigmaPrior):

            def log_density(log_sigma: float) -> float:
                return self._likelihood(log_sigma).value(exemplars) + log_sigma

            moved[-1] = slice_step(log_density, float(theta[-1]), 2 * self.sigma.spread, rng)
        return moved

    def adapted(self, thetas: Float[np.ndarray, "draw coordinate"]) -> Self | ExemplarSweep:
        """Sweeps of the posterior itself; they have nothing else to learn.

        Parameters
        ----------
        thetas : ndarray of shape (n_draws, dimension)
            Draws, not looked at.

        Returns
        -------
        ExemplarSweep
            What follows, or the same.
        """
        return self if self.following is None else self.following

    def _likelihood(self, log_sigma: float) -> ConditionalLikelihood:
        """The likelihood (and the prior of sigma) at a width."""
        if isinstance(self.sigma, SigmaPrior):
            width = float(np.exp(log_sigma))
            return ConditionalLikelihood(self.rows, self.prototypes, width, self.sigma)
        return ConditionalLikelihood(self.rows, self.prototypes, self.sigma)


def slice_step(
    log_density: Callable[[float], float], start: float, step: float, rng: np.random.Generator
) -> float:
    """One draw along a line that leaves a density invariant: stepping out, shrinking.

    Parameters
    ----------
    log_density : callable
        Log density up to a constant; it must fall to nothing on both sides.
    start : float
        Where the chain is.
    step : float
        Width of the first interval, about that of the density.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    float
        Where the chain goes.

    References
    ----------
    Neal (2003), Slice sampling, Annals of Statistics 31, section 4, figures 3 and 5.
    """
    level = log_density(start) - rng.exponential()
    lower = start - step * rng.random()
    upper = lower + step
    while log_density(lower) > level:
        lower -= step
    while log_density(upper) > level:
        upper += step
    while True:
        candidate = rng.uniform(lower, upper)
        if log_density(candidate) > level:
            return float(candidate)
        lower, upper = (candidate, upper) if candidate < start else (lower, candidate)
