"""Components that join, leave or change places in the hidden layer of an RBF network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.mixture import mixture_points
from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.numerics.mixture.parts.real_columns import START_VARIANCE
from bayesrbf.records.mixture import MixtureParameters, Observations
from bayesrbf.records.rbf_network import RBFNetworkParameters, RBFNetworkSpecification
from bayesrbf.records.specification import Order

SMALL_WEIGHT = 0.5  # Mixture weight of a new component, as a multiple of that in equal parts.


def idle_components(
    parameters: RBFNetworkParameters, specification: RBFNetworkSpecification
) -> Bool[np.ndarray, " component"]:
    """Components whose output weights are all exactly zero; one is kept in each mixture."""
    idle = (parameters.coefficients == 0).all(axis=0)
    for part in specification.mixture.class_slices:
        if idle[part].all():
            idle[part.start + int(np.argmax(parameters.mixture.weights[part]))] = False
    return idle


def without(
    parameters: RBFNetworkParameters,
    specification: RBFNetworkSpecification,
    leaving: Bool[np.ndarray, " component"],
) -> tuple[RBFNetworkParameters, RBFNetworkSpecification]:
    """Take components out of their mixtures, whose weights sum to one again.

    At least one component of each mixture must stay.
    """
    return _rearranged(parameters, specification, np.flatnonzero(~leaving))


def with_components_at(
    parameters: RBFNetworkParameters,
    specification: RBFNetworkSpecification,
    observations: Observations,
    rows: Int[np.ndarray, "label new"],
) -> tuple[RBFNetworkParameters, RBFNetworkSpecification]:
    """Add components centred at given rows of each mixture, with output weights of zero.

    Network and rows are in standard units.
    """
    # Copies of existing components, in the places of the new ones, are then moved to the rows.
    slices = specification.mixture.class_slices
    order = np.concatenate(
        [np.r_[part.start : part.stop, np.full(rows.shape[1], part.start)] for part in slices]
    )
    edges = np.cumsum([part.stop - part.start + rows.shape[1] for part in slices])
    places = (edges[:, None] - rows.shape[1] + np.arange(rows.shape[1])).reshape(-1)
    larger, structure = _rearranged(parameters, specification, order)

    mixture, chosen = larger.mixture, rows.reshape(-1)
    means, weights = mixture.means.copy(), mixture.weights.copy()
    # A missing cell begins at 0, the centre of standard units.
    means[places] = np.nan_to_num(observations.real[chosen])
    equal = 1 / np.bincount(structure.mixture.component_class)
    weights[places] = SMALL_WEIGHT * equal[np.asarray(structure.mixture.component_class)[places]]
    mixture = replace(
        mixture,
        means=means,
        weights=_normalised(weights, structure),
        precisions_cholesky=_fresh_factors(mixture, structure, places),
        category_probabilities=_pooled_levels(mixture, places),
    )
    coefficients = larger.coefficients.copy()
    coefficients[:, places] = 0.0
    return replace(larger, mixture=mixture, coefficients=coefficients), structure


def reordered(
    parameters: RBFNetworkParameters, order: Order, specification: RBFNetworkSpecification
) -> RBFNetworkParameters:
    """Put columns and classes in another order than the specification's."""
    hidden = specification.hidden_order(order)
    components = specification.mixture.components_in(hidden)
    return RBFNetworkParameters(
        mixture_points.reordered(parameters.mixture, hidden, specification.mixture),
        parameters.coefficients[order.classes].take(components, 1),
        parameters.intercepts[order.classes],
        parameters.noise_precision,
    )


def _rearranged(
    parameters: RBFNetworkParameters, specification: RBFNetworkSpecification, order: np.ndarray
) -> tuple[RBFNetworkParameters, RBFNetworkSpecification]:
    """The network whose component k is component ``order[k]`` of this one."""
    classes = np.asarray(specification.mixture.component_class)[order]
    mixture_specification = replace(
        specification.mixture, component_class=tuple(int(c) for c in classes)
    )
    structure = replace(specification, mixture=mixture_specification)
    mixture = parameters.mixture
    # Covariances that components share stay, whichever components there are.
    own_covariances = specification.mixture.group_sizes.size == mixture.weights.size
    moved = mixture.taken(order, order if own_covariances else slice(None))
    moved = replace(moved, weights=_normalised(moved.weights, structure))
    coefficients = parameters.coefficients[:, order]
    return replace(parameters, mixture=moved, coefficients=coefficients), structure


def _normalised(weights: np.ndarray, specification: RBFNetworkSpecification) -> np.ndarray:
    """Weights that sum to one within each mixture."""
    parts = [weights[p] / weights[p].sum() for p in specification.mixture.class_slices]
    return np.concatenate(parts)


def _fresh_factors(
    mixture: MixtureParameters, specification: RBFNetworkSpecification, places: np.ndarray
) -> Float[np.ndarray, "group *feature"]:
    """Precision factors; new components that have their own begin wide and round."""
    factors = mixture.precisions_cholesky
    if specification.mixture.group_sizes.size != mixture.weights.size:
        return factors
    factors = factors.copy()
    roots = np.full(mixture.means[places].shape, START_VARIANCE**-0.5)
    factors[places] = laws_of(specification.mixture).reals.of_diagonal(roots)
    return factors


def _pooled_levels(
    mixture: MixtureParameters, places: np.ndarray
) -> tuple[Float[np.ndarray, "component _"], ...]:
    """Level probabilities; new components begin with the mean of all."""
    results = []
    for probabilities in mixture.category_probabilities:
        pooled = probabilities.copy()
        pooled[places] = mixture.weights @ probabilities / mixture.weights.sum()
        results.append(pooled)
    return tuple(results)
