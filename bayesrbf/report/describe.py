"""Describes the computation, the model and its priors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bayesrbf.inference.diagnose import effective_draws, rhat
from bayesrbf.numerics.stack.pooling import LOG_TEMPERATURE_SD, PSEUDO_ROWS
from bayesrbf.records import names
from bayesrbf.records.median_lvq import MedianLVQPrior
from bayesrbf.report.families import Fitted
from bayesrbf.report.job import Job
from bayesrbf.report.records import Described, Diagnostics
from bayesrbf.report.words import number, plural

if TYPE_CHECKING:
    from bayesrbf.inference.judgements import Finding

GIVEN: Final[Mapping[str, str]] = {
    "stack": (
        "The graph is that of the pool: what members say about rows held out is given. Members "
        "have graphs of their own, but trees have none."
    ),
    "mixture": "Labels, components and missing cells are summed out exactly.",
    "rbf": "Components and missing cells are summed out exactly.",
    "sdgm": "Components are summed out exactly; missing cells were completed many times.",
    "median_lvq": "The dissimilarities of the rows are given.",
}


def read_diagnostics(
    refined: Any, findings: tuple[Finding, ...], heard: tuple[str, ...]
) -> Diagnostics:
    """Sentences on the fit, the findings of ``diagnose()``, and a line per free variable."""
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
    status = (
        f"Fit: {refined.status_} {plural(refined.n_iter_, 'iteration')}.",
        f"Out-of-fold temperature: log probabilities are multiplied by "
        f"{number(refined.temperature_)}.",
    )
    return Diagnostics(status, findings, tuple(variables), heard, draws is not None)


def read_described(job: Job, fitted: Fitted, refined: Any) -> Described:
    """What was chosen, the priors in words, and what is needed to run again."""
    return Described(
        sentence=fitted.sentence,
        given=GIVEN[job.family],
        priors=priors_of(job.family, refined),
        trials=fitted.trials,
        facts=(*job.facts, ("model", fitted.call), ("seed", str(job.seed))),
    )


Priors = tuple[tuple[str, str], ...]


def priors_of(family: str, model: Any) -> Priors:
    """Every prior of a fitted classifier, as quantity and prior."""
    return _PRIORS[family](model)


def _stack(model: Any) -> Priors:
    """Priors of weights and temperatures."""
    return (
        ("weights of the members", f"Dirichlet({number(1 + PSEUDO_ROWS)}) on every member"),
        ("temperatures", f"log-normal around 1, with a log sd of {number(LOG_TEMPERATURE_SD)}"),
    )


def _mixture(model: Any) -> Priors:
    """Priors of class probabilities, weights, covariances, means and levels."""
    hyper, structure = model.model_.density.hyperparameters, model.model_.density.specification
    lines = []
    if structure.n_classes > 1:
        text = f"Dirichlet({number(hyper.class_concentration)}) on every class"
        lines.append(("class probabilities", text))
    if structure.n_components > structure.n_classes:
        text = f"Dirichlet({number(hyper.weight_concentration)}) on every component"
        lines.append(("component weights", text))
    if structure.n_features:
        shared = "shared by all classes" if structure.tied else "one per component or class"
        lines += [
            (
                "covariances",
                f"{structure.shape}, {shared}: drawn towards the columns' own variances with the "
                f"strength of {number(hyper.degrees_of_freedom)} rows",
            ),
            (
                "means",
                "Normal around the columns' means with the strength of "
                f"{number(hyper.mean_precision)} rows",
            ),
        ]
    if structure.levels:
        lines.append(
            ("level probabilities", "Dirichlet: the columns' own frequencies, worth one row")
        )
    return tuple(lines)


def _rbf(model: Any) -> Priors:
    """Priors of the hidden and of the output layer."""
    prior = model.model_.hyperparameters
    output = f"Normal with precision {number(prior.l2)}"
    if prior.l1:
        output += f", times Laplace with rate {number(prior.l1)}"
    return (*_mixture(model), ("output weights", output))


def _sdgm(model: Any) -> Priors:
    """Priors of the weights that are left."""
    text = "Normal around 0; the precision of each maximises the evidence, infinite ones are gone"
    return (("weights", text),)


def _median_lvq(model: Any) -> Priors:
    """Priors of exemplars and width."""
    prior = MedianLVQPrior() if model.prior is None else model.prior
    width = f"{prior}" if model.sigma == "sample" else f"fixed at {number(model.sigma_)}"
    return (("exemplars", "every row of the class alike"), ("width of the kernel", width))


_PRIORS: Final[Mapping[str, Callable[[Any], Priors]]] = {
    "stack": _stack,
    "mixture": _mixture,
    "rbf": _rbf,
    "sdgm": _sdgm,
    "median_lvq": _median_lvq,
}
