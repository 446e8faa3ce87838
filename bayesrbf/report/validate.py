"""Held-out probabilities: the whole procedure, every choice included, fold by fold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from sklearn.base import ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bayesrbf.fitted.tasks import run_tasks
from bayesrbf.report.splits import Splits, splits_of
from bayesrbf.table import encode_labels

CROSS_VALIDATION: Final = "Cross-validating"
"""The phase of a run in which rows are held out."""

Fitter = Callable[[pd.DataFrame, pd.Series], Any]
"""Training rows and labels to something with ``classes_`` and ``predict_proba``."""


Phase = Callable[[str], AbstractContextManager[None]]
"""Surrounds a phase of a run, by its name, and may show how far it is."""


def silently(name: str) -> AbstractContextManager[None]:
    """Surround a phase and show nothing."""
    return nullcontext()


@dataclass(frozen=True)
class HeldOutRows:
    """Probabilities of rows that the classifier did not see."""

    classes: tuple[object, ...]  # In the order of the columns of probabilities.
    labels: Int[np.ndarray, " obs"]  # True class codes, -1 where unknown.
    folds: Int[np.ndarray, " obs"]  # Fold that held a row out; -1 for rows that are never scored.
    probabilities: Mapping[str, Float[np.ndarray, "obs label"]]
    """By classifier; NaN where a row is never scored."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Of all fits and predictions of a classifier."""

    @property
    def scored(self) -> Int[np.ndarray, " scored"]:
        """Positions of the rows that were held out."""
        return np.flatnonzero(self.folds >= 0)


def hold_out(
    X: pd.DataFrame,
    y: pd.Series,
    fitters: Mapping[str, Fitter],
    *,
    n_folds: int = 5,
    seed: int = 0,
    splits: Splits | None = None,
    phase: Phase = silently,
) -> HeldOutRows:
    """Cross-validate several classifiers on the same folds, of which there are at most ``n_folds``.

    By default, rows without a label and the only row of a class are in every training part.
    """
    classes, labels = encode_labels(y)
    splits = splits_of(labels, n_folds, seed) if splits is None else splits
    folds = splits.folds
    results = {name: np.full((len(X), classes.size), np.nan) for name in fitters}
    parts = [(fold, name) for fold in splits.numbers.tolist() for name in fitters]

    def answer(part: tuple[int, str]) -> tuple[np.ndarray, float]:
        (fold, name), start = part, perf_counter()
        test, train = folds == fold, splits.training(fold)
        fitted = fitters[name](X[train], y[train])
        columns = np.searchsorted(classes, fitted.classes_)
        probabilities = np.zeros((int(test.sum()), classes.size))
        probabilities[:, columns] = fitted.predict_proba(X[test])
        return probabilities, perf_counter() - start

    seconds = dict.fromkeys(fitters, 0.0)
    with phase(CROSS_VALIDATION):
        answers = run_tasks(answer, parts, "Folds")
    for (fold, name), (probabilities, took) in zip(parts, answers, strict=True):
        results[name][folds == fold] = probabilities
        seconds[name] += took
    return HeldOutRows(tuple(classes.tolist()), labels, folds, results, seconds)


def class_frequencies(X: pd.DataFrame, y: pd.Series) -> Frequencies:
    """The baseline whose probabilities are the class frequencies of the labelled rows."""
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


def logistic_regression(categorical: Iterable[str]) -> Fitter:
    """Logistic regression on filled columns, the usual baseline."""
    return behind_filled_columns(LogisticRegression(max_iter=2000), categorical)


def behind_filled_columns(classifier: ClassifierMixin, categorical: Iterable[str]) -> Fitter:
    """A classifier of scikit-learn on filled columns.

    It takes medians and a missing indicator for real columns, and one-hot codes for categorical
    ones, where missing is a level. It sees labelled rows only.
    """
    names = set(categorical)

    def fit(X: pd.DataFrame, y: pd.Series) -> Pipeline:
        labelled = y.notna().to_numpy()
        reals = [name for name in X.columns if name not in names]
        filled = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        encoder = OneHotEncoder(handle_unknown="ignore")
        columns = ColumnTransformer(
            [
                ("real", make_pipeline(filled, StandardScaler()), reals),
                ("categorical", encoder, [name for name in X.columns if name in names]),
            ]
        )
        model = make_pipeline(columns, clone(classifier))
        with warnings.catch_warnings():
            # The baseline may stop early; its score says how good it was.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(X[labelled], y[labelled])

    return fit
