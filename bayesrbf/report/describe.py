"""How the computation went, and what the model is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from bayesrbf.inference.diagnose import effective_draws, rhat
from bayesrbf.records import names
from bayesrbf.report.families import Fitted
from bayesrbf.report.job import Job
from bayesrbf.report.model_records import Described, Diagnostics
from bayesrbf.report.plate import nodes_of
from bayesrbf.report.priors import priors_of
from bayesrbf.report.words import number, plural

GIVEN: Final[Mapping[str, str]] = {
    "stack": (
        "This is the graph of the pool: what members say about rows held out is given. Members "
        "have graphs of their own."
    ),
    "mixture": "Labels, components and missing cells are summed out exactly.",
    "rbf": "Components and missing cells are summed out exactly.",
    "sdgm": "Components are summed out exactly; missing cells were completed many times.",
    "median_lvq": "The dissimilarities of the rows are given.",
}


def read_diagnostics(refined: Any, heard: tuple[str, ...]) -> Diagnostics:
    """Sentences on the fit, the findings of ``diagnose()``, and a line per free variable."""
    posterior = refined.posterior_[names.POSTERIOR]
    worth = np.inf if refined.draws_ is None else refined.draws_.worth
    variables = []
    for name in map(str, posterior.data_vars):
        if name == names.COVARIANCES:  # a function of the precisions, and large
            continue
        values = posterior[name].transpose("chain", "draw", ...).to_numpy().astype(float)
        by_chain = min(effective_draws(values, "bulk"), effective_draws(values, "tail"))
        least = float(np.minimum(by_chain, worth))
        size = int(np.prod(values.shape[2:], dtype=int))
        variables.append((name, size, rhat(values), least))
    status = (
        f"Fit: {refined.status_} {plural(refined.n_iter_, 'iteration')}.",
        f"Out-of-fold temperature: log probabilities are multiplied by "
        f"{number(refined.temperature_)}.",
    )
    return Diagnostics(status, refined.findings(), tuple(variables), heard)


def read_described(job: Job, fitted: Fitted, refined: Any) -> Described:
    """The declared graph, its priors in words, and what is needed to run again."""
    nodes, sizes = nodes_of(refined.declare())
    return Described(
        sentence=fitted.sentence,
        given=GIVEN[job.family],
        nodes=nodes,
        sizes=sizes,
        priors=priors_of(job.family, refined),
        trials=fitted.trials,
        facts=(*job.facts, ("model", fitted.call), ("seed", str(job.seed))),
    )
