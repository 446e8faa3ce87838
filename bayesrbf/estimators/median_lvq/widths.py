"""The width of the kernel: candidates, and their choice by out-of-fold log loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Float, Int, Real

from bayesrbf import table
from bayesrbf.estimators.out_of_fold import Calibrated, calibrated
from bayesrbf.estimators.warning import warn
from bayesrbf.fitted.exemplar_sources import TableSource
from bayesrbf.fitted.fitted_exemplars import (
    SearchSettings,
    candidates_of,
    exemplar_log_joint,
    search,
)
from bayesrbf.fitted.folds import split_rows
from bayesrbf.fitted.holding_out import HeldOut, hold_out
from bayesrbf.fitted.masking import masking_of
from bayesrbf.records.median_lvq import (
    Dissimilarities,
    MedianLVQParameters,
    MedianLVQPrior,
    Prototypes,
    Sigma,
)
from bayesrbf.records.mixture import Observations, joined_rows
from bayesrbf.records.units import Units

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
    units: Units | None,
    classes: np.ndarray,
    calibrate: bool,
    masked: TableSource | None,
    owner: str,
) -> tuple[Sigma | None, Calibrated]:
    """Width of least held-out log loss, and what calibrates it: for all rows, for hidden cells."""
    if len(widths) == 1 and not calibrate:
        return widths[0], {}
    predictions = held_out(
        rows,
        prototypes,
        widths,
        settings,
        cv=cv,
        kept=kept,
        units=units,
        classes=classes,
        masked=masked,
    )
    if predictions is None:
        middle = "sigma is the middle of its grid and " if len(widths) > 1 else ""
        warn(
            f"{owner}: no labelled row could be held out by cv={cv} (the only row of a class "
            f"never is), so {middle}the temperature is 1; label more rows, or give sigma and "
            "calibrate=False."
        )
        return widths[len(widths) // 2], {}
    selection = predictions.selection(widths, calibrate=False)
    if not calibrate:
        return selection.chosen, {}
    return selection.chosen, calibrated(predictions.of_candidate(selection.best))


def held_out(
    rows: Dissimilarities,
    prototypes: Prototypes,
    widths: Sequence[Sigma | None],
    settings: SearchSettings,
    *,
    cv: object,
    kept: Int[np.ndarray, " obs"],
    units: Units | None,
    classes: np.ndarray,
    masked: TableSource | None,
) -> HeldOut | None:
    """Class log joints of rows that the exemplars were not searched for with.

    A row that is held out is no exemplar and has no likelihood. With a table to be ``masked`` it is
    compared with more and more of its cells hidden, too.
    """
    if masked is None:  # rows go by their position, which is all that folds need to know of them
        positions = np.arange(rows.n_obs, dtype=np.float64)[:, None]
        no_codes = np.empty((rows.n_obs, 0), dtype=np.intp)
        given, masking = Observations(positions, no_codes, rows.labels, rows.weights), None
    else:
        given = masked.cells
        masking = masking_of(given, masked.columns, classes.size, settings.seed)

    def compare(
        test: Observations, chosen: Int[np.ndarray, " prototype"]
    ) -> Real[np.ndarray, "test prototype"]:
        if masked is None:
            return rows.values[_places(test, given)[:, None], chosen]
        return masked.to_cells(test, chosen).real

    def predict(
        fold: int, train: Observations, test: Observations
    ) -> Float[np.ndarray, "test width label"]:
        seeded = replace(settings, n_init=1, seed=settings.seed + 1 + fold)
        points = _searched(_restricted(rows, _places(train, given)), prototypes, widths, seeded)
        return np.stack(
            [
                exemplar_log_joint(compare(test, point.exemplars), prototypes, point)
                for point in points
            ],
            axis=1,
        )

    splits = split_rows(cv, replace(given, units=units), kept, settings.seed)
    return hold_out(splits, predict, classes, masking=masking)


def _places(part: Observations, rows: Observations) -> Int[np.ndarray, " part"]:
    """Where each row of a part stands among distinct rows."""
    _, codes = table.distinct(joined_rows([rows, part]))
    return np.argsort(codes[: rows.n_obs])[codes[rows.n_obs :]]


def _searched(
    rows: Dissimilarities,
    prototypes: Prototypes,
    widths: Sequence[Sigma | None],
    settings: SearchSettings,
) -> list[MedianLVQParameters]:
    """Exemplars under every width: a search starts where that of the next wider one ended.

    Wide kernels leave fewer optima; and widths that share their start are compared with less
    noise than by starts of their own.
    """
    points: list[MedianLVQParameters] = []
    for width in reversed(widths):
        start = points[-1].exemplars if points else None
        points.append(search(rows, prototypes, width, settings, start=start).parameters)
    return points[::-1]


def _restricted(rows: Dissimilarities, seen: Int[np.ndarray, " seen"]) -> Dissimilarities:
    """Dissimilarities of all rows, of which only some have a label or may be exemplars."""
    labels = np.full(rows.n_obs, -1)
    labels[seen] = rows.labels[seen]
    return replace(rows, labels=labels, candidates=candidates_of(labels, rows.n_classes))
