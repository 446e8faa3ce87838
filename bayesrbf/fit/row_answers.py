"""Answers about rows as labelled datasets: their frames, and the uncertainty of every row."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from bayesrbf.base import names
from bayesrbf.fit.probabilities import PredictiveSummary

if TYPE_CHECKING:
    import pandas as pd


class RowAnswers(xr.Dataset):  # type: ignore[no-untyped-call]
    """A dataset over the rows of a table.

    >>> gains = {"gain": (("obs", "column"), [[0.1, 0.2]]), "best": ("obs", ["dose"])}
    >>> answers = RowAnswers(gains, {"obs": ["p7"], "column": ["age", "dose"]})
    >>> answers.to_dataframe().to_dict("index")
    {'p7': {'gain[age]': 0.1, 'gain[dose]': 0.2, 'best': 'dose'}}
    """

    __slots__ = ()

    def to_netcdf(self, *args: Any, **options: Any) -> Any:
        """Write a file, as xarray does; names of rows that are tuples, periods or such are text."""
        rows = self.coords.get(names.OBS)
        if rows is not None and rows.dtype == object:
            rows = np.array([str(row) for row in rows.to_numpy().tolist()])
            named = self.drop_vars(names.OBS).assign_coords({names.OBS: rows})
            return super(RowAnswers, named).to_netcdf(*args, **options)
        return super().to_netcdf(*args, **options)

    def to_dataframe(self, dim_order: Sequence[Any] | None = None) -> pd.DataFrame:
        """One line for every row of the table; with ``dim_order``, xarray's long frame instead.

        What is said of classes or columns stands side by side, as in ``probability[sick]`` and
        ``shapley[age, sick]``.
        """
        import pandas as pd

        if dim_order is not None or names.OBS not in self.dims:
            return super().to_dataframe(dim_order)
        columns: dict[str, Any] = {}
        for name, variable in self.data_vars.items():
            if names.OBS not in variable.dims:
                continue
            by_row = variable.transpose(names.OBS, ...)
            others = [by_row[dim].to_numpy().tolist() for dim in by_row.dims[1:]]
            figures = by_row.to_numpy().reshape(by_row.shape[0], math.prod(by_row.shape[1:]))
            for place, along in enumerate(product(*others)):
                label = f"{name}[{', '.join(map(str, along))}]" if along else str(name)
                columns[label] = figures[:, place]
        return pd.DataFrame(columns, index=self.get_index(names.OBS))


_DESCRIPTIONS = {
    names.PROBABILITY: "class probability as predict_proba gives it",
    "sd": "standard deviation of the draws around it",
    "lower": "lower end of the equal-tailed interval of the class probability",
    "upper": "upper end of the equal-tailed interval of the class probability",
    "total_entropy": "entropy of the class probabilities (nats)",
    "aleatoric_entropy": "what knowing the draw would leave: overlap of the classes (nats)",
    "epistemic_entropy": "what knowing the draw would take away: doubt about the model (nats)",
    "log_density": "log density of the observed cells under the mixture (nats)",
    "novelty": "share of the model's own rows with the same holes that are more typical",
}


def to_dataset(
    summary: PredictiveSummary,
    labels: Sequence[object] | np.ndarray,
    rows: Sequence[object] | np.ndarray,
    novelty: Float[np.ndarray, " obs"],
    point_estimate: bool,
    assumes_model: bool,
) -> xr.Dataset:
    """Pack a predictive summary under the names of its classes and rows; entropies are in nats.

    A ``point_estimate`` is a single draw, which says nothing of its own uncertainty: spreads are
    NaN then, and a warning says so. Intervals that assume the model say so.
    """
    # not above: predictions by the mean over draws need no xarray

    if point_estimate:
        warnings.warn(
            "The model was fitted to a point: sd, intervals and the split of the entropy are "
            "NaN. Call refine() first to have them.",
            stacklevel=3,
        )
    unknown = np.nan if point_estimate else 1.0
    by_class = (names.OBS, names.LABEL)
    variables = {
        names.PROBABILITY: (by_class, summary.mean),
        "sd": (by_class, summary.sd * unknown),
        "lower": (by_class, summary.lower * unknown),
        "upper": (by_class, summary.upper * unknown),
        "total_entropy": ((names.OBS,), summary.total),
        "aleatoric_entropy": ((names.OBS,), summary.aleatoric * unknown),
        "epistemic_entropy": ((names.OBS,), summary.epistemic * unknown),
        "log_density": ((names.OBS,), summary.log_density),
        "novelty": ((names.OBS,), novelty),
    }
    says = dict(_DESCRIPTIONS)
    if assumes_model:
        says |= {end: f"{_DESCRIPTIONS[end]}, if the model is right" for end in ("lower", "upper")}
    return RowAnswers(
        {
            name: (dims, values, {"description": says[name]})
            for name, (dims, values) in variables.items()
        },
        coords={names.OBS: np.asarray(rows), names.LABEL: np.asarray(labels)},
        attrs={
            "prob": summary.prob,
            "point_estimate": int(point_estimate),
            "assumes_model": int(assumes_model),
        },
    )
