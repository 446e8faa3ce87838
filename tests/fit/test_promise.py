"""Probabilities come true on new rows that come as the training rows came."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayesrbf import (
    HybridMixtureClassifier,
    KernelNetworkClassifier,
    RBFNetworkClassifier,
    StackedClassifier,
)

LINES = [(0.2, 0.10, 0.05), (0.2, 0.24, 0.05), (0.2, 0.05, 0.24), (0.28, 0.24, 0.0)]
"""Events; how often one column is missing in events, and in other rows."""


def one_column_missing(
    n: int, rng: np.random.Generator, events: float, of_events: float, of_others: float
) -> tuple[pd.DataFrame, np.ndarray]:
    """Six normal columns, each .6 larger in events; the first is missing by the class."""
    y = (rng.random(n) < events).astype(int)
    X = pd.DataFrame(rng.normal(size=(n, 6)) + 0.6 * y[:, None]).add_prefix("x")
    missing = rng.random(n) < np.where(y == 1, of_events, of_others)
    return X.assign(x0=X["x0"].mask(missing)), y


def over_share(model: Any, line: tuple[float, float, float], seed: int) -> float:
    """Mean probability of the event in new rows over its share of the training rows.

    It is free of the luck of the class share of few training rows, unlike observed over expected.
    """
    rng = np.random.default_rng(seed)
    X, y = one_column_missing(500, rng, *line)
    new, _ = one_column_missing(4000, rng, *line)
    return float(model.fit(X, y).predict_proba(new)[:, 1].mean() / y.mean())


@pytest.mark.parametrize("make", [HybridMixtureClassifier, RBFNetworkClassifier])
@pytest.mark.parametrize("line", LINES[1:3])
def test_a_column_that_is_missing_by_the_class_moves_no_class_share(
    make: Any, line: tuple[float, float, float]
) -> None:
    assert over_share(make(random_state=0), line, 0) == pytest.approx(1, abs=0.12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [StackedClassifier, HybridMixtureClassifier, KernelNetworkClassifier, RBFNetworkClassifier],
)
@pytest.mark.parametrize("line", LINES)
def test_the_mean_probability_is_the_class_share_in_every_family(
    make: Any, line: tuple[float, float, float]
) -> None:
    ratios = [over_share(make(random_state=0), line, seed) for seed in range(3)]
    assert np.mean(ratios) == pytest.approx(1, abs=0.08)
    assert ratios == pytest.approx([1] * 3, abs=0.15)
