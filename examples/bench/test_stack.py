"""The stack beside what users would pick, on 18 tables and 11 it was not made on.

Halves of at most 700 rows, complete and with 30 % of the cells hidden at fit and predict.
All users' models stand behind medians with indicators and one-hot columns, but for boosting,
which takes a table as it is, and for the pool, which is given our imputed columns.

``BAYESRBF_TABLES`` and ``BAYESRBF_METHODS`` choose (beginnings of names, with commas),
``BAYESRBF_SEEDS`` sets the number of splits (3). Each result is kept as it comes
(``tests.measured.part``), and a run goes on where one stopped.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial

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
from bayesrbf.families.stack.posterior import (
    bounded_log_probabilities,
    fit_pools,
    log_pool,
    tempered_members,
)
from bayesrbf.fit.calibration import tempered
from bayesrbf.fit.held_out import HeldOut, stratified_folds
from bench.figures import Counts, Row, show
from bench.stack_tables import CHOSEN, FRESH, Split, split
from bench.test_real_tables import numbers_for, scores
from tests.cases import generative
from tests.measured import part

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
    (pool,) = fit_pools(HeldOut(np.concatenate(held), y[rows], np.ones(rows.size)))
    whole = fit(X, y)

    def predict(new: Frame) -> np.ndarray:
        members = tempered_members(whole(new), pool.member_temperatures)
        return np.exp(tempered(log_pool(pool.weights, members), pool.temperature))

    return predict


def mixture(**settings: object) -> Contestant:
    """A class-conditional mixture on the columns as they are."""
    return lambda X, y, seed: of(generative(**settings, random_state=seed), X, y)


CONTESTANTS: dict[str, Contestant] = {
    "stack": stack("default"),
    "lite": stack("lite"),
    "wide": stack(
        "default",
        lambda seed: [
            ("filled forest", numbers_for(forest(seed))),
            ("other boosting", boosting(**GENTLE)(seed)),
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
    names: Iterable[str],
    holes: bool,
    contestants: dict[str, Contestant] = CONTESTANTS,
    parts: str = "stack",
) -> Iterator[Row]:
    """Every contestant on every split of the tables; ``parts`` is where results are kept."""
    for name in chosen(names, "BAYESRBF_TABLES"):
        for seed in range(SEEDS):
            data = cache(partial(split, name, seed, holes))
            for model in chosen(contestants, "BAYESRBF_METHODS"):
                key = {"table": name, "holes": holes, "seed": seed, "model": model}
                yield part(parts, key, partial(judged, contestants[model], data, seed))


def judged(contestant: Contestant, data: Callable[[], Split], seed: int) -> Row:
    """Seconds of a fit, and scores on the new rows."""
    rows = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begun = time.perf_counter()
        predict = contestant(rows.X, rows.y, seed)
        seconds = time.perf_counter() - begun
        return {"seconds": seconds, **scores(predict(rows.X_new), rows.y_new)}


def counts(results: pd.DataFrame, tables: int, contestants: dict[str, Contestant]) -> Counts:
    """What was run of what is asked."""
    return {
        "tables": (results["table"].nunique(), tables),
        "splits": (SEEDS, 3),
        "classifiers": (results["model"].nunique(), len(contestants)),
    }


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """Means over tables, seeds first; rank; what a contestant loses to the stack."""
    measures = ["log loss", "error %", "Brier", "ECE"]
    means = results.groupby(["table", "model"], sort=False)[[*measures, "seconds"]].mean()
    losses, seconds = (means[what].unstack(sort=False) for what in ("log loss", "seconds"))
    table = means[measures].groupby("model", sort=False).mean()
    table["rank"] = losses.rank(axis=1).mean()
    if "stack" in losses:
        behind = losses.sub(losses["stack"], axis=0)
        table["behind"], table["se"] = behind.mean(), behind.sem()
        table["tables behind"] = (behind > 0).sum()
    if "RandomForest" in losses:
        table["time, forests"] = seconds.div(seconds["RandomForest"], axis=0).median()
    return table.sort_values("log loss")


OURS, FEW = ("lite", "wide"), 10
"""Other stacks; tables of which a mean may be by chance."""
ALL = (*CHOSEN, *FRESH)
SETS = {"18_tables": CHOSEN, "11_tables": FRESH}


def whole_sets() -> dict[str, tuple[str, ...]]:
    """Sets of which every table is chosen; where there is none, what is chosen."""
    sets = {"18 tables": CHOSEN, "11 tables": FRESH, "29 tables": ALL}
    whole = {title: names for title, names in sets.items() if len(some(names)) == len(names)}
    return whole or {f"{len(some(ALL))} tables": some(ALL)}


def some(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those that the environment chooses."""
    return tuple(chosen(names, "BAYESRBF_TABLES"))


def test_log_loss(data_folder: object) -> None:
    """One table of everything, of the parts that the tests below keep, too."""
    told, ahead, rows = {}, {}, pd.DataFrame()
    for title, names in whole_sets().items():
        for holes in (False, True):
            rows = pd.DataFrame(contest(names, holes))
            by_table = rows.groupby(["table", "model"], sort=False)["log loss"].mean()
            losses = by_table.unstack(sort=False)
            column = f"{title}, holes" if holes else title
            told[column] = losses.mean()
            if {"stack"} < set(losses) and len(losses) > FEW:
                peers = losses.drop(columns=["stack", *OURS], errors="ignore")
                lead = peers.sub(losses["stack"], axis=0)
                ahead[column] = lead.mean() + lead.sem()
    frame = pd.DataFrame(told)
    run = counts(rows, len(ALL), CONTESTANTS)
    show("stack/log_loss", frame, counts=run, commits=rows["commit"])
    assert (pd.DataFrame(ahead) >= 0).all(axis=None)


@pytest.mark.parametrize("names", SETS)
@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
def test_stack(names: str, holes: bool, data_folder: object) -> None:
    results = pd.DataFrame(contest(SETS[names], holes))
    if results.empty:
        pytest.skip("BAYESRBF_TABLES names no table of this set")
    told = summary(results)
    show(
        f"stack/{names}_{'with_holes' if holes else 'complete'}",
        told,
        {"error %": 1, "rank": 1, "time, forests": 2},
        counts(results, len(SETS[names]), CONTESTANTS),
        commits=results["commit"],
    )
    losses = results.pivot_table(index="table", columns="model", values="log loss", sort=False)
    print(losses.round(3).to_string())
    if {"stack", "RandomForest"} <= set(losses) and len(losses) == len(SETS[names]):
        behind = told.loc["RandomForest"]
        assert behind["behind"] > 2 * behind["se"]
