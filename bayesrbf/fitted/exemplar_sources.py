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
    """New rows come with their dissimilarities to the training rows.

    Attributes
    ----------
    kept : ndarray of shape (n_obs,)
        Column of every training row in the matrix.
    """

    kept: Int[np.ndarray, " obs"]

    def to(self, X: Any, chosen: Int[np.ndarray, " chosen"]) -> Real[np.ndarray, "obs chosen"]:
        """Dissimilarities of new rows to chosen training rows.

        Parameters
        ----------
        X : ndarray of shape (n_obs, n_train)
            Dissimilarities; only the chosen columns are looked at.
        chosen : ndarray of shape (n_chosen,)
            Training rows.

        Returns
        -------
        ndarray of shape (n_obs, n_chosen)
            ``d(x_n, x_m)``.
        """
        columns: Real[np.ndarray, "obs chosen"] = X[:, self.kept[chosen]]
        return columns


@dataclass(frozen=True)
class TableSource:
    """New rows are rows of a table with holes, compared by Gower's dissimilarity.

    Attributes
    ----------
    columns : Columns
        What the columns of the table are.
    gower : Gower
        Ranges and mean differences of the columns.
    rows : Observations
        Training rows.
    handle_unknown : str
        What an unseen level is.
    order : Order
        The canonical order of columns, in which ``gower`` and ``rows`` have them.
    """

    columns: table.Columns
    gower: Gower
    rows: Observations
    handle_unknown: str
    order: Order

    def to(self, X: Any, chosen: Int[np.ndarray, " chosen"]) -> Real[np.ndarray, "obs chosen"]:
        """Dissimilarities of new rows to chosen training rows.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows of a table with the columns of ``fit``.
        chosen : ndarray of shape (n_chosen,)
            Training rows.

        Returns
        -------
        ndarray of shape (n_obs, n_chosen)
            ``d(x_n, x_m)``.
        """
        encoded = table.encode(X, self.columns, handle_unknown=self.handle_unknown)
        n_obs = encoded.real.shape[0]
        rows = Observations(encoded.real, encoded.codes, np.full(n_obs, -1), np.ones(n_obs))
        return self.gower.between(rows.reordered(self.order), self.rows.take(chosen))


@dataclass(frozen=True)
class VectorSource:
    """New rows are compared by a metric of scikit-learn or by a callable.

    Attributes
    ----------
    rows : ndarray of shape (n_obs, n_columns)
        Training rows.
    metric : str or callable
        What compares two rows.
    """

    rows: Shaped[np.ndarray, "obs column"]
    metric: Metric

    def to(self, X: Any, chosen: Int[np.ndarray, " chosen"]) -> Real[np.ndarray, "obs chosen"]:
        """Dissimilarities of new rows to chosen training rows.

        Parameters
        ----------
        X : ndarray of shape (n_obs, n_columns)
            Rows.
        chosen : ndarray of shape (n_chosen,)
            Training rows.

        Returns
        -------
        ndarray of shape (n_obs, n_chosen)
            ``d(x_n, x_m)``.
        """
        return pairwise(X, self.rows[chosen], self.metric)


Source = MatrixSource | TableSource | VectorSource
"""Compares new rows to training rows."""


@dataclass(frozen=True)
class Training:
    """Training rows compared to each other.

    Attributes
    ----------
    source : Source
        Compares new rows to them.
    values : ndarray of shape (n_obs, n_obs)
        ``d(x_n, x_m)``.
    labels : ndarray of shape (n_obs,)
        Class codes, -1 where hidden.
    weights : ndarray of shape (n_obs,)
        Row weights, copies of a row added up.
    kept : ndarray of shape (n_obs,)
        Position of each row (of its first copy) among the rows given to ``fit``.
    """

    source: Source
    values: Real[np.ndarray, "obs obs"]
    labels: Int[np.ndarray, " obs"]
    weights: Float[np.ndarray, " obs"]
    kept: Int[np.ndarray, " obs"]
