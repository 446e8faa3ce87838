"""Rows scored by a model that has not seen them, fold by fold and in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from sklearn.utils.parallel import Parallel, delayed

from bayesrbf.parameters import Observations

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
    classes: np.ndarray,
    n_jobs: int | None = None,
) -> HeldOut | None:
    """Fit to the training rows of every fold and predict its held-out rows.

    Parameters
    ----------
    splits : iterable of (Observations, Observations)
        Training and held-out rows, in the user's units.
    predict : callable
        Maps number of the fold, training and held-out rows to an array with one
        entry a held-out row.
    classes : ndarray of shape (n_classes,)
        Class labels, for messages.
    n_jobs : int, optional
        Processes that share the folds; one by default.

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
    for fold, (train, _) in enumerate(folds):
        absent = np.setdiff1d(np.arange(classes.size), train.labels)
        if absent.size:
            raise ValueError(
                f"the training rows of fold {fold} of cv have no row of class "
                f"{classes.tolist()[absent[0]]!r}; give splits whose training rows have every "
                "class, or an integer cv."
            )
    numbered = [(fold, train, test) for fold, (train, test) in enumerate(folds) if test.n_obs]
    if not numbered:
        return None
    values = Parallel(n_jobs=n_jobs)(delayed(predict)(*fold) for fold in numbered)
    return HeldOut(
        np.concatenate(values),
        np.concatenate([test.labels for _, _, test in numbered]),
        np.concatenate([test.weights for _, _, test in numbered]),
    )
