r"""Whitened features of every component, with no more coordinates than the features have rank.

With Phi = F B, F of full rank r, and A the precisions of a component's n weights,
the singular vectors V of :math:`A^{-1/2} B^\top` span all that the rows can see:
:math:`w = A^{-1/2} V c` with c standard normal, and the rest of w keeps its prior.
For n <= r, V is the identity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from bayesrbf.numerics.sdgm.likelihood import Designs, places

RANK = 1e-10
"""Singular values below this share of the largest are rounding."""


@dataclass(frozen=True)
class Factored:
    """Features of all points, and their factors where the rank is below their number.

    Attributes
    ----------
    features : ndarray of shape (n_points, n_features)
        Phi.
    left : ndarray of shape (n_points, rank)
        F, with orthonormal columns.
    right : ndarray of shape (rank, n_features)
        B.
    """

    features: Float[np.ndarray, "point feature"]
    left: Float[np.ndarray, "point rank"]
    right: Float[np.ndarray, "rank feature"]


def factor_features(features: Float[np.ndarray, "point feature"], reduce: bool) -> Factored:
    """Find the rank of the features.

    Parameters
    ----------
    features : ndarray of shape (n_points, n_features)
        Phi.
    reduce : bool
        Whether it is worth the search: not where the features are few and independent.

    Returns
    -------
    Factored
        Phi and its factors; of no use, with a rank beyond every number of weights,
        where ``reduce`` is False.
    """
    if not reduce:
        return Factored(features, features, np.eye(features.shape[1]))
    left, sizes, right = np.linalg.svd(features, full_matrices=False)
    rank = int((sizes > RANK * sizes[0]).sum())
    return Factored(features, left[:, :rank], sizes[:rank, None] * right[:rank])


@dataclass(frozen=True)
class Whitened:
    """Whitened features, and the way back to the weights.

    Attributes
    ----------
    designs : tuple of ndarray of shape (n_points, n_coordinates of the component)
        Features of the coordinates c.
    directions : tuple of ndarray of shape (n_weights, n_coordinates) of the component
        V, with orthonormal columns.
    deviations : ndarray of shape (n_weights,)
        Prior standard deviation of every weight.
    """

    designs: Designs
    directions: tuple[Float[np.ndarray, "_ _"], ...]
    deviations: Float[np.ndarray, " weight"]

    def weights(
        self, coordinates: Float[np.ndarray, " coordinate"]
    ) -> Float[np.ndarray, " weight"]:
        """Weights at given coordinates.

        Parameters
        ----------
        coordinates : ndarray of shape (n_coordinates,)
            c.

        Returns
        -------
        ndarray of shape (n_weights,)
            ``A^-1/2 V c``.
        """
        parts = [
            v @ coordinates[place]
            for v, place in zip(self.directions, places(self.designs), strict=True)
        ]
        return self.deviations * np.concatenate([np.zeros(0), *parts])

    def coordinates(
        self, weights: Float[np.ndarray, " weight"]
    ) -> Float[np.ndarray, " coordinate"]:
        """Coordinates of what the rows can see of given weights.

        Parameters
        ----------
        weights : ndarray of shape (n_weights,)
            w.

        Returns
        -------
        ndarray of shape (n_coordinates,)
            ``V' A^1/2 w``.
        """
        edges = np.cumsum([len(v) for v in self.directions])[:-1]
        parts = np.split(weights / self.deviations, edges)
        pairs = zip(self.directions, parts, strict=True)
        return np.concatenate([np.zeros(0), *(v.T @ part for v, part in pairs)])

    def determined(self, inverses: list[Float[np.ndarray, "_ _"]]) -> Float[np.ndarray, " weight"]:
        """How much of every weight the rows determine: MacKay's gamma.

        Parameters
        ----------
        inverses : list of ndarray of shape (n_coordinates, n_coordinates) of the component
            Posterior covariance of every component's c.

        Returns
        -------
        ndarray of shape (n_weights,)
            1 less the ratio of posterior to prior variance, between 0 and 1.
        """
        parts = []
        for v, inverse in zip(self.directions, inverses, strict=True):
            known = np.eye(v.shape[1]) - inverse
            parts.append(((v @ known) * v).sum(axis=1))
        return np.clip(np.concatenate([np.zeros(0), *parts]), 0.0, 1.0)

    def covariance(
        self, inverse: Float[np.ndarray, "coordinate coordinate"]
    ) -> Float[np.ndarray, "weight weight"]:
        """Posterior covariance of the weights.

        Parameters
        ----------
        inverse : ndarray of shape (n_coordinates, n_coordinates)
            Posterior covariance of c.

        Returns
        -------
        ndarray of shape (n_weights, n_weights)
            That of w; directions that no row sees keep their prior.
        """
        n_weights = self.deviations.size
        v = np.zeros((n_weights, len(inverse)))
        row = 0
        for direction, place in zip(self.directions, places(self.designs), strict=True):
            v[row : row + len(direction), place] = direction
            row += len(direction)
        whitened = np.eye(n_weights) + v @ (inverse - np.eye(len(inverse))) @ v.T
        return self.deviations[:, None] * whitened * self.deviations


def whiten(
    factored: Factored,
    component: Int[np.ndarray, " weight"],
    feature: Int[np.ndarray, " weight"],
    precisions: Float[np.ndarray, " weight"],
    n_components: int,
) -> Whitened:
    """Whitened features of every component.

    Parameters
    ----------
    factored : Factored
        Features of all points.
    component, feature : ndarray of shape (n_weights,)
        Place of every active weight; components in order.
    precisions : ndarray of shape (n_weights,)
        Prior precisions.
    n_components : int
        Number of components.

    Returns
    -------
    Whitened
        Features with standard normal priors.
    """
    deviations = precisions**-0.5
    designs, directions = [], []
    for k in range(n_components):
        mine = component == k
        used, scale = feature[mine], deviations[mine]
        if used.size <= factored.left.shape[1]:
            designs.append(factored.features[:, used] * scale)
            directions.append(np.eye(used.size))
            continue
        left, sizes, right = np.linalg.svd(factored.right[:, used] * scale, full_matrices=False)
        seen = sizes > RANK * sizes[0]
        designs.append(factored.left @ (left[:, seen] * sizes[seen]))
        directions.append(right[seen].T)
    return Whitened(tuple(designs), tuple(directions), deviations)
