"""What a fit takes beside a forest of 500 trees, side by side; and what intervals of a stack take.

CPU seconds of one thread: they hold where other work goes on. Contestants take turns on every
table; compiled code is loaded before. The ratio is the median over the tables.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import pandas as pd
from threadpoolctl import threadpool_limits

from bayesrbf import HybridMixtureClassifier, StackedClassifier
from bench.figures import show
from bench.stack_tables import split
from bench.test_stack import CONTESTANTS
from tests.measured import COST

TABLES = ("hepatitis", "heart_cleveland", "glass", "wine", "raetsch_thyroid", "vehicle")
NAMES = {
    "stack": "`StackedClassifier()`",
    "lite": '`StackedClassifier("lite")`',
    "mixture": "`HybridMixtureClassifier()`",
    "tempered forest": "random forest, temperature out of fold",
    "RandomForest": "random forest",
    "gentle boosting": "gradient boosting, gentle",
    "HistGradientBoosting": "gradient boosting, default",
    "LogisticRegression": "logistic regression, C by cross-validation",
    "SVC": "support vector machine, Platt",
}
ROWS = 200
MOST = {"stack": 5.0, "lite": 3.5, "mixture": 1.5}
"""Forests of 500 trees that a fit may take."""
MOST_FITS = 20.0
"""Fits of a stack that its draws may take."""
SLACK = 1.5
"""Other work on the machine moves a ratio by so much."""


def seconds(call: Callable[[], object]) -> float:
    """CPU seconds of a call on one thread: threads that wait for another count, too."""
    start = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        call()
    return time.process_time() - start


def test_times(data_folder: object) -> None:
    told = pd.DataFrame(index=pd.Index(NAMES.values(), name=""))
    for holes, column in ((False, "complete"), (True, "30 % of the cells hidden")):
        ratios = []
        for name in TABLES:
            data = split(name, 0, holes)
            if not ratios:
                seconds(lambda: StackedClassifier(random_state=0).fit(data.X[:60], data.y[:60]))  # noqa: B023
            taken = {
                model: seconds(lambda model=model: CONTESTANTS[model](data.X, data.y, 0))  # type: ignore[misc]  # noqa: B023
                for model in NAMES
            }
            print(name, holes, {model: round(one, 2) for model, one in taken.items()}, flush=True)
            ratios.append({NAMES[m]: one / taken["RandomForest"] for m, one in taken.items()})
        told[column] = pd.DataFrame(ratios).median()
    show("times/fits", told, 1, about=COST)
    for kind, most in MOST.items():
        assert (told.loc[NAMES[kind]] <= SLACK * most).all(), kind


def test_time_of_intervals(data_folder: object) -> None:
    """A stack of 200 rows of heart_cleveland: a fit, its intervals, an answer with its interval.

    Last, a fit of the default mixture to the same rows.
    """
    data = split("heart_cleveland", 0, False)
    X, y, row = data.X[:ROWS], data.y[:ROWS], data.X_new[:1]
    model = StackedClassifier(random_state=0)
    seconds(lambda: StackedClassifier(random_state=0).fit(X[:60], y[:60]))
    steps = {
        "`fit`": lambda: model.fit(X, y),
        '`refine("bootstrap")`': lambda: model.refine("bootstrap"),
        "`predict_proba` of a row": lambda: model.predict_proba(row),
        "`uncertainty` of a row, the first time": lambda: model.uncertainty(row),
        "`uncertainty` of a row, later": lambda: model.uncertainty(row),
        "`fit` of a mixture": lambda: HybridMixtureClassifier(random_state=0).fit(X, y),
    }
    rows = [{"": step, "CPU seconds": seconds(call)} for step, call in steps.items()]
    show("times/intervals", rows, 2, about=COST)
    fit, refine, _, first, later, mixture = (row["CPU seconds"] for row in rows)
    assert refine <= MOST_FITS * fit
    assert later <= SLACK * first
    assert mixture < fit
