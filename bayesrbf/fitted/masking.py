"""Copies of held-out rows with more and more of their cells hidden."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Bool

from bayesrbf import table
from bayesrbf.records.mixture import Observations

STRATA: Final = 3
"""Copies whose share of hidden cells is drawn from a third of the way from none to all; one more
copy keeps a single cell. Nine copies gained nothing over these on 27 tables."""


def masked_copies(
    rows: Observations, training: Observations, rng: np.random.Generator
) -> list[Observations]:
    """The rows, and copies of them with cells hidden at random; none where there is no column.

    Cells are drawn in the canonical order of the training rows' columns: the order in which a
    user's table has them changes nothing.
    """
    order = table.canonical_order(training)
    n_real = rows.real.shape[1]
    columns = np.argsort(np.concatenate([order.features, n_real + order.categories]))
    observed = np.concatenate([~np.isnan(rows.real), rows.codes >= 0], axis=1)
    hidden = hiding_masks(observed[:, np.argsort(columns)], rng)[..., columns]
    return [rows, *(_without(rows, mask[:, :n_real], mask[:, n_real:]) for mask in hidden)]


def hiding_masks(
    observed: Bool[np.ndarray, "obs column"], rng: np.random.Generator
) -> Bool[np.ndarray, "copy obs column"]:
    """Which cells every copy hides; the last copy keeps one observed cell of every row."""
    n_obs, n_columns = observed.shape
    if not n_columns:
        return np.zeros((0, n_obs, 0), bool)
    shares = (np.arange(STRATA)[:, None] + rng.random((STRATA, n_obs))) / STRATA
    some = rng.random((STRATA, n_obs, n_columns)) < shares[..., None]
    alone = np.where(observed, rng.random(observed.shape), -1.0).argmax(axis=1)
    all_but_one = np.arange(n_columns) != alone[:, None]
    return np.concatenate([some, all_but_one[None]])


def _without(
    rows: Observations, real: Bool[np.ndarray, "obs feature"], codes: Bool[np.ndarray, "obs _"]
) -> Observations:
    """Rows with cells hidden."""
    return replace(
        rows, real=np.where(real, np.nan, rows.real), codes=np.where(codes, -1, rows.codes)
    )
