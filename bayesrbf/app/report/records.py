"""Frozen records of a report's numbers and words, and the verdict on held-out figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.stats import t as student

from bayesrbf.answers.scores import (
    LEVEL,
    Calibration,
    Counted,
    DecisionCurve,
    Interval,
    OneAgainstRest,
    Positive,
    ReliabilityCurve,
    Score,
    auroc,
    calibration,
    decision_curve,
    holm,
    mean,
    one_against_rest,
    proportion,
    two_sided,
)
from bayesrbf.app.report.costs import Costs, costs_of, decisions
from bayesrbf.app.report.held_out import LOGISTIC, HeldOutRows
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.learned import Learned
from bayesrbf.app.words import between, clipped, ends, listing, number, percent, plural
from bayesrbf.base.arrays import brier, correct, log_loss, mean_over_folds
from bayesrbf.fit.decisions import mistakes, paid
from bayesrbf.inference.diagnose import Finding

# Figures of single classes on held-out rows: how they are ranked, found and acted on.


UNVALIDATED: Final = 2
"""Rows of a class up to which nothing that is said of it can be validated."""
THRESHOLDS: Final = np.linspace(0.01, 0.99, 99)
MOST_CURVES: Final = 6
"""Classes whose decision curves are drawn: the most frequent."""


@dataclass(frozen=True)
class Curves:
    """Decision curves of one class."""

    name: str
    own: DecisionCurve
    rival: DecisionCurve
    threshold: float | None  # At the costs that were given.


@dataclass(frozen=True)
class Event:
    """Which of two classes the figures are about, and from which probability a row is called so."""

    name: str
    why: str  # In words.
    threshold: float  # At the costs that were given; without any, one half.


@dataclass(frozen=True)
class Performance:
    """Held-out figures of the model with their intervals."""

    accuracy: Interval
    log_loss: Interval  # In nats.
    brier: Interval
    classes: tuple[tuple[str, OneAgainstRest, Interval], ...]
    """Name, the model's figures, AUROC of the best rival; of two classes only the one of
    interest."""
    curves: tuple[Curves, ...]
    event: Event | None  # None for more than two classes.
    reliability: ReliabilityCurve
    """Curve of the probability of the event, or of the most probable of more than two classes."""

    @property
    def hardest(self) -> tuple[str, OneAgainstRest, Interval]:
        """The class with the lowest AUROC; of two classes the one of interest."""
        judged = [
            of_class
            for of_class in self.classes
            if of_class[1].auroc.value == of_class[1].auroc.value
        ]
        return min(judged or self.classes, key=lambda of_class: of_class[1].auroc.value)


def class_of_interest(held_out: HeldOutRows, costs: Mapping[str, float]) -> int:
    """The dearest class where costs differ, else the rarest one; of ties the last."""
    each = costs_of(held_out.classes, costs)
    if np.ptp(each) > 0:
        return int(each.argmax())
    counts = np.bincount(held_out.labels[held_out.scored], minlength=each.size)
    return int(each.size - 1 - counts[::-1].argmin())


def unvalidated(counts: Mapping[str, int]) -> dict[str, int]:
    """Classes of one or two labelled rows, and how many."""
    return {name: rows for name, rows in counts.items() if rows <= UNVALIDATED}


def read_performance(
    held_out: HeldOutRows, costs: Mapping[str, float], model: str, rival: str
) -> Performance:
    """Judge every class against the rest on the held-out rows."""
    rows = held_out.scored
    labels = held_out.labels[rows]
    p, other = held_out.probabilities[model][rows], held_out.probabilities[rival][rows]
    decided = decisions(p, held_out.classes, costs)
    focus = class_of_interest(held_out, costs)
    counts = np.bincount(labels, minlength=len(held_out.classes))
    binary = len(held_out.classes) == 2
    shown = [focus] if binary else range(len(held_out.classes))
    frequent = [int(c) for c in np.argsort(-counts, kind="stable") if counts[c] > UNVALIDATED]
    each = costs_of(held_out.classes, costs)
    threshold = float(1 - each[focus] / each.sum())
    return Performance(
        accuracy=proportion(float(correct(p, labels).mean()), labels.size),
        log_loss=mean(log_loss(p, labels)),
        brier=mean(brier(p, labels)),
        classes=tuple(
            (
                str(held_out.classes[c]),
                one_against_rest(p[:, c], decided == c, labels == c),
                auroc(other[:, c], labels == c),
            )
            for c in shown
        ),
        curves=tuple(
            Curves(
                str(held_out.classes[c]),
                decision_curve(p[:, c], labels == c, THRESHOLDS),
                decision_curve(other[:, c], labels == c, THRESHOLDS),
                threshold if binary and costs else None,
            )
            for c in ([focus] if binary else frequent[:MOST_CURVES])
        ),
        event=Event(str(held_out.classes[focus]), _why(counts, each), threshold)
        if binary
        else None,
        reliability=_reliability(p[:, focus], labels == focus)
        if binary
        else _reliability(p.max(axis=1), labels == p.argmax(axis=1)),
    )


def _why(counts: Int[np.ndarray, " label"], costs: Float[np.ndarray, " label"]) -> str:
    """Why a class is the one of interest."""
    if np.ptp(costs) > 0:
        return "the class whose mistakes cost most"
    return "the rarer class" if np.ptp(counts) > 0 else "the last of two equally frequent classes"


def _reliability(p: Score, happened: Positive) -> ReliabilityCurve:
    """Observed frequency of an event by its predicted probability."""
    return calibration(np.column_stack([1 - p, p]), happened.astype(int)).curves[1]


# Whether probabilities come true in every part of the table: levels and ranges of its columns.


QUARTERS: Final = (0.25, 0.5, 0.75)
MOST_LEVEL_GROUPS: Final = 12
"""Levels of a column that are groups; all others are one together."""
FEWEST_IN_GROUP: Final = 5
"""Rows of a group below which it is not looked at."""
WRONGLY: Final = 0.05
"""Probability with which any group is told as off although the model is calibrated."""
LISTED_GROUPS: Final = 12


@dataclass(frozen=True)
class Subgroup:
    """One class in one part of the held-out rows."""

    name: str
    label: str
    rows: int
    predicted: float  # Mean probability of the class.
    came: Interval  # Share of the class.
    chance: float  # Probability of such a share, or a rarer one, for a calibrated model.


@dataclass(frozen=True)
class Subgroups:
    """Parts of the table in which probabilities do not come true beyond chance."""

    looked_at: int  # Pairs of a part and a class.
    off: tuple[Subgroup, ...]  # The least probable first.


def read_subgroups(job: Job, held_out: HeldOutRows, model: str) -> Subgroups:
    """Hold said against come true in every group, for every class; for one where there are two.

    For a calibrated model the number of rows of a class in a group has a Poisson-binomial law.
    Holm's method counts how many groups were looked at.
    """
    rows = held_out.scored
    p, labels = held_out.probabilities[model][rows], held_out.labels[rows]
    frequent = np.bincount(labels, minlength=len(held_out.classes)) >= FEWEST_IN_GROUP
    binary = len(held_out.classes) == 2
    classes = [class_of_interest(held_out, job.costs)] if binary else np.flatnonzero(frequent)
    parts = []
    for name, inside in groups_of(job, rows):
        size = int(inside.sum())
        for c in classes if FEWEST_IN_GROUP <= size < len(rows) else ():
            came = int((labels[inside] == c).sum())
            own = p[inside, c]
            parts.append(
                Subgroup(
                    name,
                    str(held_out.classes[c]),
                    size,
                    float(own.mean()),
                    proportion(came / size, size),
                    two_sided(own, came),
                )
            )
    off = holm(np.array([group.chance for group in parts]), WRONGLY)
    listed = sorted((group for group, bad in zip(parts, off, strict=True) if bad), key=_chance)
    return Subgroups(len(parts), tuple(listed[:LISTED_GROUPS]))


def _chance(group: Subgroup) -> float:
    """Sort key of a group: the p value of its deviation."""
    return group.chance


def groups_of(job: Job, rows: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Names of groups and which of some rows are in them: levels, quarters, missing cells."""
    for name in job.X.columns:
        column = job.X[name].iloc[rows].reset_index(drop=True)
        shown = clipped(name, 30)
        if not job.kinds[name].has_levels:
            yield from _quarters(job, name, column.to_numpy(dtype=float), shown)
        else:
            yield from _levels(column, shown)
        missing = column.isna().to_numpy()
        if missing.any():
            yield f"{shown} missing", missing


def _quarters(
    job: Job, name: str, values: np.ndarray, shown: str
) -> Iterator[tuple[str, np.ndarray]]:
    """Four ranges with about as many rows each; fewer where values repeat."""
    observed = values[~np.isnan(values)]
    if not observed.size:
        return
    cuts = np.unique(np.quantile(observed, QUARTERS, method="inverted_cdf"))
    part = np.where(np.isnan(values), -1, np.searchsorted(cuts, values))
    for value in np.unique(part[part >= 0]):
        inside = part == value
        low, high = (job.cell(name, float(f(values[inside]))) for f in (np.min, np.max))
        yield f"{shown} {between(low, high)}", inside


def _levels(column: pd.Series, shown: str) -> Iterator[tuple[str, np.ndarray]]:
    """The most frequent levels, and all others together."""
    frequent = column.dropna().value_counts().index[:MOST_LEVEL_GROUPS]
    for level in frequent:
        inside = column.eq(level).to_numpy(dtype=bool, na_value=False)
        yield f"{shown} = {clipped(level, 24)}", inside
    others = (column.notna() & ~column.isin(frequent)).to_numpy()
    if others.any():
        yield f"{shown}: other levels", others


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
) -> Gain:
    """Mean difference of what two pay for the same rows; rows of one unit belong together."""
    each = np.arange(own.size) if units is None else units
    number_of = np.unique(each).size
    mean, error = mean_over_folds(other - own, each)
    if number_of == 1:
        return Gain(mean, np.inf, np.inf)
    return Gain(mean, error, float(student.ppf(0.5 + LEVEL / 2, number_of - 1)))


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
    costs: Mapping[str, float],
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
    each = np.array([costs.get(str(label), 1.0) for label in held_out.classes])
    matrix = mistakes(each if costs else np.ones(n_classes))
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
            gain(losses[model], losses[losses_of], units),
            gain(answers[model], paid_by, units),
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
        return _lead(gain, number if judged.in_costs else percent)

    base, rival = judged.base, judged.rival
    return [
        ("class frequencies", _lead(base.gain, number), ""),
        (base.name, "", in_answers(base.gain_of_answers)),
        (rival.name, _lead(rival.gain, number), in_answers(rival.gain_of_answers)),
    ]


def _lead(gain: Gain, form: Callable[[float], str]) -> str:
    """A lead with its interval."""
    one = gain.interval
    return f"{form(one.value)} ({ends(one.lower, one.upper, form)})"


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
