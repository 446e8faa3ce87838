"""Tables of dissimilarities, and the methods that exemplar classifiers are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
from jaxtyping import Float, Int, Real, Shaped
from scipy.spatial.distance import cdist, squareform
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.cluster import AffinityPropagation
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from sklearn.utils import Tags

from bayesrbf.datasets import data_folder, load_table

Train = Int[np.ndarray, " train"]
Test = Int[np.ndarray, " test"]
Parts = tuple[Float[np.ndarray, "train train"], Float[np.ndarray, "test train"]]


@dataclass(frozen=True)
class Compared:
    """Rows by their dissimilarities, and their class codes."""

    values: Float[np.ndarray, "obs obs"]
    labels: Int[np.ndarray, " obs"]

    def split(self, train: Train, test: Test) -> Parts:
        """Dissimilarities among training rows, and of test rows to them."""
        return self.values[np.ix_(train, train)], self.values[np.ix_(test, train)]


@dataclass(frozen=True)
class Categories:
    r"""Rows of categories, compared by value differences.

    .. math:: d(x, z) = \sum_j \sum_c (p(c | x_j) - p(c | z_j))^2

    Frequencies of the classes in a level are those of the training rows, with half a row more in
    every class (Stanfill, Waltz, 1986, Toward memory-based reasoning, Communications of the ACM
    29).
    """

    levels: Int[np.ndarray, "obs column"]  # Codes.
    labels: Int[np.ndarray, " obs"]

    def split(self, train: Train, test: Test) -> Parts:
        """Dissimilarities among training rows, whose labels are used, and of test rows to them."""
        parts = []
        for column in self.levels.T:
            counts = np.full((column.max() + 1, self.labels.max() + 1), 0.5)
            np.add.at(counts, (column[train], self.labels[train]), 1)
            parts.append((counts / counts.sum(axis=1, keepdims=True))[column])
        frequencies = np.concatenate(parts, axis=1)
        known, new = frequencies[train], frequencies[test]
        return cdist(known, known, "sqeuclidean"), cdist(new, known, "sqeuclidean")


def chromosomes() -> Compared:
    """Band patterns of 4,400 chromosomes of 22 kinds, by weighted edit distance."""
    halves = np.load(data_folder() / "chromosomes_editdist.npz")["d2"]
    return Compared(squareform(halves) / 2, _codes(load_table("chromosomes_copenhagen").y))


def aural_sonar() -> Compared:
    """One hundred sonar echoes that people compared: two times one minus the similarity."""
    stored = np.load(data_folder() / "sim_aural_sonar.npz")
    return Compared(2 * (1 - stored["similarity"]), _codes(stored["y"]))


def votes() -> Compared:
    """Votes of 435 members of the House, by the share that differ; an abstention is a level."""
    rows = categories_of_votes()
    return Compared(cdist(rows.levels, rows.levels, "hamming"), rows.labels)


def categories_of_votes() -> Categories:
    """Votes of 435 members of the House, by value differences; an abstention is a level."""
    table = load_table("house_votes84")
    levels = np.stack([_codes(table.X[name].fillna("?")) for name in table.X], axis=1)
    return Categories(levels, _codes(table.y))


def sonar() -> Compared:
    """Echoes of mines and rocks, by squared Euclidean distance of 60 energies."""
    table = load_table("sonar")
    X = table.X.to_numpy()
    return Compared(cdist(X, X, "sqeuclidean"), _codes(table.y))


def digits() -> Compared:
    """Images of 1,797 digits, by squared Euclidean distance of their pixels."""
    table = load_table("digits")
    X = table.X.to_numpy()
    return Compared(cdist(X, X, "sqeuclidean"), _codes(table.y))


def _codes(labels: Any) -> Int[np.ndarray, " obs"]:
    """Positions of labels among their sorted values."""
    return np.unique(np.asarray(labels), return_inverse=True)[1]


RIDGES: Final = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Ridges to choose from, in median positive eigenvalues of the similarities."""
SMALL: Final = 1e-10  # Share of the largest eigenvalue below which an eigenvalue is rounding error.


@dataclass(frozen=True)
class Centring:
    r"""Similarities centred at the mean of the training rows, :math:`-\tfrac12 J D J`."""

    column_means: Float[np.ndarray, " obs"]  # Mean dissimilarity to each row.
    mean: float

    @classmethod
    def of(cls, D: Real[np.ndarray, "obs obs"]) -> Centring:
        """Means of symmetric dissimilarities of the training rows."""
        return cls(D.mean(axis=0), float(D.mean()))

    def similarities(self, D: Real[np.ndarray, "row obs"]) -> Float[np.ndarray, "row obs"]:
        """Centred similarities to the training rows."""
        centred = D - D.mean(axis=1, keepdims=True) - self.column_means + self.mean
        return np.asarray(-centred / 2)


class LeadingDirections(TransformerMixin, BaseEstimator):
    r"""Squared distances in the leading directions of the similarities.

    With :math:`-\tfrac12 J D J = U \Lambda U'`, a row of similarities k is placed at
    :math:`k \, U_q \Lambda_q^{-1/2}`: classical scaling to the q = ``n_directions`` directions of
    largest positive eigenvalue (Gower, 1968, Adding a point to vector diagrams in multivariate
    analysis, Biometrika 55). This leaves out the noise of single comparisons.
    """

    def __init__(self, n_directions: int = 5) -> None:
        self.n_directions = n_directions

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    def fit(self, D: Real[np.ndarray, "obs obs"], y: object = None) -> Self:
        """Find the directions, without the classes; asymmetric dissimilarities are averaged."""
        symmetric = (D + D.T) / 2
        self._centring = Centring.of(symmetric)
        similarities = self._centring.similarities(symmetric)
        values, vectors = np.linalg.eigh(similarities)
        values, vectors = values[-self.n_directions :], vectors[:, -self.n_directions :]
        self._projection = vectors[:, values > 0] / np.sqrt(values[values > 0])
        self._places = similarities @ self._projection
        return self

    def transform(self, D: Real[np.ndarray, "row obs"]) -> Float[np.ndarray, "row obs"]:
        """Squared distances to the training rows in the leading directions."""
        places = self._centring.similarities(D) @ self._projection
        return cdist(places, self._places, "sqeuclidean")


class ClassDirections(TransformerMixin, BaseEstimator):
    r"""Squared distances in the directions that separate the classes.

    The class indicators T are regressed on the positive part of the similarities,
    :math:`K_+ = U \Lambda_+ U'`, by :math:`H = U \Lambda_+ (\Lambda_+ + \rho)^{-1} U' + 1 1' / n`.
    A training row is placed by the regression on all others,

    .. math:: t_i - (t_i - (H T)_i) / (1 - H_{ii}),

    so that training rows have the same noise as new rows. The ridge has the least squared error
    there.
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    def fit(self, D: Real[np.ndarray, "obs obs"], y: Shaped[np.ndarray, " obs"]) -> Self:
        """Choose the ridge and regress; asymmetric dissimilarities are averaged."""
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
        """Squared distances among the training rows, each placed by all others."""
        self.fit(D, y)
        return cdist(self._places, self._places, "sqeuclidean")

    def transform(self, D: Real[np.ndarray, "row obs"]) -> Float[np.ndarray, "row obs"]:
        """Squared distances of new rows to the training rows."""
        places = self._means + self._centring.similarities(D) @ self._projection
        return cdist(places, self._places, "sqeuclidean")


class ClippedKernelSVC(ClassifierMixin, BaseEstimator):
    r"""Support vector machine on the positive part of the similarities.

    .. math:: K = -\tfrac12 J D J = U \Lambda U', \quad K_+ = U \max(\Lambda, 0) U'

    with :math:`J` the centring matrix; rows to predict go through the same linear map,
    :math:`k_+ = k \, U 1_{\Lambda > 0} U'`. The spectrum is clipped once, by the dissimilarities
    alone; the cost of a margin error is chosen from ``costs`` by cross-validation of the clipped
    similarities (Chen, Garcia, Gupta, Rahimi, Cazzanti, 2009, Similarity-based classification:
    concepts and algorithms, JMLR 10, section 3).
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
        return np.asarray(self._svc.predict(similarities @ self._projection))


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
        return np.asarray(self.classes_[self._labels[D[:, self.exemplars_].argmin(axis=1)]])
