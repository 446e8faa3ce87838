"""The command that lists the families of models, one line each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bayesrbf.commands.printing import Json, answer


@dataclass(frozen=True)
class OfferedModel:
    """A family as it is told on the command line."""

    name: str  # What --model takes.
    estimator: str  # Its class in Python.
    what: str
    cost: str  # Class of the time that a fit with its intervals takes.


MODELS: Final = (
    OfferedModel(
        "stack",
        "StackedClassifier",
        "kernel networks, mixtures and trees, pooled by held-out log score (default)",
        "a minute",
    ),
    OfferedModel(
        "mixture",
        "HybridMixtureClassifier",
        "a density of the rows of each class, its shape chosen by held-out log score",
        "seconds",
    ),
    OfferedModel(
        "rbf",
        "RBFNetworkClassifier",
        "a network whose hidden layer is a mixture of ten components",
        "seconds",
    ),
    OfferedModel(
        "sdgm",
        "SDGMClassifier",
        "a sparse discriminative mixture",
        "minutes",
    ),
    OfferedModel(
        "median_lvq",
        "MedianLVQClassifier",
        "rows of the table that stand for their class, compared by Gower's dissimilarity",
        "seconds",
    ),
)
"""By their names on the command line, in the order of ``FAMILIES``."""

COST_OF_FAMILIES: Final = (
    "cost: a fit with its intervals, on some hundred rows and ten to thirty columns"
)


def models(*, json: Json = False) -> None:
    """Name what --model takes, one line each, with the class of its cost.

    Parameters
    ----------
    json : bool
        Print one JSON object, and nothing else, on stdout.
    """
    name, cost = (
        max(len(family.name) for family in MODELS),
        max(len(family.cost) for family in MODELS),
    )
    lines = [f"{family.name:<{name}}  {family.cost:<{cost}}  {family.what}" for family in MODELS]
    answer({"models": MODELS}, [*lines, COST_OF_FAMILIES], as_json=json)
