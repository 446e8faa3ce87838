"""Priors of a fitted classifier, in words and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bayesrbf.numerics.stack.pooling import LOG_TEMPERATURE_SD, PSEUDO_ROWS
from bayesrbf.records.median_lvq import MedianLVQPrior
from bayesrbf.report.words import number

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
    output = f"Normal with precision {number(model.l2)}"
    if model.l1:
        output += f", times Laplace with rate {number(model.l1)}"
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
