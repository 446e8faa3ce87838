"""Structures and objectives of hybrid mixtures, and the choice among them by held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from bayesrbf import table
from bayesrbf.base.priors import MixturePrior, Objective
from bayesrbf.base.records import ANY_NUMBER, stored
from bayesrbf.base.rows import (
    CovarianceType,
    MixtureParameters,
    MixtureSpecification,
    Observations,
    default_shape,
)
from bayesrbf.fit.calibration import Selection, unlabelled_gain
from bayesrbf.fit.held_out import Fold, HeldOut, Masking, hold_out
from bayesrbf.fit.stages import Calibration
from bayesrbf.mixture.fitted import (
    LIKELIHOOD,
    ColumnTransforms,
    FittedMixture,
    Solver,
    fit_mixture_rows,
)

# Classifying mixtures among which held-out rows choose: structures, objectives, rows.


KAPPAS: Final = (1.0, 0.5, 0.3, 0.1, 0.03)
"""Weights of the density in a blend, from the likelihood on. Below, held-out log loss
diverges where cells are hidden."""
HINGE_WEIGHTS: Final = (0.25, 1.0, 4.0, 16.0)
COMPARED_TYPES: Final[tuple[CovarianceType, ...]] = ("full", "diag")
"""Covariances to choose from, in classifiers and in densities."""


def compared_types(n_features: int) -> tuple[CovarianceType, ...]:
    """Covariances to choose from; of wide tables whole matrices are none.

    >>> compared_types(2), compared_types(2000)
    (('full', 'diag'), ('diag',))
    """
    return COMPARED_TYPES[COMPARED_TYPES.index(default_shape(n_features)) :]


OPEN: Final = "cv"
"""The word that leaves an argument to the rows held out."""
MAX_COMPONENTS: Final = 3
"""Components per class, compared with a single one."""


@dataclass(frozen=True)
class Setting:
    """A candidate: objective, structure, and weights and columns of the rows."""

    objective: Objective
    unlabelled_weight: float
    """Factor of the weight of rows without a label."""
    specification: MixtureSpecification
    informative: bool = False
    """Whether missing cells say something."""
    masked: table.Columns | None = None
    """Columns whose masks join the rows; None: the rows are as they were read."""

    def cells(self, rows: Observations) -> Observations:
        """Rows with the masks of their missing cells, where these are to join them."""
        return rows if self.masked is None else table.with_masks(rows, self.masked)

    def weigh(self, rows: Observations) -> Observations:
        """Training rows of this candidate; those that weigh nothing are left out."""
        rows = self.cells(rows)
        if self.unlabelled_weight == 1 or not (rows.labels < 0).any():
            return rows
        weights = table.weigh_unlabelled(rows.labels, rows.weights, self.unlabelled_weight)
        return replace(rows, weights=weights).take(weights > 0)

    def with_masks(self, columns: table.Columns) -> Setting:
        """The candidate under which missing cells of these columns say something."""
        masked = columns.with_masks
        specification = replace(self.specification, levels=masked.n_levels)
        return replace(self, specification=specification, informative=True, masked=masked)


@stored
class MixtureCandidate:
    """A classifying mixture, and its held-out log score."""

    n_components: tuple[int, ...]
    """Components of every class."""
    covariance_type: CovarianceType
    shared_covariance: bool
    objective: Objective
    unlabelled_weight: float
    """Factor of the weight of rows without a label."""
    informative: bool
    """Whether missing cells say something."""
    log_score: float = field(metadata=ANY_NUMBER)
    """Log probability of the class of a row held out, in nats."""

    @classmethod
    def of(cls, setting: Setting, log_score: float) -> MixtureCandidate:
        """A setting and its score."""
        structure = setting.specification
        return cls(
            tuple(np.bincount(structure.component_class).tolist()),
            structure.covariance_type,
            structure.shared_covariance,
            setting.objective,
            float(setting.unlabelled_weight),
            setting.informative,
            float(log_score),
        )


def open_shapes(
    specification: MixtureSpecification,
    *,
    open_type: bool,
    open_sharing: bool,
    more_components: tuple[int, ...] | None = None,
) -> tuple[MixtureSpecification, ...]:
    """Every structure that is to be judged; one where nothing is open.

    Without real columns there are no covariances to choose. Covariances that the classes share are
    tried with the components of the specification alone, where it is open whether they are shared.

    >>> asked = MixtureSpecification(2, (), (0, 1))
    >>> shapes = open_shapes(asked, open_type=True, open_sharing=True)
    >>> [(shape.covariance_type, shape.shared_covariance) for shape in shapes]
    [('full', True), ('diag', True), ('full', False), ('diag', False)]
    """
    d = specification.n_features
    shapes = compared_types(d) if open_type else (specification.covariance_type,)
    shared = (True, False) if open_sharing else (specification.shared_covariance,)
    if not d:
        shapes, shared = (specification.covariance_type,), (specification.shared_covariance,)
    few = [
        replace(specification, covariance_type=shape, shared_covariance=shared_covariance)
        for shared_covariance in shared
        for shape in shapes
    ]
    if more_components in (None, specification.component_class):
        return tuple(few)
    last = shared[-1]
    return (
        *few,
        *(
            replace(shape, component_class=more_components)
            for shape in few
            if shape.shared_covariance == last
        ),
    )


def open_weights(
    objective: Objective, *, open_dial: bool, unlabelled_weight: float | None, n_columns: int
) -> list[tuple[Objective, float]]:
    """Objectives and weights of unlabelled rows that are to be judged; one pair if none is open.

    A weight of None opens 0, 1 / n_columns and 1.

    >>> blend = Objective("blend")
    >>> pairs = open_weights(blend, open_dial=True, unlabelled_weight=1.0, n_columns=4)
    >>> [objective.kappa for objective, _ in pairs]
    [1.0, 0.5, 0.3, 0.1, 0.03]
    """
    objectives = [objective]
    if open_dial and objective.name == "blend":
        objectives = [replace(objective, kappa=kappa) for kappa in KAPPAS]
    elif open_dial and objective.name == "hinge":
        objectives = [replace(objective, hinge_weight=weight) for weight in HINGE_WEIGHTS]
    weights = {0.0, 1.0 / n_columns, 1.0} if unlabelled_weight is None else {unlabelled_weight}
    return [(objective, weight) for objective in objectives for weight in sorted(weights)]


# The choice among classifying mixtures: fits without every fold, and questions put in turn.


@dataclass(frozen=True)
class Task:
    """Everything that the fits of all settings and folds share."""

    prior: MixturePrior
    solver: Solver
    """Solver of all fits; a setting replaces its objective."""
    from_labelled: bool = False
    """Start at the fit to the labelled rows alone."""
    column_transforms: ColumnTransforms = None

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
            labelled, specification, self.prior, solver, None, self.column_transforms
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
                setting.weigh(rows), structure, self.prior, solver, start, self.column_transforms
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
    """The chosen setting and its calibration."""

    setting: Setting
    calibration: Calibration | None = None
    """Calibration of the chosen setting by unmasked held-out rows; None without any."""
    judged: tuple[tuple[Setting, float], ...] = ()
    """Settings in the order of trial, and their scores."""
    unlabelled: str = ""
    """Message on the gain by unlabelled rows; empty if leaving them out was not tried."""
    of_folds: Mapping[int, FittedMixture] = field(default_factory=dict)
    """Fits of the chosen setting without each fold."""

    def after(self, earlier: Choice) -> Choice:
        """The choice, with the settings and messages of an earlier one."""
        before = [setting for setting, _ in earlier.judged]
        new = [(setting, score) for setting, score in self.judged if setting not in before]
        judged = (*earlier.judged, *new)
        return replace(self, judged=judged, unlabelled=self.unlabelled or earlier.unlabelled)

    @property
    def candidates(self) -> tuple[MixtureCandidate, ...]:
        """Judged candidates: the chosen setting, then the others in the order of trial."""
        score = next((score for setting, score in self.judged if setting == self.setting), np.nan)
        others = [pair for pair in self.judged if pair[0] != self.setting]
        tried = [(self.setting, score), *others]
        return tuple(MixtureCandidate.of(setting, held_out) for setting, held_out in tried)

    def by_missing_fraction(
        self, splits: Sequence[Fold], classes: np.ndarray, masking: Masking
    ) -> Calibration:
        """Calibration of the chosen setting by masked copies of the rows held out, too."""

        def predict(fold: int, train: Observations, test: Observations) -> np.ndarray:
            return self.of_folds[fold].class_log_joint(test)

        held_out = hold_out(splits, predict, classes, masking=masking)
        assert held_out is not None
        assert self.calibration is not None
        return held_out.calibration(self.calibration.temperature)


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
        held_out.of_candidate(selection.best).calibration(),
        tuple(zip(settings, selection.scores.tolist(), strict=True)),
        _of_unlabelled(selection),
        {fold: mixtures[selection.best] for fold, mixtures in of_folds.items()},
    )


def _of_unlabelled(selection: Selection[Setting]) -> str:
    """Message on the gain by unlabelled rows: the chosen setting against its best rival."""
    chosen = selection.chosen
    counts = chosen.unlabelled_weight > 0
    rivals = [
        index
        for index, setting in enumerate(selection.candidates)
        if (setting.unlabelled_weight > 0) != counts
        and replace(setting, unlabelled_weight=chosen.unlabelled_weight) == chosen
    ]
    if not rivals:
        return ""
    rival = max(rivals, key=lambda index: selection.scores[index])
    counted, left_out = (selection.best, rival) if counts else (rival, selection.best)
    weight = selection.candidates[counted].unlabelled_weight
    gains = selection.row_scores[counted] - selection.row_scores[left_out]
    return unlabelled_gain(f"{weight:.3g} each", gains, selection.weights)


@dataclass(frozen=True)
class Round:
    """A set of candidates that held-out rows compare, one set after another."""

    changes: Sequence[Callable[[Setting], Setting]]
    """Changes that make candidates of the setting chosen so far; the simplest first."""
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
    for question in rounds:
        settings = [change(choice.setting) for change in question.changes]
        if settings == [choice.setting]:
            continue
        if len(settings) == 1:
            choice = replace(choice, setting=settings[0], calibration=None)
            continue
        better = choose(
            task, splits, settings, classes, calibrate=calibrate, margin=question.margin
        )
        choice = better.after(choice)
    if calibrate and choice.calibration is None:
        choice = choose(task, splits, [choice.setting], classes, calibrate=True).after(choice)
    return choice
