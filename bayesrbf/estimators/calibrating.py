"""Folds: which rows are held out when."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral

import numpy as np
from jaxtyping import Int
from sklearn.model_selection import check_cv

from bayesrbf import table
from bayesrbf.parameters import Observations

Folds = Iterator[tuple[Observations, Observations]]


def stratified_folds(
    labels: Int[np.ndarray, " obs"], n_folds: int, seed: int
) -> Int[np.ndarray, " obs"]:
    """Deal the rows of every class to folds in turn.

    Parameters
    ----------
    labels : ndarray of shape (n_obs,)
        Class codes of distinct rows, -1 where hidden.
    n_folds : int
        Number of folds, at least 2.
    seed : int
        Seed of the order in which rows are dealt.

    Returns
    -------
    ndarray of shape (n_obs,)
        Fold in which a row is held out; -1 for rows that are in every training
        fold: those without a label and those of classes rarer than the folds.

    Examples
    --------
    >>> stratified_folds(np.array([0, 0, 0, 0, 1, -1]), 2, seed=0)
    array([ 1,  0,  0,  1, -1, -1])
    """
    rng = np.random.default_rng(seed)
    folds = np.full(labels.size, -1)
    dealt = 0
    for label in range(labels.max(initial=-1) + 1):
        members = rng.permutation(np.flatnonzero(labels == label))
        if members.size >= n_folds:
            folds[members] = (dealt + np.arange(members.size)) % n_folds
            dealt += members.size
    return folds


def split_rows(cv: object, rows: Observations, kept: Int[np.ndarray, " kept"], seed: int) -> Folds:
    """Training and held-out rows of every fold, each distinct and weighted.

    An integer deals distinct rows, so that equal rows never straddle folds and
    a weight of two is the row twice. Splits speak of the rows as they were given.

    Parameters
    ----------
    cv : int, splitter or iterable
        Number of folds, a scikit-learn splitter, or (train, test) index pairs
        into the rows given to ``fit``.
    rows : Observations
        Rows of positive weight, in the order given to ``fit``.
    kept : ndarray of shape (n_obs,)
        Position that each of them had in ``fit``.
    seed : int
        Seed of the stratified folds.

    Yields
    ------
    train, test : Observations
        Rows to fit and labelled rows to score.

    Raises
    ------
    ValueError
        If ``cv`` is an integer below 2.
    """
    if isinstance(cv, Integral):
        if cv < 2:
            raise ValueError(f"cv must be at least 2 folds; received cv={cv}.")
        distinct, _ = table.distinct(rows)
        folds = stratified_folds(distinct.labels, int(cv), seed)
        for fold in np.unique(folds[folds >= 0]):
            yield distinct.take(folds != fold), distinct.take(folds == fold)
        return
    n_given = int(kept.max()) + 1
    labels = np.full(n_given, -1)
    labels[kept] = rows.labels
    for train, test in check_cv(cv, labels, classifier=True).split(np.zeros((n_given, 1)), labels):
        held_out = np.isin(kept, test) & (rows.labels >= 0)
        yield (
            table.distinct(rows.take(np.isin(kept, train)))[0],
            table.distinct(rows.take(held_out))[0],
        )
