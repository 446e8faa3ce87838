"""What every classifier shares: probabilities, decisions, questions about rows."""

from __future__ import annotations

from copy import copy
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jaxtyping import Float, Shaped
from sklearn.base import ClassifierMixin

from bayesrbf.answers.decide import acquire, decide
from bayesrbf.answers.explain import explain
from bayesrbf.answers.probabilities import predict_posterior, summary_of, uncertainty
from bayesrbf.base.rows import Recalibration
from bayesrbf.fit.asking import ask, new_rows
from bayesrbf.fit.estimator import Calibrated, Estimator, out_of_fold_calibration
from bayesrbf.fit.held_out import Predict
from bayesrbf.fit.reading import Reading
from bayesrbf.fit.table import TrainingTable
from bayesrbf.fit.training import by_blocks

if TYPE_CHECKING:
    import xarray as xr


LogProbabilities = Float[np.ndarray, "obs label"]
Labels = Shaped[np.ndarray, " obs"]


class Classifier(ClassifierMixin, Estimator):
    """Base of the classifiers."""

    _mean_is_better: ClassVar[bool] = False
    """Whether the mean over draws was better than an uncalibrated point."""

    # ---- fitting

    def _reading(self, **changes: Any) -> Reading:
        """How the training table is read; rows without a label weigh what the user says.

        A weight that is left to the data is 1 at first.
        """
        weight = self.get_params(deep=False).get("unlabelled_weight", 1.0)
        factor = float(weight) if isinstance(weight, Real) else 1.0
        return super()._reading(unlabelled_weight=factor, **changes)

    def _calibration(self, training: TrainingTable, predict: Predict) -> Calibrated:
        """Temperature and calibration by out-of-fold predictions; none without ``calibrate``."""
        arguments = self.get_params(deep=False)
        if not arguments["calibrate"]:
            return {"averages": self._mean_is_better}
        return out_of_fold_calibration(
            predict,
            arguments["cv"],
            training.rows,
            training.read_columns,
            training.kept,
            training.class_labels,
            training.seed,
            training.owner,
        )

    # ---- a posterior

    def refine(
        self,
        method: str = "laplace",
        *,
        model_doubt: object = None,
        **options: object,
    ) -> Self:
        """Draw from the posterior, and count how far other kinds of models differ if asked.

        Parameters
        ----------
        method : {"laplace", "advi", "gibbs", "nuts", "bootstrap"}
            How parameters are drawn; see :class:`MixtureDensity`, whose methods these are.
        model_doubt : {None, "pool"}
            None: intervals are those of the parameters, if the model is right. ``"pool"``: the
            members of ``StackedClassifier("lite")`` are fitted to the same rows, and the truth
            counts as one kind of model more. Probabilities do not change, their intervals do.
        **options : object
            Passed on, such as ``draws``, ``chains`` and ``random_state``.

        Returns
        -------
        self
            With the draws in ``posterior_``.

        Raises
        ------
        ValueError
            If the method is unknown, or none for this model, or no pool can be fitted to its rows.
        """
        if model_doubt not in (None, "pool"):
            raise ValueError(
                f"{type(self).__name__}.refine(model_doubt=...) must be None or 'pool'; received "
                f"{model_doubt!r}."
            )
        if model_doubt is None:
            return super().refine(method, **options)
        from bayesrbf.families.stack.model_doubt import doubt_of, require_comparable

        fit = self._fit
        fit.require_all_rows(f"refine({method!r})")
        require_comparable(fit)
        given = self.get_params(deep=False)
        cv, n_jobs = given.get("cv"), given.get("n_jobs")
        # First what may be refused, then what takes long.
        return self._take(
            lambda: self._drawn(fit, method, options).replaced(doubt=doubt_of(fit, cv, n_jobs))
        )

    # ---- predicting

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
        return self._log_probabilities(X)

    def _log_probabilities(self, X: object) -> LogProbabilities:
        """Class log probabilities of rows in memory."""
        rows = new_rows(self._fit, X, holes=True).cells
        return self.fitted_.class_log_probabilities(rows)

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
        return np.exp(self._log_probabilities(X))

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
        codes = self._log_probabilities(X).argmax(axis=1)
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
        from bayesrbf.answers.probabilities import adapt_prior

        plain = self._fit.at_prevalence(None)
        before = copy(self)
        before.fitted_ = plain
        shift = adapt_prior(before.predict_log_proba(X), plain.class_shares)
        answer = shift.to_dataset(plain.class_shares, plain.classes)
        self.fitted_ = plain.at_prevalence(shift.prior)  # last: an error leaves the old one
        return answer

    predict_posterior = ask(predict_posterior)
    uncertainty = by_blocks(ask(uncertainty))
    explain, decide = ask(explain), ask(decide)
    acquire = ask(acquire)

    def score(self, X: object, y: object, sample_weight: object = None) -> float:
        """Share of the rows whose most probable class is their label.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows.
        y : array-like of shape (n_obs,)
            Labels; ValueError if one is hidden.
        sample_weight : array-like of shape (n_obs,), optional
            Row weights.

        Returns
        -------
        float
            Accuracy.
        """
        unlabelled = self.get_params(deep=False)["unlabelled"]
        from bayesrbf.fit.held_out import refuse_hidden

        refuse_hidden(y, unlabelled, type(self).__name__)
        return float(super().score(X, y, sample_weight))

    def _answers_about(self, X: object) -> dict[str, np.ndarray]:
        """Answers about a row that are tried where a file is read."""
        answers = super()._answers_about(X) | {"predict_proba": self.predict_proba(X)}
        if self.fitted_.draws is None:
            return answers
        # Arrays, because xarray and what it looks for take longer to load than a file.
        summary = summary_of(self.fitted_, new_rows(self.fitted_, X).cells)
        return answers | {"uncertainty": summary.mean}

    # ---- parts of the fit

    @property
    def classes_(self) -> Shaped[np.ndarray, " label"]:
        """Class labels, sorted."""
        return self._fit.classes

    @property
    def temperature_(self) -> float:
        """Factor of the class log probabilities; 1 without calibration."""
        return self._fit.temperature

    @property
    def calibration_(self) -> Recalibration | None:
        """What calibrates tempered probabilities where cells are hidden."""
        return self._fit.calibration
