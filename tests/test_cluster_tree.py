"""The simulation of a cluster's pass: what holds of it whatever the costs."""

from __future__ import annotations

import pytest

from bayesrbf.base import blocks as dask_blocks
from bench import cluster_tree
from bench.cluster_tree import Costs, pass_seconds

DEAR = Costs(row=1e-6, task=1e-3, fold=2e-4, transfer=5e-4, start=0.01)


def test_the_tree_is_that_of_the_blocks() -> None:
    assert cluster_tree.FAN_IN == dask_blocks.FAN_IN


@pytest.mark.parametrize(("workers", "blocks"), [(1, 1), (1, 20), (7, 20), (100, 800)])
def test_without_overhead_the_busiest_worker_is_all(workers: int, blocks: int) -> None:
    seconds = pass_seconds(Costs(1e-6, 0.0, 0.0, 0.0), 1_000_000, workers, blocks)
    assert seconds == pytest.approx(-(-blocks // workers) / blocks)


@pytest.mark.parametrize("blocks", [1, 8, 9, 64, 65, 1000])
def test_a_scheduler_alone_sees_every_task_once(blocks: int) -> None:
    tasks, level = blocks, blocks
    while level > 1:
        level = -(-level // 8)
        tasks += level
    assert pass_seconds(Costs(0.0, 0.01, 0.0, 0.0), 10, 100, blocks) == pytest.approx(tasks / 100)


def test_a_pass_is_no_quicker_than_its_longest_chain() -> None:
    for workers in (1, 3, 50):
        for blocks in (workers, 4 * workers):
            found = pass_seconds(DEAR, 10_000_000, workers, blocks)
            assert found >= DEAR.start + DEAR.row * 10_000_000 / workers
            assert found >= DEAR.start + DEAR.task * blocks
            alone = Costs(DEAR.row, 0.0, 0.0, 0.0)
            assert found >= pass_seconds(alone, 10_000_000, workers, blocks)
