"""Judges observed cells by the rest of their row, as a labelled dataset."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.stats import false_discovery_control

from bayesrbf.estimators.answers.asking import Fit, new_rows
from bayesrbf.estimators.arguments import Rule
from bayesrbf.fitted.completed_rows import cell_law
from bayesrbf.posterior.cells import JudgedCells, judge_cells
from bayesrbf.records import names

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.table import Columns

_SHARE = Rule("a number between 0 and 1", kind=Real, low=0.0, high=1.0, closed="neither")
RULES: Final = {"prob": _SHARE, "false_discoveries": _SHARE}

_DESCRIPTIONS: Final = {
    "log_tail": "log probability of a cell at least as extreme, given the rest of its row (nats)",
    "expected": "mean of a real cell, most probable level of a category, given the rest",
    "lower": "lower end of the central interval of a real cell given the rest",
    "upper": "upper end of the central interval of a real cell given the rest",
    "stands_out": "whether the cell is among those that look wrong, at the false discovery rate",
}


def surprise(
    fit: Fit, X: object, *, prob: float = 0.9, false_discoveries: float = 0.1
) -> xr.Dataset:
    r"""How surprising each observed cell is, given the rest of its row.

    The tail of a real cell is :math:`2 \min(P(X \le x), P(X \ge x))`, that of a level the
    probability of all levels at most as probable. A row whose cells look odd (a tail below .005) is
    judged again without them, so that an error does not spoil the verdict on its neighbours. Labels
    have no part in it.

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows; missing cells are summed out.
    prob : float
        Probability inside ``lower`` and ``upper``.
    false_discoveries : float
        Rate at which ``stands_out`` may be wrong, by Benjamini and Hochberg over all cells.

    Returns
    -------
    xarray.Dataset
        ``log_tail`` (nats), ``expected``, ``lower``, ``upper`` and ``stands_out`` over obs and
        column; NaN or None where the cell is missing or not judged, and intervals of real
        cells only.

    Raises
    ------
    ValueError
        If an argument or the table cannot be used.

    References
    ----------
    .. [1] Benjamini, Hochberg (1995), Controlling the false discovery rate, JRSS B 57.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesrbf import MixtureDensity
    >>> x = np.random.default_rng(0).normal(size=(200, 1))
    >>> density = MixtureDensity(random_state=0).fit(np.hstack([x, 2 * x + 0.1 * x**2]))
    >>> density.surprise([[1.0, 2.1], [1.0, -5.0]])["stands_out"].to_numpy()
    array([[False, False],
           [False,  True]])
    """
    from bayesrbf.posterior.row_answers import RowAnswers

    for name, value in {"prob": prob, "false_discoveries": false_discoveries}.items():
        RULES[name].check(value, f"surprise({name}=...)")
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
    variables = {
        "log_tail": log_tail,
        "expected": _expected(verdict, columns),
        "lower": by_column(verdict.lower, nothing, columns),
        "upper": by_column(verdict.upper, nothing, columns),
        "stands_out": stands_out,
    }
    dims = (names.OBS, names.COLUMN)
    return RowAnswers(
        {
            name: (dims, value, {"description": _DESCRIPTIONS[name]})
            for name, value in variables.items()
        },
        coords={names.OBS: rows.names, names.COLUMN: list(columns.names)},
        attrs={"prob": prob, "false_discoveries": false_discoveries},
    )


def by_column(reals: np.ndarray, levels: np.ndarray, columns: Columns) -> np.ndarray:
    """Figures of real and categorical cells in the order of the table's columns."""
    result = np.full((len(reals), len(columns.names)), np.nan, np.result_type(reals, levels))
    result[:, columns.real_positions] = reals
    result[:, columns.categorical_positions] = levels[:, : len(columns.levels)]
    return result


def _expected(verdict: JudgedCells, columns: Columns) -> np.ndarray:
    """Means and levels; numbers where all columns are real, else objects."""
    if not columns.levels:
        return by_column(verdict.expected, np.empty((len(verdict.expected), 0)), columns)
    levels = np.full(verdict.level_expected.shape, None, dtype=object)
    for column, of_column in enumerate(columns.levels):
        values = np.array([*of_column, None], dtype=object)
        levels[:, column] = values[verdict.level_expected[:, column]]
    return by_column(verdict.expected.astype(object), levels, columns)
