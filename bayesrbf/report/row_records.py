"""What a report says about single rows and cells: frozen records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True)
class UnsureRow:
    """A row that the model is least sure of, and what would help.

    Attributes
    ----------
    row : int
        Row number in the table, from 1.
    given : str
        Its label; empty where hidden.
    predicted : str
        The most probable class.
    probability, lower, upper : float
        Its probability and interval.
    aleatoric, epistemic : float
        The two parts of the entropy, in nats.
    component : str
        Nearest component, in words.
    help : str
        What would make it surer.
    """

    row: int
    given: str
    predicted: str
    probability: float
    lower: float
    upper: float
    aleatoric: float
    epistemic: float
    component: str
    help: str


@dataclass(frozen=True)
class Doubt:
    """Uncertainty of every row.

    Attributes
    ----------
    aleatoric, epistemic : ndarray of shape (n_obs,)
        Nats, under the fit to all rows.
    outcome : ndarray of shape (n_obs,)
        1 where the held-out prediction was right, 0 where wrong, -1 where unknown.
    rows : tuple of UnsureRow
        The least sure, first the least.
    below : int
        Number of held-out rows whose most probable class has less than ``threshold``.
    threshold : float
        That probability.
    novel : tuple of (int, float, float)
        Row, log density, and share of simulated rows with the same holes that are at
        least as improbable: the most novel rows.
    """

    aleatoric: Float[np.ndarray, " obs"]
    epistemic: Float[np.ndarray, " obs"]
    outcome: Int[np.ndarray, " obs"]
    rows: tuple[UnsureRow, ...]
    below: int
    threshold: float
    novel: tuple[tuple[int, float, float], ...]

    @property
    def judged(self) -> int:
        """Number of held-out rows, among which ``below`` counts."""
        return int((self.outcome >= 0).sum())


@dataclass(frozen=True)
class OddCell:
    """A cell that the rest of its row makes improbable.

    Attributes
    ----------
    row : int
        Row number, from 1.
    column : str
        Column name.
    value : str
        What stands there.
    expected : str
        What the rest of the row suggests.
    tail : float
        Probability of a cell at least as extreme.
    """

    row: int
    column: str
    value: str
    expected: str
    tail: float


@dataclass(frozen=True)
class OddLabel:
    """A label that the held-out prediction finds improbable.

    Attributes
    ----------
    row : int
        Row number, from 1.
    given : str
        Its label.
    suggested : str
        The most probable class.
    probability : float
        Held-out probability of the given label.
    """

    row: int
    given: str
    suggested: str
    probability: float


@dataclass(frozen=True)
class Oddities:
    """Cells and labels that look wrong.

    Attributes
    ----------
    cells : tuple of OddCell
        The least probable first.
    threshold : float
        Tail probability below which a cell is listed.
    found : int
        Cells below the threshold.
    by_chance : float
        Cells that would lie below it were the model exactly right.
    labels : tuple of OddLabel
        The least probable first.
    """

    cells: tuple[OddCell, ...]
    threshold: float
    found: int
    by_chance: float
    labels: tuple[OddLabel, ...]


@dataclass(frozen=True)
class Filled:
    """A missing cell and what was put there.

    Attributes
    ----------
    row : int
        Row number, from 1.
    column : str
        Column name.
    value : str
        Conditional mean, or most probable level.
    interval : str
        Equal-tailed interval of a real cell; probability of the level otherwise.
    truth : str
        The true cell where it is known, else empty.
    """

    row: int
    column: str
    value: str
    interval: str
    truth: str


@dataclass(frozen=True)
class Imputations:
    """Missing cells and how well the model fills cells whose value is known.

    Attributes
    ----------
    missing : int
        Number of missing cells.
    examples : tuple of Filled
        Some of them, the least certain first.
    nominal, covered : ndarray of shape (n_levels,)
        Probability inside the intervals, and the share of known cells inside.
    known : int
        Number of known real cells behind ``covered`` and ``error``.
    hidden_truth : bool
        Whether those are the missing cells (else observed ones of rows held out).
    truth, filled : ndarray of shape (n_known,)
        True and filled real cells in column standard deviations, where hidden.
    error : tuple of (str, float)
        Root mean squared error in column standard deviations, by method.
    """

    missing: int
    examples: tuple[Filled, ...]
    nominal: Float[np.ndarray, " level"]
    covered: Float[np.ndarray, " level"]
    known: int
    hidden_truth: bool
    truth: Float[np.ndarray, " known"]
    filled: Float[np.ndarray, " known"]
    error: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Check:
    """Hidden labels beside their truth.

    Attributes
    ----------
    rows : int
        Rows whose label was hidden from the model.
    log_loss, accuracy : float
        Mean over those rows.
    outside : int
        Rows whose true class the model gave less than one in twenty.
    """

    rows: int
    log_loss: float
    accuracy: float
    outside: int
