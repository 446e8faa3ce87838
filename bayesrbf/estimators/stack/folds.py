"""Which rows of a stack are held out when."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from bayesrbf.estimators.calibrating import Folds, split_rows
from bayesrbf.records.mixture import Observations

FEW_ROWS, MANY_FOLDS, FOLDS = 200, 10, 5
"""Labelled rows below which there are ten folds, else five."""


def stack_folds(cv: object, rows: Observations, kept: Int[np.ndarray, " kept"], seed: int) -> Folds:
    """Training and held-out rows of every fold.

    None is five folds, or ten where the labelled rows weigh less than 200.

    Parameters
    ----------
    cv : None, int, splitter or iterable
        As given to the constructor.
    rows : Observations
        Rows of positive weight, in the order given to ``fit``.
    kept : ndarray of shape (n_obs,)
        Position that each of them had in ``fit``.
    seed : int
        Seed of the dealing.

    Returns
    -------
    iterable of (Observations, Observations)
        Rows to fit and labelled rows to score.
    """
    if cv is None:
        few = rows.weights[rows.labels >= 0].sum() < FEW_ROWS
        cv = MANY_FOLDS if few else FOLDS
    return split_rows(cv, rows, kept, seed)
