"""A class of one labelled row keeps a probability near its share, and fit says so."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    RBFNetworkClassifier,
    SDGMClassifier,
    StackedClassifier,
)
from tests.cases import some_quick

FAMILIES: dict[str, Callable[[], Any]] = {
    "mixture": lambda: HybridMixtureClassifier(random_state=0),
    "kernel network": lambda: KernelNetworkClassifier(random_state=0),
    "RBF network": lambda: RBFNetworkClassifier(2, n_init=1, random_state=0),
    "sparse mixture": lambda: SDGMClassifier(n_init=1, random_state=0),
    "exemplars": lambda: MedianLVQClassifier(random_state=0),
    "stack": lambda: StackedClassifier(random_state=0),
}


def table(classes: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of which one has the last class, that looks like the first, and new ones like them."""
    rng = np.random.default_rng(seed)
    y = np.append(rng.integers(0, classes - 1, 199), classes - 1)

    def drawn(labels: np.ndarray) -> np.ndarray:
        X: np.ndarray = rng.normal(size=(labels.size, 2))
        return X + 1.5 * (classes == 3) * np.outer(labels == 1, [1, 0])

    return drawn(y), y, drawn(np.repeat(y, 5))


@pytest.mark.parametrize("classes", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("family", some_quick(FAMILIES, "mixture", "kernel network"))
def test_a_class_of_one_row_keeps_its_share(family: str, classes: int) -> None:
    ratios = []
    for seed in range(2):
        X, y, new = table(classes, seed)
        with pytest.warns(UserWarning, match=f"one labelled row alone is of class {classes - 1}"):
            model = FAMILIES[family]().fit(X, y)
        ratios.append(model.predict_proba(new)[:, -1].mean() * y.size)
    assert 0.6 < np.mean(ratios) < 1.6


@pytest.mark.slow
def test_draws_are_around_it() -> None:
    X, y, new = table(3, 0)
    with pytest.warns(UserWarning, match="cannot be validated"):
        model = StackedClassifier(random_state=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # trees stay at their point
        model.refine("laplace", draws=50)
    p = model.predict_proba(new[:40])
    summary = model.uncertainty(new[:40])
    assert ((summary.lower.values <= p + 1e-9) & (p <= summary.upper.values + 1e-9)).all()


def test_other_classes_are_calibrated_as_without_it() -> None:
    X, y, _ = table(3, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = StackedClassifier(["laplace", "normal"], random_state=0).fit(X, y)
    held = model.fitted_.model.held
    assert held.never_held_out.tolist() == [2]
    judged = held.among_judged().values
    np.testing.assert_array_equal(judged[..., :2], held.values[..., :2])
    # Two classes are left: what is said of them is what the third leaves, shared as before.
    p = np.exp(judged - np.logaddexp.reduce(judged, axis=-1, keepdims=True))
    assert p[..., 2].max() == 0.0
