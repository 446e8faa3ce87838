"""Starting points: weighted k-means++ per class, blind to missing cells and to row order.

The caller hands over distinct rows, columns and classes in a canonical order; draws are
made by weight, so that a row of weight 2 and the same row twice start alike.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.mixture.parts.laws import laws_of
from bayesrbf.records.mixture import MixtureParameters, Observations, weighted_components
from bayesrbf.records.priors import MixtureHyperparameters
from bayesrbf.records.specification import MixtureSpecification

OWN_CLUSTER = 0.9
"""Weight of a row in its own cluster; the rest is spread over the class's clusters."""

LLOYD_STEPS = 5

MOST_START_ROWS = 100_000
"""Rows that a start looks at."""


def starting_point(
    observations: Observations,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
    rng: np.random.Generator,
) -> MixtureParameters:
    """Draw a starting point: clusters as components, all of ``START_VARIANCE``.

    Rows, distinct and weighted, and prior are in standard units. Of many, some are drawn.
    """
    observations = _some(observations, specification.n_classes, rng)
    embedding = _embed(observations, specification)
    memberships = np.zeros((observations.n_obs, specification.n_components))
    for label, part in enumerate(specification.class_slices):
        rows = np.flatnonzero(observations.labels == label)
        if rows.size:
            size = part.stop - part.start
            memberships[rows, part] = _memberships(
                embedding[rows], observations.weights[rows], size, rng
            )
    memberships *= observations.weights[:, None]
    return _from_memberships(observations, memberships, specification, hyperparameters)


def _some(observations: Observations, n_classes: int, rng: np.random.Generator) -> Observations:
    """All labelled rows of small classes, and random ones of large ones, which weigh as all do."""
    if observations.n_obs <= MOST_START_ROWS:
        return observations
    chosen, weights = [], []
    for label in range(n_classes):
        own = np.flatnonzero(observations.labels == label)
        total, n_own = observations.weights[own].sum(), own.size
        rng.shuffle(own)
        own = np.sort(own[: MOST_START_ROWS // n_classes])
        drawn = observations.weights[own]
        weights.append(drawn * (total / drawn.sum()) if own.size < n_own else drawn)
        chosen.append(own)
    return replace(observations.take(np.concatenate(chosen)), weights=np.concatenate(weights))


def _embed(
    observations: Observations, specification: MixtureSpecification
) -> Float[np.ndarray, "obs coordinate"]:
    """Rows as points: reals with the column mean where missing, scaled indicators."""
    laws = laws_of(specification)
    both = laws.reals.embedding(observations), laws.levels.embedding(observations)
    return np.concatenate(both, axis=1)


def _memberships(
    points: np.ndarray, weights: np.ndarray, size: int, rng: np.random.Generator
) -> Float[np.ndarray, "row cluster"]:
    """Soft memberships from k-means++ and a few Lloyd steps."""
    centres = _plus_plus(points, weights, size, rng)
    for _ in range(LLOYD_STEPS if size > 1 else 0):
        shares = weights * (_nearest(points, centres) == np.arange(size)[:, None])
        mass, sums = shares.sum(axis=1), shares @ points
        filled = mass > 0
        centres[filled] = sums[filled] / mass[filled, None]
    memberships = np.full((len(points), size), (1 - OWN_CLUSTER) / size)
    memberships[np.arange(len(points)), _nearest(points, centres)] += OWN_CLUSTER
    return memberships


def _plus_plus(
    points: np.ndarray, weights: np.ndarray, size: int, rng: np.random.Generator
) -> Float[np.ndarray, "cluster coordinate"]:
    """Centres drawn by squared distance to those already drawn."""
    chosen = [_draw(weights, rng)]
    distances = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    for _ in range(size - 1):
        potential = weights * distances
        # Fewer distinct points than centres: repeat points rather than fail.
        chosen.append(_draw(potential if potential.sum() > 0 else weights, rng))
        distances = np.minimum(distances, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    return points[chosen].copy()


def _draw(mass: np.ndarray, rng: np.random.Generator) -> int:
    """One index drawn in proportion to mass, from one uniform number."""
    cumulative = np.cumsum(mass / mass.max())
    return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))


def _nearest(points: np.ndarray, centres: np.ndarray) -> Int[np.ndarray, " row"]:
    """Index of the nearest centre."""
    cross = points @ centres.T
    return ((centres**2).sum(axis=1) - 2 * cross).argmin(axis=1)


def _from_memberships(
    observations: Observations,
    memberships: np.ndarray,
    specification: MixtureSpecification,
    hyperparameters: MixtureHyperparameters,
) -> MixtureParameters:
    """Parameters that the memberships suggest, from observed cells only."""
    counts = memberships.sum(axis=0)
    classes = np.asarray(specification.component_class)
    by_class = np.bincount(classes, weights=counts)
    sizes = np.bincount(classes)
    point = weighted_components(
        (by_class + 1) / (by_class + 1).sum(), (counts + 0.5) / (by_class + 0.5 * sizes)[classes]
    )
    laws = laws_of(specification)
    point = laws.reals.begun(point, observations, memberships, hyperparameters)
    return laws.levels.begun(point, observations, memberships, hyperparameters)
