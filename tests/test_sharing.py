"""A fitted estimator predicts the same bits from many threads, processes and pickles."""

from __future__ import annotations

import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from io import BytesIO
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pytest

from tests.mutations import fitted

NAMES = ("mixture", "kernel network", "stack with draws")


def predicted(model: Any, rows: Any) -> np.ndarray:
    return model.predict_proba(rows)


@pytest.mark.parametrize("name", NAMES)
def test_sixteen_threads_predict_the_same_bits(name: str) -> None:
    model, rows = fitted(name)
    alone = model.predict_proba(rows)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: model.predict_proba(rows), range(64)))
    for one in found:
        np.testing.assert_array_equal(one, alone)


def by_joblib(model: Any) -> Any:
    file = BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


@pytest.mark.parametrize(
    "there_and_back",
    [
        lambda model: pickle.loads(pickle.dumps(model)),
        lambda model: cloudpickle.loads(cloudpickle.dumps(model)),
        by_joblib,
    ],
    ids=["pickle", "cloudpickle", "joblib"],
)
@pytest.mark.parametrize("name", NAMES)
def test_pickles_predict_the_same_bits(name: str, there_and_back: Any) -> None:
    model, rows = fitted(name)
    again = there_and_back(model)
    np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_other_processes_predict_the_same_bits(method: str) -> None:
    model, rows = fitted("kernel network")
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        found = list(pool.map(predicted, [model] * 2, [rows] * 2))
    for one in found:
        np.testing.assert_array_equal(one, model.predict_proba(rows))
