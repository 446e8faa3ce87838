"""Predictions of the rows that are held out of a fit: candidates compared, one calibrated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import logsumexp, softmax

from bayesrbf.fitted.folds import Fold, NumberedFold, numbered_folds
from bayesrbf.fitted.masking import Masking
from bayesrbf.fitted.tasks import run_tasks
from bayesrbf.numerics.hidden_share import knot_weights
from bayesrbf.numerics.log_sums import class_shares
from bayesrbf.posterior.recalibration import fit_powers, fit_temperature, tempered
from bayesrbf.posterior.scores import log_scores
from bayesrbf.posterior.selection import Selection
from bayesrbf.records.masked_rows import MaskedRows, Recalibration
from bayesrbf.records.mixture import Observations, joined_rows
from bayesrbf.records.stored import MOST_LOG, Requirements, stored, within
from bayesrbf.records.units import Units, joined_units

SMALLEST: Final = 1e-300
STEPS: Final = 200
EXCLUDED: Final = 1000.0
"""Nats that a class without a row held out is below the others: at no temperature it counts."""

Predict = Callable[[int, Observations, Observations], np.ndarray]
"""Maps the number of a fold, its training and its held-out rows to an entry a held-out row."""


@stored
class HeldOut:
    """Out-of-fold predictions of all folds, one fold after another."""

    values: Float[np.ndarray, "obs *values"]
    labels: Int[np.ndarray, " obs"]  # True class codes.
    weights: Float[np.ndarray, " obs"]
    masked: MaskedRows | None = None
    """What is said of the rows with more of their cells hidden."""
    folds: Int[np.ndarray, " obs"] | None = None
    """Which fold held a row out."""
    log_shares: Float[np.ndarray, " label"] | None = None
    """Log shares of the classes among the labelled training rows of a fold."""
    units: Units | None = None
    """Which rows are one unit; None: every row is alone."""

    def __laws__(self) -> Requirements:
        yield within(self.labels, 0) and within(self.weights, 0), "labels and weights"
        yield within(abs(self.values), 0, MOST_LOG), "log probabilities"
        same = self.folds is None or self.folds.shape == self.labels.shape
        yield same, "a fold of every row"

    @property
    def parts(self) -> Int[np.ndarray, " obs"]:
        """The fold of every row; of a single fold halves, for a pool to be fitted to others."""
        alone = self.folds is None or np.unique(self.folds).size < 2
        return np.arange(self.labels.size) % 2 if alone else np.asarray(self.folds)

    @property
    def unjudged(self) -> Int[np.ndarray, " class"]:
        """Classes that none of the rows has, of a table whose shares are known."""
        comparable = self.log_shares is not None and self.labels.size
        classes = np.arange(self.values.shape[-1] if comparable else 0)
        return np.setdiff1d(classes, self.labels)

    @property
    def uncalibrated(self) -> Float[np.ndarray, " label"] | None:
        """What is added to the log joints of classes that no row has, in nats; NaN for the others.

        Over rows of other classes the probability of a class is on average at most its share: where
        it is more, it is made that share. Nothing else is known of it. None if all are judged.
        """
        absent = self.unjudged
        if not absent.size or self.log_shares is None:
            return None
        p = softmax(self.values, axis=-1)
        p = p.reshape(len(p), -1, p.shape[-1]).mean(axis=1)  # over draws, or members
        log_p = np.log(np.maximum(p, SMALLEST))
        moves = np.zeros(log_p.shape[1])
        for _ in range(STEPS):
            mean = np.average(softmax(log_p + moves, axis=1), axis=0, weights=self.weights)
            excess = np.log(np.maximum(mean, SMALLEST)) - self.log_shares
            moves[absent] = np.minimum(moves - excess, 0.0)[absent]
        moves[np.setdiff1d(np.arange(moves.size), absent)] = np.nan
        return moves

    def among_judged(self) -> HeldOut:
        """Predictions given that the class is one of those that are held out.

        Of another nothing can be learnt here: every probability that it has would look like a
        mistake.
        """
        absent, masked = self.unjudged, self.masked
        if not absent.size:
            return self

        def without(values: np.ndarray) -> np.ndarray:
            values = values.copy()
            values[..., absent] = values.max(axis=-1, keepdims=True) - EXCLUDED
            return values

        if masked is not None:
            masked = replace(masked, values=without(masked.values))
        return replace(self, values=without(self.values), masked=masked)

    def take(self, rows: Bool[np.ndarray, " obs"]) -> HeldOut:
        """Some of the rows."""
        masked, folds, units = self.masked, self.folds, self.units
        if masked is not None:
            masked = replace(masked, values=masked.values[rows], hidden=masked.hidden[rows])
        return HeldOut(
            self.values[rows],
            self.labels[rows],
            self.weights[rows],
            masked,
            None if folds is None else folds[rows],
            self.log_shares,
            None if units is None else units.take(rows),
        )

    def of_candidate(self, place: int) -> HeldOut:
        """Predictions of one of several candidates, whose number is the second axis."""
        masked = self.masked
        if masked is not None:
            masked = replace(masked, values=masked.values[:, :, place])
        return replace(self, values=self.values[:, place], masked=masked)

    def selection[C](
        self, candidates: Sequence[C], *, calibrate: bool, margin: float = 0.0
    ) -> Selection[C]:
        """Candidates by the log scores of their class log joints.

        ``calibrate`` judges each at its best temperature, at which it would be used.
        """
        each = [self.of_candidate(place) for place in range(len(candidates))]
        row_scores = [one.log_scores(one.temperature if calibrate else 1.0) for one in each]
        return Selection(tuple(candidates), np.array(row_scores), self.weights, margin)

    def log_scores(self, temperature: float = 1.0) -> Float[np.ndarray, " obs"]:
        """Log scores of class log joints at a temperature, in nats."""
        return log_scores(tempered(self.among_judged().values, temperature), self.labels)

    @property
    def temperature(self) -> float:
        """Temperature of class log joints, of one draw or of several."""
        return fit_temperature(self.among_judged().values, self.labels, self.weights)

    def calibration(self, temperature: float) -> Recalibration | None:
        """Calibration of tempered log probabilities at every knot of the share of hidden cells.

        None where no cells were hidden. Predictions of several draws are averaged.
        """
        judged = self.among_judged()
        if judged.masked is None:
            return None
        every = np.concatenate([judged.values[:, None], judged.masked.values], axis=1)
        n_versions = every.shape[1]
        labels, weights = (np.repeat(one, n_versions) for one in (self.labels, self.weights))
        log_p = tempered(every.reshape(labels.size, *every.shape[2:]), temperature)
        if log_p.ndim > 2:
            log_p = logsumexp(log_p, axis=1) - np.log(log_p.shape[1])
        by_knot = knot_weights(judged.masked.hidden.reshape(-1)) * weights[:, None]
        powers = [
            fit_powers(log_p[some], labels[some], at_knot[some], judged.masked.log_shares)
            for at_knot, some in zip(by_knot.T, by_knot.T > 0, strict=True)
        ]
        temperatures, pulls = np.array(powers).T.copy()
        return Recalibration(temperatures, pulls, judged.masked.log_shares)


def hold_out(
    splits: Iterable[Fold],
    predict: Predict,
    classes: np.ndarray | None,
    n_jobs: int | None = None,
    required: Int[np.ndarray, " class"] | None = None,
    masking: Masking | None = None,
) -> HeldOut | None:
    """Fit to the training rows of every fold and predict its held-out rows; None if there are none.

    ``n_jobs`` processes share the folds; :func:`numbered_folds` has the classes that they need.
    With ``masking`` the rows are predicted with cells hidden, too.
    """
    folds = numbered_folds(splits, classes, required)
    if not folds:
        return None

    def answer(fold: NumberedFold) -> tuple[np.ndarray, list[Observations]]:
        number, train, test = fold
        versions = [test] if masking is None else masking.versions(number, train, test)
        values = predict(number, train, joined_rows(versions))
        by_version = values.reshape(len(versions), -1, *values.shape[1:])
        return np.moveaxis(by_version, 0, 1), versions

    answers = run_tasks(answer, folds, "Holding rows out", n_jobs)
    values, versions = zip(*answers, strict=True)
    shares = None if classes is None else log_shares(folds[0], classes.size)
    return replace(joined(values, versions, masking), log_shares=shares)


def log_shares(fold: NumberedFold, n_classes: int) -> Float[np.ndarray, " label"]:
    """Log shares of the classes among the labelled training rows of a fold."""
    _, rows, _ = fold
    rows = rows.take(rows.labels < n_classes)  # a code beyond is a set of classes
    with np.errstate(divide="ignore"):
        return np.log(class_shares(rows.labels, rows.weights, n_classes))


def joined(
    values: Sequence[np.ndarray],
    versions: Sequence[Sequence[Observations]],
    masking: Masking | None,
) -> HeldOut:
    """What was said of the rows held out in every fold, one fold after another.

    The values of a fold are of shape (n_held_out, n_versions, ...).
    """
    masked = None
    if masking is not None and all(len(every) > 1 for every in versions):
        masked = masking.answered(values, [masking.hidden(every) for every in versions])
    return HeldOut(
        np.concatenate([answers[:, 0] for answers in values]),
        np.concatenate([test.labels for test, *_ in versions]),
        np.concatenate([test.weights for test, *_ in versions]),
        masked,
        np.repeat(np.arange(len(values)), [len(answers) for answers in values]),
        units=joined_units([(test.units, test.n_obs) for test, *_ in versions]),
    )
