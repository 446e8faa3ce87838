"""From a table to everything that the report says about it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Int
from sklearn.base import clone

import bayesrbf
from bayesrbf.answers.performance import as_wide
from bayesrbf.answers.scores import LEVEL, calibration, slope
from bayesrbf.answers.stability import Stability
from bayesrbf.app.report.costs import decisions, read_costs
from bayesrbf.app.report.families import (
    FAMILIES,
    QUICK_FOLDS,
    Drawn,
    Fitted,
    Procedure,
    Recipe,
    draw_posterior,
    refitted_as,
)
from bayesrbf.app.report.held_out import (
    CROSS_VALIDATION,
    FOREST,
    LOGISTIC,
    Fitter,
    HeldOutRows,
    Phase,
    class_frequencies,
    hold_out,
    rivals,
    silently,
)
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.learned import Moves, densities_of, read_learned, read_moves
from bayesrbf.app.report.performance import (
    event_among,
    read_parts,
    read_performance,
    read_score,
    read_subgroups,
)
from bayesrbf.app.report.records import (
    Check,
    MeanScores,
    Report,
    best_of,
    judge,
)
from bayesrbf.app.report.sections import (
    HeldOutCells,
    JudgedTable,
    fill_held_out,
    held_out_uncertainty,
    judge_table,
    read_columns,
    read_described,
    read_diagnostics,
    read_doubt,
    read_imputations,
    read_intervals,
    read_oddities,
)
from bayesrbf.base import names
from bayesrbf.base.arrays import brier, correct, log_loss, mean_over_folds
from bayesrbf.base.tasks import progress, run_tasks
from bayesrbf.reading.notes import FOR_DEVELOPERS, ColumnWarning

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.inference.diagnose import Finding


MODEL, FREQUENCIES = "this model", "class frequencies"

FIT, DRAWS, ROWS = "Fitting the whole table", "Drawing the posterior", "Looking at all rows"
CELLS, REHEARSAL = "Filling in cells of rows held out", "Rehearsing the intervals"
STABILITY, LEARNING = "Refitting samples of the rows", "Fitting fewer and more rows"
SECTIONS = "Making the sections"


@dataclass(frozen=True)
class Outcome:
    """Everything that a report run made."""

    report: Report
    model: Any  # With its posterior.
    held_out: HeldOutRows
    uncertainty: xr.Dataset  # Of every row.


def phases(job: Job) -> tuple[str, ...]:
    """Names of the phases of :func:`collect`, in their order."""
    every = {
        FIT: True,
        CROSS_VALIDATION: True,
        DRAWS: True,
        ROWS: True,
        CELLS: not job.knows_holes,
        STABILITY: job.stability > 0,
        LEARNING: job.stability > 0,
        REHEARSAL: job.rehearse,
        SECTIONS: True,
    }
    return tuple(name for name, taken in every.items() if taken)


def collect(job: Job, phase: Phase = silently) -> Outcome:
    """Cross-validate, fit and draw, and make every section of the report."""
    procedure = FAMILIES[job.family].procedure(job)
    with _heard() as heard:
        with phase(FIT):
            fitted = procedure(job.X, job.y)
        held_out = _validated(job, procedure, fitted, phase)
        with phase(DRAWS):
            drawn = draw_posterior(job, fitted.model)
        with phase(ROWS):
            looks = _looks(job, drawn)
        cells = stability = learning = None
        if not job.knows_holes:
            with phase(CELLS):
                cells = fill_held_out(job, looks.judged)
        if job.stability:
            with phase(STABILITY):
                stability = _stability(job, held_out)
            with phase(LEARNING):
                learning = read_learning(job, drawn.model, looks.judged.density)
    with _heard() as rehearsing, phase(REHEARSAL) if job.rehearse else nullcontext():
        intervals = read_intervals(job, drawn)
    heard += [f"In the rehearsal: {sentence}" for sentence in rehearsing if sentence not in heard]
    refits = stability, learning
    fits = _Fits(fitted, drawn, looks, cells, *refits, held_out, intervals, tuple(heard))
    with phase(SECTIONS):
        report = _report(job, fits)
    return Outcome(report, drawn.refined, held_out, looks.uncertainty)


@dataclass(frozen=True)
class _Looks:
    """Slow answers about all rows, which depend on the fit alone."""

    uncertainty: xr.Dataset
    judged: JudgedTable
    moves: Moves
    findings: tuple[Finding, ...]


def _looks(job: Job, drawn: Drawn) -> _Looks:
    """Look at all rows, in several processes where there are."""
    looks: dict[str, Callable[[], Any]] = {
        "judged": lambda: judge_table(job),
        "uncertainty": lambda: drawn.refined.uncertainty(job.X, job.focus.level),
        "moves": lambda: read_moves(job, drawn.model),
        "findings": lambda: drawn.refined.fitted_.findings(),
    }
    answers = run_tasks(lambda look: look(), list(looks.values()), "Looks")
    return _Looks(**dict(zip(looks, answers, strict=True)))


@contextmanager
def _heard() -> Iterator[list[str]]:
    """Collect warnings as distinct sentences: the report prints them."""
    sentences: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield sentences
    not_meant = (*FOR_DEVELOPERS, ColumnWarning)  # the notes of the reader say more
    meant = [warning for warning in caught if not issubclass(warning.category, not_meant)]
    sentences += dict.fromkeys(" ".join(str(warning.message).split()) for warning in meant)


def _validated(job: Job, procedure: Procedure, fitted: Fitted, phase: Phase) -> HeldOutRows:
    """Held-out probabilities of the model, of the class frequencies and of the rivals.

    The model is fitted again fold by fold, unless its own fit has held the same rows out.
    """
    fitters: dict[str, Fitter] = {FREQUENCIES: class_frequencies, **rivals(job)}
    own = fitted.out_of_fold
    if own is None:
        fitters = {MODEL: lambda X, y: procedure(X, y).model, **fitters}
    held_out = hold_out(job.X, job.y, fitters, splits=job.splits, phase=phase)
    if own is None:
        return held_out
    of_model = own.reindex(index=range(len(job.X)), columns=held_out.classes).to_numpy()
    return replace(held_out, probabilities={MODEL: of_model, **held_out.probabilities})


@dataclass(frozen=True)
class _Fits:
    """The fitted parts from which :func:`_report` makes the sections."""

    fitted: Fitted
    drawn: Drawn
    looks: _Looks
    cells: HeldOutCells | None
    stability: Stability | None
    learning: bayesrbf.LearningCurve | None
    held_out: HeldOutRows
    intervals: str
    heard: tuple[str, ...]


def _stability(job: Job, held_out: HeldOutRows) -> Stability:
    """Refits on samples of the rows, or of the groups that were asked for."""
    recipe = Recipe(FAMILIES[job.family].procedure(refitted_as(job)[0]))
    event = event_among(held_out, job.focus) if len(held_out.classes) == 2 else None
    return bayesrbf.stability(
        recipe,
        job.X,
        job.y,
        refits=job.stability,
        event=None if event is None else held_out.classes[event.column],
        threshold=0.5 if event is None else event.threshold,
        groups=job.units,
        random_state=job.seed,
    )


def read_learning(job: Job, model: Any, density: Any) -> bayesrbf.LearningCurve | None:
    """Fits to tables that the density and the model draw; a warning where a class is too rare."""
    recipe = clone(model)
    if FAMILIES[job.family].pools:
        recipe.set_params(cv=min(job.folds, QUICK_FOLDS))
    try:
        return bayesrbf.learning_curve(
            model,
            job.X[job.labels >= 0],
            density=density,
            recipe=recipe,
            repeats=job.curve_tables,
            random_state=job.seed,
        )
    except ValueError as error:
        warnings.warn(f"There is no learning curve: {error}", stacklevel=2)
        return None


def _report(job: Job, fits: _Fits) -> Report:
    """Every section from the fitted model."""
    figures: dict[str, Any] = {}
    model, refined, looks = fits.drawn.model, fits.drawn.refined, fits.looks
    held_out, judged, uncertainty = fits.held_out, looks.judged, looks.uncertainty
    densities = densities_of(job, fits.drawn)
    rival = best_of(held_out, (LOGISTIC, FOREST))
    event = event_among(held_out, job.focus) if len(held_out.classes) == 2 else None
    known, doubtful = held_out_uncertainty(refined.fitted_, held_out, uncertainty)
    widths = np.full(uncertainty["upper"].shape, np.nan)
    widths[known] = doubtful["upper"] - doubtful["lower"]
    sections: dict[str, Callable[[], Any]] = {
        "scores": lambda: tuple(
            score(held_out, name, job.units, job.focus.level) for name in held_out.probabilities
        ),
        "judged": lambda: judge(held_out, job.focus, MODEL, FREQUENCIES, rival, job.groups),
        "performance": lambda: read_performance(held_out, job.focus, MODEL, rival, job.units),
        "parts": lambda: read_parts(job, held_out, MODEL, widths),
        "score": lambda: read_score(job, held_out, MODEL),
        "subgroups": lambda: read_subgroups(job, held_out, MODEL),
        "reading": lambda: read_columns(job),
        "doubt": lambda: read_doubt(
            job, model, densities.point, judged, held_out, known, doubtful, event
        ),
        "oddities": lambda: read_oddities(job, judged, held_out),
        "learned": lambda: read_learned(job, model, refined, densities, looks.moves),
        "imputations": lambda: read_imputations(job, judged, fits.cells),
        "diagnostics": lambda: read_diagnostics(refined, looks.findings, fits.heard),
        "described": lambda: read_described(job, fits.fitted, refined),
    }
    with progress(False) as track:
        for name in track(list(sections), "Sections"):
            figures[name] = sections[name]()
    return Report(
        title=job.title,
        target=job.target,
        classes=tuple(map(str, held_out.classes)),
        estimator=type(model).__name__,
        inference=fits.drawn.sentence,
        intervals=fits.intervals,
        folds=int(held_out.folds.max()) + 1,
        confusion=_confusion(held_out, job.focus.costs),
        check=_check(job, uncertainty),
        stability=fits.stability,
        learning=fits.learning,
        recipe=refitted_as(job)[1],
        costs=read_costs(held_out, job.focus.costs, (MODEL, rival)),
        row_title=job.row_title,
        focus=job.focus,
        missingness=getattr(model.model_, "message", ""),
        held_out=job.splits.sentence if job.judged_apart or job.units is not None else "",
        **figures,
    )


def score(
    held_out: HeldOutRows,
    name: str,
    units: Int[np.ndarray, " obs"] | None = None,
    level: float = LEVEL,
) -> MeanScores:
    """Scores and calibration of one classifier on the held-out rows."""
    rows = held_out.scored
    p, labels, folds = (
        held_out.probabilities[name][rows],
        held_out.labels[rows],
        held_out.folds[rows],
    )
    return MeanScores(
        name=name,
        log_loss=mean_over_folds(log_loss(p, labels), folds),
        brier=mean_over_folds(brier(p, labels), folds),
        accuracy=mean_over_folds(correct(p, labels), folds),
        slope=as_wide(
            lambda some: slope(p[some], labels[some], level),
            None if units is None else units[rows],
            level,
        ),
        grouped=units is not None,
        calibration=calibration(p, labels, prob=level),
    )


def _confusion(held_out: HeldOutRows, costs: Mapping[str, float]) -> np.ndarray:
    """Held-out rows by true class and by the answer of least expected cost."""
    rows, n_classes = held_out.scored, len(held_out.classes)
    decided = decisions(held_out.probabilities[MODEL][rows], held_out.classes, costs)
    pairs = held_out.labels[rows] * n_classes + decided
    return np.bincount(pairs, minlength=n_classes**2).reshape(n_classes, n_classes)


def _check(job: Job, uncertainty: xr.Dataset) -> Check | None:
    """Predictions for hidden labels against the truth, where it is known."""
    if job.truth is None:
        return None
    hidden = job.y.isna().to_numpy()
    if not hidden.any():
        return None
    classes = [str(label) for label in uncertainty[names.LABEL].to_numpy()]
    labels = np.array([classes.index(str(label)) for label in job.truth.y[hidden]])
    p = uncertainty["probability"].to_numpy()[hidden]
    given = p[np.arange(labels.size), labels]
    return Check(
        rows=int(hidden.sum()),
        log_loss=float(log_loss(p, labels).mean()),
        accuracy=float(correct(p, labels).mean()),
        outside=int((given < 0.05).sum()),
    )
