"""The DataTree of a fit: posterior, log likelihood, training rows and what is drawn for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int, Shaped

from bayesrbf import table
from bayesrbf.fitted.fitted_model import Axes, FittedModel
from bayesrbf.inference.draws import Draws, point
from bayesrbf.numerics.log_posterior import LogPosterior
from bayesrbf.posterior.replicates import Replicates, draw_labels
from bayesrbf.records import names
from bayesrbf.records.mixture import Observations
from bayesrbf.records.results import Trace

if TYPE_CHECKING:
    import xarray as xr


def posterior_tree(
    model: FittedModel,
    log_posterior: LogPosterior,
    draws: Draws | None,
    rows: Observations,
    axes: Axes,
    trace: Trace,
    copies: Int[np.ndarray, "two given"] | None,
    replicates: Replicates | None,
) -> xr.DataTree:
    """Posterior, log likelihood and training rows; a point is one draw of one chain."""
    from bayesrbf.conversion import to_datatree

    description = model.description(rows, axes)
    tree = to_datatree(
        log_posterior,
        draws or point(log_posterior, model.point(log_posterior)),
        coords=description.coords,
        observed=description.observed,
        constant=description.constant,
        scored=description.scored,
        copies=copies,
        trace=trace,
    )
    return tree if replicates is None else with_replicates(tree, replicates, axes.obs)


def with_replicates(
    tree: xr.DataTree, replicates: Replicates, obs: Shaped[np.ndarray, " obs"]
) -> xr.DataTree:
    """A posterior with ``posterior_predictive``, and ``observed_data`` of the same rows.

    Cells that were observed become constant data: ArviZ compares what is observed with what is
    drawn.
    """
    from bayesrbf.conversion import predictive_check

    cells = tree[names.OBSERVED_DATA].to_dataset().drop_vars(names.OBSERVED_LABEL, errors="ignore")
    tree[names.CONSTANT_DATA] = tree[names.CONSTANT_DATA].to_dataset().merge(cells)
    rows = obs[replicates.rows]
    groups = predictive_check(rows, replicates.drawn, replicates.truth, replicates.every)
    for group, subtree in groups.items():
        tree[group] = subtree
    return tree


def with_drawn_labels(
    tree: xr.DataTree, classes: Shaped[np.ndarray, " label"], y: object, seed: int
) -> xr.DataTree:
    """Predictions with labels drawn from them, beside the true ones, for predictive checks."""
    from bayesrbf.conversion import predictive_check

    probability = tree[names.PREDICTIONS][names.PROBABILITY]
    labels, codes = table.encode_labels(y)
    unknown = np.setdiff1d(labels, classes)
    if unknown.size:
        raise ValueError(
            f"y holds {unknown[0]!r}, which is no class of the fit: {classes.tolist()}."
        )
    labelled = np.flatnonzero(codes >= 0)
    drawn = draw_labels(probability.to_numpy()[:, :, labelled], seed)
    truth = np.searchsorted(classes, labels[codes[labelled]])
    rows = probability[names.OBS].to_numpy()[labelled]
    for group, subtree in predictive_check(rows, drawn, truth).items():
        tree[group] = subtree
    return tree
