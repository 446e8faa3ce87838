"""Frozen records of a report's numbers and words, before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.inference.judgements import Finding
from bayesrbf.posterior.calibration import Calibration
from bayesrbf.posterior.chance import Counted
from bayesrbf.posterior.held_out import Interval
from bayesrbf.report.costs import Costs
from bayesrbf.report.learned_records import Kind, Learned
from bayesrbf.report.performance import Performance, unvalidated
from bayesrbf.report.subgroups import Subgroups
from bayesrbf.report.verdict import JudgedByRivals

Estimate = tuple[float, float]
"""A value and its standard error."""


@dataclass(frozen=True)
class Diagnostics:
    """State of the fit and of its posterior: findings, worst figures, warnings."""

    status: tuple[str, ...]  # Sentences about the fit.
    findings: tuple[Finding, ...]
    variables: tuple[tuple[str, int, float, float], ...]
    """Name, number of entries, worst R-hat, least effective draws."""
    warnings: tuple[str, ...]  # Raised during the run.
    drawn: bool = True  # Whether there are draws, of chains or one by one.

    @property
    def chained(self) -> bool:
        """Whether there are chains to compare."""
        return any(rhat == rhat for _, _, rhat, _ in self.variables)


@dataclass(frozen=True)
class Described:
    """The model, and everything needed to make it again."""

    sentence: str  # What was chosen, and why.
    given: str  # What the graph sums out, or takes as given.
    priors: tuple[tuple[str, str], ...]  # Quantity and prior, in words and numbers.
    trials: tuple[tuple[str, float, bool], ...]
    """Candidate, held-out log loss, whether it won; may be empty."""
    facts: tuple[tuple[str, str], ...]  # Command, versions, seed, digest.


@dataclass(frozen=True)
class UnsureRow:
    """A row that the model is least sure of, and what would help."""

    row: str  # What it is called.
    given: str  # Label; empty where hidden.
    predicted: str  # The most probable class.
    probability: float  # Of that class, as are the limits.
    lower: float  # NaN without draws, as is the upper end.
    upper: float
    aleatoric: float  # In nats, as is the epistemic part.
    epistemic: float
    component: str  # The one with the largest responsibility, in words.
    help: str  # In words.


@dataclass(frozen=True)
class NovelRow:
    """A row unlike all others, and the cell that the rest of the row makes least probable."""

    row: str  # What it is called.
    novelty: float
    column: str  # Of that cell, as are the next two.
    value: str
    expected: str
    without: float  # Novelty of the row if that cell were missing.
    alone: bool  # Whether the row would then be no more novel than others.


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
    novel: tuple[NovelRow, ...]  # The most novel first.

    @property
    def with_intervals(self) -> bool:
        """Whether rows have intervals and kinds of doubt: a point has none."""
        return any(row.lower == row.lower for row in self.rows)

    @property
    def judged(self) -> int:
        """Number of held-out rows, of which ``below`` is a part."""
        return int((self.outcome >= 0).sum())


@dataclass(frozen=True)
class OddCell:
    """A cell that the rest of its row makes improbable."""

    row: str  # What it is called.
    column: str
    value: str  # What stands there.
    expected: str  # What the rest of the row suggests.
    tail: float  # Share of the table's cells that would be at least as extreme.


@dataclass(frozen=True)
class OddLabel:
    """A label that the held-out prediction finds improbable."""

    row: str  # What it is called.
    given: str
    suggested: str  # The most probable class.
    probability: float  # Held out, of the given label.


@dataclass(frozen=True)
class Oddities:
    """Cells and labels that look wrong, the least probable first."""

    cells: tuple[OddCell, ...]
    n_cells: int  # Cells that look wrong, of which at most one in ten is there by chance.
    labels: tuple[OddLabel, ...]  # Beyond what chance explains.
    improbable: Counted  # Labels below a held-out probability of ``bound``.
    bound: float
    density: str  # What cells are judged by, in a sentence or two.


@dataclass(frozen=True)
class Filled:
    """A missing cell and what was filled in."""

    row: str  # What it is called.
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
    n_checked: int  # Number of real cells behind ``covered`` and ``error``.
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


@dataclass(frozen=True)
class Score:
    """Scores of one classifier on held-out rows, means over folds."""

    name: str
    log_loss: Estimate  # In nats.
    brier: Estimate
    accuracy: Estimate
    slope: Interval
    calibration: Calibration


@dataclass(frozen=True)
class Column:
    """Summary of one column."""

    name: str
    kind: Kind
    missing: float  # A share.
    content: str  # Range, or most frequent levels.
    histogram: Float[np.ndarray, " bar"]
    """Counts in equal bins of a real column, or of the most frequent levels."""


@dataclass(frozen=True)
class Reading:
    """Summary of the table."""

    rows: int
    columns: tuple[Column, ...]  # Without the target.
    class_counts: Mapping[str, int]  # Labelled rows by class.
    hidden: int  # Rows without a label.
    holes: Float[np.ndarray, "band column"]  # Share of missing cells by band of consecutive rows.
    band: int  # Rows in a band.
    patterns: int  # Number of distinct patterns of missing cells.
    notes: tuple[str, ...]  # Sentences on what looked odd.

    @property
    def missing(self) -> float:
        """Share of missing cells of the whole table."""
        shares = [column.missing for column in self.columns]
        return float(np.mean(shares)) if shares else 0.0


@dataclass(frozen=True)
class Report:
    """Everything on the page, section by section."""

    title: str
    target: str  # Name of the label column.
    classes: tuple[str, ...]
    estimator: str  # Name of the classifier's class.
    inference: str  # How the posterior was made, and why.
    intervals: str  # How often its intervals hold the truth, or that this was not tried.
    scores: tuple[Score, ...]  # The model first, then the class frequencies and the rivals.
    folds: int
    confusion: Int[np.ndarray, "label label"]
    """Held-out rows by true (row) and decided (column) class."""
    judged: JudgedByRivals
    performance: Performance
    subgroups: Subgroups
    reading: Reading
    doubt: Doubt
    oddities: Oddities
    learned: Learned
    imputations: Imputations
    diagnostics: Diagnostics
    described: Described
    check: Check | None = None  # Where the truth of hidden labels is known.
    costs: Costs | None = None  # Where costs were given.
    row_title: str = "row"  # What the names of rows are called.

    @property
    def most_frequent(self) -> float:
        """Share of the most frequent class among the held-out rows."""
        of_class = self.confusion.sum(axis=1)
        return float(of_class.max() / max(of_class.sum(), 1))

    @property
    def unvalidated(self) -> Mapping[str, int]:
        """Classes of one or two labelled rows."""
        return unvalidated(self.reading.class_counts)
