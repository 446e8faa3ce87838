"""Rows of a table as the points, classes and weights of a discriminative likelihood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.estimators.mixture.fitting import FittedMixture
from bayesrbf.numerics.sdgm.completion import complete
from bayesrbf.parameters import Observations
from bayesrbf.sdgm_parameters import CompletedRows

TRAINING_DRAWS = 32
"""Completions of a row with holes in the likelihood."""

LabelSets = Bool[np.ndarray, "set label"]
"""Classes of every kind of label: a code per class, then the sets of several classes."""


def completions(
    companion: FittedMixture, rows: Observations, draws: int, replicate: int = 0
) -> tuple[Float[np.ndarray, "point coordinate"], Int[np.ndarray, " row"]]:
    """Points of rows, those with holes completed by the companion.

    Parameters
    ----------
    companion : FittedMixture
        Density of the columns.
    rows : Observations
        Rows in the user's units.
    draws : int
        Completions of a row with holes.
    replicate : int
        Which of the independent sets of draws.

    Returns
    -------
    points : ndarray of shape (n_points, n_coordinates)
        In the user's units.
    starts : ndarray of shape (n_rows,)
        First point of every row.
    """
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
    """Training rows as the likelihood takes them.

    Parameters
    ----------
    companion : FittedMixture
        Density of the columns.
    rows : Observations
        Rows in the user's units, labels as codes of label sets.
    sets : ndarray of shape (n_sets, n_classes)
        Classes of every code.

    Returns
    -------
    CompletedRows
        Points, classes and weights.
    """
    points, starts = completions(companion, rows, TRAINING_DRAWS)
    return CompletedRows(points, starts, allowed_classes(rows.labels, sets), rows.weights)


def allowed_classes(
    labels: Int[np.ndarray, " obs"], sets: LabelSets
) -> Bool[np.ndarray, "obs label"]:
    """The classes that every row may have.

    Parameters
    ----------
    labels : ndarray of shape (n_obs,)
        Codes of label sets, -1 where the label is hidden.
    sets : ndarray of shape (n_sets, n_classes)
        Classes of every code.

    Returns
    -------
    ndarray of shape (n_obs, n_classes)
        All classes where the label is hidden.
    """
    everything = np.ones((1, sets.shape[1]), dtype=bool)
    return np.concatenate([sets, everything])[labels]


def told(rows: Observations, sets: LabelSets) -> Bool[np.ndarray, " obs"]:
    """Rows whose label says anything: those that may have every class do not.

    Parameters
    ----------
    rows : Observations
        Rows, labels as codes of label sets.
    sets : ndarray of shape (n_sets, n_classes)
        Classes of every code.

    Returns
    -------
    ndarray of shape (n_obs,)
        True for all where there is one class.
    """
    return (rows.labels >= 0) | (sets.shape[1] == 1)
