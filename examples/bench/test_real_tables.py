"""Held-out scores on ten real tables, complete and with holes, beside what users would pick.

Each table is split into stratified halves; with holes, 30 % of the cells of both
halves are hidden. Every choice (components, covariance, temperature) is made inside
the training half. ``BAYESRBF_SEEDS`` sets the number of splits (10).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bayesrbf import HybridMixtureClassifier
from bayesrbf.answers.scores import calibration
from bayesrbf.base.arrays import brier, correct, log_loss
from bayesrbf.datasets import hide_cells, load_table
from bench.figures import Row, show
from tests.measured import part

TABLES = (
    "iris",
    "wine",
    "breast_cancer",
    "glass",
    "sonar",
    "hepatitis",
    "heart_cleveland",
    "house_votes84",
    "mushroom",
    "credit_approval",
)
SEEDS = int(os.environ.get("BAYESRBF_SEEDS", "10"))
HIDDEN = 0.3
SMALLEST = 1e-6
"""Probabilities are clipped here, so that one confident miss is not infinite."""

MEASURES = {"log loss": "log_loss", "error %": "error", "Brier": "brier", "ECE": "ece"}

Frame = pd.DataFrame
Probabilities = np.ndarray
Contestant = Callable[[Frame, np.ndarray, Frame, int], Probabilities]


def numbers_for(classifier: object) -> object:
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


def plain(make: Callable[[int], object]) -> Contestant:
    """A scikit-learn classifier as it comes, behind the usual preparation."""

    def contest(X: Frame, y: np.ndarray, X_new: Frame, seed: int) -> Probabilities:
        return numbers_for(make(seed)).fit(X, y).predict_proba(X_new)

    return contest


def boosting(X: Frame, y: np.ndarray, X_new: Frame, seed: int) -> Probabilities:
    """Boosting takes holes and categories itself."""

    def typed(frame: Frame) -> Frame:
        return frame.astype(
            dict.fromkeys(frame.select_dtypes(exclude="number").columns, "category")
        )

    both = typed(pd.concat([X, X_new]))
    model = HistGradientBoostingClassifier(random_state=seed, categorical_features="from_dtype")
    return model.fit(both[: len(X)], y).predict_proba(both[len(X) :])


def mixture(X: Frame, y: np.ndarray, X_new: Frame, seed: int) -> Probabilities:
    """The mixture of the report: its structure by held-out log score, and a temperature."""
    open_arguments = {"n_components": "cv", "missingness": "cv"}
    model = HybridMixtureClassifier(objective="likelihood", random_state=seed, **open_arguments)
    return model.fit(X, y).predict_proba(X_new)


CONTESTANTS: dict[str, Contestant] = {
    "bayesrbf": mixture,
    "LogisticRegression": plain(lambda seed: LogisticRegression(max_iter=5000)),
    "QDA": plain(lambda seed: QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1)),
    "HistGradientBoosting": boosting,
    "RandomForest": plain(lambda seed: RandomForestClassifier(500, random_state=seed)),
}


def halves(name: str, seed: int, holes: bool) -> Iterator[object]:
    """Training and test half of a table."""
    data = load_table(name)
    X = hide_cells(data.X, HIDDEN, np.random.default_rng(seed)) if holes else data.X
    _, y = np.unique(np.asarray(data.y, dtype=str), return_inverse=True)
    return iter(train_test_split(X, y, test_size=0.5, random_state=seed, stratify=y))


def scores(p: Probabilities, y: np.ndarray) -> dict[str, float]:
    """Error in %, log loss in nats, Brier score and classwise calibration error."""
    p = np.maximum(p, SMALLEST)
    p = p / p.sum(axis=1, keepdims=True)
    return {
        "error %": 100 * (1 - float(correct(p, y).mean())),
        "log loss": float(log_loss(p, y).mean()),
        "Brier": float(brier(p, y).mean()),
        "ECE": calibration(p, y, n_resamples=1).error,
    }


def contest(name: str, holes: bool) -> Iterator[Row]:
    """Every contestant on every split of one table."""
    for seed in range(SEEDS):
        X, X_new, y, y_new = halves(name, seed, holes)
        for contestant, run in CONTESTANTS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                key = {"table": name, "holes": holes, "seed": seed, "model": contestant}
                make = lambda: scores(run(X, y, X_new, seed), y_new)  # noqa: B023, E731
                yield part("real_tables", key, make)


@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
def test_real_tables(holes: bool, data_folder: object) -> None:
    results = pd.DataFrame([row for name in TABLES for row in contest(name, holes)])
    means = results[["table", "model", *MEASURES]].groupby(["table", "model"], sort=False).mean()
    losses = means["log loss"].unstack(sort=False)
    ranks = losses.rank(axis=1)
    kind = "with_holes" if holes else "complete"
    for measure, name in MEASURES.items():
        rows = means[measure].unstack(sort=False)
        show(f"real_tables/{kind}_{name}", rows, counts={"splits": (SEEDS, 10)})
    ranks.loc["mean"] = ranks.mean()
    show(f"real_tables/{kind}_ranks", ranks.tail(1), 2, {"splits": (SEEDS, 10)})
    assert ranks.loc["mean"].idxmin() == "bayesrbf"
