"""Where the training rows stand among the rows held out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from bayesrbf import table
from bayesrbf.fitted.folds import Fold
from bayesrbf.records.mixture import Observations, joined_rows


def places_held_out(
    rows: Observations, kept: Int[np.ndarray, " obs"], folds: Sequence[Fold]
) -> Int[np.ndarray, "two given"]:
    """Names of the labelled rows, and the place of each among the rows held out, fold after fold.

    Copies of a row are dealt to the folds that hold them out by the weights that they have there.

    >>> cells, none = np.array([[1.0], [2.0], [1.0]]), np.zeros((3, 0), int)
    >>> rows = Observations(cells, none, np.array([0, 1, 0]), np.ones(3))
    >>> places_held_out(
    ...     rows,
    ...     np.array([4, 5, 7]),
    ...     [(rows, rows.take(slice(2, 3))), (rows, rows.take(slice(2)))],
    ... )
    array([[4, 5, 7],
           [0, 2, 1]])
    """
    everything = joined_rows([rows, *(test for _, test in folds if test.n_obs)])
    _, place = table.distinct(everything)
    codes, labelled = place[: rows.n_obs], np.flatnonzero(rows.labels >= 0)
    of_tests, weights = place[rows.n_obs :], everything.weights[rows.n_obs :]
    if not of_tests.size:
        return np.zeros((2, 0), dtype=np.intp)
    order, ends = _ends(of_tests, weights)
    some, row_ends = _ends(codes[labelled], rows.weights[labelled])
    halves = (
        rows.weights[labelled]
        / np.bincount(codes[labelled], rows.weights[labelled])[codes[labelled]]
    )
    found = np.searchsorted(ends, row_ends - halves[some] / 2)
    entry = order[np.minimum(found, order.size - 1)]
    known = of_tests[entry] == codes[labelled[some]]  # others were never held out
    result = np.stack([labelled[some], entry])[:, known]
    result = result[:, np.argsort(result[0])]
    return np.stack([kept[result[0]], result[1]])


def _ends(
    codes: Int[np.ndarray, " row"], weights: Float[np.ndarray, " row"]
) -> tuple[Int[np.ndarray, " row"], Float[np.ndarray, " row"]]:
    """Rows in the order of their codes: code plus the share of its weight up to each row."""
    order = np.argsort(codes, kind="stable")
    totals = np.bincount(codes, weights)
    own = codes[order]
    before = (np.cumsum(totals) - totals)[own]
    return order, own + (np.cumsum(weights[order]) - before) / totals[own]
