"""What a report says about the model: frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

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
class Learned:
    """What the model learned.

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
    """

    contributions: tuple[tuple[str, float], ...]
    densities: tuple[Density, ...]
    component_names: tuple[str, ...]
    weights: tuple[float, ...]
    means: tuple[tuple[str, tuple[float, ...], tuple[float, ...]], ...]


@dataclass(frozen=True)
class Diagnostics:
    """How far to trust the fit and its posterior.

    Attributes
    ----------
    status : tuple of str
        Sentences about the fit.
    findings : tuple of (str, float, str)
        Figure, value, sentence.
    variables : tuple of (str, int, float, float)
        Free variable, its number of entries, worst R-hat, least effective draws.
    warnings : tuple of str
        What was warned about on the way.
    """

    status: tuple[str, ...]
    findings: tuple[tuple[str, float, str], ...]
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
    nodes : tuple of Node
        The declared graph.
    sizes : mapping of str to int
        Length of every dim.
    priors : tuple of (str, str)
        Quantity and prior, in words and numbers.
    trials : tuple of (str, float, bool)
        Candidate, held-out log loss, whether it won.
    facts : tuple of (str, str)
        Command, versions, seed, digest.
    """

    nodes: tuple[Node, ...]
    sizes: Mapping[str, int]
    priors: tuple[tuple[str, str], ...]
    trials: tuple[tuple[str, float, bool], ...]
    facts: tuple[tuple[str, str], ...]
