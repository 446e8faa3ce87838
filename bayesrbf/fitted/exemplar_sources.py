"""What a fitted model keeps to compare new rows: a matrix's columns, a table, or vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int, Real, Shaped

from bayesrbf import table
from bayesrbf.numerics.median_lvq.gower import Gower
from bayesrbf.records.mixture import Observations
from bayesrbf.records.order import Order
from bayesrbf.solvers.pairwise import Metric, pairwise


@dataclass(frozen=True)
class MatrixSource:
    """New rows come with their dissimilarities to the training rows."""

    kept: Int[np.ndarray, " obs"]
    """Column of every training row in the matrix."""

    def to(self, X: Any, chosen: Int[np.ndarray, " chosen"]) -> Real[np.ndarray, "obs chosen"]:
        """Dissimilarities of new rows to chosen training rows."""
        columns: Real[np.ndarray, "obs chosen"] = X[:, self.kept[chosen]]
        return columns


@dataclass(frozen=True)
class TableSource:
    """New rows are rows of a table with holes, compared by Gower's dissimilarity."""

    columns: table.Columns
    gower: Gower
    rows: Observations
    handle_unknown: str
    order: Order
    """The canonical order of columns, in which ``gower`` and ``rows`` have them."""

    def to(self, X: Any, chosen: Int[np.ndarray, " chosen"]) -> Real[np.ndarray, "obs chosen"]:
        """Dissimilarities of new rows to chosen training rows."""
        encoded = table.encode(X, self.columns, handle_unknown=self.handle_unknown)
        n_obs = encoded.real.shape[0]
        rows = Observations(encoded.real, encoded.codes, np.full(n_obs, -1), np.ones(n_obs))
        return self.gower.between(rows.reordered(self.order), self.rows.take(chosen))


@dataclass(frozen=True)
class VectorSource:
    """New rows are compared by a metric of scikit-learn or by a callable."""

    rows: Shaped[np.ndarray, "obs column"]
    metric: Metric

    def to(self, X: Any, chosen: Int[np.ndarray, " chosen"]) -> Real[np.ndarray, "obs chosen"]:
        """Dissimilarities of new rows to chosen training rows."""
        return pairwise(X, self.rows[chosen], self.metric)


Source = MatrixSource | TableSource | VectorSource
"""Compares new rows to training rows."""


@dataclass(frozen=True)
class Training:
    """Training rows compared to each other."""

    source: Source
    values: Real[np.ndarray, "obs obs"]
    """``d(x_n, x_m)``."""
    labels: Int[np.ndarray, " obs"]
    weights: Float[np.ndarray, " obs"]
    """Row weights, copies of a row added up."""
    kept: Int[np.ndarray, " obs"]
    """Position of each row (of its first copy) among the rows given to ``fit``."""
