"""The decision of least expected cost for each row, as a labelled dataset."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float, Shaped

from bayesrbf import table
from bayesrbf.posterior.decisions import expected_costs
from bayesrbf.records import names

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.estimators.classifier import Classifier

DECISION: Final = "decision"
"""Dim of what may be decided."""

_DESCRIPTIONS: Final = {
    "expected_cost": "expected cost of the decision under the delivered probabilities",
    "best": "decision of least expected cost",
    "cost": "its expected cost",
    "probability_best": "share of the draws under which it costs least; NaN at a point",
    "refer": "whether rejecting the row is cheaper than the best decision",
}


def decide(self: Classifier, X: Any, costs: Any, reject: float | None = None) -> xr.Dataset:
    """Decide for each row what costs least in the mean of its class probabilities.

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows; missing cells are summed out.
    costs : frame, nested mapping or array of shape (n_classes, n_decisions)
        Cost of every decision (column) in a row of every class: a pandas frame with the classes as
        index, ``{class: {decision: cost}}``, or an array in the order of ``classes_``, whose
        decisions are answers with a class where there are as many, else numbers. Gains are
        negative costs.
    reject : float, optional
        Cost of referring a row to somebody else instead.

    Returns
    -------
    xarray.Dataset
        ``expected_cost`` over obs and decision; over obs the ``best`` decision, its ``cost``,
        ``probability_best``: the share of the draws, as :meth:`uncertainty` has them, under which
        it costs least (NaN where the model was fitted to a point), and ``refer`` where ``reject``
        is given: whether that is cheaper.

    Raises
    ------
    ValueError
        If the costs do not name every class and no other, or one is missing or not finite.
    """
    import xarray as xr

    rows = self._read(X)
    matrix, decisions = read_costs(costs, self.classes_)
    if reject is not None:
        _check_cost(reject, "decide(reject=...)")
    p = np.exp(self._delivered(rows))
    expected = expected_costs(p, matrix)
    chosen = expected.argmin(axis=1)
    least = expected.min(axis=1)
    agreeing = np.full(rows.n_obs, np.nan)
    if self.draws_ is not None:
        posterior, centred = self._class_posterior(), not self._averages
        agreeing = posterior.probability_best(rows, chosen, matrix, p, centred)
    variables = {
        "expected_cost": ((names.OBS, DECISION), expected),
        "best": ((names.OBS,), decisions[chosen]),
        "cost": ((names.OBS,), least),
        "probability_best": ((names.OBS,), agreeing),
    }
    if reject is not None:
        variables["refer"] = ((names.OBS,), reject < least)
    return xr.Dataset(
        {
            name: (dims, values, {"description": _DESCRIPTIONS[name]})
            for name, (dims, values) in variables.items()
        },
        coords={names.OBS: table.row_names(X, rows.n_obs), DECISION: decisions},
    )


def read_costs(
    costs: Any, classes: Shaped[np.ndarray, " label"]
) -> tuple[Float[np.ndarray, "label decision"], Shaped[np.ndarray, " decision"]]:
    """Costs in the order of the classes, and the names of the decisions.

    >>> costs = {"sick": {"treat": 1, "wait": 20}, "well": {"treat": 2, "wait": 0}}
    >>> read_costs(costs, np.array(["sick", "well"]))
    (array([[ 1., 20.],
           [ 2.,  0.]]), array(['treat', 'wait'], dtype=object))
    """
    import pandas as pd

    labels = classes.tolist()
    if not isinstance(costs, Mapping | pd.DataFrame):
        return _read_array(costs, classes)
    if isinstance(costs, pd.DataFrame):
        for axis, name in ((costs.index, "class"), (costs.columns, "decision")):
            if not axis.is_unique:
                twice = axis[axis.duplicated()][0]
                raise ValueError(f"decide(costs=...) has the {name} {twice!r} twice; keep one.")
        costs = costs.to_dict(orient="index")
    odd = [key for key in costs if key not in labels]
    if odd or len(costs) < len(labels):
        absent = [label for label in labels if label not in costs]
        raise ValueError(
            f"decide(costs=...) must have one row for every class of {labels} and for nothing "
            f"else; look at {(odd + absent)[0]!r}."
        )
    for label, row in costs.items():
        if not isinstance(row, Mapping):
            raise ValueError(
                "decide(costs=...) as a mapping must be {class: {decision: cost}}; received "
                f"{row!r} for the class {label!r}."
            )
    decisions = list(costs[labels[0]])
    for label in labels:
        unequal = set(costs[label]) ^ set(decisions)
        if unequal or not decisions:
            raise ValueError(
                "decide(costs=...) must have the same decisions, one at least, for every class; "
                f"look at {sorted(unequal, key=str)} for the class {label!r}."
            )
    values = [[costs[label][decision] for decision in decisions] for label in labels]
    for label, row in zip(labels, values, strict=True):
        for decision, cost in zip(decisions, row, strict=True):
            _check_cost(cost, f"decide(costs=...) of {decision!r} for the class {label!r}")
    named = np.empty(len(decisions), dtype=object)
    named[:] = decisions
    return np.array(values, dtype=np.float64), named


def _read_array(
    costs: Any, classes: Shaped[np.ndarray, " label"]
) -> tuple[Float[np.ndarray, "label decision"], Shaped[np.ndarray, " decision"]]:
    """Costs without names: rows in the order of the classes."""
    matrix = np.asarray(costs)
    if matrix.ndim != 2 or len(matrix) != classes.size or not matrix.size:
        raise ValueError(
            "decide(costs=...) as an array must have one row for each of the classes "
            f"{classes.tolist()} and one column a decision; received shape {matrix.shape}."
        )
    for (row, column), cost in np.ndenumerate(matrix):
        _check_cost(cost, f"decide(costs=...)[{row}, {column}]")
    same = matrix.shape[1] == classes.size
    return matrix.astype(np.float64), classes if same else np.arange(matrix.shape[1])


def _check_cost(cost: object, argument: str) -> None:
    """Refuse costs that are no finite numbers."""
    if not isinstance(cost, Real) or not np.isfinite(float(cost)):
        raise ValueError(f"{argument} must be a finite number; received {cost!r}.")
