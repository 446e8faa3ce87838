"""The distribution of cells of each row given its others, in the user's units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from bayesrbf import table
from bayesrbf.estimators.arguments import Rule, integer
from bayesrbf.fitted.completed_rows import conditional_law, drawn, levels_of
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.posterior.conditional_law import ConditionalLaw
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.table import Columns

if TYPE_CHECKING:
    import pandas as pd

SHOWN: Final = 8
"""Rows that are printed."""
Figures = dict[int, np.ndarray]
"""Figures of every row, by the position of the column."""

RULES: Final = {
    "n": integer(),
    "q": Rule("a number between 0 and 1", kind=Real, low=0.0, high=1.0, closed="neither"),
}


@dataclass(frozen=True, repr=False)
class ConditionalDistribution:
    """The distribution of cells of each row given its others: what ``conditional`` returns.

    It is exact, a mixture with the responsibilities of the cells that are given. Numbers are in
    the units of the table, and frames have the index of it. Means, quantiles and draws of columns
    with a map are held within the range of the training cells, widened by half of it on either
    side, as :meth:`MixtureDensity.impute` holds them; densities are not.

    Attributes
    ----------
    asked : ndarray of shape (n_obs, n_columns)
        Whether the distribution is of this cell; all other cells are given, or summed out where
        they are missing.
    columns : Columns
        Names and kinds of the columns of the table.
    given : Observations
        The rows without the cells that are asked for.
    mixture : FittedMixture
        The density.
    points : tuple of MixtureParameters
        Its parameters: the fitted ones, or some draws of them, whose distributions are averaged.
    rows : array-like or frame
        The table as it was given.
    seed : int
        Seed of :meth:`sample` where it is given none.
    """

    asked: Bool[np.ndarray, "obs column"]
    columns: Columns
    given: Observations
    mixture: FittedMixture
    points: tuple[MixtureParameters, ...]
    rows: object
    seed: int

    def __repr__(self) -> str:
        rows, cells = int(self.asked.any(axis=1).sum()), int(self.asked.sum())
        of = f"{cells} cell{'s'[: cells != 1]} in {rows} of {len(self.asked)} rows"
        where = "the fitted point" if len(self.points) == 1 else f"{len(self.points)} draws"
        shown = "\n".join(
            f"  {line}" for line in self._lines(np.flatnonzero(self.asked.any(axis=1)))
        )
        return f"ConditionalDistribution of {of}, at {where}\n{shown}".rstrip()

    def _lines(self, rows: Int[np.ndarray, " some"]) -> Iterator[str]:
        """The first of some rows in words: mean and deviation of a cell, or its likeliest level."""
        some = rows[:SHOWN]
        if not some.size:
            return
        index, names = self._index[some], self.columns.names
        first = replace(self, asked=self.asked[some], given=self.given.take(some), rows=index)
        mean, sd = first.mean().to_numpy(), first.sd().to_numpy()
        numbers = {name: place for place, name in enumerate(first.mean())}
        for line, row in enumerate(index):
            phrases = []
            for position in np.flatnonzero(first.asked[line]).tolist():
                name = names[position]
                if name in numbers:
                    at = numbers[name]
                    phrases.append(f"{name} {mean[line, at]:.4g} ± {sd[line, at]:.2g}")
                else:
                    levels, p = first._levels(position)
                    best = int(p[line].argmax())
                    phrases.append(f"{name} {levels[best]} ({p[line, best]:.2f})")
            yield f"{row}: {', '.join(phrases)}"
        if rows.size > SHOWN:
            yield f"... and {rows.size - SHOWN} more rows"

    @cached_property
    def _law(self) -> ConditionalLaw:
        return conditional_law(self.mixture, self.given, self.columns, self.points)

    def mean(self) -> pd.DataFrame:
        """Means of real cells.

        Returns
        -------
        pandas.DataFrame
            One column for each real column that is asked for; NaN where the cell is given. Levels
            have no mean.
        """
        return self._frame(self._of_reals(self._law.mean()))

    def sd(self) -> pd.DataFrame:
        """Standard deviations of real cells.

        Returns
        -------
        pandas.DataFrame
            Columns and rows as :meth:`mean` has them.
        """
        return self._frame(self._of_reals(self._law.sd()))

    def quantile(self, q: float) -> pd.DataFrame:
        """Smallest cells at or below which a share of the distribution lies.

        Parameters
        ----------
        q : float
            The share, between 0 and 1.

        Returns
        -------
        pandas.DataFrame
            One column for each real column that is asked for; NaN where the cell is given.
            Categories have no order, and no quantiles.

        Raises
        ------
        ValueError
            If ``q`` is not between 0 and 1.
        """
        RULES["q"].check(q, "quantile(q)")
        return self._frame(self._of_reals(self._law.quantile(q)))

    def probabilities(self, column: str | int) -> pd.DataFrame:
        """Probabilities of the levels of one column.

        Parameters
        ----------
        column : str or int
            Name or position of a column of categories, or of a real column with atoms: its levels
            are ``"another value"`` and the atoms.

        Returns
        -------
        pandas.DataFrame
            One column a level; rows sum to one, and are NaN where the cell is given.

        Raises
        ------
        ValueError
            If the column has no levels, or none of its cells is asked for.
        """
        import pandas as pd

        position = table.column_position("probabilities(column)", column, self.columns.names)
        levels, probabilities = self._levels(position)
        asked = self.asked[:, position]
        if not asked.any():
            raise ValueError(
                f"probabilities({column!r}): every cell of the column is given; name it in "
                "conditional(X, columns=...)."
            )
        shown = np.where(asked[:, None], probabilities, np.nan)
        return pd.DataFrame(shown, index=self._index, columns=list(levels))

    def log_density(self, values: object) -> pd.Series:
        """Joint log density of values of the cells that are asked for, one number a row.

        Parameters
        ----------
        values : array-like or frame of shape (n_obs, n_columns)
            A table like the one given. Only cells that are asked for are read; those that are
            missing are summed out.

        Returns
        -------
        pandas.Series
            ``log p(given, values) - log p(given)`` in nats, in the units of the table: a density
            in real cells, a probability in all others and at atoms.

        Raises
        ------
        ValueError
            If the table has other rows or columns, or a level that was not seen at fit.
        """
        import pandas as pd

        cells = table.encode(values, self.columns, handle_unknown="error")
        if cells.n_obs != self.given.n_obs:
            raise ValueError(
                f"log_density(values) must have the {self.given.n_obs} rows of the table that the "
                f"distribution is of; received {cells.n_obs}."
            )
        whole, mixture = self._with(cells), self.mixture
        log_density = self._law.log_density(mixture.standardise(whole))
        log_density = log_density + mixture.log_unit(whole) - mixture.log_unit(self.given)
        return pd.Series(log_density, index=self._index, name="log_density")

    def sample(self, n: int = 1, seed: int | None = None) -> list[Any]:
        """Draw the cells that are asked for jointly, row by row.

        Parameters
        ----------
        n : int
            Number of tables.
        seed : int, optional
            Seed of the draws; None: that of the fit.

        Returns
        -------
        list of the same container as ``X``
            Tables with the cells that are asked for drawn, and all others as they came. Where the
            distribution is a mean over draws of the parameters, each table is under one of them.

        Raises
        ------
        ValueError
            If ``n`` is below 1.
        """
        RULES["n"].check(n, "sample(n)")
        rng = np.random.default_rng(self.seed if seed is None else seed)
        tables = []
        points = [self.points[place % len(self.points)] for place in range(n)]
        for real, codes in drawn(self.mixture, self.given, points, rng):
            cells = self._with(replace(self.given, real=real, codes=codes))
            tables.append(table.decode(cells.real, cells.codes, self.columns, self.rows))
        return tables

    @property
    def _index(self) -> Shaped[np.ndarray, " obs"]:
        return table.row_names(self.rows, self.given.n_obs)

    def _with(self, cells: Observations) -> Observations:
        """The rows with the cells that are asked for from others."""
        return table.replaced(self.given, cells, self.asked, self.columns)

    def _of_reals(self, figures: Float[np.ndarray, "obs feature"]) -> Figures:
        """Figures of the real columns, and NaN for columns that had no cell at fit."""
        nothing = np.full(self.given.n_obs, np.nan)
        unknown = dict.fromkeys(self.columns.empty, nothing)
        return unknown | dict(zip(self.columns.real_positions, figures.T, strict=True))

    def _levels(self, position: int) -> tuple[tuple[object, ...], Float[np.ndarray, "obs level"]]:
        """Levels of a column, and their probabilities in every row."""
        columns, law = self.columns, self._law
        with_levels = levels_of(law, columns, position)
        if with_levels is not None:
            return with_levels
        raise ValueError(
            f"probabilities({columns.names[position]!r}): the column has no levels; use mean(), "
            "sd() and quantile(q), or log_density(values)."
        )

    def _frame(self, figures: Figures) -> pd.DataFrame:
        """Figures of columns side by side in the order of the table, where they are asked for."""
        import pandas as pd

        named = {}
        for position in sorted(figures):
            asked, values = self.asked[:, position], figures[position]
            if asked.any():
                named[self.columns.names[position]] = np.where(asked, values, np.nan)
        return pd.DataFrame(named, index=self._index)
