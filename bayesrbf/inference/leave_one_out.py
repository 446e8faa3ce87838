"""How well left-out rows are predicted, without fitting again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from arviz_stats.base.array import array_stats
from jaxtyping import Bool, Float, Int
from scipy.special import logsumexp

from bayesrbf.inference.approximation import PARETO_K, SMALLEST, covers
from bayesrbf.inference.draws import Draws, one_after_another
from bayesrbf.numerics.log_posterior import LogPosterior
from bayesrbf.records.mixture import in_blocks

_ROWS: Final = 2000  # Rows that are left out in turn: more would take longer and say the same.
_NOTHING: Final = 1e-12  # Log likelihoods this small are zero but for rounding.
_ENTRIES: Final = 16_000_000
"""Log likelihoods that are held at once: 122 MiB, or all rows above under 8,000 draws."""


@dataclass(frozen=True)
class LeaveOneOut:
    """Expected log predictive density of rows, each left out of its own posterior.

    The figures take the draws as they are, as ``az.loo`` does. What an approximation leaves in
    doubt is part of the verdict.
    """

    elpd: float  # Sum over the rows, in nats; the rows' weights are not used.
    se: float  # Standard error of elpd over rows.
    p_loo: float  # Effective number of parameters: what the rows themselves add to the fit.
    pareto_k: Float[np.ndarray, " used"]  # Tail shapes of the rows' importance ratios.
    # Tail shapes with the ratios of an approximation multiplied in; else the same as pareto_k.
    reach_k: Float[np.ndarray, " used"]
    n_obs: int  # Rows of the table of which something is scored.
    n_draws: int  # Draws that were used.
    thinning: int  # Distance of the draws that were used.
    approximate: bool  # Whether the draws come from an approximation.
    covered: bool  # Whether the draws cover the posterior.
    weighted: float  # elpd with an approximation's draws weighted towards the posterior; or NaN.

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
    def n_far(self) -> int:
        """Rows whose own posterior is too far from what made the draws."""
        return int(np.sum(~(self.reach_k <= self.good_k)))

    @property
    def trusted(self) -> bool:
        """Whether elpd can be: never where the draws miss part of the posterior."""
        return self.judged and self.covered and self.n_bad == 0 and self.n_far == 0

    @property
    def how(self) -> str:
        """The method of computation, in words."""
        smoothed = "Pareto-smoothed importance" if self.judged else "plain importance"
        parts = [f"{smoothed} sampling of {self.n_draws} draws"]
        if self.thinning > 1:
            parts.append(f"one in {self.thinning}")
        if self.approximate:
            parts.append("taken as draws of the posterior")
        if not np.isnan(self.weighted):
            parts.append(f"{self.weighted:.5g} with the weights of the approximation")
        if self.pareto_k.size < self.n_obs:
            parts.append(f"scaled up from {self.pareto_k.size} rows")
        return ", ".join(parts)


def leave_one_out(
    log_posterior: LogPosterior,
    draws: Draws,
    places: Int[np.ndarray, " row"] | None = None,
    units: Int[np.ndarray, " row"] | None = None,
) -> LeaveOneOut:
    r"""Leave rows out in turn, by Pareto-smoothed importance sampling.

    .. math:: \operatorname{elpd} = \sum_n \log p(x_n | x_{-n}), \quad
        p(\theta | x_{-n}) \propto p(\theta | x) / p(x_n | \theta).

    It is what ``az.loo`` gives for the tree of these draws. Of long tables 2,000 rows are left out
    and the sum is scaled up; of many draws some are taken, evenly spaced. ValueError if there is
    one draw only. Where the log posterior is of distinct rows, ``places`` say which of them every
    row is. Rows of one of the ``units`` are left out together; without units each is by itself.

    An approximation :math:`q` has to reach the posterior without the row, so its verdict asks for
    the tail of :math:`p(\theta | x_{-n}) / q(\theta)`: the heavier the tail of p / q, the worse. A
    rule that weighted the draws while the tail of p / q is light, and else took them as they are,
    would give the better verdict to the worse approximation.

    See Vehtari, Gelman, Gabry (2017), Practical Bayesian model evaluation using leave-one-out
    cross-validation and WAIC, Statistics and Computing 27; Magnusson, Andersen, Jonasson, Vehtari
    (2019), Bayesian leave-one-out cross-validation for large data, ICML, for draws of an
    approximation.
    """
    if draws.point_estimate:
        raise ValueError(
            "leave_one_out needs draws of a posterior; received a point estimate: "
            "refine('laplace') gives them."
        )
    log_likelihood, n_obs, thinning = _log_likelihood(log_posterior, draws, places, units)
    n_draws = log_likelihood.shape[0] * log_likelihood.shape[1]
    approximate = "log_q" in draws.stats and not draws.attributes.get("resampled")
    covered = covers(draws.attributes)
    if n_draws < SMALLEST:
        found = _unsmoothed(log_likelihood)
    else:
        found = _smoothed(log_likelihood, _relative_size(log_posterior, draws.theta[:, ::thinning]))
    elpds, pareto_k, own = (np.asarray(values) for values in found)
    # Of a large table the rows are a simple random sample, whose sum is scaled up.
    elpd, missed, spread = array_stats.srs_estimator(elpds, n_obs)
    reach_k, weighted = pareto_k, np.nan
    if approximate and not covered:
        reach_k = np.full(pareto_k.size, np.inf)
    elif approximate and n_draws >= SMALLEST:
        ratios = (draws.stats[name][:, ::thinning, None] for name in ("lp", "log_q"))
        log_p, log_q = (np.broadcast_to(ratio, log_likelihood.shape) for ratio in ratios)
        axes = {"chain_axis": 0, "draw_axis": 1}
        again = array_stats.loo_approximate_posterior(log_likelihood, log_p, log_q, **axes)
        reach_k, weighted = np.asarray(again[1]), float(np.mean(again[0]) * n_obs)
    return LeaveOneOut(
        elpd=float(elpd),
        se=float(np.sqrt(missed + spread)),
        p_loo=float(own.mean() * n_obs),
        pareto_k=pareto_k,
        reach_k=reach_k,
        n_obs=n_obs,
        n_draws=n_draws,
        thinning=thinning,
        approximate=approximate,
        covered=covered,
        weighted=weighted,
    )


def _relative_size(
    log_posterior: LogPosterior, theta: Float[np.ndarray, "chain kept coordinate"]
) -> float:
    """Effective draws as a share of the draws, of the mean variable: the one ``az.loo`` takes."""
    if theta.shape[0] == 1:
        return 1.0
    values = [
        *log_posterior.constrained(theta).values(),
        *log_posterior.deterministic(theta).values(),
    ]
    sizes = [array_stats.ess(one, chain_axis=0, draw_axis=1, method="mean") for one in values]
    n_draws = theta.shape[0] * theta.shape[1]
    share = np.mean(np.concatenate([np.ravel(size) for size in sizes])) / n_draws
    return float(np.maximum(share, 10 / n_draws))  # a tail is part of the draws


def _smoothed(
    log_likelihood: Float[np.ndarray, "chain kept used"], r_eff: float
) -> tuple[Float[np.ndarray, " used"], ...]:
    """Pareto-smoothed rows.

    Where the largest ratios are all the same there is no tail. So it is with discrete parameters:
    the worst of few values for a row is drawn often.
    """
    n_draws = log_likelihood.shape[0] * log_likelihood.shape[1]
    # As many of the largest ratios as the smoothing takes for the tail.
    tail = int(3 * np.sqrt(n_draws / r_eff) if n_draws * r_eff > 225 else n_draws / 5)
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
    log_posterior: LogPosterior,
    draws: Draws,
    places: Int[np.ndarray, " row"] | None,
    units: Int[np.ndarray, " row"] | None,
) -> tuple[Float[np.ndarray, "chain kept used"], int, int]:
    """Log likelihood of some units under some draws, the number of units, and the thinning."""
    n_scored = log_posterior.pointwise(draws.theta[0, 0]).size
    rows = np.arange(n_scored) if places is None else places
    unit = np.arange(rows.size) if units is None else np.unique(units, return_inverse=True)[1]
    n_obs = int(unit.max()) + 1
    if n_obs > _ROWS:  # a table may be sorted, so that every k-th row would not do
        chosen = np.sort(np.random.default_rng(0).choice(n_obs, _ROWS, replace=False))
        used = np.isin(unit, chosen)
        rows, unit = rows[used], np.searchsorted(chosen, unit[used])
    order = np.argsort(unit, kind="stable")
    starts = np.flatnonzero(np.diff(unit[order], prepend=-1))
    rows = rows[order]
    thinning = -(-draws.n_draws * rows.size // _ENTRIES)
    thetas = draws.theta[:, :: max(thinning, 1)]
    flat = one_after_another(thetas)
    values = np.empty((len(flat), rows.size))
    for some in in_blocks(len(flat), n_scored):  # each draw has the log likelihoods of all rows
        values[some] = log_posterior.log_likelihoods(flat[some])[:, rows]
    values = np.add.reduceat(values, starts, axis=1)
    told = tells(values)
    shape = (*thetas.shape[:2], int(told.sum()))
    return values[:, told].reshape(shape), round(n_obs * told.mean()), max(thinning, 1)


def tells(log_likelihood: Float[np.ndarray, "*draws obs"]) -> Bool[np.ndarray, " obs"]:
    """Rows of which some draw says something; of a hidden label, p(y | x) = 1 in all draws."""
    axes = tuple(range(log_likelihood.ndim - 1))
    found: np.ndarray = np.max(np.abs(log_likelihood), axis=axes) > _NOTHING
    return found if found.any() else ~found
