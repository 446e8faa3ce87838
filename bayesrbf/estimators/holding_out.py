"""Predictions of the rows that are held out of a fit, and the calibration that they give."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.special import logsumexp
from sklearn.utils.parallel import Parallel, delayed

from bayesrbf.estimators.folds import Fold, numbered_folds, split_rows
from bayesrbf.estimators.warning import warn
from bayesrbf.fitted.masking import Masking
from bayesrbf.inference.progress import progress
from bayesrbf.numerics.hidden_share import knot_weights
from bayesrbf.posterior.recalibration import fit_powers, fit_temperature, log_scores, tempered
from bayesrbf.records.masked_rows import MaskedRows, Recalibration
from bayesrbf.records.mixture import Observations, joined_rows

Predict = Callable[[int, Observations, Observations], np.ndarray]
"""Maps the number of a fold, its training and its held-out rows to an entry a held-out row."""


@dataclass(frozen=True)
class HeldOut:
    """Out-of-fold predictions of all folds, one fold after another."""

    values: Float[np.ndarray, "obs *values"]
    labels: Int[np.ndarray, " obs"]  # True class codes.
    weights: Float[np.ndarray, " obs"]
    masked: MaskedRows | None = None
    """What is said of the rows with more of their cells hidden."""

    def of_setting(self, setting: int) -> HeldOut:
        """What one of several settings said."""
        masked = self.masked
        if masked is not None:
            masked = replace(masked, values=masked.values[:, :, setting])
        return replace(self, values=self.values[:, setting], masked=masked)


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
    versions = [
        [test] if masking is None else masking.versions(number, train, test)
        for number, train, test in folds
    ]
    with progress(False) as track:
        values = Parallel(n_jobs=n_jobs)(
            delayed(predict)(number, train, joined_rows(every))
            for (number, train, _), every in zip(
                track(folds, "Holding rows out"), versions, strict=True
            )
        )
    by_version = [
        np.moveaxis(said.reshape(len(every), -1, *said.shape[1:]), 0, 1)
        for said, every in zip(values, versions, strict=True)
    ]
    return joined(by_version, versions, masking)


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
        np.concatenate([said[:, 0] for said in values]),
        np.concatenate([test.labels for test, *_ in versions]),
        np.concatenate([test.weights for test, *_ in versions]),
        masked,
    )


def best_setting(
    held: HeldOut, *, calibrate: bool, margin: float = 0.0
) -> tuple[int, Float[np.ndarray, " setting"], float]:
    """Setting of the best out-of-fold log score, the first of equals; scores; its temperature.

    The values are class log joints of shape (n_held_out, n_settings, n_classes). ``calibrate``
    judges probabilities at their best temperature, as they will be given out. A setting takes the
    place of one before it if it is better by more than ``margin`` standard errors of the paired
    difference: on small tables the largest of several scores is mostly luck.
    """
    joints, labels, weights = np.moveaxis(held.values, 1, 0), held.labels, held.weights
    of_rows = np.array([log_scores(one, labels, weights, calibrate=calibrate) for one in joints])
    best, total = 0, weights.sum()
    for later in range(1, len(joints)):
        gains = of_rows[later] - of_rows[best]
        gain = weights @ gains / total
        error = np.sqrt(weights @ (gains - gain) ** 2) / total
        best = later if gain > margin * error else best
    return best, of_rows @ weights / total, fit_temperature(joints[best], labels, weights)


def out_of_fold_calibration(
    predict: Predict,
    cv: object,
    rows: Observations,
    kept: Int[np.ndarray, " kept"],
    classes: np.ndarray,
    seed: int,
    owner: str,
    masking: Masking | None,
) -> tuple[float, Recalibration | None]:
    """Temperature of class log joints, of one draw or of several, on rows the model has not seen.

    It is 1, with a warning that names the ``owner``, where no row was held out. With ``masking``
    there is, too, what calibrates the tempered probabilities where cells are hidden.
    """
    # Codes beyond the classes are sets of several: such a row tells of no single class.
    splits = (
        (train, test.take(test.labels < classes.size))
        for train, test in split_rows(cv, rows, kept, seed)
    )
    certain = np.intersect1d(rows.labels, np.arange(classes.size))
    held = hold_out(splits, predict, classes, required=certain, masking=masking)
    if held is not None:
        temperature = fit_temperature(held.values, held.labels, held.weights)
        return temperature, fit_calibration(held, temperature)
    warn(
        f"{owner}(calibrate=True): cv={cv} holds out no labelled row (the only row of a "
        "class never is), so the temperature is 1; label more rows, or give other splits."
    )
    return 1.0, None


def fit_calibration(held: HeldOut, temperature: float) -> Recalibration | None:
    """What calibrates tempered log probabilities at every knot of the share of hidden cells.

    None where no cells were hidden. What a model says under several draws is averaged.
    """
    if held.masked is None:
        return None
    every = np.concatenate([held.values[:, None], held.masked.values], axis=1)
    n_versions = every.shape[1]
    labels, weights = (np.repeat(one, n_versions) for one in (held.labels, held.weights))
    log_p = tempered(every.reshape(labels.size, *every.shape[2:]), temperature)
    if log_p.ndim > 2:
        log_p = logsumexp(log_p, axis=1) - np.log(log_p.shape[1])
    by_knot = knot_weights(held.masked.hidden.reshape(-1)) * weights[:, None]
    powers = [
        fit_powers(log_p[some], labels[some], at_knot[some], held.masked.log_shares)
        for at_knot, some in zip(by_knot.T, by_knot.T > 0, strict=True)
    ]
    temperatures, pulls = np.array(powers).T.copy()
    return Recalibration(temperatures, pulls, held.masked.log_shares)
