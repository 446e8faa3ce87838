"""Questions about cells of a row given its other cells."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bayesrbf import table
from bayesrbf.estimators.answers.asking import Fit, new_cells
from bayesrbf.estimators.answers.conditional_distribution import ConditionalDistribution
from bayesrbf.estimators.arguments import Rule, integer
from bayesrbf.records.mixture import MixtureParameters

DRAWS: Final[Rule] = integer(None)


def conditional(
    fit: Fit, X: object, columns: Any = None, *, draws: int | None = None
) -> ConditionalDistribution:
    """Distribution of some cells of each row, given the others.

    It is the exact conditional distribution of the density, for any pattern of missing cells. Its
    mean fills a table as :meth:`impute` does, its quantiles are prediction intervals, its draws
    multiple imputations. Columns that are named are predicted from the others in every row; their
    own cells and the labels are not used.

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows with missing cells.
    columns : str, int or list of them, optional
        Names or positions of columns that are unknown in every row. None: the missing cells of
        each row.
    draws : int, optional
        Number of posterior draws whose distributions are averaged, at that many times the cost.
        None: the distribution at the fitted point.

    Returns
    -------
    ConditionalDistribution
        With ``mean()``, ``sd()``, ``quantile(q)``, ``probabilities(column)``,
        ``log_density(values)`` and ``sample(n)``.

    Raises
    ------
    ValueError
        If the table has no such column, an argument cannot be used, or there are no draws.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesrbf import MixtureDensity
    >>> x = np.random.default_rng(0).normal(size=(500, 1))
    >>> noise = np.random.default_rng(1).normal(size=(500, 1))
    >>> density = MixtureDensity(random_state=0).fit(np.hstack([x, 10 * x + noise]))
    >>> given = density.conditional([[1.0, np.nan], [np.nan, 20.0]])
    >>> given
    ConditionalDistribution of 2 cells in 2 of 2 rows, at the fitted point
      0: x1 9.894 ± 1.4
      1: x0 1.977 ± 0.14
    >>> given.mean().round(1)
        x0   x1
    0  NaN  9.9
    1  2.0  NaN
    >>> without_last = density.conditional([[1.0, 3.0]], "x1")
    >>> [round(float(without_last.quantile(q).iloc[0, 0]), 1) for q in (0.05, 0.95)]
    [7.5, 12.3]
    """
    DRAWS.check(draws, "conditional(draws=...)")
    cells = new_cells(fit, X).cells
    observed = table.observed_cells(cells, fit.columns)
    asked = ~observed
    if columns is not None:
        asked[:] = False
        named = columns.tolist() if hasattr(columns, "tolist") else columns
        for item in [named] if isinstance(named, str | int) else named:
            place = table.column_position("conditional(columns=...)", item, fit.columns.names)
            asked[:, place] = True
    points: tuple[MixtureParameters, ...] = (fit.density.parameters,)
    if draws is not None:
        if fit.draws is None:
            raise ValueError(
                f"{fit.table.owner}.conditional(draws={draws}) needs draws of the posterior, "
                "and the model was fitted to a point: call refine() first, or leave draws out."
            )
        points = tuple(fit.drawn_densities(draws, np.random.default_rng(fit.table.seed)))
    given = table.hide(cells, asked & observed, fit.columns)
    return ConditionalDistribution(
        asked, fit.columns, given, fit.density, points, X, fit.table.seed
    )
