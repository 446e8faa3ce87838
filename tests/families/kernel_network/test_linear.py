"""The linear network: a multinomial logistic regression whose penalty has the largest evidence."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pymc as pm
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from bayesrbf import StackedClassifier
from bayesrbf.base.priors import MixturePrior
from bayesrbf.base.rows import Observations
from bayesrbf.families.kernel_network.fitted import FittedKernelNetwork
from bayesrbf.families.kernel_network.kernels import CellMoments, linear_basis
from bayesrbf.families.kernel_network.posterior import (
    KernelNetworkLogPosterior,
    attenuated,
    class_log_probabilities,
    fit_by_evidence,
    fit_output,
    output_layer,
)
from bayesrbf.families.stack.members import MEMBERS, SharedTraining
from bayesrbf.fit.model import Axes
from bayesrbf.table import distinct


def rows(n: int, n_classes: int, seed: int = 0, holes: float = 0.0) -> Observations:
    """Two correlated real columns and a categorical one, classes by a sum of them."""
    rng = np.random.default_rng(seed)
    real = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 1.0]])
    codes = rng.integers(0, 3, size=(n, 1))
    slopes = rng.normal(size=(3, n_classes))
    logits = real @ slopes + rng.normal(size=(3, n_classes))[codes[:, 0]]
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    real[rng.random(real.shape) < holes] = np.nan
    return Observations(real, codes, labels, np.ones(n))


def training(of: Observations, n_classes: int) -> SharedTraining:
    return SharedTraining(distinct(of)[0], (3,), n_classes, MixturePrior(), 0)


def fitted(of: Observations, n_classes: int) -> FittedKernelNetwork:
    network = MEMBERS["linear"].fit(training(of, n_classes))
    assert isinstance(network, FittedKernelNetwork)
    return network


def moments(of: Observations) -> CellMoments:
    probabilities = np.eye(3)[of.codes[:, 0]]
    return CellMoments(of.real, np.zeros_like(of.real), probabilities, of.codes < 0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_network_without_a_kernel_is_a_logistic_regression(n_classes: int) -> None:
    """That of scikit-learn on the same features, at the penalty that was found."""
    of = rows(150, n_classes)
    network = fitted(of, n_classes)
    shared = training(of, n_classes)
    features = network.features(shared.mapped("half_rank"))
    labels = shared.rows.labels
    other = LogisticRegression(C=1 / network.l2, tol=1e-8, max_iter=5000).fit(features, labels)
    found = np.exp(class_log_probabilities(features, network.theta, n_classes))
    # The intercepts have a wide prior here, and none there.
    np.testing.assert_allclose(found, other.predict_proba(features), atol=5e-3)


def log_evidence(target: KernelNetworkLogPosterior) -> float:
    """Laplace's approximation by the exact curvature, to a constant."""
    theta = fit_output(target, tol=1e-8, max_iter=5000).theta
    step, n = 1e-5, theta.size
    curvature = np.array(
        [
            (
                target.value_and_gradient(theta - step * unit)[1]
                - target.value_and_gradient(theta + step * unit)[1]
            )
            / (2 * step)
            for unit in np.eye(n)
        ]
    )
    return target.value_and_gradient(theta)[0] - 0.5 * float(np.linalg.slogdet(curvature)[1])


def test_the_penalty_has_the_largest_evidence() -> None:
    """By Laplace's approximation with the exact curvature; of two classes there is one output."""
    of = rows(200, 2, seed=3)
    basis = linear_basis(moments(of), of.weights, 250)
    posterior = partial(
        KernelNetworkLogPosterior, basis.features(moments(of)), of.labels, of.weights, 2
    )
    _, precision = fit_by_evidence(posterior, tol=1e-6, max_iter=2000)
    best = minimize_scalar(lambda log: -log_evidence(posterior(np.exp(log))), bounds=(-6, 6))
    assert abs(np.log(precision) - best.x) < 0.25
    assert log_evidence(posterior(precision)) > -best.fun - 0.1


def test_labels_of_noise_are_penalised_far_more() -> None:
    of = rows(200, 2, seed=1)
    noise = replace(of, labels=np.random.default_rng(5).integers(0, 2, 200))
    told, random = fitted(of, 2), fitted(noise, 2)
    assert random.l2 > 10 * told.l2
    p = np.exp(random.class_log_joint(training(noise, 2).mapped("half_rank")))
    assert np.abs(p - 0.5).max() < 0.15


def test_features_are_principal_axes_of_unit_columns_and_indicators() -> None:
    of = rows(120, 2)
    weights = np.random.default_rng(0).uniform(0.5, 2, 120)
    basis = linear_basis(moments(of), weights, 250)
    features, shares = basis.features(moments(of)), weights / weights.sum()
    np.testing.assert_allclose(shares @ features, 0, atol=1e-12)
    second = (features * shares[:, None]).T @ features
    np.testing.assert_allclose(second, np.diag(np.diag(second)), atol=1e-12)
    indicators = shares @ moments(of).probabilities
    np.testing.assert_allclose(np.trace(second), 3 + (indicators * (1 - indicators)).sum())
    # Of indicators that add up to one an axis is lost.
    assert basis.n_basis == 5


def test_a_row_without_a_cell_has_the_class_frequencies() -> None:
    network = fitted(rows(150, 2, holes=0.2), 2)
    empty = Observations(np.full((1, 3), np.nan), np.array([[-1]]), np.array([-1]), np.ones(1))
    np.testing.assert_allclose(np.exp(network.class_log_joint(empty))[0], network.class_frequencies)


def test_rows_twice_weigh_twice_and_columns_have_no_order() -> None:
    of = rows(100, 3, seed=2)
    twice = of.take(np.repeat(np.arange(100), 2))
    heavy = replace(of, weights=2 * of.weights)
    new = rows(20, 3, seed=9)
    points = [fitted(one, 3).class_log_joint(new) for one in (twice, heavy)]
    np.testing.assert_allclose(*points, atol=1e-6)
    turned, n = replace(of, real=of.real[:, ::-1]), replace(new, real=new.real[:, ::-1])
    np.testing.assert_allclose(
        fitted(of, 3).class_log_joint(new), fitted(turned, 3).class_log_joint(n), atol=1e-3
    )


def test_the_graph_is_the_log_posterior() -> None:
    of = rows(60, 3)
    network, shared = fitted(of, 3), training(of, 3)
    seen = shared.mapped("half_rank")
    axes = Axes(None, np.arange(seen.n_obs), np.array(["a", "b", "c"]))
    log_density = network.declare(seen, axes).compile_logp()
    target = network.log_posterior(seen)
    rng = np.random.default_rng(0)
    differences = []
    for _ in range(3):
        theta = rng.normal(size=target.dimension)
        weights, intercepts = output_layer(theta, network.n_features)
        point = {"coefficients": weights, "intercepts": intercepts}
        differences.append(log_density(point) - target.value_and_gradient(theta)[0])
    assert isinstance(network.declare(seen, axes), pm.Model)
    np.testing.assert_allclose(differences, differences[0], atol=1e-8)


def test_a_stack_finds_a_rule_that_adds_up_many_columns() -> None:
    """Which no kernel on as few rows does."""
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(150, 30)), rng.normal(size=(400, 30))
    slopes = rng.choice([-1.0, 1.0], 30)
    y, y_new = ((some @ slopes > 0).astype(int) for some in (X, X_new))
    losses = []
    for members in (["laplace_short"], ["laplace_short", "linear"]):
        model = StackedClassifier(members, cv=3, random_state=0).fit(X, y)
        p = model.predict_proba(X_new)
        losses.append(-np.log(p[np.arange(400), y_new]).mean())
    assert losses[1] < losses[0] - 0.1


@pytest.mark.parametrize(("n_classes", "share"), [(2, 0.2), (3, 0.7), (5, 0.9)])
def test_missing_cells_are_averaged_over(n_classes: int, share: float) -> None:
    """Against draws of the cells: closer than the rule at expected cells, most of two classes."""
    rng = np.random.default_rng(n_classes)
    slopes = rng.normal(size=(2, 1 if n_classes == 2 else n_classes))
    variances = rng.uniform(0.2, 2.0, size=(20, 2))
    centre = rng.normal(size=(20, 2))
    cells = centre + np.sqrt(variances) * rng.normal(size=(20_000, 20, 2))

    def log_p(x: np.ndarray) -> np.ndarray:
        logits = x @ slopes
        return log_softmax(np.c_[np.zeros(len(x)), logits] if n_classes == 2 else logits, axis=1)

    exact = np.exp(log_p(cells.reshape(-1, 2))).reshape(20_000, 20, n_classes).mean(axis=0)
    found = np.exp(attenuated(log_p(centre), variances, slopes))
    plain = np.exp(log_p(centre))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert np.abs(found - exact).mean() < share * np.abs(plain - exact).mean()
