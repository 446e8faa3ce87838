"""From which size a cluster of 100 workers pays: costs measured here, the pass simulated.

Two processes of a ``LocalCluster`` give the overhead of a task; the network between machines is
taken as ``LATENCY`` and ``BANDWIDTH``. The simulation is held against passes that were measured.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from dask import delayed
from distributed import Client, LocalCluster

from bayesrbf.base.blocks import BLOCK_ROWS, DaskBlocks, LocalBlocks
from bayesrbf.base.rows import MixtureParameters, MixtureSpecification, Observations
from bayesrbf.mixture.expectation import BlockExpectation
from bayesrbf.mixture.statistics import Statistics
from bench.cluster_tree import FAN_IN, Costs, pass_seconds
from bench.figures import show
from tests.measured import COST

COLUMNS, K = 10, 8
LATENCY, BANDWIDTH = 5e-4, 1.25e8
"""Seconds to begin a transfer between two machines; bytes a second, of one gigabit."""
ROWS = int(os.environ.get("BAYESRBF_ROWS", "400000"))
REPEATS = 5
WORKERS = 100
FAR = 4.0
"""By which factor a measured pass may differ from a simulated one, whatever else runs."""


def parameters() -> MixtureParameters:
    rng = np.random.default_rng(99)
    return MixtureParameters(
        np.ones(1),
        np.full(K, 1 / K),
        rng.normal(scale=1.5, size=(K, COLUMNS)),
        np.tile(np.eye(COLUMNS), (K, 1, 1)),
        (),
    )


def rows(number: int, seed: int) -> Observations:
    """Some rows of all components, 5 % of their cells missing."""
    rng = np.random.default_rng(seed)
    cells = rng.normal(size=(number, COLUMNS)) + parameters().means[rng.integers(0, K, number)]
    cells[rng.random(cells.shape) < 0.05] = np.nan
    codes = np.zeros((number, 0), dtype=np.intp)
    return Observations(cells, codes, np.zeros(number, dtype=np.intp), np.ones(number))


def quickest(call: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Seconds of the quickest of some calls."""
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def on_disk(number: int, blocks: int) -> BlockExpectation:
    """Rows in blocks that this process reads in turn."""
    makers = tuple(partial(rows, number // blocks, seed) for seed in range(blocks))
    return BlockExpectation(LocalBlocks(makers), MixtureSpecification(COLUMNS, (), (0,) * K))


def on_cluster(number: int, blocks: int) -> BlockExpectation:
    """Rows in blocks that the workers hold."""
    parts = tuple(delayed(rows)(number // blocks, seed) for seed in range(blocks))
    return BlockExpectation(DaskBlocks(parts), MixtureSpecification(COLUMNS, (), (0,) * K))


def test_cluster_size() -> None:
    at = parameters()
    few, many = (on_disk(number, 4) for number in (ROWS // 4, ROWS))
    seconds = [quickest(partial(one.statistics, at)) for one in (few, many)]
    alone = (seconds[1] - seconds[0]) / (ROWS - ROWS // 4)
    sums = many.statistics(at)
    fold, size = quickest(partial(Statistics.joined, sums, sums), 100), len(pickle.dumps(sums))

    options = {"threads_per_worker": 1, "dashboard_address": None, "n_workers": 2}
    with LocalCluster(processes=True, **options) as two, Client(two):
        empty = {blocks: on_cluster(blocks, blocks) for blocks in (16, 256)}
        spent = {blocks: quickest(partial(one.statistics, at)) for blocks, one in empty.items()}
        tasks = {
            blocks: blocks + -(-blocks // FAN_IN) + -(-blocks // FAN_IN**2) for blocks in spent
        }
        task = (spent[256] - spent[16]) / (tasks[256] - tasks[16])
        start = max(0.0, spent[16] - task * tasks[16])
        local = Costs(alone, task, fold, 0.0, start)
        held: list[dict[str, object]] = []
        for blocks in (8, 64):
            measured = quickest(partial(on_cluster(ROWS, blocks).statistics, at))
            foreseen = pass_seconds(local, ROWS, 2, blocks)
            held.append({"blocks": blocks, "measured, s": measured, "simulated, s": foreseen})
    show("cluster/measured", held, 2, about=COST)
    show(
        "cluster/costs",
        [
            {"what": "microseconds a row and pass, one process from disk", "": 1e6 * alone},
            {"what": "bytes of the sums of a block", "": float(size)},
            {"what": "microseconds to add them", "": 1e6 * fold},
            {"what": "milliseconds a task", "": 1e3 * task},
            {"what": "milliseconds until a pass begins", "": 1e3 * start},
        ],
        2,
        about=COST,
    )

    costs = Costs(alone, task, fold, LATENCY + size / BANDWIDTH, start)
    passes: list[dict[str, object]] = []
    for number in (10**5, 10**6, 10**7, 10**8, 10**9):
        usual = max(WORKERS, -(-number // BLOCK_ROWS))
        passes.append(
            {
                "rows": number,
                "one process": alone * number,
                "10 workers, a block each": pass_seconds(costs, number, 10, 10),
                f"{WORKERS} workers, a block each": pass_seconds(costs, number, WORKERS, WORKERS),
                f"{WORKERS} workers, blocks of {BLOCK_ROWS:,} rows": pass_seconds(
                    costs, number, WORKERS, usual
                ),
            }
        )
    show("cluster/passes", passes, 2, about=COST)
    assert all(1 / FAR < line["measured, s"] / line["simulated, s"] < FAR for line in held)
    one, ten, hundred = ([float(line[name]) for line in passes] for name in list(passes[0])[1:4])
    assert all(later >= sooner for some in (one, ten, hundred) for sooner, later in pairwise(some))
    assert hundred[-1] < ten[-1] < one[-1]
    assert one[0] < hundred[0]
    grid = np.geomspace(1e4, 1e9, 201).astype(int)
    for n in (10, WORKERS):
        ahead = [pass_seconds(costs, int(one), n, n) < alone * one for one in grid]
        print(f"{n} workers are quicker than one process from {grid[np.argmax(ahead)]:,} rows on")
