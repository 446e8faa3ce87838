"""Laws of stored networks, sparse mixtures and exemplars."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bayesrbf.artefact.laws import (
    MOST_LOG,
    MOST_PARTS,
    Law,
    Lines,
    by_class,
    classes_in_order,
    scales,
    simplex,
    within,
)
from bayesrbf.artefact.mixture_laws import mixture

# ---- kernel networks


def _cells(cells: Any) -> Lines:
    yield within(cells.variance, 0, 1e12), "variances of 0 and above"
    yield within(abs(cells.mean), 0, 1e6), "means in standard units"
    yield within(cells.probabilities, 0, 1 + 1e-6), "probabilities"


def _kernel(kernel: Any) -> Lines:
    yield within(kernel.real_rates, 0, 1e12) and within(kernel.category_rates, 0, 1e12), "rates"
    yield len(kernel.levels) == kernel.category_rates.size, "levels for every categorical column"
    yield within(kernel.levels, 1, MOST_PARTS), "levels in every categorical column"


def _basis(basis: Any) -> Lines:
    kernel, cells = basis.kernel, basis.exemplars
    yield cells.mean.shape[1] == kernel.real_rates.size, "exemplars with its real columns"
    yield cells.probabilities.shape[1] == sum(kernel.levels), "exemplars with its levels"
    yield cells.unknown.shape[1] == len(kernel.levels), "exemplars with its categorical columns"
    yield cells.n_rows == basis.projection.shape[0], "a projection of every exemplar"
    yield within(abs(basis.projection), 0, 1e12), "projections"


def _companions(companions: Any) -> Lines:
    yield len(companions.mixtures) > 0, "a mixture"
    structures = [mixture.specification for mixture in companions.mixtures]
    columns = {(structure.n_features, structure.levels) for structure in structures}
    yield len(columns) == 1, "mixtures of the same columns"


def _kernel_network(model: Any) -> Lines:
    structure = model.companions.first.specification
    kernel, n = model.basis.kernel, model.n_classes
    yield kernel.real_rates.size == structure.n_features, "its companion's real columns"
    yield kernel.levels == structure.levels, "its companion's categorical columns"
    yield structure.n_classes in (1, n), "its companion's classes"
    yield simplex(model.class_frequencies), "shares of classes that sum to one"
    yield n > 0 and (model.class_frequencies > 0).all(), "positive shares of classes"
    outputs = 1 if n == 2 else n
    yield model.theta.size == outputs * (model.basis.n_basis + 1), "a weight of every feature"
    yield within(abs(model.theta), 0, MOST_LOG), "output weights"
    yield scales(model.l2), "a positive precision"


# ---- RBF networks


def _rbf_specification(structure: Any) -> Lines:
    yield 0 < structure.n_outputs <= MOST_PARTS, "outputs"


def _rbf_parameters(point: Any) -> Lines:
    yield within(abs(point.coefficients), 0, MOST_LOG), "output weights"
    yield within(abs(point.intercepts), 0, MOST_LOG), "intercepts"
    yield scales(point.noise_precision), "a positive precision of the noise"


def _rbf_prior(prior: Any) -> Lines:
    yield within((prior.l1, prior.l2, prior.link), 0, np.inf) or prior.link == np.inf, "rates"
    positive = prior.kappa, prior.intercept_scale, prior.noise_shape, prior.noise_rate
    yield prior.l1 + prior.l2 > 0 and scales(positive), "positive numbers"


def _responses(responses: Any) -> Lines:
    yield 0 < responses.n_outputs <= MOST_PARTS, "outputs"


def _number_responses(responses: Any) -> Lines:
    yield responses.n_outputs == 1 == responses.units.scale.size, "one output, in its units"
    yield responses.values.size > 0, "responses"


def _rbf_network(model: Any) -> Lines:
    structure, point = model.specification, model.parameters
    yield structure.n_outputs == model.responses.n_outputs, "an output of every response"
    yield structure.response == model.responses.kind, "responses of its kind"
    shape = structure.n_outputs, structure.mixture.n_components
    yield point.coefficients.shape == shape, "a weight of every component"
    yield point.intercepts.size == structure.n_outputs, "an intercept of every output"
    yield structure.mixture.n_classes in (1, structure.n_outputs), "a mixture of every output"
    order = model.order.classes.size
    yield order == structure.mixture.n_classes, "an order of its mixtures"
    # What holds of its hidden layer holds of a mixture.
    yield from mixture(model.density)


# ---- sparse discriminative mixtures


def _quadratic(basis: Any) -> Lines:
    yield within(basis.factors, -1, MOST_PARTS), "coordinates, or -1 for the number 1"


def _sdgm_parameters(point: Any) -> Lines:
    k = point.component_class.size
    yield classes_in_order(point.component_class), "classes in order"
    yield point.proportions.size == k, "a share of every component"
    yield by_class(point.proportions, point.component_class), "shares that sum to one by class"
    yield within(point.component, 0, k) and within(point.feature, 0), "components and features"
    yield within(np.diff(point.component), 0), "components in order"
    yield scales(point.precisions), "positive precisions"
    yield within(abs(point.coefficients), 0, MOST_LOG), "weights"
    spread = point.covariance
    yield within(abs(spread), 0, 1e12) and within(np.diag(spread), 0), "a covariance"
    yield np.allclose(spread, spread.T, rtol=1e-6, atol=1e-9), "a symmetric covariance"


def _sdgm_modes(modes: Any) -> Lines:
    yield 0 < len(modes.parameters) == modes.probabilities.size, "a probability of every mode"
    yield simplex(modes.probabilities), "probabilities that sum to one"


def _sdgm(model: Any) -> Lines:
    structure, n_features = model.companion.specification, model.basis.n_features
    coordinates = structure.n_features + sum(structure.levels)
    yield structure.n_classes == 1, "a companion without classes"
    yield model.units.scale.size == coordinates, "units of all coordinates"
    factors = getattr(model.basis, "factors", None)
    if factors is None:
        yield model.basis.exemplars.shape[1] == coordinates, "exemplars with all coordinates"
    else:
        yield within(factors, -1, coordinates), "features of its coordinates"
    yield model.features.size == n_features and within(model.features, 0), "numbers of features"
    modes = model.modes.parameters
    n_classes = modes[0].component_class[-1] + 1
    yield all(within(mode.feature, 0, n_features) for mode in modes), "weights of its features"
    yield all(mode.component_class[-1] + 1 == n_classes for mode in modes), "modes of one table"
    yield classes_in_order(model.component_class), "classes in order"
    yield model.component_class[-1] + 1 == n_classes, "components of all classes"
    sets = model.sets
    yield sets.shape[1] == n_classes and sets.any(axis=1).all(), "sets of its classes"
    yield sets.shape[0] >= n_classes and sets[:n_classes].diagonal().all(), "a set of every class"


# ---- exemplars


def _dissimilarities(table: Any) -> Lines:
    yield within(table.values, 0, 1e300), "dissimilarities of 0 and above"
    yield within(table.weights, 0), "weights of 0 and above"
    yield within(table.labels, -1, len(table.candidates)), "class codes"
    yield all(one.size > 0 for one in table.candidates), "candidates of every class"
    yield all(within(one, 0, table.n_obs) for one in table.candidates), "candidates among its rows"


def _exemplar_parameters(point: Any) -> Lines:
    yield point.sigma is None or scales(point.sigma), "a positive width"


def _sigma(prior: Any) -> Lines:
    yield abs(prior.location) < 300 and scales(prior.spread), "a positive spread"


def _gower(gower: Any) -> Lines:
    yield within(gower.ranges, 1e-305), "positive ranges"
    holes = gower.real_holes, gower.code_holes
    yield all(within(one, 0, 1 + 1e-6) for one in holes), "means from 0 to 1"


def _matrix_source(source: Any) -> Lines:
    yield within(source.kept, 0), "columns of a matrix"


def _table_source(source: Any) -> Lines:
    columns, gower, rows = source.columns, source.gower, source.rows
    yield source.handle_unknown in ("missing", "error"), "a way with unseen levels"
    sizes = len(columns.real_names), len(columns.categorical_names)
    yield (gower.ranges.size, gower.code_holes.size) == sizes, "ranges of its columns"
    yield (rows.real.shape[1], rows.codes.shape[1]) == sizes, "rows of its columns"
    order = source.order
    yield (order.features.size, order.categories.size) == sizes, "an order of its columns"


def _vector_source(source: Any) -> Lines:
    known = source.rows.dtype.kind in "OU" or np.isfinite(source.rows).all()
    yield bool(known), "finite rows"


def _exemplars(model: Any) -> Lines:
    table, point, n = model.table, model.parameters, model.table.n_obs
    yield point.exemplars.size == model.prototypes.number, "an exemplar of every prototype"
    yield within(point.exemplars, 0, n) and within(model.needed, 0, n), "rows of its table"
    yield (np.diff(model.needed) > 0).all(), "needed rows in order"
    yield bool(np.isin(point.exemplars, model.needed).all()), "exemplars among the needed rows"
    yield model.prototypes.classes[-1] + 1 == len(table.candidates), "prototypes of every class"
    source = model.source
    rows = getattr(source, "kept", None)
    stored = getattr(source, "rows", None)
    size = rows.size if rows is not None else getattr(stored, "n_obs", len(np.atleast_1d(0)))
    if hasattr(stored, "shape"):
        size = len(stored)  # type: ignore[arg-type]
    yield size == n, "as many stored rows as compared ones"
    yield (point.sigma is None) == (model.sigma is None), "one width"
    width = 1.0 if model.sigma is None else model.sigma
    yield not isinstance(width, float) or scales(width), "a positive width"


MODELS: Final[dict[str, Law]] = {
    "CellMoments": _cells,
    "ClassResponses": _responses,
    "Companions": _companions,
    "Dissimilarities": _dissimilarities,
    "EigenBasis": _basis,
    "FittedExemplars": _exemplars,
    "FittedKernelNetwork": _kernel_network,
    "FittedNetwork": _rbf_network,
    "FittedSDGM": _sdgm,
    "Gower": _gower,
    "MatrixSource": _matrix_source,
    "MedianLVQParameters": _exemplar_parameters,
    "NumberResponses": _number_responses,
    "ProductKernel": _kernel,
    "QuadraticBasis": _quadratic,
    "RBFNetworkHyperparameters": _rbf_prior,
    "RBFNetworkParameters": _rbf_parameters,
    "RBFNetworkSpecification": _rbf_specification,
    "SDGMModes": _sdgm_modes,
    "SDGMParameters": _sdgm_parameters,
    "SigmaPrior": _sigma,
    "TableSource": _table_source,
    "VectorSource": _vector_source,
}
