"""The Jacobian of the oracle is the numerical one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from tests.oracles import constrain, log_jacobian


@pytest.mark.parametrize(
    ("name", "shape"), [("weights_0", (3,)), ("precision_diagonal", (2,)), ("means", (2,))]
)
def test_the_jacobian_is_the_numerical_one(name: str, shape: tuple[int, ...]) -> None:
    coordinates = np.random.default_rng(1).normal(size=shape)
    numerical = approx_fprime(coordinates, lambda t: constrain(name, t)[: coordinates.size], 1e-7)
    _, expected = np.linalg.slogdet(numerical)
    value = constrain(name, coordinates)
    assert log_jacobian(name, value) == pytest.approx(expected, abs=1e-5)
