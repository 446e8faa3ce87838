"""Labelled new rows: how good a model is on them, and what has drifted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, Shaped
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from bayesrbf.answers.comparisons import GivenScore, Parts, given_score, performance_by
from bayesrbf.answers.performance import EventPerformance, as_wide, event_performance, group_numbers
from bayesrbf.answers.scores import Interval, calibration, change, mean, proportion, slope
from bayesrbf.app.check import as_classes, column_remarks, loaded, named_cells
from bayesrbf.app.remarks import OF_CELLS, OF_DENSITY, Remark, advice, lines_of_remarks
from bayesrbf.app.report.costs import costs_of, decisions, problems_of_focus
from bayesrbf.app.report.options import Focus
from bayesrbf.app.report.performance import (
    Event,
    event_of,
    few_for_calibration,
    is_open,
    of_separation,
    thresholds_at,
)
from bayesrbf.app.report.scores import calibrated
from bayesrbf.app.report.subgroups import parts_by
from bayesrbf.app.words import (
    aligned,
    clipped,
    ends,
    listing,
    number,
    percent,
    plain,
    plural,
    with_ends,
)
from bayesrbf.base.arrays import Labels, Probabilities, brier, correct, log_loss
from bayesrbf.fit import asking
from bayesrbf.fit.decisions import expected_costs, mistakes, paid
from bayesrbf.fit.probabilities import entropy
from bayesrbf.table.encode import read_labels
from bayesrbf.table.kinds import Kind

if TYPE_CHECKING:
    from bayesrbf.app.check import DriftCheck
    from bayesrbf.families.classifier import Classifier


# Scores on labelled new rows, and what these say of a model, in sentences.


SURE: Final = 0.99
"""Probability inside all intervals: what one of them leaves out is a finding."""
USUAL: Final = Focus(level=SURE)
LISTED_CLASSES: Final = 6
NO_KINDS: Final[Mapping[str, Kind]] = MappingProxyType({})
MOSTLY_TRAINED: Final = 0.5
"""Share of known rows beyond which a table is not new; some rows equal others by chance."""

Shares = Float[np.ndarray, " label"]
CostMatrix = Float[np.ndarray, "label decision"]
HeldOut = tuple[Float[np.ndarray, "held_out label"], Int[np.ndarray, " held_out"]]
"""Probabilities and labels of training rows that were held out."""


@dataclass(frozen=True)
class ValidationScore:
    """One score on the new rows; NaN where there is no such thing."""

    name: str
    value: float
    lower: float
    upper: float
    expected: float  # By the model itself, were its probabilities right.
    frequencies: float  # Of the class frequencies of training as the answer to every row.


@dataclass(frozen=True)
class ClassFrequency:
    """The share of a class among the labelled new rows, with its interval.

    The interval counts the chance in the share of training, too, and is one for all classes at
    once: a class has another frequency than in training where it leaves ``trained`` out.
    """

    label: str
    rows: int
    share: float
    lower: float
    upper: float
    expected: float  # Mean probability of the class by the model.
    trained: float

    @property
    def changed(self) -> bool:
        """Whether the frequency is surely another than in training."""
        return not self.lower <= self.trained <= self.upper


def class_frequencies(
    p: Probabilities,
    labels: Labels,
    trained: Shares,
    trained_rows: int,
    classes: Sequence[str],
    units: Units = None,
    level: float = SURE,
) -> tuple[ClassFrequency, ...]:
    """The share of every class, with its interval.

    Rows of groups tell as much as so many independent rows as have an interval of that width.
    """
    n, counts = labels.size, np.bincount(labels, minlength=trained.size)
    level = 1 - (1 - level) / (1 if trained.size == 2 else trained.size)
    frequencies: list[ClassFrequency] = []
    for label, rows, before, expected in zip(
        classes, counts.tolist(), trained.tolist(), p.mean(0).tolist(), strict=True
    ):
        of_class, worth = labels == len(frequencies), float(n)
        if units is not None:
            alone = proportion(rows / n, n, level)
            wide = as_wide(lambda some, own=of_class: _share(own[some], level), units, level)  # type: ignore[misc]
            worth = n * ((alone.upper - alone.lower) / (wide.upper - wide.lower)) ** 2
        away = change(before, trained_rows, rows / n, worth, level)
        lower, upper = max(0.0, before + away.lower), min(1.0, before + away.upper)
        frequencies.append(ClassFrequency(label, rows, rows / n, lower, upper, expected, before))
    return tuple(frequencies)


Units = Int[np.ndarray, " obs"] | None
"""Group of each row."""


def _share(holds: Shaped[np.ndarray, " obs"], level: float) -> Interval:
    """Share of rows for which something holds, in part where it is a number."""
    return proportion(float(holds.mean()), holds.size, level)


def _mean(values: Float[np.ndarray, " obs"], units: Units, level: float) -> Interval:
    """Mean of rows, or of rows in groups."""
    return as_wide(lambda some: mean(values[some], level), units, level)


def _slope(p: Probabilities, labels: Labels, units: Units, level: float) -> Interval:
    """Calibration slope of rows, or of rows in groups."""
    return as_wide(lambda some: slope(p[some], labels[some], level), units, level)


def scores_of(
    p: Probabilities, labels: Labels, trained: Shares, units: Units = None, level: float = SURE
) -> Iterator[ValidationScore]:
    """Every score with its interval, beside what is expected and the class frequencies."""
    same = np.tile(trained, (labels.size, 1))
    doubt = entropy(p)
    for name, score, expected in (
        ("log loss", log_loss, doubt),
        ("Brier score", brier, (1 - (p**2).sum(1)) / (2 if trained.size == 2 else 1)),
    ):
        here, base = _mean(score(p, labels), units, level), float(score(same, labels).mean())
        low = max(0.0, here.lower)
        yield ValidationScore(name, here.value, low, here.upper, float(expected.mean()), base)
    hits = correct(p, labels)
    right = as_wide(lambda some: _share(hits[some], level), units, level)
    base = float(correct(same, labels).mean())
    expected_right = float(p.max(1).mean())
    yield ValidationScore(
        "share right", right.value, right.lower, right.upper, expected_right, base
    )
    tilt = _slope(p, labels, units, level)
    yield ValidationScore("calibration slope", tilt.value, tilt.lower, tilt.upper, 1.0, np.nan)


def cost_score(
    p: Probabilities,
    labels: Labels,
    trained: Shares,
    costs: CostMatrix,
    units: Units = None,
    level: float = SURE,
) -> ValidationScore:
    """Mean cost of a row when every decision has the least expected cost."""
    own = _mean(paid(p, labels, costs), units, level)
    same = paid(np.tile(trained, (labels.size, 1)), labels, costs)
    expected = float(expected_costs(p, costs).min(axis=1).mean())
    low = max(0.0, own.lower)
    return ValidationScore("cost of a row", own.value, low, own.upper, expected, float(same.mean()))


def of_known_rows(fitted: Classifier, X: object) -> Iterator[Remark]:
    """Remark if the model was fitted to most of the rows, or updated by them."""
    trained, updated = asking.known_rows(fitted.fitted_, X)
    known = int((trained | updated).sum())
    if known > MOSTLY_TRAINED * trained.size:
        verbs = ["was fitted to"] * bool(trained.any()) + ["was updated with"] * bool(updated.any())
        yield Remark(
            "not new",
            f"{known} of {plural(trained.size, 'row')} equal rows that the model "
            f"{' or '.join(verbs)} in every cell: these figures are too good.",
        )


def of_other_classes(labels: pd.Series) -> Iterator[Remark]:
    """Labels that training did not have; such rows are not scored."""
    counts = labels.dropna().value_counts()
    if counts.size:
        names = [f"{clipped(label, 24)!r} ({n})" for label, n in counts.items()]
        yield Remark(
            "labels",
            f"{plural(int(counts.sum()), 'row')} with a class that training did not have, "
            f"{listing(names, LISTED_CLASSES)}; they are not scored, and the model cannot name "
            "them.",
        )


def of_ranking(
    now: Mapping[str, EventPerformance], before: Mapping[str, EventPerformance]
) -> Remark:
    """Whether rows are ranked better than by chance, and no worse than training rows held out."""
    worse = [
        name
        for name, performance in now.items()
        if name in before and performance.auroc.upper < before[name].auroc.lower
    ]
    # The class that is most surely ranked; NaN, of classes without rows, comes last.
    best = max(now, key=lambda name: np.nan_to_num(now[name].auroc.lower, nan=-1.0))
    is_better = now[best].auroc.lower > RANKED_BY_CHANCE
    sentence = (
        f"Rows are {'' if is_better else 'not surely '}ranked better than by chance: the AUROC of "
        f"{clipped(best, 24)} is {with_ends(now[best].auroc)}, and guessing has 0.5."
    )
    sentence = " ".join(filter(None, (sentence, of_separation(now[best].auroc))))
    if worse:
        sentence += f" {listing(worse)} is ranked worse than on the training rows held out."
    return Remark("ranking", sentence, is_finding=bool(worse) or not is_better)


def of_worth(
    p: Probabilities,
    labels: Labels,
    trained: Shares,
    classes: Sequence[str],
    units: Units = None,
    level: float = SURE,
) -> Remark:
    """Whether the probabilities say more than the class frequencies of training."""
    each = log_loss(np.tile(trained, (labels.size, 1)), labels) - log_loss(p, labels)
    gain = _mean(each, units, level)
    counts = np.bincount(labels, minlength=trained.size)
    most = int(counts.argmax())
    always = f"always answering {clipped(classes[most], 24)}"
    than = "than the class frequencies of training do"
    base = float(log_loss(np.tile(trained, (labels.size, 1)), labels).mean())
    verdict = f"The probabilities say {'more' if gain.lower > 0 else 'no more'} {than}"
    if few := is_open(gain, base):
        verdict = f"These rows are too few to tell whether the probabilities say more {than}"
    return Remark(
        "worth",
        f"{verdict}: {number(gain.value)} nats a row, {ends(gain.lower, gain.upper)}. The most "
        f"probable class is right in {percent(float(correct(p, labels).mean()))} of the rows, "
        f"{always} in {percent(counts[most] / labels.size)}.",
        is_finding=gain.lower <= 0 and not few,
    )


def of_cost(
    p: Probabilities,
    labels: Labels,
    costs: CostMatrix,
    units: Units = None,
    level: float = SURE,
) -> Remark:
    """Whether deciding row by row costs less than the best answer that is the same for all."""
    own, same = paid(p, labels, costs), costs[labels, costs[labels].mean(axis=0).argmin()]
    gain = _mean(same - own, units, level)
    few = is_open(gain, float(same.mean()))
    verdict = "less" if gain.lower > 0 else "no less"
    return Remark(
        "cost",
        f"By the decision of least expected cost a row costs {number(float(own.mean()))}, by the "
        f"best answer that is the same for all rows {number(float(same.mean()))}: "
        f"{'too few rows to tell whether it is less' if few else verdict}, the difference is "
        f"{number(gain.value)}, {ends(gain.lower, gain.upper)}.",
        is_finding=gain.lower <= 0 and not few,
    )


def of_calibration(
    p: Probabilities,
    labels: Labels,
    units: Units = None,
    level: float = SURE,
    event: EventPerformance | None = None,
) -> Remark:
    """Whether probabilities come true as often as they say, and in which way they do not.

    Error and slope tell, and of an event also whether it came as often as expected. Where rows
    have groups the error does not: chance in it is that of single rows.
    """
    errors = calibration(p, labels, prob=1 - 2 * (1 - level))
    tilt = _slope(p, labels, units, level)
    way = "neither all too extreme nor all too timid"
    if tilt.upper < 1:
        way = "too extreme"
    elif tilt.lower > 1:
        way = "too timid"
    ratio, grouped = "", units is not None
    if event is not None:
        large = event.observed_to_expected
        ratio = f", O:E {number(large.value)}, {ends(large.lower, large.upper)}"
        if not event.as_often:
            way = f"too {'high' if large.upper < 1 else 'low'} for “{clipped(event.event, 24)}”"
    right = calibrated(tilt, errors, event, grouped=grouped)
    few = few_for_calibration(np.bincount(labels, minlength=p.shape[1]).tolist())
    verdict = "The probabilities come true as often as they say, as far as these rows can tell"
    if not right:
        verdict = f"The probabilities do not come true as often as they say, they are {way}"
    elif few:
        verdict = f"Whether the probabilities come true as often as they say {few}"
    return Remark(
        "calibration",
        f"{verdict}: their error is {number(errors.error)}, "
        + (
            "and what chance alone makes of it cannot be computed where rows have groups"
            if grouped
            else f"and chance alone brings more than {number(errors.noise[1])} in "
            f"{percent(1 - level)} of such tables"
        )
        + f"; the slope is {number(tilt.value)}, {ends(tilt.lower, tilt.upper)}{ratio}, and 1 is "
        "right.",
        is_finding=not right,
    )


def of_class_frequencies(
    p: Probabilities,
    labels: Labels,
    frequencies: Sequence[ClassFrequency],
    level: float = SURE,
) -> Remark:
    """Whether the class frequencies differ from training, and what the new ones would bring."""
    if not any(of_class.changed for of_class in frequencies):
        unseen = "No change of the class frequencies is seen beyond chance."
        return Remark("classes", unseen, is_finding=False)
    trained = np.array([of_class.trained for of_class in frequencies])
    now = (np.bincount(labels, minlength=trained.size) + trained) / (labels.size + 1)
    adapted = p * now / trained
    loss = float(log_loss(adapted / adapted.sum(1, keepdims=True), labels).mean())
    return Remark(
        "classes",
        f"The class frequencies differ from training, beyond what chance brings in "
        f"{percent(1 - level)} of such tables. If the model were told the new ones "
        f"(class_prior), its log loss would be {number(loss)} in place of "
        f"{number(float(log_loss(p, labels).mean()))}.",
    )


# Labelled new rows: how good a model is on them, and what has drifted.
#
# Scores stand beside what the model expects of them if its probabilities are right, and beside the
# class frequencies of training as the answer to every row. A drift is a finding where it is beyond
# what chance brings.


LEAST_LABELLED: Final = 2
"""Labelled rows that an interval needs."""
RANKED_BY_CHANCE: Final = 0.5
"""AUROC of rows that are ranked by chance."""
SCORE_FOLDS: Final = 5
"""Folds in which points of a score become probabilities."""


@dataclass(frozen=True)
class Validation:
    """Scores of a classifier on labelled new rows; the result of :func:`validate`.

    ``print`` shows it as text.

    Attributes
    ----------
    target : str
        Name of the labels; empty where they have none.
    rows : int
        Number of rows with a label that training had: the scores are about them.
    unlabelled : int
        Number of rows without a label.
    prob : float
        Probability inside the intervals, by which findings are told from chance.
    costs : dict of str to float
        Cost of a mistaken row by class; empty where none was given.
    scores : tuple of records
        ``name`` with ``value``, ``lower`` and ``upper``; ``expected`` by the model if its
        probabilities are right; ``frequencies``: of the class frequencies of training.
    classes : tuple of records
        ``label`` with its ``rows``, ``share``, ``lower`` and ``upper``; the share that the model
        ``expected``, and the one in training (``trained``). The intervals are for all classes at
        once and count the chance in training, too.
    against_rest : dict of str to records
        Every class against all others, as :func:`bayesrbf.performance` has it: ``auroc``, O:E,
        calibration, a smooth curve, net benefit and more, each with an interval. ``sensitivity``,
        ``specificity``, ``ppv`` and ``npv`` are of the class that is decided: at ``costs``, or the
        most probable one.
    event : record or None
        Which of two classes parts and score are about: the dearest, or the rarer in training.
    before : dict of str to records
        The same of the training rows that were held out, where a report has them; else empty.
    parts : tuple of records
        Performance of the event part by part, by the columns that were asked for.
    score : record or None
        An existing score beside the model.
    remarks : tuple of Remark
        What was noticed, as records with ``topic``, ``sentence``, the ``columns`` of the model that
        it is about, and ``is_finding``: whether chance does not explain it.
    """

    target: str
    rows: int
    unlabelled: int
    prob: float
    costs: Mapping[str, float]
    scores: tuple[ValidationScore, ...]
    classes: tuple[ClassFrequency, ...]
    against_rest: Mapping[str, EventPerformance]
    event: Event | None
    before: Mapping[str, EventPerformance]
    parts: tuple[Parts, ...]
    score: GivenScore | None
    remarks: tuple[Remark, ...]

    @property
    def advice(self) -> str:
        """What to do about the findings: mend the rows, recalibrate, refit; else use the model."""
        return advice(self.remarks)

    @property
    def findings(self) -> tuple[Remark, ...]:
        """The remarks that chance does not explain."""
        return tuple(remark for remark in self.remarks if remark.is_finding)

    @property
    def changed(self) -> tuple[Remark, ...]:
        """The findings about cells that are not as in training."""
        return tuple(remark for remark in self.findings if remark.topic in OF_CELLS)

    def with_findings_of(self, drift: DriftCheck) -> Validation:
        """The validation with findings about cells and rows that only a density makes."""
        found = [remark for remark in drift.findings if remark.topic in OF_DENSITY]
        return replace(self, remarks=(*self.remarks, *found))

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values, as JSON has them: what is no number is None."""
        content: dict[str, Any] = plain(self)
        return content | {"advice": self.advice}

    def __str__(self) -> str:
        target = f" labelled by {clipped(self.target)}" if self.target else " with a label"
        rest = f"; {plural(self.unlabelled, 'row')} without a label" if self.unlabelled else ""
        lines = [
            f"{plural(self.rows, 'row')}{target}{rest}",
            *aligned(_table_of_scores(self)),
            "  expected: by the model, if its probabilities are right; frequencies: of the class "
            "frequencies of training; right: the most probable class.",
            *aligned(_table_of_classes(self)),
            "  Intervals of these shares are for all classes at once, and count the chance in "
            "training, too.",
            *aligned(_table_against_rest(self)),
            "  Sensitivity and specificity: of "
            f"{'the decision of least expected cost' if self.costs else 'the most probable class'}."
            f" Intervals are of {percent(self.prob)}, and findings are read off them.",
            *(aligned(_table_of_event(self)) if self.event is not None else []),
            *(line for parts in self.parts for line in aligned(_table_of_parts(parts))),
            *([] if self.score is None else aligned(_table_of_score(self.score))),
            *lines_of_remarks(self.remarks),
        ]
        return "\n".join(lines)


def validate(
    estimator: Classifier | str | PathLike[str],
    X: object,
    y: object,
    *,
    costs: Mapping[Any, float] | None = None,
    event: object = None,
    level: float = SURE,
    by: object = None,
    score: object = None,
    groups: object = None,
) -> Validation:
    """Score a classifier on labelled new rows, and say what has drifted.

    A finding is: probabilities that say no more than the class frequencies of training, that do
    not rank the rows or not come true as often as they say, class frequencies that differ from
    training beyond chance, classes that training did not have, columns that are not as in training,
    and rows that are not new. The advice to use the model stands beside none of them.

    Parameters
    ----------
    estimator : fitted classifier or path-like
        What was fitted, or a file that ``save`` wrote.
    X : array-like or frame of shape (n_obs, n_columns)
        New rows, which the classifier has not seen, with the columns of training.
    y : array-like of shape (n_obs,)
        Their labels. Rows whose label is missing, as in ``fit``, are counted and left out. A
        number is the class of its value: 1.0 is the class 1.
    costs : dict of class to float, optional
        What it costs to mistake a row of a class, 1 for classes not named. Rows are then decided
        at least expected cost; without costs a row counts as of its most probable class.
    event : class, optional
        Which of two classes parts and score are about; by default the one whose mistakes cost
        most, else the one that was rarer in training.
    level : float
        Probability inside the intervals, by which findings are told from chance.
    by : frame, dict of columns, or list of names of columns of X, optional
        Columns by whose levels, or quarters of numbers, figures are told apart.
    score : Series of shape (n_obs,), optional
        An existing score, as probabilities or points, of two classes.
    groups : array-like of shape (n_obs,), optional
        Group of each row, such as its patient: intervals are then as wide as those of resampled
        groups, too.

    Returns
    -------
    Validation
        A frozen record: ``scores`` with their intervals, ``findings`` beyond chance, and ``advice``
        on what to do about them. ``print`` shows it, and ``to_dict`` has it as plain values.

    Raises
    ------
    ValueError
        If fewer than two rows have a label that training had, or an argument cannot be used.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> import bayesrbf
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = bayesrbf.HybridMixtureClassifier(1, cv=3, random_state=0).fit(X[::2], y[::2])
    >>> good = bayesrbf.validate(model, X[1::2], y[1::2])
    >>> good.rows, good.findings
    (75, ())
    >>> {one.name: round(one.value, 2) for one in good.scores[:3]}
    {'log loss': 0.06, 'Brier score': 0.04, 'share right': 0.97}
    """
    fitted: Classifier = loaded(estimator)
    if not 0 < level < 1:
        raise ValueError(f"validate(level=...) must lie between 0 and 1; received {level:g}.")
    names = [by] if isinstance(by, str) else by
    if isinstance(names, list | tuple) and isinstance(X, pd.DataFrame):
        by = X[list(names)]
    elif by is not None and not isinstance(by, pd.DataFrame | Mapping):
        raise ValueError(
            "validate(by=...) takes a frame or dict of columns, or names of columns of the frame "
            f"X; received a {type(by).__name__}."
        )
    if isinstance(score, str):
        raise ValueError(
            "validate(score=...) takes the numbers of the score, such as X['points']; received the "
            f"name {score!r}."
        )
    given = {str(label): float(cost) for label, cost in (costs or {}).items()}
    focus = Focus(given, None if event is None else str(event), level=level)
    return validated(fitted, X, y, focus, Beside.of(by, score, groups))


@dataclass(frozen=True)
class Beside:
    """What is known of rows beside their cells, in the order of the rows."""

    by: pd.DataFrame
    score: pd.Series | None
    groups: Shaped[np.ndarray, " obs"] | None

    @classmethod
    def of(cls, by: object, score: object, groups: object) -> Beside:
        """From what a user gives: columns in the order of the rows, whatever their index."""
        columns: Any = {} if by is None else by
        cells = {str(name): pd.Series(columns[name]).reset_index(drop=True) for name in columns}
        points = None if score is None else pd.Series(score, dtype=float)
        return cls(
            pd.DataFrame(cells),
            None if points is None else points.reset_index(drop=True),
            None if groups is None else np.asarray(groups),
        )

    def take(self, rows: Bool[np.ndarray, " obs"]) -> Beside:
        """Some of the rows; each column must have one cell a row."""
        columns = [self.by[name] for name in self.by] + [self.score, self.groups]
        for column in columns:
            if column is not None:
                check_consistent_length(rows, column)
        by = self.by if self.by.empty else self.by[rows].reset_index(drop=True)
        score = None if self.score is None else self.score[rows].reset_index(drop=True)
        return Beside(by, score, None if self.groups is None else self.groups[rows])


def validated(
    fitted: Classifier,
    X: object,
    y: object,
    focus: Focus,
    beside: Beside,
    before: HeldOut | None = None,
    notes: Sequence[str] = (),
) -> Validation:
    """Judge a classifier by labelled rows, beside its training rows that were held out."""
    check_is_fitted(fitted)
    check_consistent_length(X, y)
    if problems := tuple(problems_of_focus(focus, fitted.classes_, "the model")):
        raise ValueError(" ".join(problems))
    classes = [str(label) for label in fitted.classes_]
    if len(classes) > 2 and (beside.score is not None or not beside.by.columns.empty):
        raise ValueError(
            "score and by are about the probability of an event, which two classes have; the model "
            f"has {len(classes)} ({listing(classes, LISTED_CLASSES)}): leave score and by out."
        )
    present, hidden = read_labels(y, fitted.unlabelled)
    texts = np.full(hidden.size, None, dtype=object)
    texts[~hidden] = [str(label) for label in present.tolist()]
    spelled = as_classes(pd.Series(texts, dtype=object), fitted.classes_.tolist())
    scored = spelled.isin(classes).to_numpy()
    target = str(y.name) if isinstance(y, pd.Series) and y.name is not None else ""
    if scored.sum() < LEAST_LABELLED:
        raise ValueError(
            f"{f'{target!r} labels' if target else 'y labels'} "
            f"{plural(int(scored.sum()), 'row')} with a class of the model "
            f"({listing(classes, LISTED_CLASSES)}); an interval needs at least "
            f"{LEAST_LABELLED}.{_held(spelled)}"
        )
    cells, columns = named_cells(X, fitted.columns_), fitted.columns_
    new = cells[list(columns.names)]
    changed = column_remarks(fitted, new, columns.names)
    trained = copy(fitted).adapt_prior(X)["trained"].to_numpy()
    return validation_of(
        np.asarray(fitted.predict_proba(X))[scored],
        np.array([classes.index(label) for label in spelled[scored]]),
        trained,
        round(float(fitted.rows_.n_labelled)),
        classes,
        target=target,
        focus=focus,
        unlabelled=int(hidden.sum()),
        remarks=[
            *of_known_rows(fitted, X),
            *of_other_classes(spelled[~scored]),
            *(one for one in changed if one.is_finding),
            *(Remark("columns", note, is_finding=False) for note in notes),
        ],
        beside=beside.take(scored),
        before=before,
        kinds=fitted.columns_.kind_of,
    )


def _held(labels: pd.Series) -> str:
    """A sentence on what stands in place of classes; empty where nothing does."""
    counts = labels.dropna().value_counts()[:LISTED_CLASSES]
    held = [f"{clipped(label, 24)!r} ({n})" for label, n in counts.items()]
    return f" They are {listing(held, LISTED_CLASSES)}." if held else ""


def against_rest(
    p: Probabilities,
    labels: Labels,
    classes: Sequence[str],
    event: Event | None,
    focus: Focus,
    units: Units = None,
) -> dict[str, EventPerformance]:
    """Performance of every class; the one that is no event is decided below its threshold."""
    at, decided = [0.5] * len(classes), None
    if event is None:
        decided = decisions(p, classes, focus.costs)
    else:
        at = [1 - event.threshold] * 2
        at[event.column] = event.threshold
    return {
        label: event_performance(
            label,
            p[:, c],
            labels == c,
            decided=None if decided is None else decided == c,
            thresholds=thresholds_at(at[c]),
            units=units,
            level=focus.level,
        )
        for c, label in enumerate(classes)
    }


def validation_of(
    p: Probabilities,
    labels: Labels,
    trained: Shares,
    trained_rows: int,
    classes: Sequence[str],
    *,
    target: str = "",
    focus: Focus = USUAL,
    unlabelled: int = 0,
    remarks: Sequence[Remark] = (),
    beside: Beside | None = None,
    before: HeldOut | None = None,
    kinds: Mapping[str, Kind] = NO_KINDS,
) -> Validation:
    """Judge probabilities by the labels of their rows and by the class frequencies of training.

    ``before`` are probabilities and labels of training rows that were held out.
    """
    costs, level = focus.costs, focus.level
    beside = Beside.of(None, None, None) if beside is None else beside
    units = None if beside.groups is None else group_numbers(beside.groups)
    frequencies = class_frequencies(p, labels, trained, trained_rows, classes, units, level)
    matrix = mistakes(costs_of(classes, costs))
    event = event_of(trained * trained_rows, classes, focus) if len(classes) == 2 else None
    threshold = 0.5 if event is None else event.threshold
    here = against_rest(p, labels, classes, event, focus, units)
    trusted = {} if before is None else against_rest(*before, classes, event, focus)
    parts: list[Parts] = []
    score = None
    if event is not None:
        own, happened = p[:, event.column], labels == event.column
        parts = [
            performance_by(
                str(name),
                parts_by(beside.by[name], kinds.get(str(name))),
                event.name,
                own,
                happened,
                threshold=threshold,
                units=units,
                level=level,
            )
            for name in beside.by
        ]
        if beside.score is not None:
            of_group = np.arange(labels.size) if units is None else units
            score = given_score(
                beside.score.name,
                beside.score.to_numpy(dtype=float),
                own,
                happened,
                event.name,
                of_group % SCORE_FOLDS,
                thresholds_at(threshold),
                units,
                level,
            )
    remarks = (
        *remarks,
        of_ranking(here, trusted),
        of_worth(p, labels, trained, classes, units, level),
        *([of_cost(p, labels, matrix, units, level)] if costs else []),
        of_calibration(p, labels, units, level, None if event is None else here[event.name]),
        of_class_frequencies(p, labels, frequencies, level),
    )
    return Validation(
        target=target,
        rows=labels.size,
        unlabelled=unlabelled,
        prob=level,
        costs=dict(costs),
        scores=(
            *scores_of(p, labels, trained, units, level),
            *([cost_score(p, labels, trained, matrix, units, level)] if costs else []),
        ),
        classes=frequencies,
        against_rest=here,
        event=event,
        before=trusted,
        parts=tuple(parts),
        score=score,
        remarks=remarks,
    )


def _table_of_event(result: Validation) -> list[list[str]]:
    """Figures of the event, of new rows and of training rows held out, as rows of text."""
    assert result.event is not None
    name = result.event.name
    columns = {"here": result.against_rest[name]}
    if name in result.before:
        columns["held out of training"] = result.before[name]
    table = [[f"event: {clipped(name, 24)}", "", *columns]]
    every = [one.figures for one in columns.values()]
    return table + [[name, "", *(with_ends(own[name]) for own in every)] for name in every[0]]


def _table_of_score(score: GivenScore) -> list[list[str]]:
    """Differences from a given score as rows of text."""
    own = score.differences
    table = [[f"less {clipped(score.name, 24)}", "", "difference", "better"]]
    for name, figure, better in (
        ("AUROC", own.auroc, "above 0"),
        ("net benefit", own.net_benefit, "above 0"),
        ("Brier score", own.brier, "below 0"),
        ("log loss", own.log_loss, "below 0"),
    ):
        table.append([name, "", with_ends(figure), better])
    return table


def _table_of_parts(parts: Parts) -> list[list[str]]:
    """Figures part by part as rows of text."""
    table = [[f"by {clipped(parts.by, 24)}", "", "rows", "events", "AUROC", "O:E", "slope"]]
    for part in parts.parts:
        one = part.performance
        figures = map(with_ends, (one.auroc, one.observed_to_expected, one.slope))
        few = "too few" if part.few else ""
        table.append([clipped(part.name, 30), few, str(one.rows), str(one.events), *figures])
    for figure, spread in parts.spread.items():
        new = ends(spread.new.lower, spread.new.upper)
        told = f"of {spread.parts}, 90 %: mean {with_ends(spread.mean)}, a new one {new}"
        table.append([figure, "", "", "", told, "", ""])
    return table


def _table_of_scores(result: Validation) -> list[list[str]]:
    """Scores as rows of text."""
    table = [["score", "", "here", f"{percent(result.prob)} interval", "expected", "frequencies"]]
    for score in result.scores:
        interval = ends(score.lower, score.upper)
        figures = [number(score.value), interval, number(score.expected), number(score.frequencies)]
        table.append([score.name, "", *figures])
    return table


def _table_of_classes(result: Validation) -> list[list[str]]:
    """Class frequencies as rows of text."""
    interval = f"{percent(result.prob)} interval"
    table = [["class", "", "rows", "share", interval, "expected", "training"]]
    for of_class in result.classes:
        share, between = percent(of_class.share), ends(of_class.lower, of_class.upper, percent)
        others = percent(of_class.expected), percent(of_class.trained)
        table.append([clipped(of_class.label, 24), "", str(of_class.rows), share, between, *others])
    return table


def _table_against_rest(result: Validation) -> list[list[str]]:
    """Classes against the rest as rows of text."""
    figures = ["AUROC", "average precision", "sensitivity", "specificity"]
    table = [["against the rest", "", *figures]]
    for label, of_class in result.against_rest.items():
        if of_class.events:
            ranks = with_ends(of_class.auroc), with_ends(of_class.average_precision)
            found = with_ends(of_class.sensitivity), with_ends(of_class.specificity)
            table.append([clipped(label, 24), "", *ranks, *found])
    return table
