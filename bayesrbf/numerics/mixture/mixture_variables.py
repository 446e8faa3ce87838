"""The variables of a mixture's declared graph, and a mixture's parameters as their values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification, Order, Variable


@cache
def free_variables(specification: MixtureSpecification) -> tuple[Variable, ...]:
    """Free variables of the declared graph, in its order: classes, weights, then every law's.

    >>> [v.name for v in free_variables(MixtureSpecification(2, (), (0, 0, 1)))]
    ['class_probabilities', 'weights_0', 'means', 'precision_diagonal', 'precision_lower']
    """
    n_classes = specification.n_classes
    variables: list[Variable] = []
    if n_classes > 1:
        variables.append(
            Variable(names.CLASS_PROBABILITIES, (names.CLASS_LABEL,), (n_classes,), "simplex")
        )
    for index, part in enumerate(specification.class_slices):
        size = part.stop - part.start
        if size > 1:
            dim = names.class_components(index, n_classes)
            name = names.class_weights(index, n_classes)
            variables.append(Variable(name, (dim,), (size,), "simplex"))
    laws = laws_of(specification)
    further = (variable for law in laws.further for variable in law.variables)
    return (*variables, *laws.reals.variables, *laws.levels.variables, *further)


def deterministic_variables(specification: MixtureSpecification) -> tuple[Variable, ...]:
    """What is reported beside the free variables.

    That is ``weights`` where the classes have simplices of their own, and ``covariances`` where
    there are real columns.
    """
    variables: list[Variable] = []
    k, d = specification.n_components, specification.n_features
    if names.WEIGHTS not in {v.name for v in free_variables(specification)}:
        variables.append(Variable(names.WEIGHTS, (names.COMPONENT,), (k,), "identity"))
    if d:
        dims = (*specification.group_dims, names.FEATURE, names.FEATURE_BIS)
        shape = (*specification.group_shape, d, d)
        variables.append(Variable(names.COVARIANCES, dims, shape, "identity"))
    return tuple(variables)


def variables_of(
    parameters: MixtureParameters,
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> dict[str, np.ndarray]:
    """Values of the free variables (and ``weights`` of every class) at one point.

    Point and prior are in the same units.
    """
    laws, n_classes = laws_of(specification), specification.n_classes
    values = {names.CLASS_PROBABILITIES: parameters.class_probabilities}
    for index, part in enumerate(specification.class_slices):
        values[names.class_weights(index, n_classes)] = parameters.weights[part]
    values |= laws.reals.values(parameters, hyperparameters)
    return {**values, **laws.levels.values(parameters.category_probabilities), **parameters.further}


def parameters_of(
    values: Mapping[str, np.ndarray],
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> MixtureParameters:
    """The point at given values of the free variables, in the units of the prior."""
    laws = laws_of(specification)
    return MixtureParameters(
        class_probabilities=values.get(names.CLASS_PROBABILITIES, np.ones(1)),
        weights=joint_weights(values, specification),
        means=laws.reals.means(values),
        precisions_cholesky=laws.reals.factors(values, hyperparameters),
        category_probabilities=laws.levels.probabilities(values),
        further={v.name: values[v.name] for law in laws.further for v in law.variables},
    )


def reordered(
    parameters: MixtureParameters, order: Order, specification: MixtureSpecification
) -> MixtureParameters:
    """The same mixture, columns and classes in another order than the specification's."""
    components = specification.components_in(order)
    groups = specification.covariance_group[components]
    groups = groups[np.sort(np.unique(groups, return_index=True)[1])]
    factors = parameters.precisions_cholesky[groups]
    levels = [parameters.category_probabilities[j][components] for j in order.categories]
    return MixtureParameters(
        parameters.class_probabilities[order.classes],
        parameters.weights[components],
        parameters.means[components].take(order.features, 1),
        laws_of(specification).reals.reordered(factors, order.features),
        tuple(levels),
        {name: value[components] for name, value in parameters.further.items()},
    )


def component_covariances(
    parameters: MixtureParameters, specification: MixtureSpecification
) -> Float[np.ndarray, "component feature feature"]:
    """Covariance matrix of every component, in the units of the point."""
    law = laws_of(specification).reals
    return law.by_component(law.covariances(parameters.precisions_cholesky))


def joint_weights(
    values: Mapping[str, np.ndarray], specification: MixtureSpecification
) -> Float[np.ndarray, "*batch component"]:
    """Component weights of all classes in the flat order, at one point or many.

    They sum to one within each class.
    """
    first = free_variables(specification)[0]
    value = values[first.name]
    batch = value.shape[: value.ndim - len(first.shape)]
    weights = np.ones((*batch, specification.n_components))
    if specification.n_components > specification.n_classes:
        for index, part in enumerate(specification.class_slices):
            name = names.class_weights(index, specification.n_classes)
            weights[..., part] = values.get(name, 1.0)
    return weights
