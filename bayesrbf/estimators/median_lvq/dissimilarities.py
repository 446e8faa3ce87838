"""Where dissimilarities come from: a matrix, Gower's on a table with holes, or a metric."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Float, Int, Real, Shaped
from sklearn.utils import _safe_indexing

from bayesrbf import table
from bayesrbf.fitted.exemplar_sources import MatrixSource, TableSource, VectorSource
from bayesrbf.fitted.fitted_exemplars import ComparedRows
from bayesrbf.numerics.median_lvq.gower import learn_gower
from bayesrbf.records.mixture import Observations
from bayesrbf.solvers.pairwise import Metric, pairwise

Groups = Shaped[np.ndarray, " obs"] | None

LARGEST_DOUBLE: Final = 2**27
"""Entries (1 GiB) beyond which a matrix computed here is held in float32."""


def from_matrix(
    X: Real[np.ndarray, "obs obs"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    groups: Groups,
) -> ComparedRows:
    """Take the dissimilarities as they were given, without the rows that weigh nothing."""
    kept = np.flatnonzero(weights > 0)
    values = X if kept.size == weights.size else X[np.ix_(kept, kept)]
    copies = np.stack([kept, np.arange(kept.size)])
    rows, _ = _weighed(
        np.arange(kept.size, dtype=np.float64)[:, None], labels, weights, kept, groups
    )
    return ComparedRows(
        MatrixSource(kept), values, rows.labels, rows.weights, rows.units, kept, copies
    )


def from_table(
    X: object,
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    groups: Groups,
    *,
    categorical_features: object,
    handle_unknown: str,
) -> ComparedRows:
    """Compare the distinct rows of a table with holes by Gower's dissimilarity."""
    positive = np.flatnonzero(weights > 0)
    X = X if positive.size == weights.size else _safe_indexing(X, positive)
    columns = table.learn_columns(X, categorical_features=categorical_features)
    encoded = table.encode(X, columns)
    given = replace(encoded, labels=labels[positive], weights=weights[positive])
    given, repeated = table.with_units(given, None if groups is None else groups[positive])
    rows, first, place = _distinct(given)
    # Sums over columns in one order, whatever the table's: ties must stay ties.
    order = table.canonical_order(rows)
    canonical = rows.reordered(order)
    gower = learn_gower(canonical)
    values = gower.between(canonical, canonical, _dtype(rows.n_obs))
    source = TableSource(columns, gower, canonical, handle_unknown, order)
    copies = np.stack([positive, place])
    return ComparedRows(
        source,
        values,
        rows.labels,
        rows.weights,
        rows.units,
        positive[first],
        copies,
        repeated,
    )


def from_vectors(
    X: Shaped[np.ndarray, "obs column"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    groups: Groups,
    metric: Metric,
) -> ComparedRows:
    """Compare the distinct rows of an array by a metric."""
    first = np.flatnonzero(weights > 0)
    floats = X.dtype.kind == "f"
    cells = X[first].astype(np.float64) if floats else np.arange(first.size, dtype=np.float64)
    rows, repeated = _weighed(cells.reshape(first.size, -1), labels, weights, first, groups)
    copies = np.stack([first, np.arange(first.size)])
    if floats:
        rows, places, copies[1] = _distinct(rows)
        first = first[places]
    values = pairwise(X[first], X[first], metric, _dtype(first.size))
    return ComparedRows(
        VectorSource(X[first], metric),
        values,
        rows.labels,
        rows.weights,
        rows.units,
        first,
        copies,
        repeated,
    )


def _weighed(
    cells: Float[np.ndarray, "kept column"],
    labels: Int[np.ndarray, " obs"],
    weights: Float[np.ndarray, " obs"],
    kept: Int[np.ndarray, " kept"],
    groups: Groups,
) -> tuple[Observations, int]:
    """The kept rows with their units, and how many are copies."""
    nothing = np.empty((kept.size, 0), dtype=np.intp)
    rows = Observations(cells, nothing, labels[kept], weights[kept])
    return table.with_units(rows, None if groups is None else groups[kept])


def _distinct(
    rows: Observations,
) -> tuple[Observations, Int[np.ndarray, " distinct"], Int[np.ndarray, " obs"]]:
    """Distinct rows, where each stood first, and the place of every row among them."""
    distinct, inverse = table.distinct(rows)
    first = np.full(distinct.n_obs, rows.n_obs)
    np.minimum.at(first, inverse, np.arange(rows.n_obs))
    return distinct, first, inverse


def _dtype(n_obs: int) -> type[np.floating]:
    """The type in which a square matrix of so many rows is held."""
    return np.float64 if n_obs**2 <= LARGEST_DOUBLE else np.float32
