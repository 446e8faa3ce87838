"""Diagnoses draws: figures, sentences, and rows left out in turn."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from arviz_stats.base.array import array_stats
from jaxtyping import Bool, Float, Int
from scipy.special import logsumexp

from bayesrbf.base.log_posterior import LogPosterior
from bayesrbf.base.rows import copies_sentence, in_blocks
from bayesrbf.inference.draws import PARETO_K, SMALLEST, Draws, covers, one_after_another

# How well left-out rows are predicted, without fitting again.


_ROWS_LEFT_OUT: Final = (
    2000  # Rows that are left out in turn: more would take longer and say the same.
)
NOTHING: Final = 1e-12  # Log likelihoods of smaller magnitude are zero but for rounding.
_ENTRIES: Final = 16_000_000
"""Maximum number of log likelihoods in memory: 122 MiB, or the rows above under 8,000 draws."""


@dataclass(frozen=True)
class LeaveOneOut:
    """Expected log predictive density of rows, each left out of its own posterior.

    The figures treat the draws as draws of the posterior, as ``az.loo`` does. ``trusted`` takes the
    error of an approximation into account.
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
        # Vehtari et al. (2024), PSIS: fewer draws estimate heavy tails too poorly; log10(1) is 0.
        return float(min(1 - 1 / np.log10(max(self.n_draws, 2)), PARETO_K))

    @property
    def judged(self) -> bool:
        """Whether the draws suffice to estimate a tail shape."""
        return self.n_draws >= SMALLEST

    @property
    def n_bad(self) -> int:
        """Number of rows with a Pareto k above the bound: unreliable importance sampling."""
        return int(np.sum(~(self.pareto_k <= self.good_k)))

    @property
    def n_far(self) -> int:
        """Number of rows with a Pareto k above the bound when the proposal is the approximation."""
        return int(np.sum(~(self.reach_k <= self.good_k)))

    @property
    def trusted(self) -> bool:
        """Whether elpd is reliable, which requires draws that cover the posterior."""
        return self.judged and self.covered and self.n_bad == 0 and self.n_far == 0

    @property
    def how(self) -> str:
        """Description of the method of computation."""
        smoothed = "Pareto-smoothed importance" if self.judged else "plain importance"
        clauses = [f"{smoothed} sampling of {self.n_draws} draws"]
        if self.thinning > 1:
            clauses.append(f"one in {self.thinning}")
        if self.approximate:
            clauses.append("taken as draws of the posterior")
        if not np.isnan(self.weighted):
            clauses.append(f"{self.weighted:.5g} with the weights of the approximation")
        if self.pareto_k.size < self.n_obs:
            clauses.append(f"scaled up from {self.pareto_k.size} rows")
        return ", ".join(clauses)


def leave_one_out(
    log_posterior: LogPosterior,
    draws: Draws,
    distinct_index: Int[np.ndarray, " row"] | None = None,
    subjects: Int[np.ndarray, " row"] | None = None,
) -> LeaveOneOut:
    r"""Leave rows out in turn, by Pareto-smoothed importance sampling.

    .. math:: \operatorname{elpd} = \sum_n \log p(x_n | x_{-n}), \quad
        p(\theta | x_{-n}) \propto p(\theta | x) / p(x_n | \theta).

    It is what ``az.loo`` gives for the tree of these draws. Of long tables 2,000 rows are left out
    and the sum is scaled up; of many draws some are taken, evenly spaced. ValueError if there is
    one draw only. Where the log posterior is of distinct rows, ``distinct_index`` has the index of
    every row among them. Rows of one of the ``subjects`` are left out together; without subjects
    each row is left out by itself.

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
    log_likelihood, n_obs, thinning = _log_likelihood(
        log_posterior, draws, distinct_index, subjects
    )
    n_draws = log_likelihood.shape[0] * log_likelihood.shape[1]
    approximate = "log_q" in draws.stats and not draws.attributes.get("resampled")
    covered = covers(draws.attributes)
    if n_draws < SMALLEST:
        found = _unsmoothed(log_likelihood)
    else:
        found = _smoothed(log_likelihood, _relative_size(log_posterior, draws.theta[:, ::thinning]))
    elpds, pareto_k, p_loo = (np.asarray(values) for values in found)
    # The rows of a large table are a simple random sample, whose sum is scaled up.
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
        p_loo=float(p_loo.mean() * n_obs),
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
    """Relative effective sample size of the mean over variables, as in ``az.loo``."""
    if theta.shape[0] == 1:
        return 1.0
    values = [
        *log_posterior.constrained(theta).values(),
        *log_posterior.deterministic(theta).values(),
    ]
    sizes = [array_stats.ess(draws, chain_axis=0, draw_axis=1, method="mean") for draws in values]
    n_draws = theta.shape[0] * theta.shape[1]
    share = np.mean(np.concatenate([np.ravel(size) for size in sizes])) / n_draws
    return float(np.maximum(share, 10 / n_draws))  # a tail is part of the draws


def _smoothed(
    log_likelihood: Float[np.ndarray, "chain kept used"], r_eff: float
) -> tuple[Float[np.ndarray, " used"], ...]:
    """Elpd, Pareto k and effective parameters of each row, by Pareto-smoothed importance sampling.

    There is no tail where the largest ratios are all equal, as with discrete parameters, whose
    least likely value for a row is drawn often.
    """
    n_draws = log_likelihood.shape[0] * log_likelihood.shape[1]
    # As many of the largest ratios as the smoothing takes for the tail.
    tail = int(3 * np.sqrt(n_draws / r_eff) if n_draws * r_eff > 225 else n_draws / 5)
    least = np.sort(log_likelihood.reshape(n_draws, -1), axis=0)[:tail]
    bounded = np.ptp(least, axis=0) < np.finfo(float).tiny
    elpds, pareto_k, p_loo = _unsmoothed(log_likelihood)
    pareto_k[bounded] = -np.inf
    if not bounded.all():
        rest = log_likelihood[:, :, ~bounded]
        found = array_stats.loo(rest, r_eff=r_eff, chain_axis=0, draw_axis=1)
        elpds[~bounded], pareto_k[~bounded], p_loo[~bounded] = found
    return elpds, pareto_k, p_loo


def _unsmoothed(
    log_likelihood: Float[np.ndarray, "chain kept used"],
) -> tuple[Float[np.ndarray, " used"], ...]:
    """Elpd and effective parameters of each row by harmonic means, for few draws."""
    rows = log_likelihood.reshape(-1, log_likelihood.shape[2])
    elpds = np.log(len(rows)) - logsumexp(-rows, axis=0)
    p_loo = logsumexp(rows, axis=0) - np.log(len(rows)) - elpds
    return elpds, np.full(elpds.size, np.nan), p_loo


def _log_likelihood(
    log_posterior: LogPosterior,
    draws: Draws,
    distinct_index: Int[np.ndarray, " row"] | None,
    subjects: Int[np.ndarray, " row"] | None,
) -> tuple[Float[np.ndarray, "chain kept used"], int, int]:
    """Log likelihood of subjects under thinned draws, the number of subjects, and the thinning."""
    n_scored = log_posterior.pointwise(draws.theta[0, 0]).size
    rows = np.arange(n_scored) if distinct_index is None else distinct_index
    subject = (
        np.arange(rows.size) if subjects is None else np.unique(subjects, return_inverse=True)[1]
    )
    n_obs = int(subject.max()) + 1
    if n_obs > _ROWS_LEFT_OUT:  # a table may be sorted, so that every k-th row would not do
        chosen = np.sort(np.random.default_rng(0).choice(n_obs, _ROWS_LEFT_OUT, replace=False))
        used = np.isin(subject, chosen)
        rows, subject = rows[used], np.searchsorted(chosen, subject[used])
    order = np.argsort(subject, kind="stable")
    starts = np.flatnonzero(np.diff(subject[order], prepend=-1))
    rows = rows[order]
    thinning = -(-draws.n_draws * rows.size // _ENTRIES)
    thetas = draws.theta[:, :: max(thinning, 1)]
    flat = one_after_another(thetas)
    values = np.empty((len(flat), rows.size))
    for block in in_blocks(len(flat), n_scored):  # each draw has the log likelihoods of all rows
        values[block] = log_posterior.log_likelihoods(flat[block])[:, rows]
    values = np.add.reduceat(values, starts, axis=1)
    scored = tells(values)
    shape = (*thetas.shape[:2], int(scored.sum()))
    return values[:, scored].reshape(shape), round(n_obs * scored.mean()), max(thinning, 1)


def tells(log_likelihood: Float[np.ndarray, "*draws obs"]) -> Bool[np.ndarray, " obs"]:
    """Whether each row's log likelihood differs from 0 under some draw; all rows if none does."""
    axes = tuple(range(log_likelihood.ndim - 1))
    found: np.ndarray = np.max(np.abs(log_likelihood), axis=axes) > NOTHING
    return found if found.any() else ~found


# Figures about draws judged: what each means and, where it is bad, what to do next.


MEAN_ERROR: Final = 0.3
"""Maximum standard error of a variational mean, in posterior standard deviations."""


@dataclass(frozen=True)
class Finding:
    """A diagnostic figure, its interpretation, and whether it is within its bound."""

    row: str  # Name of the figure.
    value: float | int
    sentence: str  # What it means and, where it is bad, what to do next.
    good: bool  # Whether it is on the right side of its bound.

    @property
    def figure(self) -> str:
        """The value, formatted."""
        return shown(self.row, self.value)


def shown(row: str, value: float | int) -> str:
    """Formatted figure, as it is compared with its bound.

    >>> shown("rhat_parameters", 1.02004), shown("ess_parameters", 399.98)
    ('1.0200', '400')
    """
    return f"{value:.4f}" if row.startswith("rhat") else f"{value:.4g}"


def judge_map(status: str, converged: bool) -> Finding:
    """Finding on the convergence of the MAP search."""
    return Finding("map_converged", int(converged), status, converged)


def judge_columns(doubts: str) -> Finding:
    """Finding on doubtful columns of the training table."""
    return Finding("doubtful_columns", doubts.count("; ") + 1, doubts, False)


def judge_copies(repeated: int) -> Finding:
    """Finding on rows of the training table that duplicate an earlier row."""
    return Finding("copies", repeated, copies_sentence(repeated), True)


def judge_count(count: int, method: str, complete: bool) -> Finding:
    """Finding on whether all draws were made."""
    message = (
        f"All {count} draws of {method} were made."
        if complete
        else f"Interrupted after {count} draws: the chains are shorter than asked for."
    )
    return Finding("draws", count, message, complete)


def judge_search(attributes: Mapping[str, float | int | str]) -> Iterator[Finding]:
    """Findings on the convergence of a variational search; none for other methods."""
    if "convergence" not in attributes:
        return
    slope, error = float(attributes["gradient_norm"]), float(attributes["mean_error"])
    message = str(attributes["convergence"])
    yield Finding("variational_slope", slope, message, bool(attributes["converged"]))
    text = "The fixed draws of the objective leave the mean of a coordinate uncertain by this many "
    good = not error > MEAN_ERROR
    advice = "." if good else ": use refine('advi', pairs=64)."
    yield Finding("variational_error", error, f"{text}posterior deviations{advice}", good)


def judge_curvature(attributes: Mapping[str, float | int | str]) -> Iterator[Finding]:
    """Finding on directions without curvature; none for other methods."""
    if "n_indefinite" in attributes:
        flat = int(attributes["n_indefinite"])
        yield Finding("indefinite_directions", flat, str(attributes["curvature"]), flat == 0)


def judge_approximation(attributes: Mapping[str, float | int | str]) -> Iterator[Finding]:
    """Finding on whether an approximation covers the posterior, by its Pareto k."""
    if "pareto_k" not in attributes:
        return
    pareto_k = float(attributes["pareto_k"])
    share = float(attributes.get("importance_share", 0.0))
    good = covers(attributes)
    if np.isnan(pareto_k):
        message = "Too few draws to judge the approximation: ask for 25 or more."
    elif pareto_k <= PARETO_K:
        message = "The Gaussian covers the posterior: its importance ratios have a light tail."
    elif good:
        message = (
            f"Above {PARETO_K}, but the importance ratios hardly differ: the draws are worth "
            f"{share:.1%} of as many from the posterior."
        )
    else:
        message = (
            f"Above {PARETO_K}: the Gaussian misses part of the posterior, so single "
            "parameters are rough and importance resampling cannot mend them; compare with "
            "refine('nuts')."
        )
    yield Finding("pareto_k", pareto_k, message, good)


def judge_divergences(count: int, total: int) -> Finding:
    """Finding on trajectories that diverged."""
    message = (
        "No trajectory diverged."
        if count == 0
        else f"{count} of {total} trajectories diverged: parts of the posterior may be missing; "
        "raise target_accept, or use fewer components."
    )
    return Finding("divergences", count, message, count == 0)


def judge_depth(count: int, total: int) -> Finding:
    """Finding on trajectories that were cut at the largest tree depth."""
    message = (
        "No trajectory was cut at the largest tree depth."
        if count == 0
        else f"{count} of {total} trajectories were cut at the largest tree depth: the draws are "
        "right but slow; ask for more of them."
    )
    return Finding("cut_trajectories", count, message, count == 0)


def judge_agreement(row: str, quantity: str, value: float, bound: float) -> Finding:
    """Finding on R-hat and its bound; NaN for a constant quantity."""
    good = not float(shown(row, value)) > bound
    message = (
        f"The chains agree on {quantity}: at most {bound} is asked for."
        if good
        else f"The chains disagree on {quantity} (more than {bound}): draw longer, or use fewer "
        "components."
    )
    return Finding(row, value, message, good)


def judge_size(row: str, value: float, minimum: int, copied: float | None = None) -> Finding:
    """Finding on the effective sample size and its minimum; NaN for a constant quantity.

    Of an importance resample the draws are worth at most ``copied``.
    """
    limit, advice = "", "ask for more draws."
    if copied is not None:
        # NaN of a constant quantity stays NaN, unlike under min().
        value = float(np.minimum(value, copied))
        limit = f" Copies are one draw: by importance weights the resample is worth {copied:.0f}."
        advice = "do without resample=True, or use refine('nuts')."
    good = not float(shown(row, value)) < minimum
    message = (
        f"Effective draws, bulk and tail, of the worst quantity; {minimum} are enough."
        if good
        else f"Fewer effective draws than {minimum}: intervals are rough; {advice}"
    )
    return Finding(row, value, message + limit, good)


def judge_leave_one_out(loo: LeaveOneOut, scored: str = "") -> Iterator[Finding]:
    """Findings on the leave-one-out predictive density of ``scored``."""
    scope = f" ({scored} of posterior_)" if scored else ""
    text = (
        f"Log predictive density{scope} of the {loo.n_obs} rows, each left out of its posterior, "
        f"in nats; each counts once. By {loo.how}."
    )
    yield Finding("elpd_loo", loo.elpd, text, True)
    yield Finding("elpd_loo_se", loo.se, "Standard error of elpd_loo over rows.", True)
    text = "Effective number of parameters: what the rows add to the fit of themselves."
    yield Finding("p_loo", loo.p_loo, text, True)
    yield Finding("loo_bad_rows", loo.n_bad, _bad_rows(loo), loo.trusted)


def _bad_rows(loo: LeaveOneOut) -> str:
    """Message on the Pareto k of the rows."""
    rows = loo.pareto_k.size
    bound = f"{loo.good_k:.2g}"
    if not loo.judged:
        return f"{loo.n_draws} draws are too few to judge elpd_loo: ask for more."
    if not loo.covered:
        return (
            f"{loo.n_bad} of {rows} rows have a Pareto k above {bound}, but the draws miss part of "
            "the posterior: elpd_loo is the approximation's and cannot be trusted, whatever its "
            "rows say; compare with refine('nuts')."
        )
    if loo.n_bad:
        return (
            f"{loo.n_bad} of {rows} rows have a Pareto k above {bound}: without them the posterior "
            "would be another, so elpd_loo is rough; look at these rows, or cross-validate."
        )
    if loo.n_far:
        return (
            f"No row has a Pareto k above {bound} if the draws are the posterior's; with the "
            f"approximation's own ratios {loo.n_far} of {rows} have: elpd_loo is rough; compare "
            "with refine('nuts')."
        )
    return f"No row has a Pareto k above {bound}: elpd_loo can be trusted."


# Diagnoses draws: a table with one figure and one sentence a row.


RHAT_DENSITY: Final = 1.01
RHAT_PARAMETERS: Final = 1.02
ESS_PER_CHAIN: Final = 100
"""Bounds past which a figure is bad; R-hat and ESS: Vehtari et al. (2021)."""
MAP_DIFFERENCE: Final = 0.1
"""Largest difference of a class probability between the MAP and the posterior mean.

If one is right, the other costs a row :math:`2 d^2` = 0.02 nats of log loss at even odds, and more
elsewhere: as much as a good classifier gains on another. The mean of 100 independent draws has a
standard error of at most half of that.
"""
_ROWS: Final = 100  # Most rows whose class probabilities are judged; more would say the same.


class PosteriorWarning(UserWarning):
    """Warning of a posterior that is not reliable."""


def findings(
    draws: Draws,
    *,
    raw: Draws | None = None,
    probabilities: Float[np.ndarray, "chain draw obs label"] | None = None,
    map_probabilities: Float[np.ndarray, "obs label"] | None = None,
    reports_mean: bool = False,
) -> tuple[Finding, ...]:
    """All findings on draws of one method.

    ``reports_mean`` says that predictions are means over the draws, and not those of the MAP.

    What the fit and the rows say is judged beside it:
    :func:`bayesrbf.inference.diagnose.judge_map`,
    :func:`bayesrbf.inference.diagnose.judge_leave_one_out`.

    See Vehtari, Gelman, Simpson, Carpenter, Buerkner (2021), Rank-normalization, folding, and
    localization: an improved R-hat, Bayesian Analysis 16.
    """
    if draws.point_estimate:
        text = "A point estimate: refine('laplace') gives a posterior."
        return (Finding("draws", 1, text, True),)
    found = [*_run(draws)]
    if draws.method != "bootstrap":  # whose draws are independent: there is no chain to converge
        found += _convergence(draws, raw, probabilities)
    if probabilities is not None and map_probabilities is not None:
        found.append(_distance(probabilities, map_probabilities, reports_mean))
    return tuple(found)


def in_short(draws: Draws) -> str:
    """Summary of the draws in one line, without evaluating rows again."""
    count, *found = _run(draws)
    chained = draws.method != "bootstrap" and "log_q" not in draws.stats
    if chained and not np.isnan(value := rhat(draws.stats["lp"])):
        found.append(judge_agreement("rhat", "the log posterior", value, RHAT_DENSITY))
    head = f"{draws.n_draws} draws by {draws.method}"
    figures = ", ".join(f"{finding.row} = {finding.figure}" for finding in found)
    advice = [finding.sentence for finding in (count, *found) if not finding.good]
    return " ".join([f"{head}: {figures}." if figures else f"{head}.", *advice])


def table(found: tuple[Finding, ...]) -> FindingsTable:
    """Findings as a table."""
    return FindingsTable(
        {
            "row": [finding.row for finding in found],
            "value": [float(finding.value) for finding in found],
            "good": [finding.good for finding in found],
            "sentence": [finding.sentence for finding in found],
        }
    )


def warn(found: tuple[Finding, ...], stacklevel: int = 2) -> None:
    """Warn once of all findings that are not good.

    >>> warn((Finding("divergences", 0, "No trajectory diverged.", True),))
    """
    bad = [finding for finding in found if not finding.good]
    if bad:
        lines = [f"{finding.row} = {finding.figure}: {finding.sentence}" for finding in bad]
        text = "\n".join(["The posterior needs attention.", *lines])
        warnings.warn(text, PosteriorWarning, stacklevel=stacklevel + 1)


def rhat(values: Float[np.ndarray, "chain draw *rest"]) -> float:
    """Largest rank-normalised split R-hat of many quantities."""
    return _worst(array_stats.rhat, np.nanmax, values)


def effective_draws(values: Float[np.ndarray, "chain draw *rest"], method: str) -> float:
    """Smallest effective number of draws of many quantities."""
    options = {"prob": (0.05, 0.95)} if method == "tail" else {}
    return _worst(array_stats.ess, np.nanmin, values, method=method, **options)


def _worst(statistic, extreme, values: np.ndarray, **options: object) -> float:  # type: ignore[no-untyped-def]
    """Extreme of a statistic over all quantities that vary."""
    flat = values.reshape((*values.shape[:2], -1))
    # R-hat of a constant quantity is 0 / 0, and says nothing about the chains.
    flat = flat[:, :, np.ptp(flat, axis=(0, 1)) > 0]
    if flat.shape[2] == 0 or values.shape[1] < 4:
        return float("nan")
    found = statistic(flat, chain_axis=0, draw_axis=1, **options)
    return float("nan") if np.isnan(found).all() else float(extreme(found))  # R-hat of one chain


def _run(draws: Draws) -> Iterator[Finding]:
    """Findings from the method's own statistics."""
    count = draws.n_draws
    yield judge_count(count, draws.method, draws.complete)
    yield from judge_search(draws.attributes)
    yield from judge_curvature(draws.attributes)
    yield from judge_approximation(draws.attributes)
    if "diverging" in draws.stats:
        yield judge_divergences(int(draws.stats["diverging"].sum()), count)
    if "reached_max_treedepth" in draws.stats:
        yield judge_depth(int(draws.stats["reached_max_treedepth"].sum()), count)


def _convergence(
    draws: Draws, raw: Draws | None, probabilities: Float[np.ndarray, "chain draw obs label"] | None
) -> Iterator[Finding]:
    """Findings on the agreement of chains and on effective sample sizes."""
    lp = draws.stats["lp"]
    yield judge_agreement("rhat_log_posterior", "the log posterior", rhat(lp), RHAT_DENSITY)
    if probabilities is not None:
        stride = -(-probabilities.shape[2] // _ROWS)
        value = rhat(probabilities[:, :, ::stride])
        quantity = "class probabilities"
        yield judge_agreement("rhat_class_probabilities", quantity, value, RHAT_DENSITY)
    value = rhat(draws.theta)
    yield judge_agreement("rhat_parameters", "parameters, relabelled", value, RHAT_PARAMETERS)
    if raw is not None:
        text = "R-hat of the parameters before relabelling: above 1 where components traded names."
        yield Finding("rhat_parameters_raw", rhat(raw.theta), text, True)
    minimum = ESS_PER_CHAIN * lp.shape[0]
    copied = draws.worth if draws.attributes.get("resampled", 0) else None
    yield judge_size("ess_log_posterior", _least_effective(lp), minimum, copied)
    yield judge_size("ess_parameters", _least_effective(draws.theta), minimum, copied)


def _least_effective(values: Float[np.ndarray, "chain draw *rest"]) -> float:
    """Smallest bulk or tail effective sample size over all quantities."""
    return float(np.fmin(effective_draws(values, "bulk"), effective_draws(values, "tail")))


def _distance(
    probabilities: Float[np.ndarray, "chain draw obs label"],
    map_probabilities: Float[np.ndarray, "obs label"],
    reports_mean: bool,
) -> Finding:
    """Finding on the largest difference of class probabilities, posterior mean and MAP."""
    row = "map_difference"
    change = np.abs(probabilities.mean(axis=(0, 1)) - map_probabilities)
    largest = float(change.max(initial=0))
    text = (
        "Largest difference of a class probability between the MAP and the posterior mean; "
        f"the mean difference is {change.mean():.3g}. "
    )
    if reports_mean:
        return Finding(row, largest, f"{text}Predictions are the posterior mean.", True)
    good = not float(shown(row, largest)) > MAP_DIFFERENCE
    text += (
        f"At most {MAP_DIFFERENCE} is asked for."
        if good
        else f"More than {MAP_DIFFERENCE}, which costs 0.02 nats a row: predictions are those of "
        "the MAP, and at such rows it does not stand for its posterior. Read their intervals, "
        "label more rows, or use a simpler model."
    )
    return Finding(row, largest, text, good)


COLUMNS: Final = ["row", "value", "good", "sentence"]
_WIDTH: Final = 100  # Characters of a line of text.


class FindingsTable(pd.DataFrame):
    """A data frame whose long sentences are wrapped and never cut.

    >>> table((Finding("p_loo", 3.14159, "Few parameters.", True),))
    row    value  good  sentence
    p_loo  3.142  yes   Few parameters.
    """

    @property
    def _constructor(self) -> type[FindingsTable]:
        """Type of a selection of rows."""
        return FindingsTable

    def __repr__(self) -> str:
        if list(self.columns) != COLUMNS:
            return str(super().__repr__())
        values = list(map(shown, self["row"], self["value"]))
        good = ["yes" if is_good else "no" for is_good in self["good"]]
        cells = zip(self["row"], values, good, self["sentence"], strict=True)
        rows = [COLUMNS, *map(list, cells)]
        first, second = (max(len(str(row[i])) for row in rows) for i in (0, 1))
        lines = []
        for name, value, judgement, message in rows:
            head = f"{name:<{first}}  {value:>{second}}  {judgement:<4}  "
            lines += textwrap.wrap(
                str(message), _WIDTH, initial_indent=head, subsequent_indent=" " * len(head)
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None, "display.precision", 4):
            return str(super()._repr_html_())
