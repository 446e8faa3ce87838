"""A classifier of mixtures that follows any objective, with dials that data may set."""

from __future__ import annotations

import warnings
from dataclasses import replace
from types import UnionType
from typing import Any, ClassVar, Self

import numpy as np
from jaxtyping import Float

from bayesrbf import table
from bayesrbf.estimators.calibrating import split_rows
from bayesrbf.estimators.mixture.classifier import MixtureClassifier
from bayesrbf.estimators.mixture.fitting import FittedMixture, Solver, fit_rows
from bayesrbf.estimators.mixture.hybrid_objective import Setting, Task, choose, open_settings
from bayesrbf.inference.protocol import LogPosterior
from bayesrbf.numerics.discriminative.hybrid_log_posterior import HybridLogPosterior
from bayesrbf.numerics.mixture_rows import MixtureOnRows
from bayesrbf.objective import Objective
from bayesrbf.parameters import MixtureParameters
from bayesrbf.results import Fit
from bayesrbf.specification import MixtureSpecification

DIALS = {"blend": "kappa", "hinge": "hinge_weight"}
"""The argument that leads from the likelihood away, by objective."""


class ObjectiveMixture(MixtureClassifier):
    """Base of the mixtures with an objective; see the subclass."""

    kappa_: float
    hinge_weight_: float
    unlabelled_weight_: float
    _objective: Objective

    _STATE: ClassVar[dict[str, type | UnionType]] = MixtureClassifier._STATE | {
        "_objective": Objective,
        "hinge_weight_": float,
        "kappa_": float,
        "unlabelled_weight_": float,
    }

    def _fit_mixture(
        self, specification: MixtureSpecification, start: MixtureParameters | None
    ) -> tuple[FittedMixture, Fit]:
        """Choose what is left to the data, then fit to the distinct rows."""
        open_weight = self.unlabelled_weight == "cv"
        task = Task(specification, self._prior(), self._solver(), open_weight)
        setting = self._choose(task)
        self._objective = setting.objective
        self.kappa_ = float(setting.objective.kappa)
        self.hinge_weight_ = float(setting.objective.hinge_weight)
        self.unlabelled_weight_ = float(
            setting.unlabelled_weight if open_weight else self.unlabelled_weight
        )
        if start is None:
            start = task.begin(table.distinct(self._rows)[0], self._seed)
        if setting.unlabelled_weight == 0:
            self._kept = self._kept[self._rows.labels >= 0]
        self._rows = setting.weigh(self._rows)
        solver = replace(task.solver, objective=setting.objective)
        return fit_rows(table.distinct(self._rows)[0], specification, task.prior, solver, start)

    def _choose(self, task: Task) -> Setting:
        """The setting of the best out-of-fold log score; its temperature is kept."""
        settings = open_settings(
            self._asked(),
            open_dial=getattr(self, DIALS.get(self.objective, ""), None) == "cv",
            unlabelled_weight=None if self.unlabelled_weight == "cv" else 1.0,
            n_columns=self.n_features_in_,
        )
        self.temperature_ = 1.0
        if len(settings) == 1 and not self.calibrate:
            return settings[0]
        splits = split_rows(self.cv, self._rows, self._kept, self._seed)
        choice = choose(task, splits, settings, self.classes_, calibrate=self.calibrate)
        if choice.temperature is None:
            warnings.warn(
                f"{type(self).__name__}: cv={self.cv} holds out no labelled row (the only "
                "row of a class never is), so nothing is chosen by it and the temperature is 1; "
                "label more rows, or give other splits.",
                stacklevel=5,
            )
        elif self.calibrate:
            self.temperature_ = choice.temperature
        return choice.setting

    def _asked(self) -> Objective:
        """The objective as it was asked for; what is open stands at its default."""
        dials: dict[str, Any] = {
            dial: float(getattr(self, dial))
            for dial in DIALS.values()
            if getattr(self, dial) != "cv"
        }
        cap = self.ramp_cap
        return Objective(
            self.objective,
            margin=float(self.margin),
            smoothing=float(self.smoothing),
            sharpness=float(self.sharpness),
            ramp_cap=None if cap is None else float(cap),
            **dials,
        )

    def _solver(self) -> Solver:
        """How to fit."""
        return replace(
            super()._solver(),
            steps=self.objective_iter,
            batch_size=self.batch_size,
            held_out=float(self.validation_fraction) if self.early_stopping else 0.0,
        )

    def _class_shares(
        self, log_posterior: LogPosterior, theta: Float[np.ndarray, "chain draw coordinate"]
    ) -> Float[np.ndarray, "chains draws label"]:
        """Class probabilities for which the fit stands: other objectives bend the parameter.

        ``log p(y | x)`` does not tell a class probability from a factor of the density,
        so what it stands for are the shares of the labelled rows.
        """
        if self._objective.name == "likelihood":
            return super()._class_shares(log_posterior, theta)
        return self._fitted_shares()[None, None]

    def _fitted_shares(self) -> Float[np.ndarray, " label"]:
        """The same at the fitted point."""
        if self._objective.name == "likelihood":
            return super()._fitted_shares()
        known = self._rows.labels >= 0
        counts = np.bincount(
            self._rows.labels[known], self._rows.weights[known], minlength=self.classes_.size
        )
        counts += self._mixture.hyperparameters.class_concentration - 1
        return counts / counts.sum()

    def refine(self, method: str = "laplace", **options: Any) -> Self:
        """Draw from the posterior, or the Gibbs posterior, starting at the fitted point.

        Parameters
        ----------
        method : {"laplace", "advi", "gibbs", "nuts"}
            As for every estimator; ``"gibbs"`` draws labels and missing cells, which
            only ``objective="likelihood"`` gives a law to.
        **options : object
            Passed on to the method.

        Returns
        -------
        self
            With the draws in ``posterior_``; predictions average over them.

        Raises
        ------
        ValueError
            If the method is unknown, or none for this objective.
        """
        if method == "gibbs" and self.objective != "likelihood":
            raise ValueError(
                f"refine('gibbs') needs objective='likelihood', under which labels and cells have "
                f"a law to be drawn from; received objective={self.objective!r}: use 'nuts'."
            )
        return super().refine(method, **options)

    def _log_posterior(self) -> MixtureOnRows:
        """The log (Gibbs) posterior given the training rows, in the graph's coordinates."""
        if self._objective.name == "likelihood":
            return super()._log_posterior()
        mixture = self._mixture
        return HybridLogPosterior(
            mixture.standardise(self._rows),
            mixture.specification,
            mixture.hyperparameters,
            self._objective,
        )
