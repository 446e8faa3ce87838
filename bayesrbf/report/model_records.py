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
    """Density of one real column in every class, or level probabilities of a categorical one.

    Attributes
    ----------
    name : str
        Column name.
    kind : {"real", "categorical"}
        Its kind.
    grid : ndarray of shape (n_points,)
        Values; level numbers for a categorical column.
    levels : tuple of str
        Level names; empty for a real column.
    curves : ndarray of shape (n_classes, n_points)
        Density, or probability, in each class.
    """

    name: str
    kind: Kind
    grid: Float[np.ndarray, " point"]
    levels: tuple[str, ...]
    curves: Float[np.ndarray, "label point"]


@dataclass(frozen=True)
class Member:
    """One member of a stack.

    Attributes
    ----------
    name : str
        Its name.
    what : str
        What it is, in words.
    fitted : float
        Its weight at the fitted point.
    mean, lower, upper : float
        Its weight's posterior mean and 90 % interval; NaN without a posterior.
    temperature : float
        Factor of its log probabilities.
    log_loss : float
        Held-out log loss of it alone, tempered, in nats.
    drawn : bool
        Whether its parameters were drawn, too.
    """

    name: str
    what: str
    fitted: float
    mean: float
    lower: float
    upper: float
    temperature: float
    log_loss: float
    drawn: bool


@dataclass(frozen=True)
class Learned:
    """What the model learned; what needs a density of the rows is empty without one.

    Attributes
    ----------
    contributions : tuple of (str, float)
        Column and mean Kullback-Leibler divergence, in nats, from the probabilities
        without it to those with it; largest first.
    densities : tuple of Density
        Of the columns that contribute most.
    component_names : tuple of str
        Components in words.
    weights : tuple of float
        p(class) p(component | class).
    means : tuple of (str, tuple of float, tuple of float)
        Column, its mean per component, and the posterior standard deviations of those.
    members : tuple of Member
        Of a stack; empty for other families.
    beside : str
        What the mixture is that was fitted beside it.
    """

    contributions: tuple[tuple[str, float], ...]
    densities: tuple[Density, ...]
    component_names: tuple[str, ...]
    weights: tuple[float, ...]
    means: tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...]
    members: tuple[Member, ...] = ()
    beside: str = ""


@dataclass(frozen=True)
class Diagnostics:
    """How far to trust the fit and its posterior.

    Attributes
    ----------
    status : tuple of str
        Sentences about the fit.
    findings : tuple of Finding
        Figures, each with its sentence and whether it is good.
    variables : tuple of (str, int, float, float)
        Free variable, its number of entries, worst R-hat, least effective draws.
    warnings : tuple of str
        What was warned about on the way.
    """

    status: tuple[str, ...]
    findings: tuple[Finding, ...]
    variables: tuple[tuple[str, int, float, float], ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Node:
    """A node of the plate diagram.

    Attributes
    ----------
    name : str
        Name in the graph.
    kind : {"free", "deterministic", "observed", "data"}
        What it is.
    distribution : str
        Such as "Dirichlet".
    dims : tuple of str
        Names of its axes.
    parents : tuple of str
        Nodes it depends on.
    """

    name: str
    kind: Role
    distribution: str
    dims: tuple[str, ...]
    parents: tuple[str, ...]


@dataclass(frozen=True)
class Described:
    """The model, and everything needed to make it again.

    Attributes
    ----------
    sentence : str
        What was chosen, and why.
    given : str
        What the graph sums out, or takes as given.
    nodes : tuple of Node
        The declared graph.
    sizes : mapping of str to int
        Length of every dim.
    priors : tuple of (str, str)
        Quantity and prior, in words and numbers.
    trials : tuple of (str, float, bool)
        Candidate, held-out log loss, whether it won; empty where there was no choice.
    facts : tuple of (str, str)
        Command, versions, seed, digest.
    """

    sentence: str
    given: str
    nodes: tuple[Node, ...]
    sizes: Mapping[str, int]
    priors: tuple[tuple[str, str], ...]
    trials: tuple[tuple[str, float, bool], ...]
    facts: tuple[tuple[str, str], ...]
