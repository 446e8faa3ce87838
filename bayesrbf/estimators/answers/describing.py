"""What a fit took the columns of its table for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bayesrbf.estimators.answers.asking import Fit

if TYPE_CHECKING:
    import pandas as pd


def describe_columns(fit: Fit) -> pd.DataFrame:
    """Kind, levels, missing cells and map of each column of the training table.

    Returns
    -------
    DataFrame
        One row for each column, whose name is the index: ``kind`` (real, categorical, count or
        ordinal), ``levels`` (a list; None for numbers), ``missing`` (number of cells in the fit)
        and ``map``, the power of a real column with ``column_maps="power"`` (1 changes nothing),
        NaN where there is none.
    """
    import pandas as pd

    columns, maps = fit.columns, fit.model.maps
    levels = dict(zip(columns.categorical_positions, columns.levels, strict=True))
    levels |= dict(zip(columns.positions("ordinal"), columns.ordinal_levels, strict=True))
    powers = {} if maps is None else dict(zip(columns.real_positions, maps.powers, strict=True))
    places = range(len(columns.names))
    return pd.DataFrame(
        {
            "kind": columns.kinds,
            "levels": [list(levels[place]) if place in levels else None for place in places],
            "missing": columns.missing,
            "map": [float(powers.get(place, np.nan)) for place in places],
        },
        index=pd.Index(columns.names, name="name"),
    )
