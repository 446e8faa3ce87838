"""What every classifier shares: labels read, classes and probabilities told, doubts measured."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int, Shaped
from sklearn.base import ClassifierMixin
from sklearn.utils import check_consistent_length

from bayesrbf import table
from bayesrbf.estimators import posteriors
from bayesrbf.estimators.acquiring import acquire, acquire_labels
from bayesrbf.estimators.arguments import prevalence
from bayesrbf.estimators.column_doubts import warn_of_blank_labels
from bayesrbf.estimators.deciding import decide
from bayesrbf.estimators.estimator import Estimator
from bayesrbf.estimators.explaining import explain
from bayesrbf.estimators.model_selection import score
from bayesrbf.estimators.out_of_core.answering import by_blocks
from bayesrbf.estimators.out_of_fold import out_of_fold_calibration
from bayesrbf.estimators.rehearsing import Rehearsal, held_in_rehearsal, rehearse
from bayesrbf.fitted.holding_out import Predict
from bayesrbf.inference.draws import MEMORY
from bayesrbf.numerics.hidden_share import calibrated
from bayesrbf.numerics.log_sums import at_prevalence
from bayesrbf.posterior.recalibration import tempered
from bayesrbf.records.masked_rows import Recalibration
from bayesrbf.records.mixture import Observations

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.posterior.predictive import ClassPosterior

LogProbabilities = Float[np.ndarray, "obs label"]
Labels = Shaped[np.ndarray, " obs"]
Weights = Float[np.ndarray, " obs"]


class Classifier(ClassifierMixin, Estimator):
    """Base of the classifiers."""

    classes_: Shaped[np.ndarray, " label"]
    temperature_: float
    calibration_: Recalibration | None = None
    _prevalence: Float[np.ndarray, " label"] | None
    _rehearsal = Rehearsal()
    _mean_is_better = False  # Whether the mean over draws was better than an uncalibrated point.

    @property
    def _averages(self) -> bool:
        """Whether predictions are means over draws; uncalibrated, the fitted point is too sure."""
        return self._mean_is_better and not self.calibrate

    def _read_labels(
        self, X: object, y: object, weights: Weights, factor: float = 1.0
    ) -> tuple[Int[np.ndarray, " obs"], Weights]:
        """Class codes and weights of the rows; a class without weight is left out."""
        check_consistent_length(X, y)
        read = table.present_classes(y, weights, self.unlabelled, factor)
        self.classes_, labels, weights = read
        warn_of_blank_labels(self.classes_, type(self).__name__)
        self._prevalence = prevalence(self.class_prior, self.classes_, type(self).__name__)
        return labels, weights

    def _calibrate(self, predict: Predict) -> None:
        """Fit temperature and calibration to out-of-fold predictions; none of them without."""
        self.temperature_, self.calibration_ = 1.0, None
        if self.calibrate:
            fitted = self.rows_, self.columns_, self.kept_, self.classes_, self.seed_
            found = out_of_fold_calibration(predict, self.cv, *fitted, type(self).__name__)
            self.temperature_, self.calibration_ = found

    @by_blocks
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
        return self._delivered(self._read(X, holes=True))

    def _delivered(self, rows: Observations, draws: int | None = None) -> LogProbabilities:
        """Class log probabilities as they are given out; a mean over draws may be over fewer."""
        if self._averages and self.draws_ is not None:
            mean = self._class_posterior().thinned(draws).mean(rows)
            with np.errstate(divide="ignore"):
                return np.log(mean)
        said = self._calibrated(rows)
        return said if self._prevalence is None else at_prevalence(said, self._log_ratio())

    @by_blocks
    def predict_proba(self, X: object) -> Float[np.ndarray, "obs label"]:
        """Class probabilities of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.

        Returns
        -------
        ndarray of shape (n_obs, n_classes)
            Probabilities in the order of ``classes_``; rows sum to one. After :meth:`refine`
            they are those of the fit, to which scores and temperatures belong; mixtures and
            exemplars that were not calibrated give the mean over the draws.
            ``class_prior`` moves what they would be without it by Bayes' rule: each times
            ``class_prior`` over the weighted share of its class among the labelled rows.
        """
        return np.exp(self.predict_log_proba(X))

    @by_blocks
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
        return self.classes_[codes]

    def adapt_prior(self, X: object) -> xr.Dataset:
        """Adapt to the class frequencies of a new population, estimated from unlabelled rows.

        Later predictions use these frequencies, as if they had been given as ``class_prior``. This
        is right if only the shares of the classes have changed, and not the classes themselves.

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
        from bayesrbf.posterior.label_shift import adapt_prior

        plain = copy(self)
        plain._prevalence = None
        trained = plain._class_shares()
        shift = adapt_prior(plain.predict_log_proba(X), trained)
        told = shift.to_dataset(trained, self.classes_)
        self._prevalence = shift.prior  # last: an error before leaves the old one
        return told

    def _calibrated(self, rows: Observations) -> LogProbabilities:
        """Class log probabilities at the fitted point and the prevalences of training."""
        said = tempered(self._class_log_joint(rows), self.temperature_)
        if self.calibration_ is None:
            return said
        return calibrated(said, self._hidden_share(rows), self.calibration_)

    def _hidden_share(self, rows: Observations) -> Float[np.ndarray, " obs"]:
        """Share of the cells of every row that are missing."""
        return table.hidden_share(rows, self.columns_)

    def _class_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs label"]:
        """Class log probabilities at the fitted point, before temperature and prevalences."""
        return self.model_.class_log_joint(rows, self.temperature_)

    def _class_shares(self) -> Float[np.ndarray, " label"]:
        """Shares of the classes that predictions stand for."""
        return self.model_.class_shares(self.rows_, self.classes_.size)

    def _log_ratio(self) -> Float[np.ndarray, " label"]:
        """Log ratio of the prevalences of use to those of training."""
        if self._prevalence is None:
            return np.zeros(self.classes_.size)
        return np.log(self._prevalence) - np.log(self._class_shares())

    def predict_posterior(
        self, X: object, *, memory: int = MEMORY, path: str | PathLike[str] | None = None
    ) -> xr.DataTree:
        """Class probabilities of each row under every draw of the posterior.

        Under ``class_prior`` every draw is moved by Bayes' rule for itself.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.
        memory : int
            Bytes of the probabilities: beyond, every k-th draw is kept, with a warning.
        path : path-like, optional
            A ``.npy`` file to write them to: every draw is kept, and the tree
            reads from the file.

        Returns
        -------
        xarray.DataTree
            ``predictions`` with ``probability`` over chain, draw, obs and label;
            ``predictions_constant_data`` with the rows.

        Raises
        ------
        ValueError
            If not even one draw of each chain fits into the memory.
        """
        from bayesrbf.conversion import predictions

        rows = self._read(X)
        posterior = replace(self._class_posterior(), memory=memory)
        probabilities, thinning = posterior.draws(rows, None if path is None else Path(path))
        return predictions(
            probabilities,
            labels=self.classes_,
            rows=np.arange(rows.n_obs),
            constant=self.model_.observed(rows),
            thinning=thinning,
        )

    @by_blocks
    def uncertainty(self, X: object, prob: float = 0.9, *, memory: int = MEMORY) -> xr.Dataset:
        """Class probabilities with intervals, kinds of doubt and the novelty of each row.

        Where :meth:`predict_proba` is not the mean of the draws, they are moved so that it is their
        median, or nearly their mean for the ``"bootstrap"`` of a stack (:doc:`/uncertainty`).

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows; missing cells are summed out.
        prob : float
            Probability inside the equal-tailed intervals.
        memory : int
            Bytes that arrays over draws may take at once; rows are summarised in blocks.

        Returns
        -------
        xarray.Dataset
            ``probability`` (:meth:`predict_proba`), sd and interval per class; entropies in nats;
            ``log_density`` of the cells; :meth:`novelty`. Without draws, intervals and kinds of
            doubt are NaN. Attribute ``rehearsal``: how often intervals held in :meth:`rehearse`.
            ``to_dataframe()`` has one line for every row, as for all answers about rows.
        """
        from bayesrbf.posterior.uncertainty import to_dataset

        rows = self._read(X, holes=True)
        posterior = replace(self._class_posterior(), memory=memory)
        delivered = np.exp(self._delivered(rows))
        summary = posterior.summary(rows, prob, delivered, centred=not self._averages)
        novel = self._novelty(rows) if self._models_rows else np.full(rows.n_obs, np.nan)
        told = novel, held_in_rehearsal(self, prob), posterior.n_draws == 1
        return to_dataset(summary, self.classes_, table.row_names(X, rows.n_obs), *told)

    rehearse, explain, decide, score = rehearse, explain, decide, score
    acquire, acquire_labels = acquire, acquire_labels

    def to_datatree(self, X: object, y: object) -> xr.DataTree:
        """Labels drawn for rows beside their true ones, for predictive checks.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows, such as a test set.
        y : array-like of shape (n_obs,)
            Their labels; rows whose label is hidden are left out.

        Returns
        -------
        xarray.DataTree
            The groups of :meth:`predict_posterior`, ``posterior_predictive`` and ``observed_data``.

        Raises
        ------
        ValueError
            If a label is no class of the fit.
        """
        return posteriors.with_drawn_labels(self.predict_posterior(X), self.classes_, y, self.seed_)

    def _class_posterior(self) -> ClassPosterior:
        """The posterior of class probabilities; one draw for a point estimate."""
        from bayesrbf.posterior.predictive import ClassPosterior

        log_posterior, model = self._log_posterior(), self.model_
        fitted = model.point(log_posterior)[None, None]
        return ClassPosterior(
            predictor=lambda rows: model.predictor(log_posterior, rows, self.temperature_),
            theta=fitted if self.draws_ is None else self.draws_.theta,
            log_ratio=self._log_ratio(),
            temperature=self.temperature_,
        ).calibrated(self.calibration_, self._hidden_share, self.rows_, self.seed_)

    def _replicates(self) -> posteriors.Replicates | None:
        return posteriors.drawn_for_training(self._class_posterior(), self.rows_, self.seed_)

    def _probabilities_of_training(self) -> dict[str, np.ndarray]:
        """Class probabilities of some training rows, under the draws and at the fit."""
        fitted = self.model_.point(self._log_posterior())
        return posteriors.probabilities_of_training(self._class_posterior(), self.rows_, fitted)
