"""Conditional moments against SciPy's normal, draws against the moments they must have."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bayesrbf.base.rows import Observations
from bayesrbf.mixture.missing import (
    conditional_cells,
    conditional_draws,
    responsibilities,
    sample,
)
from bayesrbf.mixture.points import component_covariances
from tests.cases import COVARIANCES, random_point, structure, table

Z_BOUND = 4.9


def brute_moments(real, covariances, means, shares):
    """Conditional mean and variance of one row by block matrices, component by component."""
    hole = np.isnan(real)
    expected, squares = np.zeros(hole.sum()), np.zeros(hole.sum())
    for k, share in enumerate(shares):
        cov = covariances[k]
        gain = cov[np.ix_(hole, ~hole)] @ np.linalg.inv(cov[np.ix_(~hole, ~hole)])
        mean = means[k, hole] + gain @ (real[~hole] - means[k, ~hole])
        variance = np.diag(cov[np.ix_(hole, hole)] - gain @ cov[np.ix_(~hole, hole)])
        expected += share * mean
        squares += share * (variance + mean**2)
    return expected, squares - expected**2


@pytest.mark.parametrize(("covariance_type", "shared_covariance"), COVARIANCES)
def test_moments_equal_block_matrices(covariance_type, shared_covariance):
    specification = structure(covariance_type, shared_covariance, (0, 0, 1), levels=(3,))
    rows, point = table(specification), random_point(specification)
    covariances = component_covariances(point, specification)
    shares = responsibilities(rows, point, specification)
    mean, variance, _ = conditional_cells(rows, point, specification)
    for n in range(rows.n_obs):
        hole = np.isnan(rows.real[n])
        expected, spread = brute_moments(rows.real[n], covariances, point.means, shares[n])
        np.testing.assert_allclose(mean[n, hole], expected, atol=1e-10)
        np.testing.assert_allclose(variance[n, hole], spread, atol=1e-10)
        assert np.array_equal(mean[n, ~hole], rows.real[n, ~hole])
        assert not variance[n, ~hole].any()


def test_responsibilities_equal_scipy():
    specification = structure("full", classes=(0, 0, 1), levels=(2,))
    rows, point = table(specification), random_point(specification)
    covariances = component_covariances(point, specification)
    for n, row in enumerate(responsibilities(rows, point, specification)):
        seen = ~np.isnan(rows.real[n])
        mass = point.class_probabilities[[0, 0, 1]] * point.weights
        for k in range(3):
            if seen.any():
                mass[k] *= multivariate_normal.pdf(
                    rows.real[n, seen], point.means[k, seen], covariances[k][np.ix_(seen, seen)]
                )
            if rows.codes[n, 0] >= 0:
                mass[k] *= point.category_probabilities[0][k, rows.codes[n, 0]]
        np.testing.assert_allclose(row, mass / mass.sum(), atol=1e-12)


def test_category_probabilities_average_components():
    specification = structure("diag", classes=(0, 1), levels=(3,))
    rows, point = table(specification), random_point(specification)
    (probabilities,) = conditional_cells(rows, point, specification).probabilities
    shares = responsibilities(rows, point, specification)
    hole = rows.codes[:, 0] < 0
    np.testing.assert_allclose(probabilities[hole], shares[hole] @ point.category_probabilities[0])
    np.testing.assert_allclose(probabilities[~hole].max(axis=1), 1)


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_draws_have_the_conditional_moments(covariance_type):
    specification = structure(covariance_type, classes=(0, 1), levels=(3,))
    one = table(specification, missing=0.5, seed=3).take(np.array([4]))
    assert np.isnan(one.real).any()
    n = 20_000
    rows = one.take(np.zeros(n, dtype=int))
    point = random_point(specification)
    [whole] = conditional_draws(rows, point, specification, np.random.default_rng(0))
    real, codes = whole.real, whole.codes
    mean, variance, _ = conditional_cells(one, point, specification)
    hole = np.isnan(one.real[0])
    errors = np.sqrt(variance[0, hole] / n)
    assert (np.abs(real[:, hole].mean(axis=0) - mean[0, hole]) < Z_BOUND * errors).all()
    np.testing.assert_allclose(real[:, hole].var(axis=0), variance[0, hole], rtol=0.1)
    assert (codes >= 0).all()


@pytest.mark.parametrize("covariance_type", ["full", "diag"])
def test_many_draws_are_those_drawn_one_by_one(covariance_type):
    specification = structure(covariance_type, classes=(0, 0, 1), levels=(3,))
    rows, point = table(specification, missing=0.4, seed=1), random_point(specification)
    one, many = (np.random.default_rng(5) for _ in range(2))
    together = conditional_draws(rows, point, specification, many, draws=3)
    for drawn in together:
        [alone] = conditional_draws(rows, point, specification, one)
        np.testing.assert_array_equal(drawn.codes, alone.codes)
        np.testing.assert_allclose(drawn.real, alone.real, rtol=1e-12)
    assert not np.array_equal(together[0].real, together[1].real)


def test_samples_have_the_mixture_moments():
    specification = structure("full", classes=(0, 0, 1), levels=(2,))
    point = random_point(specification)
    n = 40_000
    rows, components = sample(point, specification, n, np.random.default_rng(0))
    real, codes, labels = rows.real, rows.codes, rows.labels
    frequency = np.bincount(labels, minlength=2) / n
    error = np.sqrt(frequency.prod() / n)
    assert np.abs(frequency - point.class_probabilities).max() < Z_BOUND * error
    for k, covariance in enumerate(component_covariances(point, specification)):
        mine = components == k
        error = np.sqrt(np.diag(covariance) / mine.sum())
        assert (np.abs(real[mine].mean(axis=0) - point.means[k]) < Z_BOUND * error).all()
        np.testing.assert_allclose(np.cov(real[mine].T), covariance, atol=0.1 * covariance.max())
        share = (codes[mine, 0] == 0).mean()
        assert abs(share - point.category_probabilities[0][k, 0]) < Z_BOUND * 0.5 / np.sqrt(
            mine.sum()
        )


def test_samples_of_given_labels_stay_in_their_class():
    specification = structure("diag", classes=(0, 0, 1))
    labels = np.array([1, 0, 0, 1])
    point = random_point(specification)
    drawn, components = sample(point, specification, 4, np.random.default_rng(0), labels)
    assert np.array_equal(drawn.labels, labels)
    assert np.array_equal(np.asarray(specification.component_class)[components], labels)


def test_a_row_without_cells_has_the_mixture_mean():
    specification = structure("full", classes=(0, 1))
    point = random_point(specification)
    empty = Observations(
        np.full((1, 3), np.nan), np.empty((1, 0), dtype=np.intp), np.array([-1]), np.ones(1)
    )
    mean, *_ = conditional_cells(empty, point, specification)
    np.testing.assert_allclose(mean[0], point.class_probabilities @ point.means)
