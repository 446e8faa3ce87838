"""Description of the model and its priors, and the facts that reproduce the fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bayesrbf import MedianLVQPrior
from bayesrbf.app.report.families import Fitted
from bayesrbf.app.report.job import Job
from bayesrbf.app.words import number
from bayesrbf.base.priors import POOL_PRIOR

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


Priors = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Described:
    """Description of the model, and the facts that reproduce the fit."""

    estimator: str  # Name of the classifier's class.
    message: str  # What was chosen, and why.
    assumptions: str  # What the graph sums out, or takes as given.
    priors: tuple[tuple[str, str], ...]  # Quantity and prior, in words and numbers.
    trials: tuple[tuple[str, float, bool], ...]
    """Candidate, held-out log loss, whether it won; may be empty."""
    facts: tuple[tuple[str, str], ...]  # Command, versions, seed, digest.


def compute(job: Job, fitted: Fitted, refined: Any) -> Described:
    """Chosen settings, priors in words, and the call that fits again."""
    return Described(
        estimator=type(refined).__name__,
        message=fitted.message,
        assumptions=GIVEN[job.family],
        priors=_PRIORS[job.family](refined),
        trials=fitted.trials,
        facts=(*job.facts, ("model", fitted.call), ("seed", str(job.seed))),
    )


def say(described: Described) -> dict[str, str]:
    """Message on the chosen model, with the reason."""
    return {"model": described.message}


def _stack(model: Any) -> Priors:
    """Priors of weights, temperatures and the matrix after the pool."""
    members = f"Dirichlet({number(1 + POOL_PRIOR.pseudo_rows)}) on every member"
    lines = [
        ("weights of the members", members),
        ("temperatures", f"log-normal around 1, with a log sd of {number(POOL_PRIOR.sd)}"),
    ]
    if (scaling := model.model_.matrix_scaling) is not None:
        k = scaling.n_judged
        text = f"Normal around 0, with precision {k} on the diagonal, {k * (k - 1)} elsewhere"
        lines.append(("matrix of the classes' log probabilities", text))
    return tuple(lines)


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
        shared = (
            "shared by all classes" if structure.shared_covariance else "one per component or class"
        )
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
    """Priors of the weights that the evidence keeps."""
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
