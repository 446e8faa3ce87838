"""Dissimilarities as similarities: centred, in leading directions, and in those of the classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from jaxtyping import Float, Real, Shaped
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

RIDGES: Final = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Ridges that are tried, in median positive eigenvalues of the similarities."""
SMALL: Final = 1e-10
"""Share of the largest eigenvalue below which one is rounding."""


@dataclass(frozen=True)
class Centring:
    r"""Similarities about the mean of the rows to learn from, :math:`-\tfrac12 J D J`.

    Attributes
    ----------
    column_means : ndarray of shape (n_obs,)
        Mean dissimilarity to each row.
    mean : float
        Mean of all.
    """

    column_means: Float[np.ndarray, " obs"]
    mean: float

    @classmethod
    def of(cls, D: Real[np.ndarray, "obs obs"]) -> Centring:
        """Centre by symmetric dissimilarities of the rows to learn from.

        Parameters
        ----------
        D : ndarray of shape (n_obs, n_obs)
            Dissimilarities.

        Returns
        -------
        Centring
            Their means.
        """
        return cls(D.mean(axis=0), float(D.mean()))

    def similarities(self, D: Real[np.ndarray, "row obs"]) -> Float[np.ndarray, "row obs"]:
        """Centred similarities.

        Parameters
        ----------
        D : ndarray of shape (n_rows, n_obs)
            Dissimilarities to the rows to learn from.

        Returns
        -------
        ndarray of shape (n_rows, n_obs)
            Similarities.
        """
        centred = D - D.mean(axis=1, keepdims=True) - self.column_means + self.mean
        similarities: Float[np.ndarray, "row obs"] = -centred / 2
        return similarities


class LeadingDirections(TransformerMixin, BaseEstimator):
    r"""Squared distances in the leading directions of the similarities.

    With :math:`-\tfrac12 J D J = U \Lambda U'`, a row of similarities k is placed at
    :math:`k \, U_q \Lambda_q^{-1/2}`: classical scaling to q dimensions, which leaves the noise
    of single comparisons behind.

    Parameters
    ----------
    n_directions : int
        Number q of directions of largest eigenvalue, all of them positive.

    References
    ----------
    Gower (1968), Adding a point to vector diagrams in multivariate analysis, Biometrika 55.
    """

    def __init__(self, n_directions: int = 5) -> None:
        self.n_directions = n_directions

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    def fit(self, D: Real[np.ndarray, "obs obs"], y: object = None) -> Self:
        """Find the directions.

        Parameters
        ----------
        D : ndarray of shape (n_obs, n_obs)
            Dissimilarities; asymmetric ones are averaged.
        y : object
            Classes play no part.

        Returns
        -------
        self
            The fitted transformer.
        """
        symmetric = (D + D.T) / 2
        self._centring = Centring.of(symmetric)
        similarities = self._centring.similarities(symmetric)
        values, vectors = np.linalg.eigh(similarities)
        values, vectors = values[-self.n_directions :], vectors[:, -self.n_directions :]
        self._projection = vectors[:, values > 0] / np.sqrt(values[values > 0])
        self._places = similarities @ self._projection
        return self

    def transform(self, D: Real[np.ndarray, "row obs"]) -> Float[np.ndarray, "row obs"]:
        """Squared distances to the rows that the directions were found on.

        Parameters
        ----------
        D : ndarray of shape (n_rows, n_obs)
            Dissimilarities to those rows.

        Returns
        -------
        ndarray of shape (n_rows, n_obs)
            Squared distances in the leading directions.
        """
        places = self._centring.similarities(D) @ self._projection
        return cdist(places, self._places, "sqeuclidean")


class ClassDirections(TransformerMixin, BaseEstimator):
    r"""Squared distances in the directions that tell the classes.

    The class indicators T are regressed on the positive part of the similarities,
    :math:`K_+ = U \Lambda_+ U'`, by :math:`H = U \Lambda_+ (\Lambda_+ + \rho)^{-1} U' + 1 1' / n`.
    Rows to learn from stand where the regression on all others places them,

    .. math:: t_i - (t_i - (H T)_i) / (1 - H_{ii}),

    so that exemplars among them meet the same noise as among new rows; the ridge is the one with
    the least squared error there.
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    def fit(self, D: Real[np.ndarray, "obs obs"], y: Shaped[np.ndarray, " obs"]) -> Self:
        """Regress; asymmetric dissimilarities are averaged."""
        symmetric = (D + D.T) / 2
        self._centring = Centring.of(symmetric)
        values, vectors = np.linalg.eigh(self._centring.similarities(symmetric))
        kept = values > SMALL * values[-1]
        values, vectors = values[kept], vectors[:, kept]
        indicators = (y[:, None] == np.unique(y)).astype(np.float64)
        self._means = indicators.mean(axis=0)
        inside = vectors.T @ (indicators - self._means)
        least = np.inf
        for ridge in np.median(values) * np.array(RIDGES):
            shares = values / (values + ridge)
            own = (vectors**2) @ shares + 1 / len(y)
            residuals = indicators - self._means - vectors @ (shares[:, None] * inside)
            left_out = residuals / (1 - own)[:, None]
            if (left_out**2).sum() < least:
                least = (left_out**2).sum()
                self._projection = vectors @ (inside / (values + ridge)[:, None])
                self._places = indicators - left_out
        return self

    def fit_transform(
        self, D: Real[np.ndarray, "obs obs"], y: Shaped[np.ndarray, " obs"]
    ) -> Float[np.ndarray, "obs obs"]:
        """Squared distances among the rows to learn from, each placed by all others."""
        self.fit(D, y)
        return cdist(self._places, self._places, "sqeuclidean")

    def transform(self, D: Real[np.ndarray, "row obs"]) -> Float[np.ndarray, "row obs"]:
        """Squared distances of new rows to the rows to learn from."""
        places = self._means + self._centring.similarities(D) @ self._projection
        return cdist(places, self._places, "sqeuclidean")
