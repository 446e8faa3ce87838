"""Rows scored by a model that has not seen them, fold by fold and in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils.parallel import Parallel, delayed

from bayesrbf.estimators.calibrating import split_rows
from bayesrbf.estimators.warning import warn
from bayesrbf.posterior.temperature import fit_temperature
from bayesrbf.records.mixture import Observations

Fold = tuple[Observations, Observations]


@dataclass(frozen=True)
class HeldOut:
    """What models said about rows that they were not fitted to.

    Attributes
    ----------
    values : ndarray of shape (n_held_out, ...)
        What was predicted, all folds one after another.
    labels : ndarray of shape (n_held_out,)
        True class codes.
    weights : ndarray of shape (n_held_out,)
        Row weights.
    """

    values: Float[np.ndarray, "obs *values"]
    labels: Int[np.ndarray, " obs"]
    weights: Float[np.ndarray, " obs"]


def hold_out(
    splits: Iterable[Fold],
    predict: Callable[[int, Observations, Observations], np.ndarray],
    classes: np.ndarray | None,
    n_jobs: int | None = None,
    required: Int[np.ndarray, " class"] | None = None,
) -> HeldOut | None:
    """Fit to the training rows of every fold and predict its held-out rows.

    Parameters
    ----------
    splits : iterable of (Observations, Observations)
        Training and held-out rows, in the user's units.
    predict : callable
        Maps number of the fold, training and held-out rows to an array with one
        entry a held-out row.
    classes : ndarray of shape (n_classes,) or None
        Class labels, each of which a fold needs to learn from; None for responses that are
        numbers.
    n_jobs : int, optional
        Processes that share the folds; one by default.
    required : ndarray of int, optional
        Codes of the classes that the training rows of every fold need; all by default.

    Returns
    -------
    HeldOut or None
        The predictions; None where no row was held out.

    Raises
    ------
    ValueError
        If the training rows of a fold lack a class.
    """
    folds = list(splits)
    if classes is not None:
        _require_classes(folds, classes, np.arange(classes.size) if required is None else required)
    numbered = [(fold, train, test) for fold, (train, test) in enumerate(folds) if test.n_obs]
    if not numbered:
        return None
    values = Parallel(n_jobs=n_jobs)(delayed(predict)(*fold) for fold in numbered)
    return HeldOut(
        np.concatenate(values),
        np.concatenate([test.labels for _, _, test in numbered]),
        np.concatenate([test.weights for _, _, test in numbered]),
    )


def _require_classes(folds: list[Fold], classes: np.ndarray, required: np.ndarray) -> None:
    """Every fold learns from rows of every required class."""
    for fold, (train, _) in enumerate(folds):
        absent = np.setdiff1d(required, train.labels)
        if absent.size:
            raise ValueError(
                f"the training rows of fold {fold} of cv have no row of class "
                f"{classes.tolist()[absent[0]]!r}; give splits whose training rows have every "
                "class, or an integer cv."
            )


def out_of_fold_temperature(
    predict: Callable[[int, Observations, Observations], np.ndarray],
    cv: object,
    rows: Observations,
    kept: Int[np.ndarray, " kept"],
    classes: np.ndarray,
    seed: int,
    owner: str,
) -> float:
    """Temperature of a model's class probabilities on rows it has not seen.

    Parameters
    ----------
    predict : callable
        Maps number of the fold, training and held-out rows to class log joints, of one
        draw or of several.
    cv : int, splitter or iterable
        Folds, as given to the constructor.
    rows : Observations
        Rows of positive weight, in the order given to ``fit``.
    kept : ndarray of shape (n_obs,)
        Position that each of them had in ``fit``.
    classes : ndarray of shape (n_classes,)
        Class labels, for messages.
    seed : int
        Seed of stratified folds.
    owner : str
        Name of the estimator, for the warning.

    Returns
    -------
    float
        The temperature; 1, with a warning, where no row was held out.
    """
    # Codes beyond the classes are sets of several: such a row tells of no single class.
    splits = (
        (train, test.take(test.labels < classes.size))
        for train, test in split_rows(cv, rows, kept, seed)
    )
    certain = np.intersect1d(rows.labels, np.arange(classes.size))
    held = hold_out(splits, predict, classes, required=certain)
    if held is not None:
        return fit_temperature(held.values, held.labels, held.weights)
    warn(
        f"{owner}(calibrate=True): cv={cv} holds out no labelled row (the only row of a "
        "class never is), so the temperature is 1; label more rows, or give other splits."
    )
    return 1.0
