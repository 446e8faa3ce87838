"""Draws of a fitted model: the function that makes them, the tree and the findings about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float

from bayesrbf.fitted.fitted_model import Axes, FittedModel
from bayesrbf.inference.draws import Draws, point
from bayesrbf.numerics.log_posterior import LogPosterior
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.results import Trace

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.inference.judgements import Finding

METHODS: Final = {
    "laplace": "bayesrbf.inference.laplace",
    "advi": "bayesrbf.inference.variational",
    "gibbs": "bayesrbf.inference.gibbs",
    "nuts": "bayesrbf.inference.nuts",
}
"""Module of the function that draws by each method; the function has the method's name."""


def sampler(method: str) -> Callable[..., Draws]:
    """The function that draws by a method; imported here so that a MAP fit never does."""
    if method not in METHODS:
        allowed = " or ".join(repr(name) for name in METHODS)
        raise ValueError(f"refine(method) must be {allowed}; received {method!r}.")
    drawn_by: Callable[..., Draws] = getattr(import_module(METHODS[method]), method)
    return drawn_by


def datatree(
    model: FittedModel,
    log_posterior: LogPosterior,
    draws: Draws | None,
    rows: Observations,
    axes: Axes,
    trace: Trace,
) -> xr.DataTree:
    """Posterior, log likelihood and training rows; a point is one draw of one chain."""
    from bayesrbf.conversion import to_datatree

    description = model.description(rows, axes)
    return to_datatree(
        log_posterior,
        draws or point(log_posterior, model.point(log_posterior)),
        coords=description.coords,
        observed=description.observed,
        constant=description.constant,
        trace=trace,
    )


def judged(
    fitted: Float[np.ndarray, " coordinate"],
    log_posterior: LogPosterior,
    draws: Draws | None,
    raw: Draws | None,
    probabilities: Mapping[str, np.ndarray],
) -> list[Finding]:
    """Findings about draws and their leave-one-out figures; about the point if there are none."""
    from bayesrbf.inference.diagnose import findings
    from bayesrbf.inference.judgements import judge_leave_one_out
    from bayesrbf.inference.leave_one_out import leave_one_out

    if draws is None:
        return list(findings(point(log_posterior, fitted)))
    found = list(findings(draws, raw=raw, **probabilities))
    if log_posterior.dimension:  # else every draw is the same, rows left out or not
        found.extend(judge_leave_one_out(leave_one_out(log_posterior, draws)))
    return found


def drawn_mixtures(
    model: FittedModel,
    log_posterior: LogPosterior,
    draws: Draws,
    number: int,
    rng: np.random.Generator,
) -> list[MixtureParameters]:
    """The density in standard units under some posterior draws."""
    thetas = draws.theta.reshape(-1, draws.theta.shape[-1])
    chosen = rng.choice(len(thetas), size=number, replace=number > len(thetas))
    return [model.mixture_at(log_posterior, thetas[i]) for i in chosen]
