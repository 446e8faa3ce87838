"""Frozen records about the model's columns, components and members."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float

from bayesrbf.report.effects import Contribution, Effect

Kind = Literal["real", "categorical"]


@dataclass(frozen=True)
class ClassCells:
    """The labelled cells of one class in one column, as shares of all of them."""

    cells: int  # How many there are.
    bars: Float[np.ndarray, " bar"]  # In every bin, atoms left out; or at every level.
    atoms: Float[np.ndarray, " atom"] = field(default_factory=lambda: np.zeros(0))
    masses: Float[np.ndarray, " atom"] = field(default_factory=lambda: np.zeros(0))
    grid: Float[np.ndarray, " point"] = field(default_factory=lambda: np.zeros(0))
    curve: Float[np.ndarray, " point"] = field(default_factory=lambda: np.zeros(0))
    """Share in a bin around each value, under the class's own density; empty without one."""


@dataclass(frozen=True)
class ClassColumn:
    """A column class by class."""

    name: str
    kind: Kind
    edges: Float[np.ndarray, " edge"]  # Ends of the bins, or of places for the levels.
    levels: tuple[str, ...]  # Empty for a real column.
    classes: tuple[ClassCells, ...]


@dataclass(frozen=True)
class Member:
    """One member of a stack; mean and 90 % interval of its weight are NaN without a posterior."""

    name: str  # In words.
    fitted: float  # Weight at the fitted point.
    mean: float  # Of the weight, as are the limits.
    lower: float
    upper: float
    temperature: float  # Factor of its log probabilities.
    log_loss: float  # Held out, of it alone, tempered, in nats.
    drawn: bool  # Whether its parameters were drawn, too.


@dataclass(frozen=True)
class Learned:
    """Everything that the model learned; parts that need components are empty without any."""

    contributions: tuple[Contribution, ...]  # The largest first.
    effects: tuple[Effect, ...]  # Of the columns that contribute most.
    base: Float[np.ndarray, " label"]  # Probabilities of a row without a cell.
    by_class: tuple[ClassColumn, ...]  # The columns that contribute most, class by class.
    component_names: tuple[str, ...]
    weights: tuple[float, ...]  # ``p(class) p(component | class)``.
    means: tuple[tuple[str, tuple[str, ...], tuple[float, ...]], ...]
    """Column, its mean in every component as text, and their posterior standard deviations."""
    members: tuple[Member, ...] = ()  # Of a stack; empty for other families.
    relevances: tuple[tuple[str, float], ...] = ()
    """Column and its relevance to the likeness of rows, the largest first; learned by a stack."""
