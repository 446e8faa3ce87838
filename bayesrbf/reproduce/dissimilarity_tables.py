"""Tables of dissimilarities: chromosomes, echoes, votes and digits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial.distance import cdist, squareform

from bayesrbf.datasets import data_folder, load_table


@dataclass(frozen=True)
class Compared:
    """Rows by their dissimilarities, and their class codes."""

    values: Float[np.ndarray, "obs obs"]
    labels: Int[np.ndarray, " obs"]


def chromosomes() -> Compared:
    """Band patterns of 4,400 chromosomes of 22 kinds, by weighted edit distance."""
    halves = np.load(data_folder() / "chromosomes_editdist.npz")["d2"]
    return Compared(squareform(halves) / 2, _codes(load_table("chromosomes_copenhagen").y))


def aural_sonar() -> Compared:
    """One hundred sonar echoes that people compared: twice one less their similarity."""
    stored = np.load(data_folder() / "sim_aural_sonar.npz")
    return Compared(2 * (1 - stored["similarity"]), _codes(stored["y"]))


def votes() -> Compared:
    """Votes of 435 members of the House, by the share that differ; no vote is a value too."""
    table = load_table("house_votes84")
    codes = np.stack([_codes(table.X[name].fillna("?")) for name in table.X], axis=1)
    return Compared(cdist(codes, codes, "hamming"), _codes(table.y))


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
