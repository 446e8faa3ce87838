"""Tables drawn from a declared graph beside the training table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayesrbf.base import names
from bayesrbf.fit.estimator import Estimator

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr


def predictive_check(estimator: Estimator, draws: int = 100, *, prior: bool = False) -> xr.DataTree:
    """Tables drawn from the declared graph beside the training table.

    Every drawn table has the same missing cells and hidden labels as the real one, so
    that the two can be compared. Row weights are not used.

    Parameters
    ----------
    estimator : MixtureDensity, HybridMixtureClassifier or RBF network
        Fitted; its graph has the cells of the rows.
    draws : int
        Number of tables of every chain; at most as many as the posterior
        has draws.
    prior : bool
        Draw the parameters from the prior and not from ``posterior_``.

    Returns
    -------
    xarray.DataTree
        ``posterior_predictive`` (or ``prior_predictive``) and
        ``observed_data``, one variable a column (categories and labels as
        codes) over the rows where it is observed; from a posterior also
        ``posterior`` and the ``log_likelihood`` of the whole rows. For
        ``az.plot_ppc_dist``, ``az.plot_ppc_pit`` and ``az.plot_loo_pit``.

    Raises
    ------
    ValueError
        If ``draws`` is below 1, or the graph has no cells.
    """
    if draws < 1:
        raise ValueError(f"predictive_check(draws=...) must be at least 1; received {draws}.")
    check_is_fitted(estimator)
    fit = estimator.fitted_
    fit.require_all_rows("predictive_check()")
    graph, last_real = fit.model.declare(fit.rows, fit.axes), fit.rows.real.shape[1]
    if names.OBSERVED not in (node.name for node in graph.observed_RVs):
        raise ValueError(
            f"predictive_check draws tables, and the graph of a {fit.table.owner} has labels "
            "alone: posterior_['posterior_predictive'] has draws of these."
        )
    seed = fit.table.seed
    return drawn_tables(graph, fit.tree, last_real, draws=draws, prior=prior, seed=seed)


def drawn_tables(
    model: pm.Model, tree: xr.DataTree, last_real: int, *, draws: int, prior: bool, seed: int
) -> xr.DataTree:
    """Draw tables from a graph whose rows are one node, and split them into columns.

    Tables of every chain are ``draws`` at most. The label before the real columns and the
    categories behind them are codes; ``last_real`` is the place of the last real column.
    """
    import pymc as pm
    import xarray as xr

    from bayesrbf.fit.trees import by_column

    groups = (names.CONSTANT_DATA, names.OBSERVED_DATA)  # of a classifier, and of a density
    of_cells = [tree.children[group].to_dataset() for group in groups]
    (observed,) = (group[names.OBSERVED] for group in of_cells if names.OBSERVED in group)
    places = np.arange(observed.sizes[names.COLUMN])
    discrete = (places == 0) | (places > last_real)
    if names.CLASS_PROBABILITIES not in tree.children[names.POSTERIOR]:
        observed = observed.where(
            xr.DataArray(places > 0, dims=names.COLUMN)
        )  # one class says nothing
    # one pass over few tables: compiling would cost more than it saves
    compiled = {"mode": "FAST_COMPILE"}
    if prior:
        made = pm.sample_prior_predictive(draws, model, random_seed=seed, compile_kwargs=compiled)
        drawn = made.children["prior_predictive"].to_dataset()[names.OBSERVED]
        return by_column(drawn, observed, discrete)
    (scored,) = tree.children[names.LOG_LIKELIHOOD].data_vars
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
        kept.children[names.LOG_LIKELIHOOD].to_dataset()[scored],
    )
    check[names.POSTERIOR] = kept.children[names.POSTERIOR]
    return check
