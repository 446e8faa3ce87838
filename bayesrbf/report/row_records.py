"""What a report says about single rows and cells: frozen records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True)
class UnsureRow:
    """A row that the model is least sure of, and what would help."""

    row: int  # From 1.
    given: str  # Label; empty where hidden.
    predicted: str  # The most probable class.
    probability: float  # Of that class, as are the limits.
    lower: float
    upper: float
    aleatoric: float  # In nats, as is the epistemic part.
    epistemic: float
    component: str  # The one with the largest responsibility, in words.
    help: str  # In words.


@dataclass(frozen=True)
class Doubt:
    """Uncertainty of every row under the fit to all rows, and the least sure ones."""

    aleatoric: Float[np.ndarray, " obs"]  # In nats, as is the epistemic part.
    epistemic: Float[np.ndarray, " obs"]
    outcome: Int[np.ndarray, " obs"]
    """1 where the held-out prediction was right, 0 wrong, -1 unknown."""
    rows: tuple[UnsureRow, ...]  # The least sure first.
    below: int  # Held-out rows whose most probable class has less than ``threshold``.
    threshold: float
    novel: tuple[tuple[int, float, float], ...]
    """Row, log density, share of simulated rows at least as improbable."""

    @property
    def judged(self) -> int:
        """Number of held-out rows, of which ``below`` is a part."""
        return int((self.outcome >= 0).sum())


@dataclass(frozen=True)
class OddCell:
    """A cell that the rest of its row makes improbable."""

    row: int  # From 1.
    column: str
    value: str  # What stands there.
    expected: str  # What the rest of the row suggests.
    tail: float  # Probability of a cell at least as extreme.


@dataclass(frozen=True)
class OddLabel:
    """A label that the held-out prediction finds improbable."""

    row: int  # From 1.
    given: str
    suggested: str  # The most probable class.
    probability: float  # Held out, of the given label.


@dataclass(frozen=True)
class Oddities:
    """Cells and labels that look wrong, the least probable first."""

    cells: tuple[OddCell, ...]
    threshold: float  # Tail probability below which a cell is listed.
    found: int  # Cells below the threshold.
    by_chance: float  # Expected number of such cells if the model were exactly right.
    labels: tuple[OddLabel, ...]


@dataclass(frozen=True)
class Filled:
    """A missing cell and what was filled in."""

    row: int  # From 1.
    column: str
    value: str  # Conditional mean, or most probable level.
    interval: str  # Equal-tailed interval of a real cell; probability of the level otherwise.
    truth: str  # Empty where unknown.


@dataclass(frozen=True)
class Imputations:
    """Missing cells, and how well the model fills cells whose value is known."""

    missing: int  # Number of cells.
    examples: tuple[Filled, ...]
    nominal: Float[np.ndarray, " level"]  # Probability inside the intervals.
    covered: Float[np.ndarray, " level"]  # Share of known cells inside.
    known: int  # Number of real cells behind ``covered`` and ``error``.
    hidden_truth: bool  # Whether those are the missing cells; else observed ones of rows held out.
    truth: Float[np.ndarray, " known"]
    """In column standard deviations, as is ``filled``; empty unless hidden."""
    filled: Float[np.ndarray, " known"]
    error: tuple[tuple[str, float], ...]
    """Root mean squared error in column standard deviations, by method."""


@dataclass(frozen=True)
class Check:
    """Predictions for hidden labels against the truth."""

    rows: int  # Whose label was hidden from the model.
    log_loss: float
    accuracy: float
    outside: int  # Rows whose true class got a probability below 0.05.
