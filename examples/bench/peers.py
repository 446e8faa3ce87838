"""Models of other libraries as users would take them, and the scores of class probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from bayesrbf.answers.scores import auroc, calibration
from bayesrbf.base.arrays import correct, log_loss

SMALLEST: Final = 1e-6
"""Probabilities are clipped here, so that one confident miss is not infinite."""
GENTLE: Final = {
    "learning_rate": 0.05,
    "max_iter": 150,
    "max_leaf_nodes": 8,
    "l2_regularization": 1.0,
}


def numbers_for(classifier: object) -> Any:
    """Median with indicators and one-hot columns: what most users put in front."""
    reals = make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True),
        StandardScaler(),
    )
    categories = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(
        (reals, make_column_selector(dtype_include="number")),
        (categories, make_column_selector(dtype_exclude="number")),
    )
    return make_pipeline(columns, classifier)


class Boosting:
    """Boosting that takes missing cells itself, and texts as categories of the training rows."""

    def __init__(self, seed: int, **settings: Any) -> None:
        self.model = HistGradientBoostingClassifier(
            categorical_features="from_dtype", random_state=seed, **settings
        )

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Boosting:
        self.levels = {
            name: sorted(column.dropna().unique(), key=str)
            for name, column in X.items()
            if column.dtype.kind not in "fiub"
        }
        self.model.fit(self.read(X), y)
        return self

    def read(self, X: pd.DataFrame) -> pd.DataFrame:
        return X.assign(
            **{name: pd.Categorical(X[name], levels) for name, levels in self.levels.items()}
        )

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        found: np.ndarray = self.model.predict_proba(self.read(X))
        return found


class Shares:
    """The class shares of training, whatever the row."""

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Shares:
        self.shares = np.bincount(y) / y.size
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        return np.tile(self.shares, (len(X), 1))


class Platt:
    """A support vector machine with Platt's probabilities, out of fold.

    The five folds are given one by one, for a number is refused where a class has fewer rows.
    """

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Any:
        folds = list(StratifiedKFold(5).split(np.zeros((y.size, 1)), y))
        machine = CalibratedClassifierCV(SVC(C=3.0), method="sigmoid", cv=folds, ensemble=False)
        return numbers_for(machine).fit(X, y)


def forest(seed: int) -> Any:
    """A random forest of 500 trees."""
    return numbers_for(RandomForestClassifier(500, min_samples_leaf=2, random_state=seed))


def logistic(seed: int) -> Any:
    """Logistic regression whose penalty is chosen by cross-validation."""
    model = LogisticRegressionCV(
        Cs=10, l1_ratios=(0,), scoring="neg_log_loss", max_iter=1000, use_legacy_attributes=False
    )
    return numbers_for(model)


PEERS: Final[dict[str, Callable[[int], Any]]] = {
    "random forest": forest,
    "gradient boosting, gentle": lambda seed: Boosting(seed, **GENTLE),
    "gradient boosting, default": Boosting,
    "logistic regression": logistic,
    "support vector machine, Platt": lambda _: Platt(),
}


def scores(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Log loss in nats, mean AUROC of a class against the rest, error in %, calibration error."""
    p = np.maximum(p, SMALLEST)
    p = p / p.sum(axis=1, keepdims=True)
    counts = np.bincount(y, minlength=p.shape[1])
    judged = [c for c, n in enumerate(counts) if 0 < n < y.size][-1 if p.shape[1] == 2 else 0 :]
    return {
        "log loss": float(log_loss(p, y).mean()),
        "AUROC": float(np.mean([auroc(p[:, c], y == c).value for c in judged])),
        "error %": 100 * (1 - float(correct(p, y).mean())),
        "calibration error": calibration(p, y, n_resamples=1).error,
    }
