"""Models of other libraries as users would take them, and the scores of class probabilities."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
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


def chosen_logistic() -> LogisticRegressionCV:
    """Logistic regression with the penalty of least held-out log loss, of all linear rivals."""
    return LogisticRegressionCV(
        Cs=10, l1_ratios=(0,), scoring="neg_log_loss", max_iter=1000, use_legacy_attributes=False
    )


class Boosting:
    """Boosting that takes missing cells itself, and texts as categories of the training rows."""

    def __init__(self, seed: int, **settings: Any) -> None:
        self.model = HistGradientBoostingClassifier(
            categorical_features="from_dtype", random_state=seed, **settings
        )

    def fit(self, X: pd.DataFrame, y: np.ndarray, weights: np.ndarray | None = None) -> Boosting:
        self.levels = {
            name: sorted(column.dropna().unique(), key=str)
            for name, column in X.items()
            if column.dtype.kind not in "fiub"
        }
        self.model.fit(self.read(X), y, weights)
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


class Doubled(Boosting):
    """Boosting fitted to every row as it is and once more with a share of its cells hidden."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, **GENTLE)
        self.rng = np.random.default_rng(seed)

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Boosting:
        hidden = self.rng.random(X.shape) < self.rng.random((len(X), 1))
        return super().fit(pd.concat([X, X.mask(hidden)], ignore_index=True), np.tile(y, 2))


class Blocks:
    """Every column as standardised numbers of its own; all of them are NaN where it is missing."""

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> Any:
        self.columns = {
            name: (
                StandardScaler()
                if X[name].dtype.kind in "fiub"
                else OneHotEncoder(handle_unknown="ignore", sparse_output=False)
            ).fit(X.loc[X[name].notna(), [name]])
            for name in X
        }
        self.y, self.X = y, self.blocks(X)
        return self

    def blocks(self, X: pd.DataFrame) -> list[np.ndarray]:
        known = X.notna().to_numpy()
        every = (column.transform(X[[name]]) for name, column in self.columns.items())
        return [
            np.where(here[:, None], one, np.nan) for here, one in zip(known.T, every, strict=True)
        ]


class Refitted(Blocks):
    """Logistic regression fitted anew to the columns that a row has, for every pattern of holes.

    Its penalty is chosen once, with all columns.
    """

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        new, known = self.blocks(X), X.notna().to_numpy()
        penalty = chosen_logistic().fit(np.nan_to_num(np.hstack(self.X)), self.y).C_
        p = np.tile(np.bincount(self.y) / self.y.size, (len(X), 1))
        patterns, of_row = np.unique(known, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            if pattern.any():
                rows, places = of_row == number, np.flatnonzero(pattern)
                old = np.nan_to_num(np.hstack([self.X[j] for j in places]))
                model = LogisticRegression(C=penalty, max_iter=1000).fit(old, self.y)
                p[rows] = model.predict_proba(np.hstack([new[j][rows] for j in places]))
        return p


class Imputed(Blocks):
    """Logistic regression, averaged over five chained imputations of the new rows."""

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        old, new = np.hstack(self.X), np.hstack(self.blocks(X))
        every = np.vstack([old, new])
        chain = IterativeImputer(
            sample_posterior=True, max_iter=5, tol=0, n_nearest_features=10, random_state=0
        )
        whole = chain.fit_transform(every) if np.isnan(every).any() else every
        model = chosen_logistic().fit(whole[: len(old)], self.y)
        if not np.isnan(new).any():
            return np.asarray(model.predict_proba(new))
        return np.mean([model.predict_proba(chain.transform(new)) for _ in range(5)], axis=0)


class InContext(ClassifierMixin, BaseEstimator):
    """A stand-in for TabPFNClassifier and TabICLClassifier, without weights to fetch.

    It has what they share, and the stricter of what they differ in: numbers and NaN alone, ten
    classes, no weights of rows. ``fit`` keeps the rows, ``predict_proba`` reads them as its
    context, fills holes with means and answers in single precision. Where they have a transformer,
    it has one step of attention to rows: a Gaussian process over one-hot labels. Rows of
    ``pretraining`` are in every context, as what was learned before.
    """

    def __init__(self, softmax_temperature: float = 0.25, pretraining: Any = None) -> None:
        self.softmax_temperature = softmax_temperature
        self.pretraining = pretraining

    def fit(self, X: Any, y: Any) -> InContext:
        X, y = np.asarray(X, dtype=float), np.asarray(y)
        if self.pretraining is not None:
            before, labels = self.pretraining
            X, y = np.concatenate([X, before]), np.concatenate([y, labels])
        self.classes_, self.labels_ = np.unique(y, return_inverse=True)
        if self.classes_.size > 10:
            raise ValueError(f"Number of classes {self.classes_.size} exceeds 10.")
        self.context_ = X
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        read = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
        context = read.fit_transform(self.context_)
        new = read.transform(np.asarray(X, dtype=float))
        shares = np.bincount(self.labels_) / self.labels_.size
        among = rbf_kernel(context) + 0.3 * np.eye(self.labels_.size)
        told = np.linalg.solve(among, np.eye(self.classes_.size)[self.labels_] - shares)
        scores = shares + rbf_kernel(new, context) @ told
        found: np.ndarray = softmax(scores / self.softmax_temperature, axis=1).astype(np.float32)
        return found


def codes_for(classifier: object) -> Any:
    """Numbers as they are and codes of other columns, for a classifier that takes NaN."""
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, encoded_missing_value=np.nan
    )
    columns = make_column_transformer(
        (codes, make_column_selector(dtype_exclude="number")), remainder="passthrough"
    )
    return make_pipeline(columns, classifier)


def forest(seed: int) -> Any:
    """A random forest of 500 trees."""
    return numbers_for(RandomForestClassifier(500, min_samples_leaf=2, random_state=seed))


def logistic(seed: int) -> Any:
    """Logistic regression whose penalty is chosen by cross-validation."""
    return numbers_for(chosen_logistic())


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
