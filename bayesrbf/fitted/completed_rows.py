"""Rows of a table as the points, classes and weights of a discriminative likelihood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.numerics.sdgm.sdgm_features import complete
from bayesrbf.records.mixture import Observations
from bayesrbf.records.sdgm import CompletedRows

TRAINING_DRAWS = 32
"""Completions of a row with holes in the likelihood."""

LabelSets = Bool[np.ndarray, "set label"]
"""Classes of every kind of label: a code per class, then the sets of several classes."""


def completions(
    companion: FittedMixture, rows: Observations, draws: int, replicate: int = 0
) -> tuple[Float[np.ndarray, "point coordinate"], Int[np.ndarray, " row"]]:
    """Points of rows, and the first of each row; the companion completes those with holes."""
    # The companion has one class for all: codes of labels mean nothing to it.
    unlabelled = replace(rows, labels=np.full_like(rows.labels, -1))
    return complete(
        unlabelled,
        companion.parameters,
        companion.specification,
        companion.units,
        draws=draws,
        replicate=replicate,
        order=companion.order,
    )


def labelled(companion: FittedMixture, rows: Observations, sets: LabelSets) -> CompletedRows:
    """Training rows as the likelihood takes them."""
    points, starts = completions(companion, rows, TRAINING_DRAWS)
    return CompletedRows(points, starts, allowed_classes(rows.labels, sets), rows.weights)


def allowed_classes(
    labels: Int[np.ndarray, " obs"], sets: LabelSets
) -> Bool[np.ndarray, "obs label"]:
    """The classes that every row may have; a hidden label (-1) allows all."""
    everything = np.ones((1, sets.shape[1]), dtype=bool)
    return np.concatenate([sets, everything])[labels]


def told(rows: Observations, sets: LabelSets) -> Bool[np.ndarray, " obs"]:
    """Rows whose label says anything: those that may have every class do not."""
    return (rows.labels >= 0) | (sets.shape[1] == 1)


def set_shares(rows: Observations, sets: LabelSets) -> Float[np.ndarray, " label"]:
    """Weighted shares of the classes among the rows whose label says anything.

    A row that may have several classes is shared out among them as the rows of one class
    are, where half a row of each is added to those: no class has a share of 0. Of rows with one
    class each, nothing is added to the counts.
    """
    by_set = np.bincount(
        rows.labels[rows.labels >= 0], rows.weights[rows.labels >= 0], minlength=len(sets)
    )
    within = sets * (by_set[: sets.shape[1]] + 0.5)
    counts = by_set @ (within / within.sum(axis=1, keepdims=True))
    return counts / counts.sum()
