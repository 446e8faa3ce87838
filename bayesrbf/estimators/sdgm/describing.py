"""Names of the weights of a sparse discriminative mixture."""

from __future__ import annotations

import numpy as np
from jaxtyping import Shaped

from bayesrbf import table
from bayesrbf.sdgm_parameters import Basis, QuadraticBasis, SDGMSpecification


def coefficient_names(
    basis: Basis,
    specification: SDGMSpecification,
    columns: table.Columns,
    classes: Shaped[np.ndarray, " label"],
) -> list[str]:
    """One name a weight: its class, its component within the class, its feature.

    Parameters
    ----------
    basis : QuadraticBasis or KernelBasis
        Features.
    specification : SDGMSpecification
        Places of the weights.
    columns : Columns
        Columns of the table.
    classes : ndarray of shape (n_classes,)
        Classes.

    Returns
    -------
    list of str
        Such as ``"yes 0: age * bmi"``.
    """
    features = _feature_names(basis, columns)
    component_class = specification.component_class
    first = np.searchsorted(component_class, component_class)
    within = np.arange(component_class.size) - first
    return [
        f"{classes[component_class[k]]} {within[k]}: {features[h]}"
        for k, h in zip(specification.component, specification.feature, strict=True)
    ]


def _feature_names(basis: Basis, columns: table.Columns) -> list[str]:
    """Names of the features: products of columns, or numbers of exemplars."""
    if not isinstance(basis, QuadraticBasis):
        return ["1", *(f"exemplar {i}" for i in range(basis.n_features - 1))]
    coordinates = list(columns.real_names)
    for name, levels in zip(columns.categorical_names, columns.all_levels, strict=True):
        coordinates += [f"{name}={level}" for level in levels]
    names = [*coordinates, ""]  # factor -1 is the last: no name
    pairs = ([names[i] for i in pair if i >= 0] for pair in basis.factors)
    return [" * ".join(pair) or "1" for pair in pairs]
