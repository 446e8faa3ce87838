"""The log posterior: its gradient, its units, its symmetries."""

from __future__ import annotations

import numpy as np
import pytest

from bayesrbf.base.rows import MixtureSpecification, Observations
from bayesrbf.mixture.laws import SHAPES
from bayesrbf.mixture.points import component_covariances
from bayesrbf.mixture.posterior import MixtureLogPosterior
from tests.cases import (
    CLASSES,
    COVARIANCES,
    hyperparameters,
    some_quick,
    structure,
    table,
)


def log_posterior(specification: MixtureSpecification, **units: float) -> MixtureLogPosterior:
    return MixtureLogPosterior(
        table(specification), specification, hyperparameters(specification, **units)
    )


@pytest.mark.parametrize("classes", some_quick(CLASSES.values(), CLASSES["unequal"]), ids=CLASSES)
@pytest.mark.parametrize(("covariance_type", "shared_covariance"), COVARIANCES)
@pytest.mark.parametrize(
    ("n_features", "levels"),
    [
        (3, (2, 3)),
        pytest.param(1, (), marks=pytest.mark.slow),
        pytest.param(0, (3,), marks=pytest.mark.slow),
    ],
)
def test_gradient_equals_central_differences(
    covariance_type, shared_covariance, classes, n_features, levels
):
    specification = structure(covariance_type, shared_covariance, classes, n_features, levels)
    target = log_posterior(specification)
    theta = np.random.default_rng(1).normal(size=target.dimension)
    steps = 1e-5 * np.eye(target.dimension)
    for jacobian in (True, False):
        _, gradient = target.value_and_gradient(theta, jacobian)
        numeric = [
            target.value_and_gradient(theta + h, jacobian)[0]
            - target.value_and_gradient(theta - h, jacobian)[0]
            for h in steps
        ]
        np.testing.assert_allclose(gradient, np.array(numeric) / 2e-5, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("covariance_type", SHAPES)
def test_subjects_shift_the_value_and_nothing_else(covariance_type):
    """In other units the log density moves by the log scales, by the same amount everywhere."""
    specification = structure(covariance_type, levels=(2,))
    rows = table(specification)
    standard = MixtureLogPosterior(rows, specification, hyperparameters(specification))
    hyper = hyperparameters(specification, location=5.0, scale=3.0)
    scaled = MixtureLogPosterior(rows, specification, hyper)
    theta = np.random.default_rng(2).normal(size=standard.dimension)
    point = standard.unpack(theta)
    moved = scaled.pack(point.in_units(hyper.units))
    shift = (~np.isnan(rows.real)) @ np.log(hyper.scale)
    np.testing.assert_allclose(scaled.pointwise(moved), standard.pointwise(theta) - shift)
    expected = standard.value_and_gradient(theta)[0] - rows.weights @ shift
    expected -= specification.n_components * np.log(hyper.scale).sum()
    assert scaled.value_and_gradient(moved)[0] == pytest.approx(expected, rel=1e-12)


def test_value_adds_up_from_rows_and_prior():
    """Twice the weights add the weighted likelihood once more: the prior is counted once."""
    specification = structure(levels=(2,))
    rows = table(specification)
    hyper = hyperparameters(specification)
    once = MixtureLogPosterior(rows, specification, hyper)
    doubled = Observations(rows.real, rows.codes, rows.labels, 2 * rows.weights)
    twice = MixtureLogPosterior(doubled, specification, hyper)
    theta = np.random.default_rng(3).normal(size=once.dimension)
    gain = twice.value_and_gradient(theta)[0] - once.value_and_gradient(theta)[0]
    assert gain == pytest.approx(float(rows.weights @ once.pointwise(theta)), rel=1e-10)


@pytest.mark.parametrize("at_once", [1, 2, 100])
@pytest.mark.parametrize(("covariance_type", "shared_covariance"), COVARIANCES)
def test_log_likelihoods_of_many_points_are_those_of_each(
    covariance_type, shared_covariance, at_once, monkeypatch
):
    specification = structure(covariance_type, shared_covariance, (0, 0, 1), levels=(2,))
    entries = at_once * 3 * table(specification).n_obs
    monkeypatch.setattr("bayesrbf.base.rows.AT_ONCE", entries)
    target = log_posterior(specification, location=2.0, scale=4.0)
    thetas = np.random.default_rng(9).normal(size=(5, target.dimension))
    one_by_one = np.stack([target.pointwise(theta) for theta in thetas])
    np.testing.assert_allclose(target.log_likelihoods(thetas), one_by_one, rtol=1e-9)


def test_predictor_sums_components_by_class():
    specification = structure(classes=(0, 0, 1), levels=(2,))
    target = log_posterior(specification, location=2.0, scale=4.0)
    theta = np.random.default_rng(4).normal(size=target.dimension)
    own = target.predictor(table(specification))(theta).log_probabilities
    joint = target.component_log_joint(theta)
    # the joint of rows and components leaves a constant a row open: the rows' units
    np.testing.assert_allclose(
        own[:, 0] - own[:, 1], np.logaddexp(joint[:, 0], joint[:, 1]) - joint[:, 2]
    )


@pytest.mark.parametrize(("covariance_type", "shared_covariance"), COVARIANCES)
def test_reordering_components_changes_no_density(covariance_type, shared_covariance):
    specification = structure(covariance_type, shared_covariance, (0, 0, 0, 1, 1), levels=(3,))
    target = log_posterior(specification)
    theta = np.random.default_rng(5).normal(size=target.dimension)
    order = np.array([2, 0, 1, 4, 3])
    moved = target.permute(theta, order)
    assert not np.allclose(moved, theta)
    assert target.value_and_gradient(moved)[0] == pytest.approx(
        target.value_and_gradient(theta)[0], rel=1e-12
    )
    np.testing.assert_allclose(
        target.component_log_joint(moved), target.component_log_joint(theta)[:, order]
    )
    np.testing.assert_allclose(target.permute(moved, np.argsort(order)), theta, atol=1e-12)


@pytest.mark.parametrize("shape", ["full", "diag", "spherical"])
def test_draws_unpack_like_single_points(shape):
    specification = structure(shape, classes=(0, 0, 1), levels=(2,))
    target = log_posterior(specification, location=1.0, scale=2.0)
    thetas = np.random.default_rng(6).normal(size=(2, 3, target.dimension))
    many = target.constrained(thetas) | target.deterministic(thetas)
    one = target.unpack(thetas[1, 2])
    covariances, expected = many["covariances"], component_covariances(one, specification)
    if shape != "full":
        assert np.ptp(covariances, axis=(0, 1)).min() > 0  # what never varies is left out
        expected = np.diagonal(expected, axis1=-2, axis2=-1)
    np.testing.assert_allclose(covariances[1, 2], expected)
    assert "weights" not in many  # that of the second class is 1
    np.testing.assert_allclose(many["weights_0"][1, 2], one.weights[:2])
    np.testing.assert_allclose(many["means"][1, 2], one.means)
    for variable in (*target.variables, *target.deterministic_variables):
        assert many[variable.name].shape == (2, 3, *variable.shape)
        assert len(variable.dims) == len(variable.shape)


def test_pack_inverts_unpack():
    for covariance_type, shared_covariance in COVARIANCES:
        specification = structure(covariance_type, shared_covariance, (0, 0, 1), levels=(3,))
        target = log_posterior(specification, location=-3.0, scale=0.1)
        theta = np.random.default_rng(7).normal(size=target.dimension)
        np.testing.assert_allclose(target.pack(target.unpack(theta)), theta, atol=1e-10)
