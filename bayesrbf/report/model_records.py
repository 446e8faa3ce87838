"""What a report says about the model: frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from bayesrbf.inference.judgements import Finding

Kind = Literal["real", "categorical"]
Role = Literal["free", "deterministic", "observed", "data"]


@dataclass(frozen=True)
class Density:
    """Density of one real column in every class, or level probabilities of a categorical one."""

    name: str
    kind: Kind
    grid: Float[np.ndarray, " point"]  # Values; level numbers for a categorical column.
    levels: tuple[str, ...]  # Empty for a real column.
    curves: Float[np.ndarray, "label point"]


@dataclass(frozen=True)
class Member:
    """One member of a stack; mean and 90 % interval of its weight are NaN without a posterior."""

    name: str
    what: str  # In words.
    fitted: float  # Weight at the fitted point.
    mean: float  # Of the weight, as are the limits.
    lower: float
    upper: float
    temperature: float  # Factor of its log probabilities.
    log_loss: float  # Held out, of it alone, tempered, in nats.
    drawn: bool  # Whether its parameters were drawn, too.


@dataclass(frozen=True)
class Learned:
    """What the model learned; what needs a density of the rows is empty without one."""

    contributions: tuple[tuple[str, float], ...]
    """Column and nats, largest first: the mean Kullback-Leibler divergence of the probabilities
    without the column from those with it."""
    densities: tuple[Density, ...]  # Of the columns that contribute most.
    component_names: tuple[str, ...]
    weights: tuple[float, ...]  # ``p(class) p(component | class)``.
    means: tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...]
    """Column, its mean in every component, and their posterior standard deviations."""
    members: tuple[Member, ...] = ()  # Of a stack; empty for other families.
    beside: str = ""  # What the mixture is that was fitted beside a stack.


@dataclass(frozen=True)
class Diagnostics:
    """How the fit and its posterior went."""

    status: tuple[str, ...]  # Sentences about the fit.
    findings: tuple[Finding, ...]
    variables: tuple[tuple[str, int, float, float], ...]
    """Name, number of entries, worst R-hat, least effective draws."""
    warnings: tuple[str, ...]  # Raised during the run.


@dataclass(frozen=True)
class Node:
    """A node of the plate diagram."""

    name: str
    kind: Role
    distribution: str  # Such as "Dirichlet".
    dims: tuple[str, ...]
    parents: tuple[str, ...]


@dataclass(frozen=True)
class Described:
    """The model, and everything needed to make it again."""

    sentence: str  # What was chosen, and why.
    given: str  # What the graph sums out, or takes as given.
    nodes: tuple[Node, ...]
    sizes: Mapping[str, int]  # Length of every dim.
    priors: tuple[tuple[str, str], ...]  # Quantity and prior, in words and numbers.
    trials: tuple[tuple[str, float, bool], ...]
    """Candidate, held-out log loss, whether it won; may be empty."""
    facts: tuple[tuple[str, str], ...]  # Command, versions, seed, digest.
