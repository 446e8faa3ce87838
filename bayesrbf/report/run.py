"""From a job to the files of its report, and what is said on the way in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import fill
from time import monotonic
from typing import Final

from joblib import parallel_config
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

from bayesrbf.files import write_whole
from bayesrbf.inference.progress import Track, showing
from bayesrbf.posterior.held_out import LEVEL, Interval
from bayesrbf.report.collect import collect, phases
from bayesrbf.report.findings import events, evidence, unvalidated, verdict
from bayesrbf.report.job import Job
from bayesrbf.report.options import OPTIONS, ReportOptions, options_content
from bayesrbf.report.output import (
    MODEL,
    PAGE,
    POSTERIOR,
    PREDICTIONS,
    draws_content,
    predictions_frame,
    to_csv,
)
from bayesrbf.report.records import Report
from bayesrbf.report.render import render
from bayesrbf.report.validate import Phase
from bayesrbf.report.verdict import leads
from bayesrbf.report.words import (
    clipped,
    ends,
    harmless,
    listing,
    number,
    one_line,
    percent,
    plural,
)

WRITING: Final = "Writing"
"""The last phase of a run."""
QUESTION: Final = "Can I trust these probabilities?"
"""What the verdict answers, as on the page."""
SHOWN_NOTES: Final = 5
"""Notes that a terminal shows where a page has all, the most harmful first."""


def run(job: Job, folder: Path) -> Report:
    """Make the report and write every file."""
    with sharing(job.jobs), progress((*phases(job), WRITING)) as phase:
        outcome = collect(job, phase)
        with phase(WRITING):
            predictions = predictions_frame(
                outcome.uncertainty, job.y, outcome.held_out, job.costs, job.ids
            )
            write_whole(folder / PREDICTIONS, to_csv(predictions))
            outcome.model.save(folder / MODEL)
            options = ReportOptions(job.target, job.costs, job.reading)
            write_whole(folder / OPTIONS, options_content(options))
            draws, thinned = draws_content(outcome.model.posterior_, whole=job.draws is not None)
            write_whole(folder / POSTERIOR, draws)
            report = _with_fact(outcome.report, "draws", thinned) if thinned else outcome.report
            write_whole(folder / PAGE, render(report).encode())
    return report


def _with_fact(report: Report, name: str, fact: str) -> Report:
    """The report with one fact more."""
    described = replace(report.described, facts=(*report.described.facts, (name, fact)))
    return replace(report, described=described)


def introduce(job: Job, takes: str = "", page: bool = True) -> None:
    """Say what was read, what it was taken for, and how long it takes; all notes without a page."""
    console = Console()
    missing = float(job.X.isna().to_numpy().mean())
    hidden = int(job.y.isna().sum())
    classes = sorted({str(label) for label in job.y.dropna()})
    reals = [name for name in job.X.columns if job.kinds[name] == "real"]
    lines = [
        f"{job.title}: {plural(len(job.X), 'row')}, {plural(job.X.shape[1], 'column')}, "
        f"{percent(missing)} of the cells missing",
        f"  target       {clipped(job.target)}: {listing([clipped(c, 20) for c in classes], 6)}"
        + (f"; {plural(hidden, 'row')} without a label" if hidden else ""),
    ]
    for kind, named in (("real", reals), ("categorical", job.categorical)):
        if named:
            columns = listing([clipped(name, 24) for name in named], 5)
            lines.append(f"  {kind:<12} {columns}")
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

    def named(what: str, names: Sequence[str]) -> None:
        line = f"{what}: {listing([name.lower() for name in names], len(names))}."
        console.print(line, highlight=False, soft_wrap=True)

    if phases and not console.is_terminal:
        named("Phases", phases)
    shown = _bars(console, phases) if console.is_terminal else nullcontext(partial(_lines, console))

    @contextmanager
    def counted(name: str) -> Iterator[None]:
        with show(name):
            yield
        missing[:] = [one for one in missing if one != name]

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

            with showing(_outermost(track)):
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

    with showing(_outermost(track)):
        yield
    if monotonic() - began > SLOW:
        console.print(f"{name}: done in {monotonic() - began:.0f} s", highlight=False)


def _outermost(track: Track) -> Track:
    """A display of work that is within no other: of folds, not of searches in a fold."""
    busy = False

    def alone[T](sequence: Sequence[T], description: str) -> Iterator[T]:
        nonlocal busy
        if busy:
            yield from sequence
            return
        busy = True
        try:
            yield from track(sequence, description)
        finally:
            busy = False

    return alone


def tell(report: Report) -> None:
    """Print the verdict and the main figures, a few lines each; no line breaks before a %."""
    console, rows = Console(), list(_main_figures(report))
    width = max(len(name) for name, _ in rows)
    sentences = QUESTION, verdict(report), evidence(report), events(report), unvalidated(report)
    for name, text in [*rows, *(("", sentence) for sentence in filter(None, sentences))]:
        indent = " " * (width + 1) if name else ""
        paragraph = fill(
            harmless(text),
            console.width,
            initial_indent=f"{name:<{width}} " if name else "",
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
        console.print(paragraph, highlight=False, markup=False, soft_wrap=True)


def _main_figures(report: Report) -> Iterator[tuple[str, str]]:
    """Names and figures of the table that a terminal shows."""
    own, *others = report.scores
    low, high = own.calibration.noise
    of_class, hardest, _ = report.performance.hardest
    yield (
        "held-out log loss",
        f"{number(own.log_loss[0])} nats of surprise "
        f"({listing([f'{one.name} {number(one.log_loss[0])}' for one in others])})",
    )
    answers = "lead in the cost of a row" if report.judged.in_costs else "lead in right answers"
    for column, name in ((1, "lead in log loss"), (2, answers)):
        every = [f"{one[column]} over {one[0]}" for one in leads(report.judged) if one[column]]
        yield name, listing(every)
    yield "classified right", f"{_share(report.performance.accuracy)}, by the most probable class"
    if (event := report.performance.event) is not None:
        at = f", threshold {percent(event.threshold)}"
        yield "sensitivity", f"{_share(hardest.sensitivity)}{at}"
        yield "specificity", f"{_share(hardest.specificity)}{at}"
        yield "PPV", f"{_share(hardest.ppv)}{at}"
        yield "NPV", f"{_share(hardest.npv)}{at}"
    area = hardest.auroc
    if area.value == area.value:
        figure = f"{number(area.value)} ({ends(area.lower, area.upper)})"
        yield "AUROC", f"{figure}, {clipped(of_class, 24)} against the rest"
    noise = f"chance alone {number(low)} to {number(high)}"
    yield "calibration error", f"{number(own.calibration.error)} ({noise})"
    slope = own.slope
    slopes = f"{number(slope.value)} ({ends(slope.lower, slope.upper)})"
    yield "calibration slope", f"{slopes}, 1 is right"
    yield "unsure of", f"{report.doubt.below} of {plural(report.doubt.judged, 'row')} held out"
    yield "look wrong", f"{plural(report.oddities.n_cells, 'cell')}, by a density of all rows"
    if report.check is not None:
        rows = f"{plural(report.check.rows, 'row')} that the fit had without their labels"
        yield "hidden labels", f"{percent(report.check.accuracy)} right, of {rows}"
    units = "rows" if report.judged.groups is None else "groups"
    yield "in brackets", f"intervals of {percent(LEVEL)}; those of leads count {units}"


def _share(interval: Interval) -> str:
    """A share and its interval."""
    return f"{percent(interval.value)} ({ends(interval.lower, interval.upper, percent)})"


def figures(report: Report) -> dict[str, object]:
    """The verdict and the main figures, by name."""
    held_out, judged, (own, *others) = report.performance, report.judged, report.scores
    base, rival = judged.base, judged.rival
    by_costs = "the decision of least expected cost"
    most_probable = "the most probable class"
    answers = "cost of a row" if judged.in_costs else "share right"
    return {
        "target": report.target,
        "classes": report.classes,
        "rows": judged.rows,
        "prob": LEVEL,
        "verdict": verdict(report),
        "evidence": evidence(report),
        "event": report.performance.event,
        "unvalidated": report.unvalidated,
        "scores": {
            "log loss": held_out.log_loss,
            "Brier score": held_out.brier,
            "share right": held_out.accuracy,
        },
        "decided_by": {
            "share right": most_probable,
            "against_rest": by_costs if judged.in_costs else most_probable,
        },
        "rivals": {one.name: {"log loss": one.log_loss[0]} for one in others},
        "leads": (
            {"over": "class frequencies", "log loss": base.gain.interval},
            {"over": base.name, answers: base.gain_of_answers.interval},
            {
                "over": rival.name,
                "log loss": rival.gain.interval,
                answers: rival.gain_of_answers.interval,
            },
        ),
        "cost_of_a_row": judged.answers if judged.in_costs else None,
        "calibration_error": own.calibration.error,
        "calibration_error_by_chance": own.calibration.noise,
        "calibration_slope": own.slope,
        "against_rest": {name: one for name, one, _ in held_out.classes},
        "unsure": report.doubt.below,
        "cells_that_look_wrong": report.oddities.n_cells,
    }
