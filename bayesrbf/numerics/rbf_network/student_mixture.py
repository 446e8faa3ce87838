"""Predictive laws of a number: equal mixtures of normals or Student's t, one a draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp, ndtr, ndtri, stdtr, stdtrit
from scipy.stats import t as student

BISECTIONS = 60  # Halvings of a bracket: 1e-18 of its width, below rounding.


@dataclass(frozen=True)
class StudentMixture:
    """Equal mixture of Student's t (normals, if ``df`` is infinite), one mixture a row.

    >>> normal = StudentMixture(np.array([[1.0], [1.0]]), np.ones(2))
    >>> normal.quantile(0.975).round(2)
    array([2.96])
    >>> StudentMixture(np.zeros((1, 1)), np.full(1, 2.0), df=4.0).sd().round(3)
    array([2.828])
    """

    locations: Float[np.ndarray, "draw obs"]
    """Mean of each row under each draw of parameters or missing cells."""
    scales: Float[np.ndarray, " draw"]  # Scale under each draw, in the units of the response.
    df: float = np.inf  # Degrees of freedom, above 2.

    def mean(self) -> Float[np.ndarray, " obs"]:
        """Mean of each response."""
        return self.locations.mean(axis=0)

    def sd_of_mean(self) -> Float[np.ndarray, " obs"]:
        """Spread of the draws' means: what noise has no part in."""
        return self.locations.std(axis=0)

    def sd(self) -> Float[np.ndarray, " obs"]:
        """Standard deviation of each response: noise and the spread of the draws' means."""
        noise = (self.scales**2).mean() / (1 - 2 / self.df)
        return np.sqrt(self.sd_of_mean() ** 2 + noise)

    def interval(self, prob: float) -> Float[np.ndarray, "obs 2"]:
        """Equal-tailed interval of each response; ``prob`` is the probability inside."""
        ends = [self.quantile(tail) for tail in ((1 - prob) / 2, (1 + prob) / 2)]
        return np.stack(ends, axis=1)

    def quantile(self, prob: float) -> Float[np.ndarray, " obs"]:
        """Quantile of each response, by bisection between those of the outermost draws.

        ``prob`` is the probability below the quantile, within (0, 1).
        """
        single = self.locations + self.scales[:, None] * _standard_quantile(prob, self.df)
        lower, upper = single.min(axis=0), single.max(axis=0)
        if len(self.locations) == 1:
            return lower
        # The quantile of a mixture lies between the extreme ones of its parts.
        for _ in range(BISECTIONS):
            middle = 0.5 * (lower + upper)
            scaled = (middle - self.locations) / self.scales[:, None]
            below = _standard_cdf(scaled, self.df).mean(axis=0) < prob
            lower, upper = np.where(below, middle, lower), np.where(below, upper, middle)
        return 0.5 * (lower + upper)

    def log_density(self, values: Float[np.ndarray, " obs"]) -> Float[np.ndarray, " obs"]:
        """Log density of given responses in nats, per unit of the response."""
        scales = self.scales[:, None]
        each = student.logpdf((values - self.locations) / scales, self.df) - np.log(scales)
        return logsumexp(each, axis=0) - np.log(len(each))

    def draw(self, rng: np.random.Generator) -> Float[np.ndarray, " obs"]:
        """One response of each row."""
        n_draws, n_obs = self.locations.shape
        chosen = rng.integers(n_draws, size=n_obs)
        noise = _standard_quantile(rng.random(n_obs), self.df)
        return self.locations[chosen, np.arange(n_obs)] + self.scales[chosen] * noise


def _standard_cdf(values: np.ndarray, df: float) -> np.ndarray:
    """Cumulative distribution; scipy.stats takes ten times as long."""
    return np.asarray(ndtr(values) if np.isinf(df) else stdtr(df, values))


def _standard_quantile(prob: float | np.ndarray, df: float) -> np.ndarray:
    """Quantiles of the standard distribution."""
    return np.asarray(ndtri(prob) if np.isinf(df) else stdtrit(df, prob))
