"""What a fitted sparse discriminative mixture answers: probabilities, errors, the posterior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import UnionType
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float
from sklearn.utils.validation import check_is_fitted

from bayesrbf import names, table
from bayesrbf.estimators.checks import components_per_class
from bayesrbf.estimators.companion import CompanionClassifier
from bayesrbf.estimators.posterior_estimator import Description
from bayesrbf.estimators.sdgm.checking import PREDICTIONS, check_choice
from bayesrbf.estimators.sdgm.describing import coefficient_names
from bayesrbf.estimators.sdgm.fitted import POSTERIOR_DRAWS, FittedSDGM
from bayesrbf.estimators.sdgm.fitting import full_basis
from bayesrbf.estimators.sdgm.rows import completions, labelled, told
from bayesrbf.numerics.sdgm.drawing import replicated_draws
from bayesrbf.numerics.sdgm.learned import learned_specification, learned_weights
from bayesrbf.numerics.sdgm.log_posterior import SDGMLogPosterior
from bayesrbf.numerics.sdgm.prediction import component_probabilities
from bayesrbf.parameters import Observations
from bayesrbf.sdgm_parameters import Basis, CompletedRows, SDGMSpecification, SDGMTrace

if TYPE_CHECKING:
    import pymc as pm

    from bayesrbf.posterior.predictive import ClassPosterior, Predictor


class SDGMPosterior(CompanionClassifier):
    """Base of :class:`SDGMClassifier`: all that follows the fit."""

    _fitted: FittedSDGM
    _sets: np.ndarray

    _STATE: ClassVar[dict[str, type | UnionType]] = CompanionClassifier._STATE | {
        "_fitted": FittedSDGM,
        "_sets": np.ndarray,
        "completion_error_": float,
        "mode_n_weights_": np.ndarray,
        "mode_probabilities_": np.ndarray,
        "n_components_": int,
        "n_weights_": int,
        "path_": SDGMTrace,
    }

    @property
    def _kernel(self) -> object:
        """The kernel of the dual form; None in the primal one."""
        return self.kernel if self.form == "kernel" else None

    # ---- predicting

    def numerical_error(self, X: object) -> Float[np.ndarray, "obs label"]:
        """Standard error of :meth:`predict_proba` by its quasi-random integration.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows.

        Returns
        -------
        ndarray of shape (n_obs, n_classes)
            Error of averages over weights and missing cells; 0 where nothing was
            averaged. It is that of the fit: draws of :meth:`refine` have their own.
        """
        return self._predict(self._read(X))[1]

    def component_probabilities(self, X: object) -> Float[np.ndarray, "obs component"]:
        """Probabilities of classes and components together, at the fitted weights.

        Before temperature and any change of prevalence.

        Parameters
        ----------
        X : array-like or frame of shape (n_obs, n_columns)
            Rows.

        Returns
        -------
        ndarray of shape (n_obs, n_components)
            ``p(c, m | x)`` of the components that survived, class by class; rows
            sum to one.
        """
        rows = self._read(X)
        fitted = self._fitted
        return component_probabilities(
            fitted.parameters,
            fitted.basis,
            fitted.units,
            lambda replicate: completions(self._companion, rows, POSTERIOR_DRAWS, replicate),
        )

    def component_classes(self) -> np.ndarray:
        """Class of every component that survived.

        Returns
        -------
        ndarray of shape (n_components,)
            Labels.
        """
        check_is_fitted(self)
        return self.classes_[self._fitted.parameters.component_class]

    def _averaged(self, fitted: FittedSDGM) -> tuple[FittedSDGM, bool]:
        """The modes that predictions use, and whether the spread around them, too.

        Draws are of one mode, and so is what their temperature is fitted to.
        """
        check_choice(self, "prediction", PREDICTIONS)
        one = self.prediction != "average" or self.inference != "map"
        return fitted.with_one_mode() if one else fitted, self.prediction != "plug-in"

    def _predict(
        self, rows: Observations
    ) -> tuple[Float[np.ndarray, "obs label"], Float[np.ndarray, "obs label"]]:
        """Class probabilities as ``prediction`` says, and their numerical errors."""
        fitted, average = self._averaged(self._fitted)
        return fitted.predict(
            self._companion,
            rows,
            average=average,
            temperature=self.temperature_,
            shift=self._shift(),
        )

    def _class_log_joint(self, rows: Observations) -> Float[np.ndarray, "obs label"]:
        """What temperature and prevalences make the log of the mean probabilities."""
        with np.errstate(divide="ignore"):
            return (np.log(self._predict(rows)[0]) - self._shift()) / self.temperature_

    def _fitted_shares(self) -> Float[np.ndarray, " label"]:
        """Class frequencies of the training rows whose class is known."""
        classes = self.classes_.size
        known = (self._rows.labels >= 0) & (self._rows.labels < classes)
        counts = np.bincount(
            self._rows.labels[known], weights=self._rows.weights[known], minlength=classes
        )
        return (counts + 0.5) / (counts + 0.5).sum()

    def _predictor(self, log_posterior: SDGMLogPosterior) -> Callable[[Observations], Predictor]:
        """Prepares rows: completes them once for all draws."""

        def prepare(rows: Observations) -> Predictor:
            points, starts = completions(self._companion, rows, POSTERIOR_DRAWS)
            density = self._log_density(rows)
            return log_posterior.predictor(points, starts, density, self.temperature_)

        return prepare

    def _class_posterior(self) -> ClassPosterior:
        """Of the draws, or of the Laplace posterior that the fit itself makes."""
        posterior = super()._class_posterior()
        fitted, average = self._averaged(self._fitted)
        if self._draws is not None or not average:
            return posterior
        theta = replicated_draws(fitted.modes)
        return replace(posterior, predictor=self._predictor_of(fitted), theta=theta)

    def _predictor_of(self, fitted: FittedSDGM) -> Callable[[Observations], Predictor]:
        """Prepares rows for draws of several modes, which begin with the mode's number."""
        rows = labelled(self._companion, self._rows, self._sets)
        modes = fitted.modes.parameters
        makers = [
            self._predictor(SDGMLogPosterior(rows, fitted.basis, fitted.units, mode.specification))
            for mode in modes
        ]

        def prepare(rows: Observations) -> Predictor:
            predictors = [make(rows) for make in makers]

            def class_log_joint(theta: np.ndarray) -> np.ndarray:
                number = int(theta[0])
                return predictors[number](theta[1 : 1 + modes[number].n_weights])

            return class_log_joint

        return prepare

    # ---- the posterior

    def _declaration(self) -> tuple[CompletedRows, Basis, SDGMSpecification]:
        """Training rows, features and structure of the declared graph."""
        fitted, companion = self._fitted, self._companion
        rows = labelled(companion, self._rows, self._sets)
        if self.precision_prior is None:
            return rows, fitted.basis, fitted.parameters.specification
        distinct, _ = table.distinct(self._rows)  # the exemplars of the fit
        basis = full_basis(
            companion.specification,
            fitted.units,
            labelled(companion, distinct.take(told(distinct, self._sets)), self._sets),
            self._kernel,
        )
        owner = type(self).__name__
        component_class = components_per_class(self.n_components, self.classes_, owner)
        prior = self.precision_prior
        return rows, basis, learned_specification(component_class, basis.n_features, prior)

    def _log_posterior(self) -> SDGMLogPosterior:
        """The log posterior of the weights given the training rows."""
        rows, basis, specification = self._declaration()
        return SDGMLogPosterior(rows, basis, self._fitted.units, specification)

    def _map(self, log_posterior: SDGMLogPosterior) -> Float[np.ndarray, " coordinate"]:
        """The fitted weights; where precisions are learned, the same function of all weights."""
        parameters = self._fitted.parameters
        if self.precision_prior is None:
            return log_posterior.pack(parameters.coefficients)
        everywhere = replace(parameters, feature=self._fitted.features[parameters.feature])
        return log_posterior.pack(learned_weights(everywhere, log_posterior.specification))

    def _description(self) -> Description:
        """Names and training rows, for the DataTree."""
        rows, basis, specification = self._declaration()
        component_class = self.classes_[specification.component_class]
        coords = {
            names.OBS: self._kept,
            names.LABEL: self.classes_,
            names.COMPONENT: np.arange(specification.n_components),
            names.COMPONENT_CLASS: ((names.COMPONENT,), component_class),
            names.COEFFICIENT: coefficient_names(
                basis, specification, self._columns, self.classes_
            ),
        }
        return Description(
            coords=coords,
            observed={
                names.OBSERVED_LABEL: ((names.OBS, names.LABEL), rows.allowed.astype(np.int64))
            },
            constant={
                "row_weight": ((names.OBS,), rows.weights),
                "proportions": ((names.COMPONENT,), specification.proportions),
            },
        )

    def declare(self) -> pm.Model:
        """Declare the graph of this classifier on its training rows.

        Temperature and ``class_prior`` are not part of the graph.

        Returns
        -------
        pymc.Model
            Free variables under the names of ``posterior_``.
        """
        from bayesrbf.models import declare_sdgm

        rows, basis, specification = self._declaration()
        return declare_sdgm(
            rows,
            basis,
            self._fitted.units,
            specification,
            class_names=self.classes_.tolist(),
            obs_names=self._kept.tolist(),
            coefficient_names=coefficient_names(basis, specification, self._columns, self.classes_),
        )
