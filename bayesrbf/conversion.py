"""Draws of a log posterior as a DataTree in ArviZ's layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from bayesrbf import __version__, names
from bayesrbf.inference.draws import Draws
from bayesrbf.inference.protocol import LogPosterior
from bayesrbf.numerics.coordinates import to_unconstrained
from bayesrbf.results import Trace
from bayesrbf.specification import Variable

Labelled = tuple[tuple[str, ...], Any]
"""Dims and values of one array."""

_SAMPLES = (names.CHAIN, names.DRAW)


def to_datatree(
    log_posterior: LogPosterior,
    draws: Draws,
    *,
    coords: Mapping[str, Sequence[object] | np.ndarray | Labelled] | None = None,
    attrs: Mapping[str, str | float | int] | None = None,
    observed: Mapping[str, Labelled] | None = None,
    constant: Mapping[str, Labelled] | None = None,
    log_likelihood: bool = True,
    trace: Trace | None = None,
) -> xr.DataTree:
    """Pack draws, what is known about each, and the data they come from.

    Parameters
    ----------
    log_posterior : LogPosterior
        Turns coordinates into named values, and gives the log likelihood.
    draws : Draws
        Draws of any method; a point estimate is one chain of one draw.
    coords : mapping of str to sequence, optional
        Names along the dims. A name that is not a dim is given with the dim it
        runs along, as ``("component",), values``.
    attrs : mapping of str to str, float or int, optional
        What to write on the tree beside method and version.
    observed : mapping of str to (dims, values), optional
        Group ``observed_data``.
    constant : mapping of str to (dims, values), optional
        Group ``constant_data``.
    log_likelihood : bool
        Whether to compute the unweighted log likelihood of every row and draw.
    trace : Trace, optional
        Way of the optimiser, for its own group.

    Returns
    -------
    xarray.DataTree
        Groups ``posterior`` (free variables under the graph's names, and
        deterministic ones), ``sample_stats`` and, where given,
        ``log_likelihood``, ``observed_data``, ``constant_data``,
        ``optimiser_path``.

    Raises
    ------
    ValueError
        If the names along a dim are not as many as its entries.
    """
    coords = dict(coords or {})
    posterior = _variables(log_posterior.variables, log_posterior.constrained(draws.theta))
    posterior |= _variables(
        log_posterior.deterministic_variables, log_posterior.deterministic(draws.theta)
    )
    groups = {
        names.POSTERIOR: _dataset(posterior, coords),
        names.SAMPLE_STATS: _dataset({k: (_SAMPLES, v) for k, v in draws.stats.items()}, coords),
    }
    if log_likelihood:
        dims = (*_SAMPLES, names.OBS)
        rows = {names.OBSERVED: (dims, pointwise(log_posterior, draws.theta))}
        groups[names.LOG_LIKELIHOOD] = _dataset(rows, coords)
    if observed:
        groups[names.OBSERVED_DATA] = _dataset(observed, coords)
    if constant:
        groups[names.CONSTANT_DATA] = _dataset(constant, coords)
    if trace is not None:
        path = {"log_posterior": (("iteration",), trace.log_posterior)}
        groups[names.OPTIMISER] = _dataset(path, coords)
    about = _attributes(draws) | dict(attrs or {})
    for name in (names.POSTERIOR, names.SAMPLE_STATS):
        groups[name].attrs.update(about)
    tree = xr.DataTree.from_dict(groups)
    tree.attrs.update(about)
    return tree


def from_datatree(
    tree: xr.DataTree,
    log_posterior: LogPosterior,
    coords: Mapping[str, Sequence[object] | np.ndarray | Labelled] | None = None,
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
    coords: Mapping[str, Sequence[object] | np.ndarray | Labelled],
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


def pointwise(log_posterior: LogPosterior, theta: np.ndarray) -> np.ndarray:
    """Unweighted log likelihood of every row under every draw.

    Parameters
    ----------
    log_posterior : LogPosterior
        The density of the rows.
    theta : ndarray of shape (n_chains, n_draws, dimension)
        Unconstrained coordinates.

    Returns
    -------
    ndarray of shape (n_chains, n_draws, n_obs)
        ``log p(x_n, y_n)`` in nats.
    """
    chains = [np.stack([log_posterior.pointwise(one) for one in chain]) for chain in theta]
    return np.stack(chains)


def predictions(
    probabilities: np.ndarray,
    *,
    labels: Sequence[object] | np.ndarray,
    rows: Sequence[object] | np.ndarray,
    constant: Mapping[str, Labelled],
    thinning: int = 1,
) -> xr.DataTree:
    """Class probabilities of new rows under every draw.

    Parameters
    ----------
    probabilities : ndarray of shape (n_chains, n_draws, n_obs, n_classes)
        Probabilities.
    labels : sequence of length n_classes
        Class names.
    rows : sequence of length n_obs
        Row names.
    constant : mapping of str to (dims, values)
        The new rows, for group ``predictions_constant_data``.
    thinning : int
        Distance of the kept draws.

    Returns
    -------
    xarray.DataTree
        Groups ``predictions`` and ``predictions_constant_data``.
    """
    coords = {names.OBS: rows, names.LABEL: labels}
    dims = (*_SAMPLES, names.OBS, names.LABEL)
    dataset = _dataset({names.PROBABILITY: (dims, probabilities)}, coords)
    dataset.coords[names.DRAW] = thinning * np.arange(probabilities.shape[1])
    dataset.attrs["thinning"] = thinning
    return xr.DataTree.from_dict(
        {names.PREDICTIONS: dataset, names.PREDICTIONS_CONSTANT_DATA: _dataset(constant, coords)}
    )


def _variables(
    variables: tuple[Variable, ...], values: Mapping[str, np.ndarray]
) -> dict[str, Labelled]:
    """Values under their names, with the dims of chain and draw before their own."""
    return {v.name: ((*_SAMPLES, *v.dims), values[v.name]) for v in variables}


def _dataset(
    variables: Mapping[str, Labelled],
    coords: Mapping[str, Sequence[object] | np.ndarray | Labelled],
) -> xr.Dataset:
    """A dataset with those of the coords that its dims have."""
    sizes: dict[str, int] = {}
    for dims, values in variables.values():
        sizes.update(zip(dims, np.shape(values), strict=True))
    chosen: dict[str, Labelled] = {
        name: ((name,), np.arange(sizes[name])) for name in _SAMPLES if name in sizes
    }
    for name, given in coords.items():
        dims, values = given if isinstance(given, tuple) else ((name,), given)
        if set(dims) <= set(sizes):
            chosen[name] = (dims, _storable(values))
            _check_length(name, dims, chosen[name][1], sizes)
    return xr.Dataset(dict(variables), coords=chosen)


def _check_length(
    name: str, dims: tuple[str, ...], values: np.ndarray, sizes: Mapping[str, int]
) -> None:
    """Names along a dim must be as many as its entries."""
    expected = tuple(sizes[dim] for dim in dims)
    if values.shape != expected:
        raise ValueError(
            f"Coordinate {name!r} must have shape {expected}, one name for every entry of "
            f"{', '.join(dims)}; received {values.shape}."
        )


def _storable(values: Any) -> np.ndarray:
    """Names that netCDF can hold: objects of mixed kinds become text."""
    array = np.asarray(values)
    return array.astype(str) if array.dtype.kind == "O" else array


def _attributes(draws: Draws) -> dict[str, str | float | int]:
    """What made the draws; netCDF takes neither bool nor None."""
    return {
        "inference_library": "bayesrbf",
        "inference_library_version": __version__,
        "inference": draws.method,
        "point_estimate": int(draws.point_estimate),
        "complete": int(draws.complete),
        **draws.attributes,
    }
