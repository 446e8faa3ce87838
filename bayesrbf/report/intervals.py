"""Rehearses the report's intervals: how often such intervals hold a known truth, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bayesrbf.estimators import rehearsing
from bayesrbf.report.drawing_method import Drawn
from bayesrbf.report.families import FAMILIES
from bayesrbf.report.job import Job
from bayesrbf.report.words import number, percent

if TYPE_CHECKING:
    import xarray as xr

SURELY_NARROW: Final = 2.0
"""Standard errors from which intervals are told to be too narrow."""
REHEARSED_LEVEL: Final = 0.9
ONE_KIND: Final = (
    "These are intervals if the model is right: they know nothing of how other kinds of models "
    "differ. "
)


def read_intervals(job: Job, drawn: Drawn) -> str:
    """A sentence on the rehearsal's coverage, or on how to ask for a rehearsal."""
    if drawn.refined.draws_ is None:
        return (
            "No draws were made, so how often intervals hold the truth cannot be tried; "
            f"--inference {FAMILIES[job.family].methods[0]} makes draws."
        )
    if job.rehearse:
        return _rehearsed(job, drawn)
    if_right = ONE_KIND if drawn.refined.fitted_.assumes_model else ""
    return (
        f"{if_right}How often such intervals hold the truth was not tried here: --rehearse tries "
        "it, for the price of six more fits with their draws."
    )


def rehearse(job: Job, drawn: Drawn, n_repeats: int = 2) -> xr.Dataset:
    """Rehearse the model as it was chosen and drawn."""
    return rehearsing.rehearse(
        drawn.refined,
        job.X,
        job.y,
        groups=job.groups,
        inference=drawn.refined.draws_.method,
        n_repeats=n_repeats,
        random_state=job.seed,
        **drawn.options,
    )


def _rehearsed(job: Job, drawn: Drawn) -> str:
    """The sentence of the rehearsal, and whether intervals are too narrow."""
    try:
        rehearsal = rehearse(job, drawn)
    except ValueError as error:
        # Labels drawn for a table with rare classes may allow no fit; the report does without.
        return f"How often these intervals hold the truth could not be tried: {error}"
    sentence = str(rehearsal.attrs["sentence"])
    at = rehearsal.sel(level=REHEARSED_LEVEL)
    most = float(at["overall_coverage"] + SURELY_NARROW * at["overall_error"])
    if most >= REHEARSED_LEVEL:
        return sentence
    return (
        f"{sentence} They are too narrow: {number(SURELY_NARROW)} standard errors more would be "
        f"{percent(most)}. Less is known than they show."
    )
