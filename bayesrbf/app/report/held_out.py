"""Held-out probabilities: the whole procedure, every choice included, fold by fold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final, Self

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bayesrbf.app.report.job import Job, Splits, splits_of
from bayesrbf.app.words import exact
from bayesrbf.base.arrays import log_loss
from bayesrbf.base.tasks import run_tasks
from bayesrbf.mixture.transforms import fit_half_rank
from bayesrbf.table.encode import encode_labels
from bayesrbf.table.order import standardisation

LOGISTIC: Final = "logistic regression"
FOREST: Final = "random forest"

PENALTIES: Final = 10.0 ** np.arange(-4, 2.1, 0.5)
"""Values of scikit-learn's C, the strongest penalty first."""
WORSE_IN_A_ROW: Final = 2
"""Penalties that are worse than the best one before them, after which weaker ones are not tried."""
TREES: Final = 300  # Of the forest that every fold compares with.
RIVALS_IN_WORDS: Final = (
    "Logistic regression has a ridge penalty, of "
    f"{PENALTIES.size} from C = {exact(PENALTIES[0])} to {exact(PENALTIES[-1])} the one of least "
    "log loss on rows held out within the training part; the random forest has "
    f"{TREES} trees with two rows to a leaf or more. Both have medians with missing indicators, "
    "real columns by half ranks (the mean of the standardised cell and its normal score, as kernel "
    "members of a stack have them), and one-hot levels."
)
"""The rivals of :func:`rivals` with their settings."""

CROSS_VALIDATION: Final = "Cross-validating"
"""The phase of a run in which rows are held out."""

Fitter = Callable[[pd.DataFrame, pd.Series], Any]
"""Training rows and labels to something with ``classes_`` and ``predict_proba``."""


Phase = Callable[[str], AbstractContextManager[None]]
"""Surrounds a phase of a run, by its name, and may show how far it is."""


def silently(name: str) -> AbstractContextManager[None]:
    """A phase without a display."""
    return nullcontext()


@dataclass(frozen=True)
class HeldOutRows:
    """Probabilities of rows that the classifier did not see."""

    classes: tuple[object, ...]  # In the order of the columns of probabilities.
    labels: Int[np.ndarray, " obs"]  # True class codes, -1 where unknown.
    folds: Int[np.ndarray, " obs"]  # Fold that held a row out; -1 for rows that are never scored.
    probabilities: Mapping[str, Float[np.ndarray, "obs label"]]
    """Class probabilities by classifier; NaN where a row is never scored."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds of all fits and predictions of each classifier."""
    trained: Float[np.ndarray, " label"] | None = None
    """Rows of every class in training, where these are new rows."""

    @property
    def scored(self) -> Int[np.ndarray, " scored"]:
        """Positions of the rows that were held out."""
        return np.flatnonzero(self.folds >= 0)


def hold_out(
    X: pd.DataFrame,
    y: pd.Series,
    fitters: Mapping[str, Fitter],
    splits: Splits,
    phase: Phase = silently,
) -> HeldOutRows:
    """Cross-validate several classifiers on the same folds."""
    classes, labels = encode_labels(y)
    folds = splits.folds
    results = {name: np.full((len(X), classes.size), np.nan) for name in fitters}
    tasks = [(fold, name) for fold in splits.numbers.tolist() for name in fitters]

    def answer(task: tuple[int, str]) -> tuple[np.ndarray, float]:
        fold, name = task
        start = perf_counter()
        test, train = folds == fold, splits.training(fold)
        fitted = fitters[name](X[train], y[train])
        columns = np.searchsorted(classes, fitted.classes_)
        probabilities = np.zeros((int(test.sum()), classes.size))
        probabilities[:, columns] = fitted.predict_proba(X[test])
        return probabilities, perf_counter() - start

    seconds = dict.fromkeys(fitters, 0.0)
    with phase(CROSS_VALIDATION):
        answers = run_tasks(answer, tasks, "Folds")
    for (fold, name), (probabilities, took) in zip(tasks, answers, strict=True):
        results[name][folds == fold] = probabilities
        seconds[name] += took
    return HeldOutRows(tuple(classes.tolist()), labels, folds, results, seconds)


def class_frequencies(X: pd.DataFrame, y: pd.Series) -> Frequencies:
    """Fitter of the baseline: the class frequencies of the labelled rows."""
    classes, labels = encode_labels(y)
    counts = np.bincount(labels[labels >= 0], minlength=classes.size)
    return Frequencies(classes, counts / counts.sum())


@dataclass(frozen=True)
class Frequencies:
    """Class frequencies as a classifier."""

    classes_: np.ndarray
    shares: Float[np.ndarray, " label"]  # Of the classes among the labelled rows.

    def predict_proba(self, X: pd.DataFrame) -> Float[np.ndarray, "obs label"]:
        """Class frequencies, the same in every row."""
        return np.tile(self.shares, (len(X), 1))


def rivals(job: Job) -> dict[str, Fitter]:
    """Fitters of the rivals, which ``RIVALS_IN_WORDS`` names."""
    forest = RandomForestClassifier(TREES, min_samples_leaf=2, random_state=job.seed)
    return {
        LOGISTIC: logistic_regression(job.categorical, job.splits_within),
        FOREST: behind_filled_columns(lambda Z, y: clone(forest).fit(Z, y), job.categorical),
    }


def _by_chance(y: pd.Series) -> Splits:
    """Five stratified folds, fewer where a class has fewer rows."""
    return splits_of(encode_labels(y)[1], 5, 0)


def logistic_regression(
    categorical: Iterable[str], within: Callable[[pd.Series], Splits] = _by_chance
) -> Fitter:
    """Logistic regression on filled columns with the penalty of least held-out log loss.

    ``within`` assigns the labels of a training part: rows that belong together stay together.
    """

    def fit(Z: Any, y: pd.Series) -> ClassifierMixin:
        with warnings.catch_warnings():
            # The baseline may stop early; its score says how good it was.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return _ridge(_penalty(Z, encode_labels(y)[1], within(y).pairs())).fit(Z, y)

    return behind_filled_columns(fit, categorical)


def _ridge(penalty: float) -> LogisticRegression:
    """Logistic regression at one penalty."""
    return LogisticRegression(C=penalty, max_iter=2000)


def _penalty(Z: Any, labels: Int[np.ndarray, " obs"], pairs: Sequence[tuple[Any, Any]]) -> float:
    """The penalty of least log loss on rows held out; 1 where none can be held out."""
    classes = np.unique(labels)
    splits = [(train, test) for train, test in pairs if np.isin(classes, labels[train]).all()]
    if not splits:
        return 1.0
    losses: list[float] = []
    for penalty in PENALTIES:
        rows = [
            log_loss(_ridge(penalty).fit(Z[a], labels[a]).predict_proba(Z[b]), labels[b])
            for a, b in splits
        ]
        losses.append(float(np.concatenate(rows).mean()))
        if len(losses) - 1 - int(np.argmin(losses)) >= WORSE_IN_A_ROW:
            break
    return float(PENALTIES[np.argmin(losses)])


class HalfRanks(TransformerMixin, BaseEstimator):
    """Half ranks of real columns by the training rows; missing cells stay missing."""

    def fit(self, X: pd.DataFrame, y: object = None) -> Self:
        """Learn location, scale and ranks of every column."""
        real, weights = X.to_numpy(np.float64), np.ones(len(X))
        self.transforms_ = fit_half_rank(standardisation(real, weights), real, weights)
        return self

    def transform(self, X: pd.DataFrame) -> Float[np.ndarray, "obs feature"]:
        """Half ranks of the cells of rows."""
        return self.transforms_.forward(X.to_numpy(np.float64))


def behind_filled_columns(
    fit_classifier: Callable[[Any, pd.Series], ClassifierMixin], categorical: Iterable[str]
) -> Fitter:
    """A classifier of scikit-learn on filled columns.

    It takes half ranks, medians and a missing indicator for real columns, and one-hot codes for
    categorical ones, where missing is a level. It sees labelled rows only.
    """
    names = set(categorical)

    def fit(X: pd.DataFrame, y: pd.Series) -> Pipeline:
        labelled = y.notna().to_numpy()
        reals = [name for name in X.columns if name not in names]
        filled = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        columns = ColumnTransformer(
            [
                ("real", make_pipeline(HalfRanks(), filled, StandardScaler()), reals),
                (
                    "categorical",
                    OneHotEncoder(handle_unknown="ignore"),
                    [name for name in X.columns if name in names],
                ),
            ]
        )
        Z = columns.fit_transform(X[labelled])
        return make_pipeline(columns, fit_classifier(Z, y[labelled]))

    return fit
