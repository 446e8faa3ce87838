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
    """How well one classifier did on held-out rows.

    Attributes
    ----------
    name : str
        The classifier.
    log_loss, brier, accuracy : tuple of float
        Mean and standard error over folds; log loss in nats.
    slope : tuple of float
        Calibration slope and its standard error.
    calibration : Calibration
        Classwise calibration error, its noise band, reliability curves.
    """

    name: str
    log_loss: Estimate
    brier: Estimate
    accuracy: Estimate
    slope: Estimate
    calibration: Calibration


@dataclass(frozen=True)
class Column:
    """What was read in one column.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"real", "categorical"}
        What it was taken for.
    missing : float
        Share of missing cells.
    content : str
        Range, or most frequent levels.
    histogram : ndarray of shape (n_bars,)
        Counts in equal bins of a real column, or of the most frequent levels.
    """

    name: str
    kind: Kind
    missing: float
    content: str
    histogram: Float[np.ndarray, " bar"]


@dataclass(frozen=True)
class Reading:
    """What was read.

    Attributes
    ----------
    rows : int
        Number of rows.
    columns : tuple of Column
        Columns, target left out.
    class_counts : mapping of str to int
        Labelled rows by class.
    hidden : int
        Rows without a label.
    holes : ndarray of shape (n_bands, n_columns)
        Share of missing cells by band of consecutive rows and column.
    band : int
        Rows in a band.
    patterns : int
        Number of distinct patterns of missing cells.
    notes : tuple of str
        Sentences on what looked odd.
    """

    rows: int
    columns: tuple[Column, ...]
    class_counts: Mapping[str, int]
    hidden: int
    holes: Float[np.ndarray, "band column"]
    band: int
    patterns: int
    notes: tuple[str, ...]

    @property
    def missing(self) -> float:
        """Share of missing cells of the whole table."""
        shares = [column.missing for column in self.columns]
        return float(np.mean(shares)) if shares else 0.0


@dataclass(frozen=True)
class Report:
    """Everything on the page, section by section.

    Attributes
    ----------
    title : str
        Name of the table.
    target : str
        Name of the label column.
    classes : tuple of str
        Class names.
    estimator : str
        Name of the classifier's class.
    inference : str
        How the posterior was made and why.
    scores : tuple of Score
        The model first, then the yardsticks.
    folds : int
        Number of folds.
    confusion : ndarray of shape (n_classes, n_classes)
        Held-out rows by true (row) and predicted (column) class.
    reading : Reading
        Section 2.
    doubt : Doubt
        Section 4.
    oddities : Oddities
        Section 5.
    learned : Learned
        Section 6.
    imputations : Imputations, optional
        Section 7; none where the model has no density of the rows.
    diagnostics : Diagnostics
        Section 8.
    described : Described
        Section 9.
    check : Check, optional
        Hidden labels, where their truth is known.
    costs : Costs, optional
        Decisions, where it was said what mistakes cost.
    """

    title: str
    target: str
    classes: tuple[str, ...]
    estimator: str
    inference: str
    scores: tuple[Score, ...]
    folds: int
    confusion: Int[np.ndarray, "label label"]
    reading: Reading
    doubt: Doubt
    oddities: Oddities
    learned: Learned
    imputations: Imputations | None
    diagnostics: Diagnostics
    described: Described
    check: Check | None = None
    costs: Costs | None = None
