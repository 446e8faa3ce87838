"""A fitted estimator predicts the same bits from many threads, processes and pickles."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack
from io import BytesIO
from threading import Event, Thread
from typing import Any

import cloudpickle
import joblib
import numpy as np
import pytest

from tests.cases import first_quick
from tests.fit.interrupting import interruptions
from tests.looping import grown
from tests.mutations import fitted
from tests.programs import program

NAMES = ("mixture", "kernel network", "stack with draws")


def predicted(model: Any, rows: Any) -> np.ndarray:
    return model.predict_proba(rows)


@pytest.mark.parametrize("name", first_quick(NAMES))
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


@pytest.mark.slow
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="of POSIX")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_forked_copies_predict_the_same_bits() -> None:
    """After the parent has predicted, with its threads and kernels; in time, that is, unlocked."""
    model, rows = fitted("stack with draws")
    alone = model.predict_proba(rows)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.starmap_async(predicted, [(model, rows)] * 4).get(timeout=120)
    for one in found:
        np.testing.assert_array_equal(one, alone)


@pytest.mark.slow
def test_dask_predicts_the_same_bits() -> None:
    dask = pytest.importorskip("dask")
    model, rows = fitted("kernel network")
    later = [dask.delayed(predicted)(model, rows) for _ in range(4)]
    for one in dask.compute(*later, scheduler="processes", num_workers=2):
        np.testing.assert_array_equal(one, model.predict_proba(rows))


@pytest.mark.slow
def test_fits_in_a_loop_leave_nothing_behind() -> None:
    """Thirty of them; ``python -m tests.looping`` makes a thousand."""
    said = program("tests.looping", 30)
    assert said["threads"] == said["files"] == 0, said
    assert said["grown"] < 20, said


@pytest.mark.slow
def test_more_blocks_of_rows_are_predicted_in_nearly_the_same_memory() -> None:
    said = program("tests.large", 80_000, 25_000, "no draws")
    for suffix in (".csv", ".parquet"):
        few, many = (one for one in said if one["file"] == suffix)
        assert many["answered"] == 80_000
        assert many["memory"] < 1.3 * few["memory"], [one["memory"] for one in said]


def test_planted_leak_is_seen_and_a_step_is_none() -> None:
    kept: list[bytearray] = []
    ended = Event()
    with ExitStack() as stack:
        gc.freeze()  # what other tests left need not be looked through at every count
        stack.callback(gc.unfreeze)
        opened = lambda _: stack.enter_context(open(os.devnull))  # noqa: E731
        # beyond 32 MiB the allocator asks for new memory: freed parts of the heap hide nothing
        assert grown(lambda _: kept.append(bytearray(b"x") * 2**25), 10)["grown"] > 100
        assert grown(opened, 20)["files"] == 16
        once = grown(lambda i: opened(i) if i == 15 else None, 20)
        assert once["files"] == once["threads"] == 0
        stack.callback(ended.set)
        assert grown(lambda _: Thread(target=ended.wait).start(), 20)["threads"] == 16


def test_interrupted_prediction_leaves_the_estimator_as_it_was() -> None:
    model, rows = fitted("mixture with draws")
    before, said = dict(vars(model)), model.predict_proba(rows)
    places = 0
    for one in interruptions(model, lambda copied: copied.predict_proba(rows), points=25):
        places += 1
        assert {name: id(value) for name, value in vars(one).items()} == {
            name: id(value) for name, value in vars(model).items()
        }
    assert places >= 20  # some of the last calls are among those spread over all
    assert {name: id(value) for name, value in before.items()} == {
        name: id(value) for name, value in vars(model).items()
    }
    np.testing.assert_array_equal(model.predict_proba(rows), said)
