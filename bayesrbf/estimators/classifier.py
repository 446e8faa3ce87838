"""What every classifier with a posterior shares: labels read, classes and probabilities told."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int, Shaped
from sklearn.base import ClassifierMixin
from sklearn.utils import check_consistent_length

from bayesrbf import names, table
from bayesrbf.estimators.class_posterior import ClassPosteriorEstimator
from bayesrbf.numerics.prevalence import at_prevalence
from bayesrbf.posterior.temperature import tempered

if TYPE_CHECKING:
    import xarray as xr

Labels = Shaped[np.ndarray, " obs"]


class PosteriorClassifier(ClassifierMixin, ClassPosteriorEstimator):
    """Base of the classifiers; the hooks that a family writes are those of its bases."""

    # ---- fitting

    def _read_labels(
        self,
        X: object,
        y: object,
        weights: Float[np.ndarray, " obs"],
        unlabelled_weight: float = 1.0,
    ) -> tuple[Int[np.ndarray, " obs"], Float[np.ndarray, " obs"]]:
        """Class codes and weights of the rows; only classes that weigh something exist."""
        check_consistent_length(X, y)
        classes, labels = table.encode_labels(y, unlabelled=self.unlabelled)
        weights = np.where(labels < 0, unlabelled_weight * weights, weights)
        present = np.unique(labels[(labels >= 0) & (weights > 0)])
        if present.size == 0:
            raise ValueError(
                "y needs at least one labelled row of positive weight; every label is hidden "
                "or has sample_weight 0."
            )
        self.classes_ = classes[present]
        known = np.isin(labels, present)
        return np.where(known, np.searchsorted(present, labels), -1), weights

    # ---- predicting

    def predict_log_proba(self, X: object) -> Float[np.ndarray, "obs label"]:
        """Log of :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs, n_classes)
            Class log probabilities in nats, in the order of ``classes_``.
        """
        rows = self._read(X)
        if self._draws is None:
            calibrated = tempered(self._class_log_joint(rows), self.temperature_)
            return at_prevalence(calibrated, self._log_ratio())
        mean = self._class_posterior().mean(rows)
        with np.errstate(divide="ignore"):
            return np.log(mean)

    def predict_proba(self, X: object) -> Float[np.ndarray, "obs label"]:
        """Class probabilities of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs, n_classes)
            Probabilities in the order of ``classes_``; rows sum to one. After
            :meth:`refine` their mean over the posterior draws. With ``class_prior``
            Bayes' rule applied to what they would be without: each times ``class_prior``
            over the weighted share of its class among the labelled training rows.
        """
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: object) -> Labels:
        """Most probable class of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs,)
            Class labels.
        """
        codes = self.predict_log_proba(X).argmax(axis=1)
        best: Labels = self.classes_[codes]
        return best

    def _class_names(self) -> Labels:
        """Class labels."""
        return self.classes_

    def adapt_prior(self, X: object) -> xr.Dataset:
        """Move to the prevalence of a new population, estimated from its unlabelled rows.

        Every later prediction is made at that prevalence, as if ``class_prior`` had
        been given. It is right where the classes are as they were and only their
        shares have changed; calibrate first where probabilities are not to be trusted.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows of the new population, drawn as they come; no labels are needed.

        Returns
        -------
        xarray.Dataset
            ``probability``, its ``standard_error`` and the ``trained`` probability
            over label; attribute ``gain``: how much better the rows are explained, in
            nats (no shift: about half a chi-squared of n_classes - 1).

        References
        ----------
        .. [1] Saerens, Latinne, Decaestecker (2002), Adjusting the outputs of a
           classifier to new a priori probabilities, Neural Computation 14, 21-41.
        """
        import xarray as xr

        from bayesrbf.posterior.label_shift import adapt_prior

        plain = copy(self)
        plain._prevalence = None
        trained = plain._fitted_shares()
        shift = adapt_prior(plain.predict_log_proba(X), trained)
        values = {
            names.PROBABILITY: shift.prior,
            "standard_error": shift.standard_error,
            "trained": trained,
        }
        told = xr.Dataset(
            {name: ((names.LABEL,), value) for name, value in values.items()},
            coords={names.LABEL: self.classes_},
            attrs={"gain": shift.gain},
        )
        self._prevalence = shift.prior
        return told
