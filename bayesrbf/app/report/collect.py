"""From a table to everything that the report says about it, which is a list of sections."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.answers.comparisons import GivenScore, Parts
from bayesrbf.app.report import (
    costs,
    described,
    diagnostics,
    doubt,
    filled,
    learned,
    moves,
    oddities,
    performance,
    reading,
    refits,
    scores,
    subgroups,
    trust,
)
from bayesrbf.app.report.costs import Costs
from bayesrbf.app.report.density import JudgedTable, judge_table
from bayesrbf.app.report.described import Described
from bayesrbf.app.report.diagnostics import Diagnostics
from bayesrbf.app.report.doubt import Doubt
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
from bayesrbf.app.report.learned import Learned
from bayesrbf.app.report.moves import Moves
from bayesrbf.app.report.oddities import Oddities
from bayesrbf.app.report.options import ANYTHING, Focus
from bayesrbf.app.report.performance import Judged
from bayesrbf.app.report.reading import Reading
from bayesrbf.app.report.refits import Refits
from bayesrbf.app.report.scores import Check, MeanScores
from bayesrbf.app.report.subgroups import Subgroups
from bayesrbf.app.report.trust import JudgedByRivals
from bayesrbf.base.tasks import progress, run_tasks
from bayesrbf.reading.notes import FOR_DEVELOPERS, ColumnWarning

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.inference.diagnose import Finding


MODEL, FREQUENCIES = "this model", "class frequencies"

FIT, DRAWS, ROWS = "Fitting the whole table", "Drawing the posterior", "Looking at all rows"
CELLS, REHEARSAL = "Filling in cells of rows held out", "Rehearsing the intervals"
STABILITY, LEARNING = "Refitting samples of the rows", "Fitting fewer and more rows"
MAKING = "Making the sections"


@dataclass(frozen=True)
class Report:
    """The records of all sections, and what they share."""

    title: str
    target: str  # Name of the label column.
    classes: tuple[str, ...]
    folds: int
    judged: JudgedByRivals
    scores: tuple[MeanScores, ...]  # The model first, then the class frequencies and the rivals.
    performance: Judged
    subgroups: Subgroups
    reading: Reading
    doubt: Doubt
    oddities: Oddities
    moves: Moves
    learned: Learned
    imputations: Imputations
    diagnostics: Diagnostics
    described: Described
    refits: Refits
    held_out: str = ""  # How rows were held out, where not by chance.
    parts: tuple[Parts, ...] = ()  # By the columns that were asked for.
    score: GivenScore | None = None  # That was given beside the model.
    check: Check | None = None  # Where the truth of hidden labels is known.
    costs: Costs | None = None  # Where costs were given.
    row_title: str = "row"  # What the names of rows are called.
    focus: Focus = ANYTHING  # What figures and decisions are about.


@dataclass(frozen=True)
class Fits:
    """Everything slow, from which :data:`SECTIONS` are computed."""

    job: Job
    fitted: Fitted
    drawn: Drawn
    held_out: HeldOutRows
    rival: str  # Of least log loss.
    uncertainty: xr.Dataset  # Of every row.
    known: Int[np.ndarray, " row"]  # Positions of rows whose label no fit had seen.
    doubtful: xr.Dataset  # Uncertainty of these.
    widths: Float[np.ndarray, "row label"]  # Of their intervals.
    judged: JudgedTable
    moves: Moves
    findings: tuple[Finding, ...]
    cells: HeldOutCells | None
    refits: Refits
    intervals: str  # How often they hold the truth, or that this was not tried.
    heard: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """A part of the report: how its record is made, and what it says and shows."""

    record: str  # The field of Report.
    computed: Callable[[Fits], Any]
    said: Callable[[Report], Mapping[str, str]] = lambda _: {}
    shown: Callable[[Report], Mapping[str, Any]] = lambda _: {}


SECTIONS: Final = (
    Section(
        "judged",
        lambda at: trust.compute(
            at.held_out, at.job.focus, MODEL, FREQUENCIES, at.rival, at.job.groups
        ),
        lambda of: trust.say(
            of.judged, of.scores[0], of.performance, of.reading.too_good, of.focus.level
        ),
    ),
    Section(
        "reading",
        lambda at: reading.compute(at.job, getattr(at.drawn.model.model_, "message", "")),
        lambda of: reading.say(of.reading),
        lambda of: reading.show(of.reading),
    ),
    Section(
        "scores",
        lambda at: tuple(
            scores.compute(at.held_out, name, at.job.units, at.job.focus.level)
            for name in at.held_out.probabilities
        ),
        shown=lambda of: scores.show(of.scores, of.classes, of.reading.drawn),
    ),
    Section("check", lambda at: scores.read_check(at.job, at.uncertainty)),
    Section(
        "performance",
        lambda at: performance.compute(at.held_out, at.job.focus, MODEL, at.rival, at.job.units),
        lambda of: performance.say(
            of.performance, of.classes, of.focus, costs=of.costs is not None
        ),
        lambda of: performance.show(of.performance, of.judged.rival.name, of.score, of.focus.level),
    ),
    Section("score", lambda at: performance.read_score(at.job, at.held_out, MODEL)),
    Section(
        "costs",
        lambda at: costs.compute(at.held_out, at.job.focus.costs, (MODEL, at.rival)),
        lambda of: costs.say(of.costs, of.focus.threshold),
        lambda of: costs.show(of.costs),
    ),
    Section(
        "refits",
        lambda at: at.refits,
        lambda of: refits.say(of.refits),
        lambda of: refits.show(of.refits),
    ),
    Section(
        "subgroups",
        lambda at: subgroups.compute(at.job, at.held_out, MODEL),
        lambda of: subgroups.say(of.subgroups, len(of.classes)),
    ),
    Section(
        "parts",
        lambda at: subgroups.read_parts(at.job, at.held_out, MODEL, at.known, at.widths),
    ),
    Section(
        "doubt",
        lambda at: doubt.compute(
            at.job, at.drawn.model, at.judged, at.held_out, at.known, at.doubtful, at.intervals
        ),
        lambda of: doubt.say(of.doubt),
        lambda of: doubt.show(of.doubt),
    ),
    Section(
        "oddities",
        lambda at: oddities.compute(at.job, at.judged, at.held_out),
        lambda of: oddities.say(of.oddities),
    ),
    Section(
        "moves",
        lambda at: at.moves,
        lambda of: moves.say(of.moves, helps=of.judged.helps),
        lambda of: moves.show(of.moves, of.classes, of.reading.drawn, of.performance.event),
    ),
    Section(
        "learned",
        lambda at: learned.compute(at.job, at.drawn.model, at.drawn.refined, at.moves),
        lambda of: learned.say(of.learned),
        lambda of: learned.show(of.learned, of.classes, of.reading.drawn),
    ),
    Section(
        "imputations",
        lambda at: filled.compute(at.job, at.judged, at.cells),
        lambda of: filled.say(of.imputations, of.reading.missing),
        lambda of: filled.show(of.imputations),
    ),
    Section(
        "diagnostics",
        lambda at: diagnostics.compute(at.drawn, at.findings, at.heard),
        lambda of: diagnostics.say(of.diagnostics),
    ),
    Section(
        "described",
        lambda at: described.compute(at.job, at.fitted, at.drawn.refined),
        lambda of: described.say(of.described),
    ),
)
"""All parts of the report; templates say where they stand on the page."""


def sentences(report: Report) -> dict[str, str]:
    """The sentences of all sections by name; empty where there is nothing to say."""
    return {name: told for part in SECTIONS for name, told in part.said(report).items()}


def pictures(report: Report) -> dict[str, Any]:
    """The pictures of all sections by name, ready to be placed."""
    return {name: drawn for part in SECTIONS for name, drawn in part.shown(report).items()}


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
    with _heard() as heard:
        with phase(FIT):
            fitted = procedure(job.X, job.y)
        held_out = _validated(job, procedure, fitted, phase)
        with phase(DRAWS):
            drawn = draw_posterior(job, fitted.model)
        with phase(ROWS):
            judged, uncertainty, moved, findings = _looks(job, drawn)
        cells, refitted = None, Refits()
        if not job.knows_holes:
            with phase(CELLS):
                cells = fill_held_out(job, judged)
        if job.stability:
            with phase(STABILITY):
                refitted = refits.compute(job, held_out)
            with phase(LEARNING):
                learning = refits.read_learning(job, drawn.model, judged.density)
                refitted = replace(refitted, learning=learning)
    with _heard() as rehearsing, phase(REHEARSAL) if job.rehearse else nullcontext():
        intervals = doubt.read_intervals(job, drawn)
    heard += [f"In the rehearsal: {sentence}" for sentence in rehearsing if sentence not in heard]
    known, doubtful = doubt.held_out_uncertainty(drawn.refined.fitted_, held_out, uncertainty)
    fits = Fits(
        job=job,
        fitted=fitted,
        drawn=drawn,
        held_out=held_out,
        rival=trust.best_of(held_out, (LOGISTIC, FOREST)),
        uncertainty=uncertainty,
        known=known,
        doubtful=doubtful,
        widths=(doubtful["upper"] - doubtful["lower"]).to_numpy(),
        judged=judged,
        moves=moved,
        findings=findings,
        cells=cells,
        refits=refitted,
        intervals=intervals,
        heard=tuple(heard),
    )
    with phase(MAKING):
        report = _report(fits)
    return Outcome(report, drawn.refined, held_out, uncertainty)


def _looks(job: Job, drawn: Drawn) -> tuple[JudgedTable, xr.Dataset, Moves, tuple[Finding, ...]]:
    """Slow answers about all rows by the fit alone, in several processes where there are."""
    looks: list[Callable[[], Any]] = [
        lambda: judge_table(job),
        lambda: drawn.refined.uncertainty(job.X, job.focus.level),
        lambda: moves.compute(job, drawn.model),
        lambda: drawn.refined.fitted_.findings(),
    ]
    judged, uncertainty, moved, findings = run_tasks(lambda look: look(), looks, "Looks")
    return judged, uncertainty, moved, findings


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


def _report(fits: Fits) -> Report:
    """All sections from the fits."""
    job, held_out = fits.job, fits.held_out
    with progress(False) as track:
        records = {part.record: part.computed(fits) for part in track(list(SECTIONS), "Sections")}
    return Report(
        title=job.title,
        target=job.target,
        classes=tuple(map(str, held_out.classes)),
        folds=int(held_out.folds.max()) + 1,
        row_title=job.row_title,
        focus=job.focus,
        held_out=job.splits.sentence if job.judged_apart or job.units is not None else "",
        **records,
    )
