r"""A point of the type-II maximisation: components, active weights, and their whitened features.

The whitened features of a component have no more coordinates than the features have rank. With Phi
= F B, F of full rank r, and A the precisions of a component's n weights, the singular vectors V of
:math:`A^{-1/2} B^\top` span all directions that change a logit of a row: :math:`w = A^{-1/2} V c`
with c standard normal, and the rest of w keeps its prior. For n <= r, V is the identity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from bayesrbf.numerics.sdgm.label_likelihood import Designs, places

RANK = 1e-10  # Singular values below this fraction of the largest are rounding errors.
LEAST_PROPORTION = 1e-5  # Components with a smaller probability are pruned.


@dataclass(frozen=True)
class Factored:
    """Features Phi of all points, and their factors F (orthonormal columns) and B: Phi = F B."""

    features: Float[np.ndarray, "point feature"]
    left: Float[np.ndarray, "point rank"]
    right: Float[np.ndarray, "rank feature"]


def factor_features(features: Float[np.ndarray, "point feature"], reduce: bool) -> Factored:
    """Factor the features by their rank, unless they are few and independent.

    Without ``reduce`` the factors have more rank than any component has weights, and are not used.
    """
    if not reduce:
        return Factored(features, features, np.eye(features.shape[1]))
    left, sizes, right = np.linalg.svd(features, full_matrices=False)
    rank = int((sizes > RANK * sizes[0]).sum())
    return Factored(features, left[:, :rank], sizes[:rank, None] * right[:rank])


@dataclass(frozen=True)
class Whitened:
    """Features of whitened coordinates c with standard normal priors, and the way back.

    ``directions`` are the V of every component, with orthonormal columns; ``deviations`` are
    the prior standard deviations of the weights.
    """

    designs: Designs
    directions: tuple[Float[np.ndarray, "_ _"], ...]
    deviations: Float[np.ndarray, " weight"]

    def weights(
        self, coordinates: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, " weight"]:
        """Weights ``A^-1/2 V c`` at given coordinates."""
        parts = [
            v @ coordinates[place]
            for v, place in zip(self.directions, places(self.designs), strict=True)
        ]
        return self.deviations * np.concatenate([np.zeros(0), *parts])

    def coordinates(
        self, weights: Float[np.ndarray, " weight"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Coordinates ``V' A^1/2 w`` of the part of given weights that the rows determine."""
        edges = np.cumsum([len(v) for v in self.directions])[:-1]
        parts = np.split(weights / self.deviations, edges)
        pairs = zip(self.directions, parts, strict=True)
        return np.concatenate([np.zeros(0), *(v.T @ part for v, part in pairs)])

    def determined(self, inverses: list[Float[np.ndarray, "_ _"]]) -> Float[np.ndarray, " weight"]:
        """How much of every weight the rows determine, between 0 and 1: MacKay's gamma.

        It is 1 less the ratio of posterior to prior variance, from the posterior covariance of
        every component's c.
        """
        parts = []
        for v, inverse in zip(self.directions, inverses, strict=True):
            known = np.eye(v.shape[1]) - inverse
            parts.append(((v @ known) * v).sum(axis=1))
        return np.clip(np.concatenate([np.zeros(0), *parts]), 0.0, 1.0)

    def covariance(
        self, inverse: Float[np.ndarray, "coordinate coordinate"]
    ) -> Float[np.ndarray, "weight weight"]:
        """Posterior covariance of the weights, given that of c.

        Directions that change no row keep their prior.
        """
        n_weights = self.deviations.size
        v = np.zeros((n_weights, len(inverse)))
        row = 0
        for direction, place in zip(self.directions, places(self.designs), strict=True):
            v[row : row + len(direction), place] = direction
            row += len(direction)
        whitened = np.eye(n_weights) + v @ (inverse - np.eye(len(inverse))) @ v.T
        return self.deviations[:, None] * whitened * self.deviations


@dataclass(frozen=True)
class State:
    """A point of the type-II maximisation: surviving components, and active weights in their order.

    ``proportions`` sum to one within each class.
    """

    component_class: Int[np.ndarray, " component"]
    proportions: Float[np.ndarray, " component"]
    component: Int[np.ndarray, " weight"]
    feature: Int[np.ndarray, " weight"]
    coefficients: Float[np.ndarray, " weight"]
    precisions: Float[np.ndarray, " weight"]

    def whitened(self, factored: Factored) -> Whitened:
        """Whitened features of every component's active weights at their precisions."""
        deviations = self.precisions**-0.5
        designs, directions = [], []
        for k in range(self.component_class.size):
            mine = self.component == k
            used, scale = self.feature[mine], deviations[mine]
            if used.size <= factored.left.shape[1]:  # no reduction: V is the identity
                designs.append(factored.features[:, used] * scale)
                directions.append(np.eye(used.size))
                continue
            left, sizes, right = np.linalg.svd(factored.right[:, used] * scale, full_matrices=False)
            seen = sizes > RANK * sizes[0]
            designs.append(factored.left @ (left[:, seen] * sizes[seen]))
            directions.append(right[seen].T)
        return Whitened(tuple(designs), tuple(directions), deviations)


def without_superfluous(state: State) -> State:
    """Drop components that are rare or like another, and give their probability to one that stays.

    Every class keeps a component.
    """
    dropped, heirs = _superfluous(state)
    if not dropped.any():
        return state
    proportions = np.bincount(heirs, weights=state.proportions, minlength=dropped.size)
    renumbered = np.cumsum(~dropped) - 1
    kept = ~dropped[state.component]
    return State(
        state.component_class[~dropped],
        proportions[~dropped],
        renumbered[state.component[kept]],
        state.feature[kept],
        state.coefficients[kept],
        state.precisions[kept],
    )


def _superfluous(
    state: State,
) -> tuple[Bool[np.ndarray, " component"], Int[np.ndarray, " component"]]:
    """Components to drop, and the component that takes over each one's probability.

    All components of a class without weights are alike, and one of them stays.
    """
    n_components = state.component_class.size
    bare = np.bincount(state.component, minlength=n_components) == 0
    heirs = np.arange(n_components)
    for label in np.unique(state.component_class):
        members = np.flatnonzero(state.component_class == label)
        alike = members[bare[members]]
        heirs[alike] = alike[:1]
        largest = members[np.argmax(state.proportions[members])]
        rare = members[state.proportions[members] < LEAST_PROPORTION]
        heirs[rare] = largest
    return heirs != np.arange(n_components), heirs
