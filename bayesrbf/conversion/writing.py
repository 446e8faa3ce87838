"""Draws of a log posterior as a DataTree in ArviZ's layout."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from bayesrbf import names
from bayesrbf.inference.draws import MEMORY, Draws
from bayesrbf.inference.protocol import LogPosterior
from bayesrbf.inference.shortcuts import log_likelihoods
from bayesrbf.results import Trace
from bayesrbf.specification import Variable
from bayesrbf.version import __version__

Labelled = tuple[tuple[str, ...], Any]
"""Dims and values of one array."""

Names = Sequence[object] | np.ndarray | Labelled
"""Names along a dim, or along other dims than their own name's."""

_SAMPLES = (names.CHAIN, names.DRAW)


def to_datatree(
    log_posterior: LogPosterior,
    draws: Draws,
    *,
    coords: Mapping[str, Names] | None = None,
    attrs: Mapping[str, str | float | int] | None = None,
    observed: Mapping[str, Labelled] | None = None,
    constant: Mapping[str, Labelled] | None = None,
    log_likelihood: bool = True,
    trace: Trace | None = None,
    memory: int = MEMORY,
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
    memory : int
        Bytes that the log likelihood may take; where it would take more, every
        k-th draw is evaluated, with a warning.

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
        values, thinning = _log_likelihood(log_posterior, draws.theta, memory)
        dataset = _dataset({_node(observed or {}): ((*_SAMPLES, names.OBS), values)}, coords)
        evaluated = {names.DRAW: thinning * np.arange(values.shape[1])}
        groups[names.LOG_LIKELIHOOD] = dataset.assign_coords(evaluated)
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


def _node(observed: Mapping[str, Labelled]) -> str:
    """The node of the graph that has the likelihood: the rows, or labels given the rows."""
    conditional = names.OBSERVED_LABEL in observed and names.OBSERVED not in observed
    return names.OBSERVED_LABEL if conditional else names.OBSERVED


def _log_likelihood(
    log_posterior: LogPosterior, theta: np.ndarray, memory: int
) -> tuple[Float[np.ndarray, "chain draw obs"], int]:
    """Log likelihood of every row under every k-th draw; k, above 1 if they are too many."""
    n_chains, n_draws, _ = theta.shape
    first = log_posterior.pointwise(theta[0, 0])
    thinning = min(n_draws, -(-n_chains * n_draws * first.nbytes // memory))
    if thinning > 1:
        warnings.warn(
            f"The log likelihood of {first.size} rows under {n_chains * n_draws} draws would take "
            f"more than {memory / 2**30:.3g} GiB: one draw in {thinning} is evaluated.",
            stacklevel=4,
        )
    chains = [log_likelihoods(log_posterior, chain) for chain in theta[:, ::thinning]]
    return np.stack(chains), thinning


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


def predictive_check(
    rows: np.ndarray, drawn: np.ndarray, truth: np.ndarray
) -> dict[str, xr.DataTree]:
    """Labels drawn for rows beside their true ones, as predictive checks read them.

    Parameters
    ----------
    rows : ndarray of shape (n_obs,)
        Row names.
    drawn : ndarray of shape (n_chains, n_draws, n_obs)
        Class codes drawn from the posterior predictive.
    truth : ndarray of shape (n_obs,)
        Class codes observed.

    Returns
    -------
    dict of str to xarray.DataTree
        Groups ``posterior_predictive`` and ``observed_data``, both with ``y``.
    """
    coords = {names.OBS: rows}
    sampled = _dataset({"y": ((*_SAMPLES, names.OBS), drawn)}, coords)
    observed = _dataset({"y": ((names.OBS,), truth)}, coords)
    return {
        "posterior_predictive": xr.DataTree(sampled),
        names.OBSERVED_DATA: xr.DataTree(observed),
    }


def _variables(
    variables: tuple[Variable, ...], values: Mapping[str, np.ndarray]
) -> dict[str, Labelled]:
    """Values under their names, with the dims of chain and draw before their own."""
    return {v.name: ((*_SAMPLES, *v.dims), values[v.name]) for v in variables}


def _dataset(
    variables: Mapping[str, Labelled],
    coords: Mapping[str, Names],
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
