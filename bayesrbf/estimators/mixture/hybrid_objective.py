"""Which objective and which covariances a hybrid mixture has, where that is left to the data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from bayesrbf import table
from bayesrbf.estimators.folds import Fold
from bayesrbf.estimators.holding_out import HeldOut, best_setting, fit_calibration, hold_out
from bayesrbf.fitted.fitted_mixture import LIKELIHOOD, FittedMixture
from bayesrbf.fitted.masking import Masking
from bayesrbf.fitted.mixture_fitting import ColumnMaps, Solver, fit_mixture_rows
from bayesrbf.posterior.recalibration import log_scores
from bayesrbf.records.masked_rows import Recalibration
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.objective import Objective
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.specification import CovarianceType, MixtureSpecification

KAPPAS: Final = (1.0, 0.5, 0.3, 0.1, 0.03)
"""Weights of the density in a blend, from the likelihood on. Below, held-out log loss
diverges where cells are hidden."""
HINGE_WEIGHTS: Final = (0.25, 1.0, 4.0, 16.0)
DIALS: Final = {"blend": "kappa", "hinge": "hinge_weight"}
"""The argument that leads from the likelihood away, by objective."""
SHAPES: Final[tuple[CovarianceType, ...]] = ("full", "diag")
"""Shapes of covariances to choose from."""


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
    specification: MixtureSpecification

    def weigh(self, rows: Observations) -> Observations:
        """Rows as this setting weighs them; those that weigh nothing are left out."""
        if self.unlabelled_weight == 1 or not (rows.labels < 0).any():
            return rows
        weights = table.weigh_unlabelled(rows.labels, rows.weights, self.unlabelled_weight)
        return replace(rows, weights=weights).take(weights > 0)


@dataclass(frozen=True)
class Task:
    """What the fits of all settings and folds have in common."""

    prior: MixturePrior
    solver: Solver
    """How to fit; its objective is exchanged for that of a setting."""
    from_labelled: bool = False
    """Start at the fit to the labelled rows alone."""
    chained: bool = False
    """Start every setting but the first at the fit of the one before."""
    column_maps: ColumnMaps = None

    def begins_with(self, rows: Observations) -> bool:
        """Whether fits to such rows start at the supervised one."""
        return self.from_labelled and bool((rows.labels < 0).any())

    def begin(
        self, rows: Observations, specification: MixtureSpecification, seed: int
    ) -> MixtureParameters | None:
        """The supervised fit in the user's units, where fits start at it."""
        if not self.begins_with(rows):
            return None
        solver = replace(self.solver, objective=LIKELIHOOD, seed=seed)
        labelled = rows.take(rows.labels >= 0)
        mixture, _ = fit_mixture_rows(
            labelled, specification, self.prior, solver, None, self.column_maps
        )
        return mixture.start

    def fits(
        self, rows: Observations, settings: Sequence[Setting], seed: int
    ) -> Iterator[FittedMixture]:
        """Fit every setting to the same rows."""
        start: MixtureParameters | None = None
        structure: MixtureSpecification | None = None
        for setting in settings:
            if setting.specification != structure:
                structure = setting.specification
                start = self.begin(rows, structure, seed)
            solver = replace(self.solver, objective=setting.objective, seed=seed)
            counted = setting.weigh(rows)
            mixture, _ = fit_mixture_rows(
                counted, structure, self.prior, solver, start, self.column_maps
            )
            if self.chained:
                start = mixture.start
            yield mixture

    def held_out(
        self, splits: Iterable[Fold], settings: Sequence[Setting], classes: np.ndarray
    ) -> tuple[HeldOut | None, dict[int, list[FittedMixture]]]:
        """Class log joints of rows that were not fitted to, and the fits of every fold.

        The joints are of shape (n_held_out, n_settings, n_classes).
        """
        of_folds: dict[int, list[FittedMixture]] = {}

        def predict(fold: int, train: Observations, test: Observations) -> np.ndarray:
            of_folds[fold] = list(self.fits(train, settings, self.solver.seed + 1 + fold))
            return np.stack([mixture.class_log_joint(test) for mixture in of_folds[fold]], axis=1)

        # In this process: fits of another would not be kept.
        return hold_out(splits, predict, classes, n_jobs=1), of_folds


@dataclass(frozen=True)
class Choice:
    """The chosen setting and its temperature."""

    setting: Setting
    scores: Float[np.ndarray, " setting"]
    """Out-of-fold log scores in nats per row; NaN where no row was held out."""
    temperature: float | None
    """Out-of-fold temperature of the chosen setting; None where no row was held out."""
    unlabelled: str = ""
    """What rows without a label did, in a sentence; empty where leaving them out was not tried."""
    of_folds: Mapping[int, FittedMixture] = field(default_factory=dict)
    """Fits of the chosen setting without each fold."""

    def calibration(
        self, splits: Sequence[Fold], classes: np.ndarray, masking: Masking
    ) -> Recalibration | None:
        """What calibrates the chosen setting, which alone predicts rows with cells hidden."""
        if self.temperature is None or not self.of_folds:
            return None

        def predict(fold: int, train: Observations, test: Observations) -> np.ndarray:
            return self.of_folds[fold].class_log_joint(test)

        held = hold_out(splits, predict, classes, masking=masking)
        return None if held is None else fit_calibration(held, self.temperature)


def choose(
    task: Task,
    splits: Iterable[Fold],
    settings: Sequence[Setting],
    classes: np.ndarray,
    *,
    calibrate: bool,
    margin: float = 0.0,
) -> Choice:
    """Take the setting whose out-of-fold log score is best; the first of equals."""
    held, of_folds = task.held_out(splits, settings, classes)
    if held is None:
        return Choice(settings[0], np.full(len(settings), np.nan), None)
    best, scores, temperature = best_setting(held, calibrate=calibrate, margin=margin)
    unlabelled = _of_unlabelled(held, settings, best, scores, calibrate=calibrate)
    fits = {fold: mixtures[best] for fold, mixtures in of_folds.items()}
    return Choice(settings[best], scores, temperature, unlabelled, fits)


def _of_unlabelled(
    held: HeldOut,
    settings: Sequence[Setting],
    best: int,
    scores: Float[np.ndarray, " setting"],
    *,
    calibrate: bool,
) -> str:
    """The chosen setting beside the best one that differs in whether unlabelled rows count."""
    chosen = settings[best]
    counts = chosen.unlabelled_weight > 0
    rivals = [
        place
        for place, one in enumerate(settings)
        if (one.unlabelled_weight > 0) != counts
        and replace(one, unlabelled_weight=chosen.unlabelled_weight) == chosen
    ]
    if not rivals:
        return ""
    rival = max(rivals, key=lambda place: scores[place])
    counted, left_out = (best, rival) if counts else (rival, best)
    of_rows = [
        log_scores(held.values[:, place], held.labels, held.weights, calibrate=calibrate)
        for place in (counted, left_out)
    ]
    weight = settings[counted].unlabelled_weight
    return unlabelled_gain(f"{weight:.3g} each", of_rows[0] - of_rows[1], held.weights)


def unlabelled_gain(
    counted: str, gains: Float[np.ndarray, " obs"], weights: Float[np.ndarray, " obs"]
) -> str:
    """What rows without a label gained on labelled ones held out; empty where there are none.

    >>> gains = np.array([0.2, 0.1, 0.3, 0.2])
    >>> unlabelled_gain("fully", gains, np.ones(4))
    'Rows without a label, counted fully, helped: +0.200 ± 0.035 nats a row held out.'
    """
    if not gains.any():
        return ""
    gain = weights @ gains / weights.sum()
    error = np.sqrt(weights @ (gains - gain) ** 2) / weights.sum()
    verdict = "helped" if gain > error else "hurt" if gain < -error else "made no clear difference"
    return (
        f"Rows without a label, counted {counted}, {verdict}: {gain:+.3f} ± {error:.3f} nats a row "
        "held out."
    )


def choose_in_turn(
    task: Task,
    splits: Sequence[Fold],
    first: Sequence[Setting],
    then: Callable[[MixtureSpecification], Sequence[Setting]],
    classes: np.ndarray,
    *,
    calibrate: bool,
) -> Choice:
    """Choose the covariances of the first settings, and then among the settings that have these.

    Other covariances than the first ones have to be better by a standard error.
    """
    choice = Choice(first[0], np.zeros(1), None)
    if len(first) > 1:
        choice = choose(task, splits, first, classes, calibrate=calibrate, margin=1.0)
    settings = then(choice.setting.specification)
    if settings == (choice.setting,) and (choice.temperature is not None or not calibrate):
        return choice
    if len(settings) == 1 and not calibrate:
        return replace(choice, setting=settings[0])
    return choose(task, splits, settings, classes, calibrate=calibrate)


def open_shapes(
    specification: MixtureSpecification, *, open_type: bool, open_tied: bool
) -> tuple[MixtureSpecification, ...]:
    """Every structure that is to be judged; one where nothing is open, or without real columns.

    Examples
    --------
    >>> asked = MixtureSpecification(2, (), (0, 1))
    >>> [(s.covariance_type, s.tied) for s in open_shapes(asked, open_type=True, open_tied=True)]
    [('full', True), ('diag', True), ('full', False), ('diag', False)]
    """
    shapes = SHAPES if open_type else (specification.covariance_type,)
    shared = (True, False) if open_tied else (specification.tied,)
    if not specification.n_features:
        return (specification,)
    return tuple(
        replace(specification, covariance_type=shape, tied=tied)
        for tied in shared
        for shape in shapes
    )


def open_settings(
    objective: Objective,
    specification: MixtureSpecification,
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
    >>> asked = MixtureSpecification(4, (), (0, 1))
    >>> [s.objective.kappa for s in open_settings(
    ...     blend, asked, open_dial=True, unlabelled_weight=1.0, n_columns=4)]
    [1.0, 0.5, 0.3, 0.1, 0.03]
    """
    objectives = [objective]
    if open_dial and objective.name == "blend":
        objectives = [replace(objective, kappa=kappa) for kappa in KAPPAS]
    elif open_dial and objective.name == "hinge":
        objectives = [replace(objective, hinge_weight=weight) for weight in HINGE_WEIGHTS]
    weights = [0.0, 1.0 / n_columns, 1.0] if unlabelled_weight is None else [unlabelled_weight]
    distinct = sorted(set(weights))
    return tuple(Setting(one, weight, specification) for one in objectives for weight in distinct)
