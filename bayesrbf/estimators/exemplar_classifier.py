"""Fitted exemplars at work: probabilities, their reasons, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float, Int, Real, Shaped
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bayesrbf import names
from bayesrbf.estimators.classifier import Labels, PosteriorClassifier
from bayesrbf.estimators.describing import Named
from bayesrbf.estimators.dissimilarities import (
    GOWER,
    PRECOMPUTED,
    Source,
    check_values,
    read_rows,
)
from bayesrbf.estimators.median_lvq_fitting import FittedExemplars
from bayesrbf.estimators.posterior_estimator import Description
from bayesrbf.exemplars import Dissimilarities
from bayesrbf.numerics.median_lvq import class_log_joint
from bayesrbf.numerics.median_lvq_posterior import MedianLVQLogPosterior
from bayesrbf.parameters import Observations

if TYPE_CHECKING:
    from bayesrbf.posterior.predictive import Predictor


def _gives_probabilities(estimator: ExemplarClassifier) -> bool:
    """Whether scores are probabilities: margins are none before they are calibrated."""
    if estimator.objective == "rslvq" or estimator.calibrate:
        return True
    raise AttributeError(
        "objective='glvq' has no probabilities; use decision_function, calibrate=True or "
        "objective='rslvq'."
    )


def _gives_margins(estimator: ExemplarClassifier) -> bool:
    """Whether scores are margins, and no probabilities."""
    return bool(estimator.objective == "glvq" and not estimator.calibrate)


class ExemplarClassifier(PosteriorClassifier):
    """Base that works with fitted exemplars; see :class:`MedianLVQClassifier`."""

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

    # ---- the hooks of a posterior and of a classifier

    def _log_posterior(self) -> MedianLVQLogPosterior:
        """The log posterior of exemplars and width."""
        if self._fitted.sigma is None:
            raise AttributeError(
                "objective='glvq' has no likelihood and so declares no posterior; use "
                "objective='rslvq'."
            )
        return MedianLVQLogPosterior(self._table, self._fitted.prototypes, self._fitted.sigma)

    def _map(self, log_posterior: MedianLVQLogPosterior) -> Float[np.ndarray, " coordinate"]:
        """The fitted point in the graph's coordinates."""
        return log_posterior.pack(self._fitted.parameters)

    def _description(self) -> Description:
        """Names and training rows, for the DataTree."""
        rows = self._table
        labels = np.where(rows.labels < 0, np.nan, rows.labels)
        return Description(
            coords={
                names.OBS: self._kept,
                names.LABEL: self.classes_,
                names.PROTOTYPE: np.arange(self.exemplars_.size),
                "prototype_class": ((names.PROTOTYPE,), self.exemplar_classes_),
            },
            observed={names.OBSERVED_LABEL: ((names.OBS,), labels)},
            constant={"row_weight": ((names.OBS,), rows.weights)},
        )

    def _predictor(
        self, log_posterior: MedianLVQLogPosterior
    ) -> Callable[[Observations], Predictor]:
        """Prepares rows: summed kernels of the classes under any exemplars and width."""
        needed = self._needed()

        def log_joint(rows: Observations, theta: np.ndarray) -> np.ndarray:
            places = np.searchsorted(needed, log_posterior.exemplars(theta))
            width = log_posterior.width(theta)
            return class_log_joint(rows.real[:, places], log_posterior.prototypes, width)

        return lambda rows: partial(log_joint, rows)

    def _class_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs label"]:
        """Log joint, or margins, at the fitted point."""
        places = np.searchsorted(self._needed(), self._fitted.parameters.exemplars)
        return self._fitted.class_log_joint(rows.real[:, places])

    def _fitted_shares(self) -> Float[np.ndarray, " label"]:
        """Weighted frequencies of the classes in the training table."""
        rows = self._table
        counts = np.bincount(
            rows.labels[rows.labelled], rows.weights[rows.labelled], self.classes_.size
        )
        return counts / counts.sum()

    def _class_shares(
        self, log_posterior: Any, theta: Float[np.ndarray, "chain draw coordinate"]
    ) -> Float[np.ndarray, "chains draws label"]:
        """The same, whatever the draw."""
        return self._fitted_shares()[None, None]

    def _observed(self, rows: Observations) -> Named:
        """Dissimilarities as a group of the DataTree."""
        return {"dissimilarity": ((names.OBS, "exemplar"), rows.real)}

    # ---- predicting

    predict_log_proba = available_if(_gives_probabilities)(PosteriorClassifier.predict_log_proba)
    predict_proba = available_if(_gives_probabilities)(PosteriorClassifier.predict_proba)
    predict_posterior = available_if(_gives_probabilities)(PosteriorClassifier.predict_posterior)
    uncertainty = available_if(_gives_probabilities)(PosteriorClassifier.uncertainty)
    to_datatree = available_if(_gives_probabilities)(PosteriorClassifier.to_datatree)

    def predict(self, X: object) -> Labels:
        """Most probable class of each row; that of the nearest exemplar for GLVQ.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; under ``metric="precomputed"`` their dissimilarities to the training
            rows, of which only :attr:`exemplar_columns` are looked at.

        Returns
        -------
        ndarray of shape (n_obs,)
            Class labels.
        """
        if self.objective == "rslvq" or self.calibrate:
            return super().predict(X)
        codes = self._class_log_joint(self._read(X)).argmax(axis=1)
        nearest: Labels = self.classes_[codes]
        return nearest

    @available_if(_gives_margins)  # type: ignore[untyped-decorator]
    def decision_function(self, X: object) -> Float[np.ndarray, "obs *label"]:
        """Margins of GLVQ, from -1 to 1.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows, as for :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_obs,) or (n_obs, n_classes)
            For two classes that of the second.
        """
        margins = self._class_log_joint(self._read(X))
        return margins[:, 1] if self.classes_.size == 2 else margins

    def refine(self, method: str = "gibbs", **options: Any) -> Self:
        """Draw exemplars (and sigma, if it is free) from the posterior.

        Parameters
        ----------
        method : {"gibbs"}
            Every exemplar from its full conditional, sigma along a slice: exact.
        **options : object
            ``draws``, ``tune``, ``chains``, ``random_state``, ``progress_bar``; see
            :func:`bayesrbf.inference.markov.markov_chains`. Chains start where the
            restarts ended.

        Returns
        -------
        self
            With the draws in ``posterior_``; predictions average over them.

        Raises
        ------
        ValueError
            If the method is unknown.
        """
        from bayesrbf.inference.markov import markov_chains
        from bayesrbf.numerics.median_lvq_sampling import gibbs_sweep

        check_is_fitted(self)
        if method != "gibbs":
            raise ValueError(
                f"refine(method) must be 'gibbs' for {type(self).__name__}, whose exemplars are "
                f"discrete; received {method!r}."
            )
        log_posterior = self._log_posterior()
        starts = np.stack([log_posterior.pack(end) for end in self._fitted.ends])
        options = {"random_state": self._seed, **options}
        sweep = partial(gibbs_sweep, log_posterior)
        return self._keep(log_posterior, markov_chains(log_posterior, sweep, starts, **options))
