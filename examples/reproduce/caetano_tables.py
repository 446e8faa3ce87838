"""Errors of RBF networks and baselines where few rows have a label: tables 2 and 3.

Table 2: a share of the rows is labelled and learned from, the others are predicted. Table 3:
categorical tables with 5,000 rows to learn from, of which a share is labelled; the others train the
hidden layer alone, and 3,000 more rows are predicted. All choices are made by cross-validation
inside the labelled rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import f_classif
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, ParameterSampler, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from bayesrbf import KernelNetworkClassifier, RBFNetworkClassifier
from bayesrbf.datasets import Dataset, load_table
from reproduce.alternation import AlternatingNetwork
from reproduce.cells import Cell, Figures

REAL: Final = ("iris", "breast_cancer", "glass", "sonar", "wine", "colon", "leukemia")
REAL_SHARES: Final = (85, 50, 25)
CATEGORICAL: Final = ("mushroom", "census")
CATEGORICAL_SHARES: Final = (100, 50, 25, 10, 5)
WIDEST: Final = 100
"""Most columns; of a wider table those with the largest F value in the labelled rows."""
LEARNED, PREDICTED = 5000, 3000  # Rows of table 3 to learn from and to predict.
NETWORKS: Final = ("Caetano", "joint", "kernel")
MIN_PROBABILITY: Final = (
    1e-6  # Lower bound of probabilities in log losses, which may be infinite otherwise.
)
CAETANO: Final[Mapping[str, list[Any]]] = {
    "n_components": [4, 8, 16],
    "link": [1.0, 10.0, 100.0, 1000.0],
    "l1": [0.03, 0.1, 0.3, 1.0],
    "covariance_type": ["diag", "tied"],
}
JOINT: Final[Mapping[str, list[Any]]] = {
    "features": ["responsibility", "log_density"],
    "l2": [0.1, 1.0],
}


@dataclass(frozen=True)
class Effort:
    """Limits on the cost of one fit."""

    forest: int  # Trees.
    tried: int  # Settings of the randomised search.
    rounds: int  # Most rounds of an alternation of table 2.


FULL: Final = Effort(300, 6, 60)


@cache
def table(name: str) -> Dataset:
    """A table by the paper's name; both parts where it is stored in two."""
    if name == "census":
        return load_table("adult_train")
    if name == "leukemia":
        parts = [load_table(f"leukemia_{part}") for part in ("train", "test")]
        X = pd.concat([part.X for part in parts], ignore_index=True)
        return Dataset(name, X, np.concatenate([part.y for part in parts]))
    return load_table(name)


def methods(seed: int, effort: Effort) -> dict[str, Any]:
    """Classifiers of table 2, by name."""
    alternation = AlternatingNetwork(n_init=1, max_iter=effort.rounds, tol=1e-4, random_state=seed)
    drawn = ParameterSampler(dict(CAETANO), n_iter=effort.tried, random_state=seed)
    grids = [{name: [value] for name, value in setting.items()} for setting in drawn]
    caetano = GridSearchCV(alternation, grids, cv=3)
    joint = RBFNetworkClassifier(features="responsibility", calibrate=False, random_state=seed)
    process = GaussianProcessClassifier(ConstantKernel(1.0) * RBF(3.0), random_state=seed)
    machine = GridSearchCV(
        SVC(), {"C": [1.0, 10.0, 100.0], "gamma": ["scale", 0.01, 0.1]}, cv=3, n_jobs=1
    )
    return {
        "Caetano": caetano,
        "joint": joint,
        "joint, chosen": GridSearchCV(joint, dict(JOINT), cv=3),
        "kernel": KernelNetworkClassifier(calibrate=False, random_state=seed),
        "SVM": make_pipeline(StandardScaler(), machine),
        "forest": RandomForestClassifier(effort.forest, random_state=seed),
        "GP": make_pipeline(StandardScaler(), process),
    }


def mixed_methods(X: pd.DataFrame, seed: int, effort: Effort) -> dict[str, Any]:
    """Classifiers of table 3, by name; baselines see imputed cells and one-hot levels."""
    numbers = X.select_dtypes("number").columns
    levels = [name for name in X.columns if name not in set(numbers)]
    reals = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    indicators = OneHotEncoder(handle_unknown="ignore")
    filled = make_column_transformer((reals, list(numbers)), (indicators, levels))
    return {
        "Caetano": AlternatingNetwork(
            20, l1=0.1, n_init=1, max_iter=30, tol=1e-4, random_state=seed
        ),
        "joint": RBFNetworkClassifier(
            l2=0.1, calibrate=False, n_init=1, max_iter=300, random_state=seed
        ),
        "kernel": KernelNetworkClassifier(calibrate=False, random_state=seed),
        "SVM": make_pipeline(filled, SVC(C=10.0)),
        "forest": make_pipeline(filled, RandomForestClassifier(effort.forest, random_state=seed)),
    }


def real_cells(
    names: tuple[str, ...], shares: tuple[int, ...], seeds: int, effort: Effort
) -> Iterator[Cell]:
    """Cells of table 2: error in %, and log loss of methods that give probabilities.

    Shares are those of labelled rows, in %.
    """
    for seed in range(seeds):
        for name in names:
            for share in shares:
                for method in methods(seed, effort):
                    yield Cell(
                        f"table 2/{name}, {share} %/{method}/{seed}",
                        partial(_real, name, share, method, seed, effort),
                    )


def mixed_cells(names: tuple[str, ...], seeds: int, effort: Effort) -> Iterator[Cell]:
    """Cells of table 3: error in %, and log loss of methods that give probabilities."""
    for seed in range(seeds):
        for name in names:
            for share in CATEGORICAL_SHARES:
                for method in mixed_methods(pd.DataFrame(), seed, effort):
                    yield Cell(
                        f"table 3/{name}, {share} %/{method}/{seed}",
                        partial(_mixed, name, share, method, seed, effort),
                    )


def _real(name: str, share: int, method: str, seed: int, effort: Effort) -> Figures:
    """One fit of table 2."""
    data = table(name)
    X, X_new, y, y_new = train_test_split(
        data.X.to_numpy(), data.y, train_size=share / 100, stratify=data.y, random_state=seed
    )
    if X.shape[1] > WIDEST:
        with np.errstate(invalid="ignore", divide="ignore"):
            telling = np.argsort(-np.nan_to_num(f_classif(X, y)[0]))[:WIDEST]
        X, X_new = X[:, telling], X_new[:, telling]
    return _judged(methods(seed, effort)[method], (X, y), (X_new, y_new))


def _mixed(name: str, share: int, method: str, seed: int, effort: Effort) -> Figures:
    """One fit of table 3; baselines learn from the labelled rows alone."""
    data = table(name)
    X, X_new, y, y_new = train_test_split(
        data.X, data.y, train_size=LEARNED, test_size=PREDICTED, stratify=data.y, random_state=seed
    )
    labelled = np.random.default_rng(seed).permutation(LEARNED) < LEARNED * share // 100
    model = mixed_methods(X, seed, effort)[method]
    if method in NETWORKS:  # they learn from rows without a label, too
        return _judged(model, (X, np.where(labelled, y, None)), (X_new, y_new))
    return _judged(model, (X[labelled], y[labelled]), (X_new, y_new))


def _judged(model: Any, known: tuple[Any, Any], new: tuple[Any, np.ndarray]) -> Figures:
    """Fit and judge: error in %, and mean log loss in nats where there are probabilities."""
    X, truth = new
    with warnings.catch_warnings():
        # Alternations that did not converge, and classes with fewer rows than folds.
        warnings.simplefilter("ignore")
        model.fit(*known)
        figures: dict[str, float | int | str] = {
            "error": 100 * float(np.mean(model.predict(X) != truth))
        }
        if hasattr(model, "predict_proba"):
            p = np.maximum(model.predict_proba(X), MIN_PROBABILITY)
            own = p[np.arange(truth.size), np.searchsorted(model.classes_, truth)]
            figures["log_loss"] = float(np.mean(np.log(p.sum(axis=1)) - np.log(own)))
    return figures
