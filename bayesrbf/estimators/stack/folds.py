"""Which rows of a stack are held out when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral

import numpy as np
from jaxtyping import Int

from bayesrbf import table
from bayesrbf.estimators.calibrating import Folds, split_rows
from bayesrbf.parameters import Observations

FEW_ROWS, MANY_FOLDS, FOLDS = 200, 10, 5
"""Labelled rows below which there are ten folds, else five."""


def stack_folds(
    cv: object, rows: Observations, kept: Int[np.ndarray, " kept"], seed: int
) -> Folds | Sequence[tuple[Observations, Observations]]:
    """Training and held-out rows of every fold.

    None and an integer deal the labelled rows of every class in turn; None to five folds,
    or ten where they weigh less than 200. The copies of a row are dealt, too: were they
    held out together, a row that stands there with both labels would always be predicted
    from the other label alone. A class of one row is never held out.

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
    if not (cv is None or isinstance(cv, Integral)):
        return split_rows(cv, rows, kept, seed)
    distinct, _ = table.distinct(rows)
    labelled = distinct.labels >= 0
    few = distinct.weights[labelled].sum() < FEW_ROWS
    n_folds = (MANY_FOLDS if few else FOLDS) if cv is None else int(cv)
    if n_folds < 2:
        raise ValueError(f"cv must be at least 2 folds; received cv={cv}.")
    copies = copies_of(distinct, n_folds)
    folds = deal(copies.labels, n_folds, seed)
    return [
        (
            table.distinct(copies.take(folds != fold))[0],
            table.distinct(copies.take(folds == fold))[0],
        )
        for fold in np.unique(folds[folds >= 0])
    ]


def copies_of(rows: Observations, most: int) -> Observations:
    """Rows of weight 2 and more as several rows, whose weights add up to it.

    Parameters
    ----------
    rows : Observations
        Distinct weighted rows.
    most : int
        Most copies of a row.

    Returns
    -------
    Observations
        Copies side by side.

    Examples
    --------
    >>> cells, labels = np.zeros((2, 1)), np.arange(2)
    >>> rows = Observations(cells, np.zeros((2, 0), int), labels, np.array([3.0, 0.5]))
    >>> copies_of(rows, 2).weights
    array([1.5, 1.5, 0.5])
    """
    counts = np.clip(np.round(rows.weights), 1, most).astype(int)
    copies = rows.take(np.repeat(np.arange(rows.n_obs), counts))
    return replace(copies, weights=copies.weights / np.repeat(counts, counts))


def deal(labels: Int[np.ndarray, " obs"], n_folds: int, seed: int) -> Int[np.ndarray, " obs"]:
    """Deal the rows of every class to folds in turn; no fold takes the last row of a class.

    Parameters
    ----------
    labels : ndarray of shape (n_obs,)
        Class codes of rows, -1 where hidden.
    n_folds : int
        Number of folds.
    seed : int
        Seed of the order in which rows are dealt.

    Returns
    -------
    ndarray of shape (n_obs,)
        Fold in which a row is held out; -1 for rows without a label and the only row
        of a class.

    Examples
    --------
    >>> deal(np.array([0, 0, 1, 1, 1, 2, -1]), 2, seed=0)
    array([ 0,  1,  1,  0,  0, -1, -1])
    """
    rng = np.random.default_rng(seed)
    folds = np.full(labels.size, -1)
    dealt = 0
    for label in range(labels.max(initial=-1) + 1):
        members = rng.permutation(np.flatnonzero(labels == label))
        if members.size > 1:
            folds[members] = (dealt + np.arange(members.size)) % n_folds
            dealt += members.size
    return folds
