"""The log posterior in one compiled call: the same numbers as in NumPy."""

from __future__ import annotations

import pickle

import numba
import numpy as np
import pytest

from bayesrbf.base.rows import Observations
from bayesrbf.mixture import compiled_density
from bayesrbf.mixture.posterior import MixtureLogPosterior
from tests.cases import CLASSES, COVARIANCES, hyperparameters, structure, table


def pair(specification, rows: Observations | None = None):
    """The density as EM uses it, and as samplers do."""
    rows = table(specification) if rows is None else rows
    hyper = hyperparameters(specification, location=1.0, scale=2.0)
    target = MixtureLogPosterior(rows, specification, hyper)
    return target, target.prepared_for_many()


def assert_same(target, many, thetas) -> None:
    """Single points, many points and values alone are those of the reference."""
    for jacobian in (True, False):
        for theta in thetas:
            value, gradient = many.value_and_gradient(theta, jacobian)
            expected, slope = target.value_and_gradient(theta, jacobian)
            assert value == pytest.approx(expected, rel=1e-12)
            np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-9)
    values, gradients = many.values_and_gradients(thetas)
    alone = [many.value_and_gradient(theta) for theta in thetas]
    np.testing.assert_array_equal(values, [value for value, _ in alone])
    np.testing.assert_array_equal(gradients, np.stack([gradient for _, gradient in alone]))
    np.testing.assert_array_equal(many.log_densities(thetas), values)


@pytest.mark.slow
@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
@pytest.mark.parametrize(("covariance_type", "shared_covariance"), COVARIANCES)
@pytest.mark.parametrize(("n_features", "levels"), [(3, (2, 3)), (1, ()), (0, (3,)), (4, ())])
def test_one_call_equals_numpy(covariance_type, shared_covariance, classes, n_features, levels):
    specification = structure(covariance_type, shared_covariance, classes, n_features, levels)
    target, many = pair(specification)
    assert target._density is None
    assert many._density is not None
    thetas = np.random.default_rng(1).normal(size=(3, target.dimension))
    assert_same(target, many, thetas)
    assert target._density is None  # stays as it was


def test_complete_rows_take_the_kernels_without_holes():
    specification = structure(n_features=3)
    rows = table(specification)
    complete = Observations(np.nan_to_num(rows.real), rows.codes, rows.labels, rows.weights)
    target, many = pair(specification, complete)
    assert_same(target, many, np.random.default_rng(2).normal(size=(2, target.dimension)))


def test_far_points_have_the_reference_s_values():
    specification = structure(classes=(0, 0, 1), levels=(3,))
    target, many = pair(specification)
    thetas = 20 * np.random.default_rng(3).normal(size=(20, target.dimension))
    with np.errstate(all="ignore"):
        expected = target.log_densities(thetas)
    np.testing.assert_allclose(many.log_densities(thetas), expected, rtol=1e-9)


def test_points_dealt_among_threads_give_the_same_bits(monkeypatch):
    specification = structure(classes=(0, 0, 1), levels=(2,))
    _, many = pair(specification)
    thetas = np.random.default_rng(4).normal(size=(11, many.dimension))
    monkeypatch.setattr(compiled_density, "_POINTS_OF_A_THREAD", 3)
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 1)
    alone, slopes = many.values_and_gradients(thetas)
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 4)
    dealt, dealt_slopes = many.values_and_gradients(thetas)
    np.testing.assert_array_equal(dealt, alone)
    np.testing.assert_array_equal(dealt_slopes, slopes)
    np.testing.assert_array_equal(many.log_densities(thetas), alone)


def test_it_travels_to_other_processes():
    _, many = pair(structure(levels=(2,)))
    theta = np.random.default_rng(5).normal(size=many.dimension)
    copy = pickle.loads(pickle.dumps(many))
    np.testing.assert_array_equal(
        copy.value_and_gradient(theta)[1], many.value_and_gradient(theta)[1]
    )


def test_tables_that_several_threads_go_through_keep_the_e_step(monkeypatch):
    monkeypatch.setattr("bayesrbf.mixture.compiled.CHUNK_WORK", 1.0)
    specification = structure(levels=(2,))
    target, many = pair(specification)
    assert many._density is None
    thetas = np.random.default_rng(6).normal(size=(2, target.dimension))
    np.testing.assert_allclose(many.log_densities(thetas), target.log_densities(thetas))


def test_an_empty_table_leaves_the_prior():
    specification = structure(levels=(2,))
    rows = table(specification).take(np.zeros(0, dtype=np.intp))
    target, many = pair(specification, rows)
    theta = np.random.default_rng(7).normal(size=target.dimension)
    assert many.value_and_gradient(theta)[0] == target.value_and_gradient(theta)[0]
