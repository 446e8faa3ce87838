"""What a report says, before it is drawn: frozen records of numbers and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.posterior.calibration import Calibration

Kind = Literal["real", "categorical"]
Role = Literal["free", "deterministic", "observed", "data"]
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
        Nats.
    outcome : ndarray of shape (n_obs,)
        1 where the held-out prediction was right, 0 where wrong, -1 where unknown.
    rows : tuple of UnsureRow
        The least sure, first the least.
    below : int
        Number of rows whose most probable class has less than ``threshold``.
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
        Number of known real cells behind ``covered``.
    hidden_truth : bool
        Whether those were hidden from the model (else each was left out in turn).
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
    imputations : Imputations
        Section 7.
    diagnostics : Diagnostics
        Section 8.
    described : Described
        Section 9.
    check : Check, optional
        Hidden labels, where their truth is known.
    """

    title: str
    target: str
    classes: tuple[str, ...]
    inference: str
    scores: tuple[Score, ...]
    folds: int
    confusion: Int[np.ndarray, "label label"]
    reading: Reading
    doubt: Doubt
    oddities: Oddities
    learned: Learned
    imputations: Imputations
    diagnostics: Diagnostics
    described: Described
    check: Check | None = None
