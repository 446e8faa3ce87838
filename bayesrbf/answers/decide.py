"""The decision of least expected cost for each row, as a labelled dataset."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float, Shaped

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.fit.arguments import PerClass
from bayesrbf.fit.asking import Fit, new_rows
from bayesrbf.fit.decisions import constant, cost_curve, expected_costs, mistakes, varied

if TYPE_CHECKING:
    import xarray as xr


DECISION: Final = "decision"
"""Dim of what may be decided."""

_DESCRIPTIONS: Final = {
    "expected_cost": "expected cost of the decision under the delivered probabilities",
    "best": "decision of least expected cost",
    "cost": "its expected cost",
    "probability_best": "share of the draws under which it costs least; NaN at a point",
    "refer": "whether rejecting the row is cheaper than the best decision",
}


def decide(fit: Fit, X: object, costs: object, reject: float | None = None) -> xr.Dataset:
    """Take the decision of least expected cost for each row.

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows; missing cells are summed out.
    costs : mapping, frame, nested mapping or array of shape (n_classes, n_decisions)
        ``{class: cost}`` says what it costs to mistake a row of a class, 1 where none is given, and
        the decisions are answers with a class. Else the cost of every decision (column) in a row of
        every class: a pandas frame with the classes as index, ``{class: {decision: cost}}``, or an
        array in the order of ``classes_``, whose decisions are answers with a class where there
        are as many, else numbers. Gains are negative costs.
    reject : float, optional
        Cost of referring a row to somebody else instead.

    Returns
    -------
    xarray.Dataset
        ``expected_cost`` over obs and decision. Over obs: the ``best`` decision, its ``cost``, and
        ``probability_best``, the share of the draws of :meth:`uncertainty` under which it costs
        least (NaN without draws). With ``reject`` also ``refer``: whether referring the row is
        cheaper.

    Raises
    ------
    ValueError
        If costs name what is no class, tables of them do not name every class, or one is missing
        or not finite.
    """
    from bayesrbf.fit.row_answers import RowAnswers

    rows = new_rows(fit, X)
    cells = rows.cells
    matrix, decisions = read_costs(costs, fit.classes)
    if reject is not None:
        _check_cost(reject, "decide(reject=...)")
    p = np.exp(fit.class_log_probabilities(cells))
    expected = expected_costs(p, matrix)
    chosen = expected.argmin(axis=1)
    least = expected.min(axis=1)
    agreeing = np.full(cells.n_obs, np.nan)
    if fit.draws is not None:
        posterior = fit.doubted_posterior
        agreeing = posterior.probability_best(cells, chosen, matrix, p, fit.centred)
    variables = {
        "expected_cost": ((names.OBS, DECISION), expected),
        "best": ((names.OBS,), decisions[chosen]),
        "cost": ((names.OBS,), least),
        "probability_best": ((names.OBS,), agreeing),
    }
    if reject is not None:
        variables["refer"] = ((names.OBS,), reject < least)
    return RowAnswers(
        {
            name: (dims, values, {"description": _DESCRIPTIONS[name]})
            for name, (dims, values) in variables.items()
        },
        coords={names.OBS: rows.names, DECISION: decisions},
    )


def cost_curves(
    y: object,
    probabilities: object,
    *,
    classes: object,
    label: object,
    costs: PerClass[float] | None = None,
    steps: int = 101,
) -> xr.Dataset:
    """What acting on probabilities costs, whatever the cost of one class.

    A mistaken row costs what its class costs. The cost of one class and the mean cost of all others
    add up to 1; the share of the one class in this sum runs from 0 to 1. Every classifier takes the
    decision of least expected cost.

    Parameters
    ----------
    y : array-like of shape (n_obs,)
        Labels of rows that the classifiers were not fitted to; rows whose label is hidden do not
        count.
    probabilities : array of shape (n_obs, n_classes) or mapping of str to such arrays
        Class probabilities of these rows, of one classifier or of several by name.
    classes : array-like of shape (n_classes,)
        Classes in the order of the columns, such as ``classes_``.
    label : object
        The class whose share in the costs varies.
    costs : mapping of class to float, optional
        Costs of the other classes, whose ratios stay; 1 where none is given.
    steps : int
        Number of shares.

    Returns
    -------
    xarray.Dataset
        Mean ``cost`` of a row over classifier and share, and over share the ``constant`` cost: that
        of the best answer which is the same for all rows.

    Raises
    ------
    ValueError
        If classes, labels, probabilities or costs do not fit together.

    Examples
    --------
    >>> p = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> curves = cost_curves([0, 0, 1, 1], p, classes=[0, 1], label=1, steps=3)
    >>> curves["cost"].to_numpy(), curves["constant"].to_numpy()
    (array([[0.   , 0.125, 0.   ]]), array([0.  , 0.25, 0.  ]))
    """
    import xarray as xr

    names_of = np.asarray(classes)
    each = _costs_of_classes(
        {} if costs is None else costs, names_of, "cost_curves(label=..., costs=...)", label
    )
    if not isinstance(steps, Integral) or steps < 2:
        raise ValueError(
            f"cost_curves(steps=...) must be an integer of at least 2; received {steps!r}."
        )
    label_names, codes = table.encode_labels(y)
    unknown = np.setdiff1d(label_names, names_of)
    if unknown.size:
        raise ValueError(
            f"cost_curves(y) holds {unknown[0]!r}, which is no class of {names_of.tolist()}."
        )
    labelled = codes >= 0
    labels = np.array([names_of.tolist().index(one) for one in label_names.tolist()])[
        codes[labelled]
    ]
    given = probabilities if isinstance(probabilities, Mapping) else {"model": probabilities}
    shares = np.linspace(0, 1, steps)
    along = mistakes(varied(each, names_of.tolist().index(label), shares))
    curves = []
    for name, p in given.items():
        values = np.asarray(p, dtype=np.float64)
        if values.shape != (codes.size, names_of.size):
            raise ValueError(
                f"cost_curves(probabilities=...) of {name!r} must have one row for each of the "
                f"{codes.size} labels and one column for each of the {names_of.size} classes; "
                f"received shape {values.shape}."
            )
        curves.append(cost_curve(values[labelled], labels, along))
    best = np.array([constant(labels, one) for one in along])
    return xr.Dataset(
        {"cost": (("classifier", "share"), np.array(curves)), "constant": (("share",), best)},
        coords={"classifier": list(given), "share": shares},
        attrs={"label": str(label)},
    )


def _costs_of_classes(
    costs: PerClass[object], classes: Shaped[np.ndarray, " label"], argument: str, *named: object
) -> Float[np.ndarray, " label"]:
    """Costs of the classes, 1 where none is given; others that are ``named`` are classes, too."""
    labels = classes.tolist()
    odd = [one for one in (*named, *costs) if one not in labels]
    if odd or len(labels) < 2:
        raise ValueError(
            f"{argument} must name classes of {labels}, of which there are two at least; look at "
            f"{[*odd, *named, *labels][0]!r}."
        )
    for one, cost in costs.items():
        if not isinstance(cost, Real) or not 0 < float(cost) < np.inf:
            raise ValueError(
                f"{argument} of {one!r} must be a finite number above 0; received {cost!r}."
            )
    return np.array([costs.get(one, 1.0) for one in labels], dtype=np.float64)


def read_costs(
    costs: Any, classes: Shaped[np.ndarray, " label"], argument: str = "decide(costs=...)"
) -> tuple[Float[np.ndarray, "label decision"], Shaped[np.ndarray, " decision"]]:
    """Costs in the order of the classes, and the names of the decisions.

    >>> costs = {"sick": {"treat": 1, "wait": 20}, "well": {"treat": 2, "wait": 0}}
    >>> read_costs(costs, np.array(["sick", "well"]))
    (array([[ 1., 20.],
           [ 2.,  0.]]), array(['treat', 'wait'], dtype=object))
    >>> read_costs({"sick": 10}, np.array(["sick", "well"]))[0]
    array([[ 0., 10.],
           [ 1.,  0.]])
    """
    import pandas as pd

    labels = classes.tolist()
    if not isinstance(costs, Mapping | pd.DataFrame):
        return _read_array(costs, classes, argument)
    if isinstance(costs, pd.DataFrame):
        for axis, name in ((costs.index, "class"), (costs.columns, "decision")):
            if not axis.is_unique:
                twice = axis[axis.duplicated()][0]
                raise ValueError(f"{argument} has the {name} {twice!r} twice; keep one.")
        costs = costs.to_dict(orient="index")
    if costs and not any(isinstance(row, Mapping) for row in costs.values()):
        return mistakes(_costs_of_classes(costs, classes, argument)), classes
    odd = [key for key in costs if key not in labels]
    if odd or len(costs) < len(labels):
        absent = [label for label in labels if label not in costs]
        raise ValueError(
            f"{argument} must have one row for every class of {labels} and for nothing "
            f"else; look at {(odd + absent)[0]!r}."
        )
    for label, row in costs.items():
        if not isinstance(row, Mapping):
            raise ValueError(
                f"{argument} as a mapping must be {{class: cost}} or {{class: {{decision: cost}}}} "
                f"throughout; received {row!r} for the class {label!r}."
            )
    decisions = list(costs[labels[0]])
    for label in labels:
        unequal = set(costs[label]) ^ set(decisions)
        if unequal or not decisions:
            raise ValueError(
                f"{argument} must have the same decisions, one at least, for every class; "
                f"look at {sorted(unequal, key=str)} for the class {label!r}."
            )
    values = [[costs[label][decision] for decision in decisions] for label in labels]
    for label, row in zip(labels, values, strict=True):
        for decision, cost in zip(decisions, row, strict=True):
            _check_cost(cost, f"{argument} of {decision!r} for the class {label!r}")
    named = np.empty(len(decisions), dtype=object)
    named[:] = decisions
    return np.array(values, dtype=np.float64), named


def _read_array(
    costs: object, classes: Shaped[np.ndarray, " label"], argument: str = "decide(costs=...)"
) -> tuple[Float[np.ndarray, "label decision"], Shaped[np.ndarray, " decision"]]:
    """Costs without names: rows in the order of the classes."""
    matrix = np.asarray(costs)
    if matrix.ndim != 2 or len(matrix) != classes.size or not matrix.size:
        raise ValueError(
            f"{argument} as an array must have one row for each of the classes "
            f"{classes.tolist()} and one column a decision; received shape {matrix.shape}."
        )
    for (row, column), cost in np.ndenumerate(matrix):
        _check_cost(cost, f"{argument}[{row}, {column}]")
    same = matrix.shape[1] == classes.size
    return matrix.astype(np.float64), classes if same else np.arange(matrix.shape[1])


def _check_cost(cost: object, argument: str) -> None:
    """Refuse costs that are no finite numbers."""
    if not isinstance(cost, Real) or not np.isfinite(float(cost)):
        raise ValueError(f"{argument} must be a finite number; received {cost!r}.")
