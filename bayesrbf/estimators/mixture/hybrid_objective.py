"""Which objective a hybrid mixture follows, where that is left to the data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from bayesrbf.estimators.folds import Fold, HeldOut, best_setting, hold_out
from bayesrbf.fitted.fitted_mixture import LIKELIHOOD, FittedMixture, Solver, fit_mixture_rows
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.objective import Objective
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.specification import MixtureSpecification

KAPPAS: Final = (1.0, 0.5, 0.3, 0.1, 0.03)
"""Weights of the density in a blend, from the likelihood on. Below, held-out log loss
diverges where cells are hidden."""
HINGE_WEIGHTS: Final = (0.25, 1.0, 4.0, 16.0)
DIALS: Final = {"blend": "kappa", "hinge": "hinge_weight"}
"""The argument that leads from the likelihood away, by objective."""


def asked_objective(estimator: Any) -> Objective:
    """The objective that an estimator asks for; what is open stands at its default."""
    dials: dict[str, Any] = {
        dial: float(getattr(estimator, dial))
        for dial in DIALS.values()
        if getattr(estimator, dial) != "cv"
    }
    cap = estimator.ramp_cap
    return Objective(
        estimator.objective,
        margin=float(estimator.margin),
        smoothing=float(estimator.smoothing),
        sharpness=float(estimator.sharpness),
        ramp_cap=None if cap is None else float(cap),
        **dials,
    )


def hybrid_solver(estimator: Any, seed: int) -> Solver:
    """How an estimator asks to be fitted."""
    return Solver(
        estimator.n_init,
        estimator.max_iter,
        float(estimator.tol),
        estimator.acceleration,
        seed,
        steps=estimator.objective_iter,
        batch_size=estimator.batch_size,
        held_out=float(estimator.validation_fraction) if estimator.early_stopping else 0.0,
    )


@dataclass(frozen=True)
class Setting:
    """What cross-validation may choose."""

    objective: Objective
    unlabelled_weight: float
    """Factor of the weight of rows without a label."""

    def weigh(self, rows: Observations) -> Observations:
        """Rows as this setting weighs them; those that weigh nothing are left out."""
        hidden = rows.labels < 0
        if self.unlabelled_weight == 1 or not hidden.any():
            return rows
        if self.unlabelled_weight == 0:
            return rows.take(~hidden)
        weights = np.where(hidden, self.unlabelled_weight * rows.weights, rows.weights)
        return replace(rows, weights=weights)


@dataclass(frozen=True)
class Task:
    """What the fits of all settings and folds have in common."""

    specification: MixtureSpecification
    prior: MixturePrior
    solver: Solver
    """How to fit; its objective is exchanged for that of a setting."""
    from_labelled: bool = False
    """Start at the fit to the labelled rows alone."""
    chained: bool = False
    """Start every setting but the first at the fit of the one before."""

    def begin(self, rows: Observations, seed: int) -> MixtureParameters | None:
        """The supervised fit in the user's units, where fits start at it."""
        if not self.from_labelled or not (rows.labels < 0).any():
            return None
        solver = replace(self.solver, objective=LIKELIHOOD, seed=seed)
        labelled = rows.take(rows.labels >= 0)
        mixture, _ = fit_mixture_rows(labelled, self.specification, self.prior, solver)
        return mixture.start

    def fits(
        self, rows: Observations, settings: Sequence[Setting], seed: int
    ) -> Iterator[FittedMixture]:
        """Fit every setting to the same rows."""
        start = self.begin(rows, seed)
        for setting in settings:
            solver = replace(self.solver, objective=setting.objective, seed=seed)
            counted = setting.weigh(rows)
            mixture, _ = fit_mixture_rows(counted, self.specification, self.prior, solver, start)
            if self.chained:
                start = mixture.start
            yield mixture

    def held_out(
        self, splits: Iterable[Fold], settings: Sequence[Setting], classes: np.ndarray
    ) -> HeldOut | None:
        """Class log joints of rows that were not fitted to: (n_held_out, n_settings, n_classes)."""

        def predict(fold: int, train: Observations, test: Observations) -> np.ndarray:
            fits = self.fits(train, settings, self.solver.seed + 1 + fold)
            return np.stack([mixture.class_log_joint(test) for mixture in fits], axis=1)

        return hold_out(splits, predict, classes)


@dataclass(frozen=True)
class Choice:
    """The chosen setting and its temperature."""

    setting: Setting
    scores: Float[np.ndarray, " setting"]
    """Out-of-fold log scores in nats per row; NaN where no row was held out."""
    temperature: float | None
    """Out-of-fold temperature of the chosen setting; None where no row was held out."""


def choose(
    task: Task,
    splits: Iterable[Fold],
    settings: Sequence[Setting],
    classes: np.ndarray,
    *,
    calibrate: bool,
) -> Choice:
    """Take the setting whose out-of-fold log score is best; the first of equals."""
    held = task.held_out(splits, settings, classes)
    if held is None:
        return Choice(settings[0], np.full(len(settings), np.nan), None)
    best, scores, temperature = best_setting(held, calibrate=calibrate)
    return Choice(settings[best], scores, temperature)


def open_settings(
    objective: Objective,
    *,
    open_dial: bool,
    unlabelled_weight: float | None,
    n_columns: int,
) -> tuple[Setting, ...]:
    """Every setting that is to be judged; one where nothing is open.

    A weight of None opens 0, 1 / n_columns and 1.

    Examples
    --------
    >>> blend = Objective("blend")
    >>> [s.objective.kappa for s in open_settings(
    ...     blend, open_dial=True, unlabelled_weight=1.0, n_columns=4)]
    [1.0, 0.5, 0.3, 0.1, 0.03]
    """
    objectives = [objective]
    if open_dial and objective.name == "blend":
        objectives = [replace(objective, kappa=kappa) for kappa in KAPPAS]
    elif open_dial and objective.name == "hinge":
        objectives = [replace(objective, hinge_weight=weight) for weight in HINGE_WEIGHTS]
    weights = [0.0, 1.0 / n_columns, 1.0] if unlabelled_weight is None else [unlabelled_weight]
    distinct = sorted(set(weights))
    return tuple(Setting(one, weight) for one in objectives for weight in distinct)
