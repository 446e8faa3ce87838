"""A run of the report: checks of a file, time limits, phases, files."""

from __future__ import annotations

import hashlib
import math
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from textwrap import fill
from time import monotonic
from typing import Final

import numpy as np
import pandas as pd
from joblib import cpu_count, parallel_config
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from threadpoolctl import threadpool_limits

from bayesrbf import ReadTable, TableError
from bayesrbf.app.report.collect import Report, collect, phases
from bayesrbf.app.report.families import FAMILIES, QUICK_FOLDS, check_method
from bayesrbf.app.report.held_out import Phase
from bayesrbf.app.report.job import Job
from bayesrbf.app.report.judgement import figures, lines, sentences
from bayesrbf.app.report.options import (
    ALL_CORES,
    ANYTHING,
    FIGURES,
    MODEL,
    OPTIONS,
    PAGE,
    POSTERIOR,
    PREDICTIONS,
    SHORT,
    TRIPOD,
    FamilyName,
    Fitting,
    Focus,
    ReportOptions,
    options_content,
)
from bayesrbf.app.report.output import draws_content, figures_content, predictions_frame, to_csv
from bayesrbf.app.report.render import FOR_COMMITTEES, render
from bayesrbf.app.report.tripod import items
from bayesrbf.app.words import (
    clipped,
    harmless,
    listing,
    one_line,
    percent,
    plural,
)
from bayesrbf.base.files import write_whole
from bayesrbf.base.rows import copies_sentence
from bayesrbf.base.tasks import showing
from bayesrbf.fit.held_out import usual_folds
from bayesrbf.fit.reading import subjects_in
from bayesrbf.version import __version__

# Estimates how long a run takes, and cuts it down to a time limit.


FIT_SECONDS: Final[Mapping[FamilyName, tuple[float, float]]] = {
    "stack": (1.0, 0.03),
    "mixture": (0.5, 0.006),
    "rbf": (0.5, 0.06),
    "sdgm": (10.0, 0.6),
    "median_lvq": (0.1, 0.003),
}
"""Seconds of a fit: what any takes, and a factor of the root of its cells times its classes."""
USUAL_WORK: Final = 0.007
"""Seconds of the work that this machine is timed by, where these were measured."""
DRAWN: Final = 3.0
"""Draws of a family but the stack, in fits: a rough mean."""
COMPARED: Final = 8.0
"""Seconds of the small stack that the draws of a family but the stack are compared with."""
POOL_DRAWN: Final = 0.6
"""Draws of a stack, in fits."""
LOADING: Final = 6.0
"""Seconds of a report that any table takes."""
CELL_LOOKED_AT: Final = 1.5e-3
"""Seconds of a report for each cell and class: densities, what columns say, rivals, pictures."""
CURVE_ROWS: Final = 7.5
"""Rows of a table of each size of the learning curve, in tables."""
PROCESS_START: Final = 4.0
"""Seconds until other processes have loaded what a fit needs."""
SHARED: Final = 0.7
"""Part of a run that processes share: folds, densities."""
SURE: Final = 0.5
"""Part of a time limit that an estimate may fill: it is right to about a factor of two."""


def seconds_of(job: Job) -> float:
    """Seconds of one fit to the whole table, by its size and the speed of this machine."""
    fixed, per_root_cell = FIT_SECONDS[job.family]
    classes = np.unique(job.labels[job.labels >= 0]).size
    return slowness() * (fixed + per_root_cell * math.sqrt(job.X.size * classes))


@cache
def slowness() -> float:
    """Time of a small benchmark on this machine over its time on the reference machine."""
    symmetric = np.fromfunction(lambda i, j: np.cos(i * j) + np.cos(i - j), (200, 200))
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        np.linalg.eigh(symmetric)
        sum(step * step for step in range(50_000))
        taken.append(time.perf_counter() - start)
    return min(taken) / USUAL_WORK


def seconds_of_run(job: Job, fit: float, judged: bool) -> float:
    """Seconds of a report in one process, or of a fit alone unless ``judged``."""
    fits = 1.0
    pools = FAMILIES[job.family].pools
    seconds = 0.0
    if judged:
        classes = np.unique(job.labels[job.labels >= 0]).size
        seconds = LOADING + CELL_LOOKED_AT * job.X.size * classes
        if not pools or job.judged_apart:
            fits += job.splits.numbers.size - 1
    if pools:
        fits += POOL_DRAWN
    elif job.inference != "map":
        fits += DRAWN
        seconds += COMPARED
    if job.inference == "nuts":
        fits += DRAWN
    if job.stability:
        folds = min(job.folds, QUICK_FOLDS) if pools else job.folds
        refits = job.stability + CURVE_ROWS * job.curve_tables
        fits += refits * (1 + folds) / (1 + job.folds)
    return fit * fits + seconds


def quicker(job: Job) -> Job:
    """The quick form of a job: no intervals unless asked for, fewer folds.

    Those of a stack are by its own folds, and take no fit more.
    """
    if FAMILIES[job.family].pools:
        return replace(job, quick=True)
    inference = "map" if job.inference == "auto" else job.inference
    return replace(job, quick=True, inference=inference, folds=min(job.folds, QUICK_FOLDS))


def processes(jobs: int, seconds: float) -> tuple[int, float]:
    """Number of processes for a run of so many seconds in one, and its seconds in all of them.

    Where all cores were asked for, they are taken only if that is quicker.
    """
    number = min(cpu_count(), FOLDS) if jobs == ALL_CORES else jobs
    together = PROCESS_START + seconds * (1 - SHARED + SHARED / number)
    if number == 1 or (jobs == ALL_CORES and together >= seconds):
        return 1, seconds
    return number, together


def within(job: Job, limit: float | None, judged: bool = True) -> tuple[Job, str]:
    """The job in the fullest form that a time limit allows, and a line on its expected time.

    Forms are the job as it is, without intervals, and the quick one, which is taken where none is
    known to fit into the limit. A stack has one form. What was left out is a note of the job, and
    so on the page.
    """
    form, seconds = _form(job, limit, judged)
    number, seconds = processes(job.jobs, seconds)
    line = _line(seconds)
    if limit is not None and seconds > SURE * limit:
        size = "more than" if seconds > limit else "more than half of"
        line += (
            f" That is {size} --time-limit {limit:g}; what is not done by then is not written. "
            f"{_what_would_hold(job, limit, seconds, judged)}"
        )
    return replace(form, jobs=number), line


def _what_would_hold(job: Job, limit: float, seconds: float, judged: bool) -> str:
    """Advice on options that would finish in time: a smaller model, or a longer limit."""
    small = quicker(replace(job, family="mixture", inference="map"))
    taken = processes(job.jobs, seconds_of_run(small, seconds_of(small), judged))[1]
    ways = ["--model mixture --inference map"] if taken <= min(SURE * limit, seconds) else []
    return f"Enough would be {' or '.join([*ways, f'--time-limit {math.ceil(seconds / SURE)}'])}."


def _form(job: Job, limit: float | None, judged: bool) -> tuple[Job, float]:
    """The fullest form within a limit, and its seconds in one process."""
    fit = seconds_of(job)
    in_full = seconds_of_run(job, fit, judged)
    if limit is None or FAMILIES[job.family].pools:  # a stack has one form
        return _noted(job), in_full
    if processes(job.jobs, in_full)[1] <= SURE * limit:
        return _noted(job), in_full
    if job.inference == "auto":
        bare = replace(job, inference="map")
        seconds = seconds_of_run(bare, fit, judged)
        if processes(job.jobs, seconds)[1] <= SURE * limit:
            note = f"Without intervals, because --time-limit allows {limit:g} seconds."
            return replace(bare, notes=(note, *job.notes)), seconds
    quick = job if job.quick else quicker(job)
    return _noted(quick, limit), seconds_of_run(quick, seconds_of(quick), judged)


def _noted(job: Job, limit: float | None = None) -> Job:
    """The job with a note where it is quick."""
    if not job.quick:
        return job
    if FAMILIES[job.family].pools:
        return replace(job, notes=("--quick changes nothing for a stack.", *job.notes))
    limits = ["no intervals"] if job.inference == "map" else []
    if not job.judged_apart:
        limits.append(f"{plural(job.folds, 'fold')} at most")
    why = "--quick" if limit is None else f"--quick, because --time-limit allows {limit:g} seconds"
    if not limits:
        return job
    note = f"Made with {why}: {', '.join(limits)}."
    return replace(job, notes=(f"{note} Without it the answer may be better.", *job.notes))


def _line(seconds: float) -> str:
    """A sentence on the expected time.

    >>> _line(7.0), _line(48.0), _line(140.0), _line(9000.0)
    ('Some seconds on this machine.', 'About 50 seconds on this machine.', 'About 2 minutes on this
    machine.', 'About 2.5 hours on this machine.')
    """
    if seconds < 15:
        return "Some seconds on this machine."
    if seconds < 90:
        return f"About {round(seconds, -1):.0f} seconds on this machine."
    if seconds < 90 * 60:
        return f"About {seconds / 60:.0f} minutes on this machine."
    return f"About {seconds / 3600:.1f} hours on this machine."


# From a file that was read to a job; everything is checked before work begins.


FOLDS, FEWER = 5, 3
"""Folds of the validation, at most, of tables and of large ones."""
MAX_CENTRES: Final = 50
MAX_IN_FIVE = 2_000
"""Rows up to which there are five: two thirds of more teach nearly as much as four fifths, and
every fold of another family than the stack costs a fit."""
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pymc", "arviz")


def prepare(
    table: ReadTable,
    title: str,
    fitting: Fitting,
    *,
    facts: tuple[tuple[str, str], ...] = (),
    focus: Focus = ANYTHING,
    rehearse: bool = False,
    stability: int = 0,
    judged: bool = True,
) -> Job:
    """A job of a table that was read with its target; refuse an inference that cannot be run.

    A job that is not judged holds no row out, so the order of its rows plays no part.
    """
    check_method(fitting.model, fitting.inference)
    if rehearse and fitting.inference == "map":
        raise ValueError(
            "--rehearse tries intervals, and --inference map makes none; leave one of the two out."
        )
    if table.target is None:
        raise ValueError("a report needs a target: name the column of labels.")
    target = str(table.target.name)
    subjects, repeated, apart = subjects_in(
        table.frame, None if table.groups is None else table.groups.to_numpy(), "prepare"
    )
    job = Job(
        title=title,
        target=target,
        X=table.frame,
        y=table.target.where(table.target.notna(), None).reset_index(drop=True),
        kinds=table.kinds,
        inference=fitting.inference,
        seed=fitting.seed,
        notes=table.notes,
        facts=facts,
        family=fitting.model,
        missingness=fitting.missingness,
        focus=focus,
        rehearse=rehearse,
        stability=stability,
        draws=fitting.draws,
        jobs=fitting.jobs,
        folds=_folds(table, fitting.model),
        reading=table.options,
        groups=None if subjects is None else subjects.numbers,
        too_good=_too_good(*apart),
        times=table.times.to_numpy() if judged and table.times is not None else None,
        centres=_counted(table.centres) if judged else None,
        by=table.by.reset_index(drop=True),
        score=_counted(table.scores),
    )
    several = np.unique(job.labels[job.labels >= 0]).size > 2
    options = [f"--{name}" for name in ("score", "by") if getattr(table.options, name)]
    if several and options:
        raise TableError(
            f"{' and '.join(options)}: about the probability of an event, which two classes have; "
            f"{target!r} has more: leave {' and '.join(options)} out."
        )
    if job.score is not None:
        known = np.unique(job.labels[job.score.notna().to_numpy() & (job.labels >= 0)])
        if known.size < 2:
            classes = plural(known.size, "class", "classes")
            raise TableError(
                f"--score {job.score.name} is known of rows of {classes} alone; leave it out, or "
                "fill in its cells."
            )
    if job.centres is not None and job.times is not None:
        raise TableError("--time and --centre each say which rows are held out; choose one.")
    if len(job.splits.centres) > MAX_CENTRES:
        raise TableError(
            f"--centre names {len(job.splits.centres)} centres, each of which takes a fit; at most "
            f"{MAX_CENTRES} can be held out in turn. If rows of one belong together, say --group."
        )
    _check_splits(job)
    sentences = [
        job.splits.message if table.groups is not None or job.judged_apart else "",
        copies_sentence(repeated) if repeated else "",
        "Figures by centre are told of two classes alone."
        if several and job.centres is not None
        else "",
        "" if judged else _unjudged(table),
        job.too_good,
    ]
    return replace(job, notes=(*filter(None, sentences), *job.notes))


def _too_good(count: int, name: str) -> str:
    """A sentence on rows that may belong together; empty where there are none."""
    if not count:
        return ""
    return (
        f"{clipped(name, 30)!r} alone tells {plural(count, 'row')} from an earlier row, far beyond "
        "chance: if such rows belong together, as where one is measured again, figures of "
        "held-out rows are too good. Name the column that says so by --group."
    )


def _counted(cells: pd.Series | None) -> pd.Series | None:
    """A column that is no feature, with rows counted from 0."""
    return None if cells is None else cells.reset_index(drop=True)


def _folds(table: ReadTable, family: FamilyName) -> int:
    """Maximum number of folds. A stack uses the folds of its pool, which need no more fits."""
    if FAMILIES[family].pools:
        return usual_folds(0.0 if table.target is None else float(table.target.notna().sum()))
    return FOLDS if len(table.frame) <= MAX_IN_FIVE else FEWER


def _unjudged(table: ReadTable) -> str:
    """A sentence on the column that orders the rows, where no row is held out."""
    if table.times is not None:
        name, says, rows = str(table.times.name), "orders the rows", "the latest rows"
    elif table.centres is not None:
        name, says, rows = str(table.centres.name), "names the centres", "each centre in turn"
    else:
        return ""
    return (
        f"Column {name!r} {says} and is no part of the model. No row is held out here; report "
        f"judges the model on {rows}."
    )


def _check_splits(job: Job) -> None:
    """Refuse splits without held-out rows, and splits with a class that lacks training rows."""
    splits = job.splits
    if not splits.numbers.size:
        option = "--group" if job.times is None else "--time"
        option = option if job.centres is None else "--centre"
        raise TableError(
            f"{option} leaves no row to be held out: too few times, centres or groups have rows of "
            "two classes; leave the option out."
        )
    present = np.unique(job.labels[job.labels >= 0])
    for fold in splits.numbers.tolist():
        absent = np.setdiff1d(present, job.labels[splits.training(fold)])
        if absent.size:
            label = sorted({str(text) for text in job.y.dropna()})[absent[0]]
            raise TableError(
                f"Beside some of the rows that are held out, no row that may teach has the class "
                f"{label!r}, so it cannot be learnt; leave --time, --centre or --group out."
            )


def facts_of(command: str, path: Path) -> tuple[tuple[str, str], ...]:
    """Facts that reproduce a run: command, versions, digest of the file."""
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        ("command", command),
        ("data", f"{path.name}, SHA-256 {digest}"),
        ("bayesrbf", __version__),
        ("libraries", f"{libraries}; Python {platform.python_version()}"),
    )


# From a job to the files of its report, and what is said on the way in the terminal.


WRITING: Final = "Writing"
"""The last phase of a run."""
QUESTION: Final = "Can I trust these probabilities?"
"""Question that the verdict answers, as on the page."""
SHOWN_NOTES: Final = 5
"""Notes that a terminal shows where a page has all, the most harmful first."""


def run(job: Job, folder: Path, extras: Sequence[str] = ()) -> Report:
    """Make the report and write every file, and those of TRIPOD and SHORT that are asked for."""
    with sharing(job.jobs), progress((*phases(job), WRITING)) as phase:
        outcome = collect(job, phase)
        with phase(WRITING):
            predictions = predictions_frame(
                outcome.uncertainty, job.y, outcome.held_out, job.focus, job.ids
            )
            write_whole(folder / PREDICTIONS, to_csv(predictions))
            outcome.model.save(folder / MODEL)
            options = ReportOptions(job.target, job.focus, job.reading)
            write_whole(folder / OPTIONS, options_content(options))
            draws, thinned = draws_content(outcome.model.posterior_, whole=job.draws is not None)
            write_whole(folder / POSTERIOR, draws)
            report = outcome.report
            if thinned:
                facts = (*report.described.facts, ("draws", thinned))
                report = replace(report, described=replace(report.described, facts=facts))
            if TRIPOD in extras:
                write_whole(folder / TRIPOD, items(report).encode())
            if SHORT in extras:
                write_whole(folder / SHORT, render(report, chapters=FOR_COMMITTEES).encode())
            page = render(report, TRIPOD if TRIPOD in extras else "")
            write_whole(folder / PAGE, page.encode())
            content = figures_content(figures(report), folder / MODEL)
            write_whole(folder / FIGURES[PAGE], content)
    return report


def introduce(job: Job, takes: str = "", page: bool = True) -> None:
    """Print rows, kinds of the columns and the expected time; all notes if there is no page."""
    console = Console()
    missing = float(job.X.isna().to_numpy().mean())
    unlabelled = int(job.y.isna().sum())
    classes = sorted({str(label) for label in job.y.dropna()})
    lines = [
        f"{job.title}: {plural(len(job.X), 'row')}, {plural(job.X.shape[1], 'column')}, "
        f"{percent(missing)} of the cells missing",
        f"  target       {clipped(job.target)}: {listing([clipped(c, 20) for c in classes], 6)}"
        + (f"; {plural(unlabelled, 'row')} without a label" if unlabelled else ""),
    ]
    for kind in sorted({kind.word for kind in job.kinds.values()}, reverse=True):
        named = [name for name in job.X.columns if job.kinds[name].word == kind]
        lines.append(f"  {kind:<12} {listing([clipped(name, 24) for name in named], 5)}")
    shown = job.notes[:SHOWN_NOTES] if page else job.notes
    lines += [f"  note         {one_line(note)}" for note in shown]
    if len(job.notes) > len(shown):
        lines.append(f"               and {len(job.notes) - SHOWN_NOTES} more, on the page")
    lines += [f"  time         {takes}"] if takes else []
    for line in lines:
        console.print(harmless(line), highlight=False, markup=False, soft_wrap=True)


SLOW: Final = 2.0
"""Seconds of a phase beyond which a log of the run has a line about it."""
OFTEN: Final = 10.0
"""Seconds between lines about the same phase."""


@contextmanager
def sharing(jobs: int) -> Iterator[None]:
    """Let processes, which stay between its parts, share the work within; -1 for all cores.

    Each has one BLAS thread, this one too: last digits depend on their number.
    """
    with (
        parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1),
        threadpool_limits(1, "blas"),
    ):
        yield


@contextmanager
def progress(phases: Sequence[str] = ()) -> Iterator[Phase]:
    """Show how far every phase is and how long it still takes; phases are named before.

    Where the output is no terminal, there are no bars: a slow phase has a line at its end, and one
    now and then that says how far it is. After an interrupt a line says which ones are not done.
    """
    console, missing = Console(stderr=True), list(phases)

    def named(title: str, names: Sequence[str]) -> None:
        line = f"{title}: {listing([name.lower() for name in names], len(names))}."
        console.print(line, highlight=False, soft_wrap=True)

    if phases and not console.is_terminal:
        named("Phases", phases)
    shown = _bars(console, phases) if console.is_terminal else nullcontext(partial(_lines, console))

    @contextmanager
    def counted(name: str) -> Iterator[None]:
        with show(name):
            yield
        missing[:] = [phase_name for phase_name in missing if phase_name != name]

    try:
        with shown as show:
            yield counted
    except KeyboardInterrupt:
        if missing:
            named("Not done", missing)
        raise


@contextmanager
def _bars(console: Console, phases: Sequence[str]) -> Iterator[Phase]:
    """A bar a phase, which shows the work that is done in it now."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bars:
        tasks = {name: bars.add_task(name, start=False, total=None) for name in phases}

        @contextmanager
        def phase(name: str) -> Iterator[None]:
            task = tasks[name] if name in tasks else bars.add_task(name, total=None)
            bars.start_task(task)

            def track[T](sequence: Sequence[T], description: str) -> Iterator[T]:
                shown = f"{name}, {description.lower()}"
                bars.update(task, description=shown, total=len(sequence), completed=0)
                for step in sequence:
                    yield step
                    bars.advance(task)
                bars.refresh()

            with showing(track):
                yield
            bars.update(task, description=name, total=1, completed=1)

        yield phase


@contextmanager
def _lines(console: Console, name: str) -> Iterator[None]:
    """Lines about a phase where it is slow, and about the work within."""
    began = monotonic()

    def track[T](sequence: Sequence[T], description: str) -> Iterator[T]:
        started = printed = monotonic()
        for done, step in enumerate(sequence, start=1):
            yield step
            now = monotonic()
            if done < len(sequence) and now - printed > OFTEN:
                printed = now
                left = (now - started) * (len(sequence) - done) / done
                share = f"{percent(done / len(sequence))}, {left:.0f} s left"
                console.print(f"{name}, {description.lower()}: {share}", highlight=False)

    with showing(track):
        yield
    if monotonic() - began > SLOW:
        console.print(f"{name}: done in {monotonic() - began:.0f} s", highlight=False)


def tell(report: Report) -> None:
    """Print the verdict and the main figures, a few lines each; no line breaks before a %."""
    console = Console()
    rows = list(lines(report))
    messages = sentences(report)
    width = max(len(name) for name, _ in rows)
    shown = [messages[name] for name in ("verdict", "evidence", "events", "unvalidated")]
    for name, text in [*rows, *(("", message) for message in filter(None, (QUESTION, *shown)))]:
        indent = " " * (width + 1) if name else ""
        paragraph = fill(
            harmless(text),
            console.width,
            initial_indent=f"{name:<{width}} " if name else "",
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        console.print(paragraph, highlight=False, markup=False, soft_wrap=True)
