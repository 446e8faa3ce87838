"""Training rows as an exemplar model keeps them, to compare new rows with them."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
from jaxtyping import Int, Real, Shaped

from bayesrbf import table
from bayesrbf.numerics.hidden_share import hidden_share
from bayesrbf.numerics.median_lvq.gower import Gower
from bayesrbf.records.mixture import Observations
from bayesrbf.records.specification import Order
from bayesrbf.records.stored import ANY_NUMBER, Requirements, stored, within
from bayesrbf.solvers.comparable_rows import GOWER, PRECOMPUTED
from bayesrbf.solvers.pairwise import Metric, pairwise


@stored
class MatrixSource:
    """New rows come with their dissimilarities to the training rows."""

    kept: Int[np.ndarray, " obs"]  # Column of every training row in the matrix.
    metric = PRECOMPUTED
    cells = None  # A row has none that could be hidden.

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return self.kept.size

    def to(self, X: Any, chosen: Int[np.ndarray, " chosen"]) -> Observations:
        """New rows compared to chosen training rows."""
        return compared(np.asarray(X[:, self.kept[chosen]]))

    def stored(self, values: Real[np.ndarray, "obs obs"], n_columns: int) -> Any:
        """A training row as new rows come: its dissimilarities, 0 to rows that were left out."""
        row = np.zeros((1, n_columns))
        row[:, self.kept] = values[:1]
        return row

    def __laws__(self) -> Requirements:
        yield within(self.kept, 0), "columns of a matrix"


@stored
class TableSource:
    """New rows are rows of a table with holes, compared by Gower's dissimilarity."""

    columns: table.Columns
    gower: Gower
    rows: Observations
    handle_unknown: str
    order: Order  # The canonical order of columns, in which ``gower`` and ``rows`` have them.
    metric = GOWER

    @property
    def cells(self) -> Observations:
        """Training rows, columns and classes in the order of the user's table."""
        return self.rows.reordered(self.order.inverse)

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return self.rows.n_obs

    def to(self, X: Any, chosen: Int[np.ndarray, " chosen"]) -> Observations:
        """New rows compared to chosen training rows."""
        rows = table.encode(X, self.columns, handle_unknown=self.handle_unknown)
        return self.to_cells(rows, chosen)

    def to_cells(self, rows: Observations, chosen: Int[np.ndarray, " chosen"]) -> Observations:
        """Encoded rows compared to chosen training rows."""
        values = self.gower.between(rows.reordered(self.order), self.rows.take(chosen))
        return compared(values, rows)

    def stored(self, values: Real[np.ndarray, "obs obs"], n_columns: int) -> Any:
        """A training row as new rows come: its cells."""
        first = self.cells.take(np.arange(1))
        return table.decode(first.real, first.codes, self.columns, [])

    def __laws__(self) -> Requirements:
        columns, gower, rows, order = self.columns, self.gower, self.rows, self.order
        yield self.handle_unknown in ("missing", "error"), "a way with unseen levels"
        sizes = len(columns.real_names), len(columns.categorical_names)
        yield (gower.ranges.size, gower.code_holes.size) == sizes, "ranges of its columns"
        yield (rows.real.shape[1], rows.codes.shape[1]) == sizes, "rows of its columns"
        yield (order.features.size, order.categories.size) == sizes, "an order of its columns"


@stored
class VectorSource:
    """New rows are compared by a metric of scikit-learn or by a callable."""

    rows: Shaped[np.ndarray, "obs column"] = field(metadata=ANY_NUMBER)
    metric: Metric
    cells = None  # They are compared whole.

    @property
    def n_rows(self) -> int:
        """Number of training rows."""
        return len(self.rows)

    def to(self, X: Any, chosen: Int[np.ndarray, " chosen"]) -> Observations:
        """New rows compared to chosen training rows."""
        return compared(pairwise(X, self.rows[chosen], self.metric))

    def stored(self, values: Real[np.ndarray, "obs obs"], n_columns: int) -> Any:
        """A training row as new rows come: itself."""
        return self.rows[:1]

    def __laws__(self) -> Requirements:
        finite = self.rows.dtype.kind in "OU" or bool(np.isfinite(self.rows).all())
        yield finite, "finite rows"


Source = MatrixSource | TableSource | VectorSource  # Compares new rows to training rows.


def compared(
    columns: Real[np.ndarray, "obs needed"], cells: Observations | None = None
) -> Observations:
    """Dissimilarities to the needed rows as cells, and the share of hidden cells beside them."""
    n_obs = len(columns)
    hidden = np.zeros(n_obs) if cells is None else hidden_share(cells)
    return Observations(
        columns.astype(np.float64),
        np.empty((n_obs, 0), dtype=np.intp),
        np.full(n_obs, -1),
        np.ones(n_obs),
        hidden=hidden,
    )
