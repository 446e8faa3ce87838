"""The mixture that the rows of a classifier come from, and its components in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bayesrbf.report.drawing_method import Drawn
from bayesrbf.report.families import FAMILIES
from bayesrbf.report.job import Job


@dataclass(frozen=True)
class Densities:
    """The mixture that a classifier's rows come from; None where they come from none."""

    point: Any  # Without draws.
    drawn: Any  # With its posterior.


def densities_of(job: Job, drawn: Drawn) -> Densities:
    """The mixture of a classifier: itself, or its hidden layer.

    Stacks, sparse mixtures and exemplars have none.
    """
    if FAMILIES[job.family].has_components:
        return Densities(drawn.model, drawn.refined)
    return Densities(None, None)


def component_names(density: Any) -> tuple[str, ...]:
    """Components in words, such as "benign" or "benign 2 of 3".

    The hidden layer of an RBF network has the same ones for all classes.
    """
    structure = density.model_.density.specification
    shared = structure.n_classes < density.classes_.size
    labels = ["component"] if shared else list(map(str, density.classes_))
    names = []
    for label, members in zip(labels, structure.class_slices, strict=True):
        size = members.stop - members.start
        names += [label if size == 1 else f"{label} {i + 1} of {size}" for i in range(size)]
    return tuple(names)
