"""A fitted density that goes on learning from blocks of rows, each seen once."""

from __future__ import annotations

from dataclasses import replace

from bayesrbf.fitted.density_selection import DensityCandidate
from bayesrbf.fitted.fitted_mixture import FittedMixture
from bayesrbf.fitted.fitted_table import FittedTable
from bayesrbf.fitted.mixture_fitting import begin_stream, step
from bayesrbf.numerics.mixture.stepwise import Stream
from bayesrbf.records.mixture import Observations
from bayesrbf.records.stored import Requirements, stored


@stored
class DensityDetails:
    """Candidates and stream of a density's fit."""

    candidates: tuple[DensityCandidate, ...]
    stream: Stream | None = None
    """Where ``partial_fit`` goes on; a file does not keep it."""

    def __laws__(self) -> Requirements:
        yield self.stream is None, "no stream"


DensityFit = FittedTable[FittedMixture, DensityDetails]


def begun(fit: DensityFit, passes: int) -> DensityFit:
    """A fit whose stream begins at its training rows."""
    stream = begin_stream(fit.model, fit.rows)
    training = replace(fit.table, passes=passes)
    return fit.replaced(table=training, details=replace(fit.details, stream=stream))


def gone_on(fit: DensityFit, rows: Observations) -> DensityFit:
    """A fit after one more block of its stream; draws are of a posterior that is no more."""
    if fit.details.stream is None:
        fit = begun(fit, passes=max(1, fit.table.passes))
    model, stream, training = fit.model, fit.details.stream, fit.table
    if rows.n_obs and stream is not None:
        model, stream = step(model, stream, rows)
        training = replace(training, sampled=True, passes=training.passes + 1)
    details = replace(fit.details, stream=stream)
    return fit.replaced(model=model, table=training, details=details, draws=None, raw=None)
