"""What to measure next: the expected gain of measuring each missing cell of a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Bool, Float

from bayesrbf import table
from bayesrbf.answers.decide import read_costs
from bayesrbf.base import names
from bayesrbf.base.rows import Observations, in_blocks
from bayesrbf.fit.arguments import Rule
from bayesrbf.fit.asking import Fit, new_cells
from bayesrbf.fit.decisions import best_measurement, expected_costs
from bayesrbf.fit.probabilities import entropy
from bayesrbf.mixture.cells import ConditionalLaw, conditional_law
from bayesrbf.mixture.fitted import FittedMixture
from bayesrbf.table.columns import Columns

if TYPE_CHECKING:
    import xarray as xr


# Expected gain of measuring a missing cell.
#
# With R the doubt about the class of a row, its entropy or the cost of the best decision, a cell j
# is worth
#
# .. math:: R[p(c | x_o)] - \sum_v p(x_j = v | x_o) \, R[p(c | x_o, x_j = v)],
#
# summed over levels, and over the nodes of every component's quadrature where j is real. Where one
# density gives the cell and the class it is never below 0, but for the quadrature.


NUMBERS_OF_OUTCOME: Final = 64
"""Numbers that predicting a row under one outcome of a measurement takes."""
OUTCOMES: Final = 128
"""Outcomes of a cell that are expected, about."""

Outcomes = tuple[Float[np.ndarray, "obs point"], Float[np.ndarray, "obs point"]]
"""Values of a cell in every row, as numbers or as codes of levels, and their probabilities."""


def outcomes(law: ConditionalLaw, columns: Columns, position: int) -> Outcomes:
    """Possible values of a column and their probabilities, as if all its cells were missing."""
    if columns.kinds[position] == "real":
        feature = columns.real_positions.index(position)
        n_obs = law.rows.n_obs
        blocks = [(rows, *laws.points(feature)) for rows, laws in law.reals()]
        values, weights = np.empty((2, n_obs, blocks[0][1].shape[1]))
        for rows, places, masses in blocks:
            values[rows], weights[rows] = places, masses
        return values, weights
    probabilities = law.levels(columns.categorical_positions.index(position))
    codes = np.arange(probabilities.shape[1], dtype=np.float64)
    return np.broadcast_to(codes, probabilities.shape), probabilities


def measurement_gains(
    rows: Observations,
    measured: Bool[np.ndarray, "obs column"],
    mixture: FittedMixture,
    columns: Columns,
    doubt: Callable[[Observations], Float[np.ndarray, " row"]],
) -> Float[np.ndarray, "obs column"]:
    """Expected fall of the doubt about every row if a missing cell were measured; NaN elsewhere.

    Rows are in the user's units; the mixture says what may be found in a cell.
    """
    gains = np.full(measured.shape, np.nan)
    for part in in_blocks(rows.n_obs, NUMBERS_OF_OUTCOME * OUTCOMES):
        block = np.arange(part.start, part.stop)
        before = doubt(rows.take(block))
        for position in np.flatnonzero(measured[block].any(axis=0)).tolist():
            mine = block[measured[block, position]]
            some = rows.take(mine)
            law = conditional_law(mixture, some, columns, [mixture.parameters])
            values, shares = outcomes(law, columns, position)
            after = np.zeros(mine.size)
            at, point = np.nonzero(shares)
            for some_outcomes in in_blocks(at.size, NUMBERS_OF_OUTCOME):
                here, which = at[some_outcomes], point[some_outcomes]
                rows_measured = table.with_column(
                    some.take(here), position, values[here, which], columns
                )
                after += np.bincount(here, shares[here, which] * doubt(rows_measured), mine.size)
            gains[mine, position] = before[mine - part.start] - after
    return gains


# What to measure next, as a labelled dataset.


_DRAWS: Final = Rule("an integer of at least 1", kind=Integral, low=1.0)
_DESCRIPTIONS: Final = {
    "gain": "expected fall of the doubt about the class if the cell were measured",
    "price": "price of measuring the cell",
    "best": "column to measure next; empty where none is worth it",
    "best_price": "price of that cell",
}


def acquire(
    fit: Fit, X: object, costs: object = None, loss: object = None, draws: int = 200
) -> xr.Dataset:
    """What each missing cell is worth if it were measured, and which one to measure next.

    The gain of a cell is the expected fall of the entropy of the class, or of the expected cost of
    the best decision. The expectation is over the values that the density expects in the cell. It
    is exact for levels, by quadrature in every component for real cells, and by 32 quantiles for
    counts. For expected costs the quadrature is right to a few per cent. If the density is not the
    classifier's own, as in a stack, a gain can be slightly below 0. Under
    ``missingness="informative"`` a measured cell still counts as one that was missing.

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows with missing cells.
    costs : float, mapping of column to float, or array-like of shape (n_columns,), optional
        Prices of the cells, at least 0. Columns that a mapping does not name cannot be measured.
        None: all prices are 0.
    loss : mapping, frame, nested mapping or array of shape (n_classes, n_decisions), optional
        Cost of every decision in a row of every class, as :meth:`decide` takes it, in the units of
        the prices. None: the gain is one of entropy, in nats.
    draws : int
        Number of draws that gains are averaged over, where probabilities are means over the draws
        of :meth:`refine`. The time grows with it.

    Returns
    -------
    xarray.Dataset
        ``gain`` and ``price`` over obs and column, NaN where the cell is observed, cannot be
        measured or was never observed at fit. Over obs ``best``, the column to measure next, and
        ``best_price``, its price. The best column has the largest gain; with prices the largest
        gain per price, and with a ``loss`` the largest gain minus price. It is an empty string
        where no gain is left.

    Raises
    ------
    ValueError
        If the prices, the losses, the number of draws or the table cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesrbf import HybridMixtureClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["a", "b"], 100)
    >>> X = rng.normal(size=(200, 2)) + 3 * (y == "b")[:, None] * [1.0, 0.0]
    >>> told = HybridMixtureClassifier(random_state=0).fit(X, y).acquire([[np.nan, np.nan]])
    >>> str(told["best"][0].item()), bool(told["gain"][0, 0] > 0.3)
    ('x0', True)
    """
    from bayesrbf.fit.row_answers import RowAnswers

    _DRAWS.check(draws, "acquire(draws=...)")
    columns = fit.columns
    prices = _read_prices(costs, columns.names)
    losses = None if loss is None else read_costs(loss, fit.classes, "acquire(loss=...)")[0]
    rows = new_cells(fit, X)
    cells = rows.cells
    measured = ~table.observed_cells(cells, columns) & ~np.isnan(prices)
    measured[:, columns.empty] = False

    def doubt(some: Observations) -> Float[np.ndarray, " row"]:
        p = np.exp(fit.class_log_probabilities(fit.model.seen(some), draws))
        return entropy(p) if losses is None else expected_costs(p, losses).min(axis=1)

    gain = measurement_gains(cells, measured, fit.density, columns, doubt)
    price = np.where(measured, prices, np.nan)
    best = best_measurement(gain, price, per_price=losses is None)
    chosen = np.array([*columns.names, ""])[best]
    paid = np.column_stack([price, np.full(len(price), np.nan)])[np.arange(len(price)), best]
    cell, row = (names.OBS, names.COLUMN), (names.OBS,)
    variables = {
        "gain": (cell, gain),
        "price": (cell, price),
        "best": (row, chosen),
        "best_price": (row, paid),
    }
    return RowAnswers(
        {
            name: (dims, values, {"description": _DESCRIPTIONS[name]})
            for name, (dims, values) in variables.items()
        },
        coords={names.OBS: rows.names, names.COLUMN: list(columns.names)},
    )


def _read_prices(costs: Any, columns: tuple[str, ...]) -> Float[np.ndarray, " column"]:
    """Price of every column; NaN where it cannot be measured."""
    if costs is None or isinstance(costs, Real):
        values = [0.0 if costs is None else costs] * len(columns)
        named: dict[str, Any] = dict(zip(columns, values, strict=True))
    elif isinstance(costs, Mapping) or hasattr(costs, "to_dict"):
        named = dict(costs)
        odd = [name for name in named if name not in columns]
        if odd or not named:
            raise ValueError(
                "acquire(costs=...) must name columns of the table, "
                f"{', '.join(map(repr, columns[:20]))}; received {odd[:1] or named!r}."
            )
    else:
        values = list(costs)
        if len(values) != len(columns):
            raise ValueError(
                f"acquire(costs=...) without names must have one price for each of the "
                f"{len(columns)} columns; received {len(values)}."
            )
        named = dict(zip(columns, values, strict=True))
    for name, price in named.items():
        if not isinstance(price, Real) or not 0 <= float(price) < np.inf:
            raise ValueError(
                f"acquire(costs=...) of {name!r} must be a finite number of at least 0; received "
                f"{price!r}."
            )
    return np.array([float(named.get(name, np.nan)) for name in columns])
