"""How far to trust draws: one figure and one sentence a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from arviz_stats.base.array import array_stats
from jaxtyping import Float

from bayesrbf.inference.draws import Draws

if TYPE_CHECKING:
    import pandas as pd

RHAT_DENSITY: Final = 1.01
RHAT_PARAMETERS: Final = 1.02
PARETO_K: Final = 0.7
ESS_PER_CHAIN: Final = 100
"""Bounds past which a figure is bad; R-hat and ESS: Vehtari et al. (2021)."""
_ROWS: Final = 100
"""Rows whose class probabilities are judged: more would say the same, slowly."""


@dataclass(frozen=True)
class Finding:
    """One figure about draws.

    Attributes
    ----------
    row : str
        Name of the figure.
    value : float or int
        The figure.
    sentence : str
        What it means and, where it is bad, what to do next.
    good : bool
        Whether it is on the right side of its bound.
    """

    row: str
    value: float | int
    sentence: str
    good: bool


def findings(
    draws: Draws,
    *,
    raw: Draws | None = None,
    probabilities: Float[np.ndarray, "chain draw obs label"] | None = None,
    map_probabilities: Float[np.ndarray, "obs label"] | None = None,
) -> tuple[Finding, ...]:
    """Everything that can be said about draws of one method.

    Parameters
    ----------
    draws : Draws
        Draws with the components named as in the MAP.
    raw : Draws, optional
        The same draws as they came.
    probabilities : ndarray of shape (n_chains, n_draws, n_obs, n_classes), optional
        Class probabilities of some rows under every draw; the R-hat of a
        hundred of them is reported.
    map_probabilities : ndarray of shape (n_obs, n_classes), optional
        Class probabilities of the same rows at the MAP.

    Returns
    -------
    tuple of Finding
        In the order in which to read them.

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter, Buerkner (2021), Rank-normalization,
    folding, and localization: an improved R-hat, Bayesian Analysis 16.
    """
    if draws.point_estimate:
        return (
            Finding("draws", 1, "A point estimate: refine('laplace') gives a posterior.", True),
        )
    parts = [_run(draws), _convergence(draws, raw, probabilities)]
    if probabilities is not None and map_probabilities is not None:
        parts.append(_distance(probabilities, map_probabilities))
    return tuple(finding for part in parts for finding in part)


def table(found: tuple[Finding, ...]) -> pd.DataFrame:
    """Findings as a table.

    Parameters
    ----------
    found : tuple of Finding
        What :func:`findings` returned.

    Returns
    -------
    pandas.DataFrame
        Columns ``row``, ``value``, ``sentence``.
    """
    import pandas as pd

    return pd.DataFrame(
        {
            "row": [finding.row for finding in found],
            "value": [float(finding.value) for finding in found],
            "sentence": [finding.sentence for finding in found],
        }
    )


def rhat(values: Float[np.ndarray, "chain draw *rest"]) -> float:
    """Largest rank-normalised split R-hat of many quantities.

    Parameters
    ----------
    values : ndarray of shape (n_chains, n_draws, ...)
        Draws of the quantities; those that never move say nothing.

    Returns
    -------
    float
        The largest R-hat; NaN when there is none.
    """
    return _worst(array_stats.rhat, np.nanmax, values)


def effective_draws(values: Float[np.ndarray, "chain draw *rest"], method: str) -> float:
    """Smallest effective number of draws of many quantities.

    Parameters
    ----------
    values : ndarray of shape (n_chains, n_draws, ...)
        Draws of the quantities; those that never move say nothing.
    method : {"bulk", "tail"}
        Of the middle, or of the 5 % and 95 % quantiles.

    Returns
    -------
    float
        The smallest effective number; NaN when there is none.
    """
    options = {"prob": (0.05, 0.95)} if method == "tail" else {}
    return _worst(array_stats.ess, np.nanmin, values, method=method, **options)


def _worst(statistic, extreme, values: np.ndarray, **options: object) -> float:  # type: ignore[no-untyped-def]
    """The extreme of a statistic over all quantities that move."""
    flat = values.reshape((*values.shape[:2], -1))
    flat = flat[:, :, np.ptp(flat, axis=(0, 1)) > 0]
    if flat.shape[2] == 0 or values.shape[1] < 4:
        return float("nan")
    return float(extreme(statistic(flat, chain_axis=0, draw_axis=1, **options)))


def _run(draws: Draws) -> Iterator[Finding]:
    """What the method itself reports."""
    count = draws.n_draws
    if draws.complete:
        yield Finding("draws", count, f"All {count} draws of {draws.method} were made.", True)
    else:
        text = f"Interrupted after {count} draws: the chains are shorter than asked for."
        yield Finding("draws", count, text, False)
    attributes = draws.attributes
    if "pareto_k" in attributes:
        yield _pareto(float(attributes["pareto_k"]))
    if "n_indefinite" in attributes:
        flat = int(attributes["n_indefinite"])
        yield Finding("indefinite_directions", flat, str(attributes["curvature"]), flat == 0)
    if "diverging" in draws.stats:
        yield _divergences(int(draws.stats["diverging"].sum()), count)
    if "reached_max_treedepth" in draws.stats:
        yield _deep(int(draws.stats["reached_max_treedepth"].sum()), count)


def _pareto(pareto_k: float) -> Finding:
    """Trust in an approximation."""
    good = not pareto_k > PARETO_K
    sentence = (
        "The Gaussian covers the posterior: its importance ratios have a light tail."
        if good
        else f"Above {PARETO_K}: the Gaussian misses part of the posterior, so single "
        "parameters are rough and importance resampling cannot mend them; compare with "
        "refine('nuts')."
    )
    return Finding("pareto_k", pareto_k, sentence, good)


def _divergences(count: int, total: int) -> Finding:
    """Trajectories that left the posterior."""
    sentence = (
        "No trajectory diverged."
        if count == 0
        else f"{count} of {total} trajectories diverged: parts of the posterior may be missing; "
        "raise target_accept, or use fewer components."
    )
    return Finding("divergences", count, sentence, count == 0)


def _deep(count: int, total: int) -> Finding:
    """Trajectories that were cut."""
    sentence = (
        "No trajectory was cut at the largest tree depth."
        if count == 0
        else f"{count} of {total} trajectories were cut at the largest tree depth: the draws are "
        "right but slow; ask for more of them."
    )
    return Finding("cut_trajectories", count, sentence, count == 0)


def _convergence(
    draws: Draws,
    raw: Draws | None,
    probabilities: Float[np.ndarray, "chain draw obs label"] | None,
) -> Iterator[Finding]:
    """Whether the chains agree, and how many independent draws they are worth."""
    lp = draws.stats["lp"]
    yield _agreement("rhat_log_posterior", "the log posterior", rhat(lp), RHAT_DENSITY)
    if probabilities is not None:
        stride = -(-probabilities.shape[2] // _ROWS)
        value = rhat(probabilities[:, :, ::stride])
        yield _agreement("rhat_class_probabilities", "class probabilities", value, RHAT_DENSITY)
    value = rhat(draws.theta)
    yield _agreement("rhat_parameters", "parameters, relabelled", value, RHAT_PARAMETERS)
    if raw is not None:
        text = "R-hat of the parameters before relabelling: above 1 where components traded names."
        yield Finding("rhat_parameters_raw", rhat(raw.theta), text, True)
    yield _size("ess_log_posterior", lp)
    yield _size("ess_parameters", draws.theta)


def _agreement(row: str, what: str, value: float, bound: float) -> Finding:
    """R-hat against its bound; NaN means that nothing moved."""
    good = not value > bound
    sentence = (
        f"The chains agree on {what}: at most {bound} is asked for."
        if good
        else f"The chains disagree on {what} (more than {bound}): draw longer, or use fewer "
        "components."
    )
    return Finding(row, value, sentence, good)


def _size(row: str, values: Float[np.ndarray, "chain draw *rest"]) -> Finding:
    """Effective draws against a hundred a chain."""
    worst = np.fmin(effective_draws(values, "bulk"), effective_draws(values, "tail"))
    asked = ESS_PER_CHAIN * values.shape[0]
    good = not worst < asked
    sentence = (
        f"Effective draws, bulk and tail, of the worst quantity; {asked} are enough."
        if good
        else f"Fewer effective draws than {asked}: intervals are rough; ask for more draws."
    )
    return Finding(row, float(worst), sentence, good)


def _distance(
    probabilities: Float[np.ndarray, "chain draw obs label"],
    map_probabilities: Float[np.ndarray, "obs label"],
) -> Iterator[Finding]:
    """How much averaging over the posterior changes the answer."""
    change = np.abs(probabilities.mean(axis=(0, 1)) - map_probabilities)
    text = (
        "Largest difference of a class probability between the MAP and the posterior mean; "
        f"the mean difference is {change.mean():.3g}."
    )
    yield Finding("map_difference", float(change.max(initial=0)), text, True)
