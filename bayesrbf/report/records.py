"""What a report says, before it is drawn: frozen records of numbers and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.posterior.calibration import Calibration
from bayesrbf.report.costs import Costs
from bayesrbf.report.model_records import Described, Diagnostics, Kind, Learned
from bayesrbf.report.row_records import Check, Doubt, Imputations, Oddities

Estimate = tuple[float, float]
"""A value and its standard error."""


@dataclass(frozen=True)
class Score:
    """Scores of one classifier on held-out rows, means over folds."""

    name: str
    log_loss: Estimate  # In nats.
    brier: Estimate
    accuracy: Estimate
    slope: Estimate
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
    scores: tuple[Score, ...]  # The model first, then the baselines.
    folds: int
    confusion: Int[np.ndarray, "label label"]
    """Held-out rows by true (row) and predicted (column) class."""
    reading: Reading
    doubt: Doubt
    oddities: Oddities
    learned: Learned
    imputations: Imputations | None  # None where the model has no density of the rows.
    diagnostics: Diagnostics
    described: Described
    check: Check | None = None  # Where the truth of hidden labels is known.
    costs: Costs | None = None  # Where costs were given.
