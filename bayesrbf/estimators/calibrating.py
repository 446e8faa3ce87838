"""Folds: which rows are held out when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Integral

import numpy as np
from jaxtyping import Int
from sklearn.model_selection import check_cv

from bayesrbf import table
from bayesrbf.records.mixture import Observations

Folds = Iterator[tuple[Observations, Observations]]


def stratified_folds(
    labels: Int[np.ndarray, " obs"], n_folds: int, seed: int
) -> Int[np.ndarray, " obs"]:
    """Deal the rows of every class to folds in turn; no fold takes the last row of a class.

    Classes are dealt in the order of their first rows, whatever their codes.

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
    >>> stratified_folds(np.array([0, 0, 1, 1, 1, 2, -1]), 2, seed=0)
    array([ 0,  1,  1,  0,  0, -1, -1])
    """
    rng = np.random.default_rng(seed)
    folds = np.full(labels.size, -1)
    dealt = 0
    known = np.flatnonzero(labels >= 0)
    firsts = np.sort(np.unique(labels[known], return_index=True)[1])
    for label in labels[known[firsts]]:
        members = rng.permutation(np.flatnonzero(labels == label))
        if members.size > 1:
            folds[members] = (dealt + np.arange(members.size)) % n_folds
            dealt += members.size
    return folds


def copies_of(rows: Observations, most: int) -> Observations:
    """Rows of weight 2 and more as several rows, whose weights add up to it.

    A weight that is a whole number is dealt in whole numbers: a classifier that knows no
    weights can still be given the rows of a fold so many times.

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
    >>> rows = Observations(cells, np.zeros((2, 0), int), labels, np.array([3.0, 2.5]))
    >>> copies_of(rows, 2).weights
    array([2.  , 1.  , 1.25, 1.25])
    """
    counts = np.clip(np.round(rows.weights), 1, most).astype(int)
    origins = np.repeat(np.arange(rows.n_obs), counts)
    ranks = np.arange(origins.size) - (np.cumsum(counts) - counts)[origins]
    weights, counts = rows.weights[origins], counts[origins]
    whole = weights // counts + (ranks < weights % counts)
    shares = np.where(weights == np.round(weights), whole, weights / counts)
    return replace(rows.take(origins), weights=shares)


def split_rows(cv: object, rows: Observations, kept: Int[np.ndarray, " kept"], seed: int) -> Folds:
    """Training and held-out rows of every fold, each distinct and weighted.

    An integer deals the labelled rows of every class in turn, in an order of
    their own, so that a weight of two is the row twice. The copies of a row are
    dealt, too: were they held out together, a row that stands there with both
    labels would always be predicted from the other label alone. The only row of
    a class is never held out. Splits speak of the rows as they were given.

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
        _check_folds(int(cv))
        copies = copies_of(table.distinct(rows)[0], int(cv))
        folds = stratified_folds(copies.labels, int(cv), seed)
        for fold in np.unique(folds[folds >= 0]):
            yield (
                table.distinct(copies.take(folds != fold))[0],
                table.distinct(copies.take(folds == fold))[0],
            )
        return
    yield from _as_given(cv, rows, kept, classifier=True)


def split_responses(
    cv: object, rows: Observations, kept: Int[np.ndarray, " kept"], seed: int
) -> Folds:
    """Training and held-out rows of every fold, where labels stand for numbers.

    An integer deals the distinct rows that have a response in turn, so that a weight of
    two is the row twice and no row teaches its own copy.

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
        Seed of the order in which rows are dealt.

    Yields
    ------
    train, test : Observations
        Rows to fit and rows with a response to score.

    Raises
    ------
    ValueError
        If ``cv`` is an integer below 2.
    """
    if not isinstance(cv, Integral):
        yield from _as_given(cv, rows, kept, classifier=False)
        return
    _check_folds(int(cv))
    distinct = table.distinct(rows)[0]
    folds = stratified_folds(np.minimum(distinct.labels, 0), int(cv), seed)
    for fold in np.unique(folds[folds >= 0]):
        yield distinct.take(folds != fold), distinct.take(folds == fold)


def _check_folds(cv: int) -> None:
    """One fold leaves nothing to fit."""
    if cv < 2:
        raise ValueError(f"cv must be at least 2 folds; received cv={cv}.")


def _as_given(
    cv: object, rows: Observations, kept: Int[np.ndarray, " kept"], *, classifier: bool
) -> Folds:
    """Folds of a splitter, which speaks of the rows as they were given."""
    n_given = int(kept.max()) + 1
    labels = np.full(n_given, -1)
    labels[kept] = rows.labels
    splitter = check_cv(cv, labels, classifier=classifier)
    for train, test in splitter.split(np.zeros((n_given, 1)), labels):
        held_out = np.isin(kept, test) & (rows.labels >= 0)
        yield (
            table.distinct(rows.take(np.isin(kept, train)))[0],
            table.distinct(rows.take(held_out))[0],
        )
