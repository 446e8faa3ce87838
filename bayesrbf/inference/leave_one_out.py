"""How well rows are predicted that are left out in turn: without fitting again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from arviz_stats.base.array import array_stats
from jaxtyping import Float
from scipy.special import logsumexp

from bayesrbf.inference.draws import Draws, one_after_another
from bayesrbf.inference.importance import SMALLEST
from bayesrbf.numerics.log_posterior import LogPosterior

PARETO_K: Final = 0.7
"""Tail shape above which importance ratios represent nothing; Vehtari et al. (2024)."""
_ROWS: Final = 2000
"""Rows that are left out in turn: more would take longer and say the same."""
_ENTRIES: Final = 4_000_000
"""Log likelihoods that are held at once: 32 MiB."""


@dataclass(frozen=True)
class LeaveOneOut:
    """Expected log predictive density of rows, each left out of its own posterior."""

    elpd: float  # Sum over the rows, in nats; the rows' weights are not used.
    se: float  # Standard error of elpd over rows.
    p_loo: float  # Effective number of parameters: what the rows themselves add to the fit.
    pareto_k: Float[np.ndarray, " used"]  # Tail shapes of the rows' importance ratios.
    n_obs: int  # Rows of the table.
    n_draws: int  # Draws that were used.
    thinning: int  # Distance of the draws that were used.
    approximate: bool  # Whether the draws come from an approximation.
    corrected: bool  # Whether its own importance ratios correct for that.

    @property
    def good_k(self) -> float:
        """Bound of a row's tail shape, below 0.7 where draws are few."""
        return float(min(1 - 1 / np.log10(max(self.n_draws, 2)), PARETO_K))

    @property
    def judged(self) -> bool:
        """Whether there are draws enough for a tail."""
        return self.n_draws >= SMALLEST

    @property
    def n_bad(self) -> int:
        """Rows whose own posterior is too far from that of all rows for importance sampling."""
        return int(np.sum(~(self.pareto_k <= self.good_k)))

    @property
    def how(self) -> str:
        """How it was computed."""
        smoothed = "Pareto-smoothed importance" if self.judged else "plain importance"
        parts = [f"{smoothed} sampling of {self.n_draws} draws"]
        if self.thinning > 1:
            parts.append(f"one in {self.thinning}")
        if self.corrected:
            parts.append("corrected for the approximation that they come from")
        elif self.approximate:
            parts.append("taken as draws of the posterior")
        if self.pareto_k.size < self.n_obs:
            parts.append(f"scaled up from {self.pareto_k.size} rows")
        return ", ".join(parts)


def leave_one_out(log_posterior: LogPosterior, draws: Draws) -> LeaveOneOut:
    r"""Leave rows out in turn, by Pareto-smoothed importance sampling.

    .. math:: \operatorname{elpd} = \sum_n \log p(x_n | x_{-n}), \quad
        p(\theta | x_{-n}) \propto p(\theta | x) / p(x_n | \theta).

    Of long tables 2,000 rows are left out and the sum is scaled up; of many draws some are taken,
    evenly spaced. Draws of an approximation are weighted by its own importance ratios too, where
    those have no heavy tail. ValueError if there is one draw only.

    References
    ----------
    Vehtari, Gelman, Gabry (2017), Practical Bayesian model evaluation using
    leave-one-out cross-validation and WAIC, Statistics and Computing 27;
    Magnusson, Andersen, Jonasson, Vehtari (2019), Bayesian leave-one-out
    cross-validation for large data, ICML, for draws of an approximation.
    """
    if draws.point_estimate:
        raise ValueError(
            "leave_one_out needs draws of a posterior; received a point estimate: "
            "refine('laplace') gives them."
        )
    log_likelihood, n_obs, thinning = _log_likelihood(log_posterior, draws)
    approximate = "log_q" in draws.stats and not draws.attributes.get("resampled")
    corrected = approximate and float(draws.attributes["pareto_k"]) <= PARETO_K
    axes = {"chain_axis": 0, "draw_axis": 1}
    n_draws = log_likelihood.shape[0] * log_likelihood.shape[1]
    if n_draws < SMALLEST:
        found = _unsmoothed(log_likelihood)
    elif corrected:
        ratios = (draws.stats[name][:, ::thinning, None] for name in ("lp", "log_q"))
        log_p, log_q = (np.broadcast_to(ratio, log_likelihood.shape) for ratio in ratios)
        found = array_stats.loo_approximate_posterior(log_likelihood, log_p, log_q, **axes)
    else:
        worth = array_stats.ess(draws.stats["lp"], method="mean", relative=True, **axes)
        r_eff = float(np.clip(np.nan_to_num(worth, nan=1.0), 0.01, 1.0))
        found = _smoothed(log_likelihood, r_eff)
    elpds, pareto_k, own = (np.asarray(values) for values in found)
    elpd, missed, spread = array_stats.srs_estimator(elpds, n_obs)
    return LeaveOneOut(
        elpd=float(elpd),
        se=float(np.sqrt(missed + spread)),
        p_loo=float(own.mean() * n_obs),
        pareto_k=pareto_k,
        n_obs=n_obs,
        n_draws=n_draws,
        thinning=thinning,
        approximate=approximate,
        corrected=corrected,
    )


def _smoothed(
    log_likelihood: Float[np.ndarray, "chain kept used"], r_eff: float
) -> tuple[Float[np.ndarray, " used"], ...]:
    """Pareto-smoothed rows.

    Where the largest ratios are all the same there is no tail. So it is with discrete parameters:
    the worst of few values for a row is drawn often.
    """
    n_draws = log_likelihood.shape[0] * log_likelihood.shape[1]
    tail = int(3 * np.sqrt(n_draws / r_eff) if n_draws > 225 else n_draws / 5)
    least = np.sort(log_likelihood.reshape(n_draws, -1), axis=0)[:tail]
    bounded = np.ptp(least, axis=0) < np.finfo(float).tiny
    elpds, pareto_k, own = _unsmoothed(log_likelihood)
    pareto_k[bounded] = -np.inf
    if not bounded.all():
        rest = log_likelihood[:, :, ~bounded]
        found = array_stats.loo(rest, r_eff=r_eff, chain_axis=0, draw_axis=1)
        elpds[~bounded], pareto_k[~bounded], own[~bounded] = found
    return elpds, pareto_k, own


def _unsmoothed(
    log_likelihood: Float[np.ndarray, "chain kept used"],
) -> tuple[Float[np.ndarray, " used"], ...]:
    """Harmonic means, for draws too few to have a tail that could be judged."""
    rows = log_likelihood.reshape(-1, log_likelihood.shape[2])
    elpds = np.log(len(rows)) - logsumexp(-rows, axis=0)
    own = logsumexp(rows, axis=0) - np.log(len(rows)) - elpds
    return elpds, np.full(elpds.size, np.nan), own


def _log_likelihood(
    log_posterior: LogPosterior, draws: Draws
) -> tuple[Float[np.ndarray, "chain kept used"], int, int]:
    """Log likelihood of some rows under some draws, the number of rows, and the thinning."""
    n_obs = log_posterior.pointwise(draws.theta[0, 0]).size
    rows = np.arange(n_obs)
    if n_obs > _ROWS:  # a table may be sorted, so that every k-th row would not do
        rows = np.sort(np.random.default_rng(0).choice(n_obs, _ROWS, replace=False))
    thinning = -(-draws.n_draws * rows.size // _ENTRIES)
    thetas = draws.theta[:, :: max(thinning, 1)]
    flat = one_after_another(thetas)
    values = np.empty((len(flat), rows.size))
    size = max(1, _ENTRIES // n_obs)  # draws: all rows of theirs come, left out or not
    for start in range(0, len(flat), size):
        some = slice(start, start + size)
        values[some] = log_posterior.log_likelihoods(flat[some])[:, rows]
    return values.reshape(*thetas.shape[:2], rows.size), n_obs, max(thinning, 1)
