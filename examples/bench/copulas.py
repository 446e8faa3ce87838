"""Tables of which p(y | any cells) is known: Gaussian copulas of real tables, labels of a teacher.

The ranks of the real columns are normal scores z with their correlation R, and a cell is the
table's own quantile at its score. So given some cells the other scores are normal, and

    p(y | x_o) = E[f(z_o, z_m) | z_o]

is a mean over draws of them, f being a teacher that was fitted to the real labels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from scipy.stats import norm, rankdata
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from bench.tables import load

SHRUNKEN: Final = 0.95
"""Factor of the correlations, which makes them regular."""
COMPLETIONS: Final = 200

TEACHERS: Final[dict[str, Callable[[], object]]] = {
    "quadratic": lambda: make_pipeline(
        PolynomialFeatures(2, include_bias=False), LogisticRegression(C=0.02, max_iter=2000)
    ),
    "trees": lambda: ExtraTreesClassifier(200, min_samples_leaf=5, random_state=0),
}


@dataclass(frozen=True)
class Copula:
    """Rows like those of a table, with class probabilities given any of their cells."""

    sorted_cells: np.ndarray  # Of every column.
    correlation: np.ndarray
    teacher: object

    @classmethod
    def of(cls, name: str, teacher: str) -> Copula:
        """From the real columns of a table."""
        data = load(name)
        X = data.X.select_dtypes("number")
        whole = X.notna().all(axis=1).to_numpy()
        cells, y = X[whole].to_numpy(float), np.asarray(data.y, dtype=str)[whole]
        scores = norm.ppf((rankdata(cells, axis=0) - 0.5) / len(cells))
        correlation = SHRUNKEN * np.corrcoef(scores.T) + (1 - SHRUNKEN) * np.eye(len(scores.T))
        labels = np.unique(y, return_inverse=True)[1]
        return cls(np.sort(cells, axis=0), correlation, TEACHERS[teacher]().fit(scores, labels))

    def scores(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Normal scores of new rows."""
        return rng.multivariate_normal(np.zeros(len(self.correlation)), self.correlation, n)

    def cells(self, scores: np.ndarray) -> pd.DataFrame:
        """Cells of rows in the units of the table."""
        columns = [
            np.quantile(column, norm.cdf(own))
            for column, own in zip(self.sorted_cells.T, scores.T, strict=True)
        ]
        return pd.DataFrame(dict(enumerate(columns))).rename(columns="x{}".format)

    def probabilities(self, scores: np.ndarray) -> np.ndarray:
        """Class probabilities of complete rows."""
        found: np.ndarray = self.teacher.predict_proba(scores)
        return found

    def labels(self, scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Labels of complete rows, drawn."""
        below = self.probabilities(scores).cumsum(axis=1) > rng.random((len(scores), 1))
        drawn: np.ndarray = below.argmax(axis=1)
        return drawn

    def given(self, scores: np.ndarray, hidden: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Class probabilities of rows of which only some cells are known."""
        completed = np.repeat(scores[:, None], COMPLETIONS, axis=1)
        for row, gone in enumerate(hidden):
            if gone.any():
                law = self.law(scores[row], gone)
                completed[row][:, gone] = rng.multivariate_normal(*law, COMPLETIONS)
        said = self.probabilities(completed.reshape(-1, scores.shape[1]))
        return said.reshape(len(scores), COMPLETIONS, -1).mean(axis=1)

    def law(self, scores: np.ndarray, gone: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of the hidden scores of a row given the others."""
        R = self.correlation
        weights = np.linalg.solve(R[np.ix_(~gone, ~gone)], R[np.ix_(~gone, gone)]).T
        covariance = R[np.ix_(gone, gone)] - weights @ R[np.ix_(~gone, gone)]
        return weights @ scores[~gone], covariance
