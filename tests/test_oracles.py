"""The oracle itself: its short cuts equal the long way, its Jacobian the numerical one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from bayesrbf.base.priors import MixtureHyperparameters
from bayesrbf.base.rows import MixtureSpecification, Observations
from tests.oracles import MixtureOracle, constrain, integrate_missing, log_jacobian


@pytest.mark.parametrize("missing", [(), (0,), (2,), (0, 1), (1, 2), (0, 1, 2)])
def test_integrating_a_cell_equals_leaving_it_out(missing: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    specification = MixtureSpecification(3, (), (0,))
    prior = MixtureHyperparameters(
        3.0, 0.1, np.array([1.0, -2, 0]), np.array([1.0, 10, 0.1]), 1.5, 2.0, ()
    )
    real = np.array([2.0, -8.0, 0.3])
    real[list(missing)] = np.nan
    rows = Observations(real[None], np.empty((1, 0), int), np.zeros(1, int), np.ones(1))
    oracle = MixtureOracle(rows, specification, prior)
    point = {
        "means": np.array([[1.5, -5.0, 0.2]]),
        "precision_diagonal": np.exp(root[:1] / 2),
        "precision_lower": root[1:2],
    }
    by_block, by_grid = oracle.pointwise(point), oracle.pointwise(point, integrate=True)
    np.testing.assert_allclose(by_grid, by_block, rtol=1e-9, atol=1e-9)


def test_a_density_integrates_to_one() -> None:
    covariance = np.array([[2.0, 0.9], [0.9, 0.7]])
    total = integrate_missing(np.array([1.0, -1.0]), covariance, np.full(2, np.nan))
    assert total == pytest.approx(1, rel=1e-10)


@pytest.mark.parametrize(
    ("name", "shape"), [("weights_0", (3,)), ("precision_diagonal", (2,)), ("means", (2,))]
)
def test_the_jacobian_is_the_numerical_one(name: str, shape: tuple[int, ...]) -> None:
    coordinates = np.random.default_rng(1).normal(size=shape)
    numerical = approx_fprime(coordinates, lambda t: constrain(name, t)[: coordinates.size], 1e-7)
    _, expected = np.linalg.slogdet(numerical)
    value = constrain(name, coordinates)
    assert log_jacobian(name, value) == pytest.approx(expected, abs=1e-5)
