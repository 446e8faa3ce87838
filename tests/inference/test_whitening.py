"""Coordinates in which a posterior is nearly round."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array

from bayesrbf.inference.laplace import GaussianApproximation, approximate, dispersed, whitened
from tests.inference.targets import Gaussian, LogGamma, Target


def gaussian(precision: np.ndarray) -> GaussianApproximation:
    """A Gaussian around zero."""
    n = len(precision)
    factor = np.linalg.cholesky(np.linalg.inv(precision))
    return GaussianApproximation(np.arange(n, dtype=float), factor, precision, 0.0, 0, 0.0)


def blocks(size: int, number: int, coupling: float = 0.0) -> np.ndarray:
    """Coordinates in correlated blocks of very different scales, dealt out of order."""
    rng = np.random.default_rng(0)
    precision = np.full((size * number, size * number), coupling)
    for b in range(number):
        root = rng.normal(size=(size, size)) + 4 * np.eye(size)
        within = root @ root.T
        scale = np.sqrt(np.diag(within))
        part = slice(b * size, (b + 1) * size)
        precision[part, part] = within / np.outer(scale, scale)
    np.fill_diagonal(precision, 1.0)
    scales = 10.0 ** rng.uniform(-4, 4, len(precision))
    order = rng.permutation(len(precision))
    return (precision * np.outer(scales, scales))[np.ix_(order, order)]


def roundness(density, precision: np.ndarray) -> float:
    """Condition number of the precision in whitened coordinates."""
    factor = density.factor if isinstance(density.factor, np.ndarray) else density.factor.toarray()
    curvatures = np.linalg.eigvalsh(factor.T @ precision @ factor)
    return float(curvatures[-1] / curvatures[0])


@pytest.mark.parametrize("number", [3, 40])
def test_blocks_are_whitened_exactly_and_cost_their_own_entries(number):
    precision = blocks(4, number)
    density = whitened(Gaussian(), gaussian(precision))
    assert roundness(density, precision) == pytest.approx(1, abs=1e-6)
    assert np.count_nonzero(csr_array(density.factor).toarray()) == 16 * number
    assert isinstance(density.factor, csr_array) == (number == 40)


def test_weak_couplings_are_left_out_and_leave_a_nearly_round_posterior():
    precision = blocks(4, 40, coupling=0.001)
    density = whitened(Gaussian(), gaussian(precision))
    assert np.count_nonzero(density.factor.toarray()) == 16 * 40
    assert 1.01 < roundness(density, precision) < 1.5


def test_a_strong_coupling_is_not_left_out():
    precision = np.array([[1.0, 0.9], [0.9, 1.0]])
    assert roundness(whitened(Gaussian(), gaussian(precision)), precision) == pytest.approx(1)


@pytest.mark.parametrize("number", [2, 40])
def test_whitening_is_a_change_of_variables(number):
    precision = blocks(3, number)

    class Precise(Target):
        def value_and_gradient(self, theta, jacobian=True):
            return float(-0.5 * theta @ precision @ theta), -precision @ theta

    target = Precise(dimension=len(precision))
    density = whitened(target, gaussian(precision))
    z = np.random.default_rng(1).normal(size=(2, 5, len(precision)))
    theta = density.theta(z)
    assert theta.shape == z.shape
    value, slope = density(z[1, 2])
    expected, gradient = target.value_and_gradient(theta[1, 2])
    assert value == pytest.approx(expected, rel=1e-12)
    factor = csr_array(density.factor).toarray()
    np.testing.assert_allclose(slope, factor.T @ gradient, rtol=1e-9)
    np.testing.assert_allclose(theta, np.arange(len(precision)) + z @ factor.T, rtol=1e-9)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(density.factor)) @ z[0, 0], density.factor @ z[0, 0]
    )


def test_gradients_are_those_of_the_whitened_density():
    target = LogGamma()
    density = whitened(target, approximate(target, np.zeros(2)))
    z, step = np.array([0.3, -0.8]), 1e-6
    value, gradient = density(z)
    assert value == target.value_and_gradient(density.theta(z))[0]
    rises = [
        (density(z + step * axis)[0] - density(z - step * axis)[0]) / (2 * step)
        for axis in np.eye(2)
    ]
    np.testing.assert_allclose(gradient, rises, rtol=1e-6)


def test_chains_start_wider_than_the_posterior():
    target = Gaussian()
    density = whitened(target, approximate(target, np.zeros(5)))
    starts = np.stack([dispersed(density, 5, seed) for seed in range(2000)])
    assert starts.std() == pytest.approx(2, abs=0.05)


def test_chains_start_where_there_is_a_density():
    def density(z):
        return (0.0 if np.abs(z).max() < 0.5 else np.nan), -z

    starts = np.stack([dispersed(density, 3, seed) for seed in range(100)])
    assert np.abs(starts).max() < 0.5
    assert starts.std() > 0.1
