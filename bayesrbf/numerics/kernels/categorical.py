r"""Categorical columns: one table look-up for several columns at once.

.. math:: \log p(x_o | k) = \sum_{j \in O} \log \theta_{k j x_j}

Neighbouring columns of few levels are packed into one column of combined codes, and a missing cell
is a further level whose log probability is 0. A combined code is the number of a line of one table
(code, component): the look-up adds a line of contiguous numbers, and counting adds the
responsibilities back to the same line. ``members`` (code, column of the pack) says which levels a
line combines, as numbers of the single levels of all columns; the missing level has the number
behind the last.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

import numpy as np

from bayesrbf.numerics.kernels.compilation import SOURCES, entry_point, inlined

PACK_LEVELS: Final = 64  # Most combined codes of a pack: its table must stay in the first cache.


class Packing(NamedTuple):
    """Rows in combined codes, and what the codes stand for."""

    codes: np.ndarray  # (row, pack): line of the table of combined codes
    members: np.ndarray  # (code, column of the pack): numbers of levels


def pack(codes: np.ndarray, levels: tuple[int, ...]) -> Packing:
    """Combine neighbouring columns of level codes, -1 where missing, while their codes stay few."""
    layout = _layout(levels)
    single = np.where(codes < 0, np.asarray(levels, np.intp), codes)
    packed = [single[:, columns] @ strides + first for columns, strides, first in layout.packs]
    stacked = np.column_stack([np.empty((len(codes), 0), np.int32), *packed])
    return Packing(np.ascontiguousarray(stacked, np.int32), layout.members)


class _Layout(NamedTuple):
    """Packs of neighbouring columns: columns, strides of their codes and line of the first."""

    packs: list[tuple[slice, np.ndarray, int]]
    members: np.ndarray


@cache
def _layout(levels: tuple[int, ...]) -> _Layout:
    """The packs of columns of so many levels."""
    groups: list[list[int]] = []
    # Too large on purpose: the first column opens a pack.
    size = PACK_LEVELS + 1
    for column, n_levels in enumerate(levels):
        size *= n_levels + 1
        if size > PACK_LEVELS:
            groups.append([])
            size = n_levels + 1
        groups[-1].append(column)
    starts = np.cumsum([0, *levels])
    width = max((len(columns) for columns in groups), default=1)
    packs, n_lines = [], 0
    members: list[np.ndarray] = [np.empty((0, width), np.int64)]
    for columns in groups:
        choices = [[*range(starts[column], starts[column + 1]), starts[-1]] for column in columns]
        lines = np.array(list(itertools.product(*choices)))
        filler = np.full((len(lines), width - len(columns)), starts[-1])
        members.append(np.hstack([lines, filler]))
        sizes = [len(one) for one in choices[1:]]
        strides = np.cumprod([1, *sizes[::-1]])[::-1]  # the last column runs fastest
        packs.append((slice(columns[0], columns[-1] + 1), strides, n_lines))
        n_lines += len(lines)
    return _Layout(packs, np.concatenate(members))


def log_tables(
    classes: np.ndarray,
    weights: np.ndarray,
    probabilities: tuple[np.ndarray, ...],
    members: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Log joint weights of class and component, and of combined codes (code, component)."""
    constants, table = np.empty(weights.size), np.empty((len(members), weights.size))
    factors = np.concatenate([classes[:, None], weights[:, None], *probabilities], axis=1)
    write_logs(factors, members, constants, table)
    return constants, table


@inlined
def add_log_probability(
    codes: np.ndarray,
    table: np.ndarray,
    components: tuple[int, int],
    log_joint: np.ndarray,
    by_row: np.ndarray,
) -> None:
    """Add the log probability of a tile's codes to ``log_joint``."""
    low, high = components
    for r in range(codes.shape[1]):
        for k in range(low, high):
            # A line of the table has the components side by side, so sums are gathered row by row.
            by_row[r, k] = 0.0
        for pack in range(codes.shape[0]):
            code = codes[pack, r]
            for k in range(low, high):
                by_row[r, k] += table[code, k]
    for k in range(low, high):
        for r in range(codes.shape[1]):
            log_joint[k, r] += by_row[r, k]


@inlined
def add_counts(
    codes: np.ndarray,
    components: tuple[int, int],
    responsibilities: np.ndarray,
    counts: np.ndarray,
    by_row: np.ndarray,
) -> None:
    """Add a tile's weighted responsibilities to the lines of their combined codes."""
    low, high = components
    for k in range(low, high):
        for r in range(codes.shape[1]):
            by_row[r, k] = responsibilities[k, r]
    for r in range(codes.shape[1]):
        for pack in range(codes.shape[0]):
            code = codes[pack, r]
            for k in range(low, high):
                counts[code, k] += by_row[r, k]


def _compiled(sources: str) -> tuple[Callable[..., None], Callable[..., None]]:
    """Compile both entry points under a key that covers all kernel files."""

    @entry_point
    def write_logs(
        factors: np.ndarray, members: np.ndarray, constants: np.ndarray, table: np.ndarray
    ) -> None:
        _ = sources
        logs = np.log(factors)
        for k in range(logs.shape[0]):
            constants[k] = logs[k, 0] + logs[k, 1]
        for code in range(members.shape[0]):
            for k in range(logs.shape[0]):
                table[code, k] = 0.0
            for column in range(members.shape[1]):
                place = members[code, column] + 2
                if place < logs.shape[1]:
                    for k in range(logs.shape[0]):
                        table[code, k] += logs[k, place]

    @entry_point
    def unpack_counts(counts: np.ndarray, members: np.ndarray, by_level: np.ndarray) -> None:
        _ = sources
        for code in range(members.shape[0]):
            for column in range(members.shape[1]):
                line = members[code, column]
                if line < by_level.shape[1]:
                    for k in range(counts.shape[1]):
                        by_level[k, line] += counts[code, k]

    return write_logs, unpack_counts


write_logs, unpack_counts = _compiled(SOURCES)
"""Write log joint weights, and log probabilities (code, component) of combined codes, from the
probabilities of class, component and all levels, side by side for every component; add counts
(code, component) of combined codes to counts (component, level)."""
