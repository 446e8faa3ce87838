"""The width of the kernel: candidates, and their choice by out-of-fold log loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.estimators.folds import split_rows
from bayesrbf.estimators.holding_out import HeldOut, best_setting, hold_out
from bayesrbf.estimators.warning import warn
from bayesrbf.fitted.fitted_exemplars import SearchSettings, exemplar_log_joint, search
from bayesrbf.records.median_lvq import (
    Dissimilarities,
    MedianLVQParameters,
    MedianLVQPrior,
    Prototypes,
    Sigma,
)
from bayesrbf.records.mixture import Observations

SIGMA_GRID: Final = (0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.8)
"""Values of sigma squared that cross-validation tries, in median dissimilarities, ascending."""


def widths_to_try(
    objective: str, sigma: object, prior: MedianLVQPrior, scale: float
) -> tuple[Sigma | None, ...]:
    """Widths among which cross-validation chooses; one where there is no choice.

    >>> widths_to_try("rslvq", 2, MedianLVQPrior(), 1.0)
    (2.0,)
    """
    if objective == "glvq":
        return (None,)
    if sigma == "sample":
        return (prior.resolve(scale),)
    if sigma == "cv":
        return tuple(float(np.sqrt(share * scale)) for share in SIGMA_GRID)
    return (float(sigma),)  # type: ignore[arg-type]  # checked before


def wider_ones(widths: Sequence[Sigma | None], chosen: Sigma | None) -> tuple[float, ...]:
    """Widths among those tried that lie above the chosen one, from the widest on.

    >>> wider_ones((1.0, 2.0, 3.0), 1.0)
    (3.0, 2.0)
    """
    above = widths[widths.index(chosen) + 1 :]
    return tuple(width for width in reversed(above) if isinstance(width, float))


def choose_width(
    rows: Dissimilarities,
    prototypes: Prototypes,
    widths: Sequence[Sigma | None],
    settings: SearchSettings,
    *,
    cv: object,
    kept: Int[np.ndarray, " obs"],
    classes: np.ndarray,
    calibrate: bool,
    owner: str,
) -> tuple[Sigma | None, float]:
    """Width of least held-out log loss, and the temperature that calibrates it."""
    if len(widths) == 1 and not calibrate:
        return widths[0], 1.0
    held = held_out(rows, prototypes, widths, settings, cv=cv, kept=kept, classes=classes)
    if held is None:
        warn(
            f"{owner}: no labelled row could be held out by cv={cv} (the only row of a class "
            "never is), so sigma is the middle of its grid and the temperature 1; label more "
            "rows, or give sigma."
        )
        return widths[len(widths) // 2], 1.0
    best, _, temperature = best_setting(held, calibrate=False)
    return widths[best], temperature if calibrate else 1.0


def held_out(
    rows: Dissimilarities,
    prototypes: Prototypes,
    widths: Sequence[Sigma | None],
    settings: SearchSettings,
    *,
    cv: object,
    kept: Int[np.ndarray, " obs"],
    classes: np.ndarray,
) -> HeldOut | None:
    """Class log joints of rows that the exemplars were not searched for with.

    A row that is held out is no exemplar and has no likelihood.
    """
    # Rows go by their position, which is all that the folds need to know of them.
    named = Observations(
        np.arange(rows.n_obs, dtype=np.float64)[:, None],
        np.empty((rows.n_obs, 0), dtype=np.intp),
        rows.labels,
        rows.weights,
    )

    def predict(
        fold: int, train: Observations, test: Observations
    ) -> Float[np.ndarray, "test width label"]:
        seen, unseen = (part.real[:, 0].astype(np.intp) for part in (train, test))
        seeded = replace(settings, n_init=1, seed=settings.seed + 1 + fold)
        found = _searched(_restricted(rows, seen), prototypes, widths, seeded)
        return np.stack(
            [
                exemplar_log_joint(rows.values[unseen[:, None], point.exemplars], prototypes, point)
                for point in found
            ],
            axis=1,
        )

    return hold_out(split_rows(cv, named, kept, settings.seed), predict, classes)


def _searched(
    rows: Dissimilarities,
    prototypes: Prototypes,
    widths: Sequence[Sigma | None],
    settings: SearchSettings,
) -> list[MedianLVQParameters]:
    """Exemplars under every width: a swap search starts where that of the next wider one ended.

    Wide kernels leave fewer optima; and widths that share their start are compared with less
    noise than by starts of their own.
    """
    found: list[MedianLVQParameters] = []
    for width in reversed(widths):
        start = found[-1].exemplars if found and settings.narrowing else None
        found.append(search(rows, prototypes, width, settings, start=start).parameters)
    return found[::-1]


def _restricted(rows: Dissimilarities, seen: Int[np.ndarray, " seen"]) -> Dissimilarities:
    """The same matrix, where only some rows have a label or may be exemplars."""
    labels = np.full(rows.n_obs, -1)
    labels[seen] = rows.labels[seen]
    candidates = tuple(part[np.isin(part, seen)] for part in rows.candidates)
    return replace(rows, labels=labels, candidates=candidates)
