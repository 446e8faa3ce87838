"""Draws and predictions as DataTrees in ArviZ's layout."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import starmap
from typing import Any, Final

import numpy as np
import xarray as xr
from jaxtyping import Bool, Int, Shaped

from bayesrbf import table
from bayesrbf.base import names
from bayesrbf.base.log_posterior import LogPosterior, log_jacobian, to_unconstrained
from bayesrbf.base.priors import Trace
from bayesrbf.base.rows import Observations, Variable
from bayesrbf.fit.model import Axes, Description, FittedModel, Replicates, draw_labels
from bayesrbf.inference.diagnose import NOTHING, tells
from bayesrbf.inference.draws import MEMORY, Draws, one_after_another, point
from bayesrbf.version import __version__

# Draws as a DataTree in ArviZ's layout, and back, whatever sampler made them.


Labelled = tuple[tuple[str, ...], Any]  # Dims and values of one array.

Names = Sequence[object] | np.ndarray  # Names along a dim.

_SAMPLE_DIMS = (names.CHAIN, names.DRAW)


def to_datatree(
    log_posterior: LogPosterior,
    draws: Draws,
    description: Description | None = None,
    *,
    labelled: Bool[np.ndarray, " scored"] | None = None,
    copies: Int[np.ndarray, "two given"] | None = None,
    trace: Trace | None = None,
    memory: int = MEMORY,
) -> xr.DataTree:
    """DataTree of draws, what is known about each, and the data they come from.

    A point estimate is one chain of one draw. The groups are ``posterior`` (free variables under
    the graph's names, and deterministic ones), ``sample_stats`` and, where given,
    ``log_likelihood``, ``log_scores``, ``log_prior``, ``observed_data``, ``constant_data`` and,
    from ``trace``, ``optimiser_path``.

    The log likelihood has the terms of the rows in the density of the draws, each once: with
    ``log_prior`` they are that density, of constrained variables. So ArviZ's ``psense`` needs no
    argument. ``log_prior`` is there for draws of a posterior whose prior can be raised to a power.

    The log likelihood is named by what it is of, ``scored`` of the ``description``, so that
    ``az.compare(..., var_name=...)`` refuses a model that scores something else; where rows are
    weighted it is an ``objective``, and log_scores has ``scored`` without weights. Where it is not
    ``y``, and a label adds log p(y | x) to it, log_scores has ``y``.
    ``labelled`` says which rows have a label; None: there are no labels. ``y`` runs along ``obs``
    without the rows whose label is hidden, and what is of whole rows along ``row`` (of a density
    ``obs``) without those of which every draw says nothing, because they have no cell.

    Where the log posterior is of distinct rows, ``copies`` are the names of all rows and which of
    the distinct ones each is: the log likelihood is of all rows, as that of any other model.

    Coords are names along dims and nothing else: ``az.summary`` takes no other coordinate. The log
    likelihood may take ``memory`` bytes; where it would take more, every k-th draw is evaluated,
    with a warning. ValueError if the names along a dim are not as many as its entries.
    """
    description = description or Description()
    coords = description.coords
    posterior = _variables(log_posterior.variables, log_posterior.constrained(draws.theta))
    posterior |= _variables(
        log_posterior.deterministic_variables, log_posterior.deterministic(draws.theta)
    )
    groups = {
        names.POSTERIOR: dataset_of(posterior, coords),
        names.SAMPLE_STATS: dataset_of(
            {k: (_SAMPLE_DIMS, v) for k, v in draws.stats.items()}, coords
        ),
    }
    groups |= _rows_and_prior(
        log_posterior, draws, description.scored, labelled, copies, coords.get(names.OBS), memory
    )
    if description.observed:
        groups[names.OBSERVED_DATA] = dataset_of(description.observed, coords)
    if description.constant:
        groups[names.CONSTANT_DATA] = dataset_of(description.constant, coords)
    if trace is not None:
        path = {"log_posterior": (("iteration",), trace.log_posterior)}
        groups[names.OPTIMISER] = dataset_of(path, coords)
    about = _attributes(draws)
    for name in (names.POSTERIOR, names.SAMPLE_STATS):
        groups[name].attrs.update(about)
    tree = xr.DataTree.from_dict(groups)
    tree.attrs.update(about)
    return tree


_SPREAD: Final = 1e-300
"""Spread of log probabilities that are 0 in every draw: ArviZ cannot smooth ratios that are all
equal, and without these rows models of the same labels would not be scored on the same rows."""


def _rows_and_prior(
    log_posterior: LogPosterior,
    draws: Draws,
    scored: str,
    labelled: Bool[np.ndarray, " scored"] | None,
    copies: Int[np.ndarray, "two given"] | None,
    obs: Names | None,
    memory: int,
) -> dict[str, xr.Dataset]:
    """Datasets ``log_likelihood`` and, where they exist, ``log_scores`` and ``log_prior``, by name.

    They have every k-th draw, with the smallest k for which the scores fit into ``memory`` bytes; a
    warning if k is above 1.
    """
    n_chains, n_draws, _ = draws.theta.shape
    first = log_posterior.pointwise(draws.theta[0, 0])
    rows, index = (obs, np.arange(first.size)) if copies is None else copies
    weights = np.broadcast_to(log_posterior.row_weights, first.shape)
    factors = (weights / np.maximum(np.bincount(index, minlength=first.size), 1))[index]
    plain, labels = bool((factors == 1).all()), names.OBSERVED_LABEL
    has_label = labelled is not None and scored != labels
    arrays = 1 + has_label + (not plain)
    thinning = min(n_draws, -(-arrays * n_chains * n_draws * first.nbytes // memory))
    if thinning > 1:
        warnings.warn(
            f"The log likelihood of {first.size} rows under {n_chains * n_draws} draws would take "
            f"more than {memory / 2**30:.3g} GiB: one draw in {thinning} is evaluated.",
            stacklevel=4,
        )
    thetas = draws.theta[:, ::thinning]

    def of_rows(evaluate: Callable[[np.ndarray], np.ndarray | None]) -> np.ndarray | None:
        by_chain = [value for chain in thetas if (value := evaluate(chain)) is not None]
        return np.stack(by_chain)[..., index] if by_chain else None

    def dataset(name: str, values: np.ndarray) -> xr.Dataset:
        """Dataset of a score: of labelled rows for a label, else of rows that draws predict."""
        if labelled is None or name != labels:
            dim, included = names.OBS if labelled is None else names.ROW, tells(values)
        else:
            dim, included = names.OBS, labelled[index]
            spread = _SPREAD * np.arange(values[..., 0].size).reshape(*values.shape[:2], 1)
            values = np.where(np.abs(values) > NOTHING, values, -spread)
        along = {dim: np.arange(values.shape[2]) if rows is None else rows}
        return dataset_of({name: ((*_SAMPLE_DIMS, dim), values)}, along).isel({dim: included})

    log_likelihood = of_rows(log_posterior.log_likelihoods)
    assert log_likelihood is not None
    terms, scores = {scored if plain else names.OBJECTIVE: factors * log_likelihood}, {}
    if (beside := of_rows(log_posterior.copies_log_likelihoods)) is not None:
        terms[names.COPIES] = beside / np.bincount(index)[index]
    if not plain:
        scores[scored] = log_likelihood
    if has_label and (y := of_rows(log_posterior.label_log_likelihoods)) is not None:
        scores[labels] = y  # where a label adds a log probability
    groups = {names.LOG_LIKELIHOOD: xr.merge(starmap(dataset, terms.items()))}
    if scores:
        groups[names.LOG_SCORES] = xr.merge(starmap(dataset, scores.items()))
    if not log_posterior.no_prior and draws.method != "bootstrap" and not draws.point_estimate:
        prior = draws.stats["lp"][:, ::thinning] - sum(term.sum(axis=-1) for term in terms.values())
        for draw in np.ndindex(prior.shape):
            values = log_posterior.constrained(thetas[draw])
            prior[draw] -= log_jacobian(log_posterior.variables, values)[0]
        groups[names.LOG_PRIOR] = dataset_of({names.LOG_PRIOR: (_SAMPLE_DIMS, prior)}, {})
    evaluated = {names.DRAW: thinning * np.arange(thetas.shape[1])}
    return {name: group.assign_coords(evaluated) for name, group in groups.items()}


def _variables(
    variables: tuple[Variable, ...], values: Mapping[str, np.ndarray]
) -> dict[str, Labelled]:
    """Values under their names, with the dims of chain and draw before their own."""
    return {v.name: ((*_SAMPLE_DIMS, *v.dims), values[v.name]) for v in variables}


def dataset_of(variables: Mapping[str, Labelled], coords: Mapping[str, Names]) -> xr.Dataset:
    """Dataset of variables, with the ``coords`` of their dims; chain and draw are numbered from 0.

    Other coordinates are left out. ValueError if names are not as many as the entries of a dim.
    """
    sizes: dict[str, int] = {}
    for dims, values in variables.values():
        sizes.update(zip(dims, np.shape(values), strict=True))
    chosen = {name: np.arange(sizes[name]) for name in _SAMPLE_DIMS if name in sizes}
    for name in coords.keys() & sizes.keys():
        chosen[name] = _storable(coords[name])
        if chosen[name].shape != (sizes[name],):
            raise ValueError(
                f"Coordinate {name!r} must have shape {(sizes[name],)}, one name for every entry; "
                f"received {chosen[name].shape}."
            )
    stored = {name: (dims, _storable(values)) for name, (dims, values) in variables.items()}
    return xr.Dataset(stored, coords=chosen)


def _storable(values: Any) -> np.ndarray:
    """Values that netCDF can hold: objects of mixed kinds become text."""
    array = np.asarray(values)
    return array.astype(str) if array.dtype.kind == "O" else array


def _attributes(draws: Draws) -> dict[str, str | float | int]:
    """Attributes of the draws, as text and numbers: netCDF takes neither bool nor None."""
    return {
        "inference_library": "bayesrbf",
        "inference_library_version": __version__,
        "inference": draws.method,
        "point_estimate": int(draws.point_estimate),
        "complete": int(draws.complete),
        **draws.attributes,
    }


def from_datatree(
    tree: xr.DataTree, log_posterior: LogPosterior, coords: Mapping[str, Names] | None = None
) -> Draws:
    """Coordinates and log densities of draws that any sampler of the declared graph made.

    The tree needs a group ``posterior`` over chain and draw that holds every free variable of the
    graph under its name. ``coords`` are names along the dims, as :func:`to_datatree` takes them;
    where the tree names the same dim, it must name it so. ValueError if the group or a free
    variable is missing, or one has other dims, another shape, other names along a dim, or values
    outside its support.
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
    for draw in np.ndindex(*shape):
        at_draw = {name: value[draw] for name, value in values.items()}
        theta[draw] = to_unconstrained(log_posterior.variables, at_draw)
    if not np.isfinite(theta).all():
        raise ValueError(
            "use_posterior(tree) needs draws inside the support of every variable; some have no "
            "finite coordinates. Sample the graph of this very estimator."
        )
    stats = {"lp": log_posterior.log_densities(one_after_another(theta)).reshape(shape)}
    if names.SAMPLE_STATS in tree.children and "diverging" in tree[names.SAMPLE_STATS]:
        stats["diverging"] = tree[names.SAMPLE_STATS]["diverging"].to_numpy()
    return Draws(theta, stats, "graph")


def _values_of(
    posterior: xr.Dataset, variable: Variable, coords: Mapping[str, Names]
) -> np.ndarray:
    """Values of one variable in every draw, as an array (chain, draw, *dims of the variable).

    The values are constrained, and their dims follow the order of the graph. ``coords`` are the
    names that are expected along the dims. ValueError if the variable is missing or has other
    dims, another shape, or other names along a dim.
    """
    name = variable.name
    if name not in posterior:
        raise ValueError(
            f"use_posterior(tree) needs draws of {name!r} in the group 'posterior', which holds "
            f"{list(posterior.data_vars)}; sample the graph of declare()."
        )
    values = posterior[name]
    expected = {names.CHAIN, names.DRAW, *variable.dims}
    if set(values.dims) != expected:
        raise ValueError(
            f"use_posterior(tree) needs {name!r} over the dims {sorted(expected)}; received "
            f"{sorted(map(str, values.dims))}. Sample the graph of this very estimator."
        )
    ordered = values.transpose(names.CHAIN, names.DRAW, *variable.dims)
    if ordered.shape[2:] != variable.shape:
        raise ValueError(
            f"use_posterior(tree) needs {name!r} of shape {variable.shape} in every draw; "
            f"received {ordered.shape[2:]}. Sample the graph of this very estimator."
        )
    for dim in variable.dims:
        labels = coords.get(dim)
        if labels is None or dim not in ordered.coords:
            continue
        if [str(x) for x in ordered[dim].to_numpy().tolist()] != [str(x) for x in list(labels)]:
            raise ValueError(
                f"use_posterior(tree) needs {dim!r} of {name!r} to be {list(labels)}; received "
                f"{ordered[dim].to_numpy().tolist()}. Sample the graph of this very estimator."
            )
    return np.asarray(ordered.to_numpy(), dtype=np.float64)


# Predictions as DataTrees: class probabilities, drawn labels, drawn tables beside the real one.


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
    by_group: dict[str, dict[str, Labelled]] = {}
    is_observed = ~np.isnan(observed.transpose(names.OBS, ...).to_numpy())
    tables = drawn.transpose(names.CHAIN, names.DRAW, names.OBS, ...).to_numpy()
    truth = observed.transpose(names.OBS, ...).to_numpy()
    rows = observed[names.OBS].to_numpy()
    group = "prior_predictive" if log_likelihood is None else "posterior_predictive"
    coords: dict[str, np.ndarray] = {}
    for column, name in enumerate(_variable_names(observed)):
        present, kind = is_observed[:, column], np.int64 if discrete[column] else np.float64
        if not present.any():
            continue
        dim = f"{names.OBS}_{column}"
        coords[dim] = rows[present]
        variables = {
            group: ((*_SAMPLE_DIMS, dim), tables[:, :, present, column].astype(kind)),
            names.OBSERVED_DATA: ((dim,), truth[present, column].astype(kind)),
        }
        if log_likelihood is not None:
            # A row without a label says nothing to a conditional model: its log likelihood is 0.
            whole = log_likelihood.reindex({names.OBS: rows[present]}, fill_value=0.0)
            whole = whole.transpose(names.CHAIN, names.DRAW, names.OBS)
            variables[names.LOG_LIKELIHOOD] = ((*_SAMPLE_DIMS, dim), whole.to_numpy())
        for key, variable in variables.items():
            by_group.setdefault(key, {})[name] = variable
    return xr.DataTree.from_dict({key: dataset_of(v, coords) for key, v in by_group.items()})


def _variable_names(observed: xr.DataArray) -> list[str]:
    """Distinct names of the columns, without a slash, as variables of a tree."""
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
    dims = (*_SAMPLE_DIMS, names.OBS, names.LABEL)
    dataset = dataset_of({names.PROBABILITY: (dims, probabilities)}, coords)
    dataset.coords[names.DRAW] = thinning * np.arange(probabilities.shape[1])
    dataset.attrs["thinning"] = thinning
    return xr.DataTree.from_dict(
        {names.PREDICTIONS: dataset, names.PREDICTIONS_CONSTANT_DATA: dataset_of(constant, coords)}
    )


def predictive_check(
    rows: np.ndarray, drawn: np.ndarray, truth: np.ndarray, thinning: int = 1
) -> dict[str, xr.DataTree]:
    """Drawn and true labels or responses of rows, in the groups of predictive checks.

    ``drawn`` runs over chain, every k-th draw and obs; k is ``thinning``. Groups are
    ``posterior_predictive`` and ``observed_data``, both with ``y``.
    """
    coords = {names.OBS: rows}
    sampled = dataset_of({names.OBSERVED_LABEL: ((*_SAMPLE_DIMS, names.OBS), drawn)}, coords)
    sampled.coords[names.DRAW] = thinning * np.arange(drawn.shape[1])
    observed = dataset_of({names.OBSERVED_LABEL: ((names.OBS,), truth)}, coords)
    return {
        "posterior_predictive": xr.DataTree(sampled),
        names.OBSERVED_DATA: xr.DataTree(observed),
    }


# The DataTree of a fit: posterior, log likelihood, training rows and what is drawn for them.


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
    description = model.description(rows, axes)
    tree = to_datatree(
        log_posterior,
        draws or point(log_posterior, model.point(log_posterior)),
        description,
        labelled=None if description.scored == names.OBSERVED else model.labelled(rows),
        copies=copies,
        trace=trace,
    )
    return tree if replicates is None else with_replicates(tree, replicates, axes.obs)


def with_replicates(
    tree: xr.DataTree, replicates: Replicates, obs: Shaped[np.ndarray, " obs"]
) -> xr.DataTree:
    """The tree with ``posterior_predictive``, and ``observed_data`` of the same rows, set in place.

    Cells that were observed become constant data: ArviZ compares what is observed with what is
    drawn.
    """
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
    """The tree of predictions, to which drawn and true class codes are added in place.

    They are of the rows that have a label in y, in groups ``posterior_predictive`` and
    ``observed_data``. ValueError if a label is no class of the fit.
    """
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
