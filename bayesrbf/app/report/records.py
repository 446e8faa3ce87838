"""Frozen records of a report's numbers and words, and the verdict on held-out figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import t as student

import bayesrbf
from bayesrbf.answers.comparisons import GivenScore, Parts
from bayesrbf.answers.scores import (
    LEVEL,
    Calibration,
    Counted,
    Interval,
)
from bayesrbf.answers.stability import Stability
from bayesrbf.app.report.costs import Costs, costs_of
from bayesrbf.app.report.held_out import LOGISTIC, HeldOutRows
from bayesrbf.app.report.learned import Learned
from bayesrbf.app.report.options import ANYTHING, Focus
from bayesrbf.app.report.performance import Event, Judged, Subgroups, is_open, unvalidated
from bayesrbf.app.words import clipped, listing, number, percent, plural, with_ends
from bayesrbf.base.arrays import correct, log_loss, mean_over_folds
from bayesrbf.fit.decisions import mistakes, paid
from bayesrbf.inference.diagnose import Finding

# Whether the probabilities can be trusted: held-out figures against answers that need no model.


SO_FAR_AS_SEEN: Final = "so far as these rows tell"
FEWEST_JUDGED_ROWS: Final = 20
FEWEST_OF_CLASS: Final = 5
"""Held-out rows, and those of the second most frequent class, below which nothing is judged."""


@dataclass(frozen=True)
class Gain:
    """Mean difference of a loss between another model and this one, row by row."""

    mean: float
    error: float  # Standard error.
    sure: float  # Standard errors from the mean to the ends of its interval.

    @property
    def interval(self) -> Interval:
        """The mean with its interval."""
        return Interval(
            self.mean, self.mean - self.sure * self.error, self.mean + self.sure * self.error
        )

    @property
    def better(self) -> bool:
        """Whether the model is surely better: the interval is above 0."""
        return self.interval.lower > 0

    @property
    def worse(self) -> bool:
        """Whether it is surely worse: the interval is below 0."""
        return self.interval.upper < 0


@dataclass(frozen=True)
class Rival:
    """A model that this one is compared with, and the gains over it."""

    name: str  # Of its answers, in words.
    log_loss: float
    answers: float  # Share of wrong answers, or mean cost of a row.
    gain: Gain  # In log loss.
    gain_of_answers: Gain


@dataclass(frozen=True)
class JudgedByRivals:
    """The model beside the class frequencies and the best rival on the same held-out rows."""

    rows: int
    smallest: int  # Rows of the second most frequent class among them.
    log_loss: float
    answers: float
    base: Rival  # Log loss of the class frequencies, answers always the same.
    rival: Rival
    in_costs: bool  # Whether answers are judged by the costs that were given.
    groups: int | None = None  # Number of groups of rows that belong together.

    @property
    def enough(self) -> bool:
        """Whether there are rows enough to judge."""
        units = self.rows if self.groups is None else self.groups
        return units >= FEWEST_JUDGED_ROWS and self.smallest >= FEWEST_OF_CLASS


def gain(
    own: Float[np.ndarray, " obs"],
    other: Float[np.ndarray, " obs"],
    units: Int[np.ndarray, " obs"] | None = None,
    level: float = LEVEL,
) -> Gain:
    """Mean difference of what two pay for the same rows; rows of one unit belong together."""
    each = np.arange(own.size) if units is None else units
    number_of = np.unique(each).size
    mean, error = mean_over_folds(other - own, each)
    if number_of == 1:
        return Gain(mean, np.inf, np.inf)
    return Gain(mean, error, float(student.ppf(0.5 + level / 2, number_of - 1)))


def best_of(held_out: HeldOutRows, names: Sequence[str]) -> str:
    """The classifier of least log loss on the held-out rows."""
    rows = held_out.scored
    losses = {
        name: log_loss(held_out.probabilities[name][rows], held_out.labels[rows]).mean()
        for name in names
    }
    return min(losses, key=losses.__getitem__)


def judge(
    held_out: HeldOutRows,
    focus: Focus,
    model: str,
    frequencies: str,
    other: str,
    groups: Int[np.ndarray, " obs"] | None = None,
) -> JudgedByRivals:
    """Compare three classifiers by their names; answers by costs where any is given.

    Rows of one of the ``groups`` are not independent: errors are those of means over groups.
    """
    rows = held_out.scored
    labels = held_out.labels[rows]
    units = None if groups is None else groups[rows]
    n_classes = len(held_out.classes)
    costs, level = focus.costs, focus.level
    matrix = mistakes(costs_of(held_out.classes, costs))
    p = {name: held_out.probabilities[name][rows] for name in (model, frequencies, other)}
    losses = {name: log_loss(probabilities, labels) for name, probabilities in p.items()}
    answers = {
        name: paid(probabilities, labels, matrix) if costs else 1 - correct(probabilities, labels)
        for name, probabilities in p.items()
    }
    same = int(matrix[labels].mean(axis=0).argmin())
    always = f"always answering “{clipped(held_out.classes[same], 24)}”"

    def rival(name: str, losses_of: str, paid_by: np.ndarray) -> Rival:
        return Rival(
            name,
            float(losses[losses_of].mean()),
            float(paid_by.mean()),
            gain(losses[model], losses[losses_of], units, level),
            gain(answers[model], paid_by, units, level),
        )

    return JudgedByRivals(
        rows=len(rows),
        smallest=int(np.sort(np.bincount(labels, minlength=n_classes))[-2]),
        log_loss=float(losses[model].mean()),
        answers=float(answers[model].mean()),
        base=rival(always, frequencies, matrix[labels, same]),
        rival=rival(other if other == LOGISTIC else f"the {other}", other, answers[other]),
        in_costs=bool(costs),
        groups=None if units is None else int(np.unique(units).size),
    )


def verdict(judged: JudgedByRivals, calibrated: bool, calibration: str) -> str:
    """The headline: an answer, and why.

    ``calibrated`` says whether the probabilities come true as often as they say, ``calibration``
    is half a sentence on that.
    """
    if not judged.enough:
        rows = f"{plural(judged.rows, 'row')} held out{_of_groups(judged)}"
        return (
            f"Too few rows to tell: with {rows}, {judged.smallest} of them of the second most "
            "frequent class, figures are mostly luck."
        )
    if is_open(lead := judged.base.gain.interval, judged.base.log_loss):
        return (
            "Too few rows to tell whether it is better than the class frequencies: its lead in log "
            f"loss is {with_ends(lead)}; {calibration}."
        )
    answer = _answer(judged, calibrated)
    return f"{answer}: it is {_beside_rivals(judged, answer)}; {calibration}."


def evidence(judged: JudgedByRivals) -> str:
    """A sentence: right answers, or the cost of a row, of the model and of both rivals."""
    base, rival = judged.base, judged.rival
    if judged.in_costs:
        figures = (
            f"a row costs {number(judged.answers)} by its decisions, {number(base.answers)} by "
            f"{base.name}, {number(rival.answers)} by {rival.name}"
        )
    else:
        figures = (
            f"{percent(1 - judged.answers)} of its answers are right, "
            f"{percent(1 - base.answers)} by {base.name}, "
            f"{percent(1 - rival.answers)} by {rival.name}"
        )
    return f"On {plural(judged.rows, 'row')} that it had not seen{_of_groups(judged)} {figures}."


def leads(judged: JudgedByRivals) -> list[tuple[str, str, str]]:
    """Rivals of the headline, with the leads over each in log loss and in answers."""

    def in_answers(gain: Gain) -> str:
        return with_ends(gain.interval, number if judged.in_costs else percent)

    base, rival = judged.base, judged.rival
    return [
        ("class frequencies", with_ends(base.gain.interval), ""),
        (base.name, "", in_answers(base.gain_of_answers)),
        (rival.name, with_ends(rival.gain.interval), in_answers(rival.gain_of_answers)),
    ]


def _answer(judged: JudgedByRivals, calibrated: bool) -> str:
    """The first words: whether to trust the probabilities."""
    base, rival = judged.base, judged.rival
    if not base.gain.better:
        return "No"
    worse = rival.gain.worse or rival.gain_of_answers.worse
    if worse or not base.gain_of_answers.better or not calibrated:
        return "With care"
    if not rival.gain.better:
        return f"As much as {rival.name}'s, and no more {SO_FAR_AS_SEEN}"
    return "Yes"


def _beside_rivals(judged: JudgedByRivals, answer: str) -> str:
    """The comparison in words: better than, no better than, worse than which rivals."""
    base, rival = judged.base, judged.rival
    worse = rival.gain.worse or rival.gain_of_answers.worse
    compared = (
        ("the class frequencies", base.gain.better, base.gain.worse),
        (base.name, base.gain_of_answers.better, base.gain_of_answers.worse),
        (rival.name, rival.gain.better and not worse, worse),
    )
    better = [name for name, is_better, _ in compared if is_better]
    worse_than = [name for name, _, is_worse in compared if is_worse]
    others = [name for name, *surely in compared if not any(surely) and name not in answer]
    rest = [f"no better than {' or '.join(others)} {SO_FAR_AS_SEEN}"] if others else []
    rest += [f"worse than {listing(worse_than)}"] if worse_than else []
    parts = [f"better than {listing(better)}"] if better else []
    if not base.gain.better:  # the reason of a "No" comes first
        return ", though ".join([", and ".join(rest), *parts])
    return ", but ".join([*parts, *filter(None, [", and ".join(rest)])])


def _of_groups(judged: JudgedByRivals) -> str:
    """The number of groups in words; empty where rows have no groups."""
    return "" if judged.groups is None else f" in {plural(judged.groups, 'group')}"


# Frozen records of a report's numbers and words, before anything is drawn.


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
    by_error: bool = False  # Whether intervals are of an error that no draw of the chains moves.

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
    predicted: str  # What it is called: the decision, or the most probable class.
    probability: float  # Of the event, else of the most probable class, as are the limits.
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
    """Uncertainty of rows by fits that had not seen their labels, and the least sure ones."""

    aleatoric: Float[np.ndarray, " obs"]  # In nats, as is the epistemic part.
    epistemic: Float[np.ndarray, " obs"]
    outcome: Int[np.ndarray, " obs"]
    """1 where the held-out prediction was right, 0 wrong, -1 without a label."""
    rows: tuple[UnsureRow, ...]  # The least sure first.
    judged: int  # Held-out rows.
    below: int  # Those whose most probable class has less than ``threshold``.
    threshold: float
    novel: tuple[NovelRow, ...]  # The most novel first.
    event: Event | None = None  # Of two classes.
    undecided: int | None = None  # Rows whose interval holds the threshold; None without any.

    @property
    def with_intervals(self) -> bool:
        """Whether rows have intervals and kinds of doubt: a point has none."""
        return any(row.lower == row.lower for row in self.rows)

    @property
    def of_rows(self) -> str:
        """How many rows there are, and which, in words."""
        whom = " or without a label" if (self.outcome < 0).any() else ""
        return f"{plural(self.outcome.size, 'row')} held out{whom}"


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
    value: str  # Conditional mean, of an angle the mean direction; or most probable level.
    interval: str
    """Equal-tailed interval of a real cell; deviation of an angle; probability of a level."""
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
    """Hidden cells in column standard deviations, as ``filled``; empty unless cells were hidden."""
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
class MeanScores:
    """Scores of one classifier on held-out rows, means over folds."""

    name: str
    log_loss: Estimate  # In nats.
    brier: Estimate
    accuracy: Estimate
    slope: Interval
    calibration: Calibration
    grouped: bool = False  # Whether rows have groups: chance of the calibration error counts rows.


@dataclass(frozen=True)
class Column:
    """Summary of one column."""

    name: str
    kind: str  # In words.
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
    too_good: str = ""  # Why figures of held-out rows may be too good.

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
    scores: tuple[MeanScores, ...]  # The model first, then the class frequencies and the rivals.
    folds: int
    confusion: Int[np.ndarray, "label label"]
    """Held-out rows by true (row) and decided (column) class."""
    judged: JudgedByRivals
    performance: Judged
    subgroups: Subgroups
    reading: Reading
    doubt: Doubt
    oddities: Oddities
    learned: Learned
    imputations: Imputations
    diagnostics: Diagnostics
    described: Described
    held_out: str = ""  # How rows were held out, where not by chance.
    missingness: str = ""  # What held-out rows gain by missing indicators.
    parts: tuple[Parts, ...] = ()  # By the columns that were asked for.
    score: GivenScore | None = None  # That was given beside the model.
    stability: Stability | None = None  # Where refits were asked for.
    recipe: str = ""  # How they were fitted, in a sentence.
    learning: bayesrbf.LearningCurve | None = None  # Beside these refits, where it could be made.
    check: Check | None = None  # Where the truth of hidden labels is known.
    costs: Costs | None = None  # Where costs were given.
    row_title: str = "row"  # What the names of rows are called.
    focus: Focus = ANYTHING  # What figures and decisions are about.

    @property
    def most_frequent(self) -> float:
        """Share of the most frequent class among the held-out rows."""
        of_class = self.confusion.sum(axis=1)
        return float(of_class.max() / max(of_class.sum(), 1))

    @property
    def unvalidated(self) -> Mapping[str, int]:
        """Classes of one or two labelled rows."""
        return unvalidated(self.reading.class_counts)
