"""What rows without a label did to a stack: folds fitted once more without them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from bayesrbf.estimators.mixture.hybrid_objective import unlabelled_gain
from bayesrbf.fitted.held_out_rows import HeldOut
from bayesrbf.fitted.stack.pool import fit_pool
from bayesrbf.fitted.stack.stack_fitting import NumberedFold, StackSettings

SHARE: Final = 0.15
"""Share of the time of a fit that may be spent on it, unless a single fold takes more."""
ALWAYS: Final = 100
"""Rows that take as long as what a fit costs whatever the number of rows."""


def gain_of_unlabelled(
    settings: StackSettings,
    folds: Sequence[NumberedFold],
    held: HeldOut | None,
    n_jobs: int | None,
) -> str:
    """What rows without a label gained on labelled ones held out; empty where there are none.

    The first folds are fitted again without them, as many as the share allows, and one at least.
    Either kind of members has a pool of its own, fitted to the same rows held out.
    """
    if held is None or not (folds[0][1].labels < 0).any():
        return ""
    bare = [(number, train.take(train.labels >= 0), test) for number, train, test in folds]
    time = np.mean([ALWAYS + train.n_obs for _, train, _ in folds]) * (len(folds) + 1)
    more = np.cumsum([ALWAYS + train.n_obs for _, train, _ in bare])
    count = max(1, int((more <= SHARE * time).sum()))
    again, _ = replace(settings, masking=None).hold_out_folds(bare[:count], n_jobs)
    assert again is not None  # each of these folds holds a row out
    n = again.labels.size
    with_them = HeldOut(held.values[:n], held.labels[:n], held.weights[:n])
    gains = fit_pool(again).losses(again) - fit_pool(with_them).losses(with_them)
    return unlabelled_gain("as given", gains, with_them.weights)
