"""Draws of a fitted model: the function that makes them, the tree and the findings about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float, Int, Shaped

from bayesrbf import table
from bayesrbf.fitted.fitted_model import Axes, FittedModel
from bayesrbf.inference.draws import Draws, point
from bayesrbf.numerics.categories import draw_categories
from bayesrbf.numerics.log_posterior import LogPosterior
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.results import Trace

if TYPE_CHECKING:
    import xarray as xr

    from bayesrbf.inference.judgements import Finding
    from bayesrbf.posterior.predictive import ClassPosterior

METHODS: Final = {
    "laplace": "bayesrbf.inference.laplace",
    "advi": "bayesrbf.inference.variational",
    "gibbs": "bayesrbf.inference.gibbs",
    "nuts": "bayesrbf.inference.nuts",
}
"""Module of the function that draws by each method; the function has the method's name."""
MOST_ROWS: Final = {"gibbs": 1_000_000, "nuts": 100_000}
"""Rows beyond which a method that sees all of them again and again takes more than some four hours:
8,000 sweeps, or 80,000 gradients, at the 1.8 microseconds of a row in an E-step of eight
components and ten columns."""
DIAGNOSED = 200  # Most training rows whose class probabilities are diagnosed.
REPLICATES = 1000  # Labels drawn per row for a predictive check of a point estimate.
MOST_DRAWN: Final = 2**21  # Numbers behind the labels drawn for training rows: 16 MiB.
LEAST_TABLES: Final = 50  # Tables of drawn labels; ArviZ lays as many over the real one.


def check_size(method: str, n_rows: int) -> None:
    """ValueError where a method would look at too many rows too often."""
    most = MOST_ROWS.get(method, n_rows)
    if n_rows > most:
        raise ValueError(
            f"refine({method!r}) takes at most {most:,} rows, each of which it looks at thousands "
            f"of times; received {n_rows:,}. Use 'laplace' or 'advi', or fit a random sample of "
            "the rows."
        )


def sampler(method: str) -> Callable[..., Draws]:
    """The function that draws by a method; imported here so that a MAP fit never does."""
    if method not in METHODS:
        allowed = " or ".join(repr(name) for name in (*METHODS, "bootstrap"))
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
    copies: Int[np.ndarray, "two given"] | None = None,
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
        scored=description.scored,
        copies=copies,
        trace=trace,
    )


def probabilities_of_training(
    posterior: ClassPosterior, rows: Observations, fitted: Float[np.ndarray, " coordinate"]
) -> dict[str, np.ndarray]:
    """Class probabilities of some training rows, under the draws and at the fit."""
    some = rows.take(evenly(rows.n_obs, DIAGNOSED))
    return {
        "probabilities": posterior.draws(some)[0],
        "map_probabilities": posterior.at_point(some, fitted),
    }


def evenly(n: int, most: int) -> Int[np.ndarray, " place"]:
    """At most so many of the first n integers, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def judged(
    fitted: Float[np.ndarray, " coordinate"],
    log_posterior: LogPosterior,
    draws: Draws | None,
    raw: Draws | None,
    probabilities: Mapping[str, np.ndarray],
    *,
    leave_out: bool = True,
    copies: Int[np.ndarray, "two given"] | None = None,
) -> list[Finding]:
    """Findings about draws and their leave-one-out figures; about the point if there are none.

    Rows can be left out where all are in memory.
    """
    from bayesrbf.inference.diagnose import findings
    from bayesrbf.inference.judgements import judge_leave_one_out
    from bayesrbf.inference.leave_one_out import leave_one_out

    if draws is None:
        return list(findings(point(log_posterior, fitted)))
    found = list(findings(draws, raw=raw, **probabilities))
    # Without a coordinate every draw is the same, rows left out or not. A draw of the bootstrap is
    # none of the posterior, from which weights could take out a row.
    if leave_out and log_posterior.dimension and draws.method != "bootstrap":
        found.extend(judge_leave_one_out(leave_one_out(log_posterior, draws, copies)))
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


@dataclass(frozen=True)
class Replicates:
    """Labels or responses drawn for training rows, beside their own."""

    rows: Int[np.ndarray, " row"]  # Places among the training rows.
    drawn: Shaped[np.ndarray, "chain draw row"]
    truth: Shaped[np.ndarray, " row"]
    every: int = 1  # One draw of the posterior in so many has drawn.


def drawn_for_training(posterior: ClassPosterior, rows: Observations, seed: int) -> Replicates:
    """Labels drawn for labelled training rows, at the class shares of training.

    Of large tables some rows and every k-th draw are taken, so that there are at most
    ``MOST_DRAWN`` probabilities.
    """
    labelled = np.flatnonzero(rows.labels >= 0)
    tables = REPLICATES if posterior.n_draws == 1 else LEAST_TABLES
    most = max(1, MOST_DRAWN // (tables * posterior.n_classes))
    kept = labelled[evenly(labelled.size, most)]
    numbers = posterior.n_draws * kept.size * posterior.n_classes
    every = min(posterior.theta.shape[1], -(-numbers // MOST_DRAWN))
    shares = np.zeros(posterior.n_classes)
    thinned = replace(posterior, theta=posterior.theta[:, ::every], log_ratio=shares)
    drawn = draw_labels(thinned.draws(rows.take(kept))[0], seed)
    return Replicates(kept, drawn, rows.labels[kept], every)


def with_replicates(tree: xr.DataTree, found: Replicates, obs: np.ndarray) -> xr.DataTree:
    """A posterior with ``posterior_predictive``, and ``observed_data`` of the same rows.

    Cells that were observed become constant data: ArviZ compares what is observed with what is
    drawn.
    """
    from bayesrbf.conversion import predictive_check

    cells = tree[names.OBSERVED_DATA].to_dataset().drop_vars(names.OBSERVED_LABEL, errors="ignore")
    tree[names.CONSTANT_DATA] = tree[names.CONSTANT_DATA].to_dataset().merge(cells)
    drawn = predictive_check(obs[found.rows], found.drawn, found.truth, found.every)
    for group, subtree in drawn.items():
        tree[group] = subtree
    return tree


def with_drawn_labels(
    tree: xr.DataTree, classes: Shaped[np.ndarray, " label"], y: object, seed: int
) -> xr.DataTree:
    """Predictions with labels drawn from them, beside the true ones, for predictive checks."""
    from bayesrbf.conversion import predictive_check

    probability = tree[names.PREDICTIONS][names.PROBABILITY]
    found, codes = table.encode_labels(y)
    unknown = np.setdiff1d(found, classes)
    if unknown.size:
        raise ValueError(
            f"y holds {unknown[0]!r}, which is no class of the fit: {classes.tolist()}."
        )
    labelled = np.flatnonzero(codes >= 0)
    drawn = draw_labels(probability.to_numpy()[:, :, labelled], seed)
    truth = np.searchsorted(classes, found[codes[labelled]])
    rows = probability[names.OBS].to_numpy()[labelled]
    for group, subtree in predictive_check(rows, drawn, truth).items():
        tree[group] = subtree
    return tree


def draw_labels(
    probabilities: Float[np.ndarray, "chain draw obs label"], seed: int
) -> Int[np.ndarray, "chain drawn obs"]:
    """One label a row and draw; a point estimate is drawn from many times."""
    if probabilities.shape[0] * probabilities.shape[1] == 1:
        probabilities = np.repeat(probabilities, REPLICATES, axis=1)
    rows = probabilities.reshape(-1, probabilities.shape[-1])
    labels = draw_categories(rows, np.random.default_rng(seed))
    return labels.reshape(probabilities.shape[:-1])
