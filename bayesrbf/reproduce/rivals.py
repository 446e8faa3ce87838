"""Classifiers of dissimilarities to compare exemplar classifiers with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
from jaxtyping import Real, Shaped
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import AffinityPropagation
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from sklearn.utils import Tags

from bayesrbf.reproduce.directions import Centring


class ClippedKernelSVC(ClassifierMixin, BaseEstimator):
    r"""Support vector machine on the positive part of the similarities.

    .. math:: K = -\tfrac12 J D J = U \Lambda U', \quad K_+ = U \max(\Lambda, 0) U'

    with :math:`J` the centring matrix; rows to predict go through the same linear map, :math:`k_+ =
    k \, U 1_{\Lambda > 0} U'`. The spectrum is clipped once, by the dissimilarities alone; the cost
    of a margin error is chosen from ``costs`` by cross-validation of the clipped similarities
    (Chen, Garcia, Gupta, Rahimi, Cazzanti, 2009, Similarity-based classification: concepts and
    algorithms, JMLR 10, section 3).
    """

    def __init__(self, costs: Sequence[float] = (1.0, 10.0, 100.0)) -> None:
        self.costs = costs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    def fit(self, D: Real[np.ndarray, "obs obs"], y: Shaped[np.ndarray, " obs"]) -> Self:
        """Clip the spectrum and fit; asymmetric dissimilarities are averaged."""
        symmetric = (D + D.T) / 2
        self._centring = Centring.of(symmetric)
        similarities = self._centring.similarities(symmetric)
        values, vectors = np.linalg.eigh(similarities)
        kept = vectors[:, values > 0]
        self._projection = kept @ kept.T
        machine = SVC(kernel="precomputed")
        self._svc = GridSearchCV(machine, {"C": list(self.costs)}, cv=5)
        self._svc.fit(similarities @ self._projection, y)
        self.classes_ = self._svc.classes_
        return self

    def predict(self, D: Real[np.ndarray, "row obs"]) -> Shaped[np.ndarray, " row"]:
        """Class of each row, from its dissimilarities to the training rows."""
        similarities = self._centring.similarities(D)
        predicted: np.ndarray = self._svc.predict(similarities @ self._projection)
        return predicted


class LabelledPropagation(ClassifierMixin, BaseEstimator):
    """Exemplars found without labels by affinity propagation, then labelled by majority.

    ``random_state`` seeds the noise that breaks ties (Frey, Dueck, 2007, Clustering by passing
    messages between data points, Science 315).
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, D: Real[np.ndarray, "obs obs"], y: Shaped[np.ndarray, " obs"]) -> Self:
        """Find exemplars and label them."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        found = AffinityPropagation(
            affinity="precomputed", damping=0.8, max_iter=500, random_state=self.random_state
        ).fit(-D)
        exemplars = found.cluster_centers_indices_
        # Messages that do not converge give no exemplar: then the medoid represents all rows.
        self.exemplars_ = exemplars if len(exemplars) else np.array([D.sum(axis=0).argmin()])
        nearest = D[:, self.exemplars_].argmin(axis=1)
        counts = np.zeros((self.exemplars_.size, self.classes_.size))
        np.add.at(counts, (nearest, codes), 1)
        self._labels = counts.argmax(axis=1)
        return self

    def predict(self, D: Real[np.ndarray, "row obs"]) -> Shaped[np.ndarray, " row"]:
        """Label of the nearest exemplar."""
        predicted: np.ndarray = self.classes_[self._labels[D[:, self.exemplars_].argmin(axis=1)]]
        return predicted
