"""Labelled new rows: how good a model is on them, and what has drifted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int, Shaped
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from bayesrbf.answers.comparisons import GivenScore, Parts
from bayesrbf.answers.performance import EventPerformance, as_wide, group_numbers
from bayesrbf.answers.scores import Interval, change, mean, proportion
from bayesrbf.app.check import as_classes, column_remarks, loaded, named_cells
from bayesrbf.app.remarks import CARE, OF_CELLS, OF_DENSITY, Remark, advice, lines_of_remarks
from bayesrbf.app.report import performance
from bayesrbf.app.report.costs import costs_of, problems_of_focus
from bayesrbf.app.report.held_out import HeldOutRows
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.judgement import (
    FREQUENCIES,
    JUDGED,
    MODEL,
    Judgement,
    Unseen,
    compute,
    figures,
    lines,
)
from bayesrbf.app.report.options import Focus
from bayesrbf.app.report.performance import Event, is_open, of_separation
from bayesrbf.app.report.trust import evidence, read_calibration, trusted, worth
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
from bayesrbf.base.arrays import log_loss
from bayesrbf.base.table_options import PLAIN
from bayesrbf.fit import asking
from bayesrbf.fit.decisions import expected_costs, mistakes, paid
from bayesrbf.fit.probabilities import entropy
from bayesrbf.table.encode import read_labels

if TYPE_CHECKING:
    from bayesrbf.app.check import DriftCheck
    from bayesrbf.families.classifier import Classifier


# Scores on labelled new rows, and what these say of a model, in sentences.


SURE: Final = 0.99
"""Probability inside all intervals: what one of them leaves out is a finding."""
LISTED_CLASSES: Final = 6
MOSTLY_TRAINED: Final = 0.5
"""Share of known rows beyond which a table is not new; some rows equal others by chance."""

Shares = Float[np.ndarray, " label"]
Subjects = Int[np.ndarray, " obs"] | None
"""Group of each row."""
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
    p: Float[np.ndarray, "obs label"],
    labels: Int[np.ndarray, " obs"],
    trained: Shares,
    trained_rows: int,
    classes: Sequence[str],
    subjects: Subjects = None,
    level: float = SURE,
) -> tuple[ClassFrequency, ...]:
    """The share of every class, with its interval.

    Rows of groups tell as much as so many independent rows as have an interval of that width.
    """
    n = labels.size
    counts = np.bincount(labels, minlength=trained.size)
    level = 1 - (1 - level) / (1 if trained.size == 2 else trained.size)
    frequencies: list[ClassFrequency] = []
    for label, rows, before, expected in zip(
        classes, counts.tolist(), trained.tolist(), p.mean(0).tolist(), strict=True
    ):
        of_class = labels == len(frequencies)
        alone = proportion(rows / n, n, level)
        wide = as_wide(lambda sample, x=of_class: _share(x[sample], level), subjects, level)  # type: ignore[misc]
        worth = n * ((alone.upper - alone.lower) / (wide.upper - wide.lower)) ** 2
        away = change(before, trained_rows, rows / n, worth, level)
        lower, upper = max(0.0, before + away.lower), min(1.0, before + away.upper)
        frequencies.append(ClassFrequency(label, rows, rows / n, lower, upper, expected, before))
    return tuple(frequencies)


def _share(holds: Shaped[np.ndarray, " obs"], level: float) -> Interval:
    """Fraction of the rows that are marked, with its interval."""
    return proportion(float(holds.mean()), holds.size, level)


def scores_of(
    found: Judgement,
    p: Float[np.ndarray, "obs label"],
    labels: Int[np.ndarray, " obs"],
    trained: Shares,
    subjects: Subjects,
) -> Iterator[ValidationScore]:
    """Scores with intervals, their expectations, and the scores of the class frequencies."""
    of_model, same = found.scores
    model = found.performance.model
    level = found.focus.level
    squares = (1 - (p**2).sum(1)) / (2 if p.shape[1] == 2 else 1)
    every = [
        ("log loss", model.log_loss, entropy(p), same.log_loss[0]),
        ("Brier score", model.brier, squares, same.brier[0]),
        ("share right", model.accuracy, p.max(1), same.accuracy[0]),
        ("calibration slope", of_model.slope, np.ones(1), np.nan),
    ]
    if found.judged.in_costs:
        costs = mistakes(costs_of(found.classes, found.focus.costs))
        row_costs = paid(p, labels, costs)
        least = expected_costs(p, costs).min(axis=1)
        cost = as_wide(lambda sample: mean(row_costs[sample], level), subjects, level)
        always = paid(np.tile(trained, (labels.size, 1)), labels, costs)
        every.append(("cost of a row", cost, least, float(always.mean())))
    for name, figure, expected, of_frequencies in every:
        # All scores but the slope are at least 0, which a symmetric interval does not know.
        low = figure.lower if name == "calibration slope" else max(0.0, figure.lower)
        by = float(expected.mean())
        yield ValidationScore(name, figure.value, low, figure.upper, by, of_frequencies)


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


def of_ranking(found: Judgement) -> Remark:
    """Whether rows are ranked better than by chance, and no worse than training rows held out."""
    now = {name: event.auroc for name, event in found.performance.against_rest.items()}
    before = {} if found.before is None else found.before.against_rest
    worse = [name for name in before if now[name].upper < before[name].auroc.lower]
    # The class that is most surely ranked; NaN, of classes without rows, comes last.
    best = max(now, key=lambda name: np.nan_to_num(now[name].lower, nan=-1.0))
    is_better = now[best].lower > RANKED_BY_CHANCE
    message = (
        f"Rows are {'' if is_better else 'not surely '}ranked better than by chance: the AUROC of "
        f"{clipped(best, 24)} is {with_ends(now[best])}, and guessing has 0.5."
    )
    message = " ".join(filter(None, (message, of_separation(now[best]))))
    if worse:
        message += f" {listing(worse)} is ranked worse than on the training rows held out."
    return Remark("ranking", message, is_finding=bool(worse) or not is_better)


def of_trust(found: Judgement) -> Iterator[Remark]:
    """Remarks on the gain over the class frequencies and on calibration."""
    judged, base = found.judged, found.judged.base
    beside = "" if judged.in_costs else f" {evidence(judged)}"
    idle = judged.enough and not base.gain.better and not judged.is_open
    yield Remark("worth", f"{worth(judged)}{beside}", is_finding=idle)
    if judged.in_costs:
        lead = base.gain_of_answers.interval
        few = is_open(lead, base.answers)
        message = f"{evidence(judged)} The lead over {base.name} is {with_ends(lead)}"
        message += ": too few rows to tell whether it costs less." if few else "."
        yield Remark("cost", message, is_finding=lead.lower <= 0 and not few)
    right, _, words = read_calibration(found.scores[0], found.performance)
    yield Remark("calibration", f"{words[0].upper()}{words[1:]}.", is_finding=not right)


def of_class_frequencies(
    p: Float[np.ndarray, "obs label"],
    labels: Int[np.ndarray, " obs"],
    frequencies: Sequence[ClassFrequency],
    level: float = SURE,
) -> Remark:
    """Remark on a change of the class frequencies, and on the log loss with the new ones."""
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


MIN_LABELLED: Final = 2
"""Labelled rows that an interval needs."""
RANKED_BY_CHANCE: Final = 0.5
"""AUROC of rows that are ranked by chance."""
TABLED: Final = ("log loss", "calibration slope", "classified right")
"""Figures that the table of scores has, beside what is expected of them."""
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
        The event of two classes, or every one of more, against all others, as
        :func:`bayesrbf.performance` has it: ``auroc``, O:E,
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
    judgement : record
        What the page shows beside that: leads over answers that need no model, calibration, parts
        of the table whose probabilities do not come true, and what mistakes cost.
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
    judgement: Judgement
    remarks: tuple[Remark, ...]

    @property
    def advice(self) -> str:
        """What to do about the findings: mend the rows, recalibrate, refit; else use the model.

        The model is to be used as it is where the verdict says yes, and nowhere else.
        """
        of = self.judgement
        held = self.findings or trusted(of.judged, of.scores[0], of.performance)
        return advice(self.remarks) if held else CARE

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
        of = replace(self.judgement, warned=self.judgement.warned or bool(found))
        return replace(self, remarks=(*self.remarks, *found), judgement=of)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values for JSON; NaN becomes None."""
        fields = {name: value for name, value in vars(self).items() if name != "judgement"}
        content: dict[str, Any] = plain(figures(self.judgement) | fields | {"advice": self.advice})
        return content

    def __str__(self) -> str:
        target = f" labelled by {clipped(self.target)}" if self.target else " with a label"
        rest = f"; {plural(self.unlabelled, 'row')} without a label" if self.unlabelled else ""
        named = [line for line in lines(self.judgement) if line[0] not in TABLED]
        width = max(len(name) for name, _ in named)
        report_lines = [
            f"{plural(self.rows, 'row')}{target}{rest}",
            *aligned(_table_of_scores(self)),
            "  expected: by the model, if its probabilities are right; frequencies: of the class "
            "frequencies of training; right: the most probable class.",
            *aligned(_table_of_classes(self)),
            "  Intervals of these shares are for all classes at once, and count the chance in "
            "training, too.",
            *(f"  {name:<{width}}  {text}" for name, text in named),
            *lines_of_remarks(self.remarks, self.advice),
        ]
        return "\n".join(report_lines)


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
    class_costs = {str(label): float(cost) for label, cost in (costs or {}).items()}
    focus = Focus(class_costs, None if event is None else str(event), level=level)
    columns: Any = {} if by is None else by
    by_name = {str(name): columns[name] for name in columns}
    return validated(fitted, X, y, focus, Beside(by_name, score, groups))


@dataclass(frozen=True)
class Beside:
    """Columns that are no features, in the order of the rows, whatever their index."""

    by: Mapping[str, Any]  # Columns by whose levels figures are told apart, by name.
    score: Any = None  # An existing score of the event.
    groups: Any = None  # Groups of rows that belong together.


def _some(column: Any, rows: Bool[np.ndarray, " obs"]) -> pd.Series:
    """Some cells of a column that has one for each row, in the order of the rows."""
    check_consistent_length(rows, column)
    return pd.Series(column).reset_index(drop=True)[rows].reset_index(drop=True)


def validated(
    fitted: Classifier,
    X: object,
    y: object,
    focus: Focus,
    beside: Beside,
    before: HeldOut | None = None,
    notes: Sequence[str] = (),
) -> Validation:
    """Judge a classifier by labelled rows, compared with its held-out training rows."""
    check_is_fitted(fitted)
    check_consistent_length(X, y)
    if problems := tuple(problems_of_focus(focus, fitted.classes_, "the model")):
        raise ValueError(" ".join(problems))
    classes = [str(label) for label in fitted.classes_]
    if len(classes) > 2 and (beside.score is not None or beside.by):
        raise ValueError(
            "score and by are about the probability of an event, which two classes have; the model "
            f"has {len(classes)} ({listing(classes, LISTED_CLASSES)}): leave score and by out."
        )
    present, unlabelled = read_labels(y, fitted.unlabelled)
    texts = np.full(unlabelled.size, None, dtype=object)
    texts[~unlabelled] = [str(label) for label in present.tolist()]
    spelled = as_classes(pd.Series(texts, dtype=object), fitted.classes_.tolist())
    scored = spelled.isin(classes).to_numpy()
    target = str(y.name) if isinstance(y, pd.Series) and y.name is not None else ""
    if scored.sum() < MIN_LABELLED:
        raise ValueError(
            f"{f'{target!r} labels' if target else 'y labels'} "
            f"{plural(int(scored.sum()), 'row')} with a class of the model "
            f"({listing(classes, LISTED_CLASSES)}); an interval needs at least "
            f"{MIN_LABELLED}.{_unknown_labels(spelled)}"
        )
    cells, columns = named_cells(X, fitted.columns_), fitted.columns_
    new = cells[list(columns.names)]
    changed = column_remarks(fitted, new, columns.names)
    trained = fitted.estimate_prior(X)["trained"].to_numpy()
    codes = np.array([classes.index(label) for label in spelled[scored]])
    job = Job(
        "",
        target,
        new[scored].reset_index(drop=True),
        spelled[scored].reset_index(drop=True),
        fitted.columns_.kind_of,
        "map",
        0,
        focus=focus,
        reading=replace(PLAIN, group=None if beside.groups is None else "groups"),
        groups=None if beside.groups is None else group_numbers(_some(beside.groups, scored)),
        by=pd.DataFrame({name: _some(column, scored) for name, column in beside.by.items()}),
        score=None if beside.score is None else _some(beside.score, scored).astype(float),
    )
    return validation_of(
        np.asarray(fitted.predict_proba(X))[scored],
        codes,
        trained * round(float(fitted.rows_.n_labelled)),
        classes,
        job,
        unlabelled=int(unlabelled.sum()),
        remarks=[
            *of_known_rows(fitted, X),
            *of_other_classes(spelled[~scored]),
            *(remark for remark in changed if remark.is_finding or remark.topic == "levels"),
            *(Remark("columns", note, is_finding=False) for note in notes),
        ],
        before=before,
    )


def _unknown_labels(labels: pd.Series) -> str:
    """A sentence on labels of unknown classes; empty without any."""
    counts = labels.dropna().value_counts()[:LISTED_CLASSES]
    held = [f"{clipped(label, 24)!r} ({n})" for label, n in counts.items()]
    return f" They are {listing(held, LISTED_CLASSES)}." if held else ""


def validation_of(
    p: Float[np.ndarray, "obs label"],
    labels: Int[np.ndarray, " obs"],
    trained: Shares,
    classes: Sequence[str],
    job: Job,
    *,
    unlabelled: int = 0,
    remarks: Sequence[Remark] = (),
    before: HeldOut | None = None,
) -> Validation:
    """Judge probabilities of the rows of a job by their labels and by the frequencies of training.

    ``trained`` are the rows of every class in training, ``before`` probabilities and labels of
    training rows that were held out.
    """
    level = job.focus.level
    shares = trained / trained.sum()
    subjects = job.subjects
    of_group = np.arange(labels.size) if subjects is None else subjects
    tables = {MODEL: p, FREQUENCIES: np.tile(shares, (labels.size, 1))}
    rows = HeldOutRows(tuple(classes), labels, of_group % SCORE_FOLDS, tables, trained=trained)
    earlier = None
    if before is not None:
        alone = replace(
            rows, labels=before[1], folds=np.zeros_like(before[1]), probabilities={MODEL: before[0]}
        )
        earlier = performance.compute(alone, job.focus, MODEL, None)
    none = np.zeros(0, dtype=int)
    unseen = Unseen(job=job, held_out=rows, known=none, widths=np.zeros((0, len(classes))))
    found = Judgement(
        title=job.title,
        target=job.target,
        classes=tuple(classes),
        focus=job.focus,
        too_good=" ".join(remark.sentence for remark in remarks if remark.topic == "not new"),
        where="here",
        before=earlier,
        **compute(unseen, JUDGED),
    )
    frequencies = class_frequencies(
        p, labels, shares, round(float(trained.sum())), classes, subjects, level
    )
    noticed = (
        *remarks,
        of_ranking(found),
        *of_trust(found),
        of_class_frequencies(p, labels, frequencies, level),
    )
    return Validation(
        target=job.target,
        rows=labels.size,
        unlabelled=unlabelled,
        prob=level,
        costs=dict(job.focus.costs),
        scores=tuple(scores_of(found, p, labels, shares, subjects)),
        classes=frequencies,
        against_rest=found.performance.against_rest,
        event=found.performance.event,
        before={} if earlier is None else earlier.against_rest,
        parts=found.parts,
        score=found.score,
        judgement=replace(found, warned=any(remark.is_finding for remark in noticed)),
        remarks=noticed,
    )


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
        shares = percent(of_class.expected), percent(of_class.trained)
        table.append([clipped(of_class.label, 24), "", str(of_class.rows), share, between, *shares])
    return table
