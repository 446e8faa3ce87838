"""Fits on a Dask cluster: the same numbers, sums alone on the way, and no hang without workers."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from distributed import Client, LocalCluster

from bayesrbf import HybridMixtureClassifier
from bayesrbf.base import blocks as dask_blocks
from bayesrbf.base.blocks import ClusterError, DaskBlocks, as_collection
from bayesrbf.fit import training
from bayesrbf.mixture.statistics import Statistics
from tests.cases import some_quick
from tests.fit.registries import ROWS, chunkings, in_partitions, registry
from tests.fit.test_out_of_core import SETTINGS, assert_same

X, Y = registry()


def fitted(ends: list[int], rows: int = ROWS) -> HybridMixtureClassifier:
    table, labels = (X, Y) if rows == ROWS else registry(rows)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(training, "SAMPLE_ROWS", 120)
        return HybridMixtureClassifier(2, **SETTINGS).fit(
            in_partitions(table, ends), in_partitions(labels, ends)
        )


@pytest.fixture(scope="module")
def alone() -> HybridMixtureClassifier:
    return fitted([])


def cluster(**options: Any) -> LocalCluster:
    return LocalCluster(threads_per_worker=1, dashboard_address=":0", **options)


@pytest.fixture
def threads() -> Iterator[Client]:
    with cluster(n_workers=2, processes=False) as two, Client(two) as client:
        yield client


@pytest.mark.parametrize("ends", some_quick([[130], [0, 1, 90, 90, 200]], [0, 1, 90, 90, 200]))
def test_a_cluster_gives_the_numbers_of_one_process(
    ends: list[int], alone: HybridMixtureClassifier, threads: Client
) -> None:
    table = in_partitions(X, ends)
    found = as_collection(table)
    assert found is not None
    assert isinstance(found.blocks, DaskBlocks)
    model = fitted(ends)
    assert_same(model.model_, alone.model_)
    assert model.n_iter_ == alone.n_iter_
    probabilities = model.predict_proba(table)
    assert probabilities.npartitions == len(ends) + 1
    np.testing.assert_allclose(probabilities.compute(), alone.predict_proba(X), rtol=1e-8)


def bytes_of_steps(rows: int) -> list[int]:
    """Bytes that come back of every E-step of a fit."""
    seen: list[int] = []
    reduce = DaskBlocks.reduce

    def counted(self: Any, combine: Any) -> Any:
        total = reduce(self, combine)
        if combine is Statistics.joined:
            seen.append(len(pickle.dumps(total)))
        return total

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(DaskBlocks, "reduce", counted)
        fitted([rows // 2], rows)
    return seen


def test_what_travels_does_not_depend_on_the_rows(threads: Client) -> None:
    few, many = bytes_of_steps(ROWS), bytes_of_steps(8 * ROWS)
    print(f"bytes an iteration: {max(few)} of {ROWS} rows, {max(many)} of {8 * ROWS} rows")
    assert max(many) < 1.2 * max(few)  # histograms of counts grow with the largest count


def test_a_cluster_without_workers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_blocks, "PATIENCE", 0.5)
    monkeypatch.setattr(dask_blocks, "BREATH", 0.2)
    with cluster(n_workers=0, processes=False) as none, Client(none):
        began = time.monotonic()
        with pytest.raises(ClusterError, match="has had no worker for"):
            fitted([100])
        assert time.monotonic() - began < 60


@pytest.fixture(scope="module")
def processes() -> Iterator[Client]:
    with cluster(n_workers=2, processes=True) as two, Client(two) as client:
        yield client


@pytest.fixture
def mortal() -> Iterator[Client]:
    """Two processes of one test: Dask does not always start one again that was killed."""
    with cluster(n_workers=2, processes=True) as two, Client(two) as client:
        yield client
    gc.collect()  # Its sockets are closed here, and not in the next test.


@pytest.mark.slow
@pytest.mark.parametrize("ends", chunkings(), ids=str)
def test_processes_give_the_numbers_of_one(
    ends: list[int], alone: HybridMixtureClassifier, processes: Client
) -> None:
    assert_same(fitted(ends).model_, alone.model_)


def killed_at(point: int, client: Client, patched: pytest.MonkeyPatch) -> list[int]:
    """Kill a worker before so many results were asked for; the list will name its process."""
    left, killed = iter(range(point + 1)), list[int]()
    computed = dask_blocks.computed

    def struck(root: Any) -> Any:
        if next(left, None) == point:
            killed.append(min(client.run(os.getpid).values()))
            os.kill(killed[0], signal.SIGKILL)
        return computed(root)

    patched.setattr(dask_blocks, "computed", struck)
    return killed


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # Dask leaves sockets of the dead.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("point", [0, 1, 3, 6, 9])
def test_a_killed_worker_ends_in_the_right_answer_or_a_named_error_within_a_minute(
    point: int, alone: HybridMixtureClassifier, mortal: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = killed_at(point, mortal, monkeypatch)
    began, named = time.monotonic(), ""
    try:
        model = fitted([60, 130, 200])
    except ClusterError as error:
        named = str(error)
    assert time.monotonic() - began < 60
    assert killed
    if named:
        assert "worker" in named
    else:
        assert_same(model.model_, alone.model_)
