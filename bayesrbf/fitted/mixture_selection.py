"""The choice among classifying mixtures: fits without every fold, and questions put in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float

from bayesrbf.fitted.fitted_mixture import LIKELIHOOD, FittedMixture
from bayesrbf.fitted.folds import Fold
from bayesrbf.fitted.holding_out import HeldOut, hold_out
from bayesrbf.fitted.masking import Masking
from bayesrbf.fitted.mixture_candidates import MixtureCandidate, Setting
from bayesrbf.fitted.mixture_fitting import ColumnMaps, Solver, fit_mixture_rows
from bayesrbf.posterior.selection import Selection, unlabelled_gain
from bayesrbf.records.masked_rows import Recalibration
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.priors import MixturePrior
from bayesrbf.records.specification import MixtureSpecification


@dataclass(frozen=True)
class Task:
    """Everything that the fits of all settings and folds share."""

    prior: MixturePrior
    solver: Solver
    """How to fit; its objective is exchanged for that of a setting."""
    from_labelled: bool = False
    """Start at the fit to the labelled rows alone."""
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
                start = self.begin(setting.cells(rows), structure, seed)
            solver = replace(self.solver, objective=setting.objective, seed=seed)
            mixture, _ = fit_mixture_rows(
                setting.weigh(rows), structure, self.prior, solver, start, self.column_maps
            )
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
            joints = [
                mixture.class_log_joint(setting.cells(test))
                for setting, mixture in zip(settings, of_folds[fold], strict=True)
            ]
            return np.stack(joints, axis=1)

        # In this process: fits of another would not be kept.
        return hold_out(splits, predict, classes, n_jobs=1), of_folds


@dataclass(frozen=True)
class Choice:
    """The chosen setting and its temperature."""

    setting: Setting
    temperature: float | None = None
    """Out-of-fold temperature of the chosen setting; None where it was not held out."""
    uncalibrated: Float[np.ndarray, " label"] | None = None
    """What is added to the log joints of classes that no row held out has; NaN for the others."""
    judged: tuple[tuple[Setting, float], ...] = ()
    """Settings in the order of trial, and their scores."""
    unlabelled: str = ""
    """What rows without a label did, in a sentence; empty where leaving them out was not tried."""
    of_folds: Mapping[int, FittedMixture] = field(default_factory=dict)
    """Fits of the chosen setting without each fold."""

    def after(self, earlier: Choice) -> Choice:
        """The choice, with what was judged and found before it."""
        before = [setting for setting, _ in earlier.judged]
        new = [(setting, score) for setting, score in self.judged if setting not in before]
        judged = (*earlier.judged, *new)
        return replace(self, judged=judged, unlabelled=self.unlabelled or earlier.unlabelled)

    @property
    def candidates(self) -> tuple[MixtureCandidate, ...]:
        """Judged candidates: the chosen setting, then the others in the order of trial."""
        score = next((score for setting, score in self.judged if setting == self.setting), np.nan)
        others = [pair for pair in self.judged if pair[0] != self.setting]
        return tuple(MixtureCandidate.of(*pair) for pair in [(self.setting, score), *others])

    def calibration(
        self, splits: Sequence[Fold], classes: np.ndarray, masking: Masking
    ) -> Recalibration | None:
        """Calibration of the chosen setting, which alone predicts rows with cells hidden."""
        if self.temperature is None:
            return None

        def predict(fold: int, train: Observations, test: Observations) -> np.ndarray:
            return self.of_folds[fold].class_log_joint(test)

        held_out = hold_out(splits, predict, classes, masking=masking)
        return None if held_out is None else held_out.calibration(self.temperature)


def choose(
    task: Task,
    splits: Iterable[Fold],
    settings: Sequence[Setting],
    classes: np.ndarray,
    *,
    calibrate: bool,
    margin: float = 0.0,
) -> Choice:
    """Take the setting of the best out-of-fold log score; the first where no row is held out."""
    held_out, of_folds = task.held_out(splits, settings, classes)
    if held_out is None:
        return Choice(settings[0])
    selection = held_out.selection(settings, calibrate=calibrate, margin=margin)
    return Choice(
        selection.chosen,
        held_out.of_candidate(selection.best).temperature,
        held_out.of_candidate(selection.best).uncalibrated,
        tuple(zip(settings, selection.scores.tolist(), strict=True)),
        _of_unlabelled(selection),
        {fold: mixtures[selection.best] for fold, mixtures in of_folds.items()},
    )


def _of_unlabelled(selection: Selection[Setting]) -> str:
    """The chosen setting beside the best one that differs in whether unlabelled rows count."""
    chosen = selection.chosen
    counts = chosen.unlabelled_weight > 0
    rivals = [
        place
        for place, one in enumerate(selection.candidates)
        if (one.unlabelled_weight > 0) != counts
        and replace(one, unlabelled_weight=chosen.unlabelled_weight) == chosen
    ]
    if not rivals:
        return ""
    rival = max(rivals, key=lambda place: selection.scores[place])
    counted, left_out = (selection.best, rival) if counts else (rival, selection.best)
    weight = selection.candidates[counted].unlabelled_weight
    gains = selection.row_scores[counted] - selection.row_scores[left_out]
    return unlabelled_gain(f"{weight:.3g} each", gains, selection.weights)


@dataclass(frozen=True)
class Round:
    """One of the questions that are put to the held-out rows in turn."""

    changes: Sequence[Callable[[Setting], Setting]]
    """What makes the candidates of the setting chosen so far; the simplest first."""
    margin: float = 0.0
    """Standard errors by which a later candidate must be better than one before it."""


def choose_in_turn(
    task: Task,
    splits: Sequence[Fold],
    start: Setting,
    rounds: Sequence[Round],
    classes: np.ndarray,
    *,
    calibrate: bool,
) -> Choice:
    """Choose round by round; a round with one candidate takes it unseen."""
    choice = Choice(start)
    for each in rounds:
        settings = [change(choice.setting) for change in each.changes]
        if settings == [choice.setting]:
            continue
        if len(settings) == 1:
            choice = replace(choice, setting=settings[0], temperature=None)
            continue
        better = choose(task, splits, settings, classes, calibrate=calibrate, margin=each.margin)
        choice = better.after(choice)
    if calibrate and choice.temperature is None:
        choice = choose(task, splits, [choice.setting], classes, calibrate=True).after(choice)
    return choice
