"""From a job to the files of its report, and what is said on the way in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import fill
from time import monotonic
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)

from bayesrbf.files import write_whole
from bayesrbf.inference.progress import Track as Within
from bayesrbf.inference.progress import showing, silent
from bayesrbf.posterior.held_out import Interval
from bayesrbf.report.collect import collect
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
from bayesrbf.report.validate import TrackSteps
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

QUESTION: Final = "Can I trust these probabilities?"
"""What the verdict answers, as on the page."""
SHOWN_NOTES: Final = 5
"""Notes that a terminal shows where a page has all, the most harmful first."""


def run(job: Job, folder: Path) -> Report:
    """Make the report and write every file."""
    with progress() as track:
        outcome = collect(job, track)
        for _ in track((None,), "Writing", 1):
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
"""Seconds of a step beyond which a log of the run has a line about it."""
WITHIN: Final = "  "
"""Before the name of a step within a step."""
OFTEN: Final = 10.0
"""Seconds between lines about the same step."""


@contextmanager
def progress() -> Iterator[TrackSteps]:
    """Give the tracker that owns all bars, and shows the steps of fits and draws within.

    Where the output is no terminal, there are no bars: a slow step has a line at its end, and one
    now and then that says how far it is.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield partial(_lines, console)
        return
    with _bars(console) as track, showing(_within(track)):
        yield track


@contextmanager
def _bars(console: Console) -> Iterator[TrackSteps]:
    """Bars with the share that is done; a step of one part has a bar without a length.

    Bars of fits and draws within a step go when those are done.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as bars:

        def track[T](steps: Iterable[T], what: str, total: int) -> Iterable[T]:
            task = bars.add_task(what, total=total if total > 1 else None)
            for step in steps:
                yield step
                bars.advance(task)
            bars.update(task, total=total, completed=total)
            bars.refresh()
            if what.startswith(WITHIN):
                bars.remove_task(task)

        yield track


def _within(track: TrackSteps) -> Within:
    """The tracker as fits and draws take one."""
    return lambda sequence, what: iter(track(sequence, f"{WITHIN}{what}", len(sequence)))


def _lines[T](console: Console, steps: Iterable[T], what: str, total: int) -> Iterable[T]:
    """Pass the parts of a step on, with lines where it is slow.

    A step of one part says how far the fits and draws within it are.
    """
    began = printed = monotonic()
    for done, step in enumerate(steps, start=1):
        with showing(_shares(console, what) if total == 1 else silent):
            yield step
        if done < total and monotonic() - printed > OFTEN:
            printed = monotonic()
            console.print(f"{what}: {percent(done / total)}", highlight=False)
    if monotonic() - began > SLOW:
        console.print(f"{what}: done in {monotonic() - began:.0f} s", highlight=False)


def _shares(console: Console, what: str) -> Within:
    """The tracker of fits and draws within a step: a line now and then with the share done."""

    def track[T](sequence: Sequence[T], description: str) -> Iterator[T]:
        printed = monotonic()
        for done, step in enumerate(sequence, start=1):
            yield step
            if done < len(sequence) and monotonic() - printed > OFTEN:
                printed = monotonic()
                share = percent(done / len(sequence))
                console.print(f"{what}, {description.lower()}: {share}", highlight=False)

    return track


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
    own, frequencies, logistic = report.scores
    low, high = own.calibration.noise
    name, hardest, _ = report.performance.hardest
    yield (
        "held-out log loss",
        f"{number(own.log_loss[0])} nats of surprise (logistic regression "
        f"{number(logistic.log_loss[0])}, class frequencies {number(frequencies.log_loss[0])})",
    )
    yield "classified right", _share(report.performance.accuracy)
    if report.performance.event is not None:
        yield "sensitivity", _share(hardest.sensitivity)
        yield "specificity", _share(hardest.specificity)
        yield "PPV", _share(hardest.ppv)
        yield "NPV", _share(hardest.npv)
    area = hardest.auroc
    if area.value == area.value:
        figure = f"{number(area.value)} ({ends(area.lower, area.upper)})"
        yield "AUROC", f"{figure}, {clipped(name, 24)} against the rest"
    noise = f"chance alone {number(low)} to {number(high)}"
    yield "calibration error", f"{number(own.calibration.error)} ({noise})"
    yield "unsure of", f"{report.doubt.below} of {plural(report.doubt.judged, 'row')} held out"
    yield "look wrong", f"{plural(report.oddities.n_cells, 'cell')}, by the fit to all rows"
    if report.check is not None:
        yield "hidden labels", f"{percent(report.check.accuracy)} of {report.check.rows} right"


def _share(interval: Interval) -> str:
    """A share and its interval."""
    return f"{percent(interval.value)} ({ends(interval.lower, interval.upper, percent)})"


def figures(report: Report) -> dict[str, object]:
    """The verdict and the main figures, by name."""
    held_out, rivals = report.performance, report.scores[1:]
    return {
        "target": report.target,
        "classes": report.classes,
        "rows": report.judged.rows,
        "verdict": verdict(report),
        "evidence": evidence(report),
        "event": report.performance.event,
        "unvalidated": report.unvalidated,
        "scores": {
            "log loss": held_out.log_loss,
            "Brier score": held_out.brier,
            "share right": held_out.accuracy,
        },
        "rivals": {one.name: {"log loss": one.log_loss[0]} for one in rivals},
        "cost_of_a_row": report.judged.answers if report.judged.in_costs else None,
        "calibration_error": report.scores[0].calibration.error,
        "against_rest": {name: one for name, one, _ in held_out.classes},
        "unsure": report.doubt.below,
        "cells_that_look_wrong": report.oddities.n_cells,
    }
