"""The log Gibbs posterior: its gradient, its units, and the likelihood as one case."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter

import numpy as np
import pytest

from bayesrbf.base.priors import OBJECTIVES, Objective
from bayesrbf.base.rows import MixtureSpecification
from bayesrbf.mixture.objective import HybridLogPosterior
from bayesrbf.mixture.posterior import MixtureLogPosterior
from tests.cases import (
    CLASSES,
    COVARIANCES,
    hyperparameters,
    some_quick,
    structure,
    table,
)

EVERY = [
    *(Objective(name) for name in OBJECTIVES),
    Objective("hinge", margin=2.0),
    Objective("blend", kappa=0.0),
]


def target_of(
    specification: MixtureSpecification, objective: Objective, **units: float
) -> HybridLogPosterior:
    prior = hyperparameters(specification, **units)
    return HybridLogPosterior(table(specification), specification, prior, objective)


def assert_gradient(target: HybridLogPosterior, seed: int, n_directions: int = 8) -> None:
    """Along random directions, each of which moves every coordinate."""
    rng = np.random.default_rng(seed)
    theta = 0.5 * rng.normal(size=target.dimension)
    steps = 1e-5 * rng.normal(size=(n_directions, target.dimension)) * target.scales
    for jacobian in (True, False):
        _, gradient = target.value_and_gradient(theta, jacobian)
        numeric = [
            target.value_and_gradient(theta + h, jacobian)[0]
            - target.value_and_gradient(theta - h, jacobian)[0]
            for h in steps
        ]
        np.testing.assert_allclose(2 * steps @ gradient, numeric, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("objective", EVERY, ids=attrgetter("name"))
def test_gradient_equals_central_differences(objective):
    specification = structure(classes=(0, 0, 1, 2, 2, 2), levels=(2, 3))
    assert_gradient(target_of(specification, objective, location=2.0, scale=3.0), seed=1)


@pytest.mark.parametrize("classes", some_quick(CLASSES.values(), CLASSES["unequal"]), ids=CLASSES)
@pytest.mark.parametrize(("covariance_type", "shared_covariance"), COVARIANCES)
@pytest.mark.parametrize(
    ("n_features", "levels"), [(2, (2,)), pytest.param(0, (3,), marks=pytest.mark.slow)]
)
def test_gradient_under_every_structure(
    covariance_type, shared_covariance, classes, n_features, levels
):
    specification = structure(covariance_type, shared_covariance, classes, n_features, levels)
    for objective in (Objective("blend"), Objective("hinge")):
        assert_gradient(target_of(specification, objective), seed=2)


def test_the_likelihood_is_the_log_posterior():
    specification = structure(classes=(0, 0, 1), levels=(2,))
    rows, prior = table(specification), hyperparameters(specification, location=1.0, scale=2.0)
    plain = MixtureLogPosterior(rows, specification, prior)
    theta = np.random.default_rng(3).normal(size=plain.dimension)
    for objective in (Objective(), Objective("blend", kappa=1.0)):
        target = HybridLogPosterior(rows, specification, prior, objective)
        value, gradient = target.value_and_gradient(theta)
        expected, expected_gradient = plain.value_and_gradient(theta)
        assert value == pytest.approx(expected, rel=1e-12)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(target.pointwise(theta), plain.pointwise(theta))


@pytest.mark.parametrize("objective", EVERY, ids=attrgetter("name"))
def test_value_is_the_weighted_objective_of_the_rows_and_the_prior(objective):
    specification = structure(classes=(0, 0, 1), levels=(2,))
    rows, prior = table(specification), hyperparameters(specification, location=1.0, scale=2.0)
    once = HybridLogPosterior(rows, specification, prior, objective)
    doubled = replace(rows, weights=2 * rows.weights)
    twice = HybridLogPosterior(doubled, specification, prior, objective)
    theta = np.random.default_rng(4).normal(size=once.dimension)
    gain = twice.value_and_gradient(theta)[0] - once.value_and_gradient(theta)[0]
    assert gain == pytest.approx(float(rows.weights @ once.pointwise(theta)), rel=1e-10)


@pytest.mark.parametrize("objective", EVERY, ids=attrgetter("name"))
def test_subjects_shift_the_value_by_what_has_units(objective):
    specification = structure(classes=(0, 0, 1), levels=(2,))
    rows = table(specification)
    prior = hyperparameters(specification, location=5.0, scale=3.0)
    standard = HybridLogPosterior(rows, specification, prior.standardised(), objective)
    scaled = HybridLogPosterior(rows, specification, prior, objective)
    theta = np.random.default_rng(5).normal(size=standard.dimension)
    moved = scaled.pack(standard.unpack(theta).in_units(prior.units))
    logs = (~np.isnan(rows.real)) @ np.log(prior.scale)
    shift = objective.generative_weight * float(rows.weights @ logs)
    shift += objective.prior_power * specification.n_components * np.log(prior.scale).sum()
    expected = standard.value_and_gradient(theta)[0] - shift
    assert scaled.value_and_gradient(moved)[0] == pytest.approx(expected, rel=1e-11)


def test_the_power_of_the_prior_is_all_that_is_left_without_rows():
    specification = structure(classes=(0, 0, 1), levels=(2,))
    rows = replace(table(specification), weights=np.zeros(40))
    prior = hyperparameters(specification)
    blend = HybridLogPosterior(rows, specification, prior, Objective("blend", kappa=0.3))
    whole = HybridLogPosterior(rows, specification, prior, Objective())
    theta = np.random.default_rng(6).normal(size=blend.dimension)
    value, gradient = blend.value_and_gradient(theta, jacobian=False)
    expected, expected_gradient = whole.value_and_gradient(theta, jacobian=False)
    assert value == pytest.approx(0.3 * expected, rel=1e-12)
    np.testing.assert_allclose(gradient, 0.3 * expected_gradient, rtol=1e-10, atol=1e-10)
