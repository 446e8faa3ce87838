"""Estimates how long a run takes, and cuts it down to a time limit."""

from __future__ import annotations

import time
import warnings
from dataclasses import replace
from typing import Final

import numpy as np
from jaxtyping import Int
from joblib import cpu_count

from bayesrbf.fitted.stack.bootstrap import REFITS
from bayesrbf.report.drawing_method import refits_affordable
from bayesrbf.report.families import FAMILIES
from bayesrbf.report.job import Job
from bayesrbf.report.options import ALL_CORES
from bayesrbf.report.words import plural

TIMED_ROWS: Final = 100
"""Rows of the fit that is timed, or more of a long table."""
TIMED_PART: Final = 5
"""One row in so many of a long table is in that fit."""
FIXED_ROWS: Final = 100
"""Rows that take as long as what is the same for any number of rows."""
LONG_FIT: Final = 60.0
"""Seconds of a timed fit beyond which it is not timed again: compiled anew, it takes 20."""
REFIT_COST: Final = 0.25
"""A refit of the bootstrap beside a fit, which chooses by rows held out, too."""
OTHER_DRAWS: Final = 3.0
"""Draws by another method, in fits: a rough mean."""
SECTIONS: Final = 1.5
"""The sections of a page, in fits; besides, they take some seconds of any table."""
LEAST_SECTIONS: Final = 6.0
PROCESS_START: Final = 4.0
"""Seconds until other processes have loaded what a fit needs."""
SHARED: Final = 0.7
"""Part of a run that processes share: folds, refits, densities."""
SURE: Final = 0.5
"""Part of a time limit that an estimate may fill: it is right to about a factor of two."""


def seconds_of(job: Job) -> float:
    """Seconds of one fit to the whole table, by a timed fit to some of its rows; NaN if it fails.

    The first fit of a process loads compiled code, or compiles it, so that a second one is timed.
    """
    n, taken = len(job.X), np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit itself says them
        for most in (TIMED_ROWS, max(TIMED_ROWS, n // TIMED_PART)):
            rows = _some_rows(job, most)
            X, y = job.X.iloc[rows], job.y.iloc[rows]
            start = time.perf_counter()
            try:
                FAMILIES[job.family].procedure(job)(X, y)
            except ValueError:  # too few rows of a class or a group: the whole table has more
                return float("nan")
            taken = time.perf_counter() - start
            if taken > LONG_FIT:
                break
    return float(taken * (FIXED_ROWS + n) / (FIXED_ROWS + rows.size))


def _some_rows(job: Job, most: int) -> Int[np.ndarray, " some"]:
    """A sample of rows that keeps the shares of the classes, but at least four rows of each."""
    labels = job.labels
    share = min(1.0, most / labels.size)
    rng = np.random.default_rng(job.seed)
    parts = []
    for code in np.unique(labels):
        own = np.flatnonzero(labels == code)
        size = min(own.size, max(4, round(share * own.size)))
        parts.append(rng.choice(own, size, replace=False))
    return np.sort(np.concatenate(parts))


def seconds_of_run(job: Job, fit: float, judged: bool) -> float:
    """Seconds of a report in one process, or of a fit alone where nothing is judged."""
    fits, pools = 1.0, FAMILIES[job.family].pools
    if judged:
        fits += SECTIONS
        if not pools or job.times is not None:
            fits += job.splits.numbers.size - 1
    if job.inference == "bootstrap" or (
        job.inference == "auto" and pools and refits_affordable(job.X)
    ):
        fits += REFIT_COST * REFITS
    elif job.inference not in ("map", "auto") or (job.inference == "auto" and not pools):
        fits += OTHER_DRAWS
    return fit * fits + (LEAST_SECTIONS if judged else 0.0)


def quicker(job: Job) -> Job:
    """The quick form of a job: fewer members, no intervals unless asked for, fewer folds.

    The folds of a stack are those of its own fit, and none fewer.
    """
    inference = "map" if job.inference == "auto" else job.inference
    folds = job.folds if FAMILIES[job.family].pools else min(job.folds, 3)
    return replace(job, quick=True, inference=inference, folds=folds)


def processes(jobs: int, seconds: float) -> tuple[int, float]:
    """Number of processes for a run of so many seconds in one, and its seconds in all of them.

    Where all cores were asked for, they are taken only if that is quicker.
    """
    number = min(cpu_count(), REFITS) if jobs == ALL_CORES else jobs
    together = PROCESS_START + seconds * (1 - SHARED + SHARED / number)
    if number == 1 or (jobs == ALL_CORES and together >= seconds):
        return 1, seconds
    return number, together


def within(job: Job, limit: float | None, judged: bool = True) -> tuple[Job, str]:
    """The job in the fullest form that a time limit allows, and a line on what it will take.

    Forms are the job as it is, without intervals, and the quick one, which is taken where none is
    known to fit into the limit. What was left out is a note of the job, and so on the page.
    """
    form, seconds = _form(job, limit, judged)
    number, seconds = processes(job.jobs, seconds)
    return replace(form, jobs=number), _line(seconds)


def _form(job: Job, limit: float | None, judged: bool) -> tuple[Job, float]:
    """The fullest form within a limit, and its seconds in one process."""
    fit = seconds_of(job)
    in_full = seconds_of_run(job, fit, judged)
    if limit is None or processes(job.jobs, in_full)[1] <= SURE * limit:
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
    parts, pools = [], FAMILIES[job.family].pools
    if pools:
        parts.append("fewer members")
    if job.inference == "map":
        parts.append("no intervals")
    if job.times is None and not pools:
        parts.append(f"{plural(job.folds, 'fold')} at most")
    why = "--quick" if limit is None else f"--quick, because --time-limit allows {limit:g} seconds"
    note = f"Made with {why}: {', '.join(parts)}."
    return replace(job, notes=(f"{note} Without it the answer may be better.", *job.notes))


def _line(seconds: float) -> str:
    """A sentence on the expected time; empty where it is not known.

    >>> _line(7.0), _line(48.0), _line(140.0), _line(9000.0)
    ('Some seconds on this machine.', 'About 50 seconds on this machine.', 'About 2 minutes on this
    machine.', 'About 2.5 hours on this machine.')
    """
    if np.isnan(seconds):
        return ""
    if seconds < 15:
        return "Some seconds on this machine."
    if seconds < 90:
        return f"About {round(seconds, -1):.0f} seconds on this machine."
    if seconds < 90 * 60:
        return f"About {seconds / 60:.0f} minutes on this machine."
    return f"About {seconds / 3600:.1f} hours on this machine."
