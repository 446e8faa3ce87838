"""How sure a classifier is of each row, as a labelled dataset."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import xarray as xr

from bayesrbf.posterior.summary import PredictiveSummary
from bayesrbf.records import names

_DESCRIPTIONS = {
    "mean": "class probability as predict_proba gives it",
    "sd": "standard deviation of the draws around it",
    "lower": "lower end of the equal-tailed interval of the class probability",
    "upper": "upper end of the equal-tailed interval of the class probability",
    "total_entropy": "entropy of the class probabilities (nats)",
    "aleatoric_entropy": "total less epistemic entropy: what more rows would not resolve (nats)",
    "epistemic_entropy": "what the draws tell of the class: what more rows would resolve (nats)",
    "novelty": "log density of the observed cells under the mixture: low is novel",
}


def to_dataset(
    summary: PredictiveSummary,
    labels: Sequence[object] | np.ndarray,
    rows: Sequence[object] | np.ndarray,
    *,
    point_estimate: bool,
) -> xr.Dataset:
    """Pack a predictive summary under the names of its classes and rows; entropies are in nats.

    A ``point_estimate`` is a single draw, which says nothing of its own uncertainty: spreads are
    NaN then, and a warning says so.
    """
    if point_estimate:
        warnings.warn(
            "The model was fitted to a point: sd, intervals and the split of the entropy are "
            "NaN. Call refine() first to have them.",
            stacklevel=3,
        )
    unknown = np.nan if point_estimate else 1.0
    by_class = (names.OBS, names.LABEL)
    variables = {
        "mean": (by_class, summary.mean),
        "sd": (by_class, summary.sd * unknown),
        "lower": (by_class, summary.lower * unknown),
        "upper": (by_class, summary.upper * unknown),
        "total_entropy": ((names.OBS,), summary.total),
        "aleatoric_entropy": ((names.OBS,), summary.aleatoric * unknown),
        "epistemic_entropy": ((names.OBS,), summary.epistemic * unknown),
        "novelty": ((names.OBS,), summary.log_density),
    }
    return xr.Dataset(
        {
            name: (dims, values, {"description": _DESCRIPTIONS[name]})
            for name, (dims, values) in variables.items()
        },
        coords={names.OBS: np.asarray(rows), names.LABEL: np.asarray(labels)},
        attrs={"prob": summary.prob, "point_estimate": int(point_estimate)},
    )
