"""Fitted exemplars at work: probabilities, their reasons, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from jaxtyping import Float
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from bayesrbf import names
from bayesrbf.estimators.classifier import Labels, PosteriorClassifier
from bayesrbf.estimators.describing import Named
from bayesrbf.estimators.median_lvq.exemplar_reader import ExemplarReader
from bayesrbf.estimators.posterior_estimator import Description
from bayesrbf.numerics.median_lvq.median_lvq_log_posterior import MedianLVQLogPosterior
from bayesrbf.numerics.median_lvq.rslvq import class_log_joint, responsibilities
from bayesrbf.parameters import Observations

if TYPE_CHECKING:
    import pandas as pd
    import pymc as pm

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


def _has_kernel(estimator: ExemplarClassifier) -> bool:
    """Whether exemplars share in the answer: under margins only the nearest count."""
    return bool(estimator.objective == "rslvq")


class ExemplarClassifier(ExemplarReader):
    """Base that works with fitted exemplars; see :class:`MedianLVQClassifier`."""

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
    predict_posterior = available_if(_has_kernel)(PosteriorClassifier.predict_posterior)
    uncertainty = available_if(_has_kernel)(PosteriorClassifier.uncertainty)
    to_datatree = available_if(_has_kernel)(PosteriorClassifier.to_datatree)

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

    @available_if(_has_kernel)  # type: ignore[untyped-decorator]
    def explain(self, X: object, most: int = 5) -> pd.DataFrame:
        r"""Name the training rows that the answer for each row rests on.

        The responsibility :math:`e^{-d(x, \theta_j) / \sigma^2} / \sum_k e^{-d(x, \theta_k) /
        \sigma^2}` of an exemplar is its share in the probabilities, before temperature and
        ``class_prior``; after :meth:`refine` its mean over the draws.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows, as for :meth:`predict`.
        most : int
            Most exemplars of a row.

        Returns
        -------
        pandas.DataFrame
            One line an exemplar, those first that count most: ``row`` of X,
            ``exemplar`` (row of ``fit``'s X), its ``label``, ``dissimilarity``,
            ``responsibility``.
        """
        from bayesrbf.estimators.median_lvq.explaining import explanation

        rows, needed = self._read(X), self._needed()
        log_posterior = self._log_posterior()
        theta = self._map(log_posterior)[None] if self._draws is None else self._draws.theta
        points = theta.reshape(-1, log_posterior.dimension)
        shares = np.zeros((rows.n_obs, needed.size, self.classes_.size))
        members = np.zeros(shares.shape[1:], dtype=bool)
        for point in points:
            places = np.searchsorted(needed, log_posterior.exemplars(point))
            of_point = responsibilities(rows.real[:, places], log_posterior.width(point))
            for place, label, share in zip(
                places, log_posterior.prototypes.classes, of_point.T, strict=True
            ):
                shares[:, place, label] += share / len(points)
                members[place, label] = True
        shares[:, ~members] = np.nan
        return explanation(shares, rows.real, self._kept[needed], self.classes_, most)

    def declare(self) -> pm.Model:
        """Declare the graph of this classifier on its training rows.

        Temperature and ``class_prior`` are not part of the graph.

        Returns
        -------
        pymc.Model
            Free variables under the names of ``posterior_``: ``exemplars``, and ``sigma``
            if it is free.

        Raises
        ------
        AttributeError
            If ``objective="glvq"``, which has no likelihood.
        """
        from bayesrbf.models import declare_median_lvq

        check_is_fitted(self)
        log_posterior = self._log_posterior()
        return declare_median_lvq(
            log_posterior.rows,
            log_posterior.prototypes,
            log_posterior.sigma,
            class_names=self.classes_.tolist(),
            obs_names=self._kept.tolist(),
        )

    def refine(self, method: str = "gibbs", **options: Any) -> Self:
        """Draw exemplars (and sigma, if it is free) from the posterior.

        Parameters
        ----------
        method : {"gibbs"}
            Every exemplar from its full conditional, sigma along a slice: exact.
        **options : object
            ``draws`` (500 a chain), ``tune`` (200), ``thin`` (4), ``chains`` (4),
            ``random_state``, ``progress_bar``; see :func:`bayesrbf.inference.gibbs.gibbs`.

        Returns
        -------
        self
            With the draws in ``posterior_``; predictions average over them.

        Raises
        ------
        ValueError
            If the method is unknown.
        """
        check_is_fitted(self)
        if method != "gibbs":
            raise ValueError(
                f"refine(method) must be 'gibbs' for {type(self).__name__}, whose exemplars are "
                f"discrete; received {method!r}."
            )
        return super().refine(method, **{"draws": 500, "tune": 200, **options})
