"""Laws of stored tables, their columns and maps, and of mixtures."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bayesrbf.artefact.laws import (
    LEAST_SCALE,
    MOST_PARTS,
    MOST_SCALE,
    TOLERANCE,
    Law,
    Lines,
    ascending,
    by_class,
    permutation,
    scales,
    simplex,
    within,
)

# ---- tables


def _observations(rows: Any) -> Lines:
    further = all(not np.isinf(cells).any() for cells in rows.further)
    yield not np.isinf(rows.real).any() and further, "cells that are finite or NaN"
    yield within(rows.codes, -1) and within(rows.labels, -1), "codes of -1 and above"
    yield within(rows.weights, 0), "weights of 0 and above"
    yield rows.log_jacobian.shape in ((), rows.labels.shape), "a log Jacobian for every row"


def _columns(columns: Any) -> Lines:
    n, kinds = len(columns.names), columns.kinds
    yield 0 < n == len(kinds) <= MOST_PARTS, "a kind for every name"
    yield len(columns.levels) == kinds.count("categorical"), "levels for every categorical column"
    ordered = len(columns.ordinal_levels)
    yield ordered == kinds.count("ordinal"), "levels for every column of ordered levels"
    levels = (*columns.levels, *columns.ordinal_levels)
    yield all(len(set(one)) == len(one) for one in levels), "levels that differ"
    yield all(isinstance(cell, str | int | float) for one in levels for cell in one), "plain levels"
    for places in (columns.masked, columns.empty):
        yield ascending(places) and within(places, 0, n), "positions of columns, in their order"
    yield len(columns.missing) == n and min(columns.missing) >= 0, "missing cells of every column"
    atoms = columns.atoms
    yield len(atoms) in (0, kinds.count("real")), "atoms for every real column"
    yield all(map(ascending, atoms)), "atoms in rising order"


def _order(order: Any) -> Lines:
    parts = (order.features, order.categories, order.classes)
    yield all(map(permutation, parts)), "permutations"


def _counts(law: Any) -> Lines:
    n = len(law.columns)
    yield n == len(law.means) == len(law.dispersions), "a mean and a dispersion for every column"
    yield scales(law.means) and scales(law.dispersions), "positive means and dispersions"


def _ordinals(law: Any) -> Lines:
    yield len(law.columns) == len(law.cuts), "cut points for every column"
    yield all(map(ascending, law.cuts)), "cut points in rising order"


def _units(units: Any) -> Lines:
    yield within(units.scale, 1e-305), "positive scales"


def _half_ranks(maps: Any) -> Lines:
    n = maps.units.scale.size
    yield len(maps.knots) == len(maps.scores) == n, "knots for every column"
    pairs = list(zip(maps.knots, maps.scores, strict=True))
    yield all(a.shape == b.shape and a.size > 0 for a, b in pairs), "a score for every knot"
    yield all(ascending(a) for a, _ in pairs), "knots in rising order"
    yield all(within(b, -1e6, 1e6) for _, b in pairs), "scores in standard units"


def _powers(maps: Any) -> Lines:
    yield within(maps.scale, 1e-305), "positive scales"
    yield within(maps.powers, -10, 10), "powers between -10 and 10"
    yield bool((maps.low <= maps.high).all()), "a range of every column"
    yield within(maps.low, -1e6, 1e6) and within(maps.high, -1e6, 1e6), "ranges in standard units"


# ---- mixtures


def _mixture_specification(structure: Any) -> Lines:
    numbers = structure.n_features, structure.n_factors, len(structure.component_class)
    yield within(numbers, 0, MOST_PARTS), "numbers of columns and factors that are none too many"
    yield within(structure.levels, 1, MOST_PARTS), "levels in every categorical column"


def _mixture_parameters(point: Any) -> Lines:
    yield simplex(point.class_probabilities), "class probabilities that sum to one"
    yield within(point.weights, 0, 1 + TOLERANCE), "weights that are probabilities"
    yield all(map(simplex, point.category_probabilities)), "level probabilities that sum to one"
    yield within(abs(point.means), 0, MOST_SCALE), "means in standard units"
    yield within(abs(point.precisions_cholesky), 0, MOST_SCALE), "factors in standard units"
    n, further = point.weights.size, point.further.values()
    fits = all(value.shape[:1] == (n,) and value.dtype == np.float64 for value in further)
    yield fits, "values of every component"
    positive = ("count_means", "count_dispersions", "ordinal_slopes")
    known = [point.further[name] for name in positive if name in point.further]
    yield all(map(scales, known)), "positive means, dispersions and slopes"


def _mixture_hyperparameters(prior: Any) -> Lines:
    yield within(prior.scale, 1e-305), "positive scales"
    yield scales(prior.mean_precision), "a positive strength of the means"
    least = LEAST_SCALE if prior.location.size else 0  # without real columns it is 0
    yield within(prior.degrees_of_freedom, least, MOST_SCALE), "a positive strength of covariances"
    concentrations = prior.weight_concentration, prior.class_concentration
    yield scales(concentrations), "positive concentrations"
    yield all(map(scales, prior.category_concentrations)), "positive concentrations of levels"


def factor_shape(structure: Any) -> tuple[int, ...]:
    """Shape of the precision factors of a mixture."""
    d = structure.n_features
    groups = len(set(structure.component_class))
    if structure.tied:
        groups = 1
    elif structure.covariance_type != "tied":
        groups = structure.n_components
    tail = {"full": (d, d), "factor": (d, 1, 1 + structure.rank)}.get(structure.shape, (d,))
    return (groups, *tail)


def mixture(model: Any) -> Lines:
    """Law of a fitted mixture."""
    structure, point, prior = model.specification, model.parameters, model.hyperparameters
    k, d, levels = structure.n_components, structure.n_features, structure.levels
    yield point.class_probabilities.size == structure.n_classes, "a probability of every class"
    yield point.means.shape == (k, d), "a mean of every component and column"
    yield point.weights.size == k, "a weight of every component"
    yield by_class(point.weights, structure.component_class), "weights that sum to one by class"
    yield point.precisions_cholesky.shape == factor_shape(structure), "a factor of every covariance"
    yield scales(_diagonals(point.precisions_cholesky, d)), "factors of positive diagonal"
    shapes = [array.shape for array in point.category_probabilities]
    yield shapes == [(k, n) for n in levels], "probabilities of all levels"
    yield all((array > 0).all() for array in point.category_probabilities), "levels that can be"
    widths = [(k, len(law.columns)) for law in structure.further for _ in range(2)]
    yield sorted(v.shape for v in point.further.values()) == sorted(widths), "values of every law"
    yield prior.location.size == d, "a centre of every column"
    sizes = [array.size for array in prior.category_concentrations]
    yield sizes == list(levels), "concentrations of all levels"
    order = model.order
    sizes = [order.features.size, order.categories.size, order.classes.size]
    yield sizes == [d, len(levels), structure.n_classes], "an order of its columns and classes"
    yield model.maps is None or model.maps.scale.size == d, "a map of every column"


def _diagonals(factors: np.ndarray, d: int) -> np.ndarray:
    """What must be positive in precision factors."""
    if factors.ndim == 3:
        return np.einsum("gii->gi", factors)
    return factors[:, :, 0, 0] if factors.ndim == 4 else factors


MIXTURES: Final[dict[str, Law]] = {
    "Columns": _columns,
    "CountColumns": _counts,
    "FittedMixture": mixture,
    "HalfRankMaps": _half_ranks,
    "MixtureHyperparameters": _mixture_hyperparameters,
    "MixtureParameters": _mixture_parameters,
    "MixtureSpecification": _mixture_specification,
    "Observations": _observations,
    "Order": _order,
    "OrdinalColumns": _ordinals,
    "PowerMaps": _powers,
    "Standardisation": _units,
}
