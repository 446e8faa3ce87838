"""Whether the probabilities can be trusted: held-out figures against answers without a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import t as student

from bayesrbf.answers.scores import Interval
from bayesrbf.app.report.costs import costs_of
from bayesrbf.app.report.held_out import LOGISTIC, HeldOutRows
from bayesrbf.app.report.options import ANYTHING, Focus
from bayesrbf.app.report.performance import Judged, few_for_calibration, is_open, of_separation
from bayesrbf.app.report.scores import MeanScores, calibrated, calibration_words
from bayesrbf.app.words import clipped, ends, listing, number, percent, plural, with_ends
from bayesrbf.base.arrays import correct, log_loss, mean_over_folds
from bayesrbf.fit.decisions import mistakes, paid

SO_FAR_AS_SEEN: Final = "so far as these rows tell"
MIN_JUDGED_ROWS: Final = 20
MIN_PER_CLASS: Final = 5
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
        """Whether the model is surely worse: the interval is below 0."""
        return self.interval.upper < 0


@dataclass(frozen=True)
class Rival:
    """A competing model, and the gains of the judged model over it."""

    name: str  # Of its answers, in words.
    log_loss: float
    answers: float  # Share of wrong answers, or mean cost of a row.
    gain: Gain  # In log loss.
    gain_of_answers: Gain


@dataclass(frozen=True)
class JudgedByRivals:
    """The model compared with the class frequencies and the best rival on the same rows."""

    rows: int
    smallest: int  # Rows of the second most frequent class among them.
    log_loss: float
    answers: float
    base: Rival  # Log loss of the class frequencies, answers always the same.
    rival: Rival | None
    in_costs: bool  # Whether answers are judged by the costs that were given.
    groups: int | None = None  # Number of groups of rows that belong together.

    @property
    def enough(self) -> bool:
        """Whether there are enough rows to judge."""
        n_subjects = self.rows if self.groups is None else self.groups
        return n_subjects >= MIN_JUDGED_ROWS and self.smallest >= MIN_PER_CLASS

    @property
    def helps(self) -> bool:
        """Whether enough rows show that the model is better than the class frequencies."""
        return self.enough and self.base.gain.better

    @property
    def is_open(self) -> bool:
        """Whether the rows are too few to compare the model with the class frequencies."""
        return is_open(self.base.gain.interval, self.base.log_loss)

    @property
    def rivals(self) -> list[Rival]:
        """The constant answer, and the best rival, if any."""
        return [self.base, *([] if self.rival is None else [self.rival])]

    @property
    def leads(self) -> list[tuple[str, Interval | None, Interval | None]]:
        """Rivals of the headline, with the leads over each in log loss and in answers."""
        base, rival = self.base, self.rival
        leads: list[tuple[str, Interval | None, Interval | None]] = [
            ("class frequencies", base.gain.interval, None),
            (base.name, None, base.gain_of_answers.interval),
        ]
        if rival is not None:
            leads.append((rival.name, rival.gain.interval, rival.gain_of_answers.interval))
        return leads


def gain(
    loss: Float[np.ndarray, " obs"],
    other: Float[np.ndarray, " obs"],
    subjects: Int[np.ndarray, " obs"] | None = None,
    level: float = ANYTHING.level,
) -> Gain:
    """Mean paired difference ``other - loss``; its standard error is clustered by unit."""
    subjects = np.arange(loss.size) if subjects is None else subjects
    number_of = np.unique(subjects).size
    mean, error = mean_over_folds(other - loss, subjects)
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


def compute(
    held_out: HeldOutRows,
    focus: Focus,
    model: str,
    frequencies: str,
    other: str | None,
    groups: Int[np.ndarray, " obs"] | None = None,
) -> JudgedByRivals:
    """Compare classifiers by their names; answers by costs where any is given.

    Rows of one of the ``groups`` are not independent: errors are those of means over groups.
    """
    rows = held_out.scored
    labels = held_out.labels[rows]
    subjects = None if groups is None else groups[rows]
    n_classes = len(held_out.classes)
    costs, level = focus.costs, focus.level
    matrix = mistakes(costs_of(held_out.classes, costs))
    names = filter(None, (model, frequencies, other))
    p = {name: held_out.probabilities[name][rows] for name in names}
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
            gain(losses[model], losses[losses_of], subjects, level),
            gain(answers[model], paid_by, subjects, level),
        )

    return JudgedByRivals(
        rows=len(rows),
        smallest=int(np.sort(np.bincount(labels, minlength=n_classes))[-2]),
        log_loss=float(losses[model].mean()),
        answers=float(answers[model].mean()),
        base=rival(always, frequencies, matrix[labels, same]),
        rival=None
        if other is None
        else rival(other if other == LOGISTIC else f"the {other}", other, answers[other]),
        in_costs=bool(costs),
        groups=None if subjects is None else int(np.unique(subjects).size),
    )


def say(
    judged: JudgedByRivals,
    scores: MeanScores,
    performance: Judged,
    too_good: str,
    level: float,
    *,
    warned: bool = False,
) -> dict[str, str]:
    """Messages on calibration and on the gains over rivals, with the verdict.

    ``too_good`` says why figures may be better than those of new rows, empty if they are not. Where
    something else was found in the rows, readers are ``warned`` and there is no plain yes.
    """
    right, enough, words = read_calibration(scores, performance)
    clauses = evidence(judged), too_good, of_separation(performance.hardest[1].auroc)
    loss, rival = performance.model.log_loss, judged.rival
    its = "" if rival is None else f", that of {rival.name} {number(rival.log_loss)}"
    return {
        "verdict": verdict(judged, right and enough and not too_good and not warned, words),
        "evidence": " ".join(filter(None, clauses)),
        "surprise": (
            f"The average surprise (log loss) is {number(loss.value)} nats "
            f"({ends(loss.lower, loss.upper)}), that of the class frequencies "
            f"{number(judged.base.log_loss)}{its}: a row counts 0 where its true class was given "
            "all probability, 0.69 at one half, 4.6 at one in 100."
        ),
        "scores": "" if rival is None else _beside(rival, judged, performance, level),
    }


def _beside(rival: Rival, judged: JudgedByRivals, performance: Judged, level: float) -> str:
    """Message on log loss and accuracy, compared with the best rival."""
    lead = rival.gain.interval
    kind = "no better, so far as these rows tell, than"
    if rival.gain.better or rival.gain.worse:
        kind = f"{'better' if rival.gain.better else 'worse'} than"
    return (
        f"The average surprise at the true class (log loss) is {number(judged.log_loss)} nats "
        f"on rows held out, {kind} the {number(rival.log_loss)} of {rival.name}, the best "
        f"rival (a lead of {number(lead.value)}, {percent(level)} interval "
        f"{ends(lead.lower, lead.upper)}); the most probable class is right in "
        f"{percent(performance.model.accuracy.value)} of the rows."
    )


def tell(judged: JudgedByRivals) -> Iterator[tuple[str, str]]:
    """The leads by their names."""
    form = number if judged.in_costs else percent
    answers = "lead in the cost of a row" if judged.in_costs else "lead in right answers"
    leads = judged.leads
    in_loss = [f"{with_ends(lead)} over {name}" for name, lead, _ in leads if lead is not None]
    yield "lead in log loss", listing(in_loss)
    in_answers = [f"{with_ends(lead, form)} over {name}" for name, _, lead in leads if lead]
    yield answers, listing(in_answers)


def figures(judged: JudgedByRivals) -> dict[str, Any]:
    """Figures of the section for JSON."""
    most_probable, answers = "the most probable class", "share right"
    by = most_probable
    if judged.in_costs:
        by, answers = "the decision of least expected cost", "cost of a row"
    return {
        "rows": judged.rows,
        "decided_by": {"share right": most_probable, "against_rest": by},
        "leads": [
            {"over": name}
            | ({"log loss": in_loss} if in_loss else {})
            | ({answers: in_answers} if in_answers else {})
            for name, in_loss, in_answers in judged.leads
        ],
        "cost_of_a_row": judged.answers if judged.in_costs else None,
    }


def read_calibration(scores: MeanScores, performance: Judged) -> tuple[bool, bool, str]:
    """Whether probabilities are calibrated, whether rows suffice, and a clause on both."""
    event = None if performance.event is None else performance.hardest[1]
    right = calibrated(scores.slope, scores.calibration, event, grouped=scores.grouped)
    few = few_for_calibration(performance.confusion.sum(axis=1).tolist())
    if right and few:
        return True, False, f"its calibration {few}"
    return right, True, calibration_words(scores, event)


def trusted(judged: JudgedByRivals, scores: MeanScores, performance: Judged) -> bool:
    """Whether enough rows show that the model beats its rivals and is calibrated."""
    right, enough, _ = read_calibration(scores, performance)
    can_tell = judged.enough and not judged.is_open
    return can_tell and _answer(judged, right and enough) == "Yes"


def verdict(judged: JudgedByRivals, calibrated: bool, calibration: str) -> str:
    """The headline: an answer, and why.

    ``calibrated`` says whether the probabilities come true as often as they say, ``calibration``
    is half a sentence on that.
    """
    if not judged.enough:
        return worth(judged)
    if judged.is_open:
        return f"{worth(judged).removesuffix('.')}; {calibration}."
    answer = _answer(judged, calibrated)
    return f"{answer}: it is {_beside_rivals(judged, answer)}; {calibration}."


def worth(judged: JudgedByRivals) -> str:
    """Message: whether the model is better than the class frequencies and the rivals."""
    if not judged.enough:
        rows = f"{plural(judged.rows, 'row')} that it had not seen{_of_groups(judged)}"
        return (
            f"Too few rows to tell: with {rows}, {judged.smallest} of them of the second most "
            "frequent class, figures are mostly luck."
        )
    if judged.is_open:
        return (
            "Too few rows to tell whether it is better than the class frequencies: its lead in log "
            f"loss is {with_ends(judged.base.gain.interval)}."
        )
    return f"It is {_beside_rivals(judged, '')}."


def evidence(judged: JudgedByRivals) -> str:
    """A sentence: right answers, or the cost of a row, of the model and of both rivals."""
    rivals = [(rival.answers, rival.name) for rival in judged.rivals]
    figures = [f"{percent(1 - judged.answers)} of its answers are right"]
    figures += [f"{percent(1 - answers)} by {name}" for answers, name in rivals]
    if judged.in_costs:
        figures = [f"a row costs {number(judged.answers)} by its decisions"]
        figures += [f"{number(answers)} by {name}" for answers, name in rivals]
    rows = f"{plural(judged.rows, 'row')} that it had not seen{_of_groups(judged)}"
    return f"On {rows} {', '.join(figures)}."


def _answer(judged: JudgedByRivals, calibrated: bool) -> str:
    """The first words: whether to trust the probabilities."""
    base, rival = judged.base, judged.rival
    if not base.gain.better:
        return "No"
    if _worse(rival) or not base.gain_of_answers.better or not calibrated:
        return "With care"
    if rival is not None and not rival.gain.better:
        return f"As much as {rival.name}'s, and no more {SO_FAR_AS_SEEN}"
    return "Yes"


def _beside_rivals(judged: JudgedByRivals, answer: str) -> str:
    """The comparison in words: better than, no better than, worse than which rivals."""
    base, rival = judged.base, judged.rival
    compared = [
        ("the class frequencies", base.gain.better, base.gain.worse),
        (base.name, base.gain_of_answers.better, base.gain_of_answers.worse),
    ]
    if rival is not None:
        worse = _worse(rival)
        compared.append((rival.name, rival.gain.better and not worse, worse))
    better = [name for name, is_better, _ in compared if is_better]
    worse_than = [name for name, _, is_worse in compared if is_worse]
    undecided = [name for name, *surely in compared if not any(surely) and name not in answer]
    rest = [f"no better than {' or '.join(undecided)} {SO_FAR_AS_SEEN}"] if undecided else []
    rest += [f"worse than {listing(worse_than)}"] if worse_than else []
    clauses = [f"better than {listing(better)}"] if better else []
    if not base.gain.better:  # the reason of a "No" comes first
        return ", though ".join([", and ".join(rest), *clauses])
    return ", but ".join([*clauses, *filter(None, [", and ".join(rest)])])


def _worse(rival: Rival | None) -> bool:
    """Whether there is a rival, and it is surely better in log loss or in answers."""
    return rival is not None and (rival.gain.worse or rival.gain_of_answers.worse)


def _of_groups(judged: JudgedByRivals) -> str:
    """The number of groups in words; empty where rows have no groups."""
    return "" if judged.groups is None else f" in {plural(judged.groups, 'group')}"
