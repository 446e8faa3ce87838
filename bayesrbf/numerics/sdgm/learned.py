"""The posterior in which precisions are learned: all weights of all components, exchangeable."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from bayesrbf.priors import PrecisionPrior
from bayesrbf.sdgm_parameters import SDGMParameters, SDGMSpecification


def learned_specification(
    component_class: tuple[int, ...], n_features: int, prior: PrecisionPrior
) -> SDGMSpecification:
    """Every feature in every component, equal component probabilities.

    No component is held at zero: the prior of the weights makes the posterior
    proper, and without a chosen one the components of a class are exchangeable.

    Parameters
    ----------
    component_class : tuple of int
        Class of every component, non-decreasing.
    n_features : int
        Number of features.
    prior : PrecisionPrior
        Prior of the precisions.

    Returns
    -------
    SDGMSpecification
        The structure.
    """
    classes = np.asarray(component_class, dtype=np.intp)
    return SDGMSpecification(
        classes,
        1.0 / np.bincount(classes)[classes],
        np.repeat(np.arange(classes.size), n_features),
        np.tile(np.arange(n_features), classes.size),
        prior,
    )


def learned_weights(
    parameters: SDGMParameters, specification: SDGMSpecification
) -> Float[np.ndarray, " weight"]:
    """Weights of the large model that make the same class probabilities as a sparse one.

    A component that was pruned becomes a copy of a survivor of its class; what
    the copies and unequal component probabilities change goes into the intercepts.

    Parameters
    ----------
    parameters : SDGMParameters
        The sparse point; feature 0 is the intercept.
    specification : SDGMSpecification
        The large structure, of the same features.

    Returns
    -------
    ndarray of shape (n_weights,)
        Weights in the order of the large structure.
    """
    n_features = specification.n_weights // specification.n_components
    sparse = parameters.dense(n_features)
    dense = np.empty((specification.n_components, n_features))
    for label in np.unique(specification.component_class):
        slots = np.flatnonzero(specification.component_class == label)
        survivors = np.flatnonzero(parameters.component_class == label)
        source = np.resize(survivors, slots.size)
        copies = np.bincount(source, minlength=parameters.n_components)[source]
        dense[slots] = sparse[:, source].T
        dense[slots, 0] += np.log(parameters.proportions[source] * slots.size / copies)
    return dense.reshape(-1)
