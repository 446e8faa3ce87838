"""Labelled new rows: how good a model is on them, and what has drifted.

Scores stand beside what the model expects of them if its probabilities are right, and beside the
class frequencies of training as the answer to every row. A drift is a finding where it is beyond
what chance brings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from bayesrbf.new_rows import validation_scores as scoring
from bayesrbf.new_rows.remarks import Remark, lines_of_remarks
from bayesrbf.new_rows.training_cells import loaded, named_cells, training_cells
from bayesrbf.new_rows.validation_scores import ClassFrequency, Shares, ValidationScore
from bayesrbf.posterior.decisions import mistakes
from bayesrbf.posterior.held_out import Interval, OneAgainstRest, one_against_rest
from bayesrbf.posterior.scores import Labels, Probabilities
from bayesrbf.reading.same_levels import KnownLevels
from bayesrbf.report.costs import costs_of, decisions, problems_of_costs
from bayesrbf.report.words import aligned, clipped, listing, number, percent, plural
from bayesrbf.table import read_labels

if TYPE_CHECKING:
    from bayesrbf.estimators.classifier import Classifier

LEAST_LABELLED: Final = 2
"""Labelled rows that an interval needs."""


@dataclass(frozen=True)
class Validation:
    """How good a classifier is on labelled new rows: what :func:`validate` returns.

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
        Every class against all others: ``auroc``, ``average_precision``, ``sensitivity``,
        ``specificity``, ``ppv`` and ``npv``, each with an interval. A row counts as of the class
        that is decided: at ``costs``, or the most probable one.
    remarks : tuple of Remark
        What was noticed, as records with ``topic``, ``sentence`` and ``is_finding``: whether
        chance does not explain it.
    """

    target: str
    rows: int
    unlabelled: int
    prob: float
    costs: Mapping[str, float]
    scores: tuple[ValidationScore, ...]
    classes: tuple[ClassFrequency, ...]
    against_rest: Mapping[str, OneAgainstRest]
    remarks: tuple[Remark, ...]

    @property
    def findings(self) -> tuple[Remark, ...]:
        """The remarks that chance does not explain."""
        return tuple(remark for remark in self.remarks if remark.is_finding)

    def to_dict(self) -> dict[str, Any]:
        """The record as plain values."""
        return asdict(self)

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
            *lines_of_remarks(self.remarks),
        ]
        return "\n".join(lines)


def validate(
    estimator: Classifier | str | PathLike[str],
    X: object,
    y: object,
    *,
    costs: Mapping[Any, float] | None = None,
) -> Validation:
    """Score a classifier on labelled new rows, and say what has drifted.

    A finding is: probabilities that say no more than the class frequencies of training, that do
    not come true as often as they say, class frequencies that differ from training beyond chance,
    and classes that training did not have.

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

    Returns
    -------
    Validation
        A frozen record: ``scores`` with their intervals, ``findings`` beyond chance. ``print``
        shows it, and ``to_dict`` has it as plain values.

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
    check_is_fitted(fitted)
    check_consistent_length(X, y)
    costs = {str(label): float(cost) for label, cost in (costs or {}).items()}
    if problems := tuple(problems_of_costs(costs, fitted.classes_, "the model")):
        raise ValueError(" ".join(problems))
    classes = [str(label) for label in fitted.classes_]
    present, hidden = read_labels(y, fitted.unlabelled)
    texts = np.full(hidden.size, None, dtype=object)
    texts[~hidden] = [str(label) for label in present.tolist()]
    spelled = as_classes(pd.Series(texts, dtype=object), fitted.classes_.tolist())
    scored = spelled.isin(classes).to_numpy()
    target = _name_of(y)
    if scored.sum() < LEAST_LABELLED:
        raise ValueError(
            f"{f'{target!r} labels' if target else 'y labels'} "
            f"{plural(int(scored.sum()), 'row')} with a class of the model "
            f"({listing(classes, scoring.LISTED_CLASSES)}); an interval needs at least "
            f"{LEAST_LABELLED}."
        )
    cells = named_cells(X, fitted.columns_)
    trained = copy(fitted).adapt_prior(X)["trained"].to_numpy()
    before = fitted.rows_.n_labelled
    return validation_of(
        np.asarray(fitted.predict_proba(X))[scored],
        np.array([classes.index(label) for label in spelled[scored]]),
        trained,
        round(float(before)),
        classes,
        target=target,
        costs=costs,
        unlabelled=int(hidden.sum()),
        beside=[
            *scoring.of_training_rows(training_cells(fitted), cells),
            *scoring.of_other_classes(spelled[~scored]),
        ],
    )


def _name_of(y: object) -> str:
    """The name of labels that have one."""
    return str(y.name) if isinstance(y, pd.Series) and y.name is not None else ""


def as_classes(labels: pd.Series, classes: Sequence[object]) -> pd.Series:
    """Labels as the names of the classes that they are; others stay as they are.

    A file in which labels are missing often has 1.0 for 1.

    >>> as_classes(pd.Series(["1.0", "0", None, "x"]), [0, 1]).tolist()
    ['1', '0', None, 'x']
    """
    own = KnownLevels(tuple(classes))
    texts = [None if pd.isna(label) else own.name(label) for label in labels]
    return pd.Series(texts, labels.index, dtype=object, name=labels.name)


def validation_of(
    p: Probabilities,
    labels: Labels,
    trained: Shares,
    trained_rows: int,
    classes: Sequence[str],
    *,
    target: str = "",
    costs: Mapping[str, float] | None = None,
    unlabelled: int = 0,
    beside: Sequence[Remark] = (),
) -> Validation:
    """Judge probabilities by the labels of their rows and by the class frequencies of training."""
    costs = costs or {}
    frequencies = scoring.class_frequencies(p, labels, trained, trained_rows, classes)
    decided = decisions(p, classes, costs)
    matrix = mistakes(costs_of(classes, costs))
    return Validation(
        target=target,
        rows=labels.size,
        unlabelled=unlabelled,
        prob=scoring.SURE,
        costs=dict(costs),
        scores=(
            *scoring.scores_of(p, labels, trained),
            *([scoring.cost_score(p, labels, trained, matrix)] if costs else []),
        ),
        classes=frequencies,
        against_rest={
            label: one_against_rest(p[:, c], decided == c, labels == c, scoring.SURE)
            for c, label in enumerate(classes)
        },
        remarks=(
            *beside,
            scoring.of_worth(p, labels, trained, classes),
            *([scoring.of_cost(p, labels, matrix)] if costs else []),
            scoring.of_calibration(p, labels),
            scoring.of_class_frequencies(p, labels, frequencies),
        ),
    )


def _table_of_scores(result: Validation) -> list[list[str]]:
    """Scores as rows of text."""
    table = [["score", "", "here", f"{percent(result.prob)} interval", "expected", "frequencies"]]
    for score in result.scores:
        interval = f"{number(score.lower)} to {number(score.upper)}"
        figures = [number(score.value), interval, number(score.expected), number(score.frequencies)]
        table.append([score.name, "", *figures])
    return table


def _table_of_classes(result: Validation) -> list[list[str]]:
    """Class frequencies as rows of text."""
    interval = f"{percent(result.prob)} interval"
    table = [["class", "", "rows", "share", interval, "expected", "training"]]
    for of_class in result.classes:
        between = f"{percent(of_class.lower)} to {percent(of_class.upper)}"
        shares = [
            percent(of_class.share),
            between,
            percent(of_class.expected),
            percent(of_class.trained),
        ]
        table.append([clipped(of_class.label, 24), "", str(of_class.rows), *shares])
    return table


def _table_against_rest(result: Validation) -> list[list[str]]:
    """Classes against the rest as rows of text."""
    figures = ["AUROC", "average precision", "sensitivity", "specificity"]
    table = [["against the rest", "", *figures]]
    for label, of_class in result.against_rest.items():
        if of_class.rows:
            several = (
                of_class.auroc,
                of_class.average_precision,
                of_class.sensitivity,
                of_class.specificity,
            )
            table.append([clipped(label, 24), "", *map(_between, several)])
    return table


def _between(figure: Interval) -> str:
    """A figure and its interval; a dash where no row bears on it."""
    if np.isnan(figure.value):
        return number(figure.value)
    return f"{number(figure.value)} ({number(figure.lower)} to {number(figure.upper)})"
