"""What rows without a label did to a stack: folds fitted once more without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from bayesrbf.estimators.stack.fitting import StackSettings, fit_pool
from bayesrbf.fitted.folds import Fold
from bayesrbf.fitted.holding_out import HeldOut
from bayesrbf.numerics.stack.pooling import pooled
from bayesrbf.posterior.scores import log_loss
from bayesrbf.posterior.selection import unlabelled_gain

SHARE: Final = 0.15
"""Share of the time of a fit that may be spent on it, unless a single fold takes more."""
ALWAYS: Final = 100
"""Rows that take as long as what a fit costs whatever the number of rows."""


def gain_of_unlabelled(
    settings: StackSettings,
    folds: Sequence[Fold],
    held: HeldOut | None,
    classes: np.ndarray,
    n_jobs: int | None,
) -> str:
    """What rows without a label gained on labelled ones held out; empty where there are none.

    The first folds are fitted again without them, as many as the share allows, and one at least.
    Either kind of members has a pool of its own, fitted to the same rows held out.
    """
    folds = [(train, test) for train, test in folds if test.n_obs]
    if held is None or not (folds[0][0].labels < 0).any():
        return ""
    bare = [(train.take(train.labels >= 0), test) for train, test in folds]
    time = np.mean([ALWAYS + train.n_obs for train, _ in folds]) * (len(folds) + 1)
    more = np.cumsum([ALWAYS + train.n_obs for train, _ in bare])
    count = max(1, int((more <= SHARE * time).sum()))
    again, _ = replace(settings, masking=None).hold_out_folds(bare[:count], classes, n_jobs)
    assert again is not None  # each of these folds holds a row out
    n = again.labels.size
    those = HeldOut(held.values[:n], held.labels[:n], held.weights[:n])
    return unlabelled_gain("as given", _losses(again) - _losses(those), those.weights)


def _losses(held: HeldOut) -> np.ndarray:
    """Log loss of every row under the pool that is fitted to all of them."""
    pool = fit_pool(held)
    whole = pool.temperature * pooled(held.values, pool.weights, pool.member_temperatures)
    whole = whole - np.logaddexp.reduce(whole, axis=1, keepdims=True)
    losses: np.ndarray = log_loss(np.exp(whole), held.labels)
    return losses
