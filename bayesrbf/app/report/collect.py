"""From a table to everything that the report says about it, which is a list of sections."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from bayesrbf.app.report import (
    column_effects,
    described,
    diagnostics,
    filled,
    learned,
    oddities,
    reading,
    refits,
    scores,
    trust,
    uncertain_rows,
)
from bayesrbf.app.report.column_effects import ColumnEffects
from bayesrbf.app.report.density import JudgedTable, judge_table
from bayesrbf.app.report.described import Described
from bayesrbf.app.report.diagnostics import Diagnostics
from bayesrbf.app.report.families import FAMILIES, Drawn, Fitted, Procedure, draw_posterior
from bayesrbf.app.report.filled import HeldOutCells, Imputations, fill_held_out
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
from bayesrbf.app.report.judgement import (
    FREQUENCIES,
    JUDGED,
    MODEL,
    Judgement,
    Section,
    Unseen,
    compute,
)
from bayesrbf.app.report.learned import Learned
from bayesrbf.app.report.oddities import Oddities
from bayesrbf.app.report.reading import Reading
from bayesrbf.app.report.refits import Refits
from bayesrbf.app.report.scores import Check
from bayesrbf.app.report.uncertain_rows import UncertainRows
from bayesrbf.base.tasks import progress, run_tasks
from bayesrbf.reading.notes import FOR_DEVELOPERS, ColumnWarning

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.inference.diagnose import Finding


FIT, DRAWS, ROWS = "Fitting the whole table", "Drawing the posterior", "Looking at all rows"
CELLS, REHEARSAL = "Filling in cells of rows held out", "Rehearsing the intervals"
STABILITY, LEARNING = "Refitting samples of the rows", "Fitting fewer and more rows"
MAKING = "Making the sections"


@dataclass(frozen=True, kw_only=True)
class Report(Judgement):
    """The records of all sections, and what they share."""

    folds: int
    reading: Reading
    uncertain_rows: UncertainRows
    oddities: Oddities
    column_effects: ColumnEffects
    learned: Learned
    imputations: Imputations
    diagnostics: Diagnostics
    described: Described
    refits: Refits
    check: Check | None = None  # Where the truth of hidden labels is known.
    row_title: str = "row"  # What the names of rows are called.

    @property
    def class_counts(self) -> Mapping[str, int]:
        """Number of labelled rows of every class, with rows that were never held out."""
        return self.reading.class_counts

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections of a report."""
        return SECTIONS


@dataclass(frozen=True, kw_only=True)
class Fits(Unseen):
    """Fits, draws and held-out predictions, from which :data:`SECTIONS` are computed."""

    fitted: Fitted
    drawn: Drawn
    uncertainty: xr.Dataset  # Of every row.
    of_held_out: xr.Dataset  # Uncertainty of rows whose label no fit had seen.
    judged: JudgedTable
    column_effects: ColumnEffects
    findings: tuple[Finding, ...]
    cells: HeldOutCells | None
    refits: Refits
    intervals: str  # How often they hold the truth, or that this was not tried.
    caught: tuple[str, ...]


SECTIONS: Final = (
    *JUDGED,
    Section(
        "reading",
        lambda at: reading.compute(at.job, getattr(at.drawn.model.model_, "message", "")),
        lambda of: reading.say(of.reading),
        lambda of: reading.show(of.reading),
    ),
    Section(
        "refits",
        lambda at: at.refits,
        lambda of: refits.say(of.refits),
        lambda of: refits.show(of.refits),
        lambda of: refits.tell(of.refits),
        lambda of: refits.figures(of.refits),
    ),
    Section(
        "uncertain_rows",
        lambda at: uncertain_rows.compute(
            at.job, at.drawn.model, at.judged, at.held_out, at.known, at.of_held_out, at.intervals
        ),
        lambda of: uncertain_rows.say(of.uncertain_rows),
        lambda of: uncertain_rows.show(of.uncertain_rows),
        lambda of: uncertain_rows.tell(of.uncertain_rows, costs=of.costs is not None),
        lambda of: {"unsure": of.uncertain_rows.below},
    ),
    Section(
        "oddities",
        lambda at: oddities.compute(at.job, at.judged, at.held_out),
        lambda of: oddities.say(of.oddities),
        lines=lambda of: oddities.tell(of.oddities),
        figures=lambda of: {"cells_that_look_wrong": of.oddities.n_cells},
    ),
    Section(
        "check",
        lambda at: scores.read_check(at.job, at.uncertainty),
        lines=lambda of: scores.tell_check(of.check),
    ),
    Section(
        "column_effects",
        lambda at: at.column_effects,
        lambda of: column_effects.say(of.column_effects, helps=of.judged.helps),
        lambda of: column_effects.show(
            of.column_effects, of.classes, of.drawn, of.performance.event
        ),
    ),
    Section(
        "learned",
        lambda at: learned.compute(at.job, at.drawn.model, at.drawn.refined, at.column_effects),
        lambda of: learned.say(of.learned),
        lambda of: learned.show(of.learned, of.classes, of.drawn),
    ),
    Section(
        "imputations",
        lambda at: filled.compute(at.job, at.judged, at.cells),
        lambda of: filled.say(of.imputations, of.reading.missing),
        lambda of: filled.show(of.imputations),
    ),
    Section(
        "diagnostics",
        lambda at: diagnostics.compute(at.job.X, at.drawn, at.findings, at.caught),
        lambda of: diagnostics.say(of.diagnostics),
    ),
    Section(
        "described",
        lambda at: described.compute(at.job, at.fitted, at.drawn.refined),
        lambda of: described.say(of.described),
    ),
)
"""All parts of the report; templates say where they stand on the page."""


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
        MAKING: True,
    }
    return tuple(name for name, taken in every.items() if taken)


def collect(job: Job, phase: Phase = silently) -> Outcome:
    """Cross-validate, fit and draw, and make every section of the report."""
    procedure = FAMILIES[job.family].procedure(job)
    with _caught() as caught:
        with phase(FIT):
            fitted = procedure(job.X, job.y)
        held_out = _validated(job, procedure, fitted, phase)
        with phase(DRAWS):
            drawn = draw_posterior(job, fitted.model)
        with phase(ROWS):
            judged, uncertainty, effects, findings = _looks(job, drawn)
        cells = None
        refitted = Refits()
        if not job.knows_holes:
            with phase(CELLS):
                cells = fill_held_out(job, judged)
        if job.stability:
            with phase(STABILITY):
                refitted = refits.compute(job, held_out)
            with phase(LEARNING):
                learning = refits.read_learning(job, drawn.model, judged.density)
                refitted = replace(refitted, learning=learning)
    with _caught() as rehearsing, phase(REHEARSAL) if job.rehearse else nullcontext():
        intervals = uncertain_rows.read_intervals(job, drawn)
    caught += [f"In the rehearsal: {message}" for message in rehearsing if message not in caught]
    known, of_held_out = uncertain_rows.held_out_uncertainty(
        drawn.refined.fitted_, held_out, uncertainty
    )
    fits = Fits(
        job=job,
        fitted=fitted,
        drawn=drawn,
        held_out=held_out,
        rival=trust.best_of(held_out, (LOGISTIC, FOREST)),
        uncertainty=uncertainty,
        known=known,
        of_held_out=of_held_out,
        widths=(of_held_out["upper"] - of_held_out["lower"]).to_numpy(),
        judged=judged,
        column_effects=effects,
        findings=findings,
        cells=cells,
        refits=refitted,
        intervals=intervals,
        caught=tuple(caught),
    )
    with phase(MAKING):
        report = _report(fits)
    return Outcome(report, drawn.refined, held_out, uncertainty)


def _looks(
    job: Job, drawn: Drawn
) -> tuple[JudgedTable, xr.Dataset, ColumnEffects, tuple[Finding, ...]]:
    """Density of the table, intervals, column effects and findings, in parallel if possible."""
    looks: list[Callable[[], Any]] = [
        lambda: judge_table(job),
        lambda: drawn.refined.uncertainty(job.X, job.focus.level),
        lambda: column_effects.compute(job, drawn.model),
        lambda: drawn.refined.fitted_.findings(),
    ]
    judged, uncertainty, effects, findings = run_tasks(lambda look: look(), looks, "Looks")
    return judged, uncertainty, effects, findings


@contextmanager
def _caught() -> Iterator[list[str]]:
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
    out_of_fold = fitted.out_of_fold
    if out_of_fold is None:
        fitters = {MODEL: lambda X, y: procedure(X, y).model, **fitters}
    held_out = hold_out(job.X, job.y, fitters, job.splits, phase)
    if out_of_fold is None:
        return held_out
    of_model = out_of_fold.reindex(index=range(len(job.X)), columns=held_out.classes).to_numpy()
    return replace(held_out, probabilities={MODEL: of_model, **held_out.probabilities})


def _report(fits: Fits) -> Report:
    """All sections from the fits."""
    job, held_out = fits.job, fits.held_out
    with progress(False) as track:
        records = compute(fits, track(list(SECTIONS), "Sections"))
    return Report(
        title=job.title,
        target=job.target,
        classes=tuple(map(str, held_out.classes)),
        folds=int(held_out.folds.max()) + 1,
        row_title=job.row_title,
        focus=job.focus,
        too_good=job.too_good,
        held_out=job.splits.message if job.judged_apart or job.subjects is not None else "",
        **records,
    )
