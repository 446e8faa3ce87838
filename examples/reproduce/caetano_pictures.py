"""The effects of the link and of the penalty: the numbers behind the paper's pictures."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int
from sklearn.model_selection import train_test_split

from bayesrbf.datasets import load_table
from reproduce.alternation import AlternatingNetwork
from reproduce.cells import Cell, Figures

GAMMAS: Final = (0.0, 1e2, 1e3, 1e4)
PENALTIES: Final = (0.0, 0.1, 0.3, 1.0, 3.0)
MANY: Final = 20  # Components at the start of an annihilation.
MEANS: Final = ((-0.64, 3.41), (-1.81, -3.52), (-1.52, 1.75))
COVARIANCES: Final = (
    ((0.729, -0.592), (-0.592, 0.783)),
    ((0.176, -0.254), (-0.254, 3.541)),
    ((0.283, -0.159), (-0.159, 0.385)),
)


def cells(
    seeds: int, gammas: tuple[float, ...] = GAMMAS, penalties: tuple[float, ...] = PENALTIES
) -> Iterator[Cell]:
    """Cells of all pictures: error in %, distance of mixture weights from the link, components."""
    for seed in range(seeds):
        for gamma in gammas:
            for table in ("three Gaussians", "iris"):
                yield Cell(f"link/{table}/{gamma:g}/{seed}", partial(_link, table, gamma, seed))
        for l1 in penalties:
            yield Cell(f"annihilation/iris/{l1:g}/{seed}", partial(_annihilation, l1, seed))


def three_gaussians(
    n_each: int, rng: np.random.Generator
) -> tuple[Float[np.ndarray, "obs 2"], Int[np.ndarray, " obs"]]:
    """Draw a table like the paper's: the first cluster is a class, the other two share one."""
    parts = [
        rng.multivariate_normal(mean, covariance, n_each)
        for mean, covariance in zip(MEANS, COVARIANCES, strict=True)
    ]
    return np.concatenate(parts), np.repeat([0, 1, 1], n_each)


def _halves(seed: int) -> tuple[Any, Any, Any, Any]:
    """A random half of Iris to learn from, and the other half."""
    data = load_table("iris")
    return tuple(
        train_test_split(
            data.X.to_numpy(), data.y, test_size=0.5, stratify=data.y, random_state=seed
        )
    )


def _link(table: str, gamma: float, seed: int) -> Figures:
    """Two components for three clusters, or six for three classes of Iris."""
    model = AlternatingNetwork(6, link=gamma, n_init=2, max_iter=40, tol=1e-5, random_state=seed)
    if table == "iris":
        X, X_new, y, y_new = _halves(seed)
    else:
        rng = np.random.default_rng(seed)
        (X, y), (X_new, y_new) = three_gaussians(300, rng), three_gaussians(2000, rng)
        model.set_params(n_components=2, features="density", covariance_type="full", l2=1.0)
    figures = _fitted(model, X, y, X_new, y_new)
    sizes = np.abs(model.coef_).sum(axis=0)
    weights = model.network_.parameters.mixture.weights
    distance = 0.5 * float(np.abs(weights - sizes / sizes.sum()).sum())
    return figures | {"distance": distance}


def _annihilation(l1: float, seed: int) -> Figures:
    """Components left where the penalty removes those that no output uses."""
    X, X_new, y, y_new = _halves(seed)
    model = AlternatingNetwork(MANY, l1=l1, n_init=1, max_iter=40, tol=1e-4, random_state=seed)
    figures = _fitted(model, X, y, X_new, y_new)
    return figures | {"components": int(model.coef_.shape[1])}


def _fitted(
    model: AlternatingNetwork, X: Any, y: Any, X_new: Any, y_new: Any
) -> dict[str, float | int | str]:
    """Fit and return the error in %."""
    model.fit(X, y)
    return {"error": 100 * float(np.mean(model.predict(X_new) != y_new))}
