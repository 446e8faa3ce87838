"""Predictions as DataTrees: class probabilities, drawn labels, drawn tables beside the real one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from jaxtyping import Bool

from bayesrbf.conversion.datatrees import Labelled, dataset_of
from bayesrbf.records import names

_SAMPLES = (names.CHAIN, names.DRAW)


def by_column(
    drawn: xr.DataArray,
    observed: xr.DataArray,
    discrete: Bool[np.ndarray, " column"],
    log_likelihood: xr.DataArray | None = None,
) -> xr.DataTree:
    """Split drawn tables into columns, and leave out the cells that are missing.

    A predictive check compares a column's drawn cells with its observed ones; a missing cell has
    nothing to be compared with, so every column keeps the rows of its own. ``drawn`` runs over
    chain, draw, obs and column; ``observed`` is NaN where a cell or a label is missing;
    ``discrete`` says which columns hold codes.

    ``log_likelihood`` is that of whole rows under the draws of the posterior that the tables come
    from: its leave-one-out weights leave out a row. None means that the tables come from the prior.
    The tree has groups ``prior_predictive`` and ``observed_data``, or ``posterior_predictive``,
    ``observed_data`` and ``log_likelihood``: one variable a column over its own rows.
    """
    parts: dict[str, dict[str, tuple[tuple[str, ...], np.ndarray]]] = {}
    is_observed = ~np.isnan(observed.transpose(names.OBS, ...).to_numpy())
    tables = drawn.transpose(names.CHAIN, names.DRAW, names.OBS, ...).to_numpy()
    truth = observed.transpose(names.OBS, ...).to_numpy()
    rows = observed[names.OBS].to_numpy()
    group = "prior_predictive" if log_likelihood is None else "posterior_predictive"
    coords: dict[str, np.ndarray] = {}
    for place, name in enumerate(_variable_names(observed)):
        present, kind = is_observed[:, place], np.int64 if discrete[place] else np.float64
        if not present.any():
            continue
        dim = f"{names.OBS}_{place}"
        coords[dim] = rows[present]
        variables = {
            group: ((names.CHAIN, names.DRAW, dim), tables[:, :, present, place].astype(kind)),
            names.OBSERVED_DATA: ((dim,), truth[present, place].astype(kind)),
        }
        if log_likelihood is not None:
            # a row without a cell has no log likelihood, and is in no column's rows either
            whole = log_likelihood.sel({names.OBS: rows[present]})
            whole = whole.transpose(names.CHAIN, names.DRAW, names.OBS)
            variables[names.LOG_LIKELIHOOD] = ((names.CHAIN, names.DRAW, dim), whole.to_numpy())
        for part, variable in variables.items():
            parts.setdefault(part, {})[name] = variable
    return xr.DataTree.from_dict({part: _numbered(own, coords) for part, own in parts.items()})


def _numbered(
    variables: dict[str, tuple[tuple[str, ...], np.ndarray]], coords: dict[str, np.ndarray]
) -> xr.Dataset:
    """Variables over rows of their own, with the chains and draws numbered."""
    dataset = xr.Dataset(variables, coords=coords)
    numbered = {
        dim: np.arange(dataset.sizes[dim])
        for dim in (names.CHAIN, names.DRAW)
        if dim in dataset.sizes
    }
    return dataset.assign_coords(numbered)


def _variable_names(observed: xr.DataArray) -> list[str]:
    """One name a column: a tree takes no slash and no name twice."""
    chosen: list[str] = []
    (dim,) = (dim for dim in observed.dims if dim != names.OBS)
    for name in observed[dim].to_numpy().astype(str).tolist():
        candidate = name.replace("/", "_")
        while candidate in chosen:
            candidate += "_"
        chosen.append(candidate)
    return chosen


def predictions(
    probabilities: np.ndarray,
    *,
    labels: Sequence[object] | np.ndarray,
    rows: Sequence[object] | np.ndarray,
    constant: Mapping[str, Labelled],
    thinning: int = 1,
) -> xr.DataTree:
    """Class probabilities of new rows under every k-th draw; k is ``thinning``.

    ``probabilities`` run over chain, draw, obs and label. The tree has groups ``predictions`` and
    ``predictions_constant_data``, the new rows.
    """
    coords = {names.OBS: rows, names.LABEL: labels}
    dims = (*_SAMPLES, names.OBS, names.LABEL)
    dataset = dataset_of({names.PROBABILITY: (dims, probabilities)}, coords)
    dataset.coords[names.DRAW] = thinning * np.arange(probabilities.shape[1])
    dataset.attrs["thinning"] = thinning
    return xr.DataTree.from_dict(
        {names.PREDICTIONS: dataset, names.PREDICTIONS_CONSTANT_DATA: dataset_of(constant, coords)}
    )


def predictive_check(
    rows: np.ndarray, drawn: np.ndarray, truth: np.ndarray, thinning: int = 1
) -> dict[str, xr.DataTree]:
    """Labels or responses drawn for rows beside their true ones, as predictive checks read them.

    ``drawn`` runs over chain, every k-th draw and obs; k is ``thinning``. Groups are
    ``posterior_predictive`` and ``observed_data``, both with ``y``.
    """
    coords = {names.OBS: rows}
    sampled = dataset_of({names.OBSERVED_LABEL: ((*_SAMPLES, names.OBS), drawn)}, coords)
    sampled.coords[names.DRAW] = thinning * np.arange(drawn.shape[1])
    observed = dataset_of({names.OBSERVED_LABEL: ((names.OBS,), truth)}, coords)
    return {
        "posterior_predictive": xr.DataTree(sampled),
        names.OBSERVED_DATA: xr.DataTree(observed),
    }
