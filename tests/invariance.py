"""What must not change an answer: units of columns, order, a weight of two beside a row twice."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import bayesrbf
from bayesrbf.base.rows import COVARIANCE_TYPES
from tests.degenerate import Fit, fit

PLAIN = {"calibrate": False}
FAMILIES: dict[str, Fit] = {
    f"{kind} density": partial(
        fit, bayesrbf.MixtureDensity, n_components=2, covariance_type=kind, tol=1e-10
    )
    for kind in COVARIANCE_TYPES
} | {
    "mixture": partial(
        fit, bayesrbf.HybridMixtureClassifier, objective="likelihood", tol=1e-10, **PLAIN
    ),
    "mixture, one covariance": partial(
        fit,
        bayesrbf.HybridMixtureClassifier,
        shared_covariance=True,
        objective="likelihood",
        tol=1e-10,
        **PLAIN,
    ),
    "mixture, blend": partial(
        fit, bayesrbf.HybridMixtureClassifier, objective="blend", tol=1e-10, **PLAIN
    ),
    "kernel network": partial(fit, bayesrbf.KernelNetworkClassifier, **PLAIN),
    "RBF network": partial(fit, bayesrbf.RBFNetworkClassifier, n_components=2, tol=1e-10, **PLAIN),
    "sparse discriminative mixture": partial(fit, bayesrbf.SDGMClassifier, **PLAIN),
    "exemplars": partial(fit, bayesrbf.MedianLVQClassifier, metric="gower", **PLAIN),
}


def table(seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Three real columns and a categorical one, with holes, of two classes."""
    rng = np.random.default_rng(seed)
    y = np.repeat(["no", "yes"], 20)
    X = pd.DataFrame(rng.normal(size=(40, 3)) + 1.5 * (y == "yes")[:, None], columns=list("abc"))
    X = X.mask(rng.random(X.shape) < 0.1)
    X["colour"] = rng.choice(["red", "green"], 40)
    return X, y


def said(model: Any, X: pd.DataFrame, log_unit: float = 0.0) -> np.ndarray:
    """Probabilities and densities of rows; densities per unit of the first table.

    Components of a density have no names: their probabilities are compared in rising order.
    """
    p = model.predict_proba(X)
    p = p if hasattr(model, "classes_") else np.sort(p, axis=1)
    density = model.score_samples(X) + log_unit if hasattr(model, "score_samples") else np.zeros(0)
    return np.concatenate([p.ravel(), density])


def units(family: Fit, seed: int) -> float:
    """Other locations and scales of the real columns."""
    X, y = table(seed)
    other, scales = X.copy(), np.array([1e3, 0.07, 300.0])
    other[list("abc")] = X[list("abc")] * scales + [1.0, -3.0, 5e3]
    known = X[list("abc")].notna().to_numpy() @ np.log(scales)
    expected = said(family(X, y, 0), X)
    return difference(said(family(other, y, 0), other, known), expected)


def rows(family: Fit, seed: int) -> float:
    """Another order of the rows."""
    X, y = table(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    expected = said(family(X, y, 0), X)
    return difference(said(family(X.iloc[order], y[order], 0), X), expected)


def columns(family: Fit, seed: int) -> float:
    """Another order of the columns."""
    X, y = table(seed)
    other = X[["colour", "c", "a", "b"]]
    return difference(said(family(other, y, 0), other), said(family(X, y, 0), X))


def twice(family: Fit, seed: int) -> float:
    """A row of weight two in place of the row twice."""
    X, y = table(seed)
    counts = np.random.default_rng(seed).integers(1, 3, len(y))
    repeated = np.repeat(np.arange(len(y)), counts)
    weighed = partial(family.func, family.args[0], sample_weight=counts.astype(float))  # type: ignore[attr-defined]
    expected = said(family(X.iloc[repeated], y[repeated], 0), X)
    return difference(said(weighed(X, y, 0, **family.keywords), X), expected)  # type: ignore[attr-defined]


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference, relative to numbers above one."""
    return float((np.abs(found - expected) / np.maximum(1.0, np.abs(expected))).max())


@dataclass(frozen=True)
class Law:
    """A change of the table, and the largest difference of answers that rounding may leave."""

    changed: Callable[[Fit, int], float]
    most: float = 1e-8


LAWS = {
    "shift and scale of real columns": Law(units),
    "order of the rows": Law(rows),
    "order of the columns": Law(columns),
    "weight of two and the row twice": Law(twice),
}


def broken(law: str, seeds: Sequence[int]) -> dict[str, float]:
    """Largest difference of every family on the tables of some seeds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            f"{name}, seed {seed}": LAWS[law].changed(family, seed)
            for name, family in FAMILIES.items()
            for seed in seeds
        }
