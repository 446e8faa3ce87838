"""What an estimator took the columns of its table for, and new cells that are in other units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float
from sklearn.utils.validation import check_is_fitted

from bayesrbf.estimators.warning import warn
from bayesrbf.posterior.two_tables import change_of_unit

if TYPE_CHECKING:
    import pandas as pd

ENOUGH: Final = 10
"""Number of new cells from which a column is compared with its training cells."""
CHANCE: Final = 1e-6
"""Probability that a change of unit is reported by chance alone."""


def describe_columns(self: Any) -> pd.DataFrame:
    """What each column of the training table was taken for.

    Returns
    -------
    DataFrame
        A row a column, with its name as index: ``kind`` (real, categorical, count or ordinal),
        ``levels`` (a list; None of numbers), ``missing`` (cells of the rows of the fit) and
        ``map``: the power of a real column of a mixture (``column_maps="power"``; 1 changes
        nothing), NaN where there is none.
    """
    import pandas as pd

    check_is_fitted(self)
    columns, maps = self.columns_, getattr(self.model_, "maps", None)
    levels = dict(zip(columns.categorical_positions, columns.levels, strict=True))
    levels |= dict(zip(columns.positions("ordinal"), columns.ordinal_levels, strict=True))
    powers = getattr(maps, "powers", None)
    of = {} if powers is None else dict(zip(columns.real_positions, powers, strict=True))
    places = range(len(columns.names))
    return pd.DataFrame(
        {
            "kind": columns.kinds,
            "levels": [list(levels[place]) if place in levels else None for place in places],
            "missing": columns.missing,
            "map": [float(of.get(place, np.nan)) for place in places],
        },
        index=pd.Index(columns.names, name="name"),
    )


def warn_of_units(
    names: tuple[str, ...],
    old: Float[np.ndarray, "row feature"],
    new: Float[np.ndarray, "obs feature"],
) -> None:
    """Warn of real columns whose new cells are all outside the old ones, as in another unit."""
    told = []
    for name, before, now in zip(names, old.T, new.T, strict=True):
        before, now = before[~np.isnan(before)], now[~np.isnan(now)]
        if now.size < ENOUGH or before.size < ENOUGH:
            continue
        if now.min() <= before.max() and now.max() >= before.min():
            continue
        change = change_of_unit(before, now, CHANCE)
        if change is None:
            continue
        known = f" ({change.name})" if change.name else ""
        what = f"{abs(change.offset):.3g} {'more' if change.offset > 0 else 'less'}"
        if change.scale != 1 and not change.offset:
            size = max(change.scale, 1 / change.scale)
            what = f"{size:.3g} times {'larger' if change.scale > 1 else 'smaller'}"
        elif change.scale != 1:
            what = "on another scale"
        told.append(
            f"Column {name!r} is {what}{known} than in training: its {now.size} cells lie between "
            f"{now.min():.4g} and {now.max():.4g}, those of training between {before.min():.4g} "
            f"and {before.max():.4g}."
        )
    if told:
        warn(f"{' '.join(told)} Give the column in the unit of training.")
