"""No family is sure of a class where no row has been, nor is it moved where rows have been."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
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
from bayesrbf.fit.asking import new_rows
from bayesrbf.fit.stages import NEAR
from tests.cases import some_quick

FAMILIES: dict[str, Callable[[], Any]] = {
    "mixture": lambda: HybridMixtureClassifier(random_state=0),
    "full mixture": lambda: HybridMixtureClassifier(
        2, covariance_type="full", objective="likelihood", calibrate=False, random_state=0
    ),
    "kernel network": lambda: KernelNetworkClassifier(random_state=0),
    "RBF network": lambda: RBFNetworkClassifier(2, n_init=1, random_state=0),
    "sparse mixture": lambda: SDGMClassifier(1, n_init=1, random_state=0),
    "exemplars": lambda: MedianLVQClassifier(random_state=0),
    "stack": lambda: StackedClassifier(random_state=0),
}
MIN_PROBABILITY = 1e-6


def table() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 25)
    return rng.normal(size=(75, 3)) + 1.5 * np.eye(3)[y], y


def far(X: np.ndarray) -> np.ndarray:
    """Rows 100 standard deviations away: in one column, alone or not, and in all."""
    mean, sd = X.mean(axis=0), X.std(axis=0)
    rows = []
    for sign in (1, -1):
        away = mean + sign * 100 * sd
        rows.append(away)
        for column in range(X.shape[1]):
            own = np.arange(X.shape[1]) == column
            rows += [np.where(own, away, mean), np.where(own, away, np.nan)]
    return np.array(rows)


@pytest.mark.parametrize("family", some_quick(FAMILIES, "mixture", "kernel network", "stack"))
def test_nobody_is_sure_at_rows_that_are_far(family: str) -> None:
    X, y = table()
    model = FAMILIES[family]().fit(X, y)
    p = model.predict_proba(far(X))
    assert p.min() > MIN_PROBABILITY
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    # Nothing is changed within reach of the training rows, and the further, the less is known.
    fit = model.fitted_
    edge = X.max(axis=0) + 0.9 * NEAR * X.std(axis=0)
    for rows in (X, edge[None]):
        near = tuple(one for one in fit.chain.stages if one is not fit.extrapolation)
        plain = replace(fit.chain, stages=near).reported(new_rows(fit, rows).cells)
        np.testing.assert_array_equal(np.exp(plain), model.predict_proba(rows))
    shares = np.bincount(y) / y.size
    outside = X.max(axis=0) + np.array([[10.0], [100.0]]) * X.std(axis=0)
    at_ten, at_hundred = model.predict_proba(outside)
    assert at_ten.max() < 0.95
    np.testing.assert_allclose(at_hundred, shares, atol=0.05)
    nowhere = model.predict_proba(X.mean(axis=0, keepdims=True) + 1e9)
    np.testing.assert_allclose(nowhere[0], shares, atol=1e-3)


def test_draws_and_intervals_know_as_little() -> None:
    X, y = table()
    model = HybridMixtureClassifier(random_state=0).fit(X, y).refine("laplace", draws=40)
    rows = far(X)
    drawn = model.predict_posterior(rows)["predictions"]["probability"]
    assert float(drawn.min()) > MIN_PROBABILITY
    p, summary = model.predict_proba(rows), model.uncertainty(rows)
    assert ((summary.lower.values <= p + 1e-9) & (p <= summary.upper.values + 1e-9)).all()


def test_other_prevalences_are_reached_by_the_rule_of_bayes() -> None:
    X, y = table()
    model = HybridMixtureClassifier(class_prior=[0.8, 0.1, 0.1], random_state=0).fit(X, y)
    nowhere = model.predict_proba(X.mean(axis=0, keepdims=True) + 1e9)
    np.testing.assert_allclose(nowhere[0], [0.8, 0.1, 0.1], atol=1e-3)
