"""Starts of a fit: clusters within the classes, and weights that lead there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.expectation import prepare
from bayesrbf.numerics.initialisation import starting_point
from bayesrbf.numerics.sdgm.ard import Problem
from bayesrbf.numerics.sdgm.likelihood import expect
from bayesrbf.numerics.sdgm.mode import find_mode
from bayesrbf.numerics.sdgm.pruning import State
from bayesrbf.numerics.sdgm.steps import is_wide
from bayesrbf.parameters import Observations, Standardisation
from bayesrbf.priors import MixturePrior
from bayesrbf.sdgm_parameters import CompletedRows, SDGMParameters
from bayesrbf.specification import MixtureSpecification

SHARE = 0.9
"""Responsibility of a row's own cluster at the start."""
FIRST_STEPS = 5
"""Newton steps towards the clusters before they are forgotten."""


def cluster_shares(
    observations: Observations,
    rows: CompletedRows,
    specification: MixtureSpecification,
    rng: np.random.Generator,
) -> Float[np.ndarray, "point component"]:
    """Responsibilities of clusters within the classes that a row may have.

    Parameters
    ----------
    observations : Observations
        Rows with their holes, in standard units; labels of no class where a row
        may have several.
    rows : CompletedRows
        The same rows as points.
    specification : MixtureSpecification
        Columns, and the components of every class.
    rng : numpy.random.Generator
        Source of the clusters.

    Returns
    -------
    ndarray of shape (n_points, n_components)
        Most of a row belongs to the component of its nearest cluster.
    """
    real = np.zeros(specification.n_features)
    marginals = tuple(np.full(n, 1.0 / n) for n in specification.levels)
    prior = MixturePrior().resolve(specification, Standardisation(real, real + 1), marginals)
    point = starting_point(observations, specification, prior, rng)
    log_joint = prepare(observations, specification).component_log_joint(point)
    allowed = rows.allowed[:, list(specification.component_class)]
    nearest = np.where(allowed, log_joint, -np.inf).argmax(axis=1)
    shares = (1 - SHARE) * allowed / allowed.sum(axis=1, keepdims=True)
    shares[np.arange(len(shares)), nearest] += SHARE
    return np.repeat(shares, rows.sizes, axis=0)


def shares_of(
    problem: Problem, found: SDGMParameters, specification: MixtureSpecification
) -> Float[np.ndarray, "point component"]:
    """Responsibilities of a sparse model, in the first components of every class.

    Parameters
    ----------
    problem : Problem
        Rows and all features.
    found : SDGMParameters
        The sparse model.
    specification : MixtureSpecification
        The components of every class before any was pruned.

    Returns
    -------
    ndarray of shape (n_points, n_components)
        A little is left for components that the sparse model does without.
    """
    classes = np.asarray(specification.component_class)
    phi = problem.factored.features
    logits = phi @ found.dense(phi.shape[1]) + np.log(found.proportions)
    within = np.arange(found.n_components) - np.searchsorted(
        found.component_class, found.component_class
    )
    places = np.searchsorted(classes, found.component_class) + within
    known = expect(problem.labels(found.component_class), logits).responsibilities
    allowed = problem.labels(classes).allowed
    shares = (1 - SHARE) * allowed / allowed.sum(axis=1, keepdims=True)
    shares[:, places] += SHARE * known
    return shares


def first_state(
    problem: Problem,
    component_class: Int[np.ndarray, " component"],
    shares: Float[np.ndarray, "point component"],
    alpha_init: float,
) -> State:
    """All weights active, and moved towards the clusters by a few Newton steps.

    Parameters
    ----------
    problem : Problem
        Rows and features.
    component_class : ndarray of shape (n_components,)
        Class of every component; the last one gets no weights.
    shares : ndarray of shape (n_points, n_components)
        Responsibilities to learn from.
    alpha_init : float
        Precision of every weight.

    Returns
    -------
    State
        Where a run begins.
    """
    n_features, n_free = problem.factored.features.shape[1], component_class.size - 1
    state = State(
        component_class,
        1.0 / np.bincount(component_class)[component_class],
        np.repeat(np.arange(n_free), n_features),
        np.tile(np.arange(n_features), n_free),
        np.zeros(n_free * n_features),
        np.full(n_free * n_features, alpha_init),
    )
    whitened = state.whitened(problem.factored)
    mode = find_mode(
        whitened.designs,
        problem.labels(component_class),
        np.log(state.proportions),
        whitened.coordinates(state.coefficients),
        tol=1e-3,
        max_steps=FIRST_STEPS,
        teacher=shares,
        wide=is_wide(whitened.designs),
    )
    return replace(state, coefficients=whitened.weights(mode.coordinates))
