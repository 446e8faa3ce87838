"""A pass over the rows of a cluster, event by event: blocks mapped, and reduced in a tree."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count

FAN_IN = 8
"""Blocks that one task of the tree combines, as in ``bayesrbf.base.blocks``."""


@dataclass(frozen=True)
class Costs:
    """What a pass costs, in seconds."""

    row: float
    """Compute of a row on one worker."""
    task: float
    """The scheduler's own work on a task: half to send it, half to take note of its end."""
    fold: float
    """Compute of adding one block's sums to another's."""
    transfer: float
    """One block's sums from a worker to another."""
    start: float = 0.0
    """What a pass costs before its first task."""


def pass_seconds(costs: Costs, rows: int, workers: int, blocks: int) -> float:
    """Seconds of one pass over rows in equal blocks, held in turn by the workers.

    The scheduler does one thing at a time. A task of the tree is sent when all that it combines is
    there, to the worker of the first of these, which fetches the others one after another.

    >>> pass_seconds(Costs(1.0, 0.0, 0.0, 0.0), 6, 3, 3)
    2.0
    """
    children, waiting, tasks = _tree(blocks)
    half, order = costs.task / 2, count()
    scheduler, free = costs.start, [costs.start] * workers
    events: list[tuple[float, int, str, int]] = []
    for task in range(blocks):
        heapq.heappush(events, (costs.start, next(order), "ready", task))
    end = costs.start
    while events:
        now, _, kind, task = heapq.heappop(events)
        scheduler = max(scheduler, now) + half
        if kind == "ready":
            leaf = task
            while children[leaf]:
                leaf = children[leaf][0]
            worker, others = leaf % workers, max(0, len(children[task]) - 1)
            work = others * (costs.transfer + costs.fold) if others else 0.0
            work += costs.row * rows / blocks if task < blocks else 0.0
            free[worker] = max(free[worker], scheduler) + work
            heapq.heappush(events, (free[worker], next(order), "done", task))
            continue
        end = scheduler
        parent = tasks[task]
        if parent is not None:
            waiting[parent] -= 1
            if not waiting[parent]:
                heapq.heappush(events, (scheduler, next(order), "ready", parent))
    return end


def _tree(blocks: int) -> tuple[list[list[int]], list[int], list[int | None]]:
    """Children of every task, how many are not there yet, and its parent; blocks come first."""
    children: list[list[int]] = [[] for _ in range(blocks)]
    parents: list[int | None] = [None] * blocks
    level = list(range(blocks))
    while len(level) > 1:
        above = []
        for first in range(0, len(level), FAN_IN):
            group = level[first : first + FAN_IN]
            for one in group:
                parents[one] = len(children)
            above.append(len(children))
            children.append(group)
            parents.append(None)
        level = above
    return children, [len(one) for one in children], parents
