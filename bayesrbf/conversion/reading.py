"""Draws that any sampler made of a declared graph, from a DataTree in ArviZ's layout."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from bayesrbf import names
from bayesrbf.conversion.writing import Names
from bayesrbf.inference.draws import Draws
from bayesrbf.inference.protocol import LogPosterior
from bayesrbf.numerics.coordinates import to_unconstrained
from bayesrbf.specification import Variable


def from_datatree(
    tree: xr.DataTree,
    log_posterior: LogPosterior,
    coords: Mapping[str, Names] | None = None,
) -> Draws:
    """Coordinates of draws that any sampler of the declared graph made.

    Parameters
    ----------
    tree : xarray.DataTree
        With a group ``posterior`` over chain and draw that holds every free
        variable of the graph under its name.
    log_posterior : LogPosterior
        The same density: variables and coordinates.
    coords : mapping of str to sequence, optional
        Names along the dims, as :func:`to_datatree` takes them; where the tree
        names the same dim, it must name it so.

    Returns
    -------
    Draws
        Coordinates and log densities of every draw, and which diverged.

    Raises
    ------
    ValueError
        If the group or a free variable is missing, or one has other dims,
        another shape, other names along a dim, or values outside its support.
    """
    if names.POSTERIOR not in tree.children:
        raise ValueError(
            f"use_posterior(tree) needs a group 'posterior'; received {list(tree.children)}. "
            "Give what pm.sample() returns, or Approximation.sample() after pm.fit()."
        )
    posterior = tree.children[names.POSTERIOR].to_dataset()
    values = {v.name: _values_of(posterior, v, coords or {}) for v in log_posterior.variables}
    shape = (posterior.sizes[names.CHAIN], posterior.sizes[names.DRAW])
    theta = np.empty((*shape, log_posterior.dimension))
    lp = np.empty(shape)
    for draw in np.ndindex(*shape):
        one = {name: value[draw] for name, value in values.items()}
        theta[draw] = to_unconstrained(log_posterior.variables, one)
        lp[draw] = log_posterior.value_and_gradient(theta[draw])[0]
    if not np.isfinite(theta).all():
        raise ValueError(
            "use_posterior(tree) needs draws inside the support of every variable; some have no "
            "finite coordinates. Sample the graph of this very estimator."
        )
    stats = {"lp": lp}
    if names.SAMPLE_STATS in tree.children and "diverging" in tree[names.SAMPLE_STATS]:
        stats["diverging"] = tree[names.SAMPLE_STATS]["diverging"].to_numpy()
    return Draws(theta, stats, "graph")


def _values_of(
    posterior: xr.Dataset,
    variable: Variable,
    coords: Mapping[str, Names],
) -> np.ndarray:
    """Draws of one variable, its axes in the graph's order."""
    name = variable.name
    if name not in posterior:
        raise ValueError(
            f"use_posterior(tree) needs draws of {name!r} in the group 'posterior', which holds "
            f"{list(posterior.data_vars)}; sample the graph of declare()."
        )
    found = posterior[name]
    expected = {names.CHAIN, names.DRAW, *variable.dims}
    if set(found.dims) != expected:
        raise ValueError(
            f"use_posterior(tree) needs {name!r} over the dims {sorted(expected)}; received "
            f"{sorted(map(str, found.dims))}. Sample the graph of this very estimator."
        )
    ordered = found.transpose(names.CHAIN, names.DRAW, *variable.dims)
    if ordered.shape[2:] != variable.shape:
        raise ValueError(
            f"use_posterior(tree) needs {name!r} of shape {variable.shape} in every draw; "
            f"received {ordered.shape[2:]}. Sample the graph of this very estimator."
        )
    for dim in variable.dims:
        given = coords.get(dim)
        if given is None or isinstance(given, tuple) or dim not in ordered.coords:
            continue
        if [str(x) for x in ordered[dim].to_numpy().tolist()] != [str(x) for x in list(given)]:
            raise ValueError(
                f"use_posterior(tree) needs {dim!r} of {name!r} to be {list(given)}; received "
                f"{ordered[dim].to_numpy().tolist()}. Sample the graph of this very estimator."
            )
    return np.asarray(ordered.to_numpy(), dtype=np.float64)
