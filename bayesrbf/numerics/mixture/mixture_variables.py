"""Between a mixture's parameters and the variables of its declared graph."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from bayesrbf.numerics.mixture.mixture_structure import free_variables
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification


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
