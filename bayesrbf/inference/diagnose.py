"""Diagnoses draws: a table with one figure and one sentence a row."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterator
from typing import Final

import numpy as np
import pandas as pd
from arviz_stats.base.array import array_stats
from jaxtyping import Float

from bayesrbf.inference.draws import Draws
from bayesrbf.inference.judgements import (
    Finding,
    judge_agreement,
    judge_approximation,
    judge_count,
    judge_curvature,
    judge_depth,
    judge_divergences,
    judge_search,
    judge_size,
    shown,
)

RHAT_DENSITY: Final = 1.01
RHAT_PARAMETERS: Final = 1.02
ESS_PER_CHAIN: Final = 100
"""Bounds past which a figure is bad; R-hat and ESS: Vehtari et al. (2021)."""
_ROWS: Final = 100  # Most rows whose class probabilities are judged; more would say the same.


class PosteriorWarning(UserWarning):
    """A posterior that should not be trusted as it is."""


def findings(
    draws: Draws,
    *,
    raw: Draws | None = None,
    probabilities: Float[np.ndarray, "chain draw obs label"] | None = None,
    map_probabilities: Float[np.ndarray, "obs label"] | None = None,
) -> tuple[Finding, ...]:
    """Everything that draws of one method say about themselves.

    What the fit and the rows say is judged beside it:
    :func:`bayesrbf.inference.judgements.judge_map`,
    :func:`bayesrbf.inference.judgements.judge_leave_one_out`.

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
        found.append(_distance(probabilities, map_probabilities))
    return tuple(found)


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
    """Say once what is bad and what to do next; say nothing where all is well.

    >>> warn((Finding("divergences", 0, "No trajectory diverged.", True),))
    """
    bad = [f"{one.row} = {one.figure}: {one.sentence}" for one in found if not one.good]
    if bad:
        text = "\n".join(["The posterior needs attention.", *bad])
        warnings.warn(text, PosteriorWarning, stacklevel=stacklevel + 1)


def rhat(values: Float[np.ndarray, "chain draw *rest"]) -> float:
    """Largest rank-normalised split R-hat of many quantities."""
    return _worst(array_stats.rhat, np.nanmax, values)


def effective_draws(values: Float[np.ndarray, "chain draw *rest"], method: str) -> float:
    """Smallest effective number of draws of many quantities."""
    options = {"prob": (0.05, 0.95)} if method == "tail" else {}
    return _worst(array_stats.ess, np.nanmin, values, method=method, **options)


def _worst(statistic, extreme, values: np.ndarray, **options: object) -> float:  # type: ignore[no-untyped-def]
    """The extreme of a statistic over all quantities that move."""
    flat = values.reshape((*values.shape[:2], -1))
    # Of what never moves R-hat is 0 / 0, and says nothing about the chains.
    flat = flat[:, :, np.ptp(flat, axis=(0, 1)) > 0]
    if flat.shape[2] == 0 or values.shape[1] < 4:
        return float("nan")
    return float(extreme(statistic(flat, chain_axis=0, draw_axis=1, **options)))


def _run(draws: Draws) -> Iterator[Finding]:
    """Findings that the method itself reports."""
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
    """Whether the chains agree, and how many independent draws they are worth."""
    lp = draws.stats["lp"]
    yield judge_agreement("rhat_log_posterior", "the log posterior", rhat(lp), RHAT_DENSITY)
    if probabilities is not None:
        stride = -(-probabilities.shape[2] // _ROWS)
        value = rhat(probabilities[:, :, ::stride])
        what = "class probabilities"
        yield judge_agreement("rhat_class_probabilities", what, value, RHAT_DENSITY)
    value = rhat(draws.theta)
    yield judge_agreement("rhat_parameters", "parameters, relabelled", value, RHAT_PARAMETERS)
    if raw is not None:
        text = "R-hat of the parameters before relabelling: above 1 where components traded names."
        yield Finding("rhat_parameters_raw", rhat(raw.theta), text, True)
    asked = ESS_PER_CHAIN * lp.shape[0]
    copied = draws.worth if draws.attributes.get("resampled", 0) else None
    yield judge_size("ess_log_posterior", _least_effective(lp), asked, copied)
    yield judge_size("ess_parameters", _least_effective(draws.theta), asked, copied)


def _least_effective(values: Float[np.ndarray, "chain draw *rest"]) -> float:
    """Smallest effective number of draws over all quantities, of bulk or tail."""
    return float(np.fmin(effective_draws(values, "bulk"), effective_draws(values, "tail")))


def _distance(
    probabilities: Float[np.ndarray, "chain draw obs label"],
    map_probabilities: Float[np.ndarray, "obs label"],
) -> Finding:
    """How much averaging over the posterior changes the answer."""
    change = np.abs(probabilities.mean(axis=(0, 1)) - map_probabilities)
    text = (
        "Largest difference of a class probability between the MAP and the posterior mean; "
        f"the mean difference is {change.mean():.3g}."
    )
    return Finding("map_difference", float(change.max(initial=0)), text, True)


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
        values = [shown(*figure) for figure in zip(self["row"], self["value"], strict=True)]
        good = ["yes" if one else "no" for one in self["good"]]
        cells = zip(self["row"], values, good, self["sentence"], strict=True)
        rows = [COLUMNS, *map(list, cells)]
        first, second = (max(len(str(row[i])) for row in rows) for i in (0, 1))
        lines = []
        for name, value, judgement, sentence in rows:
            head = f"{name:<{first}}  {value:>{second}}  {judgement:<4}  "
            lines += textwrap.wrap(
                str(sentence), _WIDTH, initial_indent=head, subsequent_indent=" " * len(head)
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None, "display.precision", 4):
            return str(super()._repr_html_())
