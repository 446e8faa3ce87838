"""Out-of-fold predictions: what fits said of the rows that they had not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.fitted.masking import Masking
from bayesrbf.records.masked_rows import MaskedRows
from bayesrbf.records.mixture import Observations


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
