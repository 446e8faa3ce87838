"""Decisions at costs, what to measure next in a row, and which rows to label next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Bool, Float, Shaped
from sklearn.utils.validation import check_is_fitted

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.base.rows import Observations, in_blocks
from bayesrbf.families.estimator import Estimator
from bayesrbf.fit.arguments import PerClass, Rule
from bayesrbf.fit.asking import Fit, new_rows, refuse
from bayesrbf.fit.decisions import (
    best_measurement,
    expected_costs,
    mistakes,
)
from bayesrbf.fit.probabilities import entropy
from bayesrbf.mixture.cells import ConditionalLaw, conditional_law
from bayesrbf.mixture.fitted import FittedMixture
from bayesrbf.table.columns import Columns
from bayesrbf.table.kinds import Kind

if TYPE_CHECKING:
    import xarray as xr


# The decision of least expected cost for each row, as a labelled dataset.


DECISION: Final = "decision"
"""Dim of the decisions."""


def decide(fit: Fit, X: object, costs: object, reject: float | None = None) -> xr.Dataset:
    """Decision of least expected cost for each row, with the costs.

    Variables are ``expected_cost`` over obs and decision; over obs ``best``, its ``cost``,
    ``probability_best``, the share of draws under which it is best (NaN without draws), and with
    ``reject``, the cost of rejecting a row, ``refer``, whether rejecting is cheaper.
    """
    from bayesrbf.fit.row_answers import RowAnswers, described

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
        agreeing = fit.interval_chain.probability_best(cells, chosen, matrix, p)
    row, by_decision = (names.OBS,), (names.OBS, DECISION)
    share = "share of the draws under which it costs least; NaN at a point"
    of_costs = "expected cost of the decision under the reported probabilities"
    variables = {
        "expected_cost": (by_decision, expected, of_costs),
        "best": (row, decisions[chosen], "decision of least expected cost"),
        "cost": (row, least, "its expected cost"),
        "probability_best": (row, agreeing, share),
    }
    if reject is not None:
        cheaper = "whether rejecting the row is cheaper than the best decision"
        variables["refer"] = (row, reject < least, cheaper)
    return RowAnswers(described(variables), {names.OBS: rows.names, DECISION: decisions})


def _costs_of_classes(
    costs: PerClass[object], classes: Shaped[np.ndarray, " label"], argument: str
) -> Float[np.ndarray, " label"]:
    """Costs in the order of ``classes``, 1 where none is given; ValueError for other names."""
    labels = classes.tolist()
    odd = [name for name in costs if name not in labels]
    if odd or len(labels) < 2:
        raise ValueError(
            f"{argument} must name classes of {labels}, of which there are two at least; look at "
            f"{[*odd, *labels][0]!r}."
        )
    for name, cost in costs.items():
        if not isinstance(cost, Real) or not 0 < float(cost) < np.inf:
            raise ValueError(
                f"{argument} of {name!r} must be a finite number above 0; received {cost!r}."
            )
    return np.array([costs.get(label, 1.0) for label in labels], dtype=np.float64)


def read_costs(
    costs: Any, classes: Shaped[np.ndarray, " label"], argument: str = "decide(costs=...)"
) -> tuple[Float[np.ndarray, "label decision"], Shaped[np.ndarray, " decision"]]:
    """Cost of every decision under every class, and the names of the decisions.

    ``costs`` are a mapping or frame of class and decision, an array with a row for each class, or
    the cost of missing each class by a mapping of classes: decisions are then the classes.

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
    """Cost matrix of an array with a row for each class, and the names of its decisions.

    These are the classes if there are as many columns as classes, else the positions of columns.
    """
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


# Expected gain of measuring a missing cell.
#
# With R the uncertainty about the class of a row, its entropy or the cost of the best decision, a
# cell j is worth
#
# .. math:: R[p(c | x_o)] - \sum_v p(x_j = v | x_o) \, R[p(c | x_o, x_j = v)],
#
# summed over levels, and over the nodes of every component's quadrature where j is real. Where one
# density gives the cell and the class it is never below 0, but for the quadrature.


NUMBERS_OF_OUTCOME: Final = 64
"""Numbers in memory for the prediction of a row under one outcome of a measurement."""
OUTCOMES: Final = 128
"""Typical number of outcomes of a cell."""

Outcomes = tuple[Float[np.ndarray, "obs point"], Float[np.ndarray, "obs point"]]
"""Values of a cell in every row, as numbers or as codes of levels, and their probabilities."""


def outcomes(law: ConditionalLaw, columns: Columns, position: int) -> Outcomes:
    """Values of a column and their probabilities in every row, as if its cells were missing.

    Values are in the user's units, for a categorical column codes of levels.
    """
    if position not in columns.code_of:
        features, kind = columns.features[position], columns.kinds[position]
        n_obs = law.rows.n_obs
        blocks = [(rows, *laws.points(features)) for rows, laws in law.reals()]
        values, weights = np.empty((2, n_obs, blocks[0][1].shape[1]))
        for rows, points, masses in blocks:
            alone = len(features) == 1
            values[rows] = points[..., 0] if alone else _decoded(kind, points)
            weights[rows] = masses
        return values, weights
    probabilities = law.levels(columns.code_of[position])
    codes = np.arange(probabilities.shape[1], dtype=np.float64)
    return np.broadcast_to(codes, probabilities.shape), probabilities


def _decoded(
    kind: Kind, points: Float[np.ndarray, "row point real"]
) -> Float[np.ndarray, "row point"]:
    """Reals of a column that has several as its numbers."""
    numbers = kind.decode(points.reshape(-1, points.shape[2]))
    return numbers.reshape(points.shape[:2])


def measurement_gains(
    rows: Observations,
    measured: Bool[np.ndarray, "obs column"],
    mixture: FittedMixture,
    columns: Columns,
    uncertainty: Callable[[Observations], Float[np.ndarray, " row"]],
) -> Float[np.ndarray, "obs column"]:
    """Expected fall of ``uncertainty`` of a row if a cell of ``measured`` were known; else NaN.

    ``measured`` marks missing cells. Rows are in the user's units. The expectation is over the
    conditional distribution of the cell under the mixture.
    """
    gains = np.full(measured.shape, np.nan)
    for row_slice in in_blocks(rows.n_obs, NUMBERS_OF_OUTCOME * OUTCOMES):
        block = np.arange(row_slice.start, row_slice.stop)
        before = uncertainty(rows.take(block))
        for position in np.flatnonzero(measured[block].any(axis=0)).tolist():
            row_indices = block[measured[block, position]]
            subset = rows.take(row_indices)
            law = conditional_law(mixture, subset, columns, [mixture.parameters])
            values, shares = outcomes(law, columns, position)
            after = np.zeros(row_indices.size)
            at, point = np.nonzero(shares)
            for some_outcomes in in_blocks(at.size, NUMBERS_OF_OUTCOME):
                row, which = at[some_outcomes], point[some_outcomes]
                rows_measured = table.with_column(
                    subset.take(row), position, values[row, which], columns
                )
                after += np.bincount(
                    row, shares[row, which] * uncertainty(rows_measured), row_indices.size
                )
            gains[row_indices, position] = before[row_indices - row_slice.start] - after
    return gains


# What to measure next, as a labelled dataset.


_DRAWS: Final = Rule("an integer of at least 1", kind=Integral, low=1.0)


def acquire_cells(
    fit: Fit, X: object, costs: object = None, loss: object = None, draws: int = 200
) -> xr.Dataset:
    """Expected gain of measuring each missing cell, and the cell to measure next in each row.

    Variables are ``gain`` and ``price`` over obs and column, ``best`` and ``best_price`` over obs.
    The gain is in nats of the entropy of the class, or with ``loss`` in the costs of ``loss``; NaN
    of cells that are observed or have no price. ``best`` is empty where no cell is worth measuring.
    """
    from bayesrbf.fit.row_answers import RowAnswers, described

    _DRAWS.check(draws, "acquire_cells(draws=...)")
    columns = fit.columns
    prices = _read_prices(costs, columns.names)
    losses = None if loss is None else read_costs(loss, fit.classes, "acquire_cells(loss=...)")[0]
    rows = new_rows(fit, X)
    cells = rows.cells
    measured = ~table.observed_cells(cells, columns) & ~np.isnan(prices)
    measured[:, columns.left_out] = False

    def uncertainty(subset: Observations) -> Float[np.ndarray, " row"]:
        p = np.exp(fit.class_log_probabilities(subset, draws))
        return entropy(p) if losses is None else expected_costs(p, losses).min(axis=1)

    gain = measurement_gains(cells, measured, fit.density, columns, uncertainty)
    price = np.where(measured, prices, np.nan)
    best = best_measurement(gain, price, per_price=losses is None)
    chosen = np.array([*columns.names, ""])[best]
    paid = np.column_stack([price, np.full(len(price), np.nan)])[np.arange(len(price)), best]
    cell, row = (names.OBS, names.COLUMN), (names.OBS,)
    falls = "expected fall of the uncertainty about the class if the cell were measured"
    variables = {
        "gain": (cell, gain, falls),
        "price": (cell, price, "price of measuring the cell"),
        "best": (row, chosen, "column to measure next; empty where none is worth it"),
        "best_price": (row, paid, "price of that cell"),
    }
    coords = {names.OBS: rows.names, names.COLUMN: list(columns.names)}
    return RowAnswers(described(variables), coords)


def _read_prices(costs: Any, columns: tuple[str, ...]) -> Float[np.ndarray, " column"]:
    """Price of every column: 0 without ``costs``, NaN where a mapping does not name the column."""
    if costs is None or isinstance(costs, Real):
        values = [0.0 if costs is None else costs] * len(columns)
        named: dict[str, Any] = dict(zip(columns, values, strict=True))
    elif isinstance(costs, Mapping) or hasattr(costs, "to_dict"):
        named = dict(costs)
        odd = [name for name in named if name not in columns]
        if odd or not named:
            raise ValueError(
                "acquire_cells(costs=...) must name columns of the table, "
                f"{', '.join(map(repr, columns[:20]))}; received {odd[:1] or named!r}."
            )
    else:
        values = list(costs)
        if len(values) != len(columns):
            raise ValueError(
                f"acquire_cells(costs=...) without names must have one price for each of the "
                f"{len(columns)} columns; received {len(values)}."
            )
        named = dict(zip(columns, values, strict=True))
    for name, price in named.items():
        if not isinstance(price, Real) or not 0 <= float(price) < np.inf:
            raise ValueError(
                f"acquire_cells(costs=...) of {name!r} must be a finite number of at least 0; "
                f"received {price!r}."
            )
    return np.array([float(named.get(name, np.nan)) for name in columns])


# Which rows to label next.


def acquire_labels(estimator: Estimator, X: object) -> xr.Dataset:
    """Expected information of the label of each row about the parameters.

    This is the mutual information of label and parameters under the draws of the posterior. It is
    large where the draws disagree about the class, and small where all draws agree that the classes
    overlap. Label the rows with the largest gain next. Similar rows tell the same.

    Parameters
    ----------
    estimator : classifier
        Fitted, with draws of :meth:`refine <bayesrbf.StackedClassifier.refine>`.
    X : array-like or frame of shape (n_obs, n_columns)
        Rows without a label; missing cells are summed out.

    Returns
    -------
    xarray.Dataset
        ``gain`` over obs, in nats.

    Raises
    ------
    ValueError
        If there are no draws.
    """
    from bayesrbf.fit.row_answers import RowAnswers

    check_is_fitted(estimator)
    fit = estimator.fitted_
    rows = new_rows(fit, X)
    refuse(fit, f"acquire_labels of a {fit.table.owner}", "draws")
    described = {"description": "mutual information of the label and the parameters (nats)"}
    return RowAnswers(
        {"gain": ((names.OBS,), fit.chain.information(rows.cells), described)},
        coords={names.OBS: rows.names},
    )
