"""A rehearsal: labels drawn from known probabilities, and how often intervals held these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.categories import draw_categories
from bayesrbf.posterior.recalibration import fit_temperature, tempered

LEVELS: Final = (0.5, 0.8, 0.9)
"""Probabilities inside the intervals."""
SMALLEST: Final = 1e-3
"""Least probability of a class under a teacher, before it is tempered."""
ATTEMPTS: Final = 1000
FEWEST: Final = 2
"""Rows that every class keeps in drawn labels: folds need one on either side."""

_NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_DESCRIPTIONS: Final = {
    "coverage": "share of the teacher's probabilities that lie inside their intervals",
    "coverage_error": "standard error of the coverage over repeats (NaN: one repeat)",
    "width": "mean width of the intervals",
    "overall_coverage": "mean coverage over teachers and repeats",
    "overall_error": "standard error of the overall coverage over teachers and repeats",
    "overall_width": "mean width over teachers and repeats",
}


def truth(
    probabilities: Float[np.ndarray, "obs label"], labels: Int[np.ndarray, " obs"]
) -> Float[np.ndarray, "obs label"]:
    """Plausible class probabilities: a teacher's, tempered by labels that it has not seen."""
    logs = np.log(np.clip(probabilities, SMALLEST, 1.0))
    return np.exp(tempered(logs, fit_temperature(logs, labels, np.ones(labels.size))))


def drawn_labels(
    truth: Float[np.ndarray, "obs label"],
    labels: Int[np.ndarray, " obs"],
    copies: Int[np.ndarray, " obs"],
    rng: np.random.Generator,
) -> Int[np.ndarray, " obs"]:
    """Labels drawn from their probabilities; none of the classes is lost.

    Every row has the label of the first of its ``copies``.

    They are drawn again until each class has two rows, or one if it has no more in ``labels``.
    ValueError if a thousand attempts do not bring that.
    """
    n_classes = truth.shape[1]
    least = np.minimum(np.bincount(labels, minlength=n_classes), FEWEST)
    for _ in range(ATTEMPTS):
        drawn = draw_categories(truth, rng)[copies]
        if (np.bincount(drawn, minlength=n_classes) >= least).all():
            return drawn
    raise ValueError(
        f"rehearse() drew labels {ATTEMPTS} times, and each time a class had fewer than "
        f"{FEWEST} rows: y has too few rows of some class. Leave that class out."
    )


def covers(
    lower: Float[np.ndarray, "*levels obs label"],
    upper: Float[np.ndarray, "*levels obs label"],
    truth: Float[np.ndarray, "obs label"],
) -> Bool[np.ndarray, "*levels obs label"]:
    """Whether each interval holds the truth, ends included."""
    return (lower <= truth) & (truth <= upper)


def to_dataset(
    coverage: Float[np.ndarray, "teacher repeat level"],
    width: Float[np.ndarray, "teacher repeat level"],
    teachers: Sequence[str],
    method: str,
) -> xr.Dataset:
    """Pack the figures of every fit with their names.

    Rows of one fit err together, so errors are of the spread between fits: over repeats for a
    teacher, over all fits for the overall coverage.
    """
    by_teacher, overall = ("teacher", "level"), ("level",)
    n_teachers, n_repeats, n_levels = coverage.shape
    fits = coverage.reshape(-1, n_levels)
    variables = {
        "coverage": (by_teacher, coverage.mean(axis=1)),
        "coverage_error": (by_teacher, _standard_error(coverage.swapaxes(0, 1))),
        "width": (by_teacher, width.mean(axis=1)),
        "overall_coverage": (overall, fits.mean(axis=0)),
        "overall_error": (overall, _standard_error(fits)),
        "overall_width": (overall, width.mean(axis=(0, 1))),
    }
    return xr.Dataset(
        {
            name: (dims, values, {"description": _DESCRIPTIONS[name]})
            for name, (dims, values) in variables.items()
        },
        coords={"teacher": list(teachers), "level": list(LEVELS)},
        attrs={
            "sentence": sentence(LEVELS[-1], float(fits[:, -1].mean()), n_teachers),
            "method": method,
            "n_repeats": n_repeats,
        },
    )


def _standard_error(figures: Float[np.ndarray, "fit *rest"]) -> Float[np.ndarray, "*rest"]:
    """Standard error of the mean over fits; NaN for a single one."""
    if len(figures) == 1:
        return np.full(figures.shape[1:], np.nan)
    error: np.ndarray = figures.std(axis=0, ddof=1) / np.sqrt(len(figures))
    return error


def sentence(level: float, coverage: float, n_models: int) -> str:
    """A sentence: how often the intervals held the truth."""
    models = "one other model" if n_models == 1 else f"{_NUMBERS[n_models]} other models"
    return (
        f"{100 * level:.0f} % intervals held the truth {100 * coverage:.0f} times in 100 when "
        f"labels of these rows were drawn from {models}."
    )
