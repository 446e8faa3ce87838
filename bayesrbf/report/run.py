"""From a job to the files of its report."""

from __future__ import annotations

from pathlib import Path

from bayesrbf.report.collect import Outcome, collect
from bayesrbf.report.job import Job
from bayesrbf.report.output import MODEL, PAGE, POSTERIOR, PREDICTIONS, predictions_frame, to_csv
from bayesrbf.report.render import render
from bayesrbf.report.terminal import introduce, progress, tell


def run(job: Job, folder: Path) -> list[str]:
    """Say what was read, look at it, and write every file.

    Parameters
    ----------
    job : Job
        What to report on.
    folder : Path
        Where the files shall be.

    Returns
    -------
    list of str
        Names of the files that are there.
    """
    introduce(job)
    with progress() as track:
        outcome = collect(job, track)
        for _ in track((None,), "Writing", 1):
            predictions = predictions_frame(outcome.uncertainty, job.y, outcome.held_out)
            (folder / PREDICTIONS).write_bytes(to_csv(predictions))
            outcome.model.save(folder / MODEL)
            _write_posterior(outcome, folder / POSTERIOR)
            (folder / PAGE).write_text(render(outcome.report), encoding="utf-8")
    tell(outcome.report)
    return sorted(file.name for file in folder.iterdir())


def _write_posterior(outcome: Outcome, file: Path) -> None:
    """The DataTree as compressed netCDF."""
    tree = outcome.model.posterior_
    encoding = {
        node.path: {name: {"zlib": True, "complevel": 1} for name in node.data_vars}
        for node in tree.subtree
        if node.data_vars
    }
    tree.to_netcdf(file, engine="h5netcdf", encoding=encoding)
