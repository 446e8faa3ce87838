"""Fits of RBF networks: the output layer, optimality, exact zeros."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bayesrbf.base.priors import Status
from bayesrbf.base.rows import MixtureSpecification
from bayesrbf.families.rbf_network.fitted import fit_joint
from bayesrbf.families.rbf_network.maximise import Smooth, maximise_in_halves
from bayesrbf.families.rbf_network.posterior import (
    Classes,
    Network,
    Numbers,
    OutputLayer,
    RBFNetworkLogPosterior,
    fit_output_layer,
)
from bayesrbf.families.rbf_network.records import RBFNetworkSpecification
from bayesrbf.mixture.em import EMSettings
from tests.cases import structure, table
from tests.families.rbf_network.rbf_networks import prior, rows_and_labels, specified

# ---- halves and the output layer


def test_soft_threshold_is_exact():
    """max -(x - a)^2 / 2 - rate |x| is a shrunk by rate, exactly 0 within it."""
    target = np.array([3.0, -0.4, 0.4, -2.0])
    found = maximise_in_halves(
        lambda x: Smooth(-0.5 * float(((x - target) ** 2).sum()), target - x, np.zeros(4)),
        np.array([-1.0, 1.0, 0.0, 5.0]),
        np.full(4, 0.5),
        np.full(4, True),
        max_iter=100,
        tolerance=1e-10,
    )
    np.testing.assert_allclose(found.theta, [2.5, 0.0, 0.0, -1.5], atol=1e-8)
    assert found.theta[1] == 0
    assert found.theta[2] == 0
    assert found.violation < 1e-8
    assert np.all(np.diff(found.path) >= 0)


@pytest.mark.parametrize("l1", [0.0, 2.0])
def test_the_output_layer_equals_scikit_learns(l1):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(80, 5))
    labels = (features @ rng.normal(size=(5, 3)) + rng.normal(size=(80, 3))).argmax(1)
    specification = RBFNetworkSpecification(structure("diag", False, (0,) * 5, 2), 3)
    settings = prior(specification, l1=l1, l2=1.0, intercept_scale=np.inf)
    layer = fit_output_layer(
        features,
        Classes(labels),
        np.ones(80),
        settings,
        OutputLayer.empty(specification),
    )
    ratio = l1 / (l1 + 1.0)
    reference = LogisticRegression(
        C=1 / (l1 + 1.0), l1_ratio=ratio, solver="saga", tol=1e-10, max_iter=20_000
    ).fit(features, labels)
    np.testing.assert_allclose(layer.coefficients, reference.coef_, atol=2e-4)
    np.testing.assert_allclose(
        layer.intercepts - layer.intercepts.mean(), reference.intercept_, atol=2e-4
    )
    assert layer.violation < 1e-3
    assert (layer.coefficients == 0).any() == (l1 > 0)


def test_newtons_steps_end_where_those_without_curvature_do():
    """With hidden labels and row weights."""
    rng = np.random.default_rng(4)
    features, labels = rng.normal(size=(40, 6)), rng.integers(-1, 3, 40)
    mixture = MixtureSpecification(2, (), (0,) * 6, "diag")
    specification = RBFNetworkSpecification(mixture, 3)
    weights = rng.uniform(0.5, 2.0, 40)
    found = [
        fit_output_layer(
            features,
            Classes(labels),
            weights,
            prior(specification, l1=l1, l2=0.3, intercept_scale=np.inf),
            OutputLayer.empty(specification),
        )
        for l1 in (0.0, 1e-12)  # without a kink by Newton, with one by L-BFGS
    ]
    np.testing.assert_allclose(found[0].coefficients, found[1].coefficients, atol=1e-4)
    np.testing.assert_allclose(found[0].intercepts, found[1].intercepts, atol=1e-4)
    assert found[0].violation < 1e-6


def test_an_intercept_is_pulled_by_its_normal_prior():
    """At the mode the slope of the likelihood is the intercept by its variance a priori."""
    rng = np.random.default_rng(3)
    features, targets = rng.normal(size=(50, 2)), rng.normal(4.0, 1.0, 50)
    specification = RBFNetworkSpecification(
        structure("diag", False, (0,) * 2, 2), 1, response="number"
    )
    settings = prior(specification, l1=0.0, l2=3.0, intercept_scale=0.4)
    start = OutputLayer.empty(specification)
    layer = fit_output_layer(features, Numbers(targets), np.ones(50), settings, start)
    left = targets - features @ layer.coefficients[0] - layer.intercepts[0]
    slope = layer.noise_precision * left.sum()
    np.testing.assert_allclose(slope, layer.intercepts[0] / 0.4**2, rtol=1e-4)


def test_a_numeric_output_is_ridge_regression():
    rng = np.random.default_rng(2)
    features = rng.normal(size=(50, 4))
    targets = features @ np.array([1.0, -2.0, 0.0, 0.5]) + 0.1 * rng.normal(size=50)
    specification = RBFNetworkSpecification(
        structure("diag", False, (0,) * 4, 2), 1, response="number"
    )
    settings = prior(specification, l1=0.0, l2=3.0, intercept_scale=np.inf)
    layer = fit_output_layer(
        features,
        Numbers(targets),
        np.ones(50),
        settings,
        OutputLayer.empty(specification),
    )
    design = np.column_stack([features, np.ones(50)])
    penalty = np.diag([3.0 / layer.noise_precision] * 4 + [0.0])
    expected = np.linalg.solve(design.T @ design + penalty, design.T @ targets)
    np.testing.assert_allclose(layer.coefficients[0], expected[:4], atol=1e-4)
    residual = ((targets - features @ expected[:4] - expected[4]) ** 2).sum()
    mode = (50 / 2 + settings.noise_shape - 1) / (residual / 2 + settings.noise_rate)
    assert layer.noise_precision == pytest.approx(mode, rel=1e-3)


# ---- both layers


@pytest.mark.parametrize("features", ["responsibility", "log_density", "density"])
@pytest.mark.parametrize("link", [0.0, 20.0])
def test_the_joint_fit_ends_at_a_mode(features, link):
    """The smallest subgradient vanishes, weights at the kink are exactly zero."""
    rows, output = rows_and_labels()
    specification = specified(features=features)
    settings = prior(specification, link=link, l1=1.0)
    em = EMSettings(np.random.default_rng(0), tol=1e-12)
    fit = fit_joint(rows, output, specification, settings, em)
    assert fit.status is Status.CONVERGED
    assert (np.diff(fit.joint) > -1e-10 * np.abs(fit.joint[:-1])).all()
    assert fit.violation < 2e-3
    target = RBFNetworkLogPosterior(rows, output, specification, settings)
    theta = target.pack(fit.parameters)
    value, gradient = target.value_and_gradient(theta, jacobian=False)
    assert value == pytest.approx(fit.joint[-1], rel=1e-12)
    moved = theta[target.coefficient_slice] != 0
    assert link > 0 or not moved.all()  # the link pulls weights off zero
    assert np.abs(np.delete(gradient, np.r_[target.coefficient_slice])).max() < 2e-3
    assert np.abs(gradient[target.coefficient_slice][moved]).max() < 2e-3


def test_no_small_step_leads_higher_from_a_mode():
    rows, output = rows_and_labels()
    specification = specified()
    settings = prior(specification, link=20.0)
    em = EMSettings(np.random.default_rng(0), tol=1e-12)
    fit = fit_joint(rows, output, specification, settings, em)
    target = RBFNetworkLogPosterior(rows, output, specification, settings)
    theta = target.pack(fit.parameters)
    best = target.value_and_gradient(theta, jacobian=False)[0]
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-2):
        for _ in range(20):
            step = size * rng.normal(size=theta.size)
            assert target.value_and_gradient(theta + step, jacobian=False)[0] < best


def test_labels_are_no_classes_of_the_mixture():
    """Whatever labels the rows carry, by the compiled E-step as by NumPy's."""
    rows, output = rows_and_labels()
    mixture = structure("full", False, (0, 0), 2, (3,))
    specification = RBFNetworkSpecification(mixture, 2)
    fits = []
    for labels in (np.zeros(60, np.intp), np.arange(60) % 3):
        labelled = replace(rows, labels=labels)
        em = EMSettings(np.random.default_rng(0))
        joint = fit_joint(labelled, output, specification, prior(specification), em)
        fits.append(Network(labelled, specification).linear(joint.parameters))
    np.testing.assert_array_equal(*fits)


def test_a_warm_start_is_where_it_begins():
    rows, output = rows_and_labels()
    specification = specified()
    settings = prior(specification)
    rng = np.random.default_rng(0)
    fit = fit_joint(rows, output, specification, settings, EMSettings(rng, tol=1e-10))
    again = fit_joint(rows, output, specification, settings, EMSettings(rng), fit.parameters)
    assert again.joint[0] == pytest.approx(fit.joint[-1], rel=1e-12)
    assert again.joint.size < fit.joint.size


@pytest.mark.slow
def test_densities_beyond_floats_stay_finite():
    """300 columns about a narrow component: the feature is held, the answer is finite."""
    mixture = structure("diag", False, (0, 0), 300)
    specification = RBFNetworkSpecification(mixture, 2, "density")
    rows = table(mixture, n_obs=10, missing=0.0)
    tiny = replace(rows, real=1e-6 * rows.real, labels=np.zeros(10, np.intp))
    settings = prior(specification)
    weak = replace(settings.mixture, degrees_of_freedom=1e-9, scale=np.full(300, 1e-6))
    settings = replace(settings, mixture=weak)
    labels = Classes(np.arange(10) % 2)
    em = EMSettings(np.random.default_rng(0), max_iter=20)
    fit = fit_joint(tiny, labels, specification, settings, em)
    assert np.isfinite(fit.joint).all()
    assert np.isfinite(Network(tiny, specification).linear(fit.parameters)).all()
