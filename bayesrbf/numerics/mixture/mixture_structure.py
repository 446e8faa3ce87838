"""The variables of a mixture's declared graph: names, dims, shapes, transforms."""

from __future__ import annotations

from functools import cache

import numpy as np
from jaxtyping import Int

from bayesrbf.records import names
from bayesrbf.records.specification import MixtureSpecification, Variable


@cache
def free_variables(specification: MixtureSpecification) -> tuple[Variable, ...]:
    """Free variables of the declared graph, in its order.

    Parameters
    ----------
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    tuple of Variable
        Names, dims, shapes and transforms.

    Examples
    --------
    >>> [v.name for v in free_variables(MixtureSpecification(2, (), (0, 0, 1)))]
    ['class_probabilities', 'weights_0', 'means', 'precision_diagonal', 'precision_lower']
    """
    n_classes, k = specification.n_classes, specification.n_components
    variables: list[Variable] = []
    if n_classes > 1:
        variables.append(
            Variable(names.CLASS_PROBABILITIES, (names.LABEL,), (n_classes,), "simplex")
        )
    for index, part in enumerate(specification.class_slices):
        size = part.stop - part.start
        if size > 1:
            dim = names.class_components(index, n_classes)
            name = names.class_weights(index, n_classes)
            variables.append(Variable(name, (dim,), (size,), "simplex"))
    if specification.n_features:
        shape = (k, specification.n_features)
        variables.append(Variable(names.MEANS, (names.COMPONENT, names.FEATURE), shape, "identity"))
        variables.extend(_precision_variables(specification))
    for index, n_levels in enumerate(specification.levels):
        dims = (names.COMPONENT, names.category_level(index))
        name = names.category_probability(index)
        variables.append(Variable(name, dims, (k, n_levels), "simplex"))
    return tuple(variables)


def deterministic_variables(specification: MixtureSpecification) -> tuple[Variable, ...]:
    """What is reported beside the free variables.

    Parameters
    ----------
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    tuple of Variable
        ``weights`` where the classes have simplices of their own, and
        ``covariances`` where there are real columns.
    """
    variables: list[Variable] = []
    k, d = specification.n_components, specification.n_features
    if names.WEIGHTS not in {v.name for v in free_variables(specification)}:
        variables.append(Variable(names.WEIGHTS, (names.COMPONENT,), (k,), "identity"))
    if d:
        dims, shape = group_axes(specification)
        variables.append(
            Variable(
                names.COVARIANCES,
                (*dims, names.FEATURE, names.FEATURE_BIS),
                (*shape, d, d),
                "identity",
            )
        )
    return tuple(variables)


def group_axes(specification: MixtureSpecification) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Dims and shape of the axis of covariance groups, empty for a single one.

    Parameters
    ----------
    specification : MixtureSpecification
        Structure of the mixture.

    Returns
    -------
    dims : tuple of str
        ``("component",)``, ``("label",)`` or ``()``.
    shape : tuple of int
        Length of that axis.
    """
    if specification.tied:
        return (), ()
    if specification.covariance_type == "tied":
        n_classes = specification.n_classes
        return ((names.LABEL,), (n_classes,)) if n_classes > 1 else ((), ())
    return (names.COMPONENT,), (specification.n_components,)


def _precision_variables(specification: MixtureSpecification) -> list[Variable]:
    """The variables behind the precision factors."""
    d = specification.n_features
    dims, shape = group_axes(specification)
    if specification.shape == "spherical":
        return [Variable(names.PRECISION_DIAGONAL, dims, shape, "log")]
    variables = [
        Variable(names.PRECISION_DIAGONAL, (*dims, names.FEATURE), (*shape, d), "log"),
    ]
    if specification.shape == "full" and d > 1:
        entries = d * (d - 1) // 2
        variables.append(
            Variable(
                names.PRECISION_LOWER,
                (*dims, names.PRECISION_ENTRY),
                (*shape, entries),
                "identity",
            )
        )
    return variables


@cache
def lower_entries(
    n_features: int,
) -> tuple[Int[np.ndarray, " entry"], Int[np.ndarray, " entry"]]:
    """Rows and columns of the strictly lower entries of a matrix, row by row.

    Parameters
    ----------
    n_features : int
        Size of the matrix.

    Returns
    -------
    rows : ndarray of shape (n_entries,)
        Row indices.
    columns : ndarray of shape (n_entries,)
        Column indices.
    """
    rows, columns = np.tril_indices(n_features, -1)
    return rows, columns
