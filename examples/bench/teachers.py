"""Labels whose probabilities are known, on the rows of real tables.

A teacher is fitted to the real labels, out of fold or out of bag, and tempered; its class
probabilities are then the truth, and new labels are drawn from them. No teacher is a member of
the stack, but trees and Gaussian processes are of the kind of some members.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from bayesrbf import table
from bayesrbf.answers.rehearse import truth
from bayesrbf.answers.teachers import TEACHER_FOLDS, TEACHERS
from bench.tables import load

__all__ = ["TEACHERS", "Taught", "probabilities", "rows_of", "taught"]

MAX_ROWS = 1500
"""Rows of a table that a teacher sees: a Gaussian process takes no more in good time."""


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
    enough = np.flatnonzero(counts[places] >= 2 * TEACHER_FOLDS)
    kept = np.random.default_rng(0).permutation(enough)[:MAX_ROWS]
    return data.X.iloc[kept].reset_index(drop=True), y[kept]


def probabilities(teacher: str, X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """What a teacher says about every row, tempered by the real labels."""
    _, labels = np.unique(y, return_inverse=True)
    rows = table.encode(X, table.learn_columns(X))
    cells = np.column_stack([rows.real, np.where(rows.codes < 0, np.nan, rows.codes)])
    categorical = np.arange(cells.shape[1]) >= rows.real.shape[1]
    return truth(TEACHERS[teacher](cells, categorical, labels, 0, None), labels)


def taught(X: pd.DataFrame, truth: np.ndarray, n_train: int, seed: int) -> Taught | None:
    """A table with labels drawn from a teacher; None where a class has no row to learn from."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    n_train = min(n_train, len(X) // 2)
    train, new = order[:n_train], order[n_train : n_train + 400]
    labels = (truth.cumsum(axis=1) > rng.random((len(X), 1))).argmax(axis=1)
    if np.bincount(labels[train], minlength=truth.shape[1]).min() == 0:
        return None
    return Taught(X.iloc[train], labels[train], X.iloc[new], truth[new])
