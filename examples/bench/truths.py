"""Tables of which p(y | any cells) is known by their formula, of normal columns.

Probabilities are a function of one or two weighed sums of the columns. Given some cells these sums
are normal, and so a probability is a mean over a grid of them. In most tables one column tells more
than all others together, and rows are asked about with it and without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from scipy.special import expit, softmax

GRIDS: Final = {1: np.linspace(-6, 6, 1201), 2: np.linspace(-5, 5, 61)}
"""Standard normal numbers on a grid, by how many sums there are."""


@dataclass(frozen=True)
class Truth:
    """Normal columns, and class probabilities by weighed sums of them."""

    weights: np.ndarray
    """Of every column in every sum; the first column tells most."""
    link: Callable[[np.ndarray], np.ndarray]
    """Class probabilities by the sums, along the last axis."""
    correlation: float = 0.0
    """Of the first two columns."""

    @property
    def covariance(self) -> np.ndarray:
        """Of the columns."""
        covariance = np.eye(len(self.weights))
        covariance[0, 1] = covariance[1, 0] = self.correlation
        return covariance

    def drawn(self, n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
        """Rows and labels."""
        d = len(self.weights)
        cells = rng.normal(size=(n, d)) @ np.linalg.cholesky(self.covariance).T
        below = self.link(cells @ self.weights).cumsum(axis=1) > rng.random((n, 1))
        return pd.DataFrame(cells).rename(columns="x{}".format), below.argmax(axis=1)

    def given(self, X: pd.DataFrame, hidden: list[int]) -> np.ndarray:
        """Class probabilities of rows of which some columns are hidden."""
        seen = [column for column in range(X.shape[1]) if column not in hidden]
        cells, S, W = X.to_numpy(), self.covariance, self.weights
        of_seen = S[np.ix_(hidden, seen)] @ np.linalg.inv(S[np.ix_(seen, seen)])
        left = S[np.ix_(hidden, hidden)] - of_seen @ S[np.ix_(seen, hidden)]
        means = cells[:, seen] @ (W[seen] + of_seen.T @ W[hidden])
        values, vectors = np.linalg.eigh(W[hidden].T @ left @ W[hidden])
        grid = GRIDS[W.shape[1]]
        z = np.stack(np.meshgrid(*[grid] * W.shape[1]), axis=-1).reshape(-1, W.shape[1])
        mass = np.exp(-np.square(z).sum(axis=1) / 2)
        moves = z @ (vectors * np.sqrt(np.maximum(values, 0))).T
        rows = [mass @ self.link(mean + moves) for mean in means]
        return np.array(rows) / mass.sum()

    def patterns(self) -> Iterator[tuple[str, list[int]]]:
        """Columns that are hidden, by what a pattern is called."""
        d = len(self.weights)
        yield "nothing", []
        yield "the telling column", [0]
        yield "a weak column", [1]
        yield "half, not the telling one", list(range(d // 2, d))
        yield "half, with the telling one", list(range(d // 2))
        yield "all but a weak one", [0, *range(2, d)]


def _two(p: np.ndarray) -> np.ndarray:
    """Probabilities of two classes by that of the second."""
    return np.concatenate([1 - p, p], axis=-1)


def _logistic(u: np.ndarray) -> np.ndarray:
    return _two(expit(u))


def _hump(u: np.ndarray) -> np.ndarray:
    return _two(expit(4 * np.abs(u) - 3))


def _step(u: np.ndarray) -> np.ndarray:
    return _two(0.1 + 0.8 * (u > 0))


def _of_three(u: np.ndarray) -> np.ndarray:
    return softmax(np.concatenate([u, np.zeros_like(u[..., :1])], axis=-1), axis=-1)


_TELLING: Final = [4.0, 0.5, 0.5, 0.3, 0.3, 0.0]
_BENT: Final = [1.0, 0.2, 0.2, 0.1, 0.1, 0.0]
TRUTHS: Final = {
    "one of 6 columns": Truth(np.c_[_TELLING], _logistic),
    "one of 12 columns": Truth(np.c_[_TELLING + [0.0] * 6], _logistic),
    "correlated columns": Truth(np.c_[[4.0, 0.3, 0.6, 0.3, 0.0, 0.0]], _logistic, 0.6),
    "hump": Truth(np.c_[_BENT], _hump),
    "step": Truth(np.c_[_BENT], _step),
    "even": Truth(np.ones((6, 1)), _logistic),
    "three classes": Truth(
        np.c_[_TELLING, [0.0, 2.0, 0.5, -0.3, 0.3, 0.0]],
        _of_three,
    ),
}
