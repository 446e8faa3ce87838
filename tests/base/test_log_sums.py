"""Log sums against SciPy's, for few and for many entries along every axis."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from bayesrbf.base.arrays import FEW, log_softmax, log_sum_exp, to_prediction


@pytest.mark.parametrize("length", [1, 2, FEW, FEW + 1, 40])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_they_equal_scipy(length: int, axis: int) -> None:
    values = np.random.default_rng(length).normal(scale=300.0, size=(3, 4, 5))
    values = np.repeat(values.take([0], axis=axis), length, axis=axis)
    values += np.random.default_rng(0).normal(scale=30.0, size=values.shape)
    if length > 1:
        values[(0,) * 3] = -np.inf
    given = values.copy()
    total, parts = log_sum_exp(values, axis)
    np.testing.assert_allclose(total, special.logsumexp(values, axis=axis), rtol=1e-13)
    np.testing.assert_allclose(parts, special.softmax(values, axis=axis), rtol=1e-12)
    found = log_softmax(values, axis)
    np.testing.assert_allclose(found, special.log_softmax(values, axis=axis), atol=1e-12)
    np.testing.assert_array_equal(values, given)


def test_one_row_has_no_axis_left() -> None:
    total, parts = log_sum_exp(np.log([0.2, 0.6]), axis=-1)
    assert total == pytest.approx(np.log(0.8))
    np.testing.assert_allclose(parts, [0.25, 0.75])


def test_a_density_far_from_all_rows_leaves_the_classes_their_digits() -> None:
    said = to_prediction(np.array([[-1e12, -1e12 - 1.0]]))
    assert said.log_density == pytest.approx(-1e12)
    np.testing.assert_allclose(said.log_probabilities, [[-0.31326169, -1.31326169]], atol=1e-3)
