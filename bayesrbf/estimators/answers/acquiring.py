"""What to measure next, as a labelled dataset."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float

from bayesrbf import table
from bayesrbf.estimators.answers.asking import Fit, new_cells
from bayesrbf.estimators.answers.deciding import read_costs
from bayesrbf.estimators.arguments import Rule
from bayesrbf.fitted.measuring import measurement_gains
from bayesrbf.posterior.decisions import best_measurement, expected_costs
from bayesrbf.posterior.uncertainty import entropy
from bayesrbf.records import names
from bayesrbf.records.mixture import Observations

if TYPE_CHECKING:
    import xarray as xr

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
    from bayesrbf.posterior.row_answers import RowAnswers

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
