"""Figures about draws judged: what each means and, where it is bad, what to do next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from bayesrbf.inference.approximation import PARETO_K, covers
from bayesrbf.inference.leave_one_out import LeaveOneOut
from bayesrbf.records.units import copies_sentence

MEAN_ERROR: Final = 0.3
"""Error of a variational mean, in posterior standard deviations, that more draws would mend."""


@dataclass(frozen=True)
class Finding:
    """One figure about draws."""

    row: str  # Name of the figure.
    value: float | int
    sentence: str  # What it means and, where it is bad, what to do next.
    good: bool  # Whether it is on the right side of its bound.

    @property
    def figure(self) -> str:
        """The value as it is shown."""
        return shown(self.row, self.value)


def shown(row: str, value: float | int) -> str:
    """A figure about draws as text; what is judged by a bound is judged as it is shown.

    >>> shown("rhat_parameters", 1.02004), shown("ess_parameters", 399.98)
    ('1.0200', '400')
    """
    return f"{value:.4f}" if row.startswith("rhat") else f"{value:.4g}"


def judge_map(status: str, converged: bool) -> Finding:
    """Whether the search for the most probable point ended well."""
    return Finding("map_converged", int(converged), status, converged)


def judge_columns(doubts: str) -> Finding:
    """Columns of the training table that are not what they seem, in clauses of one sentence."""
    return Finding("doubtful_columns", doubts.count("; ") + 1, doubts, False)


def judge_copies(repeated: int) -> Finding:
    """Rows of the training table that are copies of an earlier one."""
    return Finding("copies", repeated, copies_sentence(repeated), True)


def judge_count(count: int, method: str, complete: bool) -> Finding:
    """Whether the run came to its end."""
    sentence = (
        f"All {count} draws of {method} were made."
        if complete
        else f"Interrupted after {count} draws: the chains are shorter than asked for."
    )
    return Finding("draws", count, sentence, complete)


def judge_search(attributes: Mapping[str, float | int | str]) -> Iterator[Finding]:
    """Whether a variational search ended well, where there was one."""
    if "convergence" not in attributes:
        return
    slope, error = float(attributes["gradient_norm"]), float(attributes["mean_error"])
    sentence = str(attributes["convergence"])
    yield Finding("variational_slope", slope, sentence, bool(attributes["converged"]))
    what = "The fixed draws of the objective leave the mean of a coordinate in doubt by this many "
    good = not error > MEAN_ERROR
    advice = "." if good else ": use refine('advi', pairs=64)."
    yield Finding("variational_error", error, f"{what}posterior deviations{advice}", good)


def judge_curvature(attributes: Mapping[str, float | int | str]) -> Iterator[Finding]:
    """Whether a Gaussian's spread is known in every direction, where a curvature was taken."""
    if "n_indefinite" in attributes:
        flat = int(attributes["n_indefinite"])
        yield Finding("indefinite_directions", flat, str(attributes["curvature"]), flat == 0)


def judge_approximation(attributes: Mapping[str, float | int | str]) -> Iterator[Finding]:
    """Whether an approximation covers the posterior, where there are importance ratios."""
    if "pareto_k" not in attributes:
        return
    pareto_k = float(attributes["pareto_k"])
    share = float(attributes.get("importance_share", 0.0))
    good = covers(attributes)
    if np.isnan(pareto_k):
        sentence = "Too few draws to judge the approximation: ask for 25 or more."
    elif pareto_k <= PARETO_K:
        sentence = "The Gaussian covers the posterior: its importance ratios have a light tail."
    elif good:
        sentence = (
            f"Above {PARETO_K}, but the importance ratios hardly differ: the draws are worth "
            f"{share:.1%} of as many from the posterior."
        )
    else:
        sentence = (
            f"Above {PARETO_K}: the Gaussian misses part of the posterior, so single "
            "parameters are rough and importance resampling cannot mend them; compare with "
            "refine('nuts')."
        )
    yield Finding("pareto_k", pareto_k, sentence, good)


def judge_divergences(count: int, total: int) -> Finding:
    """Finding on trajectories that diverged."""
    sentence = (
        "No trajectory diverged."
        if count == 0
        else f"{count} of {total} trajectories diverged: parts of the posterior may be missing; "
        "raise target_accept, or use fewer components."
    )
    return Finding("divergences", count, sentence, count == 0)


def judge_depth(count: int, total: int) -> Finding:
    """Finding on trajectories that were cut at the largest tree depth."""
    sentence = (
        "No trajectory was cut at the largest tree depth."
        if count == 0
        else f"{count} of {total} trajectories were cut at the largest tree depth: the draws are "
        "right but slow; ask for more of them."
    )
    return Finding("cut_trajectories", count, sentence, count == 0)


def judge_agreement(row: str, what: str, value: float, bound: float) -> Finding:
    """R-hat against its bound; NaN means that nothing moved."""
    good = not float(shown(row, value)) > bound
    sentence = (
        f"The chains agree on {what}: at most {bound} is asked for."
        if good
        else f"The chains disagree on {what} (more than {bound}): draw longer, or use fewer "
        "components."
    )
    return Finding(row, value, sentence, good)


def judge_size(row: str, value: float, asked: int, copied: float | None = None) -> Finding:
    """Effective draws against those asked for; NaN means that nothing moved.

    Of an importance resample the draws are worth at most ``copied``.
    """
    limit, advice = "", "ask for more draws."
    if copied is not None:
        value = float(np.minimum(value, copied))
        limit = f" Copies are one draw: by importance weights the resample is worth {copied:.0f}."
        advice = "do without resample=True, or use refine('nuts')."
    good = not float(shown(row, value)) < asked
    sentence = (
        f"Effective draws, bulk and tail, of the worst quantity; {asked} are enough."
        if good
        else f"Fewer effective draws than {asked}: intervals are rough; {advice}"
    )
    return Finding(row, value, sentence + limit, good)


def judge_leave_one_out(loo: LeaveOneOut) -> Iterator[Finding]:
    """Findings on how well each row is predicted by the others."""
    text = (
        f"Log predictive density of the {loo.n_obs} rows, each left out of its posterior, in nats; "
        f"each counts once. By {loo.how}."
    )
    yield Finding("elpd_loo", loo.elpd, text, True)
    yield Finding("elpd_loo_se", loo.se, "Standard error of elpd_loo over rows.", True)
    text = "Effective number of parameters: what the rows add to the fit of themselves."
    yield Finding("p_loo", loo.p_loo, text, True)
    yield Finding("loo_bad_rows", loo.n_bad, _bad_rows(loo), loo.trusted)


def _bad_rows(loo: LeaveOneOut) -> str:
    """The sentence on the tails of the rows' importance ratios."""
    rows, bound = loo.pareto_k.size, f"{loo.good_k:.2g}"
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
