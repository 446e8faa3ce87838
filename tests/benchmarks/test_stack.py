"""The stack beside what users would pick, on 18 tables and 11 it was not made on.

Halves of at most 700 rows, complete and with 30 % of the cells hidden at fit and predict.
All users' models stand behind medians with indicators and one-hot columns, but for boosting,
which takes a table as it is, and for the pool, which is given our imputed columns.

``BAYESRBF_TABLES`` and ``BAYESRBF_METHODS`` choose (beginnings of names, with commas),
``BAYESRBF_SEEDS`` sets the number of splits (3). With ``BAYESRBF_RESULTS``, the name of a CSV
file, each result is kept there as it comes, and a run goes on where one stopped: after one of one
split, one of two has a split to do. *seven* is the first default, its kernels behind the companions
of the second.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from bayesrbf import HybridMixtureClassifier, RBFNetworkClassifier, StackedClassifier
from bayesrbf.estimators.folds import stratified_folds
from bayesrbf.estimators.holding_out import HeldOut
from bayesrbf.estimators.stack.fitting import bounded_log_probabilities, fit_pool
from bayesrbf.numerics.stack.pooling import pooled
from bayesrbf.posterior.recalibration import tempered
from tests.benchmarks.kept import keep, known
from tests.benchmarks.stack_tables import CHOSEN, FRESH, split
from tests.benchmarks.test_real_tables import numbers_for, scores
from tests.cases import generative

SEEDS = int(os.environ.get("BAYESRBF_SEEDS", "3"))
SMALLEST = 1e-6

Frame = pd.DataFrame
Fitted = Callable[[Frame], np.ndarray]
Contestant = Callable[[Frame, np.ndarray, int], Fitted]


def of(classifier: object, X: Frame, y: np.ndarray) -> Fitted:
    """Probabilities of a classifier fitted to the rows."""
    return classifier.fit(X, y).predict_proba


def stack(members: object, extra: Callable[[int], list[object]] | None = None) -> Contestant:
    """Ours."""

    def fit(X: Frame, y: np.ndarray, seed: int) -> Fitted:
        more = None if extra is None else extra(seed)
        return of(StackedClassifier(members, extra=more, random_state=seed), X, y)

    return fit


def plain(make: Callable[[int], object]) -> Contestant:
    """A scikit-learn classifier as it comes, behind the usual preparation."""
    return lambda X, y, seed: of(numbers_for(make(seed)), X, y)


def boosting(**settings: object) -> Callable[[int], object]:
    """Boosting with its own treatment of categories and holes."""

    def make(seed: int) -> object:
        model = HistGradientBoostingClassifier(
            random_state=seed, categorical_features="from_dtype", **settings
        )
        return make_pipeline(FunctionTransformer(typed), model)

    return make


def typed(frame: Frame) -> Frame:
    """Text as categories."""
    text = frame.select_dtypes(exclude="number").columns
    return frame.astype(dict.fromkeys(text, "category"))


GENTLE = {"learning_rate": 0.05, "max_iter": 150, "max_leaf_nodes": 8, "l2_regularization": 1.0}
forest = lambda seed: RandomForestClassifier(500, min_samples_leaf=2, random_state=seed)  # noqa: E731
logistic = lambda seed: LogisticRegressionCV(  # noqa: E731
    Cs=10, l1_ratios=(0,), scoring="neg_log_loss", max_iter=1000, use_legacy_attributes=False
)


def calibrated(make: Callable[[int], object], method: str) -> Contestant:
    """A classifier that scikit-learn calibrates out of fold.

    The five folds are given one by one, for a number is refused where a class has fewer rows.
    """

    def fit(X: Frame, y: np.ndarray, seed: int) -> Fitted:
        folds = list(StratifiedKFold(5).split(np.zeros((y.size, 1)), y))
        model = CalibratedClassifierCV(make(seed), method=method, cv=folds, ensemble=False)
        return of(numbers_for(model), X, y)

    return fit


def imputed_pool(X: Frame, y: np.ndarray, seed: int) -> Fitted:
    """Forest, gentle boosting and logistic regression on our imputed columns, pooled."""
    members = [
        lambda: numbers_for(forest(seed)),
        lambda: boosting(**GENTLE)(seed),
        lambda: numbers_for(logistic(seed)),
    ]

    def fit(X: Frame, y: np.ndarray) -> Callable[[Frame], np.ndarray]:
        filler = generative(tied=True, random_state=seed).fit(X, y)
        filled = filler.impute(X)
        models = [make().fit(filled, y) for make in members]

        def log_probabilities(new: Frame) -> np.ndarray:
            complete = filler.impute(new)
            p = [np.maximum(model.predict_proba(complete), SMALLEST) for model in models]
            return bounded_log_probabilities(np.log(np.stack(p, axis=1)))

        return log_probabilities

    folds = stratified_folds(y, 5, seed)
    held, order = [], []
    for fold in np.unique(folds[folds >= 0]):
        test = folds == fold
        held.append(fit(X[~test], y[~test])(X[test]))
        order.append(np.flatnonzero(test))
    rows = np.concatenate(order)
    pool = fit_pool(HeldOut(np.concatenate(held), y[rows], np.ones(rows.size)))
    whole = fit(X, y)

    def predict(new: Frame) -> np.ndarray:
        joint = pooled(whole(new), pool.weights, pool.member_temperatures)
        return np.exp(tempered(joint, pool.temperature))

    return predict


def mixture(**settings: object) -> Contestant:
    """A class-conditional mixture on the columns as they are."""
    return lambda X, y, seed: of(generative(**settings, random_state=seed), X, y)


CONTESTANTS: dict[str, Contestant] = {
    "stack": stack("default"),
    "lite": stack("lite"),
    "seven": stack(["K1", "K2", "K3", "G1", "G2", "B1", "B2"]),
    "wide": stack(
        "default",
        lambda seed: [
            ("forest", numbers_for(forest(seed))),
            ("boosting", boosting(**GENTLE)(seed)),
        ],
    ),
    "mixture": lambda X, y, seed: of(HybridMixtureClassifier(random_state=seed), X, y),
    "network": lambda X, y, seed: of(RBFNetworkClassifier(random_state=seed), X, y),
    "mixture, likelihood": mixture(),
    "mixture, tied, tempered": mixture(tied=True, calibrate=True),
    "mixture, without maps": mixture(
        covariance_type="cv", tied="cv", objective="blend", calibrate=True
    ),
    "LogisticRegression": plain(logistic),
    "SVC": calibrated(lambda seed: SVC(C=3.0), "sigmoid"),
    "HistGradientBoosting": lambda X, y, seed: of(boosting()(seed), X, y),
    "gentle boosting": lambda X, y, seed: of(boosting(**GENTLE)(seed), X, y),
    "RandomForest": plain(forest),
    "tempered forest": calibrated(forest, "temperature"),
    "ExtraTrees": plain(
        lambda seed: ExtraTreesClassifier(500, min_samples_leaf=2, random_state=seed)
    ),
    "pool on our columns": imputed_pool,
}


def chosen(names: Iterable[str], variable: str) -> list[str]:
    """Those whose names begin as the environment variable says; all without it."""
    wanted = tuple(filter(None, os.environ.get(variable, "").split(",")))
    return [name for name in names if not wanted or name.startswith(wanted)]


def contest(
    names: Iterable[str], holes: bool, contestants: dict[str, Contestant] = CONTESTANTS
) -> Iterator[dict[str, object]]:
    """Every contestant on every split of the tables."""
    found = known(("table", "holes", "seed", "model"))
    for name in chosen(names, "BAYESRBF_TABLES"):
        for seed in range(SEEDS):
            data = split(name, seed, holes)
            for model in chosen(contestants, "BAYESRBF_METHODS"):
                key = {"table": name, "holes": holes, "seed": seed, "model": model}
                row = found.get(tuple(key.values()))
                if row is None:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        begun = time.perf_counter()
                        predict = contestants[model](data.X, data.y, seed)
                        seconds = time.perf_counter() - begun
                        row = {**key, "seconds": seconds, **scores(predict(data.X_new), data.y_new)}
                    keep(row)
                yield row


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """Means over tables, seeds first; rank; what a contestant loses to the stack."""
    by_table = results.drop(columns=["seed", "holes"]).groupby(["table", "model"], sort=False)
    means = by_table.mean()
    losses = means["log loss"].unstack(sort=False)
    table = means.groupby("model", sort=False).mean()
    table["rank"] = losses.rank(axis=1).mean()
    table["seconds"] = means["seconds"].groupby("model", sort=False).median()
    if "stack" in losses:
        excess = losses.sub(losses["stack"], axis=0)
        table["excess"], table["se"] = excess.mean(), excess.sem()
        table["stack ahead"] = (excess > 0).sum()
    if "seven" in losses:
        more = losses.sub(losses["seven"], axis=0)
        table["over seven"], table["se of it"] = more.mean(), more.sem()
    if "RandomForest" in losses:
        seconds = means["seconds"].unstack(sort=False)
        table["x forest"] = seconds.div(seconds["RandomForest"], axis=0).median()
    return table


@pytest.mark.parametrize("names", [CHOSEN, FRESH], ids=["chosen", "fresh"])
@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
def test_stack(
    names: tuple[str, ...], holes: bool, data_folder: object, capsys: pytest.CaptureFixture[str]
) -> None:
    results = pd.DataFrame(list(contest(names, holes)))
    if results.empty:
        pytest.skip("BAYESRBF_TABLES names no table of this set")
    losses = results.groupby(["table", "model"], sort=False)["log loss"].mean().unstack(sort=False)
    with capsys.disabled():
        title = "30 % of cells hidden" if holes else "complete"
        print(f"\n\n## {results['table'].nunique()} tables, {title}, {SEEDS} seeds\n")
        print(summary(results).sort_values("log loss").round(4).to_markdown())
        print(f"\n### log loss\n\n{losses.round(3).to_markdown()}\n")
    assert np.isfinite(results.drop(columns=["table", "model"]).to_numpy(dtype=float)).all()
