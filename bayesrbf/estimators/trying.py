"""A stored row predicted by an estimator that was just read: a state that cannot is refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np


def try_stored_row(self: Any) -> None:
    """Check the arguments and predict one training row; ValueError where a number is none.

    ``load`` calls this last. What predicting needs and every later call shares is made by it.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        self._check_arguments()
        X = self._stored_row()
        said = {name: getattr(self, name)(X) for name in METHODS if hasattr(self, name)}
        if hasattr(self, "classes_"):
            said["predict_proba"] = self.predict_proba(X)
        # A network that was fitted to one joint tells its doubt without draws, too.
        joint = getattr(self, "scheme", "") == "joint"
        classifies = hasattr(self, "classes_") and hasattr(self, "uncertainty")
        if classifies and (joint or self.draws_ is not None):
            said["uncertainty"] = self.uncertainty(X)["probability"].values
    for name, values in said.items():
        if not np.isfinite(values).all():
            raise ValueError(f"{name} of a stored row gives {values.ravel()[0]}")
    probabilities = said.get("predict_proba", np.ones((1, 1)))
    if abs(probabilities.sum() - 1) > 1e-6:
        raise ValueError(f"the class probabilities of a stored row sum to {probabilities.sum()}")


METHODS = ("score_samples", "predict_interval")
"""Methods of any estimator that give numbers for rows."""
