"""The way of rows through trees: down one side of a split, or down both where the cell is missing.

A node whose feature is negative is a leaf. The left child of a split is the next node, the right
child has a number of its own. Children stand behind their parents, so every way ends.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from bayesrbf.base.compiled import entry_point

MAX_SPLIT_WAYS: Final = 64
"""Ways of a row through a tree: one with less than this share of it is not parted from another."""


@entry_point
def add_leaves(
    cells: np.ndarray,
    feature: np.ndarray,
    threshold: np.ndarray,
    onward: np.ndarray,
    left_share: np.ndarray,
    leaves: np.ndarray,
    roots: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Add to totals (obs, label) the leaves that cells (obs, column) reach, by their weights."""
    waiting, weights = np.empty(MAX_SPLIT_WAYS, np.int64), np.empty(MAX_SPLIT_WAYS)
    for row in range(cells.shape[0]):
        for root in roots:
            waiting[0], weights[0], count = root, 1.0, 1
            while count:
                count -= 1
                node, weight = waiting[count], weights[count]
                while feature[node] >= 0:
                    cell, left = cells[row, feature[node]], node + 1
                    if cell <= threshold[node]:
                        node = left
                    elif cell == cell:
                        node = onward[node]
                    else:
                        share = left_share[node]
                        if weight * min(share, 1.0 - share) * MAX_SPLIT_WAYS < 1.0:
                            node = left if share >= 0.5 else onward[node]
                            continue
                        waiting[count] = onward[node]
                        weights[count] = weight * (1.0 - share)
                        count += 1
                        node, weight = left, weight * share
                for label in range(totals.shape[1]):
                    totals[row, label] += weight * leaves[onward[node], label]
