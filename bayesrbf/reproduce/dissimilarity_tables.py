"""Tables of dissimilarities: chromosomes, echoes, votes and digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial.distance import cdist, squareform

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
