"""Answers about rows: a labelled dataset whose frame has one line for every row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from bayesrbf.records import names

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
