"""The calibration of a classifier on rows that its fits have not seen."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
from jaxtyping import Float, Int

from bayesrbf import table
from bayesrbf.estimators.warning import warn
from bayesrbf.fitted.folds import split_rows
from bayesrbf.fitted.holding_out import HeldOut, Predict, hold_out
from bayesrbf.fitted.masking import masking_of
from bayesrbf.records.masked_rows import Recalibration
from bayesrbf.records.mixture import Observations


class Calibrated(TypedDict, total=False):
    """Fields of a ``FittedTable`` that say how its class probabilities are calibrated."""

    temperature: float
    calibration: Recalibration | None
    uncalibrated: Float[np.ndarray, " label"] | None
    averages: bool


def out_of_fold_calibration(
    predict: Predict,
    cv: object,
    rows: Observations,
    columns: table.Columns,
    kept: Int[np.ndarray, " kept"],
    classes: np.ndarray,
    seed: int,
    owner: str,
) -> Calibrated:
    """What rows that the model has not seen tell of class log joints, of one draw or of several.

    Nothing, with a warning that names the ``owner``, where no row was held out. Where cells of the
    columns can be hidden, there is also what calibrates the tempered probabilities then.
    """
    # Codes beyond the classes are sets of several: such a row tells of no single class.
    splits = (
        (train, test.take(test.labels < classes.size))
        for train, test in split_rows(cv, rows, kept, seed)
    )
    certain = np.intersect1d(rows.labels, np.arange(classes.size))
    masking = masking_of(rows, columns, classes.size, seed)
    predictions = hold_out(splits, predict, classes, required=certain, masking=masking)
    if predictions is not None:
        return calibrated(predictions)
    warn(
        f"{owner}(calibrate=True): cv={cv} holds out no labelled row (the only row of a "
        "class never is), so the temperature is 1; label more rows, or give other splits."
    )
    return {}


def calibrated(held_out: HeldOut) -> Calibrated:
    """What rows held out tell, and what becomes of classes that none of them has."""
    temperature = held_out.temperature
    return {
        "temperature": temperature,
        "calibration": held_out.calibration(temperature),
        "uncalibrated": held_out.uncalibrated,
    }
