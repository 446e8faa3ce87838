"""What a report asks a classifier of any family: its columns, and its mixture if it has one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from bayesrbf.report.families import FAMILIES
from bayesrbf.report.job import Inference, Job
from bayesrbf.report.sampling import Drawn, draw_posterior
from bayesrbf.table import Columns

TABLES: Final = 250
"""Draws per chain for filling in missing cells."""


@dataclass(frozen=True)
class Densities:
    """The mixture that a report asks about columns and cells; None where rows have no density."""

    point: Any  # Without draws.
    drawn: Any  # With its posterior.
    sentence: str = ""  # What it is, where it is not the classifier itself.


def densities_of(job: Job, found: Drawn) -> Densities:
    """The mixture of a classifier: itself, its hidden layer, or one fitted beside a stack.

    The stack's own companion has three components a class, and one of them may fit a typing error;
    the rule for mixtures takes as many as held-out rows support. Sparse mixtures and exemplars have
    none.
    """
    if hasattr(found.model, "predictive_check"):  # its rows come from a mixture
        return Densities(found.model, found.refined)
    if job.family != "stack":
        return Densities(None, None)
    inference: Inference = "map" if job.inference == "map" else "auto"
    draws = TABLES if job.draws is None else job.draws
    beside = replace(job, family="mixture", inference=inference, draws=draws)
    fitted = FAMILIES["mixture"].procedure(beside)(job.X, job.y)
    drawn = draw_posterior(beside, fitted.model)
    return Densities(drawn.model, drawn.refined, f"{fitted.sentence} {drawn.sentence}")


def columns_of(model: Any) -> Columns:
    """Names, kinds and levels of a fitted classifier's columns."""
    found: Columns = model.columns_
    return found


def is_shared(density: Any) -> bool:
    """Whether all classes have the same components, as in the hidden layer of an RBF network."""
    return bool(density.model_.density.specification.n_classes < density.classes_.size)


def component_names(density: Any) -> tuple[str, ...]:
    """Components in words, such as "benign" or "benign 2 of 3"."""
    labels = ["component"] if is_shared(density) else list(map(str, density.classes_))
    names = []
    for label, members in zip(
        labels, density.model_.density.specification.class_slices, strict=True
    ):
        size = members.stop - members.start
        names += [label if size == 1 else f"{label} {i + 1} of {size}" for i in range(size)]
    return tuple(names)
