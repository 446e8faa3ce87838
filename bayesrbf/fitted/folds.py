"""Folds: which rows are held out of a fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from numbers import Integral

import numpy as np
from jaxtyping import Float, Int

from bayesrbf import table
from bayesrbf.records.mixture import Observations
from bayesrbf.records.units import Units

Fold = tuple[Observations, Observations]
"""Training and held-out rows, each distinct and weighted, in the user's units."""

NumberedFold = tuple[int, Observations, Observations]
"""Number of a fold, its training and its held-out rows."""


def stratified_folds(
    labels: Int[np.ndarray, " obs"], n_folds: int, seed: int | None
) -> Int[np.ndarray, " obs"]:
    """Deal the rows of every class to folds in turn; no fold takes the last row of a class.

    Classes are dealt in the order of their first rows, whatever their codes. Rows without a label
    and the only row of a class are in no fold: -1. Without a seed rows are dealt as they stand.

    >>> stratified_folds(np.array([0, 0, 1, 1, 1, 2, -1]), 2, seed=0)
    array([ 0,  1,  1,  0,  0, -1, -1])
    """
    rng = np.random.default_rng(seed)
    folds = np.full(labels.size, -1)
    dealt = 0
    labelled = np.flatnonzero(labels >= 0)
    firsts = np.sort(np.unique(labels[labelled], return_index=True)[1])
    for label in labels[labelled[firsts]]:
        members = np.flatnonzero(labels == label)
        members = members if seed is None else rng.permutation(members)
        # A class goes on with the fold after the last one's: folds get similar sizes.
        if members.size > 1:
            folds[members] = (dealt + np.arange(members.size)) % n_folds
            dealt += members.size
    return folds


def grouped_folds(
    labels: Int[np.ndarray, " obs"], groups: Int[np.ndarray, " obs"], n_folds: int, seed: int | None
) -> Int[np.ndarray, " obs"]:
    """Deal whole groups to folds of similar size and class frequencies, the largest first.

    Without a seed groups of one size are dealt in the order of their numbers.

    Rows without a label are in no fold (-1), nor are those of a group without which no other fold
    would have a class.

    >>> grouped_folds(np.array([0, 1, 0, 1, 0, -1]), np.array([0, 0, 1, 1, 2, 2]), 2, seed=0)
    array([ 0,  0,  1,  1,  0, -1])
    """
    rng = np.random.default_rng(seed)
    labelled = labels >= 0
    names, codes = np.unique(groups, return_inverse=True)
    counts = np.zeros((names.size, labels.max() + 1))
    np.add.at(counts, (codes[labelled], labels[labelled]), 1)
    shares = counts / counts.sum(axis=0).clip(1)
    mass = np.zeros((n_folds, counts.shape[1]))
    place = np.full(names.size, -1)
    order = np.flatnonzero(counts.any(axis=1))
    order = order if seed is None else rng.permutation(order)
    for group in order[np.argsort(-counts[order].sum(axis=1), kind="stable")]:
        # The fold whose squared shares of the classes grow least: it has least of these classes.
        fold = int(((mass + shares[group]) ** 2 - mass**2).sum(axis=1).argmin())
        place[group], mass[fold] = fold, mass[fold] + shares[group]
    for label in range(counts.shape[1]):
        having = np.flatnonzero((counts[:, label] > 0) & (place >= 0))
        elsewhere = np.any((counts[:, label] > 0) & (place < 0))
        if having.size and not elsewhere and np.unique(place[having]).size == 1:
            place[having[0]] = -1
    return np.where(labelled, place[codes], -1)


def later_folds(
    labels: Int[np.ndarray, " obs"], times: Float[np.ndarray, " obs"], n_folds: int
) -> Int[np.ndarray, " obs"]:
    """Number the later half of the labelled rows as folds in the order of time; others are -1.

    Each is to be predicted from the rows before it. Rows of one time are in one fold; no fold
    begins before every class has been seen twice. See Tashman (2000), Out-of-sample tests of
    forecasting accuracy, International Journal of Forecasting 16, 437-450.

    >>> later_folds(np.array([0, 1, 0, 1, 0, 1, 0, -1]), np.arange(8.0), 3)
    array([-1, -1, -1, -1,  0,  0,  1, -1])
    """
    folds = np.full(labels.size, -1)
    rows = np.flatnonzero((labels >= 0) & ~np.isnan(times))
    rows = rows[np.argsort(times[rows], kind="stable")]
    if not rows.size:
        return folds
    seconds = [np.flatnonzero(labels[rows] == label)[1:2] for label in np.unique(labels[rows])]
    started = 1 + max((int(place[0]) for place in seconds if place.size), default=0)
    start = max(rows.size // 2, started)
    # Rows of the time at which training ends stay in training.
    later = rows[start:][times[rows[start:]] > times[rows[start - 1]]]
    parts = np.arange(later.size) * min(n_folds - 1, later.size) // max(later.size, 1)
    moments, moment = np.unique(times[later], return_inverse=True)
    first = np.array([parts[moment == place].min() for place in range(moments.size)], dtype=int)
    if later.size:
        folds[later] = np.unique(first[moment], return_inverse=True)[1]
    return folds


def unit_folds(
    labels: Int[np.ndarray, " obs"], units: Units | None, n_folds: int, seed: int | None
) -> Int[np.ndarray, " obs"]:
    """Deal units to folds: row by row where every row is alone, else all rows of a unit at once."""
    if units is None or np.unique(units.numbers).size == labels.size:
        return stratified_folds(labels, n_folds, seed)
    return grouped_folds(labels, units.numbers, n_folds, seed)


def folds_of(
    folds: Int[np.ndarray, " obs"], units: Units | None
) -> list[tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]]:
    """Positions of training and held-out rows of every fold, by the number of each row's fold.

    No row of a unit of which some is held out teaches.

    >>> folds_of(np.array([0, 1, -1]), Units.of(np.array([0, 1, 1])))
    [(array([1, 2]), array([0])), (array([0]), array([1]))]
    """
    outs = [folds == fold for fold in np.unique(folds[folds >= 0])]
    kept_out = outs if units is None else [units.together(out) for out in outs]
    return [
        (np.flatnonzero(~away), np.flatnonzero(out))
        for away, out in zip(kept_out, outs, strict=True)
    ]


def split_rows(
    cv: object,
    rows: Observations,
    kept: Int[np.ndarray, " kept"],
    seed: int,
    *,
    responses: bool = False,
) -> Iterator[Fold]:
    """Training and held-out rows of every fold.

    An integer deals the labelled units of every class in turn, in an order of their own. Equal rows
    of one unit are held out as one row, whatever its weight, and no row of the unit teaches then.
    Equal rows of different units, which are different people, are dealt one by one: were they held
    out together, a row that stands there with both labels would always be predicted from the other
    label alone. The only unit of a class is never held out. Labels that stand for ``responses``,
    which are numbers, make no classes.

    Splits speak of the rows as they were given to ``fit``; ``kept`` has their positions there.
    """
    if not isinstance(cv, Integral):
        yield from _as_given(cv, rows, kept, classifier=not responses)
        return
    if cv < 2:
        raise ValueError(f"cv must be at least 2 folds; received cv={cv}.")
    dealt = _dealt(rows)
    labels = np.minimum(dealt.labels, 0) if responses else dealt.labels
    folds = unit_folds(labels, dealt.units, int(cv), seed)
    for train, test in folds_of(folds, dealt.units):
        # Different people who are equal meet again.
        yield table.distinct(dealt.take(train))[0], table.distinct(dealt.take(test))[0]


def _dealt(rows: Observations) -> Observations:
    """What is dealt to folds, in an order that does not depend on that of the rows.

    Equal rows of one unit are one row, and a row that stands for several units is as many.
    """
    place = table.distinct(rows)[1]
    if rows.units is None:
        return rows.take(np.lexsort((rows.weights, place)))
    numbers = rows.units.numbers
    pairs = place * (numbers.max() + 1) + numbers
    _, first, merged = np.unique(pairs, return_index=True, return_inverse=True)
    counts = np.bincount(merged, rows.units.counts)
    shares = np.maximum(np.round(counts), 1).astype(np.intp)
    several = np.repeat(shares > 1, shares)
    chosen = np.repeat(first, shares)
    numbers, place = numbers[chosen], place[chosen]
    numbers[several] = numbers.max() + 1 + np.arange(several.sum())
    # Of equal rows that of the unit whose rows come first.
    mean_place = (np.bincount(numbers, place) / np.bincount(numbers).clip(1))[numbers]
    weights = np.repeat(np.bincount(merged, rows.weights) / shares, shares)
    order = np.lexsort((mean_place, weights, place))
    _, starts, codes = np.unique(numbers[order], return_index=True, return_inverse=True)
    units = Units(np.argsort(np.argsort(starts))[codes], np.repeat(counts / shares, shares)[order])
    return replace(rows.take(chosen[order]), weights=weights[order], units=units)


def _as_given(
    cv: object, rows: Observations, kept: Int[np.ndarray, " kept"], *, classifier: bool
) -> Iterator[Fold]:
    """Folds of a splitter, whose indices are of the rows as they were given."""
    n_given = int(kept.max()) + 1
    labels = np.full(n_given, -1)
    labels[kept] = rows.labels
    from sklearn.model_selection import check_cv  # a tenth of a second, and for a fit alone

    splitter = check_cv(cv, labels, classifier=classifier)
    splits = [
        tuple(_places(part, n_given) for part in split)
        for split in splitter.split(np.zeros((n_given, 1)), labels)
    ]
    # A fold may be of rows without weight at the end of the table, all folds may not.
    tests = np.concatenate([test for _, test in splits]) if splits else np.zeros(0, np.intp)
    if tests.size and tests.min() >= n_given:
        raise _no_places(tests, n_given)
    for train, test in splits:
        held_out = np.isin(kept, test) & (rows.labels >= 0)
        yield (
            table.distinct(rows.take(np.isin(kept, train)))[0],
            table.distinct(rows.take(held_out))[0],
        )


def _places(part: object, n_given: int) -> Int[np.ndarray, " part"]:
    """Positions of the rows of one side of a split, which may be a mask of all rows.

    Rows without weight at the end of the table are not among the ``n_given``.
    """
    given = np.asarray(part)
    flat = given.shape == (given.size,)
    if given.dtype == bool and flat and given.size >= n_given:
        return np.flatnonzero(given)
    whole = flat and (given.dtype.kind in "iu" or not given.size)
    if not whole or (given.size and given.min() < 0):
        raise _no_places(given, n_given)
    return given.astype(np.intp)


def _no_places(given: np.ndarray, n_given: int) -> ValueError:
    """The error about one side of a split that has no positions of rows."""
    ends = f", from {given.min()} to {given.max()}" if given.dtype.kind in "iu" else ""
    return ValueError(
        "cv must give positions of rows, counted from 0, or masks of one boolean for each row; "
        f"of {n_given} rows received {given.size} values of {given.dtype}{ends}."
    )


def numbered_folds(
    splits: Iterable[Fold],
    classes: np.ndarray | None,
    required: Int[np.ndarray, " class"] | None = None,
) -> list[NumberedFold]:
    """The folds that hold a row out, with their numbers.

    The training rows of each need the ``required`` codes, or all ``classes``, whose labels are for
    the message. None stands for responses that are numbers.
    """
    folds = list(splits)
    if classes is not None:
        needed = np.arange(classes.size) if required is None else required
        for number, (train, _) in enumerate(folds):
            absent = np.setdiff1d(needed, train.labels)
            if absent.size:
                raise ValueError(
                    f"the training rows of fold {number} of cv have no row of class "
                    f"{classes.tolist()[absent[0]]!r}; give splits whose training rows have every "
                    "class, or an integer cv."
                )
    return [(number, train, test) for number, (train, test) in enumerate(folds) if test.n_obs]
