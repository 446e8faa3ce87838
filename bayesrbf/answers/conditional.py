"""Cells of a row given its other cells: distributions, samples, surprise, dependence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped
from scipy.stats import false_discovery_control

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.base.rows import MixtureParameters, Observations
from bayesrbf.fit.arguments import Rule, integer
from bayesrbf.fit.asking import Fit, new_rows, refuse
from bayesrbf.mixture.cells import (
    ConditionalLaw,
    JudgedCells,
    cell_law,
    conditional_law,
    drawn,
    judge_cells,
    levels_of,
    most_likely,
)
from bayesrbf.mixture.fitted import FittedMixture, mixture_coords
from bayesrbf.mixture.missing import mutual_information
from bayesrbf.table.columns import Columns, decimals_of, level_values
from bayesrbf.table.kinds import Kind

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr


# Questions to the density about rows and their missing cells.


def score_samples(fit: Fit, X: object) -> Float[np.ndarray, " obs"]:
    """Log density of the observed cells of each row."""
    return fit.density.log_density(new_rows(fit, X).cells)


def novelty(fit: Fit, X: object) -> Float[np.ndarray, " obs"]:
    """Novelty of each row compared with the training table, from 0 to 1."""
    return fit.novelty(new_rows(fit, X).cells)


def impute(fit: Fit, X: object, draws: int | None = None) -> Any:
    """Table like ``X`` with missing cells filled; with ``draws``, a list of so many such tables.

    A cell is filled with its conditional mean or most probable level. In the tables of ``draws``
    the missing cells of a row are drawn jointly. Observed cells are returned as they came.
    """
    rows, density = new_rows(fit, X).cells, fit.density
    if draws is None:
        return fit.table.decoded(most_likely(density, rows, fit.columns), X)
    if draws < 1:
        raise ValueError(f"impute(draws=...) must be at least 1; received {draws}.")
    rng = np.random.default_rng(fit.table.seed)
    points = [density.parameters] * draws
    if fit.draws is not None:
        points = fit.drawn_densities(draws, rng)
    return [fit.table.decoded(cells, X) for cells in drawn(density, rows, points, rng)]


# The distribution of cells of each row given its others, in the user's units.


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

    It is exact, a mixture with the responsibilities of the cells that are given. Numbers are in the
    units of the table, and frames have the index of it. Means, quantiles and draws of columns with
    a transform are held within the range of the training cells, widened by half of it on either
    side but not beyond 0 where all cells have one sign, as :meth:`MixtureDensity.impute` holds
    them; densities are not.

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
        """Lines on the first ``SHOWN`` of the rows: mean ± sd, or most probable level, by cell."""
        first_rows = rows[:SHOWN]
        if not first_rows.size:
            return
        index = self._index[first_rows]
        first = replace(
            self, asked=self.asked[first_rows], given=self.given.take(first_rows), rows=index
        )
        mean, sd = first.mean().to_numpy(), first.sd().to_numpy()
        numbers = {name: column for column, name in enumerate(first.mean())}
        for line, row in enumerate(index):
            phrases = []
            for position in np.flatnonzero(first.asked[line]).tolist():
                name = self.columns.names[position]
                if name in numbers and not self.columns.kinds[position].has_levels:
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
        """Means of numbers.

        Returns
        -------
        pandas.DataFrame
            One column for each column of numbers, or of ordered levels that are numbers, that is
            asked for; NaN where the cell is given. That of an angle is its mean direction. Other
            levels have no mean.
        """
        means = self._law.mean()
        return self._frame(
            self._unknown
            | {i: p @ values for i, (values, p) in self._scores().items()}
            | {i: means[:, at] for i, at in self.columns.number_features.items()}
            | {i: kind.decode(means[:, at]) for i, kind, at in self._together()}
        )

    def sd(self) -> pd.DataFrame:
        """Standard deviations of numbers; of an angle, the circular one.

        Returns
        -------
        pandas.DataFrame
            Columns and rows as :meth:`mean` has them.
        """
        sds, means = self._law.sd(), self._law.mean()
        return self._frame(
            self._unknown
            | {
                i: np.sqrt((p * (values - (p @ values)[:, None]) ** 2).sum(axis=1))
                for i, (values, p) in self._scores().items()
            }
            | {i: sds[:, at] for i, at in self.columns.number_features.items()}
            | {i: kind.deviation(means[:, at]) for i, kind, at in self._together()}
        )

    def quantile(self, q: float) -> pd.DataFrame:
        """Smallest cells at or below which a share of the distribution lies.

        Parameters
        ----------
        q : float
            The share, between 0 and 1.

        Returns
        -------
        pandas.DataFrame
            One column for each column of numbers or ordered levels that is asked for; NaN where the
            cell is given. Categories and angles have no order, and no quantiles.

        Raises
        ------
        ValueError
            If ``q`` is not between 0 and 1.
        """
        RULES["q"].check(q, "quantile(q)")
        quantiles = self._law.quantile(q)
        figures = {i: quantiles[:, at] for i, at in self.columns.number_features.items()}
        for i, kind in enumerate(self.columns.kinds):
            if kind.has_levels and kind.n_reals:
                (feature,) = self.columns.features[i]
                figures[i] = level_values(decimals_of(quantiles[:, feature]), kind.levels)
        return self._frame(self._unknown | figures)

    def probabilities(self, column: str | int) -> pd.DataFrame:
        """Probabilities of the levels of one column.

        Parameters
        ----------
        column : str or int
            Name or position of a column with levels, or of a real column with point masses: its
            levels are ``"another value"`` and the point masses.

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
        requested = self.asked[:, position]
        if not requested.any():
            raise ValueError(
                f"probabilities({column!r}): every cell of the column is given; name it in "
                "conditional(X, columns=...)."
            )
        shown = np.where(requested[:, None], probabilities, np.nan)
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
            ``log p(given, values) - log p(given)`` in nats, in the units of the table: a density in
            real cells, a probability of categories and at point masses. Of other kinds it is a
            density of what the model has for them: the root of a count, the place of an ordered
            level, cosine and sine of an angle.

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
        points = [self.points[draw % len(self.points)] for draw in range(n)]
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

    @property
    def _unknown(self) -> Figures:
        """NaN for columns that had no cell at fit."""
        return dict.fromkeys(self.columns.empty, np.full(self.given.n_obs, np.nan))

    def _together(self) -> Iterator[tuple[int, Kind, range]]:
        """Columns whose cells are several reals."""
        for i, features in enumerate(self.columns.features):
            if len(features) > 1:
                yield i, self.columns.kinds[i], features

    def _scores(self) -> dict[int, tuple[np.ndarray, Float[np.ndarray, "obs level"]]]:
        """Ordered levels that are numbers, and their probabilities."""
        scores = {}
        for i, kind in enumerate(self.columns.kinds):
            if kind.has_levels and kind.n_reals and not isinstance(kind.levels[0], str):
                scores[i] = np.array(kind.levels, dtype=float), self._levels(i)[1]
        return scores

    def _levels(self, position: int) -> tuple[tuple[object, ...], Float[np.ndarray, "obs level"]]:
        """Levels of a column, and their probabilities in every row; ValueError without levels."""
        columns, law = self.columns, self._law
        with_levels = levels_of(law, self.mixture, columns, position)
        if with_levels is not None:
            return with_levels
        raise ValueError(
            f"probabilities({columns.names[position]!r}): the column has no levels; use mean(), "
            "sd() and quantile(q), or log_density(values)."
        )

    def _frame(self, figures: Figures) -> pd.DataFrame:
        """One column for each table column that is asked for; NaN where the cell is given."""
        import pandas as pd

        named = {}
        for position in sorted(figures):
            requested, values = self.asked[:, position], figures[position]
            if requested.any():
                named[self.columns.names[position]] = np.where(requested, values, np.nan)
        return pd.DataFrame(named, index=self._index)


# Questions about cells of a row given its other cells.


DRAWS: Final[Rule] = integer(None)


def conditional(
    fit: Fit, X: object, columns: Any = None, *, draws: int | None = None
) -> ConditionalDistribution:
    """Joint distribution of requested cells of each row, given its other observed cells.

    Requested are all cells of the named ``columns``, observed or not; by default the missing cells.
    The distribution is at the fitted point, or a mean over ``draws`` draws of the parameters.
    """
    DRAWS.check(draws, "conditional(draws=...)")
    cells = new_rows(fit, X).cells
    observed = table.observed_cells(cells, fit.columns)
    requested = ~observed
    if columns is not None:
        requested[:] = False
        named = columns.tolist() if hasattr(columns, "tolist") else columns
        for item in [named] if isinstance(named, str | int) else named:
            position = table.column_position("conditional(columns=...)", item, fit.columns.names)
            requested[:, position] = True
    points: tuple[MixtureParameters, ...] = (fit.density.parameters,)
    if draws is not None:
        refuse(fit, f"{fit.table.owner}.conditional(draws={draws})", "draws")
        points = tuple(fit.drawn_densities(draws, np.random.default_rng(fit.table.seed)))
    known = table.hide(cells, requested & observed, fit.columns)
    return ConditionalDistribution(
        requested, fit.columns, known, fit.density, points, X, fit.table.seed
    )


# Dependence between columns and the class, as a labelled matrix.


COLUMN_BIS: Final = "column_bis"
"""The second axis of a matrix over columns."""
POINTS_OF_DRAWS: Final = 256
"""Points of a component under a draw, whose own spread is larger than their error."""
PROB: Final = Rule("a number between 0 and 1", kind=Real, low=0.0, high=1.0, closed="neither")


def dependence(fit: Fit, prob: float = 0.9, draws: int = 50) -> xr.Dataset:
    """Mutual information in nats of every pair of columns, and of columns and class.

    ``information`` is that of the fitted density, ``lower`` and ``upper`` the ends of its interval
    over ``draws`` points (NaN without draws), and ``coefficient`` the correlation of two normal
    columns with that information; each is over column and column.
    """
    import xarray as xr

    from bayesrbf.fit.row_answers import described

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
            of_points = [mutual_information(point, structure, POINTS_OF_DRAWS) for point in points]
            lower, upper = np.quantile(of_points, ((1 - prob) / 2, (1 + prob) / 2), axis=0)
            lower, upper = np.minimum(lower, fitted), np.maximum(upper, fitted)
    columns = mixture_coords(structure, fit.axes)[names.COLUMN]
    first = int(structure.n_classes == 1)  # a density has no label
    columns = columns[first:]
    both = (names.COLUMN, COLUMN_BIS)
    description = "sqrt(1 - exp(-2 information)): of two normal columns |correlation|"
    of = "end of the equal-tailed interval of the information over the draws"
    variables = {
        "information": (both, fitted, "mutual information under the fitted density (nats)"),
        "coefficient": (both, np.sqrt(-np.expm1(-2 * fitted)), description),
        "lower": (both, lower, f"lower {of}"),
        "upper": (both, upper, f"upper {of}"),
    }
    coords = {names.COLUMN: columns, COLUMN_BIS: columns}
    return xr.Dataset(described(variables), coords, {"prob": prob})


# Judges observed cells by the rest of their row, as a labelled dataset.


_SHARE = Rule("a number between 0 and 1", kind=Real, low=0.0, high=1.0, closed="neither")
SURPRISE_RULES: Final = {"prob": _SHARE, "false_discoveries": _SHARE}


def surprise(
    fit: Fit, X: object, *, prob: float = 0.9, false_discoveries: float = 0.1
) -> xr.Dataset:
    """Tail, expected value and interval of each observed cell given the rest of its row.

    Variables over obs and column are ``log_tail`` (nats), ``expected``, ``lower``, ``upper`` (NaN
    of levels and angles) and ``stands_out``, the cells that are called wrong by the procedure of
    Benjamini and Hochberg at the rate ``false_discoveries``.
    """
    from bayesrbf.fit.row_answers import RowAnswers, described

    for name, value in {"prob": prob, "false_discoveries": false_discoveries}.items():
        SURPRISE_RULES[name].check(value, f"surprise({name}=...)")
    rows = new_rows(fit, X)
    cells, mixture, columns = rows.cells, fit.density, fit.columns
    law = cell_law(mixture, columns, float(prob))
    verdict = judge_cells(mixture.standardise(cells), law)
    log_tail = by_column(verdict.log_tail, verdict.level_log_tail, columns)
    observed = ~np.isnan(log_tail)
    stands_out = np.zeros(log_tail.shape, dtype=bool)
    if observed.any():
        stands_out[observed] = (
            false_discovery_control(np.exp(log_tail[observed])) <= false_discoveries
        )
    nothing = np.full(cells.codes.shape, np.nan)
    # A level has no ends, and an angle no least and no greatest cell.
    ends = np.isin(np.arange(cells.real.shape[1]), [*columns.number_features.values()])
    lower, upper = (
        by_column(np.where(ends, bound, np.nan), nothing, columns)
        for bound in (verdict.lower, verdict.upper)
    )
    dims = (names.OBS, names.COLUMN)
    tail = "log probability of a cell at least as extreme, given the rest of its row (nats)"
    mean = "mean of a number, most probable level of a category, given the rest"
    end = "end of the central interval of a number given the rest"
    wrong = "whether the cell is among those that look wrong, at the false discovery rate"
    variables = {
        "log_tail": (dims, log_tail, tail),
        "expected": (dims, _expected(verdict, columns), mean),
        "lower": (dims, lower, f"lower {end}"),
        "upper": (dims, upper, f"upper {end}"),
        "stands_out": (dims, stands_out, wrong),
    }
    coords = {names.OBS: rows.names, names.COLUMN: list(columns.names)}
    attrs = {"prob": prob, "false_discoveries": false_discoveries}
    return RowAnswers(described(variables), coords, attrs)


def by_column(reals: np.ndarray, levels: np.ndarray, columns: Columns) -> np.ndarray:
    """Figures of real and categorical cells in the order of the table's columns."""
    result = np.full((len(reals), len(columns.names)), np.nan, np.result_type(reals, levels))
    result[:, columns.real_positions] = reals
    result[:, [*columns.code_of]] = levels[:, : len(columns.levels)]
    return result


def _expected(verdict: JudgedCells, columns: Columns) -> np.ndarray:
    """Mean or most probable level of every cell: (obs, column), objects if a column has levels.

    A missing cell has NaN, or None in a column with levels.
    """
    codes, reals = verdict.level_expected.astype(float), verdict.expected
    expected = by_column(reals, np.where(codes < 0, np.nan, codes), columns)
    for position, (kind, features) in enumerate(zip(columns.kinds, columns.features, strict=True)):
        if len(features) > 1:
            expected[:, position] = kind.decode(reals[:, features])
    if not columns.levels_of:
        return expected
    cells = expected.astype(object)
    for position, kind in enumerate(columns.kinds):
        if kind.has_levels:
            values = np.array([*kind.levels, None], dtype=object)
            cells[:, position] = values[decimals_of(np.round(expected[:, position]))]
    return cells
