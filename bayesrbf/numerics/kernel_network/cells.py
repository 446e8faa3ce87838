"""Rows as a kernel sees them: every cell a distribution, missing ones that of a mixture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from bayesrbf.numerics.categories import one_hot
from bayesrbf.numerics.conditional import conditional_moments, conditional_probabilities
from bayesrbf.parameters import MixtureParameters, Observations
from bayesrbf.specification import MixtureSpecification

FARTHEST = 4.0
"""Expected cells are held within this many standard deviations."""


@dataclass(frozen=True)
class CellMoments:
    """What is known of every cell of some rows: exactly, or as a conditional distribution.

    Attributes
    ----------
    mean : ndarray of shape (n_rows, n_features)
        Real cells or their conditional means, in standard units.
    variance : ndarray of shape (n_rows, n_features)
        Conditional variances; 0 for an observed cell.
    probabilities : ndarray of shape (n_rows, n_levels of all columns)
        Level probabilities of all categorical columns, side by side; 0 and 1
        for an observed cell.
    unknown : ndarray of shape (n_rows, n_categorical)
        Which categorical cells are missing.
    """

    mean: Float[np.ndarray, "row feature"]
    variance: Float[np.ndarray, "row feature"]
    probabilities: Float[np.ndarray, "row level"]
    unknown: Bool[np.ndarray, "row categorical"]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.mean.shape[0]

    @property
    def empty(self) -> Bool[np.ndarray, " row"]:
        """Which rows have no observed cell."""
        return (self.variance > 0).all(axis=1) & self.unknown.all(axis=1)

    def take(self, rows: np.ndarray | slice) -> CellMoments:
        """Select rows.

        Parameters
        ----------
        rows : ndarray or slice
            Row indices.

        Returns
        -------
        CellMoments
            The selected rows, in the given order.
        """
        return CellMoments(
            self.mean[rows], self.variance[rows], self.probabilities[rows], self.unknown[rows]
        )


def cell_moments(
    observations: Observations,
    parameters: MixtureParameters,
    specification: MixtureSpecification,
) -> CellMoments:
    """Give every missing cell its distribution given the observed cells of its row.

    The moments are averaged over *all* components by p(component | row). Labels
    are not used, in training rows neither: a row must look the same to the
    kernel whether its label is known or not.

    Parameters
    ----------
    observations : Observations
        Rows in standard units.
    parameters : MixtureParameters
        Point of the companion mixture, in standard units.
    specification : MixtureSpecification
        Structure of the companion mixture.

    Returns
    -------
    CellMoments
        The rows, with expected cells held within ``FARTHEST``.
    """
    mean, variance = observations.real.copy(), np.zeros_like(observations.real)
    probabilities = one_hot(observations.codes, specification.levels)
    unknown = observations.codes < 0
    holes = np.flatnonzero(np.isnan(mean).any(axis=1) | unknown.any(axis=1))
    if holes.size:
        rows = observations.take(holes)
        mean[holes], variance[holes] = conditional_moments(rows, parameters, specification)
        levels = conditional_probabilities(rows, parameters, specification)
        probabilities[holes] = np.concatenate([probabilities[holes][:, :0], *levels], axis=1)
    return CellMoments(np.clip(mean, -FARTHEST, FARTHEST), variance, probabilities, unknown)
