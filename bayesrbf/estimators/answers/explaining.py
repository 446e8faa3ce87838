"""Explains rows: the part of each cell in the log odds of the classes."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf import table
from bayesrbf.estimators.answers.asking import Fit, new_cells
from bayesrbf.estimators.arguments import Rule, positive
from bayesrbf.estimators.warning import warn
from bayesrbf.numerics.log_sums import to_log_odds
from bayesrbf.numerics.shapley import Effort, attribute
from bayesrbf.records import names

if TYPE_CHECKING:
    import xarray as xr

RULES: Final = {
    "exact": Rule("an integer from 1 to 20", kind=Integral, low=1.0, high=20.0, closed="both"),
    "tolerance": positive(),
    "max_pairs": Rule("an integer of at least 2", kind=Integral, low=2.0),
}

_DESCRIPTIONS: Final = {
    "shapley": "what the cell adds to the log odds, averaged over all orders (nats)",
    "left_out": "what the log odds lose without the cell, given all other observed cells (nats)",
    "standard_error": "standard error of shapley; 0 where every coalition was evaluated",
    "log_odds": "log odds of the class against the rest, as delivered (nats)",
    "base": "log odds with no observed cell (nats)",
    "evaluations": "rows that were predicted to explain this one",
}


def explain(
    fit: Fit,
    X: object,
    *,
    exact: int = 12,
    tolerance: float = 0.05,
    max_pairs: int = 256,
    random_state: int | None = None,
) -> xr.Dataset:
    """What each observed cell adds to the log odds of each class against the rest.

    The value of some cells of a row is the log odds that :meth:`predict_proba` gives when all
    others are missing. A Shapley value is what a cell adds to it, averaged over the orders in which
    the cells may be values. Those of a row sum to ``log_odds - base``.

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows; missing cells explain nothing and stay missing.
    exact : int
        Most observed cells of a row, at most 20, for which all ``2**m`` coalitions are evaluated.
    tolerance : float
        For rows with more: orders are drawn until every standard error is at most this in nats,
        or this share of ``|log_odds - base|`` where that is more than one nat.
    max_pairs : int
        Most pairs of an order and its reverse that are drawn for such a row.
    random_state : int, optional
        Seed of the orders, the same for every row; None: that of the fit.

    Returns
    -------
    xarray.Dataset
        ``shapley``, ``left_out`` (what is lost without the cell) and ``standard_error`` of the
        Shapley values over obs, column and label, NaN where the cell is missing; ``log_odds`` and
        ``base`` over obs and label; ``evaluations`` over obs: rows that were predicted for it.

    Raises
    ------
    ValueError
        If an argument or the table cannot be used.

    Warns
    -----
    UserWarning
        If a standard error is still larger after ``max_pairs``.
    """
    from bayesrbf.posterior.row_answers import RowAnswers

    asked = {"exact": exact, "tolerance": tolerance, "max_pairs": max_pairs}
    for name, value in asked.items():
        RULES[name].check(value, f"explain({name}=...)")
    rows = new_cells(fit, X)
    cells, columns, classes = rows.cells, fit.columns, fit.classes
    observed = table.observed_cells(cells, columns)

    def log_odds(
        places: Int[np.ndarray, " coalition"], shown: Bool[np.ndarray, "coalition column"]
    ) -> Float[np.ndarray, "coalition label"]:
        hidden = observed[places] & ~shown
        coalitions = table.hide(cells.take(places), hidden, columns)
        return to_log_odds(fit.class_log_probabilities(fit.model.seen(coalitions)))

    seed = fit.table.seed if random_state is None else random_state
    effort = Effort(int(exact), float(tolerance), int(max_pairs), seed)
    values = attribute(log_odds, observed, classes.size, effort)
    error = np.nanmax(values.relative_error, initial=0.0)
    if error > tolerance:
        warn(
            f"{fit.table.owner}.explain: {max_pairs} pairs of orders leave a relative standard "
            f"error of {error:.3g}, above tolerance={tolerance:g}; raise max_pairs or tolerance."
        )
    by_cell, by_row = (names.OBS, names.COLUMN, names.LABEL), (names.OBS, names.LABEL)
    variables = {
        "shapley": (by_cell, values.shapley),
        "left_out": (by_cell, values.left_out),
        "standard_error": (by_cell, values.standard_error),
        "log_odds": (by_row, values.whole),
        "base": (by_row, values.base),
        "evaluations": ((names.OBS,), values.evaluations),
    }
    return RowAnswers(
        {
            name: (dims, values, {"description": _DESCRIPTIONS[name]})
            for name, (dims, values) in variables.items()
        },
        coords={
            names.OBS: rows.names,
            names.COLUMN: list(columns.names),
            names.LABEL: classes,
        },
    )
