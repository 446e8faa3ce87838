"""Prevalence, far rows and empty rows: laws that hold for every classifier."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
import pytest

from bayesrbf import (
    Blend,
    KernelNetworkClassifier,
    MedianLVQClassifier,
    RBFNetworkClassifier,
    SDGMClassifier,
    StackedClassifier,
)
from bayesrbf.fit.asking import new_rows
from tests.cases import generative, some_quick

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.*rows without a label teach nothing:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*fitted to a point:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*Give the column in the unit of training:UserWarning"),
]


def rbf(**arguments: Any) -> RBFNetworkClassifier:
    settings = {"calibrate": False} | arguments
    return RBFNetworkClassifier(2, n_init=1, max_iter=100, tol=1e-3, **settings)


def sdgm(**arguments: Any) -> SDGMClassifier:
    return SDGMClassifier(1, n_init=2, max_iter=30, companion_components=1, **arguments)


MAKERS: dict[str, Callable[..., Any]] = {
    "mixture": lambda **a: generative(n_init=1, **a),
    "mixture, calibrated": lambda **a: generative(n_init=1, calibrate=True, cv=2, **a),
    "blend": lambda **a: generative(objective=Blend(max_iter=10), **a),
    "rbf": lambda **a: rbf(**a),
    "rbf, calibrated": lambda **a: rbf(calibrate=True, cv=2, **a),
    "rbf, log densities": lambda **a: rbf(features="log_density", **a),
    "kernel": lambda **a: KernelNetworkClassifier(n_basis=5, **a),
    "kernel, calibrated": lambda **a: KernelNetworkClassifier(n_basis=5, calibrate=True, cv=2, **a),
    "sdgm": lambda **a: sdgm(**a),
    "sdgm, calibrated": lambda **a: sdgm(calibrate=True, cv=2, **a),
    "sdgm, single mode": lambda **a: sdgm(prediction="single-mode", **a),
    "sdgm, plug-in": lambda **a: sdgm(prediction="plug-in", **a),
    "sdgm, kernel": lambda **a: sdgm(form="kernel", kernel="gaussian", **a),
    "exemplars": lambda **a: MedianLVQClassifier(n_prototypes=2, calibrate=False, **a),
    "exemplars, calibrated": lambda **a: MedianLVQClassifier(n_prototypes=2, cv=2, **a),
    "exemplars, margins": lambda **a: MedianLVQClassifier(
        metric="gower", objective="glvq", calibrate=True, cv=2, **a
    ),
    "stack": lambda **a: StackedClassifier(["laplace", "normal", "normal_blend"], cv=2, **a),
}
POINTS = ("mixture, calibrated", "blend", "kernel, calibrated", "exemplars, margins", "stack")
METHODS = {
    "mixture": ("laplace", "advi", "gibbs", "nuts", "bootstrap"),
    "mixture, calibrated": ("laplace",),
    "blend": ("laplace",),
    "rbf": ("laplace", "advi", "bootstrap"),
    "rbf, log densities": ("laplace",),
    "kernel": ("laplace", "nuts", "bootstrap"),
    "kernel, calibrated": ("laplace",),
    "sdgm": ("laplace", "advi", "nuts", "bootstrap"),
    "sdgm, calibrated": ("laplace",),
    "exemplars": ("gibbs",),
    "exemplars, calibrated": ("gibbs",),
    "stack": ("laplace", "nuts"),
}
QUICK = {
    ("mixture", "gibbs"),
    ("blend", "laplace"),
    ("rbf", "laplace"),
    ("kernel", "laplace"),
    ("exemplars", "gibbs"),
}
REFINED = [
    pytest.param(name, method, marks=[] if (name, method) in QUICK else pytest.mark.slow)
    for name, methods in METHODS.items()
    for method in methods
]
NEW = (0.9, 0.1)


def population(n: int, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two classes in two columns, the second with a share of its own."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < round(share * n)).astype(float)
    return rng.normal(size=(n, 2)) + 2.0 * y[:, None], y


@cache
def training() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with holes, labels of which some are hidden, weights."""
    X, y = population(45, 0.4, 0)
    X[::6, 1] = np.nan
    y[::5] = np.nan
    weights = np.where(np.arange(45) % 3, 1.0, 2.0)
    return X, y, weights


@cache
def rows() -> np.ndarray:
    """Complete rows, and rows with holes."""
    X = population(16, 0.5, 1)[0]
    X[::2, 1] = np.nan
    X[1::8, 0] = np.nan
    return X


@cache
def frequencies() -> tuple[float, ...]:
    """Weighted shares of the labelled rows."""
    _, y, weights = training()
    counts = np.array([weights[y == code].sum() for code in (0, 1)])
    return tuple(counts / counts.sum())


@cache
def _fitted(name: str, class_prior: tuple[float, ...] | None) -> Any:
    X, y, weights = training()
    if name.startswith("mixture"):  # under the likelihood rows without a label have shares, too
        X, weights, y = X[~np.isnan(y)], weights[~np.isnan(y)], y[~np.isnan(y)]
    model = MAKERS[name](random_state=0, class_prior=class_prior)
    return model.fit(X, y, sample_weight=weights)


def fitted(name: str, class_prior: tuple[float, ...] | None = None) -> Any:
    """A classifier as its fit has left it."""
    return deepcopy(_fitted(name, class_prior))


def refined(name: str, method: str, class_prior: tuple[float, ...] | None = None) -> Any:
    options: dict[str, Any] = {
        "advi": {"covariance": "mean_field", "max_iter": 5, "pairs": 2},
        "gibbs": {"tune": 5},
        "nuts": {"tune": 10, "cores": 1},
    }.get(method, {})
    chains = {} if method == "bootstrap" else {"chains": 2}
    return fitted(name, class_prior).refine(method, draws=10, **chains, **options)


def by_bayes_rule(probabilities: np.ndarray) -> np.ndarray:
    """Probabilities at the shares of training, moved to the new ones."""
    odds = probabilities * NEW / frequencies()
    return odds / odds.sum(axis=1, keepdims=True)


# ---- another prevalence


@pytest.mark.parametrize("name", some_quick(MAKERS, *POINTS))
def test_another_prevalence_is_bayes_rule(name: str) -> None:
    plain = fitted(name).predict_proba(rows())
    moved = fitted(name, NEW).predict_proba(rows())
    np.testing.assert_allclose(moved, by_bayes_rule(plain), atol=1e-12)
    same = fitted(name, frequencies()).predict_proba(rows())
    np.testing.assert_allclose(same, plain, atol=1e-12)


@pytest.mark.parametrize(("name", "method"), REFINED)
def test_another_prevalence_is_bayes_rule_after_refine(name: str, method: str) -> None:
    plain = refined(name, method).predict_proba(rows())
    model = refined(name, method, NEW)
    moved = model.predict_proba(rows())
    np.testing.assert_allclose(moved, by_bayes_rule(plain), atol=1e-12)
    np.testing.assert_allclose(model.uncertainty(rows())["probability"], moved, atol=1e-12)


@pytest.mark.parametrize("class_prior", [None, NEW])
def test_a_filled_cell_is_the_mean_of_the_density_at_that_prevalence(class_prior: Any) -> None:
    model, grid = fitted("mixture", class_prior), np.linspace(-10.0, 12.0, 2201)
    density = np.exp(model.score_samples(np.column_stack([np.full(grid.size, 1.0), grid])))
    expected = (grid * density).sum() / density.sum()
    assert model.impute([[1.0, np.nan]])[0, 1] == pytest.approx(expected, abs=1e-6)


# ---- what is given out


@pytest.mark.parametrize(("name", "method"), REFINED)
def test_what_is_given_out_lies_within_its_interval(name: str, method: str) -> None:
    model = refined(name, method)
    given, found = model.predict_proba(rows()), model.uncertainty(rows(), prob=0.2)
    np.testing.assert_allclose(found["probability"], given, rtol=1e-12)
    assert ((found["lower"] <= given + 1e-12) & (given <= found["upper"] + 1e-12)).all()
    assert (found["sd"] > 0).any()


@pytest.mark.parametrize(("name", "method"), REFINED)
def test_draws_leave_what_was_validated_as_it_was(name: str, method: str) -> None:
    """Mixtures and exemplars without a temperature average over the draws."""
    averages = name in ("mixture", "blend", "exemplars")
    same = np.array_equal(
        refined(name, method).predict_proba(rows()), fitted(name).predict_proba(rows())
    )
    assert same != averages


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MAKERS if "calibrated" not in name])
def test_the_prevalence_of_new_rows_is_found_whatever_rows_without_a_label_say(name: str) -> None:
    """Labels were asked for by class: half of them each, where one row in ten is of the second."""
    X, y = population(60, 0.5, 2)
    hidden, new = population(150, 0.1, 3)[0], population(500, 0.1, 4)[0]
    model = MAKERS[name](random_state=0)
    model.fit(np.concatenate([X, hidden]), np.concatenate([y, np.full(150, np.nan)]))
    found = model.estimate_prior(new)
    model.adapt_prior(new)
    assert abs(float(found["probability"][1]) - 0.1) < 0.06
    assert abs(float(model.predict_proba(new)[:, 1].mean()) - 0.1) < 0.06
    if name != "mixture":  # which learns them from the other rows, too
        np.testing.assert_allclose(found["trained"], 0.5, rtol=1e-12)


def test_rows_without_a_label_are_shared_out_by_the_likelihood() -> None:
    X, y, weights = training()
    hidden = np.isnan(y)
    model = generative(unlabelled_weight=1.0, n_init=1, tol=1e-10, random_state=0)
    model.fit(X, y, sample_weight=weights)
    shares = np.where(hidden[:, None], model.predict_proba(X), y[:, None] == [0, 1])
    trained = model.estimate_prior(X)["trained"]
    np.testing.assert_allclose(trained, np.average(shares, axis=0, weights=weights), atol=1e-6)


def test_rows_with_several_classes_are_shared_out() -> None:
    X, y = population(60, 0.5, 2)
    allowed = y[:, None] == [0, 1, 2]
    allowed[:20, 2] = True  # a third class that no row has alone
    trained = sdgm(random_state=0).fit(X, allowed).estimate_prior(X)["trained"].to_numpy()
    assert trained.sum() == pytest.approx(1)
    assert trained[0] == pytest.approx(0.5)
    assert 0 < trained[2] < 0.02


# ---- rows without a cell


@pytest.mark.parametrize("name", ["kernel", "kernel, calibrated"])
def test_a_row_without_a_cell_has_the_class_frequencies(name: str) -> None:
    empty = np.full((1, 2), np.nan)
    model = fitted(name)
    np.testing.assert_allclose(model.predict_proba(empty)[0], frequencies(), rtol=1e-12)
    moved = fitted(name, NEW)
    np.testing.assert_allclose(moved.predict_proba(empty)[0], NEW, rtol=1e-12)
    model.refine("laplace", draws=10)
    np.testing.assert_allclose(model.predict_proba(empty)[0], frequencies(), rtol=1e-12)


def test_to_the_kernels_of_a_stack_too_a_row_without_a_cell_has_the_class_frequencies() -> None:
    model = fitted("stack")
    empty = new_rows(model.fitted_, np.full((1, 2), np.nan)).cells
    kernel = model.model_.members.log_probabilities(empty)[0, model.members_.index("laplace")]
    np.testing.assert_allclose(np.exp(kernel), frequencies(), rtol=1e-12)


# ---- rows far from all


FAR = (1e8, 9999999999.0, 1e12, 1e30)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(METHODS))
def test_far_rows_lose_nothing(name: str) -> None:
    """Of all draws, every one has settled on what it says far out: there is nothing to lose."""
    model = fitted(name)
    beyond = np.array([[value, cell] for value in (1e6, *FAR) for cell in (0.5, np.nan)])
    at_fit = model.predict_proba(beyond)
    np.testing.assert_allclose(at_fit, np.tile(at_fit[:2], (5, 1)), atol=1e-4)
    np.testing.assert_allclose(model.uncertainty(beyond)["probability"][0], at_fit[0], atol=0.02)
    model = refined(name, METHODS[name][0])
    found = model.predict_proba(beyond)
    np.testing.assert_allclose(found, np.tile(found[:2], (5, 1)), atol=1e-4)
    np.testing.assert_allclose(model.uncertainty(beyond)["probability"], found, atol=1e-12)
