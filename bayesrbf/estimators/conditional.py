"""Questions about cells of a row given its other cells."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bayesrbf import table
from bayesrbf.estimators.arguments import Rule, integer
from bayesrbf.estimators.conditional_distribution import ConditionalDistribution

DRAWS: Final[Rule] = integer(None)


def conditional(
    self: Any, X: Any, columns: Any = None, *, draws: int | None = None
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
    cells = self._read_cells(X)
    observed = table.observed_cells(cells, self.columns_)
    asked = ~observed
    if columns is not None:
        asked[:] = False
        named = columns.tolist() if hasattr(columns, "tolist") else columns
        for item in [named] if isinstance(named, str | int) else named:
            place = table.column_position("conditional(columns=...)", item, self.columns_.names)
            asked[:, place] = True
    points = (self._density.parameters,)
    if draws is not None:
        if self.draws_ is None:
            raise ValueError(
                f"{type(self).__name__}.conditional(draws={draws}) needs draws of the posterior, "
                "and the model was fitted to a point: call refine() first, or leave draws out."
            )
        points = tuple(self._drawn_densities(draws, np.random.default_rng(self.seed_)))
    given = table.hide(cells, asked & observed, self.columns_)
    return ConditionalDistribution(
        asked, self.columns_, given, self._density, points, X, self.seed_
    )
