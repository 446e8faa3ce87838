"""Rows held out in folds: predictions of models that have not seen them, compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import log_softmax, logsumexp, softmax

from bayesrbf import table
from bayesrbf.base.arrays import class_shares, log_scores, single_digits
from bayesrbf.base.missing_fraction import knot_weights, missing_fraction_of
from bayesrbf.base.records import MAX_LOG, Requirements, stored, within
from bayesrbf.base.rows import (
    Observations,
    Subjects,
    joined_rows,
    joined_subjects,
)
from bayesrbf.base.tasks import run_tasks
from bayesrbf.fit.calibration import (
    Selection,
    evidence_of_missing_fraction,
    fit_powers,
    fit_temperature,
    tempered,
)
from bayesrbf.fit.stages import Calibration
from bayesrbf.reading.notes import warn
from bayesrbf.table.columns import Columns

# Folds: which rows are held out of a fit.


Fold = tuple[Observations, Observations]
"""Training and held-out rows, each distinct and weighted, in the user's units."""

NumberedFold = tuple[int, Observations, Observations]
"""Number of a fold, its training and its held-out rows."""


MANY_ROWS: Final = 2500.0
"""Weight of the labelled rows from which they are held out in fewer folds."""
FOLDS, FEWER = 5, 3
"""On ten tables of at most 150 rows, complete and with holes, ten folds were no better. Of many
rows two thirds are enough for members that are weighed against each other."""


def usual_folds(n_labelled: float) -> int:
    """Number of folds of a stack where the user gave none, by the number of labelled subjects."""
    return FEWER if n_labelled > MANY_ROWS else FOLDS


def stratified_folds(
    labels: Int[np.ndarray, " obs"], n_folds: int, seed: int | None
) -> Int[np.ndarray, " obs"]:
    """Fold number of every row; rows of a class are assigned to the folds in turn.

    Classes are assigned in the order of their first rows, whatever their codes. Rows without a
    label and the only row of a class are in no fold: -1. Without a seed rows are assigned in their
    order in the table.

    >>> stratified_folds(np.array([0, 0, 1, 1, 1, 2, -1]), 2, seed=0)
    array([ 0,  1,  1,  0,  0, -1, -1])
    """
    rng = np.random.default_rng(seed)
    folds = np.full(labels.size, -1)
    assigned = 0
    labelled = np.flatnonzero(labels >= 0)
    firsts = np.sort(np.unique(labels[labelled], return_index=True)[1])
    for label in labels[labelled[firsts]]:
        members = np.flatnonzero(labels == label)
        members = members if seed is None else rng.permutation(members)
        # A class goes on with the fold after the last one's: folds get similar sizes.
        if members.size > 1:
            folds[members] = (assigned + np.arange(members.size)) % n_folds
            assigned += members.size
    return folds


def grouped_folds(
    labels: Int[np.ndarray, " obs"], groups: Int[np.ndarray, " obs"], n_folds: int, seed: int | None
) -> Int[np.ndarray, " obs"]:
    """Fold number of every row; groups are whole, and folds similar in size and class frequencies.

    The largest groups are assigned first. Without a seed groups of one size are assigned in the
    order of their numbers.

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
    # A class may have no labelled row.
    shares = counts / counts.sum(axis=0).clip(1)
    mass = np.zeros((n_folds, counts.shape[1]))
    fold_of_group = np.full(names.size, -1)
    order = np.flatnonzero(counts.any(axis=1))
    order = order if seed is None else rng.permutation(order)
    for group in order[np.argsort(-counts[order].sum(axis=1), kind="stable")]:
        # The fold whose squared class shares grow least has the fewest rows of these classes.
        # Rounded: floating-point error depends on the order of the classes and must break no tie.
        growth = ((mass + shares[group]) ** 2 - mass**2).sum(axis=1).round(12)
        fold = int(growth.argmin())
        fold_of_group[group], mass[fold] = fold, mass[fold] + shares[group]
    for label in range(counts.shape[1]):
        having = np.flatnonzero((counts[:, label] > 0) & (fold_of_group >= 0))
        elsewhere = np.any((counts[:, label] > 0) & (fold_of_group < 0))
        if having.size and not elsewhere and np.unique(fold_of_group[having]).size == 1:
            fold_of_group[having[0]] = -1
    return np.where(labelled, fold_of_group[codes], -1)


def later_folds(
    labels: Int[np.ndarray, " obs"], times: Float[np.ndarray, " obs"], n_folds: int
) -> Int[np.ndarray, " obs"]:
    """Fold number of the later half of the labelled rows, in the order of time; -1 elsewhere.

    Every fold is to be predicted from the rows before it. Rows of one time are in one fold; no fold
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
    started = 1 + max((int(second[0]) for second in seconds if second.size), default=0)
    start = max(rows.size // 2, started)
    # Rows of the time at which training ends stay in training.
    later = rows[start:][times[rows[start:]] > times[rows[start - 1]]]
    block = np.arange(later.size) * min(n_folds - 1, later.size) // max(later.size, 1)
    moments, moment = np.unique(times[later], return_inverse=True)
    first = np.array([block[moment == index].min() for index in range(moments.size)], dtype=int)
    if later.size:
        folds[later] = np.unique(first[moment], return_inverse=True)[1]
    return folds


def subject_folds(
    labels: Int[np.ndarray, " obs"], subjects: Subjects | None, n_folds: int, seed: int | None
) -> Int[np.ndarray, " obs"]:
    """Fold of each row: rows of one subject are in one fold; by row where no subject has two."""
    if subjects is None or np.unique(subjects.numbers).size == labels.size:
        return stratified_folds(labels, n_folds, seed)
    return grouped_folds(labels, subjects.numbers, n_folds, seed)


def folds_of(
    folds: Int[np.ndarray, " obs"], subjects: Subjects | None
) -> list[tuple[Int[np.ndarray, " train"], Int[np.ndarray, " test"]]]:
    """Positions of training and held-out rows of every fold, by the number of each row's fold.

    No training row is of a subject that has a held-out row.

    >>> folds_of(np.array([0, 1, -1]), Subjects.of(np.array([0, 1, 1])))
    [(array([1, 2]), array([0])), (array([0]), array([1]))]
    """
    outs = [folds == fold for fold in np.unique(folds[folds >= 0])]
    kept_out = outs if subjects is None else [subjects.together(out) for out in outs]
    return [
        (np.flatnonzero(~away), np.flatnonzero(out))
        for away, out in zip(kept_out, outs, strict=True)
    ]


def split_rows(
    cv: object,
    rows: Observations,
    row_indices: Int[np.ndarray, " obs"],
    seed: int,
    *,
    responses: bool = False,
) -> Iterator[Fold]:
    """Training and held-out rows of every fold.

    An integer assigns the labelled subjects of every class to folds in turn, in an order that the
    order of the table does not change. Equal rows of one subject are held out as one row, whatever
    its weight, and no row of the subject teaches then. Equal rows of different subjects, which are
    different people, are assigned one by one: were they held out together, a row that stands there
    with both labels would always be predicted from the other label alone. The only subject of a
    class is never held out. Labels that stand for ``responses``, which are numbers, make no
    classes.

    A splitter, or pairs of indices, are of the table as it was given to ``fit``; ``row_indices``
    has the rows' positions there.
    """
    if not isinstance(cv, Integral):
        yield from _splitter_folds(cv, rows, row_indices, classifier=not responses)
        return
    if cv < 2:
        raise ValueError(f"cv must be at least 2 folds; received cv={cv}.")
    assigned = _rows_to_assign(rows)
    # Responses are no classes that folds could balance: known (0) or not (-1).
    labels = np.minimum(assigned.labels, 0) if responses else assigned.labels
    folds = subject_folds(labels, assigned.subjects, int(cv), seed)
    for train, test in folds_of(folds, assigned.subjects):
        # Different people who are equal meet again.
        yield table.distinct(assigned.take(train))[0], table.distinct(assigned.take(test))[0]


def _rows_to_assign(rows: Observations) -> Observations:
    """Rows to be assigned to folds, in an order that does not depend on the order of the table.

    Equal rows of one subject are one row, and a row of several subjects is one row for each.
    """
    distinct_index = table.distinct(rows)[1]
    if rows.subjects is None:
        return rows.take(np.lexsort((rows.weights, distinct_index)))
    numbers = rows.subjects.numbers
    pairs = distinct_index * (numbers.max() + 1) + numbers
    _, first, merged = np.unique(pairs, return_index=True, return_inverse=True)
    counts = np.bincount(merged, rows.subjects.counts)
    # A row that is a part of a subject is one row.
    shares = np.maximum(np.round(counts), 1).astype(np.intp)
    several = np.repeat(shares > 1, shares)
    chosen = np.repeat(first, shares)
    numbers, distinct_index = numbers[chosen], distinct_index[chosen]
    numbers[several] = numbers.max() + 1 + np.arange(several.sum())
    # Of equal rows that of the subject whose rows come first.
    mean_position = (np.bincount(numbers, distinct_index) / np.bincount(numbers).clip(1))[numbers]
    weights = np.repeat(np.bincount(merged, rows.weights) / shares, shares)
    order = np.lexsort((mean_position, weights, distinct_index))
    _, starts, codes = np.unique(numbers[order], return_index=True, return_inverse=True)
    subjects = Subjects(
        np.argsort(np.argsort(starts))[codes], np.repeat(counts / shares, shares)[order]
    )
    return replace(rows.take(chosen[order]), weights=weights[order], subjects=subjects)


def _splitter_folds(
    cv: object, rows: Observations, row_indices: Int[np.ndarray, " obs"], *, classifier: bool
) -> Iterator[Fold]:
    """Training and held-out rows of the folds of a splitter or of pairs of indices.

    Indices are positions in the table given to ``fit``, and ``row_indices`` those of the rows.
    Equal rows are merged, and only labelled rows are held out. ValueError if an index is no
    position.
    """
    n_given = int(row_indices.max()) + 1
    labels = np.full(n_given, -1)
    labels[row_indices] = rows.labels
    from sklearn.model_selection import check_cv  # a tenth of a second, and for a fit alone

    splitter = check_cv(cv, labels, classifier=classifier)
    splits = [
        tuple(_row_positions(side, n_given) for side in split)
        for split in splitter.split(np.zeros((n_given, 1)), labels)
    ]
    # A fold may be of rows without weight at the end of the table, all folds may not.
    tests = np.concatenate([test for _, test in splits]) if splits else np.zeros(0, np.intp)
    if tests.size and tests.min() >= n_given:
        raise _no_positions(tests, n_given)
    for train, test in splits:
        held_out = np.isin(row_indices, test) & (rows.labels >= 0)
        yield (
            table.distinct(rows.take(np.isin(row_indices, train)))[0],
            table.distinct(rows.take(held_out))[0],
        )


def _row_positions(side: object, n_given: int) -> Int[np.ndarray, " row"]:
    """Positions of the rows of one side of a split, which may be a mask of all rows.

    Rows without weight at the end of the table are not among the ``n_given``: positions may be
    larger. ValueError if the side is neither positions nor a mask of at least ``n_given`` rows.
    """
    values = np.asarray(side)
    flat = values.shape == (values.size,)
    if values.dtype == bool and flat and values.size >= n_given:
        return np.flatnonzero(values)
    whole = flat and (values.dtype.kind in "iu" or not values.size)
    if not whole or (values.size and values.min() < 0):
        raise _no_positions(values, n_given)
    return values.astype(np.intp)


def _no_positions(values: np.ndarray, n_given: int) -> ValueError:
    """The error about one side of a split that has no positions of rows."""
    ends = f", from {values.min()} to {values.max()}" if values.dtype.kind in "iu" else ""
    return ValueError(
        "cv must give positions of rows, counted from 0, or masks of one boolean for each row; "
        f"of {n_given} rows received {values.size} values of {values.dtype}{ends}."
    )


def numbered_folds(
    splits: Iterable[Fold],
    classes: np.ndarray | None,
    required: Int[np.ndarray, " class"] | None = None,
) -> list[NumberedFold]:
    """Number, training rows and held-out rows of every fold that holds a row out.

    Folds without a held-out row count in the numbers. ValueError if the training rows of a fold
    lack a class of the ``required`` codes, or of all ``classes`` if None. ``classes`` are labels,
    for the message; None stands for responses that are numbers.
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


# Hides more and more cells of held-out rows, and keeps the predictions for the copies.


STRATA: Final = 3
"""Copies whose missing fraction is drawn from a third of the way from none to all; one more
copy keeps a single cell."""
COPIES: Final = 2500.0
"""Copies of all labelled rows together that are enough: of many rows each has fewer, of any kind,
and one at least."""


@dataclass(frozen=True)
class Masking:
    """A scheme that hides cells of held-out rows."""

    columns: Columns
    log_shares: Float[np.ndarray, " label"]
    """Log shares of the classes in training."""
    seed: int
    n_copies: int = STRATA + 1
    """Copies of a row; where they are fewer than there are kinds, each is of another kind."""

    def versions(self, fold: int, train: Observations, test: Observations) -> list[Observations]:
        """Held-out rows of a fold as they are, followed by copies with cells masked.

        Cells are drawn in the canonical order of the training rows' columns: the order in which a
        user's table has them changes nothing.
        """
        order = table.canonical_positions(train, self.columns)
        rng = np.random.default_rng([self.seed, fold])
        observed = table.observed_cells(test, self.columns)
        masked = np.zeros((STRATA + 1, *observed.shape), bool)
        masked[..., order] = hiding_masks(observed[:, order], rng)
        if self.n_copies < len(masked):
            kinds = rng.permutation(np.arange(test.n_obs)) + np.arange(self.n_copies)[:, None]
            masked = masked[kinds % len(masked), np.arange(test.n_obs)]
        return [test, *(table.hide(test, mask, self.columns) for mask in masked)]

    def missing_fractions(
        self, versions: Sequence[Observations]
    ) -> Float[np.ndarray, "obs version"]:
        """Missing fraction of the rows in all versions."""
        of = self.columns.column_of
        return np.stack([missing_fraction_of(rows, of) for rows in versions], axis=1)


def masking_of(rows: Observations, columns: Columns, n_classes: int, seed: int) -> Masking | None:
    """Scheme that masks cells; None where missing cells are informative.

    None, too, where labels are sets of classes, of which no shares follow.
    """
    if columns.masked or not columns.n_used or rows.labels.max() >= n_classes:
        return None
    shares = class_shares(rows.labels, rows.weights, n_classes)
    n_copies = int(np.clip(COPIES // rows.n_labelled, 1, STRATA + 1))
    return Masking(columns, np.log(shares), seed, n_copies)


def hiding_masks(
    observed: Bool[np.ndarray, "obs column"], rng: np.random.Generator
) -> Bool[np.ndarray, "copy obs column"]:
    """Cells that every copy masks (true); the last copy keeps one observed cell of every row.

    Copy s of the S others masks each cell of a row with a probability that is drawn for the row,
    uniform between s / S and (s + 1) / S. Missing cells may be masked, too.
    """
    n_obs, n_columns = observed.shape
    shares = (np.arange(STRATA)[:, None] + rng.random((STRATA, n_obs))) / STRATA
    masks = rng.random((STRATA, n_obs, n_columns)) < shares[..., None]
    # One of the observed cells at random. A row without any keeps a cell that is missing.
    alone = np.where(observed, rng.random(observed.shape), -1.0).argmax(axis=1)
    all_but_one = np.arange(n_columns) != alone[:, None]
    return np.concatenate([masks, all_but_one[None]])


# Predictions of the rows that are held out of a fit: candidates compared, one calibrated.


SMALLEST: Final = 1e-300
"""Lower bound of probabilities before their logarithm: 0 has none."""
STEPS: Final = 200
"""Fixed-point steps of the offsets of classes never held out."""
EXCLUDED: Final = 1000.0
"""Nats by which a class never held out is lowered: it then counts at no temperature."""

Predict = Callable[[int, Observations, Observations], np.ndarray]
"""Maps the number of a fold, its training and its held-out rows to an entry a held-out row."""


@stored
class HeldOut:
    """Out-of-fold predictions of all folds, one fold after another."""

    values: Float[np.ndarray, "obs *values"]
    labels: Int[np.ndarray, " obs"]  # True class codes.
    weights: Float[np.ndarray, " obs"]
    masked: Float[np.ndarray, "obs copy *values"] | None = None
    """Predictions for copies of the rows with more cells masked, in single precision."""
    missing_fractions: Float[np.ndarray, "obs version"] | None = None
    """Missing fraction of every row as it is, then of its masked copies."""
    folds: Int[np.ndarray, " obs"] | None = None
    """Number of the fold that held a row out."""
    log_shares: Float[np.ndarray, " label"] | None = None
    """Log class shares of training; known where there are masked copies."""
    fold_log_shares: Float[np.ndarray, " label"] | None = None
    """Log class shares among the rows that the first fold trained with."""
    subjects: Subjects | None = None
    """Independent subjects of the rows; None: every row is a subject."""

    def __laws__(self) -> Requirements:
        yield within(self.labels, 0) and within(self.weights, 0), "labels and weights"
        yield within(abs(self.values), 0, MAX_LOG), "log probabilities"
        same = self.folds is None or self.folds.shape == self.labels.shape
        yield same, "a fold of every row"
        copies = (self.masked, self.missing_fractions, self.log_shares)
        together = len({array is None for array in copies}) == 1
        if self.masked is not None and self.missing_fractions is not None:
            n_obs, n_versions = self.missing_fractions.shape
            together &= self.masked.shape == (n_obs, n_versions - 1, *self.values.shape[1:])
        yield together, "masked copies, their cells and class shares"

    @property
    def pool_folds(self) -> Int[np.ndarray, " obs"]:
        """Fold of every row, for a pool to be fitted to the other folds; two halves of one fold."""
        alone = self.folds is None or np.unique(self.folds).size < 2
        return np.arange(self.labels.size) % 2 if alone else np.asarray(self.folds)

    @property
    def never_held_out(self) -> Int[np.ndarray, " class"]:
        """Codes of classes without a held-out row; none where the class shares are unknown."""
        comparable = self.fold_log_shares is not None and self.labels.size
        classes = np.arange(self.values.shape[-1] if comparable else 0)
        return np.setdiff1d(classes, self.labels)

    @property
    def offsets(self) -> Float[np.ndarray, " label"] | None:
        """Offsets of the log joints of classes never held out, in nats; NaN for the other classes.

        The offset lowers the mean probability of such a class over the held-out rows to its class
        share, where it is larger. None if every class was held out.
        """
        absent = self.never_held_out
        if not absent.size or self.fold_log_shares is None:
            return None
        p = softmax(self.values, axis=-1)
        p = p.reshape(len(p), -1, p.shape[-1]).mean(axis=1)  # over draws, or members
        log_p = np.log(np.maximum(p, SMALLEST))
        shift = np.zeros(log_p.shape[1])
        for _ in range(STEPS):
            mean = np.average(softmax(log_p + shift, axis=1), axis=0, weights=self.weights)
            excess = np.log(np.maximum(mean, SMALLEST)) - self.fold_log_shares
            # Lowered alone: no held-out label can show that such a class is more probable.
            shift[absent] = np.minimum(shift - excess, 0.0)[absent]
        shift[np.setdiff1d(np.arange(shift.size), absent)] = np.nan
        return shift

    def among_judged(self) -> HeldOut:
        """Predictions given that the class is one that was held out.

        Log joints of any other class are ``EXCLUDED`` nats below the largest of the row. Labels of
        held-out rows say nothing about such a class: any probability of it would count as an error.
        """
        absent = self.never_held_out

        def without(values: np.ndarray) -> np.ndarray:
            values = values.copy()
            values[..., absent] = values.max(axis=-1, keepdims=True) - EXCLUDED
            return values

        return self.mapped(without) if absent.size else self

    def mapped(self, function: Callable[[np.ndarray], np.ndarray]) -> HeldOut:
        """The record with changed predictions of rows and masked copies, along the second axis."""
        masked = None if self.masked is None else function(self.masked)
        return replace(self, values=function(self.values[:, None])[:, 0], masked=masked)

    def take(self, rows: Bool[np.ndarray, " obs"]) -> HeldOut:
        """Predictions of some of the rows."""
        masked, fractions, folds = (
            None if values is None else values[rows]
            for values in (self.masked, self.missing_fractions, self.folds)
        )
        subjects = None if self.subjects is None else self.subjects.take(rows)
        values, labels, weights = self.values[rows], self.labels[rows], self.weights[rows]
        return HeldOut(
            values,
            labels,
            weights,
            masked,
            fractions,
            folds,
            self.log_shares,
            self.fold_log_shares,
            subjects,
        )

    @property
    def missing_fraction(self) -> Float[np.ndarray, " obs"]:
        """Missing fraction of the rows as they are; 0 where no cells were masked."""
        fractions = self.missing_fractions
        return np.zeros(self.labels.size) if fractions is None else fractions[:, 0]

    @property
    def ignorable_weights(self) -> Float[np.ndarray, " obs"]:
        """Weights under which the missing fraction is no evidence about the class beyond the cells.

        The total weight of every class is unchanged.
        """
        if self.log_shares is None or not self.missing_fraction.any():
            return self.weights
        log_p = log_softmax(self.values, axis=-1)
        log_p = log_p.reshape(len(log_p), -1, log_p.shape[-1])
        mean = logsumexp(log_p, axis=1, b=1 / log_p.shape[1])
        evidence = evidence_of_missing_fraction(
            mean, self.labels, self.weights, self.missing_fraction, self.log_shares
        )
        weights = self.weights / evidence
        before, after = (
            np.bincount(self.labels, row_weights) for row_weights in (self.weights, weights)
        )
        return weights * (before / np.where(after > 0, after, 1.0))[self.labels]

    @property
    def subject_weights(self) -> Float[np.ndarray, " obs"]:
        """Number of independent subjects behind each row: 1/n for each of the n rows of one."""
        if self.subjects is None:
            return np.ones(self.labels.size)
        return np.where(self.subjects.split, self.subjects.counts, 1.0)

    def of_candidate(self, index: int) -> HeldOut:
        """Predictions of one candidate by its index in the second axis."""
        return self.mapped(lambda values: values[:, :, index])

    def selection[C](
        self, candidates: Sequence[C], *, calibrate: bool, margin: float = 0.0
    ) -> Selection[C]:
        """The candidates with the log score of each at every row held out, in nats.

        A log score is the log probability of the row's label, from class log joints. Candidate i
        is predicted by index i of the second axis. ``calibrate`` scores each candidate at the
        temperature that fits the rows held out best, else at temperature 1. The selection takes a
        later candidate if the mean score is higher by more than ``margin`` standard errors.
        """
        predictions = [self.of_candidate(index) for index in range(len(candidates))]
        row_scores = [
            prediction.log_scores(prediction.temperature if calibrate else 1.0)
            for prediction in predictions
        ]
        return Selection(tuple(candidates), np.array(row_scores), self.weights, margin)

    def log_scores(self, temperature: float = 1.0) -> Float[np.ndarray, " obs"]:
        """Log scores of class log joints at a temperature, in nats."""
        return log_scores(tempered(self.among_judged().values, temperature), self.labels)

    @property
    def temperature(self) -> float:
        """Temperature of class log joints, of one draw or of several."""
        return fit_temperature(self.among_judged().values, self.labels, self.weights)

    def calibration(self, temperature: float | None = None) -> Calibration:
        """Calibration of class log joints, at every knot of the missing fraction where known.

        ``temperature`` is that of rows as they are; None: it is fitted to them. Without masked
        copies the temperature and the offsets are the whole calibration. Predictions of several
        draws are averaged.
        """
        temperature = self.temperature if temperature is None else temperature
        found = Calibration(temperature, offsets=self.offsets)
        log_shares, powers = self.log_shares, []
        if self.masked is None or log_shares is None:
            return found
        judged = self.among_judged()
        for values, labels, weights in judged.at_knots(judged.weights):
            log_p = tempered(values, temperature)
            if log_p.ndim > 2:
                log_p = logsumexp(log_p, axis=1) - np.log(log_p.shape[1])
            powers.append(fit_powers(log_p, labels, weights, log_shares))
        temperatures, prior_exponents = np.array(powers).T.copy()
        return replace(
            found, temperatures=temperatures, prior_exponents=prior_exponents, log_shares=log_shares
        )

    @property
    def versions(self) -> Float[np.ndarray, "obs version *values"]:
        """Predictions for every row as it is, then for its masked copies."""
        as_is = self.values[:, None]
        return as_is if self.masked is None else np.concatenate([as_is, self.masked], axis=1)

    def at_knots(
        self, weights: Float[np.ndarray, " obs"]
    ) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Values, labels and weights at every knot of the missing fraction.

        A row, as it is and as each copy, counts at the two knots beside its fraction, the more the
        nearer.
        """
        assert self.missing_fractions is not None
        values = self.versions
        labels, weights = (np.repeat(of_row, values.shape[1]) for of_row in (self.labels, weights))
        values = values.reshape(-1, *values.shape[2:])
        for at_knot in (knot_weights(self.missing_fractions.ravel()) * weights[:, None]).T:
            near_knot = at_knot > 0
            yield values[near_knot], labels[near_knot], at_knot[near_knot]


def hold_out(
    splits: Iterable[Fold],
    predict: Predict,
    classes: np.ndarray | None,
    n_jobs: int | None = None,
    required: Int[np.ndarray, " class"] | None = None,
    masking: Masking | None = None,
) -> HeldOut | None:
    """Predictions of the held-out rows of all folds, by fits to their training rows; None if none.

    ``n_jobs`` processes share the folds; :func:`numbered_folds` has the classes that they need.
    With ``masking`` the rows are predicted with cells masked, too.
    """
    folds = numbered_folds(splits, classes, required)

    def answer(fold: NumberedFold) -> tuple[np.ndarray, Sequence[Observations]]:
        number, train, test = fold
        versions = [test] if masking is None else masking.versions(number, train, test)
        return predict(number, train, joined_rows(versions)), versions

    n_classes = None if classes is None else classes.size
    return hold_out_folds(folds, answer, n_classes, n_jobs, masking)


def hold_out_folds(
    folds: Sequence[NumberedFold],
    answer: Callable[[NumberedFold], tuple[np.ndarray, Sequence[Observations]]],
    n_classes: int | None,
    n_jobs: int | None,
    masking: Masking | None,
) -> HeldOut | None:
    """Predictions for the rows held out in all folds, fold after fold; None without folds.

    ``answer`` gives an entry for every row of every version of a fold's held-out rows, and the
    versions: rows as they are, then copies with cells masked. ``n_jobs`` processes share the folds.
    """
    if not folds:
        return None
    values, versions = [], []
    for entries, of_fold in run_tasks(answer, folds, "Holding rows out", n_jobs):
        by_version = entries.reshape(len(of_fold), -1, *entries.shape[1:])
        values.append(np.ascontiguousarray(np.moveaxis(by_version, 0, 1)))
        versions.append(of_fold)
    masked, fractions = None, None
    if masking is not None and all(len(every) > 1 for every in versions):
        # Copies need no more than single precision, and a file is smaller.
        masked = single_digits(np.concatenate(values)[:, 1:])
        fractions = single_digits(np.concatenate([*map(masking.missing_fractions, versions)]))
    tests = [test for test, *_ in versions]
    return HeldOut(
        np.concatenate([answers[:, 0] for answers in values]),
        np.concatenate([test.labels for test in tests]),
        np.concatenate([test.weights for test in tests]),
        masked,
        fractions,
        np.repeat(np.arange(len(tests)), [test.n_obs for test in tests]),
        None if masked is None or masking is None else masking.log_shares,
        None if n_classes is None else log_shares(folds[0], n_classes),
        joined_subjects([(test.subjects, test.n_obs) for test in tests]),
    )


def warn_nothing_held_out(
    owner: str,
    cv: object,
    consequence: str = "the temperature is 1, and held-out rows choose nothing",
) -> None:
    """Warn that no row was held out, and of the consequence."""
    warn(
        f"{owner}(cv={cv}) holds out no labelled row (the only row of a class never is), so "
        f"{consequence}; label more rows, or give other splits."
    )


def log_shares(fold: NumberedFold, n_classes: int) -> Float[np.ndarray, " label"]:
    """Log shares of the classes among the labelled training rows of a fold."""
    _, rows, _ = fold
    rows = rows.take(rows.labels < n_classes)  # a code beyond is a set of classes
    with np.errstate(divide="ignore"):  # a class without a training row has the log share -inf
        return np.log(class_shares(rows.labels, rows.weights, n_classes))
