"""Dependence between columns and the class, as a labelled matrix."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Final

import numpy as np

from bayesrbf.estimators.answers.asking import Fit
from bayesrbf.estimators.arguments import Rule, integer
from bayesrbf.fitted.fitted_mixture import mixture_coords
from bayesrbf.numerics.mixture.dependence import mutual_information
from bayesrbf.records import names

if TYPE_CHECKING:
    import xarray as xr

COLUMN_BIS: Final = "column_bis"
"""The second axis of a matrix over columns."""
POINTS_OF_DRAWS: Final = 256
"""Points of a component under a draw, whose own spread is larger than their error."""
PROB: Final = Rule("a number between 0 and 1", kind=Real, low=0.0, high=1.0, closed="neither")

_DESCRIPTIONS: Final = {
    "information": "mutual information under the fitted density (nats)",
    "coefficient": "sqrt(1 - exp(-2 information)): of two normal columns |correlation|",
    "lower": "lower end of the equal-tailed interval of the information over the draws",
    "upper": "upper end of the equal-tailed interval of the information over the draws",
}


def dependence(fit: Fit, prob: float = 0.9, draws: int = 50) -> xr.Dataset:
    """How much every two columns tell of each other, and of the class, under the density.

    Mutual information includes every kind of dependence and does not depend on units. A column has
    information on the class even if it depends on the class only through other columns.

    Parameters
    ----------
    prob : float
        Probability inside the equal-tailed intervals.
    draws : int
        Number of posterior draws, where there are any, that the intervals are of.

    Returns
    -------
    xarray.Dataset
        ``information`` over column and column_bis in nats, NaN of a column with itself; its
        ``coefficient`` from 0 to 1, which of two normal columns is the size of their correlation;
        the interval ``lower`` to ``upper``, which holds the fitted information.
        The interval is NaN for a point, and where draws leave the density as it is, as those of
        stacks and kernel networks do. The columns are the ``label``, the real ones, the categorical
        ones, missingness indicators, and for a real column with atoms an indicator of which atom
        the cell is. There is no label where the density was fitted without it, as in RBF networks
        and sparse mixtures.

    Raises
    ------
    ValueError
        If an argument cannot be used.
    """
    import xarray as xr

    PROB.check(prob, "dependence(prob=...)")
    integer().check(draws, "dependence(draws=...)")
    mixture = fit.density
    structure = mixture.specification
    fitted = mutual_information(mixture.parameters, structure)
    lower = upper = np.full(fitted.shape, np.nan)
    if fit.draws is not None:
        rng = np.random.default_rng(fit.table.seed)
        points = fit.drawn_densities(draws, rng)
        if points[0] is not mixture.parameters:  # the density is drawn, too
            of_points = [mutual_information(one, structure, POINTS_OF_DRAWS) for one in points]
            lower, upper = np.quantile(of_points, ((1 - prob) / 2, (1 + prob) / 2), axis=0)
            lower, upper = np.minimum(lower, fitted), np.maximum(upper, fitted)
    columns = mixture_coords(structure, fit.axes)[names.COLUMN]
    first = int(structure.n_classes == 1)  # a density has no label
    columns = columns[first:]
    both = (names.COLUMN, COLUMN_BIS)
    values = {
        "information": fitted,
        "coefficient": np.sqrt(-np.expm1(-2 * fitted)),
        "lower": lower,
        "upper": upper,
    }
    return xr.Dataset(
        {
            name: (both, matrix, {"description": _DESCRIPTIONS[name]})
            for name, matrix in values.items()
        },
        coords={names.COLUMN: columns, COLUMN_BIS: columns},
        attrs={"prob": prob},
    )
