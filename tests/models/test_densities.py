"""Marginal densities against SciPy, one row and one mask at a time."""

from __future__ import annotations

import itertools

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

from bayesrbf.models import densities

MASKS = np.array(list(itertools.product([0.0, 1.0], repeat=3)))


def evaluate(expression: pt.TensorVariable) -> np.ndarray:
    return pytensor.function([], expression, mode="FAST_COMPILE")()


@pytest.fixture(scope="module")
def law() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, mean and covariance of badly scaled, correlated columns."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3)) * np.array([[1.0], [30.0], [0.03]])
    mean = np.array([1.0, -500.0, 0.01])
    return mean + rng.normal(size=(len(MASKS), 3)) @ root.T, mean, root @ root.T


def test_normal_logp_is_the_density_of_the_observed_block(
    law: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    rows, mean, covariance = law
    factor = densities.observed_cholesky(pt.as_tensor(covariance), pt.as_tensor(MASKS))
    found = evaluate(
        densities.normal_logp(
            pt.as_tensor(rows * MASKS), pt.as_tensor(MASKS), pt.as_tensor(mean), factor
        )
    )
    for row, mask, value in zip(rows, MASKS > 0, found, strict=True):
        expected = 0.0
        if mask.any():
            block = stats.multivariate_normal(mean[mask], covariance[np.ix_(mask, mask)])
            expected = block.logpdf(row[mask])
        assert value == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_independent_normal_logp_sums_the_observed_cells(
    law: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> None:
    rows, mean, covariance = law
    variances = np.diag(covariance)
    found = evaluate(
        densities.independent_normal_logp(
            pt.as_tensor(rows * MASKS),
            pt.as_tensor(MASKS),
            pt.as_tensor(mean),
            pt.as_tensor(variances),
        )
    )
    expected = (MASKS * stats.norm(mean, np.sqrt(variances)).logpdf(rows)).sum(1)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_category_logp_is_zero_where_missing_and_minus_infinity_where_impossible() -> None:
    probabilities = pt.as_tensor(np.array([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]]))
    found = evaluate(
        densities.category_logp(
            pt.as_tensor(np.array([1, 0, 1])),
            pt.as_tensor(np.array([1.0, 0.0, 1.0])),
            probabilities,
        )
    )
    np.testing.assert_allclose(found, [np.log(0.8), 0.0, -np.inf])


def test_an_impossible_missing_category_leaves_the_gradient_finite() -> None:
    probabilities = pt.dmatrix()
    total = densities.category_logp(
        pt.as_tensor(np.array([1])), pt.as_tensor(np.array([0.0])), probabilities
    ).sum()
    gradient = pytensor.function(
        [probabilities], pt.grad(total, probabilities), mode="FAST_COMPILE"
    )
    np.testing.assert_array_equal(gradient(np.array([[1.0, 0.0]])), 0.0)


def test_draws_have_the_mean_and_covariance() -> None:
    n = 4000
    mean, root = np.array([3.0, -1.0]), np.array([[2.0, 0.0], [1.5, 0.5]])
    covariance = root @ root.T
    draw = densities.normal_draw(
        pt.as_tensor(np.tile(mean, (n, 1))), pt.as_tensor(np.tile(covariance, (n, 1, 1)))
    )
    [found] = np.atleast_3d(draw_once(draw)[None])
    deviation = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(found.mean(0) - mean) / deviation * np.sqrt(n) < 4.9)
    whitened = (found - mean) @ np.linalg.inv(root).T
    products = np.column_stack([whitened**2 - 1, whitened[:, 0] * whitened[:, 1]])
    errors = products.mean(0) / products.std(0) * np.sqrt(n)
    assert np.all(np.abs(errors) < 4.9)


def draw_once(variable: pt.TensorVariable) -> np.ndarray:
    return np.asarray(pm.draw(variable, random_seed=1, mode="FAST_COMPILE"))
