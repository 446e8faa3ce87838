"""Labels whose probabilities are known, on the rows of real tables.

A teacher is fitted to the real labels, out of fold or out of bag, and tempered; its class
probabilities are then the truth, and new labels are drawn from them. No teacher is a member of
the stack.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from bayesrbf.datasets import hide_cells
from bayesrbf.posterior.temperature import fit_temperature, tempered
from tests.benchmarks.stack_tables import HIDDEN, load
from tests.benchmarks.test_real_tables import numbers_for

SMALLEST = 1e-3
"""Least probability of a class under a teacher, before it is tempered."""
MOST_ROWS = 1500
"""Rows of a table that a teacher sees: a Gaussian process takes no more in good time."""
FOLDS = 5

Teacher = Callable[[pd.DataFrame, np.ndarray], np.ndarray]


def trees(X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """Bagged trees out of bag."""
    forest = ExtraTreesClassifier(
        400, min_samples_leaf=5, bootstrap=True, oob_score=True, random_state=0
    )
    return numbers_for(forest).fit(X, y)[-1].oob_decision_function_


def boosting(X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """Boosted trees out of fold."""
    text = X.select_dtypes(exclude="number").columns
    model = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.08, categorical_features="from_dtype", random_state=0
    )
    return out_of_fold(model, X.astype(dict.fromkeys(text, "category")), y)


def process(X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """A Gaussian process out of fold, its width and scale by evidence."""
    kernel = ConstantKernel(4.0) * RBF(np.sqrt(X.shape[1]))
    return out_of_fold(numbers_for(GaussianProcessClassifier(kernel, random_state=0)), X, y)


def out_of_fold(model: object, X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """Class probabilities that folds give to rows they have not seen."""
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    return cross_val_predict(model, X, y, cv=folds, method="predict_proba")


TEACHERS: dict[str, Teacher] = {"trees": trees, "boosting": boosting, "process": process}


@dataclass(frozen=True)
class Taught:
    """Rows to learn from with drawn labels, and new rows whose class probabilities are known."""

    X: pd.DataFrame
    y: np.ndarray
    X_new: pd.DataFrame
    truth: np.ndarray


def rows_of(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """At most so many rows of a table; classes of fewer rows than folds are left out."""
    data = load(name)
    y = np.asarray(data.y, dtype=str)
    _, places, counts = np.unique(y, return_inverse=True, return_counts=True)
    enough = np.flatnonzero(counts[places] >= 2 * FOLDS)
    kept = np.random.default_rng(0).permutation(enough)[:MOST_ROWS]
    return data.X.iloc[kept].reset_index(drop=True), y[kept]


def probabilities(teacher: str, X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """What a teacher says about every row, tempered by the real labels."""
    _, labels = np.unique(y, return_inverse=True)
    logs = np.log(np.clip(np.nan_to_num(TEACHERS[teacher](X, y), nan=1.0), SMALLEST, 1.0))
    return np.exp(tempered(logs, fit_temperature(logs, labels, np.ones(labels.size))))


def taught(
    X: pd.DataFrame, truth: np.ndarray, n_train: int, seed: int, *, holes: bool
) -> Taught | None:
    """A table with labels drawn from a teacher; None where a class has no row to learn from."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    n_train = min(n_train, len(X) // 2)
    train, new = order[:n_train], order[n_train : n_train + 400]
    labels = (truth.cumsum(axis=1) > rng.random((len(X), 1))).argmax(axis=1)
    if np.bincount(labels[train], minlength=truth.shape[1]).min() == 0:
        return None
    if holes:
        X = hide_cells(X, HIDDEN, rng)
    return Taught(X.iloc[train], labels[train], X.iloc[new], truth[new])
