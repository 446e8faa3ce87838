"""Rows compared to exemplars: which training rows predicting needs, and how rows are read."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int, Real, Shaped
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bayesrbf.estimators.classifier import PosteriorClassifier
from bayesrbf.estimators.median_lvq.dissimilarities import (
    GOWER,
    PRECOMPUTED,
    check_values,
    read_rows,
)
from bayesrbf.estimators.median_lvq.fitting import FittedExemplars
from bayesrbf.estimators.median_lvq.sources import Source
from bayesrbf.exemplars import Dissimilarities
from bayesrbf.parameters import Observations


class ExemplarReader(PosteriorClassifier):
    """Base that compares rows to fitted exemplars; see :class:`MedianLVQClassifier`."""

    exemplars_: Int[np.ndarray, " prototype"]
    exemplar_classes_: Shaped[np.ndarray, " prototype"]
    sigma_: float | None
    _fitted: FittedExemplars
    _kept: Int[np.ndarray, " obs"]
    _source: Source
    _table: Dissimilarities

    _STATE: ClassVar[dict[str, type | UnionType]] = PosteriorClassifier._STATE | {
        "_fitted": FittedExemplars,
        "_kept": np.ndarray,
        "_seed": int,
        "_source": Source,
        "_table": Dissimilarities,
        "exemplar_classes_": np.ndarray,
        "exemplars_": np.ndarray,
        "n_features_in_": int,
        "sigma_": float | NoneType,
    }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        precomputed, mixed = self.metric == PRECOMPUTED, self.metric == GOWER
        tags.input_tags.pairwise = precomputed
        tags.input_tags.positive_only = precomputed
        tags.input_tags.allow_nan = mixed or self.metric == "nan_euclidean"
        tags.input_tags.categorical = mixed
        tags.input_tags.string = mixed
        return tags

    # ---- which training rows predicting needs

    @property
    def exemplar_columns(self) -> Int[np.ndarray, " needed"]:
        """Rows of ``fit``'s X to which a new row must be compared, ascending.

        Those of the fitted exemplars and, after :meth:`refine`, of all draws.
        """
        return np.sort(self._kept[self._needed()])

    def from_exemplar_columns(self, D: object) -> Float[np.ndarray, "obs train"]:
        """Place dissimilarities to the exemplars where prediction looks for them.

        Parameters
        ----------
        D : array-like of shape (n_obs, n_needed)
            Dissimilarities of rows to the training rows of :attr:`exemplar_columns`,
            in that order.

        Returns
        -------
        ndarray of shape (n_obs, n_train)
            What every method takes as X under ``metric="precomputed"``; NaN in the
            columns that none looks at.

        Raises
        ------
        ValueError
            If the metric is another, or D is not one column an exemplar.
        """
        check_is_fitted(self)
        columns, values = self.exemplar_columns, np.asarray(D)
        if self.metric != PRECOMPUTED:
            raise ValueError(
                "from_exemplar_columns is for metric='precomputed'; the metric "
                f"{self.metric!r} compares rows to the exemplars itself: give it rows."
            )
        if values.ndim != 2 or values.shape[1] != columns.size:
            raise ValueError(
                f"from_exemplar_columns(D) needs one column for each of the {columns.size} rows "
                f"of exemplar_columns; received shape {values.shape}."
            )
        matrix = np.full((len(values), self.n_features_in_), np.nan)
        matrix[:, columns] = values
        return matrix

    def _needed(self) -> Int[np.ndarray, " needed"]:
        """Training rows that are an exemplar at the fitted point or in a draw, ascending."""
        exemplars = self._fitted.parameters.exemplars
        if self._draws is None:
            return np.unique(exemplars)
        drawn = self._draws.theta[..., : exemplars.size]
        return np.union1d(exemplars, np.rint(drawn).astype(np.intp))

    def _compared(
        self, columns: Real[np.ndarray, "obs needed"], labels: Any = None, weights: Any = None
    ) -> Observations:
        """Dissimilarities to the needed rows as the cells of a table."""
        n_obs = len(columns)
        return Observations(
            columns.astype(np.float64),
            np.empty((n_obs, 0), dtype=np.intp),
            np.full(n_obs, -1) if labels is None else labels,
            np.ones(n_obs) if weights is None else weights,
        )

    def _read(self, X: object) -> Observations:
        """New rows, compared to the needed rows."""
        check_is_fitted(self)
        columns = self._source.to(read_rows(self, X, reset=False), self._needed())
        check_values(columns, type(self).__name__)
        return self._compared(columns)

    @property
    def _rows(self) -> Observations:
        """Training rows, compared to the needed rows."""
        rows = self._table
        return self._compared(rows.values[:, self._needed()], rows.labels, rows.weights)
