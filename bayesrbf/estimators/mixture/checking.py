"""Tables drawn by PyMC from a declared graph, ready for predictive checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from bayesrbf.conversion import by_column
from bayesrbf.fitted.fitted_model import COLUMN
from bayesrbf.records import names

if TYPE_CHECKING:
    import pymc as pm


def drawn_tables(
    model: pm.Model, tree: xr.DataTree, last_real: int, *, draws: int, prior: bool, seed: int
) -> xr.DataTree:
    """Draw tables from a graph whose rows are one node, and split them into columns.

    Parameters
    ----------
    model : pm.Model
        The declared graph, components summed out.
    tree : xarray.DataTree
        The estimator's ``posterior_``.
    last_real : int
        Position of the last real column; the label before them and the
        categories behind them are codes.
    draws : int
        Number of tables of every chain, at most as many as the posterior has.
    prior : bool
        Whether the parameters come from the prior.
    seed : int
        Seed of the draws.

    Returns
    -------
    xarray.DataTree
        As :func:`bayesrbf.conversion.by_column` gives it; with ``posterior``
        where the parameters come from there.
    """
    import pymc as pm

    observed = tree.children[names.OBSERVED_DATA].to_dataset()[names.OBSERVED]
    places = np.arange(observed.sizes[COLUMN])
    discrete = (places == 0) | (places > last_real)
    if names.CLASS_PROBABILITIES not in tree.children[names.POSTERIOR]:
        observed = observed.where(xr.DataArray(places > 0, dims=COLUMN))  # one class says nothing
    # one pass over few tables: compiling would cost more than it saves
    compiled = {"mode": "FAST_COMPILE"}
    if prior:
        made = pm.sample_prior_predictive(draws, model, random_seed=seed, compile_kwargs=compiled)
        drawn = made.children["prior_predictive"].to_dataset()[names.OBSERVED]
        return by_column(drawn, observed, discrete)
    evaluated = tree.children[names.LOG_LIKELIHOOD].to_dataset()[names.DRAW].to_numpy()
    spread = np.linspace(0, evaluated.size - 1, draws).astype(int)
    kept = tree.sel({names.DRAW: evaluated[np.unique(spread)]})
    made = pm.sample_posterior_predictive(
        kept, model, random_seed=seed, progressbar=False, compile_kwargs=compiled
    )
    check = by_column(
        made.children["posterior_predictive"].to_dataset()[names.OBSERVED],
        observed,
        discrete,
        kept.children[names.LOG_LIKELIHOOD].to_dataset()[names.OBSERVED],
    )
    check[names.POSTERIOR] = kept.children[names.POSTERIOR]
    return check
