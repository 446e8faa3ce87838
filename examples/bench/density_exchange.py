"""What the peers of the density's benchmark share: arrays in, arrays out."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray
Task = dict[str, Array]
"""The fields of a task under joined names, such as ``train_real``."""
Answer = dict[str, Any]

SEED = 0


def holes(task: Task) -> tuple[Array, Array]:
    """Rows and columns of the hidden cells whose truth is known."""
    real = np.isnan(task["test_real"]) & ~np.isnan(task["truth_real"])
    return np.argwhere(real), np.argwhere((task["test_codes"] < 0) & (task["truth_codes"] >= 0))


def numbers(real: Array, codes: Array, levels: Array) -> Array:
    """Reals and one column of 0 and 1 for every level but the first; missing stays missing."""
    columns = [real]
    for column, n_levels in zip(codes.T, levels, strict=True):
        found = (column[:, None] == np.arange(1, n_levels)).astype(float)
        columns.append(np.where(column[:, None] < 0, np.nan, found))
    return np.column_stack(columns)


def deviations(real: Array, codes: Array) -> Answer:
    """Column by column: distance from the mean in standard deviations, and rarity of a level."""
    from scipy.special import log_ndtr

    z = np.abs(real - np.nanmean(real, axis=0)) / np.nanstd(real, axis=0)
    return {"real": -log_ndtr(-z) - np.log(2), "codes": rarity(codes)}


def rarity(codes: Array) -> Array:
    """Minus log frequency of every cell's level."""
    found = np.full(codes.shape, np.nan)
    for j, column in enumerate(codes.T):
        known = column >= 0
        found[known, j] = -np.log(np.bincount(column[known]) / known.sum())[column[known]]
    return found
