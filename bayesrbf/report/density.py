"""What a report asks a classifier of any family: its columns, and its components if it has any."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bayesrbf.report.sampling import Drawn
from bayesrbf.table import Columns


@dataclass(frozen=True)
class Densities:
    """The mixture that a classifier's rows come from; None where they come from none."""

    point: Any  # Without draws.
    drawn: Any  # With its posterior.


def densities_of(found: Drawn) -> Densities:
    """The mixture of a classifier: itself, or its hidden layer.

    Stacks, sparse mixtures and exemplars have none.
    """
    if hasattr(found.model, "predictive_check"):  # its rows come from a mixture
        return Densities(found.model, found.refined)
    return Densities(None, None)


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
