"""Conformal p values by crepes."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

Groups = Int[np.ndarray, " obs"]


def import_crepes() -> Any:
    """The library, which is an extra; the filter of warnings that it sets for all is undone."""
    try:
        with warnings.catch_warnings():
            import crepes
    except ImportError as error:
        raise ImportError(
            "ConformalSets needs crepes, which is not installed: run  pip install crepes."
        ) from error
    return crepes


def p_values(
    calibration: Sequence[Float[np.ndarray, " _"]],
    calibration_groups: Sequence[Int[np.ndarray, " _"]],
    scores: Sequence[Float[np.ndarray, "obs label"]],
    groups: Groups,
) -> Float[np.ndarray, "obs label"]:
    r"""Share of the rows of a group, and the row itself, at least as strange as the row would be.

    Every fold k has a model, its held-out rows :math:`S_k` and the scores that the model gives the
    new row. Folds are put together as in cross-conformal prediction,

    .. math:: p(c) = \frac{1 + \sum_k |\{i \in S_k : a_i \ge a^{(k)}(c)\}|}{1 + \sum_k |S_k|}.
    """
    crepes = import_crepes()
    stranger, n = np.zeros(scores[0].shape), np.zeros(groups.size)
    for fold_scores, fold_groups, new_scores in zip(
        calibration, calibration_groups, scores, strict=True
    ):
        size = (fold_groups[:, None] == groups).sum(axis=0)
        fold = crepes.ConformalClassifier().fit(fold_scores, bins=fold_groups)
        p = fold.predict_p(new_scores, bins=groups, smoothing=False)
        stranger += np.rint(p * (size + 1)[:, None] - 1)
        n += size
    return (1 + stranger) / (1 + n)[:, None]
