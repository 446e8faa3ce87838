"""Exact moves within the posterior of exemplars and width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Self

import numpy as np
from jaxtyping import Float

from bayesrbf.exemplars import Dissimilarities, Prototypes, Sigma, SigmaPrior
from bayesrbf.numerics.median_lvq.likelihood import ConditionalLikelihood, label_logs, log_normal
from bayesrbf.numerics.median_lvq.objective import Exemplars

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
        width = float(np.exp(theta[-1])) if isinstance(self.sigma, SigmaPrior) else self.sigma
        scorer = ConditionalLikelihood(self.rows, self.prototypes, width).scorer(exemplars)
        order = np.arange(exemplars.size)
        exemplars = scorer.sweep(exemplars, order, uniforms=rng.random(exemplars.size))
        moved[: exemplars.size] = exemplars
        if isinstance(self.sigma, SigmaPrior):
            log_density = partial(self._log_density, self._columns(exemplars), self.sigma)
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

    def _columns(self, exemplars: Exemplars) -> Float[np.ndarray, "labelled prototype"]:
        """Dissimilarities of the labelled rows to exemplars."""
        columns = self.rows.values[self.rows.labelled[:, None], exemplars]
        return columns.astype(np.float64, copy=False)

    def _log_density(
        self,
        columns: Float[np.ndarray, "labelled prototype"],
        prior: SigmaPrior,
        log_sigma: float,
    ) -> float:
        """Log density of log sigma under exemplars, up to a constant."""
        sigma, labelled = float(np.exp(log_sigma)), self.rows.labelled
        logs = label_logs(columns, self.rows.labels[labelled], self.prototypes, sigma)
        return float(self.rows.weights[labelled] @ logs) + log_normal(sigma, prior) + log_sigma


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
