"""Whether the probabilities can be trusted: held-out figures against answers without a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.stats import t as student

from bayesrbf.answers.scores import LEVEL, Interval
from bayesrbf.app.report.costs import costs_of
from bayesrbf.app.report.held_out import LOGISTIC, HeldOutRows
from bayesrbf.app.report.options import Focus
from bayesrbf.app.report.performance import Judged, few_for_calibration, is_open, of_separation
from bayesrbf.app.report.scores import MeanScores, calibrated, calibration_words
from bayesrbf.app.words import clipped, ends, listing, number, percent, plural, with_ends
from bayesrbf.base.arrays import correct, log_loss, mean_over_folds
from bayesrbf.fit.decisions import mistakes, paid

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

    @property
    def helps(self) -> bool:
        """Whether rows enough show that it is better than the class frequencies."""
        return self.enough and self.base.gain.better

    @property
    def leads(self) -> list[tuple[str, str, str]]:
        """Rivals of the headline, with the leads over each in log loss and in answers."""

        def in_answers(gain: Gain) -> str:
            return with_ends(gain.interval, number if self.in_costs else percent)

        base, rival = self.base, self.rival
        return [
            ("class frequencies", with_ends(base.gain.interval), ""),
            (base.name, "", in_answers(base.gain_of_answers)),
            (rival.name, with_ends(rival.gain.interval), in_answers(rival.gain_of_answers)),
        ]


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


def compute(
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


def say(
    judged: JudgedByRivals, own: MeanScores, performance: Judged, too_good: str, level: float
) -> dict[str, str]:
    """Whether the probabilities can be trusted, beside answers that need no model, and why.

    ``too_good`` says why figures may be better than those of new rows, empty if they are not.
    """
    _, hardest, _ = performance.hardest
    event = None if performance.event is None else hardest
    right = calibrated(own.slope, own.calibration, event, grouped=own.grouped)
    words = calibration_words(own, event)
    few = few_for_calibration(performance.confusion.sum(axis=1).tolist())
    if right and few:
        right, words = False, f"its calibration {few}"
    parts = evidence(judged), too_good, of_separation(hardest.auroc)
    loss, accuracy = performance.model.log_loss, performance.model.accuracy
    rival, lead = judged.rival, judged.rival.gain.interval
    kind = "no better, so far as these rows tell, than"
    if rival.gain.better or rival.gain.worse:
        kind = f"{'better' if rival.gain.better else 'worse'} than"
    return {
        "verdict": verdict(judged, right and not too_good, words),
        "evidence": " ".join(filter(None, parts)),
        "surprise": (
            f"The average surprise (log loss) is {number(loss.value)} nats "
            f"({ends(loss.lower, loss.upper)}), that of the class frequencies "
            f"{number(judged.base.log_loss)}, that of {rival.name} {number(rival.log_loss)}: a row "
            "counts 0 where its true class was given all probability, 0.69 at one half, 4.6 at "
            "one in 100."
        ),
        "scores": (
            f"The average surprise at the true class (log loss) is {number(judged.log_loss)} nats "
            f"on rows held out, {kind} the {number(rival.log_loss)} of {rival.name}, the best "
            f"rival (a lead of {number(lead.value)}, {percent(level)} interval "
            f"{ends(lead.lower, lead.upper)}); the most probable class is right in "
            f"{percent(accuracy.value)} of the rows."
        ),
    }


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
