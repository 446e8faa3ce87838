"""Diagnostics of the computation: the fit, its chains, and warnings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from bayesrbf.app.report.families import Drawn
from bayesrbf.app.words import listing, number, plural
from bayesrbf.base import names
from bayesrbf.inference.diagnose import RHAT_PARAMETERS, Finding, effective_draws, rhat

MAX_ASKED: Final = 2000
"""Rows whose class probabilities are asked for under other priors."""


@dataclass(frozen=True)
class Diagnostics:
    """State of the fit and of its posterior: findings, worst figures, warnings."""

    inference: str  # How the posterior was made, and why.
    status: tuple[str, ...]  # Sentences about the fit.
    findings: tuple[Finding, ...]
    variables: tuple[tuple[str, int, float, float], ...]
    """Name, number of entries, worst R-hat, least effective draws."""
    warnings: tuple[str, ...]  # Raised during the run.
    drawn: bool = True  # Whether there are draws, of chains or one by one.
    by_error: bool = False  # Whether intervals are of an error that no draw of the chains moves.

    @property
    def chained(self) -> bool:
        """Whether there are chains to compare."""
        return any(rhat == rhat for _, _, rhat, _ in self.variables)


def compute(
    X: pd.DataFrame, drawn: Drawn, findings: tuple[Finding, ...], caught: tuple[str, ...]
) -> Diagnostics:
    """Sentences on the fit, the findings of ``diagnose()``, and a line per free variable."""
    refined = drawn.refined
    posterior = refined.posterior_[names.POSTERIOR]
    draws = refined.draws_
    worth = np.inf if draws is None else draws.worth
    chained = draws is not None and draws.method != "bootstrap"  # whose draws are made one by one
    variables = []
    for name in map(str, posterior.data_vars):
        if name == names.COVARIANCES:  # a function of the precisions, and large
            continue
        values = posterior[name].transpose("chain", "draw", ...).to_numpy().astype(float)
        by_chain = min(effective_draws(values, "bulk"), effective_draws(values, "tail"))
        least = float(np.minimum(by_chain, worth))
        size = int(np.prod(values.shape[2:], dtype=int))
        variables.append((name, size, rhat(values) if chained else np.nan, least))
    status: tuple[str, ...] = (
        f"Fit: {refined.status_} {plural(refined.n_iter_, 'iteration')}.",
        f"Out-of-fold temperature: log probabilities are multiplied by "
        f"{number(refined.temperature_)}.",
    )
    if not refined.fitted_.__lacks__("prior"):
        thinned = X.iloc[:: -(-len(X) // MAX_ASKED)]
        status += (f"Prior: {refined.prior_sensitivity(thinned).message}",)
    return Diagnostics(
        inference=drawn.message,
        status=status,
        findings=findings,
        variables=tuple(variables),
        warnings=caught,
        drawn=draws is not None,
        by_error=refined.model_.pools,
    )


def say(diagnostics: Diagnostics) -> dict[str, str]:
    """Summary of ``diagnose()``, and a sentence for page one where a finding is bad.

    No interval of a stack rests on draws of its weights, which the appendix judges.
    """
    rhats = [rhat for _, _, rhat, _ in diagnostics.variables if rhat == rhat]
    bad = [finding for finding in diagnostics.findings if not finding.good]
    if not diagnostics.chained and diagnostics.drawn:
        text = "Every draw was made by itself: there are no chains to compare"
    elif not rhats:
        text = "The fit is a point estimate: there are no chains to compare"
    else:
        agree = "" if bad or round(max(rhats), 4) > RHAT_PARAMETERS else "The chains agree: "
        text = f"{agree}the worst R-hat of all parameters is {max(rhats):.4f}"
        text = f"{text[0].upper()}{text[1:]} (up to {RHAT_PARAMETERS} chains agree)"
    if not bad:
        return {"healthy": f"{text}.", "computation": ""}
    figures = listing([finding.row.replace("_", " ") for finding in bad])
    needs = plural(len(bad), "figure needs", "figures need")
    computation = (
        f"Of the computation {needs} attention; the appendix says which, and what that means for "
        "intervals."
    )
    return {
        "healthy": f"{text}, and {needs} attention: {figures}.",
        "computation": "" if diagnostics.by_error else computation,
    }
