"""Data-generating models: held-out class probabilities by scikit-learn's families."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float, Int
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

TEACHER_FOLDS: Final = 5
"""Folds that hold out the rows whose class probabilities are the truth."""
MAX_PROCESS_ROWS: Final = 1200
"""Maximum number of rows of a Gaussian process: its cost is cubic in the rows."""

Cells = Float[np.ndarray, "obs column"]
Labels = Int[np.ndarray, " obs"]
Probabilities = Float[np.ndarray, "obs label"]
Mask = Bool[np.ndarray, " column"]
SubjectNumbers = Int[np.ndarray, " obs"] | None
Teacher = Callable[[Cells, Mask, Labels, int, SubjectNumbers], np.ndarray]
"""Maps cells (NaN where missing, codes of levels in the columns of the mask), labels, a seed and
numbers of subjects to class probabilities of the same rows, each by models that have seen neither
its
label nor those of its subject."""


def trees(
    cells: Cells, categorical: Mask, labels: Labels, seed: int, subjects: SubjectNumbers
) -> Probabilities:
    """Class probabilities of every row by bagged trees, out of bag.

    With ``subjects`` they are out of fold: bags are of rows, and one may have another row of the
    subject. A row that is in every bag has 0 for each class, with 400 trees hardly ever.
    """
    forest = ExtraTreesClassifier(
        400, min_samples_leaf=5, bootstrap=True, oob_score=True, random_state=seed
    )
    if subjects is not None:
        forest.set_params(oob_score=False)
        return out_of_fold(numbers_for(forest, categorical), cells, labels, seed, subjects)
    fitted = numbers_for(forest, categorical).fit(cells, labels)
    # A row that every tree drew has no out-of-bag vote: its classes count alike.
    votes: Probabilities = np.nan_to_num(fitted[-1].oob_decision_function_, nan=1.0)
    return votes


def boosting(
    cells: Cells, categorical: Mask, labels: Labels, seed: int, subjects: SubjectNumbers
) -> Probabilities:
    """Boosted trees, out of fold; they take holes and levels themselves."""
    model = HistGradientBoostingClassifier(
        max_iter=60, learning_rate=0.08, categorical_features=categorical, random_state=seed
    )
    return out_of_fold(model, cells, labels, seed, subjects)


def process(
    cells: Cells, categorical: Mask, labels: Labels, seed: int, subjects: SubjectNumbers
) -> Probabilities:
    """A Gaussian process, out of fold, its width and scale by evidence."""
    kernel = ConstantKernel(4.0) * RBF(np.sqrt(cells.shape[1]))
    model = GaussianProcessClassifier(kernel, random_state=seed)
    of_numbers = numbers_for(model, categorical)
    return out_of_fold(of_numbers, cells, labels, seed, subjects, MAX_PROCESS_ROWS)


TEACHERS: Final[dict[str, Teacher]] = {"trees": trees, "boosting": boosting, "process": process}

KIN: Final[dict[str, tuple[type, ...]]] = {
    "trees": (BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier),
    "boosting": (AdaBoostClassifier, GradientBoostingClassifier, HistGradientBoostingClassifier),
    "process": (GaussianProcessClassifier, SVC),
}
"""Classifiers of the same kind as each teacher."""


def numbers_for(classifier: Any, categorical: Mask) -> Pipeline:
    """Pipeline of a classifier on standardised numbers and one-hot levels.

    Missing numbers are replaced by medians, with missing indicators as further columns.
    """
    reals = make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
        StandardScaler(),
    )
    levels = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return make_pipeline(
        make_column_transformer((reals, ~categorical), (levels, categorical)), classifier
    )


def out_of_fold(
    model: Any,
    cells: Cells,
    labels: Labels,
    seed: int,
    subjects: SubjectNumbers,
    most: int | None = None,
) -> Probabilities:
    """Class probabilities of every row by a model fitted to at most ``most`` rows of other folds.

    Folds keep subjects together. A class without a row in the other folds has probability zero.
    """
    p = np.zeros((labels.size, labels.max() + 1))
    kind = StratifiedKFold if subjects is None else StratifiedGroupKFold
    folds = kind(min(TEACHER_FOLDS, np.bincount(labels).max()), shuffle=True, random_state=seed)
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        # A class of fewer rows than folds is expected; a truth need not have the best of kernels.
        warnings.filterwarnings("ignore", "The least populated class")
        warnings.simplefilter("ignore", ConvergenceWarning)
        for training, test in folds.split(cells, labels, subjects):
            rows = (
                training
                if most is None or training.size <= most
                else rng.permutation(training)[:most]
            )
            model.fit(cells[rows], labels[rows])
            p[np.ix_(test, model.classes_)] = model.predict_proba(cells[test])
    return p
