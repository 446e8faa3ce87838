"""Class probabilities of rows under the draws of a posterior, with their uncertainty."""

from __future__ import annotations

from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayesrbf.estimators.answers.asking import Fit, new_rows
from bayesrbf.fitted.posterior_tree import with_drawn_labels
from bayesrbf.inference.draws import MEMORY
from bayesrbf.posterior.uncertainty import PredictiveSummary
from bayesrbf.records.mixture import Observations

if TYPE_CHECKING:
    import xarray as xr


def predict_posterior(
    fit: Fit,
    X: object,
    y: object = None,
    *,
    memory: int = MEMORY,
    path: str | PathLike[str] | None = None,
) -> xr.DataTree:
    """Class probabilities of each row under every draw of the posterior.

    Under ``class_prior`` every draw is moved by Bayes' rule for itself.

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows; missing cells are summed out.
    y : array-like of shape (n_obs,), optional
        True labels of the rows: labels are drawn beside them, for predictive checks. Rows whose
        label is hidden have none.
    memory : int
        Bytes of the probabilities: beyond, every k-th draw is kept, with a warning.
    path : path-like, optional
        A ``.npy`` file to write them to: every draw is kept, and the tree
        reads from the file.

    Returns
    -------
    xarray.DataTree
        ``predictions`` with ``probability`` over chain, draw, obs and label;
        ``predictions_constant_data`` with the rows. With ``y`` also ``posterior_predictive`` and
        ``observed_data``.

    Raises
    ------
    ValueError
        If a label is no class of the fit, or not even one draw of each chain fits into the memory.
    """
    from bayesrbf.conversion import predictions

    cells = new_rows(fit, X).cells
    posterior = replace(fit.doubted_posterior, memory=memory)
    probabilities, thinning = posterior.draws(cells, None if path is None else Path(path))
    tree = predictions(
        probabilities,
        labels=fit.classes,
        rows=np.arange(cells.n_obs),
        constant=fit.model.observed(cells),
        thinning=thinning,
    )
    return tree if y is None else with_drawn_labels(tree, fit.classes, y, fit.table.seed)


def uncertainty(fit: Fit, X: object, prob: float = 0.9, *, memory: int = MEMORY) -> xr.Dataset:
    """Class probabilities with intervals, kinds of doubt and the novelty of each row.

    Where :meth:`predict_proba` is not the mean of the draws, they are moved so that it is their
    median, or nearly their mean for the ``"bootstrap"`` of a stack (:doc:`/uncertainty`).

    Parameters
    ----------
    X : array-like or frame of shape (n_obs, n_columns)
        Rows; missing cells are summed out.
    prob : float
        Probability inside the equal-tailed intervals.
    memory : int
        Bytes that arrays over draws may take at once; rows are summarised in blocks.

    Returns
    -------
    xarray.Dataset
        ``probability`` (:meth:`predict_proba`), sd and interval per class; entropies in nats;
        ``log_density`` of the cells; :meth:`novelty`. Without draws, intervals and kinds of
        doubt are NaN. :func:`bayesrbf.rehearse` tries how often such intervals hold.
        ``attrs["assumes_model"]`` is 1 where they hold only if the model is right.
        ``to_dataframe()`` has one line for every row, as for all answers about rows.
    """
    from bayesrbf.posterior.uncertainty import to_dataset

    rows = new_rows(fit, X, holes=True)
    summary, novelty = summary_of(fit, rows.cells, prob, memory), fit.novelty(rows.cells)
    at_point = fit.class_posterior.n_draws == 1
    return to_dataset(summary, fit.classes, rows.names, novelty, at_point, fit.assumes_model)


def summary_of(
    fit: Fit, cells: Observations, prob: float = 0.9, memory: int = MEMORY
) -> PredictiveSummary:
    """What :func:`uncertainty` says of class probabilities, as arrays."""
    posterior = replace(fit.doubted_posterior, memory=memory)
    delivered = None  # of predictors that know it: rows are then predicted once
    if not fit.model.predictors_deliver:
        delivered = np.exp(fit.class_log_probabilities(cells))
    return posterior.summary(cells, prob, delivered, centred=fit.centred)
