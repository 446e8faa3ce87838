"""What is said of a new number: one normal a draw, or Student's t about the fitted point."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp, ndtr, ndtri
from scipy.stats import t as student

BISECTIONS = 60
"""Halvings of a bracket: 1e-18 of its width, below rounding."""


@dataclass(frozen=True)
class NormalMixture:
    """Equal mixture of the normals that posterior draws speak of, one mixture a row.

    Attributes
    ----------
    means : ndarray of shape (n_draws, n_obs)
        Mean of each row under each draw.
    sds : ndarray of shape (n_draws,)
        Standard deviation under each draw.

    Examples
    --------
    >>> normal = NormalMixture(np.array([[1.0], [1.0]]), np.ones(2))
    >>> normal.quantile(0.975).round(2)
    array([2.96])
    """

    means: Float[np.ndarray, "draw obs"]
    sds: Float[np.ndarray, " draw"]

    def mean(self) -> Float[np.ndarray, " obs"]:
        """Mean of each response."""
        return self.means.mean(axis=0)

    def sd(self) -> Float[np.ndarray, " obs"]:
        """Standard deviation: noise, and how far the draws' means lie apart."""
        return np.sqrt(self.means.var(axis=0) + (self.sds**2).mean())

    def quantile(self, prob: float) -> Float[np.ndarray, " obs"]:
        """Quantile by bisection between those of the outermost normals.

        Parameters
        ----------
        prob : float
            Probability below the quantile, within (0, 1).

        Returns
        -------
        ndarray of shape (n_obs,)
            Quantiles, in the units of the response.
        """
        single = self.means + self.sds[:, None] * ndtri(prob)
        lower, upper = single.min(axis=0), single.max(axis=0)
        if len(self.means) == 1:
            return lower
        for _ in range(BISECTIONS):
            middle = 0.5 * (lower + upper)
            below = ndtr((middle - self.means) / self.sds[:, None]).mean(axis=0) < prob
            lower, upper = np.where(below, middle, lower), np.where(below, upper, middle)
        return 0.5 * (lower + upper)

    def log_density(self, values: Float[np.ndarray, " obs"]) -> Float[np.ndarray, " obs"]:
        """Log density of given responses.

        Parameters
        ----------
        values : ndarray of shape (n_obs,)
            Where, in the units of the response.

        Returns
        -------
        ndarray of shape (n_obs,)
            Log densities in nats.
        """
        scaled = (values - self.means) / self.sds[:, None]
        each = -0.5 * scaled**2 - np.log(self.sds * np.sqrt(2 * np.pi))[:, None]
        return logsumexp(each, axis=0) - np.log(len(self.means))

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, " obs"]:
        """One response of each row.

        Parameters
        ----------
        rng : Generator
            Source of draws.

        Returns
        -------
        ndarray of shape (n_obs,)
            Responses.
        """
        n_draws, n_obs = self.means.shape
        chosen = rng.integers(n_draws, size=n_obs)
        return self.means[chosen, np.arange(n_obs)] + self.sds[chosen] * rng.normal(size=n_obs)


@dataclass(frozen=True)
class StudentT:
    """Student's t about the fitted point, one scale for all rows.

    Attributes
    ----------
    locations : ndarray of shape (n_obs,)
        Mean of each row.
    scale : float
        Scale in the units of the response.
    df : float
        Degrees of freedom, above 2.

    Examples
    --------
    >>> StudentT(np.zeros(1), scale=2.0, df=4.0).sd().round(3)
    array([2.828])
    """

    locations: Float[np.ndarray, " obs"]
    scale: float
    df: float

    def mean(self) -> Float[np.ndarray, " obs"]:
        """Mean of each response."""
        return self.locations

    def sd(self) -> Float[np.ndarray, " obs"]:
        """Standard deviation, ``scale sqrt(df / (df - 2))``."""
        return np.full_like(self.locations, self.scale * np.sqrt(self.df / (self.df - 2)))

    def quantile(self, prob: float) -> Float[np.ndarray, " obs"]:
        """Quantile of each response.

        Parameters
        ----------
        prob : float
            Probability below the quantile, within (0, 1).

        Returns
        -------
        ndarray of shape (n_obs,)
            Quantiles, in the units of the response.
        """
        return self.locations + self.scale * student.ppf(prob, self.df)

    def log_density(self, values: Float[np.ndarray, " obs"]) -> Float[np.ndarray, " obs"]:
        """Log density of given responses.

        Parameters
        ----------
        values : ndarray of shape (n_obs,)
            Where, in the units of the response.

        Returns
        -------
        ndarray of shape (n_obs,)
            Log densities in nats.
        """
        density: Float[np.ndarray, " obs"] = student.logpdf(
            values, self.df, self.locations, self.scale
        )
        return density

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, " obs"]:
        """One response of each row.

        Parameters
        ----------
        rng : Generator
            Source of draws.

        Returns
        -------
        ndarray of shape (n_obs,)
            Responses.
        """
        return self.locations + self.scale * rng.standard_t(self.df, size=self.locations.size)
