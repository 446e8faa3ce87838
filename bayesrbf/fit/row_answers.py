"""Answers about rows as labelled datasets: their frames, and the uncertainty of every row."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
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
        """Frame with one line per row of the table; xarray's long frame with ``dim_order``.

        Values by class or column are columns such as ``probability[sick]`` and
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
            coordinates = [by_row[dim].to_numpy().tolist() for dim in by_row.dims[1:]]
            figures = by_row.to_numpy().reshape(by_row.shape[0], math.prod(by_row.shape[1:]))
            for index, along in enumerate(product(*coordinates)):
                label = f"{name}[{', '.join(map(str, along))}]" if along else str(name)
                columns[label] = figures[:, index]
        return pd.DataFrame(columns, index=self.get_index(names.OBS))


def described(
    variables: Mapping[str, tuple[tuple[str, ...], np.ndarray, str]],
) -> dict[str, tuple[tuple[str, ...], np.ndarray, dict[str, str]]]:
    """Variables of a dataset from the dims, the values and the description of each."""
    return {
        name: (dims, values, {"description": text})
        for name, (dims, values, text) in variables.items()
    }


def to_dataset(
    summary: PredictiveSummary,
    labels: Sequence[object] | np.ndarray,
    rows: Sequence[object] | np.ndarray,
    of_rows: Mapping[str, Float[np.ndarray, " obs"]],
    point_estimate: bool,
    assumes_model: bool,
) -> xr.Dataset:
    """Predictive summary as a dataset over rows and classes; entropies are in nats.

    ``of_rows`` has the novelty and familiarity of every row. A ``point_estimate`` is a single draw,
    which says nothing of its own uncertainty: spreads are NaN then, and a warning says so.
    Intervals that assume the model say so.
    """
    if point_estimate:
        warnings.warn(
            "The model was fitted to a point: sd, intervals and the split of the entropy are "
            "NaN. Call refine() first to have them.",
            stacklevel=3,
        )
    unknown = np.nan if point_estimate else 1.0
    row, by_class = (names.OBS,), (names.OBS, names.LABEL)
    if_right = ", if the model is right" if assumes_model else ""
    end = f"end of the equal-tailed interval of the class probability{if_right}"
    overlap = "what knowing the draw would leave: overlap of the classes (nats)"
    uncertainty = "what knowing the draw would take away: uncertainty about the model (nats)"
    of_cells = "log density of the observed cells under the mixture (nats)"
    typical = "share of the model's own rows with the same holes that are more typical"
    familiar = "probability that cells are missing for the reasons of training; NaN: not judged"
    variables = {
        names.PROBABILITY: (by_class, summary.mean, "class probability as predict_proba gives it"),
        "sd": (by_class, summary.sd * unknown, "standard deviation of the draws around it"),
        "lower": (by_class, summary.lower * unknown, f"lower {end}"),
        "upper": (by_class, summary.upper * unknown, f"upper {end}"),
        "total_entropy": (row, summary.total, "entropy of the class probabilities (nats)"),
        "aleatoric_entropy": (row, summary.aleatoric * unknown, overlap),
        "epistemic_entropy": (row, summary.epistemic * unknown, uncertainty),
        "log_density": (row, summary.log_density, of_cells),
        "novelty": (row, of_rows["novelty"], typical),
        "familiarity": (row, of_rows["familiarity"], familiar),
    }
    return RowAnswers(
        described(variables),
        coords={names.OBS: np.asarray(rows), names.LABEL: np.asarray(labels)},
        attrs={
            "prob": summary.prob,
            "point_estimate": int(point_estimate),
            "assumes_model": int(assumes_model),
        },
    )
