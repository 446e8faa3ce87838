r"""Between a mixture's parameters and the variables of its declared graph.

The precision of covariance group g is :math:`P = L L'`, :math:`L = L_0 A`, with
:math:`L_0 = \mathrm{diag}(1 / (s \sqrt{\nu_0 + G_g}))` for column scales s, and A
lower triangular with diagonal :math:`\sqrt d` (``precision_diagonal``) and strict
lower part ``precision_lower``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.mixture.mixture_structure import free_variables, group_axes, lower_entries
from bayesrbf.records import names
from bayesrbf.records.mixture import MixtureParameters
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification


def base_scales(
    hyperparameters: MixtureHyperparameters, specification: MixtureSpecification
) -> Float[np.ndarray, "group feature"]:
    """Inverse diagonal of L0: ``s sqrt(nu0 + G)`` of every covariance group.

    Parameters
    ----------
    hyperparameters : MixtureHyperparameters
        Resolved prior.
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    ndarray of shape (n_groups, n_features)
        In the units of ``hyperparameters``.
    """
    strength = hyperparameters.degrees_of_freedom + specification.group_sizes
    return np.sqrt(strength)[:, None] * hyperparameters.scale


def variables_of(
    parameters: MixtureParameters,
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> dict[str, np.ndarray]:
    """Values of the free variables at one point.

    Parameters
    ----------
    parameters : MixtureParameters
        Point, in the units of ``hyperparameters``.
    hyperparameters : MixtureHyperparameters
        Resolved prior.
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    dict of str to ndarray
        One value per free variable (and ``weights`` of every class).
    """
    n_classes = specification.n_classes
    values = {
        names.CLASS_PROBABILITIES: parameters.class_probabilities,
        names.MEANS: parameters.means,
    }
    for index, part in enumerate(specification.class_slices):
        values[names.class_weights(index, n_classes)] = parameters.weights[part]
    for index, probabilities in enumerate(parameters.category_probabilities):
        values[names.category_probability(index)] = probabilities
    if specification.n_features:
        _, shape = group_axes(specification)
        scales = base_scales(hyperparameters, specification)
        values |= _precision_values(parameters, scales, specification.shape, shape)
    return values


def _precision_values(
    parameters: MixtureParameters, scales: np.ndarray, kind: str, shape: tuple[int, ...]
) -> dict[str, np.ndarray]:
    """Values of the variables behind the precision factors."""
    d = scales.shape[1]
    if kind == "full":
        unit = parameters.precisions_cholesky * scales[:, :, None]
        rows, columns = lower_entries(d)
        lower = unit[:, rows, columns]
        return {
            names.PRECISION_DIAGONAL: np.einsum("gii->gi", unit).reshape((*shape, d)) ** 2,
            names.PRECISION_LOWER: lower.reshape((*shape, rows.size)),
        }
    squares = (parameters.precisions_cholesky * scales) ** 2
    squares = squares[:, 0].reshape(shape) if kind == "spherical" else squares.reshape((*shape, d))
    return {names.PRECISION_DIAGONAL: squares}


def parameters_of(
    values: Mapping[str, np.ndarray],
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> MixtureParameters:
    """The point at given values of the free variables.

    Parameters
    ----------
    values : mapping of str to ndarray
        One value per free variable.
    hyperparameters : MixtureHyperparameters
        Resolved prior.
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    MixtureParameters
        Point, in the units of ``hyperparameters``.
    """
    k, d = specification.n_components, specification.n_features
    categories = range(len(specification.levels))
    return MixtureParameters(
        class_probabilities=values.get(names.CLASS_PROBABILITIES, np.ones(1)),
        weights=joint_weights(values, specification),
        means=values[names.MEANS] if d else np.zeros((k, 0)),
        precisions_cholesky=precision_factors(values, hyperparameters, specification),
        category_probabilities=tuple(values[names.category_probability(i)] for i in categories),
    )


def joint_weights(
    values: Mapping[str, np.ndarray], specification: MixtureSpecification
) -> Float[np.ndarray, "*batch component"]:
    """Component weights of all classes in the flat order.

    Parameters
    ----------
    values : mapping of str to ndarray of shape (..., *variable.shape)
        Values of the free variables at one point or many.
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    ndarray of shape (..., n_components)
        Weights, summing to one within each class.
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


def precision_factors(
    values: Mapping[str, np.ndarray],
    hyperparameters: MixtureHyperparameters,
    specification: MixtureSpecification,
) -> Float[np.ndarray, "*shape"]:
    """Precision factors at one point or many.

    Parameters
    ----------
    values : mapping of str to ndarray of shape (..., *variable.shape)
        Values of the free variables.
    hyperparameters : MixtureHyperparameters
        Resolved prior.
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    ndarray of shape (..., n_groups, n_features, n_features) or (..., n_groups, n_features)
        Factors as in :class:`~bayesrbf.records.mixture.MixtureParameters`.
    """
    d, n_groups = specification.n_features, specification.group_sizes.size
    full = specification.shape == "full"
    if d == 0:
        return np.zeros((n_groups, 0, 0) if full else (n_groups, 0))
    batch = values[names.MEANS].shape[:-2]
    scales = base_scales(hyperparameters, specification)
    roots = np.sqrt(values[names.PRECISION_DIAGONAL])
    if specification.shape == "spherical":
        return np.broadcast_to(roots.reshape((*batch, n_groups, 1)), (*batch, n_groups, d)) / scales
    roots = roots.reshape((*batch, n_groups, d))
    if not full:
        return roots / scales
    unit = np.zeros((*batch, n_groups, d * d))
    unit[..., :: d + 1] = roots
    if d > 1:
        lower = values[names.PRECISION_LOWER]
        unit[..., lower_places(d)] = lower.reshape((*batch, n_groups, -1))
    return unit.reshape((*batch, n_groups, d, d)) / scales[:, :, None]


@cache
def lower_places(n_features: int) -> Int[np.ndarray, " entry"]:
    """Places of the strictly lower entries in a flattened matrix.

    Parameters
    ----------
    n_features : int
        Size of the matrix.

    Returns
    -------
    ndarray of shape (n_entries,)
        Places, row by row.
    """
    rows, columns = lower_entries(n_features)
    return rows * n_features + columns
