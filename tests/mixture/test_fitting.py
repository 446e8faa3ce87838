"""EM: monotone, at a mode, blind to order, honest about its outcome."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bayesrbf.base.priors import Fit, Status
from bayesrbf.base.rows import MixtureSpecification, Observations
from bayesrbf.mixture.em import EMSettings, Step, ascend, fit_mixture, problem_of
from bayesrbf.mixture.expectation import ArrayExpectation, prepare
from bayesrbf.mixture.laws import laws_of
from bayesrbf.mixture.matrices import SMALLEST_EIGENVALUE, precision_factor
from bayesrbf.mixture.points import component_covariances
from bayesrbf.mixture.posterior import MixtureLogPosterior
from tests.cases import (
    CLASSES,
    COVARIANCES,
    hyperparameters,
    random_point,
    some_quick,
    structure,
    table,
)


def fit(
    specification: MixtureSpecification,
    rows: Observations,
    start: MixtureParameters | None = None,
    **options,
) -> Fit:
    em = EMSettings(np.random.default_rng(0), **options)
    return fit_mixture(rows, specification, hyperparameters(specification), em, start)


@pytest.mark.parametrize("missing", some_quick([0.0, 0.2, 0.8], 0.2))
@pytest.mark.parametrize(("covariance_type", "shared_covariance"), COVARIANCES)
def test_em_never_falls(covariance_type, shared_covariance, missing):
    """EM never lowers the log posterior, also from random points."""
    specification = structure(covariance_type, shared_covariance, (0, 0, 1), levels=(3,))
    prior = hyperparameters(specification)
    for seed in range(7):
        rows = table(specification, n_obs=25, missing=missing, seed=seed)
        step = problem_of(ArrayExpectation(rows, specification), specification, prior).step
        point, last = random_point(specification, seed), -np.inf
        for _ in range(12):
            now = step(point)
            assert now.log_posterior >= last - 1e-10 * abs(now.log_posterior)
            point, last = now.following, now.log_posterior


@pytest.mark.slow
@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
@pytest.mark.parametrize(("covariance_type", "shared_covariance"), COVARIANCES)
def test_fixed_point_is_a_mode(covariance_type, shared_covariance, classes):
    specification = structure(covariance_type, shared_covariance, classes, levels=(2,))
    rows = table(specification, n_obs=60)
    result = fit(specification, rows, tol=1e-15, max_iter=5000)
    target = MixtureLogPosterior(rows, specification, hyperparameters(specification))
    theta = target.pack(result.parameters)
    value, gradient = target.value_and_gradient(theta, jacobian=False)
    np.testing.assert_allclose(gradient, 0, atol=2e-4)
    assert value == pytest.approx(result.log_posterior, rel=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(20):
        nearby = theta + 1e-2 * rng.normal(size=theta.size)
        assert target.value_and_gradient(nearby, jacobian=False)[0] < value


def test_m_step_is_the_stated_formula():
    """On complete data with one component an M-step is the closed form."""
    specification = structure(classes=(0,), n_features=2)
    rows = table(specification, missing=0)
    prior = hyperparameters(specification)
    statistics = ArrayExpectation(rows, specification).statistics(random_point(specification))
    mode = laws_of(specification).mode(statistics, random_point(specification), prior)
    v, x = rows.weights, rows.real
    mean = v @ x / (v.sum() + prior.mean_precision)
    scatter = (x - mean).T @ ((x - mean) * v[:, None])
    scatter += prior.mean_precision * np.outer(mean, mean)
    strength = prior.degrees_of_freedom + 1
    covariance = (scatter + strength * np.eye(2)) / (v.sum() + strength)
    np.testing.assert_allclose(mode.means[0], mean)
    np.testing.assert_allclose(component_covariances(mode, specification)[0], covariance)


def test_a_component_without_rows_keeps_the_prior_covariance():
    specification = structure(classes=(0, 0), n_features=2)
    rows = table(specification, n_obs=1)
    rows = replace(rows, weights=np.zeros(1))
    point = random_point(specification)
    statistics = ArrayExpectation(rows, specification).statistics(point)
    mode = laws_of(specification).mode(statistics, point, hyperparameters(specification))
    np.testing.assert_allclose(
        component_covariances(mode, specification), [np.eye(2)] * 2, atol=1e-12
    )
    np.testing.assert_allclose(mode.means, 0, atol=1e-12)


@pytest.mark.parametrize("acceleration", [None, "squarem"])
def test_acceleration_reaches_the_same_mode(acceleration):
    specification = structure("tied", classes=(0, 0, 0), n_features=3)
    rows = table(specification, n_obs=120, missing=0.1, seed=3)
    start = random_point(specification, 4)
    plain = fit(specification, rows, start=start, acceleration=None, tol=1e-14, max_iter=20000)
    other = fit(
        specification, rows, start=start, acceleration=acceleration, tol=1e-14, max_iter=20000
    )
    assert other.status is Status.CONVERGED
    assert np.diff(other.trace.log_posterior).min() >= -1e-10 * abs(other.log_posterior)
    assert other.log_posterior >= plain.log_posterior - 1e-6


@pytest.mark.slow
def test_squarem_takes_fewer_steps_where_em_is_slow():
    specification = structure("tied", classes=(0, 0, 0, 0), n_features=2)
    rows = table(specification, n_obs=200, missing=0.2, seed=5)
    start = random_point(specification, 1)
    steps = [
        fit(specification, rows, start=start, acceleration=a, tol=1e-9, max_iter=5000).trace.n_iter
        for a in (None, "squarem")
    ]
    assert steps[1] < 0.6 * steps[0]


def test_an_extrapolation_from_which_em_cannot_go_on_is_turned_down():
    specification = structure("tied", classes=(0, 0, 0), n_features=2)
    rows, start = table(specification, n_obs=60, seed=5), random_point(specification, 1)
    problem = problem_of(
        ArrayExpectation(rows, specification), specification, hyperparameters(specification)
    )
    by_em, failed = [start], []

    def step(point):
        found = problem.step(point)

        def maximise():
            if not any(point is one for one in by_em):
                failed.append(point)
                raise np.linalg.LinAlgError
            by_em.append(found.following)
            return by_em[-1]

        return Step(found.log_posterior, maximise)

    bounds = {"tolerance": 1e-6, "max_iter": 60}
    ours = ascend(replace(problem, step=step), start, **bounds, acceleration="squarem")
    plain = ascend(problem, start, **bounds, acceleration=None)
    assert failed
    np.testing.assert_array_equal(ours.trace.log_posterior, plain.trace.log_posterior)


@pytest.mark.parametrize("shape", ["full", "diag"])
def test_an_extrapolation_beyond_the_range_of_numbers_is_turned_down(shape):
    specification = structure(shape, shared_covariance=True, classes=(0, 0, 0), n_features=2)
    rows, start = table(specification, n_obs=60, missing=0.1, seed=5), random_point(specification)
    known = hyperparameters(specification)
    problem = problem_of(prepare(rows, specification), specification, known)
    far = []

    def unpack(coordinates):
        point = problem.unpack(coordinates)
        far.append(replace(point, precisions_cholesky=0 * point.precisions_cholesky))
        return far[-1]

    bounds = {"tolerance": 1e-6, "max_iter": 60}
    ours = ascend(replace(problem, unpack=unpack), start, **bounds, acceleration="squarem")
    plain = ascend(problem, start, **bounds, acceleration=None)
    assert far
    np.testing.assert_array_equal(ours.trace.log_posterior, plain.trace.log_posterior)


def test_row_order_does_not_matter_beyond_rounding():
    specification = structure(classes=(0, 1), levels=(2,))
    rows = table(specification)
    shuffled = rows.take(np.random.default_rng(1).permutation(rows.n_obs))
    a, b = fit(specification, rows), fit(specification, shuffled)
    np.testing.assert_allclose(a.parameters.means, b.parameters.means, atol=1e-9)


def test_a_weight_of_two_is_the_row_twice():
    specification = structure(classes=(0, 1), levels=(2,))
    rows = table(specification)
    rows = replace(rows, weights=np.where(np.arange(rows.n_obs) < 20, 2.0, 1.0))
    twice = rows.take(np.r_[np.arange(20), np.arange(rows.n_obs)])
    twice = replace(twice, weights=np.ones(twice.n_obs))
    a, b = fit(specification, rows), fit(specification, twice)
    np.testing.assert_allclose(
        component_covariances(a.parameters, specification),
        component_covariances(b.parameters, specification),
        atol=1e-9,
    )


def test_the_winner_owns_the_status():
    specification = structure(classes=(0, 0, 0), n_features=2)
    rows = table(specification, n_obs=90, seed=2)
    result = fit(specification, rows, n_init=6)
    assert result.restarts.shape == (6,)
    assert result.log_posterior == result.restarts.max()
    assert result.status is Status.CONVERGED
    assert result.log_posterior == result.trace.log_posterior[-1]


def test_outcomes_are_told():
    specification = structure(classes=(0, 0), n_features=2)
    rows = table(specification, n_obs=60, seed=2)
    assert fit(specification, rows, max_iter=2).status is Status.MAX_ITER
    assert all(status.sentence.endswith(".") for status in Status)


def test_a_floor_that_binds_is_told():
    """Two equal columns under so much weight that the prior's share is below rounding."""
    specification = structure(classes=(0,), n_features=2)
    rows = table(specification, missing=0)
    twin = replace(rows, real=rows.real[:, [0, 0]], weights=1e12 * rows.weights)
    assert fit(specification, twin).floored
    assert not fit(specification, replace(twin, weights=rows.weights)).floored


@pytest.mark.parametrize("d", [1, 2, 17, 18, 19, 40])
def test_precision_factors_of_every_size(d: int) -> None:
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(3, 5 * d, d)) @ rng.normal(size=(d, d))
    covariances = rows.swapaxes(1, 2) @ rows
    factors = precision_factor(covariances)
    assert (np.triu(factors, 1) == 0).all()
    whitened = factors.swapaxes(1, 2) @ covariances @ factors
    np.testing.assert_allclose(whitened, np.tile(np.eye(d), (3, 1, 1)), atol=1e-9)


def test_precision_factor_inverts_and_floors():
    rng = np.random.default_rng(0)
    matrices = rng.normal(size=(3, 4, 4))
    covariances = matrices @ matrices.swapaxes(1, 2) + 0.1 * np.eye(4)
    factors = precision_factor(covariances)
    np.testing.assert_allclose(np.triu(factors, 1), 0)
    np.testing.assert_allclose(
        factors @ factors.swapaxes(1, 2) @ covariances, [np.eye(4)] * 3, atol=1e-8
    )
    singular = np.ones((1, 3, 3))
    factor = precision_factor(singular)[0]
    values = np.linalg.eigvalsh(np.linalg.inv(factor @ factor.T))
    assert values.min() == pytest.approx(3 * SMALLEST_EIGENVALUE, rel=1e-3)
