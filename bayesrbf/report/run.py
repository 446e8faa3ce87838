"""From a job to the files of its report."""

from __future__ import annotations

from pathlib import Path

from bayesrbf.files import write_whole
from bayesrbf.report.collect import collect
from bayesrbf.report.job import Job
from bayesrbf.report.output import (
    MODEL,
    PAGE,
    POSTERIOR,
    PREDICTIONS,
    predictions_frame,
    to_csv,
    to_netcdf,
)
from bayesrbf.report.render import render
from bayesrbf.report.terminal import introduce, progress, tell


def run(job: Job, folder: Path) -> list[str]:
    """Say what was read, make the report, write every file and return the names."""
    introduce(job)
    with progress() as track:
        outcome = collect(job, track)
        for _ in track((None,), "Writing", 1):
            predictions = predictions_frame(outcome.uncertainty, job.y, outcome.held_out)
            write_whole(folder / PREDICTIONS, to_csv(predictions))
            outcome.model.save(folder / MODEL)
            write_whole(folder / POSTERIOR, to_netcdf(outcome.model.posterior_))
            write_whole(folder / PAGE, render(outcome.report).encode())
    tell(outcome.report)
    return sorted(file.name for file in folder.iterdir())
